"""The array object as the standard has it: operators, conversions to Python's numbers and to NumPy, assignment."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from inspect import currentframe
from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad import LostGradientWarning, Tensor, warn_lost_gradients
from xgrad.testing import gradcheck, gradgradcheck


def line() -> int:
    """Return the number of the line that calls."""
    frame = currentframe()
    assert frame is not None and frame.f_back is not None
    return frame.f_back.f_lineno


# Operators

INTEGERS = ["and_", "or_", "xor", "lshift", "rshift", "add", "sub", "mul", "floordiv", "mod", "pow"]


@pytest.mark.parametrize("name", INTEGERS)
def test_operators_of_integers(name: str, device: str) -> None:
    """Reflected and in place, as NumPy's."""
    a, b = np.array([6, 5, 3]), np.array([1, 4, 2])
    x, y = Tensor(a, device=device), Tensor(b, device=device)
    plain, in_place = getattr(operator, name), getattr(operator, "i" + name.strip("_"))
    for got, expected in ((plain(x, y), plain(a, b)), (plain(x, 2), plain(a, 2)), (plain(6, y), plain(6, b))):
        assert got.tolist() == expected.tolist() and got.dtype == xgrad.int64
    assert in_place(x, y) is x and x.tolist() == plain(a, b).tolist()


@pytest.mark.parametrize("name", ["iadd", "isub", "imul", "itruediv", "ipow"])
def test_in_place_keeps_the_dtype_and_the_graph(name: str, device: str) -> None:
    x = Tensor([1.0, 2.0], device=device, requires_grad=True)
    y = x * 1
    y = getattr(operator, name)(y, Tensor([2.0, 3.0], dtype=xgrad.float64, device=device))
    assert y.dtype == xgrad.float32 and y.requires_grad
    y.sum().backward()
    assert x.grad is not None and x.grad.dtype == xgrad.float32


def test_in_place_changes_neither_dtype_nor_shape(device: str) -> None:
    x = Tensor([1, 2], device=device)
    for name in ("iadd", "itruediv", "ipow"):
        with pytest.raises(
            TypeError, match="in place: expected a result of a dtype that int64 can hold, got float32: write x ="
        ):
            getattr(operator, name)(x, 0.5)
    with pytest.raises(TypeError, match="in place: expected a result of a dtype that float32 can hold, got complex64"):
        operator.imul(xgrad.ones(2, device=device), 1j)
    for name in ("isub", "imul", "iand"):
        with pytest.raises(TypeError, match="in place: expected a result of a dtype that bool can hold, got uint8"):
            getattr(operator, name)(Tensor([True], device=device), xgrad.ones(1, dtype="uint8", device=device))
    with pytest.raises(ValueError, match=r"in place: expected a result of shape \(2,\), got \(3, 2\): write x ="):
        x += xgrad.ones((3, 2), dtype=xgrad.int64, device=device)


# Python's numbers


def test_conversions_to_numbers(device: str) -> None:
    assert [bool(Tensor(v, device=device)) for v in (0.0, -0.0, float("nan"), float("inf"), 1j, 0j)] == [
        False, False, True, True, True, False]  # fmt: skip
    assert (int(Tensor(-1.7, device=device)), int(Tensor(True, device=device))) == (-1, 1)
    assert complex(Tensor(1.5, device=device)) == 1.5
    z = Tensor(1j, device=device)
    for convert in (int, float):
        with pytest.raises(TypeError):
            convert(z)
    for value, error in ((float("inf"), OverflowError), (float("nan"), ValueError)):
        with pytest.raises(error):
            int(Tensor(value, device=device))
    for value in (1.0, True):
        with pytest.raises(TypeError, match="index: expected a 0-d tensor of integers"):
            operator.index(Tensor(value, device=device))


def test_tensors_with_a_gradient_are_numbers_too() -> None:
    x = Tensor([1.5, 0.0], requires_grad=True)
    assert (float(x[0]), int(x[0]), bool(x[1]), complex(x[0]), len(x)) == (1.5, 1, False, 1.5, 2)
    total = sum((row * row for row in x), start=xgrad.zeros(()))
    total.backward()
    assert x.grad is not None and x.grad.tolist() == [3, 0]


def test_a_lost_gradient_is_told_on_demand() -> None:
    x = Tensor([1.5], requires_grad=True)
    lossy: list[tuple[str, Callable[[], Any]]] = [
        ("float", lambda: float(x)),
        ("complex", lambda: complex(x)),
        ("item", x.item),
        ("tolist", x.tolist),
    ]
    harmless = [lambda: int(x), lambda: bool(x), lambda: repr(x), lambda: f"{x:.2f}", lambda: float(x.detach())]
    for convert in (*[convert for _, convert in lossy], *harmless):
        convert()  # warnings are errors
    with warn_lost_gradients():
        for name, convert in lossy:
            with pytest.warns(LostGradientWarning, match=f"{name}: this tensor needs a gradient, which is lost"):
                convert()
        for convert in harmless:
            convert()
        with xgrad.no_grad():
            float(2 * x)
        xgrad.linspace(x[0], 2.0, 3)
        xgrad.arange(0.0, x[0])
    x.item()

    @warn_lost_gradients()
    def decorated() -> float:
        return float(x)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        decorated()
    function = decorated.__wrapped__  # type: ignore[attr-defined]
    assert (caught[0].filename, caught[0].lineno) == (__file__, function.__code__.co_firstlineno + 2)


