"""Functions that users write work as ours do, at every order and on every device; mistakes are named."""

from __future__ import annotations

import copy
import functools
import pickle
import traceback
from typing import Any

import pytest

import xgrad
from xgrad import Function, Tensor
from xgrad.core.dtypes import FLOATING
from xgrad.ops.declare import make_callable
from xgrad.testing import gradcheck, gradgradcheck


class Cube(Function):
    @staticmethod
    def forward(xp: Any, x: Any) -> Any:
        return x * x * x

    @staticmethod
    def backward(xp: Any, g: Any, x: Any) -> Any:
        return g * 3 * x * x


class Hypot(Function):
    """Two inputs, the result reused, an option."""

    @staticmethod
    def forward(xp: Any, x: Any, y: Any, *, scale: float = 1.0) -> Any:
        return scale * xp.sqrt(x * x + y * y)

    @staticmethod
    def backward(xp: Any, g: Any, out: Any, x: Any, y: Any, scale: float) -> Any:
        g = g * scale * scale / out
        return g * x, g * y


class SinCos(Function):
    """Two results."""

    @staticmethod
    def forward(xp: Any, x: Any) -> Any:
        return xp.sin(x), xp.cos(x)

    @staticmethod
    def backward(xp: Any, g: Any, out: Any) -> Any:
        return g[0] * out[1] - g[1] * out[0]


class Total(Function):
    """Any number of inputs."""

    @staticmethod
    def forward(xp: Any, *arrays: Any) -> Any:
        out = arrays[0]
        for array in arrays[1:]:
            out = out + array
        return out

    @staticmethod
    def backward(xp: Any, g: Any, arrays: Any) -> Any:
        return [g for _ in arrays]


def leaf(device: str, values: Any = (0.5, -1.2, 2.0)) -> Tensor:
    return Tensor(values, dtype=xgrad.float64, device=device, requires_grad=True)


def test_first_and_second_order(device: str) -> None:
    x, y = leaf(device), leaf(device, (1.0, 2.0, -0.3))
    for fn, inputs in [
        (Cube(), [x]),
        (Hypot(), [x, y]),
        (Hypot(scale=2.0), [x, y]),
        (lambda a, b: Hypot()(a, b, scale=-1.5), [x, y]),
        (SinCos(), [x]),
        (Total(), [x, y, x * 2.0]),
    ]:
        inputs = [t if t.is_leaf else t.detach().requires_grad_() for t in inputs]
        assert gradcheck(fn, inputs)
        assert gradgradcheck(fn, inputs)


def test_third_order() -> None:
    x = leaf("cpu", 2.0)
    y = Cube()(x)
    for expected in (12, 12, 6):
        (y,) = xgrad.autograd.grad(y, x, create_graph=True)
        assert y.item() == expected


def test_broadcasting_scalars_and_arrays(device: str) -> None:
    x = leaf(device, [[1.0], [2.0]])
    out = Hypot()(x, leaf(device))
    out.sum().backward()
    assert out.shape == (2, 3)
    assert x.grad is not None and x.grad.shape == (2, 1)
    assert Hypot()(3.0, 4.0).item() == 5
    assert Hypot()(x, 4.0).requires_grad


def test_inputs_by_name_and_what_is_wrong_with_arguments() -> None:
    assert Hypot()(x=3.0, y=4.0).item() == 5
    with pytest.raises(TypeError, match=r"Hypot.*missing a required argument: 'y'"):
        Hypot()(3.0)
    with pytest.raises(TypeError, match=r"Hypot.*'size'"):
        Hypot()(3.0, 4.0, size=2)
    with pytest.raises(TypeError, match=r"unknown option \['size'\]: expected one of \['scale'\]"):
        Hypot(size=2)


def test_a_rule_that_asks_for_what_is_not_there() -> None:
    class Wrong(Function):
        @staticmethod
        def forward(xp: Any, x: Any) -> Any:
            return x

        @staticmethod
        def backward(xp: Any, g: Any, z: Any) -> Any:
            return g

    with pytest.raises(TypeError, match=r"Wrong: a rule asks for \['z'\]: expected some of \['g', 'out', 'x'"):
        Wrong()


