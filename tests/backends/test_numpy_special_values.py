"""Kernels of the NumPy backend that check for infinities and NaNs, compared with generic rules."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad_numpy import functions

SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.5, -7.25, 1e-30, 1e30, np.inf, -np.inf, np.nan]
VIEWS: dict[str, Any] = {
    "a row": lambda x: x,
    "one element": lambda x: x[80:81],
    "no axes": lambda x: x[80],
    "no elements": lambda x: x[:0],
    "reversed": lambda x: x[::-1],
    "every other": lambda x: x[::2],
    "a matrix": lambda x: x[:120].reshape(10, 12),
    "a transposed matrix": lambda x: x[:120].reshape(10, 12).T,
}
FLOATS, COMPLEX = ["float16", "float32", "float64"], ["complex64", "complex128"]


def pairs(finite: bool) -> np.ndarray:
    """Return every pair of special numbers, or of the finite ones of them, as two rows of 121."""
    table = np.array(list(itertools.product(SPECIAL, repeat=2)))
    return np.resize(table[np.isfinite(table).all(1)] if finite else table, (121, 2)).T


def check(name: str, *inputs: Any) -> None:
    """Compare the bits and the layout of the results of a kernel and of the generic rule."""
    cpu = xgrad.Device("cpu")
    function = getattr(xgrad, name).function
    with np.errstate(all="ignore"):
        result, expected = cpu.backend.kernels[name](*inputs), function.forward(cpu.xp, *inputs)
    result, expected = np.asarray(result), np.asarray(expected)
    assert result.strides == expected.strides
    for x, y in ((result.real, expected.real), (result.imag, expected.imag)):
        np.testing.assert_array_equal(x, y, strict=True)
        assert (np.signbit(x) == np.signbit(y))[y == y].all()


@pytest.mark.parametrize("finite", [False, True])
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_kernels_of_real_numbers_have_the_bits_of_the_generic_rules(
    dtype: str, view: str, finite: bool
) -> None:
    with np.errstate(over="ignore"):
        x1, x2 = (VIEWS[view](x) for x in pairs(finite).astype(dtype))
    for name in ("floor_divide", "remainder"):
        check(name, x1, x2)
        for number in (-2, 2.5, np.inf, -np.inf, np.nan):
            check(name, x1, number)
            check(name, number, x2)
    check("expm1", x1)
    check("tanh", x1)


@pytest.mark.parametrize("finite", [False, True])
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", COMPLEX)
def test_kernels_of_complex_numbers_have_the_bits_of_the_generic_rules(
    dtype: str, view: str, finite: bool
) -> None:
    x = np.empty(121, dtype)
    x.real, x.imag = pairs(finite)
    check("expm1", VIEWS[view](x))
    check("tanh", VIEWS[view](x))


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9, 31, 33, 64, 100, 1000, 20_001])
def test_infinity_or_nan_at_any_index_is_found(n: int, dtype: str) -> None:
    """Vector instructions, and threads of BLAS, depend on the length."""
    x = np.random.default_rng(n).normal(size=n).astype(dtype)
    for finite in (x, x[::-1], np.full(n, np.finfo(dtype).max, dtype)):
        assert functions._finite(finite)
    values = [np.inf, -np.inf, np.nan]
    values += (
        [complex(0, np.inf), complex(np.inf, -np.inf), complex(0, np.nan)]
        if dtype in COMPLEX
        else []
    )
    for value, at in itertools.product(values, {0, 1, 5, n // 2, n - 2, n - 1} & set(range(n))):
        x = np.ones(n, dtype)
        x[at] = value
        assert not functions._finite(x) and not functions._finite(np.stack([x, x]).T), (value, at)


@pytest.mark.parametrize("n", [1, 19])
@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("floor_divide", [np.inf, 2.0]),
        ("floor_divide", [-1.0, np.inf]),
        ("expm1", [complex(np.inf, 0)]),
        ("expm1", [complex(-np.inf, np.inf)]),
        ("tanh", [complex(np.inf, np.inf)]),
    ],
)
def test_result_other_than_nan_does_not_warn(name: str, inputs: list[Any], n: int) -> None:
    getattr(xgrad, name)(*[xgrad.asarray(np.full(n, x)) for x in inputs])


@pytest.mark.parametrize("numbers", [(np.inf, np.inf), (0.0, 0.0)])
def test_quotient_of_nan_warns(numbers: tuple[float, float]) -> None:
    x1, x2 = map(xgrad.asarray, numbers)
    with pytest.warns(RuntimeWarning, match="invalid value encountered"):
        x1 // x2


def test_floor_divide_of_leaves_is_not_recorded() -> None:
    x = xgrad.Tensor([7.0, -7.0], requires_grad=True)
    for _ in range(3):  # later ones on the fast path
        for out in (x // 2.0, x // x, 2.0 // x, xgrad.nextafter(x, x)):
            assert not out.requires_grad and out.dtype is x.dtype and out.device is x.device
