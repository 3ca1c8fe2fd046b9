"""The standard's array object: operators, conversions to Python's numbers and NumPy, assignment.

Values are compared with NumPy and Python, and gradients with finite differences.
"""

from __future__ import annotations

import operator
import warnings
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error, leaf
from xgrad import LostGradientWarning, Tensor, warn_lost_gradients
from xgrad.testing import gradcheck, gradgradcheck

# Operators

INTEGERS = ["and_", "or_", "xor", "lshift", "rshift", "add", "sub", "mul", "floordiv", "mod", "pow"]
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]


@pytest.mark.parametrize("name", INTEGERS + COMPARISONS)
def test_integer_operators_have_the_values_of_numpy(name: str, device: str) -> None:
    a, b, plain = np.array([6, -5, 4]), np.array([1, 4, 4]), getattr(operator, name)
    x, y = Tensor(a, device=device), Tensor(b, device=device)
    for got, expected in (
        (plain(x, y), plain(a, b)),
        (plain(x, 2), plain(a, 2)),
        (plain(6, y), plain(6, b)),
    ):
        assert (got.tolist(), got.dtype) == (expected.tolist(), expected.dtype)
    assert (~x).tolist() == (~a).tolist()
    if name in INTEGERS:
        assert (
            getattr(operator, "i" + name.strip("_"))(x, y) is x
            and x.tolist() == plain(a, b).tolist()
        )


@pytest.mark.parametrize("name", ["iadd", "isub", "imul", "itruediv", "ipow"])
def test_operators_in_place_keep_dtype_object_and_graph(name: str, device: str) -> None:
    x = leaf(device=device)
    y = same = x * 1
    y = getattr(operator, name)(y, Tensor([2.0, 3.0], dtype=xgrad.float64, device=device))
    assert y is same and y.dtype == xgrad.float32 and y.requires_grad
    y.sum().backward()
    assert x.grad.dtype == xgrad.float32


HOLDS = "expected a result of a dtype that"


@pytest.mark.parametrize(
    ("name", "dtype", "other", "message"),
    [
        *[
            (name, "int64", 0.5, f"{HOLDS} int64 can hold, got float32: write x =")
            for name in ("iadd", "itruediv", "ipow")
        ],
        ("imul", "float32", 1j, f"{HOLDS} float32 can hold, got complex64"),
        *[
            (name, "bool", np.ones(1, "uint8"), f"{HOLDS} bool can hold, got uint8")
            for name in ("isub", "imul", "iand")
        ],
        (
            "iadd",
            "int64",
            np.ones((3, 2), "int64"),
            r"expected a result of shape \(2,\), got \(3, 2\): write x =",
        ),
    ],
)
def test_operator_in_place_that_would_change_dtype_or_shape_is_refused(
    name: str, dtype: str, other: Any, message: str, device: str
) -> None:
    x = xgrad.ones(2, dtype=dtype, device=device)
    other = Tensor(other, device=device) if isinstance(other, np.ndarray) else other
    with pytest.raises((TypeError, ValueError), match=f"in place: {message}"):
        getattr(operator, name)(x, other)


# Python's numbers


def test_conversions_to_numbers_are_those_of_python(device: str) -> None:
    assert [
        bool(Tensor(v, device=device)) for v in (0.0, -0.0, float("nan"), float("inf"), 1j, 0j)
    ] == [False, False, True, True, True, False]
    x = Tensor([2.5, -1.7], device=device)
    assert (float(x[0]), int(x[1]), complex(x[0]), x[0].item(), len(x), 2.5 in x) == (
        2.5,
        -1,
        2.5 + 0j,
        2.5,
        2,
        True,
    )
    assert int(Tensor(True, device=device)) == 1 and [10, 20, 30][Tensor(1, device=device)] == 20
    assert [row.tolist() for row in Tensor([[1, 2], [3, 4]], device=device)] == [[1, 2], [3, 4]]


INDEX = "TypeError: index: expected a 0-d tensor of integers"


