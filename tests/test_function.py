"""Functions written by users: orders, devices, mistakes; and fast paths.

Derivatives are compared with finite differences, and fast paths with the slow path.
"""

from __future__ import annotations

import copy
import math
import pickle
import traceback
from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error, function, leaf64
from xgrad import Function, Tensor
from xgrad.core.dtypes import FLOATING
from xgrad.ops.declare import make_callable
from xgrad.ops.elementwise import arithmetic
from xgrad.testing import gradcheck, gradgradcheck


class Hypot(Function):
    """Two inputs, the result reused, an option."""

    @staticmethod
    def forward(xp: Any, x: Any, y: Any, *, scale: float = 1.0) -> Any:
        return scale * xp.sqrt(x * x + y * y)

    @staticmethod
    def backward(xp: Any, g: Any, out: Any, x: Any, y: Any, scale: float) -> Any:
        g = g * scale * scale / out
        return g * x, g * y


cube = function("Cube", lambda xp, x: x * x * x, lambda xp, g, x: g * 3 * x * x)
sin_cos = function(
    "SinCos", lambda xp, x: (xp.sin(x), xp.cos(x)), lambda xp, g, out: g[0] * out[1] - g[1] * out[0]
)
total = function(
    "Total", lambda xp, *arrays: reduce(add, arrays), lambda xp, g, arrays: [g for _ in arrays]
)


POINTS = (0.5, -1.2, 2.0)


@pytest.mark.parametrize(
    ("fn", "count"),
    [
        (cube, 1),
        (Hypot(), 2),
        (Hypot(scale=2.0), 2),
        (lambda a, b: Hypot()(a, b, scale=-1.5), 2),
        (sin_cos, 1),
        (total, 3),
    ],
)
def test_user_functions_have_exact_first_and_second_derivatives(
    fn: Any, count: int, device: str
) -> None:
    inputs = [
        leaf64(values, device) for values in ((0.5, -1.2, 2.0), (1.0, 2.0, -0.3), (1.0, -2.4, 4.0))
    ][:count]
    assert gradcheck(fn, inputs) and gradgradcheck(fn, inputs)


def test_inputs_broadcast_and_may_be_scalars_or_named(device: str) -> None:
    x = leaf64([[1.0], [2.0]], device)
    out = Hypot()(x, leaf64(POINTS, device))
    out.sum().backward()
    assert (out.shape, x.grad.shape) == ((2, 3), (2, 1))
    assert Hypot()(3.0, 4.0).item() == Hypot()(x=3.0, y=4.0).item() == 5
    assert Hypot()(x, 4.0).requires_grad


def double(xp: Any, x: Any) -> Any:
    return x * 2


class MyError(ValueError):
    """An error of the user's own."""


def failing(xp: Any, x: Any) -> Any:
    raise MyError("mine")


def rule_of(rule: Callable[..., Any]) -> None:
    function("Bad", double, rule)(leaf64(POINTS)).sum().backward()


BAD_SHAPE = "Bad: a derivative rule returned a gradient of shape (1,) for an input of shape (3,)"
WRONG = [
    ("Hypot()(3.0)", "TypeError: Hypot … missing a required argument: 'y'"),
    ("Hypot()(3.0, 4.0, size=2)", "TypeError: Hypot … 'size'"),
    ("Hypot(size=2)", "TypeError: Hypot: unknown option ['size']: expected one of ['scale']"),
    (
        "type('Half', (xp.Function,), {'forward': double})()",
        "TypeError: Half: expected a static method backward",
    ),
    (
        "function('F', double, lambda xp, g, z: g)",
        "TypeError: F: a rule asks for ['z']: expected some of ['g', 'out', 'x'",
    ),
    (
        "function('F', lambda xp, x, *rest: x)",
        "TypeError: F: expected *rest to be the only input, got 2",
    ),
    (
        "function('F', lambda xp, out: out * out, lambda xp, g, out: g * out)",
        "TypeError: F: expected other names than ['out'] for inputs and options",
    ),
    (
        "function('F', lambda xp, x, *, x_shape=(): x, lambda xp, g, x_shape: g)",
        "TypeError: F: expected other names than ['x_shape'] for inputs and options",
    ),
    (
        "function('F', lambda xp, x: None)(1.0)",
        "TypeError: F: expected an array, or a tuple of them, of forward, got None",
    ),
    (
        "function('F', lambda xp, x: (x, None))(1.0)",
        "TypeError: F: expected an array, or a tuple of them, of forward",
    ),
    ("rule_of(lambda xp, g: g[:1])", f"RuntimeError: {BAD_SHAPE}"),
    (
        "rule_of(lambda xp, g: (g, g))",
        "RuntimeError: Bad: backward returned ['ndarray', 'ndarray']: expected an array or",
    ),
    ("rule_of(lambda xp, g: 1.0)", "RuntimeError: Bad: backward returned ['float']"),
]


