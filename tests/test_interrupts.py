"""Ctrl-C during eager calls: the library stays usable, and modes are restored.

Partial results of `Optimizer.step` and `autograd.backward` stay. Captured steps have all their effects or none: see
`capture/test_interruptions.py`.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from timeit import timeit
from typing import Any

import numpy as np
import pytest

import xgrad
from capture.twins import array, batch, custom, everything, snapshot
from interrupts import INTERRUPTS, call_with_signal, call_with_signal_at
from xgrad import nn, optim
from xgrad.backend import philox
from xgrad.backend.device import Device, intercepting, tracing
from xgrad.core.lost_gradients import _warns
from xgrad.core.views import base_of

Scenario = Callable[..., Iterator[Any]]


def modes() -> list[Any]:
    """Return the modes of this thread."""
    return [
        xgrad.is_grad_enabled(),
        xgrad.get_default_dtype(),
        xgrad.zeros(1).device,
        _warns.get(),
        tracing.get(),
        intercepting.get(),
    ]


def play(scenario: Scenario, interrupted: Callable[[Callable[[], Any]], Any]) -> Any:
    """Interrupt the call that a scenario yields, and run its checks; return the result of the interruption."""
    before, parts = modes(), scenario()
    result = interrupted(next(parts))
    assert modes() == before
    assert next(parts, None) is None
    return result


# Scenarios: preparation, the call, and checks afterwards


def network() -> nn.Module:
    xgrad.manual_seed(3)
    return nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))


def loss_of(model: nn.Module, number: int = 0) -> Any:
    x, y = batch(number)
    return nn.functional.cross_entropy(model(x), y)


def training(make: Callable[..., Any], steps: int) -> tuple[nn.Module, Any]:
    """Return a network that has taken some steps and has gradients for the next, and its optimizer."""
    model = network()
    first, last = model[0], model[2]
    optimizer = make([{"params": first.parameters()}, {"params": last.parameters()}])
    for number in range(steps + 1):
        optimizer.zero_grad()
        loss_of(model, number).backward()
        if number < steps:
            optimizer.step()
    return model, optimizer


def backward(steps: int) -> Iterator[Any]:
    model, optimizer = training(partial(optim.SGD, lr=0.1), steps)
    weights, expected = snapshot(model.state_dict()), snapshot([p.grad for p in model.parameters()])
    optimizer.zero_grad()
    yield lambda: loss_of(model, steps).backward()
    assert snapshot(model.state_dict()) == weights
    assert not any(p._leaf.slot and p._leaf.slot.reserved for p in model.parameters())
    optimizer.zero_grad()
    loss_of(model, steps).backward()
    assert snapshot([p.grad for p in model.parameters()]) == expected


def scopes() -> Iterator[Any]:
    @xgrad.no_grad()
    def decorated() -> None:
        with xgrad.enable_grad(), xgrad.warn_lost_gradients(), xgrad.autograd.detect_anomaly(), xgrad.profile():
            abs(-1)

    def call() -> None:
        with xgrad.no_grad():
            abs(-1)
        with xgrad.default_device("cpu"), xgrad.set_default_dtype(xgrad.float64):
            decorated()

    yield call


def higher_order() -> Iterator[Any]:
    x = array(3).requires_grad_()

    def cubes(x: Any) -> Any:
        return (x**3).sum()

    def call() -> Any:
        (first,) = xgrad.autograd.grad(cubes(x), x, create_graph=True)
        (second,) = xgrad.autograd.grad(first.sum(), x)
        return second, xgrad.hvp(cubes, (x.detach(),), (xgrad.ones(3),))[0]

    yield call
    for got in call():
        np.testing.assert_allclose(got.numpy(), 6 * x.detach().numpy(), rtol=1e-6)


def stepping(make: Callable[..., Any], steps: int, tile_size: int | None = None) -> Iterator[Any]:
    backend = Device("cpu").backend
    before = backend.tile_size
    try:
        backend.tile_size = tile_size or before
        model, optimizer = training(make, steps)
        complete = {frozenset(state) for state in training(make, 1)[1].state_dict()["state"].values()}
        known = optimizer.state_dict()["state"]
        yield optimizer.step
        state = optimizer.state_dict()["state"]
        assert all(known.keys() <= state.keys() and frozenset(state[i]) in complete | {frozenset()} for i in state)
        arrays = [x.numpy() for parts in state.values() for x in parts.values() if hasattr(x, "ndim")]
        assert all(np.isfinite(x).all() for x in arrays)
        # Further steps equal those of another network and optimizer with the same weights and state.
        other, fresh = training(make, 0)
        other.load_state_dict(model.state_dict())
        fresh.load_state_dict(optimizer.state_dict())
        for number in range(2):
            for net, each in (model, optimizer), (other, fresh):
                each.zero_grad()
                loss_of(net, number).backward()
                each.step()
            assert snapshot(everything(model, optimizer)) == snapshot(everything(other, fresh))
    finally:
        backend.tile_size = before


def rule(xp: Any, p: Any, g: Any, state: Any, options: Any) -> Any:
    """Update a parameter by a rule with two arrays and a number, none of them in place."""
    if not state:
        state["n"], state["a"], state["b"] = 0, xp.zeros_like(p), xp.zeros_like(p)
    state["n"] += 1
    state["a"], state["b"] = 0.9 * state["a"] + g, state["b"] + g * g
    return p - 0.1 * state["a"] / (1 + xp.sqrt(state["b"])) / state["n"]


def loading_an_optimizer() -> Iterator[Any]:
    _, optimizer = training(partial(optim.Adam, lr=0.1), 1)
    _, other = training(partial(optim.Adam, lr=0.2), 3)
    states = [snapshot(each.state_dict()) for each in (optimizer, other)]
    yield partial(optimizer.load_state_dict, other.state_dict())
    assert snapshot(optimizer.state_dict()) in states
    optimizer.step()


def loading_a_module() -> Iterator[Any]:
    model, other = network(), network()
    state = {name: x + 1 for name, x in other.state_dict().items()}
    yield partial(model.load_state_dict, state)
    model.load_state_dict(state)
    assert snapshot(model.state_dict()) == snapshot(state)


def moving_a_module() -> Iterator[Any]:
    model, optimizer = training(partial(optim.Adam, lr=0.1), 1)
    yield partial(model.to, dtype=xgrad.float64)
    for p in model.parameters():
        assert p._placement.dtype == p._data.dtype == p._leaf.placement.dtype
        assert p.grad is None or p.grad.dtype == p.dtype
    model.to(dtype=xgrad.float64)
    optimizer.step()


def adding_a_group() -> Iterator[Any]:
    model, optimizer = training(partial(optim.Adam, lr=0.1), 2)
    more = nn.Linear(3, 3)
    count, before = len(optimizer.param_groups), optimizer.state_dict()["state"]

    def call() -> None:
        optimizer.add_param_group({"params": list(more.parameters())})
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()

    yield call
    after = optimizer.state_dict()["state"]
    assert len(optimizer.param_groups) in (count, count + 1)
    assert before.keys() <= after.keys() and all(after[i]["step"] >= before[i]["step"] for i in before)
    optimizer.zero_grad()
    loss_of(model).backward()
    optimizer.step()


def writing() -> Iterator[Any]:
    base = array(3, 4)
    row, turned = base[1], base.T
    corner = turned[:2, :2]
    leaf = array(3, 4).requires_grad_()
    values = leaf.data
    resized = array(3)
    tail = resized[1:]

    def call() -> None:
        nonlocal turned
        base[0] = 5.0
        turned += 1.0
        row[...] = array(4, seed=1)
        base.data = array(3, 4, seed=2)
        values[0] = 2.0
        with xgrad.no_grad():
            leaf[1] = 1.0
        resized.data = array(5)

    def check() -> None:
        np.testing.assert_array_equal(row.numpy(), base.numpy()[1])
        np.testing.assert_array_equal(turned.numpy(), base.numpy().T)
        np.testing.assert_array_equal(corner.numpy(), base.numpy().T[:2, :2])
        np.testing.assert_array_equal(values.numpy(), leaf.detach().numpy())
        assert base_of(tail) is None or tail.tolist() == resized.tolist()[1:]

    yield call
    check()
    call()
    check()


def views_of_parameters() -> Iterator[Any]:
    model, optimizer = training(partial(optim.Adam, lr=0.1), 1)
    weight = model[0].weight
    with xgrad.no_grad():
        row, values = weight[1], weight.data

    yield optimizer.step
    optimizer.step()
    np.testing.assert_array_equal(row.detach().numpy(), weight.detach().numpy()[1])
    np.testing.assert_array_equal(values.numpy(), weight.detach().numpy())


def hooks() -> Iterator[Any]:
    x = array(3).requires_grad_()
    y = 3 * x
    y.retain_grad()
    yield lambda: y.register_hook(lambda g: 2 * g).remove()
    for handle in [handle for handle in y._edge.hooks if type(handle) is not type]:  # of a call that did not return
        handle.remove()
    (y * y).sum().backward()
    assert y.grad is not None
    np.testing.assert_allclose(y.grad.numpy(), 2 * y.detach().numpy())


def drawing() -> Iterator[Any]:
    vars(philox._thread).clear()
    generator = xgrad.random.Generator(5)
    yield lambda: (generator.rand(3), generator.randn(3), generator.randperm(3), xgrad.random.rand(2))
    assert generator.seed == 5 and 0 <= generator._state[1] <= 3
    again = xgrad.random.Generator(5)
    again._state = generator._state
    np.testing.assert_array_equal(generator.rand(4).numpy(), again.rand(4).numpy())


def loading_batches(workers: int) -> Iterator[Any]:
    threads = set(threading.enumerate())
    generator = xgrad.random.Generator(1)
    options = {"shuffle": True, "num_workers": workers, "generator": generator, "collate_fn": list}
    loader = xgrad.data.DataLoader(list(range(20)), 3, **options)
    yield lambda: list(loader)
    deadline = time.monotonic() + 10
    while set(threading.enumerate()) - threads:
        assert time.monotonic() < deadline, "threads are left"
        time.sleep(0.001)
    assert sorted(i for numbers in loader for i in numbers) == list(range(20))


def saving(folder: Any) -> Iterator[Any]:
    path = str(folder / "x.safetensors")
    old, new = {"x": array(50)}, {"x": array(50, seed=1), "y": array(2)}
    xgrad.save(old, path)
    yield lambda: (xgrad.save(new, path), xgrad.load(path))
    assert os.listdir(folder) == ["x.safetensors"]
    assert snapshot(xgrad.load(path)) in [snapshot(old), snapshot(new)]


OPTIMIZERS = {
    "sgd": partial(optim.SGD, lr=0.1),
    "momentum": partial(optim.SGD, lr=0.1, momentum=0.9),
    "nesterov": partial(optim.SGD, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
    "adam": partial(optim.Adam, lr=0.1),
    "amsgrad": partial(optim.Adam, lr=0.1, amsgrad=True),
    "adamw": partial(optim.AdamW, lr=0.1),
    "custom": custom(rule),
    "custom_elementwise": custom(rule, elementwise=True),
}

CALLS: list[Scenario] = [
    *[scopes, higher_order, loading_an_optimizer, loading_a_module, moving_a_module, adding_a_group, writing],
    *[views_of_parameters, hooks, drawing, saving],
]
SCENARIOS: dict[str, Any] = {
    **{scenario.__name__: scenario for scenario in CALLS},
    **{f"backward_{steps}": partial(backward, steps) for steps in (0, 1)},
    **{f"step_{steps}_{name}": partial(stepping, make, steps) for name, make in OPTIMIZERS.items() for steps in (0, 1)},
    **{f"in_tiles_{name}": partial(stepping, OPTIMIZERS[name], 0, 7) for name in ("adam", "custom_elementwise")},
    **{f"loading_batches_{workers}": partial(loading_batches, workers) for workers in (0, 2)},
}
SHARE = max(INTERRUPTS // (2 * len(SCENARIOS)), 5)  # of a scenario, in each of the two tests

# Python drops exceptions of a handler in a callback of a weak reference, which `threading` uses, and warns of a file
# that it closes since `open` was stopped before it returned.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Exception ignored in.*WeakSet:pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:Exception ignored in.*FileIO:pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(params=SCENARIOS)
def scenario(request: Any, tmp_path: Any) -> Scenario:
    each: Scenario = SCENARIOS[request.param]
    each = partial(each, tmp_path) if each is saving else each
    play(each, lambda call: call())  # fills caches
    return each


def interrupt_at_places(scenario: Scenario, most: float, functions: Sequence[str] = ()) -> None:
    """Interrupt the call of a scenario at each place where a handler may run, or at `most` of them."""
    total = play(scenario, lambda call: call_with_signal_at(0, call, functions))
    assert total > 0
    for last in np.unique(np.linspace(1, total, int(min(total, most))).astype(int)):
        try:
            play(scenario, lambda call, last=last: call_with_signal_at(last, call, functions))
        except BaseException as error:
            raise AssertionError(f"place {last} of {total}: {error!r}") from error


def test_signal_where_handlers_run_leaves_the_library_usable(scenario: Scenario) -> None:
    interrupt_at_places(scenario, SHARE)


#: Functions that change several attributes which belong together, with a scenario that calls them.
CHANGES = [
    ("scopes", []),
    ("hooks", []),
    ("backward_1", ["run_backward", "reserve", "reallocate"]),
    ("step_0_adam", ["_store", "call_all"]),
    ("step_0_custom", ["_store", "call_all"]),
    ("in_tiles_custom_elementwise", ["_update", "_update_tile"]),
    ("step_0_adam", ["reallocate", "ensure_exclusive"]),
    ("adding_a_group", ["_pack", "_states"]),
    ("loading_an_optimizer", ["load_state_dict"]),
    ("moving_a_module", ["change", "replace", "_rebind"]),
    ("writing", ["_rebind", "refresh_views", "unlink", "link"]),
    ("drawing", ["words"]),
    ("saving", ["write", "_temporary", "_stage", "_create"]),
]


@pytest.mark.parametrize(("name", "functions"), CHANGES)
def test_signal_within_a_function_leaves_the_library_usable(name: str, functions: list[str], tmp_path: Any) -> None:
    scenario: Scenario = SCENARIOS[name]
    interrupt_at_places(partial(scenario, tmp_path) if scenario is saving else scenario, np.inf, functions)


def test_signal_at_any_time_leaves_the_library_usable(scenario: Scenario) -> None:
    took = play(scenario, lambda call: timeit(call, number=1))
    for seconds in np.random.default_rng(0).uniform(0, took, SHARE):
        play(scenario, lambda call, seconds=seconds: call_with_signal(seconds, call))
