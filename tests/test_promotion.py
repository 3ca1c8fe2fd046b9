"""Dtypes of results, compared with the standard's promotion tables and array-api-strict.

Mixed kinds, which the standard leaves undefined, are compared with known dtypes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad import Tensor

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS, COMPLEX = ["float32", "float64"], ["complex64", "complex128"]
REALS, NUMBERS = INTEGERS + FLOATS, INTEGERS + FLOATS + COMPLEX
EVERY = ["bool", *NUMBERS]

# The tables of the standard, which are NumPy's within a kind; uint64 has no common dtype with
# signed integers.
PROMOTED = {
    (a, b): promoted
    for kind in (["bool"], INTEGERS, FLOATS + COMPLEX)
    for a in kind
    for b in kind
    if (promoted := str(np.result_type(a, b))) in kind
}

BINARY: list[tuple[str, list[str]]] = [
    *[(name, NUMBERS) for name in ("add", "subtract", "multiply", "pow")],
    *[(name, REALS) for name in ("floor_divide", "remainder", "maximum", "minimum")],
    ("divide", FLOATS + COMPLEX),
    *[(name, FLOATS) for name in ("atan2", "copysign", "hypot", "nextafter")],
    ("logaddexp", FLOATS + COMPLEX),
    *[(name, INTEGERS) for name in ("bitwise_left_shift", "bitwise_right_shift")],
    *[(name, ["bool", *INTEGERS]) for name in ("bitwise_and", "bitwise_or", "bitwise_xor")],
    *[(name, ["bool"]) for name in ("logical_and", "logical_or", "logical_xor")],
    *[(name, EVERY) for name in ("equal", "not_equal")],
    *[(name, REALS) for name in ("less", "less_equal", "greater", "greater_equal")],
]
OPERATORS = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "pow": operator.pow,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "bitwise_left_shift": operator.lshift,
    "bitwise_right_shift": operator.rshift,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}
ANALYTIC = """
acos acosh asin asinh atan atanh conj cos cosh exp expm1 log log10 log1p log2 reciprocal sin sinh
sqrt tan tanh
""".split()
TO_BOOL = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}

# PyTorch has few kernels for these: neither sums nor comparisons.
NOT_ON_TORCH = {"uint16", "uint32", "uint64"}


def has(device: str, *dtypes: str) -> bool:
    """Return whether a device computes in these dtypes."""
    return not device.startswith("torch") or not NOT_ON_TORCH & set(dtypes)


def spellings(name: str) -> list[Callable[..., Any]]:
    return [getattr(xgrad, name), *([OPERATORS[name]] if name in OPERATORS else [])]


@pytest.mark.parametrize(("name", "dtypes"), BINARY)
def test_arrays_promote_by_the_tables(name: str, dtypes: list[str], device: str) -> None:
    for (one, other), promoted in PROMOTED.items():
        if {one, other} <= set(dtypes) and has(device, one, other, promoted):
            for shape in ((2,), ()):  # PyTorch's own arrays of 0 dimensions promote nothing
                x1 = xgrad.ones(2, dtype=one, device=device)
                x2 = xgrad.ones(shape, dtype=other, device=device)
                for fn in spellings(name):
                    assert fn(x1, x2).dtype == ("bool" if name in TO_BOOL else promoted), (
                        one,
                        other,
                        shape,
                    )
                    assert fn(x2, x1).dtype == ("bool" if name in TO_BOOL else promoted), (
                        other,
                        one,
                        shape,
                    )


def kinds(dtype: str) -> list[Any]:
    """Return the Python scalars that the standard lets an array of a dtype meet."""
    if dtype == "bool":
        return [True]
    return [1, *([1.0] if dtype in FLOATS + COMPLEX else []), *([1j] if dtype in COMPLEX else [])]


@pytest.mark.parametrize(("name", "dtypes"), BINARY)
def test_python_scalars_do_not_promote_arrays(name: str, dtypes: list[str], device: str) -> None:
    for dtype in dtypes:
        if not has(device, dtype):
            continue
        x = xgrad.ones(2, dtype=dtype, device=device)
        for scalar in kinds(dtype):
            for fn in spellings(name):
                assert fn(x, scalar).dtype == ("bool" if name in TO_BOOL else dtype), (
                    dtype,
                    scalar,
                )
                assert fn(scalar, x).dtype == ("bool" if name in TO_BOOL else dtype), (
                    scalar,
                    dtype,
                )


@pytest.mark.parametrize(("real", "complex_"), [*zip(FLOATS, COMPLEX, strict=True)])
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "pow"])
def test_complex_scalar_makes_floats_complex(
    name: str, real: str, complex_: str, device: str
) -> None:
    x = xgrad.ones(2, dtype=real, device=device)
    for fn in spellings(name):
        assert fn(x, 1j).dtype == fn(1j, x).dtype == complex_


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        *[(a, b, b) for a in ("bool", *INTEGERS) for b in FLOATS + COMPLEX],
        *[("bool", b, b) for b in INTEGERS],
        *[(a, 1.5, "float32") for a in ("bool", *INTEGERS)],
        *[(a, 1j, "complex64") for a in ("bool", *INTEGERS)],
        *[(a, True, a) for a in NUMBERS],
        ("bool", 1, "int64"),
    ],
)
def test_mixed_kinds_never_become_float64(one: str, other: Any, expected: str, device: str) -> None:
    x1 = xgrad.ones(2, dtype=one, device=device)
    x2 = xgrad.ones(2, dtype=other, device=device) if isinstance(other, str) else other
    if has(device, expected):
        assert (x1 + x2).dtype == (x2 + x1).dtype == xgrad.multiply(x1, x2).dtype == expected


@pytest.mark.parametrize("name", ["add", "multiply"])
def test_sum_and_product_of_bools_are_bools_as_in_numpy(name: str, device: str) -> None:
    x, y = np.array([True, True, False, False]), np.array([True, False, True, False])
    a, b = xgrad.asarray(x, device=device), xgrad.asarray(y, device=device)
    for fn in spellings(name):
        assert fn(a, b).dtype == fn(a, True).dtype == fn(False, b).dtype == xgrad.bool
        assert fn(a, b).tolist() == getattr(np, name)(x, y).tolist()
        assert fn(a, True).tolist() == getattr(np, name)(x, True).tolist()
        assert (
            fn(a, 1).dtype
            == fn(a, xgrad.ones(4, dtype=xgrad.int64, device=device)).dtype
            == xgrad.int64
        )
    a += b
    assert a.dtype == xgrad.bool and xgrad.arange(4, device="cpu")[(a + b).to("cpu")].tolist() == [
        0,
        1,
        2,
    ]


def test_floating_functions_of_integers_are_float32(device: str) -> None:
    x = xgrad.ones(2, dtype=xgrad.int64, device=device)
    for name in ("divide", "atan2", "hypot", "copysign", "logaddexp", "nextafter"):
        assert getattr(xgrad, name)(x, x).dtype == xgrad.float32
    for name in {*ANALYTIC} - {"acosh", "atanh", "conj"}:
        assert getattr(xgrad, name)(x).dtype == xgrad.float32


SAME: list[tuple[str, list[str], str]] = [
    *[(name, REALS, "same") for name in ("ceil", "floor", "trunc")],
    *[(name, NUMBERS, "same") for name in ("negative", "positive", "round", "sign", "square")],
    *[(name, FLOATS + COMPLEX, "same") for name in ANALYTIC],
    ("abs", NUMBERS, "real"),
    ("real", FLOATS + COMPLEX, "real"),
    ("imag", COMPLEX, "real"),
    *[(name, NUMBERS, "bool") for name in ("isfinite", "isinf", "isnan")],
    ("signbit", FLOATS, "bool"),
    ("bitwise_invert", ["bool", *INTEGERS], "same"),
    ("logical_not", ["bool"], "same"),
]


@pytest.mark.filterwarnings("ignore:divide by zero")  # by atanh
@pytest.mark.parametrize(("name", "dtypes", "result"), SAME)
def test_dtype_of_functions_of_one_array(
    name: str, dtypes: list[str], result: str, device: str
) -> None:
    for dtype in dtypes:
        if has(device, dtype):
            got = getattr(xgrad, name)(xgrad.ones(2, dtype=dtype, device=device)).dtype
            real = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
            assert got == {"same": dtype, "real": real, "bool": "bool"}[result], dtype


@pytest.mark.parametrize("bound", ["float64", "float32"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_clip_keeps_the_dtype_of_its_input(dtype: str, bound: str, device: str) -> None:
    x = Tensor([-2.0, 0.5, 2.0], dtype=dtype, device=device, requires_grad=True)
    low = Tensor([[-1.0], [1.0]], dtype=bound, device=device, requires_grad=True)
    out = xgrad.clip(x, low, max=1.5)
    assert (out.dtype, out.tolist()) == (dtype, [[-1, 0.5, 1.5], [1, 1, 1.5]])
    out.sum().backward()
    assert x.grad is not None and low.grad is not None
    assert (x.grad.dtype, x.grad.tolist(), low.grad.dtype, low.grad.tolist()) == (
        dtype,
        [0, 1, 0],
        bound,
        [[1], [2]],
    )
    small = Tensor([-2, 5], dtype="int8", device=device)
    assert xgrad.clip(small, min=Tensor(0, dtype="int64", device=device)).dtype == "int8"
    assert xgrad.clip(small).tolist() == [-2, 5]


REAL_ONLY = [name for name, dtypes in BINARY if dtypes in (REALS, FLOATS)]


@pytest.mark.parametrize("name", REAL_ONLY)
def test_complex_numbers_are_refused_by_real_functions(name: str, device: str) -> None:
    z, x = xgrad.ones(2, dtype="complex64", device=device), xgrad.ones(2, device=device)
    for inputs in ((z, z), (z, 1.0), (x, 1j), (1j, x), (x, z)):
        with pytest.raises(
            TypeError, match=rf"{name}: expected real numbers, got .*(complex64|1j)"
        ):
            getattr(xgrad, name)(*inputs)
    for unary in ("floor", "ceil", "trunc", "signbit", "relu", "softplus", "clip"):
        with pytest.raises(TypeError, match=f"{unary}: expected real numbers, got complex64"):
            getattr(xgrad, unary)(z)
    with pytest.raises(
        TypeError, match=r"bitwise_and: expected integers or bools, got int64, 1\.5"
    ):
        xgrad.asarray([1, 2], device=device) & 1.5


def test_tables_are_those_of_array_api_strict() -> None:
    strict: Any = pytest.importorskip("array_api_strict")
    for (one, other), promoted in PROMOTED.items():
        assert strict.result_type(getattr(strict, one), getattr(strict, other)) == getattr(
            strict, promoted
        )
    assert len(PROMOTED) == 1 + 16 + 16 + 16 + 24


def test_nextafter_has_the_values_of_numpy(device: str) -> None:
    for dtype in FLOATS:
        values = np.array([0.0, 1, -1, 5, np.inf, np.nan], dtype)
        towards = np.array([1.0, 2, -2, 5, 0, 1], dtype)
        if device == "cuda":
            values[0], towards[0] = 2, 3  # for a GPU has no denormals of float32
        got = xgrad.nextafter(
            xgrad.asarray(values, device=device), xgrad.asarray(towards, device=device)
        )
        np.testing.assert_array_equal(got.cpu().numpy(), np.nextafter(values, towards))
    assert not xgrad.nextafter(Tensor(1.0, requires_grad=True), 2.0).requires_grad