def test_rule_may_take_parameters_by_name_alone() -> None:
    scaled = function("Scaled", lambda xp, x, *, n=3.0: n * x, lambda xp, g, *, n: n * g)
    x = leaf64(2.0)
    scaled(x).backward()
    assert x.grad is not None and x.grad.item() == 3.0


@pytest.mark.parametrize(("call", "error"), WRONG)
def test_wrong_function_or_call_is_named(call: str, error: str) -> None:
    check_error(call, error, Hypot=Hypot, double=double, function=function, rule_of=rule_of)


@pytest.mark.parametrize(
    ("call", "note"),
    [
        (function("Bad", failing), "in Bad, applied to x of shape (3,), float64"),
        (
            lambda x: function("Bad", double, lambda xp, g: failing(xp, g))(x).sum().backward(),
            "in the backward pass, at <Bad (3,): x from leaf>",
        ),
    ],
    ids=["forward", "backward"],
)
def test_error_of_the_users_own_keeps_its_class_and_names_the_op(call: Any, note: str) -> None:
    with pytest.raises(MyError, match="mine") as caught:
        call(leaf64(POINTS))
    assert note in caught.value.__notes__


def test_none_of_a_rule_is_no_gradient() -> None:
    x, y = leaf64(POINTS), leaf64(POINTS)
    first = function("First", lambda xp, x, y: x * 1, lambda xp, g: (g, None))
    assert xgrad.autograd.grad(first(x, y).sum(), [x, y], allow_unused=True)[1] is None