@pytest.mark.parametrize(
    ("call", "error"),
    [
        *[(f"{kind}(xp.asarray(1j))", "TypeError: ") for kind in ("int", "float")],
        ("int(xp.asarray(float('inf')))", "OverflowError: "),
        ("int(xp.asarray(float('nan')))", "ValueError: "),
        *[(f"[1, 2][xp.asarray({value})]", INDEX) for value in ("1.0", "True", "[1]")],
    ],
)
def test_conversion_without_a_value_is_refused(call: str, error: str, device: str) -> None:
    with xgrad.default_device(device):
        check_error(call, error)


def test_conversions_of_tensors_with_a_gradient_warn_only_on_demand() -> None:
    x = leaf([1.5])
    lossy: dict[str, Any] = {
        "float": float,
        "complex": complex,
        "item": Tensor.item,
        "tolist": Tensor.tolist,
    }
    harmless = [int, bool, repr, lambda x: f"{x:.2f}", lambda x: float(x.detach())]
    for convert in (*lossy.values(), *harmless):
        convert(x)  # warnings are errors
    with warn_lost_gradients():
        for name, convert in lossy.items():
            with pytest.warns(
                LostGradientWarning, match=f"{name}: this tensor needs a gradient, which is lost"
            ):
                convert(x)
        for convert in harmless:
            convert(x)
        with xgrad.no_grad():
            float(2 * x), float(x)
        xgrad.linspace(x[0], 2.0, 3)
        xgrad.arange(0.0, x[0])
    x.item()

    @warn_lost_gradients()
    def decorated() -> float:
        return float(x)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        decorated()
    line = decorated.__wrapped__.__code__.co_firstlineno + 2
    assert (caught[0].filename, caught[0].lineno) == (__file__, line)


@pytest.mark.parametrize(
    "convert", [np.asarray, np.unwrap, np.ediff1d, lambda t: t.numpy(), lambda t: np.array([t])]
)
def test_error_of_a_numpy_conversion_names_the_line(convert: Any) -> None:
    with pytest.raises((RuntimeError, TypeError), match=r"functions? of xgrad.*, at ") as caught:
        convert(leaf())
    file, _, line = str(caught.value).rpartition(" at ")[2].rpartition(":")
    lines = {entry.lineno + 1 for entry in caught.traceback if str(entry.path) == __file__}
    assert file == __file__ and int(line) in lines


# Assignment

MASK = np.array([[True, False, True], [False, True, True]])
KEYS: list[Any] = [
    1,
    -1,
    (),
    ...,
    None,
    slice(None, None, 2),
    slice(None, None, -1),
    (slice(None), 1),
    (0, 2),
    (..., 1),
    (None, 0),
    (slice(1, None), ..., slice(None, 2)),
    (1, None, slice(None)),
    np.array([1, 0]),
    np.array(True),
    np.array(1),
    (np.array([1, 0]), np.array([2, 0])),
    (slice(None), np.array([2, 0])),
    (np.array([1, 0]), slice(0, 2)),
    (np.array([[1], [0]]), np.array([0, 2])),
    (1, np.array([0, 2])),
    MASK,
    (0, MASK[0]),
    (slice(None), MASK[1]),
    ([1, 0], 2),
]


def skip_unsupported(key: Any, device: str) -> None:
    parts = key if isinstance(key, tuple) else (key,)
    arrays = any(isinstance(part, (list, np.ndarray)) for part in parts)
    whole = not arrays and (... in parts or len(parts) == 2) and None not in parts
    if device.startswith("strict") and not whole:
        pytest.skip("array-api-strict takes neither arrays here nor keys for some of the axes")
    if device.startswith("torch") and any(
        isinstance(part, slice) and (part.step or 1) < 0 for part in parts
    ):
        pytest.skip("PyTorch's arrays take no negative steps")


