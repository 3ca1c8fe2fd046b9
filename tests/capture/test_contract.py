"""The rules of the documentation of `xgrad.capture`, in order, compared with eager steps.

Rules 5 and 6 are in `test_changes`.
"""

from __future__ import annotations

import contextvars
import copy
import functools
import gc
import inspect
import operator
import pickle
import random
import types
import warnings
import weakref
from collections import OrderedDict, UserDict, UserList, deque, namedtuple
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import xgrad
from capture import twins
from capture.twins import (
    Capture,
    array,
    assert_same,
    batch,
    compare,
    compare_replays,
    eager,
    replayed,
    snapshot,
)
from xgrad import nn, optim
from xgrad.backend.devices import _default
from xgrad.capture import Captured, CaptureError, CaptureWarning
from xgrad.capture.numbers import Number
from xgrad.capture.proxies import Proxy as TracedArray
from xgrad.core.graph import Node
from xgrad.nn import functional

Step = Callable[..., Any]
Pair = namedtuple("Pair", "first second")
ignored = pytest.mark.filterwarnings("ignore::xgrad.capture.CaptureWarning")


# 1. Inputs are the tensors among the arguments, in nested containers


@pytest.mark.parametrize(
    "build",
    [
        lambda a, b: ((a, b), {}),
        lambda a, b: (([a, [b]],), {}),
        lambda a, b: (({"a": a, "b": (b, 3, "text", None)},), {}),
        lambda a, b: ((Pair(a, [b]),), {}),
        lambda a, b: ((a,), {"more": {"b": b}}),
        lambda a, b: ((OrderedDict(a=a), [], {}, (), b), {}),
    ],
)
def test_tensors_in_nested_arguments_are_inputs(build: Callable[..., Any]) -> None:
    def scenario(capture: Capture) -> Iterator[Any]:
        def step(*args: Any, **options: Any) -> Any:
            a, b = [
                x
                for _, x in xgrad.support.trees.leaves((args, options))
                if isinstance(x, xgrad.Tensor)
            ]
            return {"sum": a + b, "given": [a * 2, (b,)]}

        captured = capture(step)
        for i in range(4):
            args, options = build(array(3, seed=i), array(3, seed=i + 9))
            yield captured(*args, **options)

    compare_replays(scenario, traces=1)


@replayed
def test_results_of_all_kinds_are_rebuilt(capture: Capture) -> Iterator[Any]:
    @capture
    def step(x: Any) -> Any:
        y = x * 2
        ones = xgrad.ones((2, 3)).T
        shared = {"y": y, "transposed": y.T, "row": y[0], "twice": [y, y], "ones": ones}
        return {
            "x": x,
            "view": x.T,
            "none": None,
            "three": 3,
            "tuple": (x,),
            "leaf": (x + 1).requires_grad_(),
        } | shared

    for i in range(4):
        results = step(array(2, 3, seed=i))
        yield (
            results,
            results["y"] is results["twice"][0] is results["twice"][1],
            results["x"] is results["tuple"][0],
        )


def test_results_of_replays_are_the_callers_own() -> None:
    step = xgrad.capture(lambda x: (xgrad.exp(x), x * 2, xgrad.ones(3)))
    kept = [step(array(3, seed=i)) for i in range(6)]
    kept[2][2][0] = 5.0
    for i, (a, b, ones) in enumerate(kept):
        np.testing.assert_allclose(
            a.cpu().numpy(), np.exp(array(3, seed=i).cpu().numpy()), rtol=1e-6
        )
        assert b.tolist() == (2 * array(3, seed=i)).tolist()
        assert ones.tolist() == [5.0 if i == 2 else 1.0, 1, 1]
    assert step(array(3))[2].tolist() == [1, 1, 1] and step.recordings == 1


# 2. State is found from the function, or given by `state=`


class Plain:
    """An object that holds a tensor, and uses it."""

    def __init__(self, w: Any) -> None:
        self.w = w

    def step(self, x: Any) -> Any:
        return x * self.w

    def __call__(self, x: Any) -> Any:
        return x * self.w


@dataclass(slots=True)
class Slotted:
    """A `Plain` with slots."""

    w: Any

    def step(self, x: Any) -> Any:
        return x * self.w


shared: Any = None
library = types.ModuleType("library")


def times_shared(x: Any) -> Any:
    """Multiply by a global tensor."""
    return x * shared


def in_closure(w: Any) -> Any:
    def replace(new: Any) -> None:
        nonlocal w
        w = new

    return lambda x: x * w, replace


def in_item(container: Any, key: Any) -> Any:
    return lambda x: x * container[key], lambda new: container.__setitem__(key, new)


def in_global(w: Any, names: dict[str, Any], step: Step) -> Any:
    names["shared"] = w
    return step, lambda new: names.update(shared=new)


def in_attribute(thing: Any, step: Step) -> Any:
    return step, lambda new: setattr(thing, "w", new)


def in_state_option(w: Any) -> Any:
    hidden = SimpleNamespace(inner=SimpleNamespace(inner=SimpleNamespace(ws=[w])))
    ws = hidden.inner.inner.ws
    return lambda x: x * hidden.inner.inner.ws[0], lambda new: ws.__setitem__(0, new), ws