def test_errors_of_numpy_conversions_name_the_line() -> None:
    x = xgrad.ones(2, requires_grad=True)
    for convert in (np.asarray, np.median, np.linalg.cond, lambda t: t.numpy()):
        with pytest.raises((RuntimeError, TypeError), match=r"functions? of xgrad.*, at ") as caught:
            convert(x)
        assert str(caught.value).rpartition(":")[0].endswith(f"at {__file__}")
    here = line() + 2
    with pytest.raises(RuntimeError) as caught:
        np.array([x, x])
    assert str(caught.value).endswith(f"{__file__}:{here}")


# Assignment

MASK = np.array([[True, False, True], [False, True, True]])
KEYS: list[Any] = [
    1, -1, (), ..., None, slice(None, None, 2), slice(None, None, -1), (slice(None), 1), (0, 2), (..., 1), (None, 0),
    (slice(1, None), ..., slice(None, 2)), (1, None, slice(None)), np.array([1, 0]), np.array(True), np.array(1),
    (np.array([1, 0]), np.array([2, 0])), (slice(None), np.array([2, 0])), (np.array([1, 0]), slice(0, 2)),
    (np.array([[1], [0]]), np.array([0, 2])), (1, np.array([0, 2])), MASK, (0, MASK[0]),
    (slice(None), MASK[1]), ([1, 0], 2),
]  # fmt: skip


def runs(key: Any, device: str) -> None:
    """Skip what a device's library does not take."""
    parts = key if isinstance(key, tuple) else (key,)
    arrays = any(isinstance(part, (list, np.ndarray)) for part in parts)
    whole = not arrays and (... in parts or len(parts) == 2) and None not in parts
    if device.startswith("strict") and not whole:
        pytest.skip("array-api-strict takes neither arrays here nor keys for some of the axes")
    if device.startswith("torch") and any(isinstance(part, slice) and (part.step or 1) < 0 for part in parts):
        pytest.skip("PyTorch's arrays take no negative steps")


def on(device: str, key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple([on(device, part) for part in key])
    return Tensor(key, device=device) if isinstance(key, np.ndarray) else key


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_assignment_by_every_key(key: Any, device: str) -> None:
    runs(key, device)
    a, k = np.arange(6.0).reshape(2, 3), on(device, key)
    v = np.random.default_rng(0).normal(size=a[key].shape)
    x, value = (Tensor(t, device=device, requires_grad=True) for t in (a, v))

    def assigned(x: Tensor, value: Tensor) -> Tensor:
        y = x * x
        y[k] = value * value
        y[k] *= 2
        y[k] += x[k]
        return y

    expected = a * a
    expected[key] = v * v
    expected[key] *= 2
    expected[key] += a[key]
    np.testing.assert_array_equal(assigned(x, value).tolist(), expected)
    assert gradcheck(assigned, (x, value)) and gradgradcheck(assigned, (x, value))


@pytest.mark.parametrize("key", [[0, 0, 2], ([1, 1, 0], [2, 2, 2]), (slice(None), [0, 0])], ids=repr)
def test_where_an_index_repeats_the_last_value_has_the_gradient(key: Any) -> None:
    a = np.arange(9.0).reshape(3, 3)
    x, v = Tensor(a, requires_grad=True), Tensor(np.ones(a[key].shape) + np.arange(a[key].size).reshape(a[key].shape))
    v.requires_grad_()

    def assigned(x: Tensor, v: Tensor) -> Tensor:
        y = x * 1
        y[key] = v * v
        return y

    expected = a.copy()
    expected[key] = v.detach().numpy() ** 2
    np.testing.assert_array_equal(assigned(x, v).tolist(), expected)
    assert gradcheck(assigned, (x, v))
    assert gradgradcheck(assigned, (x, v))


def test_index_add_adds_up(device: str) -> None:
    x, v = Tensor(np.zeros(3), device=device, requires_grad=True), Tensor([1.0, 2.0, 4.0], device=device)
    key = Tensor([0, 0, 2], device=device)
    y = xgrad.ops.index_add(x, key, v)
    assert (y.tolist(), y.dtype) == ([3, 0, 4], xgrad.float64)
    assert xgrad.ops.index_add(x, key, 0.1).tolist() == [0.2, 0, 0.1]
    with pytest.raises((ValueError, RuntimeError), match=r"broadcast_to: .*got x of shape \(2,\)"):
        xgrad.ops.index_add(x, key, xgrad.ones(2, device=device))


@pytest.mark.parametrize(("dtype", "value"), [("int64", 1.5), ("int64", 1j), ("float32", 1j), ("bool", 2)])
def test_a_value_of_a_higher_kind_is_refused(dtype: str, value: Any, device: str) -> None:
    x = xgrad.zeros(2, dtype=dtype, device=device)
    for wrong in (value, Tensor(value, device=device)):
        with pytest.raises(TypeError, match=f"setitem: expected .* for x of {dtype}, got"):
            x[0] = wrong
    x[0] = True
    assert x.tolist() == [1, 0] and x.dtype == dtype