def test_a_function_without_a_rule() -> None:
    class Half(Function):
        @staticmethod
        def forward(xp: Any, x: Any) -> Any:
            return x

    with pytest.raises(TypeError, match=r"Half: expected a static method backward\(xp, ...\)"):
        Half()


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda g: g[:1], r"Bad: a derivative rule returned a gradient of shape \(1,\) for an input of shape \(3,\)"),
        (lambda g: (g, g), r"Bad: backward returned \['ndarray', 'ndarray'\]: expected an array or None for each of 1"),
        (lambda g: 1.0, r"Bad: backward returned \['float'\]"),
    ],
)
def test_a_rule_that_returns_nonsense(result: Any, message: str) -> None:
    class Bad(Function):
        @staticmethod
        def forward(xp: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(xp: Any, g: Any) -> Any:
            return result(g)

    with pytest.raises(RuntimeError, match=message):
        Bad()(leaf("cpu")).sum().backward()


def test_an_error_in_a_rule_names_the_op() -> None:
    class Bad(Function):
        @staticmethod
        def forward(xp: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(xp: Any, g: Any) -> Any:
            raise KeyError("oops")

    with pytest.raises(KeyError, match="oops") as caught:
        Bad()(leaf("cpu")).sum().backward()
    assert any("in the backward pass, at <Bad (3,): x from leaf>" in note for note in caught.value.__notes__)


def test_none_is_no_gradient() -> None:
    class First(Function):
        @staticmethod
        def forward(xp: Any, x: Any, y: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(xp: Any, g: Any) -> Any:
            return g, None

    x, y = leaf("cpu"), leaf("cpu")
    assert xgrad.autograd.grad(First()(x, y).sum(), [x, y], allow_unused=True)[1] is None


class Model(xgrad.nn.Module):
    """A module that holds a function."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = Hypot(scale=2.0)


@pytest.mark.parametrize("twin", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_functions_can_be_copied_and_pickled(twin: Any) -> None:
    assert twin(Model()).norm(3.0, 4.0).item() == 10


@pytest.mark.parametrize("kind", [list, tuple])
def test_results_may_come_as_any_sequence_and_as_numbers(kind: Any) -> None:
    class Several(Function):
        @staticmethod
        def forward(xp: Any, x: Any) -> Any:
            return kind([x * 2, 3.0])

        @staticmethod
        def backward(xp: Any, g: Any) -> Any:
            return 2 * g[0]

    x = leaf("cpu")
    doubled, number = Several()(x)
    doubled.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2, 2, 2]
    assert (number.item(), number.dtype) == (3, xgrad.float32)


def test_a_result_that_is_no_array_is_refused() -> None:
    class Nothing(Function):
        @staticmethod
        def forward(xp: Any, x: Any) -> Any:
            return x, None

        @staticmethod
        def backward(xp: Any, g: Any) -> Any:
            return g[0]

    with pytest.raises(TypeError, match="Nothing: expected an array, or a tuple of them, of forward, got NoneType"):
        Nothing()(1.0)


def test_errors_of_the_users_own_keep_their_class() -> None:
    class MyError(ValueError):
        pass

    class Fails(Function):
        @staticmethod
        def forward(xp: Any, x: Any) -> Any:
            raise MyError("mine")

        @staticmethod
        def backward(xp: Any, g: Any) -> Any:
            return g

    with pytest.raises(MyError, match="mine") as caught:
        Fails()(1.0)
    assert caught.value.__notes__ == ["in Fails, applied to x of shape (), float32"]


def test_variadic_inputs_stand_alone() -> None:
    class Mixed(Function):
        @staticmethod
        def forward(xp: Any, x: Any, *rest: Any) -> Any:
            return x

        @staticmethod
        def backward(xp: Any, g: Any) -> Any:
            return g

    with pytest.raises(TypeError, match=r"Mixed: expected \*rest to be the only input, got 2"):
        Mixed()


@pytest.mark.parametrize("name", ["exp", "add", "sum", "reshape", "argmax", "cumulative_prod", "where"])
def test_functions_of_ours_are_pickled_by_name(name: str) -> None:
    function = getattr(xgrad, name).function
    assert pickle.loads(pickle.dumps(function)) is function
    assert pickle.loads(pickle.dumps(getattr(xgrad, name))) is getattr(xgrad, name)


@pytest.mark.parametrize("again", range(2))  # the second time by the short way
@pytest.mark.parametrize(("call", "message"), [
    (lambda x: xgrad.sum(x, 0), "too many positional arguments"),
    (lambda x: xgrad.sum(x, out=x), "unexpected keyword argument 'out'"),
    (lambda x: xgrad.prod(x, out=x, axis=0), "unexpected keyword argument 'out'"),
    (lambda x: xgrad.reshape(x), "missing a required argument: 'shape'"),
    (lambda x: xgrad.reshape(x, foo=1), "missing a required argument: 'shape'"),
    (lambda x: xgrad.reshape(x, (6,), shape=(6,)), "multiple values for argument 'shape'"),
    (lambda x: xgrad.reshape(x, (6,), None), "too many positional arguments"),
])  # fmt: skip
def test_options_are_checked_whichever_way_a_call_goes(call: Any, message: str, again: int) -> None:
    x = xgrad.ones((2, 3), requires_grad=True)
    for _ in range(again):
        xgrad.sum(xgrad.prod(xgrad.reshape(x, (6,)), axis=0))
    with pytest.raises(TypeError, match=message):
        call(x)


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
def test_the_short_way_promotes_as_the_long_one(name: str, one: Any, other: Any, device: str) -> None:
    if device == "strict" and "float16" in (one, other):
        pytest.skip("array-api-strict has no float16")
    op = functools.reduce(getattr, name.split("."), xgrad)
    inputs = [
        x if isinstance(x, float | int) else xgrad.asarray([[1.3, 1.7], [2.9, 4.1]], device=device).astype(x)
        for x in (one, other)
    ]
    floats = [x for x in inputs if isinstance(x, Tensor) and xgrad.isdtype(x.dtype, "real floating")]
    for x in floats:
        x.requires_grad_()
        op(x, x).sum().backward()  # teaches it the way of two of one dtype
    long = op.function(*inputs)
    expected = xgrad.autograd.grad(long.sum(), floats) if floats else ()
    for _ in range(2):
        out = op(*inputs)
        assert out.dtype == long.dtype and out.tolist() == long.tolist()
        found = xgrad.autograd.grad(out.sum(), floats) if floats else ()
        assert [g.tolist() for g in found] == [g.tolist() for g in expected]


@pytest.mark.parametrize("name", ["equal", "less", "greater_equal", "logical_and"])
def test_comparisons_take_the_short_way(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
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
        assert (result.dtype, result.tolist(), result.requires_grad) == (out.dtype, out.tolist(), False)


def test_a_call_that_leaves_the_short_way_runs_its_forward_rule_once_and_shows_one_error() -> None:
    called = []

    def twice(xp: Any, x1: Any, x2: Any, /) -> Any:
        called.append(x1.dtype)
        if x1.shape != x2.shape:
            raise ValueError("shapes")
        return x1 + x2

    op = make_callable(Function.of("twice", twice, (lambda g: g, lambda g: g), lowest=FLOATING), "", __name__)
    x, y = xgrad.ones(2), xgrad.ones(2, dtype=xgrad.float64)
    op(x, x), op(y, y)
    called.clear()
    assert op(x, y).dtype == xgrad.float64 and len(called) == 1
    with pytest.raises(ValueError, match="twice: shapes") as caught:
        op(x, xgrad.ones(3))
    cause = caught.value.__cause__
    assert caught.value.__context__ is cause and cause is not None and cause.__context__ is None
    for wrong in (lambda: op(x, "a"), lambda: op("a", x), lambda: xgrad.exp("a"), lambda: xgrad.sum(x, no=1)):
        with pytest.raises(TypeError, match=r"expected|unexpected") as caught_type:
            wrong()
        assert "LookupError" not in (text := "".join(traceback.format_exception(caught_type.value)))
        assert "KeyError" not in text and "AttributeError" not in text


def test_calls_the_short_way_are_known_by_their_names() -> None:
    assert (xgrad.add.__name__, Tensor.__add__.__name__, Tensor.exp.__qualname__) == ("add", "add", "exp")
    for wrong in (lambda: xgrad.ones(2).__add__(), lambda: xgrad.add(xgrad.ones(2))):
        with pytest.raises(TypeError, match=r"^add\(\) missing 1 required positional argument: 'x2'"):
            wrong()


def test_the_short_way_with_options_leaves_dtypes_alone() -> None:
    x = xgrad.ones((2, 3), requires_grad=True)
    for _ in range(2):
        assert xgrad.sum(x).dtype == xgrad.mean(x, axis=0).dtype == xgrad.float32
        assert xgrad.sum(x, dtype=xgrad.float64).dtype == xgrad.float64
        ints = xgrad.ones((2, 3), dtype=xgrad.int8)
        assert xgrad.sum(ints).dtype == xgrad.int64 and xgrad.mean(ints).dtype == xgrad.float32
        with xgrad.no_grad():
            assert not xgrad.sum(x, axis=0).requires_grad
        assert str(xgrad.sum(x, axis=0).grad_fn.name) == "sum"