def with_attribute(base: Any, w: Any) -> Any:
    """Return an empty container of a class of its own, with a tensor as an attribute."""
    container = type("Container", (base,), {})()
    container.w = w
    return container


class SlottedPrivately:
    """An object whose slot Python renames."""

    __slots__ = ("__w",)

    def __init__(self, w: Any) -> None:
        self.__w = w

    def step(self, x: Any) -> Any:
        return x * self.__w

    def replace(self, w: Any) -> None:
        self.__w = w


def in_private_slot(w: Any) -> tuple[Step, Any]:
    p = SlottedPrivately(w)
    return lambda x: p.step(x), p.replace


#: Where a tensor of the state may be: a function of the tensor, and the tensor's name. The function
#: returns a step, a function that replaces the tensor, and, if needed, the argument `state`.
PLACES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "closure": (in_closure, "w"),
    "closure of a called function": (
        lambda w: ((f := in_closure(w)) and (lambda x: f[0](x) + 1), f[1]),
        "w",
    ),
    "default": (lambda w: (lambda x, w=w: x * w, None), "default[0]"),
    "keyword default": (
        lambda w: ((f := lambda x, *, w=w: x * w), lambda new: f.__kwdefaults__.update(w=new)),
        "default['w']",
    ),
    "global": (lambda w: in_global(w, globals(), lambda x: x * shared), "shared"),
    "global of a module": (
        lambda w: in_global(w, vars(library), lambda x: x * library.shared),
        "library.shared",
    ),
    "global of a called function": (
        lambda w: in_global(w, globals(), lambda x: times_shared(x) + 1),
        "shared",
    ),
    "list": (lambda w: in_item([w], 0), "container[0]"),
    "dict": (lambda w: in_item({"a": w}, "a"), "container['a']"),
    "deque": (lambda w: in_item(deque([w]), 0), "container[0]"),
    "OrderedDict": (lambda w: in_item(OrderedDict(a=w), "a"), "container['a']"),
    "UserDict": (lambda w: in_item(UserDict(a=w), "a"), "container['a']"),
    "UserList": (lambda w: in_item(UserList([w]), 0), "container[0]"),
    "nested containers": (lambda w: in_item({0: [w]}[0], 0), "container[0]"),
    "tuple": (lambda w: ((lambda pair: lambda x: x * pair.first)(Pair(w, 0)), None), "pair[0]"),
    "method": (lambda w: in_attribute(p := Plain(w), p.step), "self.w"),
    "callable object": (lambda w: in_attribute(p := Plain(w), p), "w"),
    "attribute": (lambda w: in_attribute(p := Plain(w), lambda x: x * p.w), "p.w"),
    "slot": (lambda w: in_attribute(p := Slotted(w), lambda x: x * p.w), "p.w"),
    "attribute of a list": (
        lambda w: in_attribute(p := with_attribute(list, w), lambda x: x * p.w),
        "p.w",
    ),
    "attribute of a dict": (
        lambda w: in_attribute(p := with_attribute(dict, w), lambda x: x * p.w),
        "p.w",
    ),
    "attribute of a UserList": (
        lambda w: in_attribute(p := with_attribute(UserList, w), lambda x: x * p.w),
        "p.w",
    ),
    "private slot": (lambda w: in_private_slot(w), "p._SlottedPrivately__w"),
    "method of slots": (lambda w: in_attribute(p := Slotted(w), p.step), "self.w"),
    "partial": (lambda w: (functools.partial(lambda a, x: x * a, w), None), "[0]"),
    "partial method": (
        lambda w: in_attribute(p := Plain(w), functools.partial(Plain.step, p)),
        "[0].w",
    ),
    "decorated function": (lambda w: (functools.lru_cache(maxsize=0)(lambda x: x * w), None), "w"),
    "state=": (in_state_option, "state[0]"),
}


@pytest.mark.parametrize("base", [object, list, dict, set, deque, UserList, UserDict])
def test_attribute_that_becomes_a_tensor_is_noticed(base: Any) -> None:
    holder = with_attribute(base, None)
    step = xgrad.capture(lambda x: x * 2 if holder.w is None else x * holder.w)
    for i in range(6):
        if i == 3:
            holder.w = array(3, seed=1)
        x = array(3, seed=i)
        assert step(x).tolist() == (x * 2 if i < 3 else x * holder.w).tolist()
    assert step.refusal is None


@pytest.mark.parametrize("place", PLACES)
def test_tensor_of_the_state_is_found_named_and_followed(place: str) -> None:
    make, name = PLACES[place]
    w = array(3, seed=1)
    step, replace, *state = make(w)
    captured = xgrad.capture(step, state=state[0] if state else None)
    assert [label for label, x in captured.state() if x is w] == [name]
    for i in range(6):
        if i == 2:
            w[0] = 5.0
        if i == 3:
            w.data = array(3, seed=7)
        if i == 4:
            w *= 2
        assert_same([snapshot(step(array(3, seed=i)))], [snapshot(captured(array(3, seed=i)))])
    assert captured.recordings == 1 and captured.refusal is None
    if replace is not None:
        for seed in (8, 9):
            replace(array(3, seed=seed))
            for i in range(2):
                assert_same(
                    [snapshot(step(array(3, seed=i)))], [snapshot(captured(array(3, seed=i)))]
                )
        assert captured.refusal is None