def key_on(device: str, key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple([key_on(device, part) for part in key])
    return Tensor(key, device=device) if isinstance(key, np.ndarray) else key


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_assignment_by_every_key_has_values_of_numpy_and_gradients(key: Any, device: str) -> None:
    skip_unsupported(key, device)
    a, k = np.arange(6.0).reshape(2, 3), key_on(device, key)
    v = np.random.default_rng(0).normal(size=a[key].shape)
    x, value = (leaf(t, device=device) for t in (a, v))

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


@pytest.mark.parametrize(
    "key", [[0, 0, 2], ([1, 1, 0], [2, 2, 2]), (slice(None), [0, 0])], ids=repr
)
def test_gradient_of_a_repeated_index_goes_to_the_last_value(key: Any) -> None:
    a = np.arange(9.0).reshape(3, 3)
    x, v = leaf(a), leaf(np.ones(a[key].shape) + np.arange(a[key].size).reshape(a[key].shape))

    def assigned(x: Tensor, v: Tensor) -> Tensor:
        y = x * 1
        y[key] = v * v
        return y

    expected = a.copy()
    expected[key] = v.detach().numpy() ** 2
    np.testing.assert_array_equal(assigned(x, v).tolist(), expected)
    assert gradcheck(assigned, (x, v)) and gradgradcheck(assigned, (x, v))


def test_assignment_after_a_use_leaves_the_saved_value_alone(device: str) -> None:
    x, v = leaf([1.0, 2.0, 3.0], device=device), leaf(10.0, device=device)
    y = alias = x * 2
    before = y * y  # keeps the value that y has now
    y[1] = v
    y += 1
    assert alias is y and y.tolist() == [3, 11, 7]
    (before.sum() + y.sum()).backward()
    assert (x.grad.tolist(), v.grad.item()) == ([8 + 2, 16, 24 + 2], 1)


@pytest.mark.parametrize(
    "key", [..., slice(None), (..., slice(None)), np.array([True, True])], ids=str
)
def test_wholly_replaced_values_have_zero_gradients(key: Any, device: str) -> None:
    if device == "strict" and isinstance(key, np.ndarray):
        pytest.skip("the flags of strict forbid masks")
    x = xgrad.ones(2, device=device, requires_grad=True)
    y = xgrad.sqrt(x - 1)  # of infinite derivative
    y[key] = 3 * x
    y.sum().backward()
    assert x.grad.tolist() == [3, 3]
    y = xgrad.sqrt(x - 1)
    y[key] = 5.0
    (y * y).sum().backward()  # which is part of the graph, however many elements a mask selects
    assert x.grad.tolist() == [3, 3]
    x.grad = None
    for write in (lambda y: y.__setitem__(key, 5.0), lambda y: y[None, ...].__setitem__(..., 5.0)):
        y = xgrad.sqrt(x - 1)
        write(y)
        y.sum().backward()
        assert x.grad.tolist() == [0, 0]  # zeros, not None: momentum and weight decay go on
        z = xgrad.sqrt(x - 1)
        y = z * 1
        write(y)
        assert xgrad.autograd.grad(y.sum(), z)[0].tolist() == [0, 0]
    assert xgrad.grad(lambda x: y.__setitem__(key, x) or (y**3).sum())(2 * x.detach()).tolist() == [
        12,
        12,
    ]


def test_index_add_sums_values_at_repeated_indices(device: str) -> None:
    x, v = leaf(np.zeros(3), device=device), Tensor([1.0, 2.0, 4.0], device=device)
    key = Tensor([0, 0, 2], device=device)
    y = xgrad.ops.index_add(x, key, v)
    assert (y.tolist(), y.dtype) == ([3, 0, 4], xgrad.float64)
    assert xgrad.ops.index_add(x, key, 0.1).tolist() == [0.2, 0, 0.1]
    with pytest.raises((ValueError, RuntimeError), match=r"broadcast_to: .*got x of shape \(2,\)"):
        xgrad.ops.index_add(x, key, xgrad.ones(2, device=device))


@pytest.mark.parametrize(
    ("dtype", "value"), [("int64", 1.5), ("int64", 1j), ("float32", 1j), ("bool", 2)]
)
def test_assigned_value_of_a_higher_kind_is_refused(dtype: str, value: Any, device: str) -> None:
    x = xgrad.zeros(2, dtype=dtype, device=device)
    for wrong in (value, Tensor(value, device=device)):
        with pytest.raises(TypeError, match=f"setitem: expected .* for x of {dtype}, got"):
            x[0] = wrong
    with pytest.raises(
        ValueError, match=r"setitem: expected a value that broadcasts to shape \(2,\)"
    ):
        x[:] = xgrad.ones((1, 2), dtype=dtype, device=device)
    x[0] = True
    assert x.tolist() == [1, 0] and x.dtype == dtype