class Model(xgrad.nn.Module):
    """A module that holds a function."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = Hypot(scale=2.0)


@pytest.mark.parametrize("twin", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_functions_of_users_can_be_copied_and_pickled(twin: Any) -> None:
    assert twin(Model()).norm(3.0, 4.0).item() == 10


@pytest.mark.parametrize("kind", [list, tuple])
def test_results_may_be_any_sequence_and_numbers(kind: Any) -> None:
    x = leaf64(POINTS)
    doubled, number = function("Several", lambda xp, x: kind([x * 2, 3.0]), lambda xp, g: 2 * g[0])(
        x
    )
    doubled.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    assert (number.item(), number.dtype) == (3, xgrad.float32)


@pytest.mark.parametrize(
    "name", ["exp", "add", "sum", "reshape", "argmax", "cumulative_prod", "where"]
)
def test_functions_of_the_library_are_pickled_by_name(name: str) -> None:
    for op in (getattr(xgrad, name), getattr(xgrad, name).function):
        assert pickle.loads(pickle.dumps(op)) is op


@pytest.mark.parametrize("again", range(2))  # the second time by the fast path
@pytest.mark.parametrize(("call", "message"), [
    ("sum(x, 0)", "too many positional arguments"),
    ("sum(x, out=x)", "… unexpected keyword argument 'out'"),
    ("prod(x, out=x, axis=0)", "… unexpected keyword argument 'out'"),
    ("reshape(x)", "missing a required argument: 'shape'"),
    ("reshape(x, foo=1)", "missing a required argument: 'shape'"),
    ("reshape(x, (6,), shape=(6,))", "multiple values for argument 'shape'"),
    ("reshape(x, (6,), None)", "too many positional arguments"),
])  # fmt: skip
def test_wrong_options_are_refused_on_both_paths(call: str, message: str, again: int) -> None:
    x = xgrad.ones((2, 3), requires_grad=True)
    for _ in range(again):
        xgrad.sum(xgrad.prod(xgrad.reshape(x, (6,)), axis=0))
    check_error(f"xp.{call}", f"TypeError: … {message}", x=x)


@pytest.mark.parametrize(("name", "one", "other"), [
    ("add", "float16", "int16"),  # NumPy makes float32 of these, PyTorch of the next
    ("subtract", "int64", "float16"),
    ("pow", "int8", "float32"),  # the logarithm of int8 is float16
    ("pow", "float16", "float32"),
    ("multiply", "float32", "bool"),
    ("divide", "uint8", "uint8"),
    ("matmul", "float64", "float32"),
    ("special.xlogy", "float32", "int8"),
    ("special.pseudo_huber", "int32", 3.5),  # of which PyTorch makes an int32
    ("add", "int64", 2.5),
    ("add", "bool", 2),
])  # fmt: skip
def test_fast_path_promotes_like_the_slow_path(
    name: str, one: Any, other: Any, device: str
) -> None:
    if device == "strict" and "float16" in (one, other):
        pytest.skip("array-api-strict has no float16")
    op = reduce(getattr, name.split("."), xgrad)
    inputs = [
        x
        if isinstance(x, float | int)
        else xgrad.asarray([[1.3, 1.7], [2.9, 4.1]], device=device).astype(x)
        for x in (one, other)
    ]
    floats = [
        x for x in inputs if isinstance(x, Tensor) and xgrad.isdtype(x.dtype, "real floating")
    ]
    for x in floats:
        x.requires_grad_()
        op(x, x).sum().backward()  # fills the cache for two inputs of one dtype
    slow = op.function(*inputs)
    expected = xgrad.autograd.grad(slow.sum(), floats) if floats else ()
    for _ in range(2):
        out = op(*inputs)
        assert out.dtype == slow.dtype and out.tolist() == slow.tolist()
        gradients = xgrad.autograd.grad(out.sum(), floats) if floats else ()
        assert [g.tolist() for g in gradients] == [g.tolist() for g in expected]


@pytest.mark.parametrize("name", ["equal", "less", "greater_equal", "logical_and"])
def test_comparisons_take_the_fast_path(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    op = getattr(xgrad, name)
    x, y = (xgrad.tensor(values, requires_grad=True) for values in ([1.0, 2.0], [2.0, 1.5]))
    others: list[Any] = [y, y.detach(), 2.0, *([] if name == "logical_and" else [1])]
    expected = [op.function(x, other) for other in others]
    op(x, y)
    integers, wide = (x.detach().to(dtype=dtype) for dtype in ("int64", "float64"))
    promoted = [op.function(*pair) for pair in ((integers, x), (x, wide))]
    assert [out.tolist() for out in promoted] == [op(integers, x).tolist(), op(x, wide).tolist()]
    op(x.detach(), y.detach())
    monkeypatch.setattr(Function, "__call__", None)
    for other, out in zip(others, expected, strict=True):
        result = op(x, other)
        assert (result.dtype, result.tolist(), result.requires_grad) == (
            out.dtype,
            out.tolist(),
            False,
        )


def test_call_that_leaves_the_fast_path_runs_its_forward_rule_once_and_shows_one_error() -> None:
    called = []

    def twice(xp: Any, x1: Any, x2: Any, /) -> Any:
        called.append(x1.dtype)
        if x1.shape != x2.shape:
            raise ValueError("shapes")
        return x1 + x2

    op = make_callable(
        Function.of("twice", twice, (lambda g: g, lambda g: g), lowest=FLOATING), "", __name__
    )
    x, y = xgrad.ones(2), xgrad.ones(2, dtype=xgrad.float64)
    op(x, x), op(y, y)
    called.clear()
    assert op(x, y).dtype == xgrad.float64 and len(called) == 1
    with pytest.raises(ValueError, match="twice: shapes") as caught:
        op(x, xgrad.ones(3))
    cause = caught.value.__cause__
    assert caught.value.__context__ is cause and cause is not None and cause.__context__ is None
    for wrong in (
        lambda: op(x, "a"),
        lambda: op("a", x),
        lambda: xgrad.exp("a"),
        lambda: xgrad.sum(x, no=1),
    ):
        with pytest.raises(TypeError, match=r"expected|unexpected") as caught_type:
            wrong()
        assert "LookupError" not in (text := "".join(traceback.format_exception(caught_type.value)))
        assert "KeyError" not in text and "AttributeError" not in text


def test_fast_paths_have_the_names_of_their_ops() -> None:
    assert (xgrad.add.__name__, Tensor.__add__.__name__, Tensor.exp.__qualname__) == (
        "add",
        "add",
        "exp",
    )
    for wrong in (lambda: xgrad.ones(2).__add__(), lambda: xgrad.add(xgrad.ones(2))):
        with pytest.raises(
            TypeError, match=r"^add\(\) missing 1 required positional argument: 'x2'"
        ):
            wrong()


def test_fast_path_with_options_has_the_dtypes_of_the_slow_path() -> None:
    x = xgrad.ones((2, 3), requires_grad=True)
    for _ in range(2):
        assert xgrad.sum(x).dtype == xgrad.mean(x, axis=0).dtype == xgrad.float32
        assert xgrad.sum(x, dtype=xgrad.float64).dtype == xgrad.float64
        ints = xgrad.ones((2, 3), dtype=xgrad.int8)
        assert (
            xgrad.sum(ints).dtype == xgrad.sum(ints == 1).dtype == xgrad.int64
            and xgrad.mean(ints).dtype == xgrad.float32
        )
        with xgrad.no_grad():
            assert not xgrad.sum(x, axis=0).requires_grad
        assert str(xgrad.sum(x, axis=0).grad_fn.name) == "sum"


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64"])
def test_fast_path_of_several_inputs_is_like_the_slow_path(dtype: str, device: str) -> None:
    """Calls with tensors that need gradients or not, None, and numbers, in changing order."""
    if device == "strict" and dtype == "float16":
        pytest.skip("array-api-strict has no float16")

    def tensor(*shape: int, other: str = dtype) -> Tensor:
        values = np.arange(math.prod(shape)).reshape(shape) + 1
        x = xgrad.asarray(values.astype(other), device=device)
        return x.requires_grad_() if other != "int64" else x

    x, weight, bias = tensor(2, 3), tensor(4, 3), tensor(4)
    wide = tensor(4, other="float64")
    linear, clip = xgrad.ops.linear, arithmetic._clip
    calls: list[tuple[Any, tuple[Any, ...]]] = [
        (linear, (x, weight, bias)),
        (linear, (x, weight, None)),
        (linear, (x.detach(), weight, bias.detach())),
        (linear, (x, weight, wide)),
        (clip, (x, tensor(3), None)),
        (clip, (x, 2, 5)),
        (clip, (x, None, 3)),
        (clip, (x, 1.5, 4.5)),
        (clip, (x, tensor(3), tensor(2, 1))),
        (clip, (x, True, 3)),
    ]
    for _ in range(3):
        for op, inputs in calls:
            slow, out = op.function(*inputs), op(*inputs)
            assert (out.dtype, out.tolist()) == (slow.dtype, slow.tolist())
            leaves = [t for t in inputs if isinstance(t, Tensor) and t.requires_grad]
            assert out.requires_grad == slow.requires_grad == bool(leaves)
            if leaves:
                expected = xgrad.autograd.grad(slow.sum(), leaves)
                gradients = xgrad.autograd.grad(out.sum(), leaves)
                assert [g.tolist() for g in gradients] == [g.tolist() for g in expected]
            with xgrad.no_grad():
                assert not op(*inputs).requires_grad


def test_linear_and_clip_take_the_fast_path(monkeypatch: pytest.MonkeyPatch) -> None:
    x, weight = xgrad.ones((2, 3), requires_grad=True), xgrad.ones((4, 3))
    calls = [
        lambda: xgrad.ops.linear(x, weight, None),
        lambda: xgrad.clip(x, 0.5, weight[0]),
        lambda: xgrad.clip(x, None, 2.0),
    ]
    expected = [call().tolist() for call in calls]  # the first calls fill the cache
    monkeypatch.setattr(Function, "__call__", None)
    results = [call() for call in calls]
    assert [y.tolist() for y in results] == expected and all(y.requires_grad for y in results)