def test_state_lists_tensors_modules_optimizers_and_generators_with_names() -> None:
    model, optimizer, step = twins.training(xgrad.capture)
    generator, w = xgrad.random.Generator(1), array(2)
    step = xgrad.capture(step._step, state={"noise": generator, "w": w})
    named = dict(step.state())
    assert (
        named["model"] is model and named["optimizer"] is optimizer and named["model.3"] is model[3]
    )
    assert named["model.0.weight"] is model[0].weight and named["state['w']"] is w
    assert (
        named["state['noise']"] is generator
        and named["xgrad.random"] is xgrad.random.default_generator
    )


HOLDERS: dict[str, Callable[[Any, Step], Step]] = {
    "closure": lambda holder, use: lambda x: use(holder, x),
    "default": lambda holder, use: lambda x, holder=holder: use(holder, x),
    "dict": lambda holder, use: (lambda d: lambda x: use(d["a"], x))({"a": holder}),
    "attribute": lambda holder, use: (lambda p: lambda x: use(p.w, x))(Plain(holder)),
    "slot": lambda holder, use: (lambda p: lambda x: use(p.w, x))(Slotted(holder)),
    "method": lambda holder, use: types.MethodType(lambda self, x: use(self.w, x), Plain(holder)),
    "partial": lambda holder, use: functools.partial(use, holder),
}


@pytest.mark.parametrize("place", HOLDERS)
@pytest.mark.parametrize("kind", ["module", "generator", "optimizer"])
def test_module_generator_or_optimizer_of_the_state_is_followed(kind: str, place: str) -> None:
    def scenario(capture: Capture) -> Iterator[Any]:
        xgrad.manual_seed(0)
        layer = nn.Linear(3, 3)
        optimizer = optim.SGD(layer.parameters(), lr=0.1)

        def use(holder: Any, x: Any) -> Any:
            if kind == "module":
                return holder(x).detach()
            if kind == "generator":
                return x * xgrad.random.rand(3, generator=holder)
            holder.zero_grad()
            (sum((p * p).sum() for p in holder.param_groups[0]["params"]) * x.mean()).backward()
            return holder.step()

        holder = {"module": layer, "generator": xgrad.random.Generator(4), "optimizer": optimizer}[
            kind
        ]
        step = capture(HOLDERS[place](holder, use))
        for i in range(6):
            if i == 3:
                layer.weight.data = layer.weight.detach() * 2
            yield step(array(2, 3, seed=i)), layer.state_dict()

    compare_replays(scenario)


# 3. All else is a constant of the trace


class Config:
    """Configuration, as an object and as a class."""

    k = 2.0

    def __init__(self) -> None:
        self.inner = SimpleNamespace(k=2.0)


factor = 2.0


def _of(thing: Any, step: Step, change: Callable[[Any], Any]) -> Any:
    return lambda x: step(thing, x), lambda: change(thing)


