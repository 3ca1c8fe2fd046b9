"""Exceptions of a signal handler at random times: what `docs/promises.md` says of Ctrl-C holds.

``INTERRUPTS=20000`` in the environment sets the number of signals.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xgrad
from capture.twins import assert_concrete, batch, snapshot
from xgrad import nn, optim
from xgrad.backend.device import intercepting
from xgrad.backend.recording import recording
from xgrad.core.dtypes import _Setting
from xgrad.data import DataLoader, TensorDataset
from xgrad.diagnostics.lost_gradients import _warns
from xgrad.support.scopes import Scope
from xgrad.training import Trainer

SIGNALS = int(os.environ.get("INTERRUPTS", 500))
Call = Callable[[], Any]

# Python drops exceptions of a handler in a callback of a weak reference (WeakSet, WeakKeyDictionary
# and WeakValueDictionary have one), and warns of a file that it closes since `open` was stopped
# before it returned.
pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in.*Weak:pytest.PytestUnraisableExceptionWarning"
    ),
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in.*FileIO:pytest.PytestUnraisableExceptionWarning"
    ),
]


class Interrupt(BaseException):
    """Exception of the signal handler."""


#: The functions that enter and leave the `with` block of a mode. An interrupt in one of them may
#: leave the mode set, as the page says.
_BLOCKS: list[Any] = [Scope, _Setting, xgrad.autograd.detect_anomaly, xgrad.profile]
_EDGES = {f.__code__ for block in _BLOCKS for f in (block.__enter__, block.__exit__)}
_EDGES |= {xgrad.set_default_dtype.__code__}


def interrupt(number: int, frame: Any) -> None:
    # On a busy machine the next signal may come before this handler has returned to the edge that
    # it waits for.
    if frame.f_code in _EDGES or frame.f_code is interrupt.__code__:
        signal.setitimer(signal.ITIMER_REAL, 1e-4)  # a little later
    else:
        raise Interrupt


def call_with_signal(
    seconds: float, call: Call, handler: Any = interrupt, error: Any = Interrupt
) -> bool:
    """Call a function, with a signal after a time.

    Return whether the signal's handler raised the error before the end.
    """
    old = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))
        call()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except error:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    return False


def modes() -> list[Any]:
    """Return the modes of this thread."""
    modes = [
        xgrad.is_grad_enabled(),
        xgrad.get_default_dtype(),
        xgrad.zeros(1).device,
        _warns.get(),
    ]
    return [*modes, recording.get(), intercepting.get()]


# Scenarios: each yields a call to interrupt, and then checks what it left


def network() -> nn.Module:
    xgrad.manual_seed(3)
    return nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))


def values(model: nn.Module) -> np.ndarray:
    """Return all parameters as one array."""
    return np.concatenate([p.detach().numpy().ravel() for p in model.parameters()])


def training(make: Any, capture: Callable[[Any], Any]) -> tuple[nn.Module, Any, Any]:
    """Return a network, its optimizer, and the training step."""
    model = network()
    optimizer = make(model.parameters())

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        with xgrad.no_grad():
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return model, optimizer, capture(step)


def steps(capture: Callable[[Any], Any], calls: int) -> Iterator[Call]:
    """Steps of gradient descent.

    Each parameter has its value from before or from after the step that was interrupted.
    """
    reference, _, step = training(partial(optim.SGD, lr=0.1), lambda step: step)
    known = [values(reference)]
    for number in range(calls + 3):
        step(*batch(number))
        known.append(values(reference))
    model, optimizer, step = training(partial(optim.SGD, lr=0.1), capture)
    for number in range(calls):
        step(*batch(number))
    done = calls

    def call() -> None:
        nonlocal done
        for number in range(calls, calls + 3):
            step(*batch(number))
            done += 1

    yield call
    got, before, after = values(model), known[done], known[min(done + 1, calls + 3)]
    assert np.all((got == before) | (got == after))
    assert_concrete(model, optimizer)
    model.load_state_dict(reference.state_dict())
    for number in range(2):
        optimizer.zero_grad()
        step(*batch(number))
    for number in range(2):
        nn.functional.cross_entropy(reference(batch(number)[0]), batch(number)[1]).backward()
    assert np.isfinite(values(model)).all() and getattr(step, "refusal", None) is None


def moments(capture: Callable[[Any], Any]) -> Iterator[Call]:
    """Steps of Adam: arrays are whole, and the training goes on."""
    model, optimizer, step = training(partial(optim.Adam, lr=0.1, amsgrad=True), capture)
    step(*batch(0))
    yield lambda: [step(*batch(number)) for number in range(3)]
    kinds = [(x.shape, x.dtype) for x in model.state_dict().values()]
    assert kinds == [(x.shape, x.dtype) for x in network().state_dict().values()]
    state = optimizer.state_dict()["state"]
    assert all(state[i].keys() == state[0].keys() and 1 <= state[i]["step"] <= 4 for i in range(4))
    before = values(model)
    step(*batch(0))
    assert np.isfinite(values(model)).all() and not np.array_equal(values(model), before)
    assert_concrete(model, optimizer)


def scopes() -> Iterator[Call]:
    """Modes: `check` compares them."""
    x = xgrad.ones((30, 30), requires_grad=True)

    @xgrad.no_grad()
    def decorated() -> None:
        with (
            xgrad.enable_grad(),
            xgrad.warn_lost_gradients(),
            xgrad.autograd.detect_anomaly(),
            xgrad.profile(),
        ):
            (x @ x).sum().backward()

    def call() -> None:
        for _ in range(3):
            with xgrad.no_grad():
                _ = x @ x
            with (
                xgrad.default_device("cpu"),
                xgrad.set_default_dtype(xgrad.float64),
                xgrad.amp.autocast("cpu"),
            ):
                decorated()

    yield call


def drawing() -> Iterator[Call]:
    """Random numbers: those after the signal are the next ones of the generator."""
    generator = xgrad.random.Generator(5)
    yield lambda: [(generator.rand(3), generator.randn(3), generator.randperm(3)) for _ in range(5)]
    again = xgrad.random.Generator(5)
    again._state = generator._state
    assert generator.seed == 5 and 0 <= generator._state[1] <= 15
    np.testing.assert_array_equal(generator.rand(4).numpy(), again.rand(4).numpy())


def writing() -> Iterator[Call]:
    """Writes through views: all tensors of the family have the same values."""
    base, leaf = xgrad.zeros((3, 4)), xgrad.zeros((3, 4), requires_grad=True)
    row, turned, shared = base[1], base.T, leaf.detach()

    def call() -> None:
        nonlocal turned
        for number in range(5):
            base[0] = float(number)
            turned += 1.0
            row[...] = 2.0
            shared[0] = 2.0
            with xgrad.no_grad():
                leaf[1] = 1.0

    yield call
    np.testing.assert_array_equal(row.numpy(), base.numpy()[1])
    np.testing.assert_array_equal(turned.numpy(), base.numpy().T)
    np.testing.assert_array_equal(shared.numpy(), leaf.detach().numpy())


def saving(folder: Path) -> Iterator[Call]:
    """Saved files: the name has the old content or the new one, and there is no other file."""
    path = folder / "x.safetensors"
    old, new = {"x": xgrad.zeros(5000)}, {"x": xgrad.ones(5000), "y": xgrad.ones(2)}
    xgrad.save(old, path)
    yield lambda: xgrad.save(new, path)
    assert os.listdir(folder) == ["x.safetensors"]
    assert snapshot(xgrad.load(path)) in [snapshot(old), snapshot(new)]
    path.unlink()
    yield lambda: xgrad.save(new, path)
    assert os.listdir(folder) in ([], ["x.safetensors"])
    assert not path.exists() or snapshot(xgrad.load(path)) == snapshot(new)


def loading(workers: int) -> Iterator[Call]:
    """Loaders: no thread is left, and the next iteration has all batches."""
    threads = set(threading.enumerate())
    generator = xgrad.random.Generator(1)
    loader = DataLoader(
        list(range(20)), 3, shuffle=True, num_workers=workers, generator=generator, collate_fn=list
    )
    yield lambda: list(loader)
    deadline = time.monotonic() + 30
    while set(threading.enumerate()) - threads:
        assert time.monotonic() < deadline, "threads are left"
        time.sleep(0.001)
    assert sorted(i for numbers in loader for i in numbers) == list(range(20))


SCENARIOS: dict[str, Any] = {
    "eager steps": partial(steps, lambda step: step, 1),
    "traces": partial(steps, xgrad.capture, 0),
    "replays": partial(steps, xgrad.capture, 3),
    "eager steps of Adam": partial(moments, lambda step: step),
    "replays of Adam": partial(moments, xgrad.capture),
    "modes": scopes,
    "random numbers": drawing,
    "writes": writing,
    "saving": saving,
    "loading": partial(loading, 0),
    "loading ahead": partial(loading, 2),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_signal_at_any_time_leaves_the_library_usable(name: str, tmp_path: Path) -> None:
    scenario: Any = partial(SCENARIOS[name], tmp_path) if name == "saving" else SCENARIOS[name]
    before, rng, took = modes(), np.random.default_rng(0), list[float]()
    for _ in range(3):  # the first fills caches
        for call in scenario():
            start = time.perf_counter()
            call()
            took.append(time.perf_counter() - start)
    raised = 0
    for _ in range(max(SIGNALS // len(SCENARIOS), 5)):
        for call in scenario():
            raised += call_with_signal(rng.uniform(0, min(took[1:])), call)
            assert modes() == before
    assert raised > 0


def press(number: int, frame: Any) -> None:
    signal.raise_signal(signal.SIGINT)


def trainer(capture: bool) -> Trainer:
    """Return a trainer of a network on 40 samples."""
    model = network()
    x, y = batch(0, 40)
    loader = DataLoader(TensorDataset(x, y), 8, shuffle=True, generator=xgrad.random.Generator(1))
    return Trainer(
        model,
        optim.Adam(model.parameters(), lr=0.1),
        nn.functional.cross_entropy,
        loader,
        capture=capture,
    )


@pytest.mark.parametrize("capture", [False, True], ids=["eager", "captured"])
def test_trainer_that_is_interrupted_and_continued_has_the_bits_of_one_that_was_not(
    capture: bool,
) -> None:
    whole = trainer(capture)
    start = time.perf_counter()
    whole.fit(3)
    took, rng = time.perf_counter() - start, np.random.default_rng(1)
    raised, handler = 0, signal.getsignal(signal.SIGINT)
    for _ in range(max(SIGNALS // 25, 5)):
        parts = trainer(capture)
        for _ in range(3):
            raised += call_with_signal(
                rng.uniform(0, took), partial(parts.fit, 3), press, KeyboardInterrupt
            )
            # which stays replaced if the signal comes while `fit` is left
            signal.signal(signal.SIGINT, handler)
        parts.fit(3)
        assert snapshot(parts.state_dict()["model"]) == snapshot(whole.state_dict()["model"])
        assert snapshot(parts.state_dict()["optimizer"]) == snapshot(
            whole.state_dict()["optimizer"]
        )
        assert parts.steps == whole.steps and parts.history == whole.history
    assert raised > 0
