"""Rules 5 and 6 of `xgrad.capture`: each cause of a new trace, and changes followed without one.

Captured steps are compared bit for bit with eager steps, and traces are counted.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import xgrad
from capture import twins
from capture.twins import (
    Capture,
    array,
    batch,
    compare,
    compare_replays,
    eager,
    everything,
    replayed,
    training,
)
from xgrad import nn, optim
from xgrad.capture import CaptureError
from xgrad.nn import functional

Step = Callable[..., Any]
ignored = pytest.mark.filterwarnings("ignore::xgrad.capture.CaptureWarning")


# Arguments


def leaf(seed: int = 0, gradient: bool = False, hook: bool = False) -> Any:
    """Return a leaf that requires a gradient, perhaps with one, or with a hook."""
    x = array(3, seed=seed).requires_grad_()
    x.grad = array(3, seed=seed + 1) if gradient else None
    if hook:
        x.register_hook(_times_3)
    return x


def _times_3(g: Any) -> Any:
    return 3 * g


def squared(x: Any) -> Any:
    return x.sum(), x * 2, x @ x.T


def walked(x: Any) -> Any:
    (x * x).sum().backward()
    return x.grad * 1


def written(x: Any, y: Any) -> Any:
    x *= 2
    return x + y


def pair(x: Any, y: Any) -> Any:
    x[0] = 7.0
    return x + 1, x is y, x * y


def times(x: Any, k: Any = 7) -> Any:
    return x * (k if hasattr(k, "real") else len(str(type(k))))


class Weighted(SimpleNamespace):
    """An object with a tensor, equal to all others."""

    def __init__(self, w: Any) -> None:
        self.w = w

    def __eq__(self, other: object) -> bool:
        return type(other) is Weighted


def with_each(*values: Any) -> Callable[[], list[Any]]:
    return lambda: [(array(3), value) for value in values]


def layouts() -> list[Any]:
    return [
        (x,)
        for x in (
            array(4, 4),
            array(4, 4).T,
            array(8, 4)[::2],
            array(4, 8)[:, ::2],
            xgrad.flip(array(4, 4)),
        )
    ]


#: A step, a function that returns arguments of calls, and the number of traces that these need.
ARGUMENTS: dict[str, tuple[Step, Callable[[], list[Any]], int]] = {
    "values": (squared, lambda: [(array(4, 4, seed=i),) for i in range(3)], 1),
    "shape": (squared, lambda: [(array(4, 4),), (array(5, 4),), (array(1, 1),)], 3),
    "dtype": (squared, lambda: [(array(4, 4),), (array(4, 4, dtype=np.float64),)], 2),
    "layout": (squared, layouts, 5),
    "requires_grad": (lambda x: x.requires_grad, lambda: [(array(3),), (leaf(),)], 2),
    "another leaf": (walked, lambda: [(leaf(0, True),), (leaf(2, True),)], 1),
    "gradient of a leaf": (walked, lambda: [(leaf(),), (leaf(0, True),)], 2),
    "hook of a leaf": (
        walked,
        lambda: [(leaf(0, True),), (leaf(1, True, True),), (leaf(2, True, True),)],
        2,
    ),
    "another Parameter": (
        lambda p: xgrad.autograd.grad((p * p).sum(), [p]),
        lambda: [(nn.Parameter(array(3, seed=i)),) for i in (1, 2)],
        2,
    ),
    "one tensor twice": (pair, lambda: [((a := array(3)), array(3, seed=1)), (a, a)], 2),
    "overlapping memory": (
        lambda x, y: (x + 1, x * y),
        lambda: [(b[:3], b[k : k + 3]) for b in [array(6)] for k in (3, 2, 1)],
        1,
    ),
    "views of a written argument": (
        pair,
        lambda: [(array(3), array(3)), (x := array(3), x[:]), (x := array(3), x[::-1])],
        3,
    ),
    "a written view": (
        written,
        lambda: [(b[k : k + 3], array(3)) for b in [array(6)] for k in (0, 1, 2)],
        1,
    ),
    "tensor or a list of one": (lambda t: t[0] * 2, lambda: [([array(3)],), (array(3),)], 2),
    "container": (
        lambda t: (str(type(t)), t[0] + 1),
        lambda: [((array(3),),), ([array(3)],), ({0: array(3)},)],
        3,
    ),
    "empty container": (times, with_each(None, [], {}, ()), 4),
    "default": (times, lambda: [(array(3),), (array(3), 7)], 2),
    "number": (times, with_each(2.5, float("2.5"), 3.0), 2),
    "sign of zero": (times, with_each(0.0, -0.0), 2),
    "type of a number": (times, with_each(1, 1.0, True, np.float32(1), np.float64(1)), 5),
    "nan": (times, with_each(float("nan"), float("nan")), 1),
    "string": (lambda x, s: (x * 2, s), with_each("a", "b"), 2),
    "set": (lambda x, s: x * len(s), with_each({1}, {1, 2}, {2, 1}), 2),
    "equal object": (
        lambda x, o: x * o.k,
        with_each(*[SimpleNamespace(k=k) for k in (2.0, 2.0, 3.0)]),
        2,
    ),
    "equal objects with other tensors": (
        lambda x, o: x * o.w,
        lambda: [(array(3), Weighted(array(3, seed=i))) for i in (1, 2)],
        2,
    ),
    "generator": (
        lambda x, g: x * xgrad.random.rand(3, generator=g),
        lambda: [(array(3), xgrad.random.Generator(i)) for i in (1, 2)],
        2,
    ),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_are_traced_once_for_each_kind(name: str) -> None:
    step, build, traces = ARGUMENTS[name]

    def scenario(capture: Capture) -> Iterator[Any]:
        captured, calls = capture(step), build()
        for args in [args for args in calls for _ in range(2)] + calls + calls[::-1]:
            yield captured(*args), [(x, x.grad) for x in args if isinstance(x, xgrad.Tensor)]

    compare_replays(scenario, traces)


@replayed
def test_arguments_by_name_are_traced_by_name_and_value(capture: Capture) -> Iterator[Any]:
    step = capture(lambda x, *, y=None, k=1: x * k if y is None else x * y)
    for options in [{}, {"k": 3}, {"k": 2.0}, {"y": array(3, seed=1)}, {"k": 2}] * 3:
        yield step(array(3), **options), step(x=array(3), **options)


@replayed
def test_container_or_set_changed_between_calls_is_traced_anew(capture: Capture) -> Iterator[Any]:
    step, options = capture(lambda x, o: x * o["k"][0] * len(o["s"])), {"k": [2.0], "s": {1}}
    for change in (options["k"].append, lambda k: options["k"].__setitem__(0, k), options["s"].add):
        for k in (3, 4):
            yield step(array(3), options), step(array(3), options)
            change(k)


#: Arguments made from a parameter: itself, a tensor that shares its memory, and a copy.
TAKEN: dict[str, Step] = {
    "itself": lambda w: w,
    "detached": lambda w: w.detach(),
    "copy": lambda w: w.clone().detach(),
}
#: Views of a tensor that shares the parameter's memory, and is no argument.
REFUSED: dict[str, Step] = {"rows": lambda w: w.detach()[1:], "transposed": lambda w: w.detach().T}


@pytest.mark.parametrize("name", [*TAKEN, *REFUSED])
@pytest.mark.filterwarnings("ignore:capture:xgrad.capture.CaptureWarning")
def test_parameter_or_its_view_as_argument_is_followed_or_refused(name: str) -> None:
    take = (TAKEN | REFUSED)[name]

    def scenario(capture: Capture) -> Iterator[Any]:
        model, optimizer, _ = training(eager)
        make = functools.partial(twins.training_step, model, optimizer)
        step = capture(
            lambda p, *args: make(lambda s, y: functional.cross_entropy(s, y) + (p * p).sum())(
                *args
            )
        )
        for i in range(8):
            p = take(model[3 if i < 5 else 0].weight)
            yield step(p, *batch(i)), p, everything(model, optimizer)

    (captured,) = compare(scenario)
    if name in TAKEN:
        assert captured.refusal is None
    else:
        assert "shares its memory with another argument" in str(captured.refusal)


# Modes


@twins.on_cpu
@pytest.mark.parametrize("mode", [xgrad.no_grad, lambda: xgrad.default_device("cpu")])
def test_grad_mode_or_default_device_is_traced_once_each(mode: Step) -> None:
    def scenario(capture: Capture) -> Iterator[Any]:
        w = leaf()
        step = capture(
            lambda x: (
                xgrad.autograd.grad((w * x).sum(), [w])
                if xgrad.is_grad_enabled()
                else (w * x + xgrad.ones(3),)
            )
        )
        for i in range(6):
            with mode() if i % 2 else nullcontext():
                yield step(array(3, seed=i))

    compare_replays(scenario, 2)


@pytest.mark.parametrize(
    ("inside", "most"), [(False, 2), (True, 4)], ids=["between steps", "in the step"]
)
def test_mode_of_a_module_is_traced_once_each(inside: bool, most: int) -> None:
    def scenario(capture: Capture) -> Iterator[Any]:
        model, optimizer, train = training(eager)

        @capture
        def step(x: Any, y: Any, flag: bool) -> Any:
            if inside:
                model.train(flag)
            return train(x, y)

        for i in range(10):
            if not inside:
                model.train(i % 3 != 2)
            yield step(*batch(i), i % 3 != 2 or not inside), model.training, model[2].training
        yield everything(model, optimizer)

    (captured,) = compare(scenario)
    assert captured.refusal is None and captured.recordings <= most


# The state of a training run


def at(*turns: int) -> Callable[[Step], Step]:
    """Return a decorator of a change of a training run, which makes it before some steps only."""
    return lambda change: (
        lambda model, optimizer, i: change(model, optimizer) if i in turns else None
    )


def option(name: str, *values: Any) -> Step:
    """Return a change of a training run: it sets an option, each value for two steps."""
    return lambda model, optimizer, i: optimizer.param_groups[0].update(
        {name: values[i // 2 % len(values)]}
    )


def sgd(**options: Any) -> Step:
    return lambda params: optim.SGD(params, **({"lr": 0.1} | options))


def double(model: Any, optimizer: Any) -> None:
    model[0].weight.data = model[0].weight.data * 2


def write(model: Any, optimizer: Any) -> None:
    with xgrad.no_grad():
        model[0].weight[0, 0] = 7.0
        model[3].bias += 1


def rate_in_an_array(model: Any, optimizer: Any, i: int) -> None:
    if i == 0:
        optimizer.param_groups[0]["lr"] = np.array(0.5)
    optimizer.param_groups[0]["lr"][...] = [0.5, 0.5, 0.1, 0.0, 0.2][i % 5]


def freeze(model: Any, optimizer: Any, i: int) -> None:
    model[0].weight.requires_grad_(not 3 <= i < 6)


def set_gradients(model: Any, optimizer: Any, i: int) -> None:
    if i % 3 == 0:
        optimizer.zero_grad()
    elif i % 3 == 1:
        model[0].weight.grad = xgrad.ones((4, 5))
    else:
        model[0].bias.grad = None


def hook(model: Any, optimizer: Any, i: int) -> None:
    if i == 3:
        vars(model)["handle"] = model[3].weight.register_hook(_times_3)
    if i == 6:
        model.handle.remove()


def replace_group(model: Any, optimizer: Any) -> None:
    optimizer.param_groups[0] = optimizer.param_groups[0] | {
        "lr": optimizer.param_groups[0]["lr"] / 2
    }


def load(model: Any, optimizer: Any, i: int) -> None:
    if i == 2:
        vars(model)["saved"] = model.state_dict(), optimizer.state_dict()
    if i == 5:
        model.load_state_dict(model.saved[0])
        optimizer.load_state_dict(model.saved[1])


def pack_apart(model: Any, optimizer: Any) -> None:
    """Pack apart the parameters without a gradient; one of them gets a gradient later."""
    model[0].weight.grad = model[0].bias.grad = None
    model[0].bias.requires_grad_(False)
    optimizer.load_state_dict(optimizer.state_dict())


#: An optimizer, a change of a training run before a step, and the least and the largest number of
#: traces.
TRAININGS: dict[str, tuple[Step, Step, int, int]] = {
    "learning rate": (sgd(), option("lr", 0.2, 0.3, 0.05), 1, 1),
    "type of the learning rate": (
        sgd(),
        option("lr", 1, 0.5, np.float64(0.1), np.float32(0.1), np.int64(1)),
        1,
        2,
    ),
    "learning rate in an array": (sgd(), rate_in_an_array, 1, 1),
    "momentum": (sgd(momentum=0.9), option("momentum", 0.5, 0.8, 0.9), 1, 1),
    "weight decay": (sgd(weight_decay=0.1), option("weight_decay", 0.2, 0.3, 0.4), 1, 1),
    "betas": (twins.adam, option("betas", (0.8, 0.99), (0.7, 0.9)), 1, 1),
    "eps": (twins.adam, option("eps", 1e-6, 1e-4), 1, 1),
    "weight decay there or not": (sgd(), option("weight_decay", 0.0, 0.1), 1, 2),
    "momentum there or not": (sgd(momentum=0.9), option("momentum", 0.0, 0.9), 1, 4),
    "nesterov": (sgd(momentum=0.9), option("nesterov", False, True), 2, 2),
    "maximize": (twins.adam, option("maximize", False, True), 2, 2),
    "seed": (twins.adam, at(2, 5, 8)(lambda *_: xgrad.manual_seed(11)), 1, 1),
    "assigned parameter": (twins.adam, at(2, 4, 5)(double), 1, 1),
    "written parameter": (twins.adam, at(2, 4, 5)(write), 1, 1),
    "frozen parameter": (sgd(momentum=0.9), freeze, 2, 5),
    "hook": (twins.adam, hook, 2, 3),
    "loaded state": (twins.adam, load, 1, 4),
    "parameters packed apart": (twins.adam, at(4)(pack_apart), 1, 4),
    "replaced layer": (
        twins.adam,
        at(4)(lambda model, _: setattr(model, "0", nn.Linear(5, 4))),
        2,
        3,
    ),
    "removed layer": (twins.adam, at(4)(lambda model, _: setattr(model, "2", nn.Identity())), 2, 2),
    "added group": (
        lambda params: optim.SGD(list(params)[:2], lr=0.1, momentum=0.9),
        at(4)(lambda m, o: o.add_param_group({"params": list(m[3].parameters()), "lr": 0.5})),
        2,
        3,
    ),
    "replaced group": (sgd(), at(4, 7)(replace_group), 3, 5),
    "removed gradients": (sgd(), at(4, 7)(lambda model, optimizer: optimizer.zero_grad()), 1, 2),
    "zeros as gradients": (
        sgd(),
        at(4, 7)(lambda model, optimizer: optimizer.zero_grad(set_to_none=False)),
        1,
        2,
    ),
}


@pytest.mark.parametrize("look", [False, True], ids=["unseen", "seen"])
@pytest.mark.parametrize("name", TRAININGS)
def test_change_between_training_steps_is_followed_or_traced(
    name: str, look: bool, capturing_device: str
) -> None:
    make, change, least, most = TRAININGS[name]
    most += capturing_device != "cpu"  # for the buffers that fused updates make

    def scenario(capture: Capture) -> Iterator[Any]:
        model, optimizer, step = training(capture, make)
        for i in range(10):
            change(model, optimizer, i)
            yield step(*batch(i)), [len(flat.params) for flat in optimizer.flats()]
            if look or i == 9:
                yield everything(model, optimizer), xgrad.random.default_generator._state

    (captured,) = compare(scenario)
    assert captured.refusal is None and least <= captured.recordings <= most


@pytest.mark.parametrize("change", [set_gradients, hook, freeze, at(2, 4)(double)])
def test_gradients_kept_between_steps_are_followed(change: Step) -> None:
    def scenario(capture: Capture) -> Iterator[Any]:
        model, optimizer, _ = training(eager)
        step = capture(
            lambda x, y: (functional.cross_entropy(model(x), y).backward(), optimizer.step())
        )
        for i in range(10):
            change(model, optimizer, i)
            yield step(*batch(i)), everything(model, optimizer)

    compare_replays(scenario)


@replayed
def test_model_of_another_dtype_is_traced_anew(capture: Capture) -> Iterator[Any]:
    model, optimizer, step = training(capture)
    for i in range(9):
        x, y = batch(i)
        if i in (3, 6):
            model.to(xgrad.float64 if i == 3 else xgrad.float32)
        yield step(x.astype(xgrad.float64) if 3 <= i < 6 else x, y), everything(model, optimizer)


@replayed
def test_option_that_makes_an_error_raises_the_error_of_eager(capture: Capture) -> Iterator[Any]:
    make = twins.custom(
        lambda xp, p, g, _, options: p - options["lr"] / options["scale"] * g, lr=0.1, scale=2.0
    )
    model, optimizer, step = training(capture, make)
    for i in range(8):
        optimizer.param_groups[0]["scale"] = [2.0, 2.0, 4.0, 0.0, 4.0, 4.0, 0.0, 2.0][i]
        try:
            yield step(*batch(i))
        except ZeroDivisionError as error:
            yield str(error)
        yield everything(model, optimizer)


# Tensors and generators of the state


@replayed
def test_buffer_tensor_and_argument_changed_in_the_step_are_followed(
    capture: Capture,
) -> Iterator[Any]:
    model, t = nn.Linear(5, 5), array(5)
    model.register_buffer("mean", xgrad.zeros(5))

    @capture
    def step(x: Any) -> Any:
        t[1] = x[0, 0] * 2
        x[0] = 1.0
        if model.training:
            model.mean.data = model.mean * 0.9 + 0.1 * xgrad.mean(x, axis=0)
        return t * x - model.mean

    for i in range(8):
        model.train(i % 4 != 3)
        x = array(6, 5, seed=i)
        yield step(x), x, t, model.mean


def made_in_the_step(x: Any) -> Any:
    return functional.dropout(x, 0.5) + xgrad.random.rand(3, generator=xgrad.random.Generator(5))


RANDOM: dict[str, Step] = {
    "all kinds": lambda x: (
        (r := xgrad.random) and x * r.rand(3) + r.randn(3) + r.randint(0, 9, (3,)) + r.randperm(3)
    ),
    "seed set in the step": lambda x: (xgrad.manual_seed(5), x + xgrad.random.rand(3))[1],
    "seed set between draws": lambda x: (
        xgrad.random.rand(3),
        xgrad.manual_seed(5),
        x + xgrad.random.rand(3),
    )[::2],
    "generator made in the step": made_in_the_step,
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_numbers_of_xgrad_are_followed(name: str, capturing_device: str) -> None:
    def scenario(capture: Capture) -> Iterator[Any]:
        xgrad.manual_seed(1)
        step = capture(RANDOM[name])
        for i in range(8):
            if i == 4:
                xgrad.manual_seed(2)
            yield step(array(3, seed=i)), xgrad.random.default_generator._state
            if i % 3 == 2:
                yield xgrad.random.rand(2)

    compare_replays(scenario, 1)


def nothing(w: Any, v: Any, x: Any, flag: bool) -> None:
    w.grad = v.grad = None
    (w * x + v).sum().backward()


def freezes(w: Any, v: Any, x: Any, flag: bool) -> None:
    v.requires_grad_(flag)
    nothing(w, v, x, flag)


def freezes_for_a_while(w: Any, v: Any, x: Any, flag: bool) -> None:
    freezes(w, v, x, False)
    v.requires_grad_()
    (v * x).sum().backward()


def adds_a_hook(w: Any, v: Any, x: Any, flag: bool) -> None:
    w.register_hook(_times_3)
    nothing(w, v, x, flag)


def adds_hooks_for_a_while(w: Any, v: Any, x: Any, flag: bool) -> None:
    z = w * x
    handles = [w.register_hook(_times_3), z.register_hook(lambda g: 5 * g)]
    (z * z).sum().backward()
    handles[0].remove()
    (w * x).sum().backward()


@ignored
@pytest.mark.parametrize(
    "step", [nothing, freezes, freezes_for_a_while, adds_a_hook, adds_hooks_for_a_while]
)
def test_step_with_leaves_frozen_or_hooked_leaves_what_eager_leaves(step: Step) -> None:
    def scenario(capture: Capture) -> Iterator[Any]:
        w, v = leaf(0, hook=True), leaf(1)
        captured = capture(lambda x, flag: step(w, v, x, flag))
        for i in range(12):
            v.requires_grad_(i not in (4, 5))
            captured(array(3, seed=i), i % 3 == 0)
            yield [(p.requires_grad, p.grad, len(p._leaf.hooks or ())) for p in (w, v)]

    (captured,) = compare(scenario)
    assert captured.refusal is None or step in (freezes, freezes_for_a_while, adds_a_hook)


# Memory


@twins.on_cpu
def test_training_and_evaluation_by_turns_leave_parameters_where_they_are() -> None:
    model, _, step = training(xgrad.capture)
    evaluate = xgrad.capture(xgrad.no_grad()(lambda x: model(x)))
    places = set()
    for i in range(8):
        step(*batch(i % 2))
        evaluate(batch(i % 2)[0])
        places.add(next(model.parameters())._data.ctypes.data)
    assert len(places) <= 2  # where it was made, and where the optimizer has packed it


@pytest.mark.parametrize("shared", [True, False])
def test_arrays_shared_in_the_trace_are_told_apart_later(shared: bool) -> None:
    def scenario(capture: Capture) -> Iterator[Any]:
        x, w = array(3), nn.Parameter(array())  # without axes
        add, optimizer = capture(lambda x, y: x + 10 * y), optim.Adam([w], lr=0.1)
        update = capture(
            lambda x: (optimizer.zero_grad(), ((w * x) ** 2).backward(), optimizer.step())
        )
        for i in range(5):
            y = x.detach() if shared and i < 2 else array(3, seed=i)
            yield add(x, y), update(array(seed=i)), w, optimizer.state_dict()

    compare(scenario)


# State that values of the program do not depend on


@replayed
def test_shape_of_unused_tensor_and_tensor_in_the_place_of_a_number_are_traced(
    capture: Capture,
) -> Iterator[Any]:
    o, d = SimpleNamespace(w=array(3), k=2.0), {"k": None}
    step = capture(lambda x: x * o.w.shape[0] * o.k if d["k"] is None else x * d["k"])
    for name, value in [
        ("w", array(4)),
        ("w", array(4, seed=1)),
        ("k", array(2)),
        ("k", array(2, seed=1)),
    ]:
        yield step(array(2)), step(array(2, seed=1))
        setattr(o, name, value)
    d["k"] = array(2, seed=2)
    yield step(array(2))


@replayed
def test_list_in_an_option_and_powers_of_negative_numbers_are_followed(
    capture: Capture,
) -> Iterator[Any]:
    def update(xp: Any, p: Any, g: Any, state: Any, options: Any) -> Any:
        state["step"] = state.get("step", 0) + 1
        return p - (-options["lr"]) ** state["step"] * options["scales"][0] * g

    model, optimizer, step = training(capture, twins.custom(update, lr=0.1, scales=[1.0]))
    for i in range(9):
        yield step(*batch(i)), everything(model, optimizer)
        if i in (4, 6):
            optimizer.param_groups[0]["scales"][0] = i / 4


def test_option_of_an_optimizer_that_a_step_reads_is_a_constant_and_verify_finds_it() -> None:
    optimizer, seen = optim.SGD([array(3).requires_grad_()], lr=0.5), list[Any]()

    def step(x: Any) -> Any:
        seen.append(optimizer.param_groups[0]["lr"])
        return x * optimizer.param_groups[0]["lr"]

    captured, verified = xgrad.capture(step), xgrad.capture(verify=1)(step)
    for each in (captured, verified):
        each(array(3))
        assert each(array(3)).tolist() == (array(3) * 0.5).tolist()
    assert {type(x) for x in seen} == {float}
    optimizer.param_groups[0]["lr"] = 0.25
    assert captured(array(3)).tolist() == (array(3) * 0.5).tolist()
    with pytest.raises(CaptureError, match="result"):
        verified(array(3))


@pytest.mark.parametrize("before", [True, False], ids=["before the update", "after the update"])
def test_step_that_changes_an_option_of_an_optimizer_is_refused_with_the_line(before: bool) -> None:
    def scenario(capture: Capture) -> Iterator[Any]:
        model, optimizer, train = training(twins.eager, sgd(lr=0.5))

        def step(x: Any, y: Any) -> Any:
            if before:
                optimizer.param_groups[0]["lr"] *= 0.9
            loss = train(x, y)
            if not before:
                optimizer.param_groups[0]["lr"] *= 0.9
            return loss

        captured = capture(step)
        for i in range(5):
            yield captured(*batch(i)), everything(model, optimizer)

    with pytest.warns(match=r"py:\d+: the step changes .*lr"):
        (captured,) = compare(scenario)
    assert captured.refusal is not None