#: Python values that a step uses: a function that returns a step that multiplies by 2 until the
#: value is changed, when it multiplies by something else; and a function that changes the value.
CONSTANTS: dict[str, Callable[[], Any]] = {
    "number of a closure": lambda: (lambda f: (f[0], lambda: f[1](3.0)))(in_closure(2.0)),
    "global number": lambda: (lambda x: x * factor, lambda: globals().update(factor=3.0)),
    "number of a list": lambda: _of(
        [2.0], lambda ks, x: x * ks[0], lambda ks: ks.__setitem__(0, 3.0)
    ),
    "number of an attribute": lambda: _of(
        Config(), lambda c, x: x * c.k, lambda c: setattr(c, "k", 3.0)
    ),
    "number far down": lambda: _of(
        Config(), lambda c, x: x * c.inner.k, lambda c: setattr(c.inner, "k", 3.0)
    ),
    "string": lambda: _of(
        ["a"], lambda c, x: x * 2 if c[0] == "a" else x, lambda c: c.__setitem__(0, "b")
    ),
    "control flow": lambda: _of(
        [True], lambda c, x: x * 2 if c[0] else x, lambda c: c.__setitem__(0, False)
    ),
    "called function": lambda: _of(
        [lambda x: x * 2], lambda f, x: f[0](x), lambda f: f.insert(0, lambda x: x * 3)
    ),
    "key of a dict": lambda: _of(
        ["a"], lambda p, x: x * {"a": 2, "b": 3}[p[0]], lambda p: p.insert(0, "b")
    ),
    "class attribute set on a subclass": lambda: _of(
        type("Derived", (Config,), {})(), lambda c, x: x * c.k, lambda c: setattr(type(c), "k", 3.0)
    ),
    "length of a list": lambda: _of([1, 2], lambda log, x: x * len(log), lambda log: log.append(3)),
    "element of an array": lambda: _of(
        np.full(1000, 2.0), lambda a, x: x * float(a[0]), lambda a: a.fill(3.0)
    ),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_python_value_changed_stays_as_it_was_traced_and_verify_raises(name: str) -> None:
    for verify in (0, 1):
        globals()["factor"] = 2.0
        step, change = CONSTANTS[name]()
        captured = xgrad.capture(step, verify=verify)
        for i in range(3):
            assert captured(array(3, seed=i)).tolist() == (2 * array(3, seed=i)).tolist()
        change()
        assert step(array(3)).tolist() != (2 * array(3)).tolist()
        if verify:
            with pytest.raises(CaptureError, match="differs"):
                captured(array(3))
        else:
            assert captured(array(3)).tolist() == (2 * array(3)).tolist()
            assert captured.recordings == 1 and captured.refusal is None


# 4. A tensor that is neither input, nor state, nor made by the step refuses the capture


# no function refers to its tensors: attributes of a class are not state
Hidden: Any = type("Hidden", (), {})
values = np.ones(3, np.float32)


def _train(x: Any) -> Any:
    Hidden.model(x).sum().backward()  # here
    Hidden.optimizer.step()
    return x * 2


FOREIGN: dict[str, tuple[Step, str]] = {
    "operator": (lambda x: x * Hidden.w, "multiply"),  # here
    "operator from the left": (lambda x: Hidden.w - x, "subtract"),  # here
    "function": (lambda x: xgrad.maximum(x, Hidden.w), "maximum"),  # here
    "list of tensors": (lambda x: xgrad.stack([x, Hidden.w]), "stack"),  # here
    "three operands": (lambda x: xgrad.where(x > 0, x, Hidden.w), "where"),  # here
    "product": (lambda x: x @ Hidden.w, "matmul"),  # here
    "own function of it": (lambda x: x + xgrad.tanh(Hidden.w), ""),  # here
    "nothing but it": (lambda x: xgrad.tanh(Hidden.w), ""),  # here
    "itself": (lambda x: Hidden.w, "returned"),  # here
    "detached": (lambda x: Hidden.w.detach(), ""),  # here
    "view": (lambda x: x * Hidden.w[::-1], ""),  # here
    "index": (lambda x: x[Hidden.index], "index"),  # here
    "index of it by an input": (lambda x: Hidden.w[xgrad.argsort(x)], ""),  # here
    "asarray": (lambda x: x * xgrad.asarray(Hidden.w), ""),  # here
    "copy": (lambda x: x * xgrad.asarray(Hidden.w, copy=True), ""),  # here
    "value": (lambda x: x * Hidden.w.sum().item(), "sum"),  # here
    "value by NumPy": (lambda x: x * float(np.asarray(Hidden.w)[0]), "read"),  # here
    "truth": (lambda x: x if Hidden.w[0] > 0 else -x, "indexing"),  # here
    "module": (lambda x: Hidden.model(x).detach(), ""),  # here
    "generator": (
        lambda x: x * xgrad.random.rand(3, generator=Hidden.generator),
        "generator",
    ),  # here
    "write": (xgrad.no_grad()(lambda x: (operator.iadd(Hidden.w, x), x * 2)[1]), ""),  # here
    "write of an item": (lambda x: (Hidden.w.__setitem__(0, x[1]), x * 2)[1], ""),  # here
    "assigned item": (lambda x: ((y := x * 1).__setitem__(0, Hidden.w[1]), y)[1], ""),  # here
    "assigned data": (lambda x: (setattr(y := x * 1, "data", Hidden.w), y * 2)[1], ""),  # here
    "training": (_train, ""),
    "by name": (lambda x: x * vars(Hidden)["w"], "multiply"),  # here
    "array": (lambda x: x * xgrad.asarray(values), "pass a tensor as an argument"),  # here
    "list of arrays": (
        lambda x: x * xgrad.asarray([values, values]),
        "pass a tensor as an argument",
    ),  # here
    "dlpack": (lambda x: x * xgrad.from_dlpack(values), "pass a tensor as an argument"),  # here
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_tensor_refuses_with_the_line_and_eager_results(
    name: str, capturing_device: str
) -> None:
    if name in ("value by NumPy", "dlpack") and capturing_device != "cpu":
        pytest.skip("NumPy and cuda share no memory")
    step, reason = FOREIGN[name]

    def scenario(capture: Capture) -> Iterator[Any]:
        xgrad.manual_seed(0)
        Hidden.w, Hidden.index = array(3, seed=5), xgrad.asarray([2, 0])
        Hidden.model, Hidden.generator = nn.Linear(3, 2), xgrad.random.Generator(7)
        Hidden.optimizer = optim.SGD(Hidden.model.parameters(), lr=0.1)
        values[:] = 1
        captured = capture(step)
        for i in range(5):
            yield captured(array(3, seed=i)), Hidden.w, Hidden.model.state_dict()
            if i == 2:
                values[:] = 2
                Hidden.w, Hidden.index = Hidden.w * -2, xgrad.asarray([1, 0])
        twins.assert_concrete(Hidden.w, Hidden.model, Hidden.optimizer)

    with pytest.warns(CaptureWarning) as caught:
        (captured,) = compare(scenario)
    assert len(caught) == 1 and captured.refusal is not None
    assert captured.refusal.startswith(f"test_contract.py:{line_of(step)}:"), captured.refusal
    assert reason in captured.refusal
    assert "state=" in captured.refusal or reason in ("read", "pass a tensor as an argument")


def line_of(step: Any) -> int:
    """Return the line of a function that is marked "here", or its first."""
    source, first = inspect.getsourcelines(step)
    return first + next((i for i, line in enumerate(source) if "# here" in line), 0)


@replayed
def test_tensors_of_attributes_found_by_name_are_followed(capture: Capture) -> Iterator[Any]:
    config = SimpleNamespace(w0=array(3, seed=1), w1=array(3, seed=2))
    step = capture(lambda x, i: x * getattr(config, f"w{i}"))
    for i in (0, 0, 1, 0, 1, 1):
        yield step(array(3, seed=i), i)
        config.w1 = config.w1 * 2


# 7. What is refused, with the line


Maker = Callable[[Any, list[Any]], Step]
#: Functions that make a step from a leaf and a list, each with a part of the warning, which names
#: the line marked "here".
REFUSED: dict[str, tuple[Maker, str]] = {}


def refused(reason: str, kind: str = "", **steps: Maker) -> None:
    """Note functions that make a step."""
    REFUSED.update({f"{kind} {name}": (make, reason) for name, make in steps.items()})


def using(thing: Any, step: Step) -> Step:
    """Return a step that uses an object."""
    return lambda x: step(thing, x)


refused(
    "read",
    "value read by",
    item=lambda w, kept: lambda x: x * x.sum().item(),  # here
    float=lambda w, kept: lambda x: x * float(x.sum()),  # here
    index=lambda w, kept: lambda x: x[int(xgrad.argmax(x)) :].sum(),  # here
    range=lambda w, kept: lambda x: x * len(range(xgrad.count_nonzero(x))),  # here
    truth=lambda w, kept: lambda x: x if x[0] > 0 else -x,  # here
    format=lambda w, kept: lambda x: (x * 2, f"{x.sum():.3f}"),  # here
    repr=lambda w, kept: lambda x: (x * 2, repr(x)),  # here
    tolist=lambda w, kept: lambda x: x * sum(x.tolist()),  # here
    numpy=lambda w, kept: lambda x: x * float(x.cpu().numpy()[0]),  # here
    asarray=lambda w, kept: lambda x: x * float(np.asarray(x.cpu())[0]),  # here
    dlpack=lambda w, kept: lambda x: x * float(np.from_dlpack(x.cpu())[0]),  # here
    pickle=lambda w, kept: lambda x: (x * 2, len(pickle.dumps(x))),  # here
    training=lambda w, kept: trained(
        w, lambda optimizer, x: x * xgrad.random.rand(3) * w.grad.sum().item()
    ),
)
refused(
    "the shape of what",
    "shape of",
    nonzero=lambda w, kept: lambda x: xgrad.nonzero(x > 0)[0] * 2,  # here
    mask=lambda w, kept: lambda x: x[x > 0] * 2,  # here
    unique_all=lambda w, kept: lambda x: xgrad.unique_all(x),  # here
)
refused(
    "what unique_values returns",
    "shape of",
    unique=lambda w, kept: lambda x: xgrad.unique_values(x),
)
refused(
    "random numbers of Python or NumPy",
    "random numbers of",
    random=lambda w, kept: lambda x: x * random.random(),
    gauss=lambda w, kept: lambda x: x * random.gauss(0, 1),
    numpy=lambda w, kept: lambda x: x * float(np.random.normal()),
    permutation=lambda w, kept: lambda x: x * float(np.random.permutation(3)[0]),
    attribute=lambda w, kept: using(
        SimpleNamespace(rng=np.random.default_rng(1)), lambda t, x: x * t.rng.normal()
    ),
    dict=lambda w, kept: using(
        {"rng": random.Random(1)}, lambda d, x: x if d["rng"].random() < 0.5 else -x
    ),
    closure=lambda w, kept: using(np.random.RandomState(1), lambda rng, x: x * rng.rand()),
)
refused(
    "held elsewhere",
    "kept:",
    appended_and_returned=lambda w, kept: lambda x: (y := (x * 2).sum(), kept.append(y))[0],  # here
    appended=lambda w, kept: lambda x: (kept.append(x * 2), x * 3)[1],  # here
    with_its_graph=lambda w, kept: lambda x: (kept.append((w * x).sum()), x * 3)[1],  # here
    view=lambda w, kept: lambda x: (y := x * 2, kept.append(y[1:]))[0],  # here
    container=lambda w, kept: lambda x: (y := {"y": x * 2}, kept.append(y))[0],  # here
    attribute=lambda w, kept: using(
        SimpleNamespace(), lambda o, x: (setattr(o, "last", x * 2), o.last)[1]
    ),
    closure=lambda w, kept: using(in_closure(0)[1], lambda keep, x: (keep(x * 2), x * 3)[1]),
)
refused(
    "changes which tensors",
    "moved:",
    appended=lambda w, kept: lambda x: (kept.append(x), x * 3)[1],
    set=lambda w, kept: using(
        SimpleNamespace(last=None), lambda o, x: (setattr(o, "last", x), x * 3)[1]
    ),
    swapped=lambda w, kept: using(
        [w, array(3, seed=4)], lambda ws, x: (ws.reverse(), x * ws[0].detach())[1]
    ),
    keyed=lambda w, kept: using({"w": w}, lambda d, x: (d.update(x=d["w"]), x * 3)[1]),
)


def trained(w: Any, result: Callable[[Any, Any], Any]) -> Step:
    """Return a step that trains a leaf."""
    optimizer = optim.Adam([w], lr=0.1)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()
        return result(optimizer, x)

    return step


def changing(thing: Any, name: str, value: Step) -> Step:
    """Return a step that changes an attribute of an object, and uses it."""

    def step(x: Any) -> Any:  # here
        setattr(thing, name, value(getattr(thing, name, 0), x))
        return x + getattr(thing, name)

    return step


for _make, _name in [
    (lambda w: nn.Linear(3, 3), "Linear"),
    (lambda w: optim.SGD([w], lr=0.1), "SGD"),
]:
    refused(f"the step changes {_name}.count", "number of", **{
        _name: lambda w, kept, make=_make: changing(make(w), "count", lambda n, x: n + 1)
    })  # fmt: skip
refused(
    "the step changes Module.last",
    last=lambda w, kept: changing(nn.Module(), "last", lambda n, x: x * 2),
)
refused(
    "",
    "state of an",
    optimizer=lambda w, kept: trained(w, lambda optimizer, x: optimizer.state_dict()),
)
refused("graph behind it", "graph of a", result=lambda w, kept: lambda x: w * x)


def graph_from_before_walked(w: Any, kept: Any) -> Step:
    kept.append((w * 2).sum())

    def step(x: Any) -> Any:
        w.grad = None
        kept[0].backward(retain_graph=True)  # here
        return x * 2

    return step


def graph_assigned(w: Any, kept: Any) -> Step:
    kept.append(array(3))
    return lambda x: (kept[0].__setitem__(0, (w * x).sum()), x * 2)[1]


refused("graph", "graph from before", walked=graph_from_before_walked)
refused("", "graph assigned to a tensor", of_the_state=graph_assigned)


@ignored
@pytest.mark.parametrize("name", REFUSED)
def test_refusal_names_the_line_once_and_results_are_those_of_eager(
    name: str,
) -> None:
    make, reason = REFUSED[name]
    runs: list[Any] = []
    for capture in (eager, xgrad.capture):
        xgrad.manual_seed(1)
        random.seed(0)
        np.random.seed(0)
        w, kept, results = array(3, seed=9).requires_grad_(), list[Any](), list[Any]()
        runs.append([])
        captured: Any = capture(make(w, kept))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for i in range(5):
                results.append(captured(array(3, seed=i)))
                runs[-1].append(snapshot([results[-1], w]))
        messages = [x for x in caught if x.category is CaptureWarning]
        runs[-1].append(snapshot(list(kept)))
        for thing in [*kept, *results]:
            if isinstance(thing, xgrad.Tensor) and thing.requires_grad:
                for _ in range(2):  # its graph can be walked
                    w.grad = None
                    thing.sum().backward(retain_graph=True)
                    runs[-1].append(snapshot(w.grad))
    assert_same(*runs)
    assert len(messages) == 1 and messages[0].filename == __file__
    assert reason in captured.refusal, captured.refusal
    step = captured.__wrapped__
    line = f"{line_of(step)}:" if "# here" in inspect.getsource(step) else ""
    assert captured.refusal.startswith(f"test_contract.py:{line}"), captured.refusal
    nothing_traced_is_left()


def nothing_traced_is_left() -> None:
    """Check that no tensor and no graph holds a traced array."""
    gc.collect()
    data = vars(xgrad.Tensor)["_data"]
    for thing in gc.get_objects():
        # isinstance would load lazy objects of other libraries
        if issubclass(type(thing), xgrad.Tensor):
            assert not isinstance(data.__get__(thing), TracedArray)
        elif issubclass(type(thing), Node):
            assert not any(isinstance(value, (TracedArray, Number)) for value in thing.saved or ())


def test_argument_with_a_graph_refuses_and_the_graph_is_walked() -> None:
    w = array(3, seed=1).requires_grad_()
    step = xgrad.capture(lambda x: (x * x).sum())
    with pytest.warns(
        CaptureWarning, match=r"test_contract.py:\d+: an argument was computed with a graph"
    ):
        out = step(w * 2)
    out.backward()
    np.testing.assert_allclose(w.grad.tolist(), (8 * w.detach()).tolist(), rtol=1e-6)


MODES = {"grad mode": xgrad.no_grad, "default device": lambda: xgrad.default_device("cpu")}
MODES["default dtype"] = lambda: xgrad.set_default_dtype(xgrad.float64)


@twins.on_cpu
@pytest.mark.parametrize("name", MODES)
def test_mode_changed_by_the_step_refuses_and_stays_changed(name: str) -> None:
    step = xgrad.capture(lambda x: (MODES[name]().__enter__(), x * 2)[1])

    def run() -> Any:
        with pytest.warns(CaptureWarning, match=f"the step changes the {name}"):
            step(array(3))
        return (
            xgrad.is_grad_enabled(),
            _default.get(),
            type(_default.get()),
            xgrad.get_default_dtype(),
        )

    enabled, device, kind, dtype = contextvars.copy_context().run(run)
    assert enabled is (name != "grad mode") and (dtype == xgrad.float64) is (
        name == "default dtype"
    )
    assert kind is (xgrad.Device if name == "default device" else type(None)) and device in (
        None,
        xgrad.Device("cpu"),
    )


@replayed
def test_tensors_kept_by_weak_references_and_cycles_do_not_refuse(
    capture: Capture,
) -> Iterator[Any]:
    references: list[Any] = []

    @capture
    def step(x: Any) -> Any:
        references.append(weakref.ref(y := x * 2))
        cycle: list[Any] = [y]
        cycle.append(cycle)
        try:
            raise ValueError(y)
        except ValueError as error:
            return error.args[0] + 1

    for i in range(4):
        yield step(array(3, seed=i))


# 8. Verification


def test_verify_of_a_correct_training_changes_nothing() -> None:
    for verify in (1, 2, 3):

        def scenario(capture: Capture, verify: int = verify) -> Iterator[Any]:
            model, optimizer, step = twins.training(lambda step: capture(step, verify=verify))
            for i in range(10):
                yield step(*batch(i, 6 if i % 4 else 4)), xgrad.random.default_generator._state
                yield twins.everything(model, optimizer, gradients=i % 2 == 0)

        compare_replays(scenario)


def test_verify_compares_every_nth_call_only() -> None:
    k = [2.0]
    captured = xgrad.capture(lambda x: (x * k[0], x + 1), verify=3)
    captured(array(3))
    k[0] = 3.0
    assert captured(array(3))[0].tolist() == (2 * array(3)).tolist()
    with pytest.raises(CaptureError, match=r"\[0\]"):
        captured(array(3))
    assert captured.recordings == 1
    for _ in range(2):
        captured(array(3))
    with pytest.raises(CaptureError):
        captured(array(3))


def test_verify_names_the_first_tensor_of_the_state_that_differs_and_the_bits() -> None:
    (model, optimizer, _), k = twins.training(eager), [1.0]
    train = twins.training_step(
        model, optimizer, lambda scores, y: functional.cross_entropy(scores, y) * k[0]
    )
    step = xgrad.capture(lambda x, y: (train(x, y), None)[1], verify=4)
    for i in range(3):
        step(*batch(i))
    k[0] = 1.5
    with pytest.raises(CaptureError, match=r"(0x[0-9a-f]+|bits)") as caught:
        step(*batch(4))
    assert any(name in str(caught.value) for name in ("grad", "weight", "params"))


# The function `capture`


def _generator(x: Any) -> Any:
    yield x


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"step": 3}, TypeError, "expected a function, got int"),
        ({"step": abs, "limit": 0}, ValueError, "limit of at least 1, got 0"),
        ({"step": abs, "limit": -1}, ValueError, "limit of at least 1, got -1"),
        ({"step": abs, "verify": -1}, ValueError, "verify of 0 or more, got -1"),
        ({"step": _generator}, TypeError, "expected a plain function, got _generator"),
    ],
)
def test_wrong_argument_of_capture_raises(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        xgrad.capture(**options)
    with pytest.raises(error, match=message):
        xgrad.capture(**{name: value for name, value in options.items() if name != "step"})(
            options["step"]
        )


def test_capture_with_options_decorates_and_keeps_name_and_documentation() -> None:
    @xgrad.capture(limit=3, verify=2)
    def double(x: Any) -> Any:
        """Return twice as much."""
        return x * 2

    assert (
        isinstance(double, Captured)
        and double.__name__ == "double"
        and double.__doc__ == "Return twice as much."
    )
    for _ in range(4):
        random.random()  # no part of the step
        np.random.normal()
        assert double(array(3)).tolist() == (2 * array(3)).tolist()
    assert double.recordings == 1 and double.refusal is None


class Scaler:
    """An object with a captured method."""

    def __init__(self, w: Any) -> None:
        super().__init__()
        self.w = w

    @xgrad.capture(limit=4)
    def step(self, x: Any) -> Any:
        """Multiply."""
        return x * self.w


class ScalerModule(Scaler, nn.Module):
    """A module with a captured method."""


def check_scaler(scaler: Any, w: Any) -> None:
    for i in range(3):
        assert scaler.step(array(3, seed=i)).tolist() == (array(3, seed=i) * w).tolist()
    assert scaler.step.recordings == 1 and scaler.step.refusal is None


def test_captured_method_has_a_program_for_each_instance() -> None:
    scalers = [Scaler(array(3, seed=seed)) for seed in (7, 8)]
    for scaler in scalers * 2:
        check_scaler(scaler, scaler.w)
    assert scalers[0].step is not scalers[1].step and isinstance(Scaler.step, Captured)


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
@pytest.mark.parametrize("kind", [Scaler, ScalerModule])
def test_copy_of_an_object_with_a_captured_method_works_on_its_own(
    kind: Any, duplicate: Any
) -> None:
    scaler, w, other_w = kind(array(3, seed=7)), array(3, seed=7), array(3, seed=8)
    check_scaler(scaler, w)
    other = duplicate(scaler)
    other.w = other_w
    for _ in range(2):
        check_scaler(other, other_w)
        check_scaler(scaler, w)


def test_captured_method_of_an_object_without_a_dict_raises() -> None:
    Slots: Any = type("Slots", (), {"__slots__": (), "step": xgrad.capture(lambda self, x: x)})
    with pytest.raises(TypeError, match="Slots with a __dict__"):
        Slots().step(array(3))


def test_dropped_object_with_a_captured_method_is_freed() -> None:
    scaler = Scaler(array(3))
    check_scaler(scaler, scaler.w)
    watched = [weakref.ref(scaler), weakref.ref(scaler.w)]
    del scaler
    gc.collect()
    assert [x() for x in watched] == [None] * 2


@replayed
def test_captured_step_within_another_is_part_of_it(capture: Capture) -> Iterator[Any]:
    inner = capture(lambda x: x * 2 + 1)
    w = array(3).requires_grad_()
    outer = capture(lambda x: xgrad.autograd.grad(inner(x * w).sum(), [w]))
    for step in (inner, outer, inner):
        for i in range(4):
            yield step(array(3, seed=i))


@replayed
def test_captured_step_that_calls_itself_is_replayed(capture: Capture) -> Iterator[Any]:
    @capture
    def step(x: Any) -> Any:
        return x if x.shape[0] == 1 else step(x[1:]) * x[0]

    for n in (1, 2, 1, 3, 2, 1):
        yield step(array(n))


TRANSFORMS: dict[str, Callable[[Any], Step]] = {
    "grad": lambda f: xgrad.grad(f),
    "value_and_grad": lambda f: xgrad.value_and_grad(f),
    "grad of grad": lambda f: xgrad.grad(lambda x: xgrad.grad(f)(x).sum()),
    "grad of containers": lambda f: (
        lambda x: xgrad.grad(lambda p: f(p["w"]) * f(p["b"][0]))({"w": x, "b": [x * 2]})
    ),
    "function of containers": lambda f: (
        lambda x: (lambda p: f(p["w"]) * f(p["b"][0]))({"w": x, "b": [x * 2]})
    ),
    "hessian": lambda f: xgrad.hessian(f),
    "jacobian": lambda f: xgrad.jacobian(lambda x: xgrad.sin(x) * f(x)),
    "vjp": lambda f: lambda x: xgrad.vjp(f, x)[1](xgrad.asarray(2.0)),
    "jvp": lambda f: lambda x: xgrad.jvp(f, (x,), (xgrad.ones(3),)),
    "hvp": lambda f: lambda x: xgrad.hvp(f, (x,), (xgrad.ones(3),)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transform_captured_is_replayed(name: str) -> None:
    def scenario(capture: Capture) -> Iterator[Any]:
        w = array(3, seed=5)
        step = capture(TRANSFORMS[name](lambda x: (xgrad.tanh(x * w) ** 2).sum()))
        for i in range(4):
            yield step(array(3, seed=i))
            w[...] = w * 1.5

    compare_replays(scenario, traces=1)


TAKEN: dict[str, Callable[[Any], Any]] = {
    "detached": lambda x: x.detach(),
    "data": lambda x: x.data,
    "view": lambda x: x[1:],
    "itself": lambda x: x,
}


@pytest.mark.parametrize("name", TAKEN)
def test_tensor_that_shares_the_memory_of_an_argument_and_is_kept_is_refused(name: str) -> None:
    def scenario(capture: Capture) -> Iterator[Any]:
        kept: dict[str, Any] = {"earlier": array(3)}

        @capture
        def step(x: Any) -> Any:
            kept["x"] = TAKEN[name](x)
            return x * 2

        for i in range(5):
            yield step(array(3, seed=i)), dict(kept)

    with pytest.warns(CaptureWarning):
        (captured,) = compare(scenario)
    assert captured.refusal is not None


@replayed
def test_comparison_of_scalars_is_not_taken_for_an_operand(capture: Capture) -> Iterator[Any]:
    def derivative(x: Any) -> Any:
        leaf = x.detach().requires_grad_()
        xgrad.copysign(
            leaf, x
        ).sum().backward()  # whose rule compares two truth values, which are one object in NumPy
        return leaf.grad.detach() * 1

    step = capture(derivative)
    for x in (1.0, 2.0, -1.0, 3.0):
        yield step(xgrad.asarray(x))
