"""Functions of the standard that are faster than NumPy's, or correct for special values."""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from xgrad.core.dtypes import SCALARS
from xgrad_numpy.sums import summed_side

_BLAS = frozenset(map(np.dtype, ("float32", "float64")))
_BITS: dict[Any, Any] = {
    np.dtype("float32"): np.dtype("int32"),
    np.dtype("float64"): np.dtype("int64"),
}
_MINUS_ZERO = {
    dtype: np.array(complex(-0.0, 0.0), dtype)
    for dtype in map(np.dtype, ("complex64", "complex128"))
}
_FLOAT16, _FLOAT32, _FLOAT64 = map(np.dtype, ("float16", "float32", "float64"))
_NUMBERS = frozenset({int, float})
#: By dtype of random bits: unsigned integers, the number of bits that a float does not hold, and
#: the unit of the other bits.
_UNIFORM = {
    np.dtype(f"int{bits}"): (
        np.dtype(f"uint{bits}"),
        np.array(spare, f"uint{bits}"),
        np.array(unit, f"float{bits}"),
    )
    for bits, spare, unit in ((32, 8, 2.0**-24), (64, 11, 2.0**-53))
}
_maximum: Any = np.maximum.reduce
_minimum: Any = np.minimum.reduce
_LARGE = 1 << 10  # elements from which fewer mispredicted branches outweigh more calls
_MANY = 1 << 16  # elements up to which constants are cached
_FEW = 16  # elements from which products are faster than NumPy's power
_LARGEST_WHOLE = 1 << 24  # float32 represents all integers up to this one


def max(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the largest element, without NumPy's wrapper.

    The maximum of each row is taken at its index, which is found 2 to 5 times as fast.
    """
    rows = x.size >= _LARGE and axis is not None and has_rows(x, axis, x.flags.c_contiguous)
    return _of_rows(x, x.argmax, keepdims) if rows else _maximum(x, axis, None, None, keepdims)


def min(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the smallest element, without NumPy's wrapper; for each row at its index, as `max`."""
    rows = x.size >= _LARGE and axis is not None and has_rows(x, axis, x.flags.c_contiguous)
    return _of_rows(x, x.argmin, keepdims) if rows else _minimum(x, axis, None, None, keepdims)


def has_rows(x: Any, axis: Any, contiguous: bool) -> bool:
    """Return whether `max` finds indices: for the last axis of many contiguous floats."""
    return summed_side(x, axis, contiguous, False) == 1 and math.prod(x.shape) >= _LARGE


def _of_rows(x: Any, find: Any, keepdims: bool, out: Any = None) -> Any:
    """Return the element of each row at the index that `argmax` or `argmin` finds."""
    indices = find(-1)
    flat = indices.reshape(-1)
    flat += np.arange(0, x.size, x.shape[-1])
    # "raise" would copy `out`
    out = x.reshape(-1).take(indices, None, out, "raise" if out is None else "clip")
    return out[..., None] if keepdims else out


def largest_of_rows(x: Any, out: Any) -> None:
    """Write the largest element of each row of a contiguous matrix to a vector, as `max` does."""
    _of_rows(x, x.argmax, False, out)


def smallest_of_rows(x: Any, out: Any) -> None:
    """Write the smallest element of each row of a contiguous matrix to a vector, as `min` does."""
    _of_rows(x, x.argmin, False, out)


@cache
def _compiled_rule() -> Any:
    from xgrad_numpy.native.rule_kernels import find  # not at the top: it starts a compiler

    return find


# Methods and attributes: the lookup of NumPy's functions of these names takes longer than the
# functions themselves.


def matrix_transpose(x: Any, /) -> Any:
    """Exchange the last two axes."""
    return x.mT


def reshape(x: Any, /, shape: Any, *, copy: bool | None = None) -> Any:
    """Return the elements in another shape."""
    if copy is None:
        return x.reshape(shape)
    # numpy.reshape has no `copy` before 2.1
    return import_module("array_api_compat.numpy").reshape(x, shape, copy=copy)


def stack(arrays: Sequence[Any], /, *, axis: int = 0) -> Any:
    """Join arrays along a new axis, in C order.

    `numpy.stack` keeps the memory order of its inputs, so that a reshape that follows often copies.
    If the first input is in C order already, the result of `numpy.stack` is too.
    """
    first = arrays[0]
    if first.flags.c_contiguous:
        return np.stack(arrays, axis)
    shape = list(first.shape)
    shape.insert(axis if axis >= 0 else axis + first.ndim + 1, len(arrays))
    return np.stack(arrays, axis, np.empty(shape, np.result_type(*arrays)))


def squeeze(x: Any, /, axis: Any) -> Any:
    """Remove axes of length 1."""
    return x.squeeze(axis)


def expand_dims(x: Any, /, *, axis: int = 0) -> Any:
    """Insert an axis of length 1."""
    return (
        x[..., None]
        if axis == -1
        else x[(slice(None),) * axis + (None,)]
        if axis >= 0
        else np.expand_dims(x, axis)
    )


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """Convert an array to a dtype; also a scalar, which NumPy 2.0 refuses."""
    return x.astype(dtype, copy=copy)


def where(condition: Any, x1: Any, x2: Any, /) -> Any:
    """Return `x1` where a condition holds, `x2` elsewhere.

    For large arrays this is arithmetic on bits, exact for every value, and 5 to 20 times as fast:
    NumPy branches at each element, and half of the branches are mispredicted for a random mask.
    """
    if getattr(condition, "size", 0) >= _LARGE and condition.dtype == bool:
        swap = type(x1) is int and x1 == 0
        x, other = (x2, x1) if swap else (x1, x2)
        if (
            type(other) is int
            and other == 0
            and np.shape(x) == condition.shape
            and x.dtype in _BITS
        ):
            out = np.empty_like(condition, x.dtype)
            np.multiply(
                x.view(_BITS[x.dtype]), ~condition if swap else condition, out.view(_BITS[x.dtype])
            )
            return out
        bits, others = _bits(x1, x2, condition), _bits(x2, x1, condition)
        if bits is not None and others is not None:
            differences = np.bitwise_xor(bits, others)
            np.multiply(differences, condition, differences)
            differences ^= others
            return differences.view(x1.dtype if type(x1) is np.ndarray else x2.dtype)
    elif _few_zeros(condition, x1, x2):
        out = x2.copy("K")
        np.putmask(out, condition, 0)
        return out
    return np.where(condition, x1, x2)


def _bits(x: Any, other: Any, condition: Any) -> Any:
    """Return the bits of an operand of `where`; None if it cannot be taken by its bits.

    The operand is an array of the shape of the condition, or a number beside an array.
    """
    if type(x) in _NUMBERS and type(other) is np.ndarray and other.dtype in _BITS:
        return other.dtype.type(x).view(_BITS[other.dtype])
    if (
        type(x) is not np.ndarray
        or x.dtype not in _BITS
        or x.shape != condition.shape
        or not x.flags.c_contiguous
    ):
        return None
    return (
        x.view(_BITS[x.dtype])
        if type(other) in _NUMBERS or getattr(other, "dtype", None) == x.dtype
        else None
    )


def _few_zeros(condition: Any, x1: Any, x2: Any) -> bool:
    """Return whether 0 replaces elements of a small array.

    The array must have the layout of the result of `np.where`.
    """
    arrays = type(condition) is type(x2) is np.ndarray and type(x1) is int and x1 == 0
    if (
        not arrays
        or x2.shape != condition.shape
        or x2.dtype not in _BITS
        or condition.dtype != bool
    ):
        return False
    return bool(x2.flags.c_contiguous and condition.flags.c_contiguous)


def clip(x: Any, min: Any = None, max: Any = None, /) -> Any:
    """Limit elements to an interval; in one pass if both ends are numbers."""
    if getattr(x, "size", 0) >= _LARGE and type(min) in _NUMBERS and type(max) in _NUMBERS:
        return x.clip(min, max)
    x = x if min is None else np.maximum(x, min)
    return +x if max is None else np.minimum(x, max)


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Sort; by a faster unstable sort unless the order of zeros of both signs would be visible."""
    visible = (
        stable and x.dtype.kind == "f" and (x.size < _LARGE or ((x == 0) & np.signbit(x)).any())
    )
    out = np.sort(x, axis, "stable" if visible else None)
    return np.flip(out, axis) if descending else out


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Return the indices that sort an array.

    Many float32 are sorted as pairs of number and index in an int64, which needs no stable sort.
    """
    if (
        x.dtype != _FLOAT32
        or x.size < _LARGE
        or not -x.ndim <= axis < x.ndim
        or x.shape[axis] >= 1 << 31
    ):
        if descending:
            order = np.flip(np.argsort(np.flip(x, axis), axis, "stable"), axis)
            return x.shape[axis] - 1 - order
        return np.argsort(x, axis, "stable")
    bits = (x + 0.0).view(np.int32)  # -0. gets the bits of 0.
    bits[np.isnan(x)] = np.float32(np.nan).view(np.int32)
    ranks = bits ^ ((bits >> 31) & 0x7FFFFFFF)  # integers in the order of the numbers
    pairs = np.moveaxis(
        (~ranks if descending else ranks).astype(np.int64) << 32, axis, -1
    ) | np.arange(x.shape[axis])
    pairs.sort(-1)
    return np.moveaxis(pairs & 0xFFFFFFFF, -1, axis)


def index_add(x: Any, key: Any, values: Any) -> Any:
    """Add values at indices that may repeat.

    Rows are added as single elements, for which NumPy is 4 to 10 times as fast.
    """
    parts = key if isinstance(key, tuple) else (key,)
    arrays = [part for part in parts if isinstance(part, np.ndarray) and part.dtype != bool]
    if not arrays:  # no index repeats
        x[key] += values
    elif x.dtype == _FLOAT16:  # in float32: a sum in float16 stays at 2048
        x[...] = index_add(x.astype(_FLOAT32), key, values)
    elif len(parts) == 1 < x.ndim and x.size and x.flags.c_contiguous:
        rows, inner = arrays[0].astype(np.intp, copy=False), x.shape[1:]
        elements = rows[..., None] * math.prod(inner) + np.arange(math.prod(inner))
        np.add.at(
            x.reshape(-1), elements.ravel(), np.broadcast_to(values, (*rows.shape, *inner)).ravel()
        )
    else:
        np.add.at(x, key, values)
    return x


def relu(x: Any, /) -> Any:
    """Return the positive part.

    NumPy compares with an array or a row of zeros 3 times as fast as with a single zero.
    """
    if not x.ndim or x.dtype not in _BITS:
        return np.maximum(x, 0)
    if x.size <= _MANY:
        return np.maximum(x, _zeros(x.shape, x.dtype))
    compiled = _compiled_rule()("relu", [x])
    return np.maximum(x, _zeros(x.shape[-1:], x.dtype)) if compiled is None else compiled([x])


def uniform(bits: Any, dtype: Any) -> Any:
    """Return uniform floats over [0, 1): see `xgrad.random.variates`.

    An unsigned shift of the bits needs no mask.
    """
    unsigned, spare, unit = _UNIFORM[bits.dtype]
    numbers = (bits.view(unsigned) >> spare).view(bits.dtype).astype(dtype)
    numbers *= unit
    return numbers


@lru_cache(16)
def _zeros(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return np.zeros(shape, dtype)


def has_own_power(dtype: Any, size: int, exponent: Any) -> bool:
    """Return whether `pow` computes a power itself, not by NumPy's operator.

    NumPy's operator has fast paths for exponents from -1 to 2.
    """
    if size < _FEW or type(exponent) not in _NUMBERS or exponent % 1 or -2 < exponent <= 2:
        return False
    return dtype in _BLAS and -_LARGEST_WHOLE <= exponent <= _LARGEST_WHOLE


def pow(x1: Any, x2: Any, /, out: Any = None) -> Any:
    """Raise to a power; floats to a whole power by products, or by magnitude and sign.

    For a power of a negative float NumPy takes up to 60 times as long as for a positive one.
    Products are within 2 ULP up to the fourth power.
    """
    if type(x2) not in _NUMBERS:
        return x1**x2 if type(x1) in SCALARS or type(x2) in SCALARS else np.power(x1, x2)
    if not has_own_power(x1.dtype, x1.size, x2):
        return x1**x2
    if x2 == -2:
        out = np.reciprocal(x1, out)
        return np.square(out, out)
    if 0 < x2 <= 4:
        square = np.square(x1, out)
        return np.multiply(square, x1 if x2 == 3 else square, square)
    if x1.item(x1.argmin()) >= 0:  # false for NaN, too
        return np.power(x1, x2, out)
    out = np.abs(x1, out)
    np.power(out, x2, out)
    return np.copysign(out, x1, out) if x2 % 2 else out


# Special values: one fast check of the operands, and a slow path only if an element is infinite or
# NaN.


def _finite(x: Any) -> bool:
    """Return whether all numbers are finite; a finite sum of squares proves it for many.

    The check does not warn. It does not depend on floating-point flags either, which some functions
    of NumPy and BLAS do not raise.
    """
    if type(x) in _NUMBERS:
        return cmath.isfinite(x)
    if x.size == 1:
        return cmath.isfinite(x.item())
    if x.dtype.kind in "iu" or (x.size >= _LARGE and cmath.isfinite(np.vdot(x, x))):
        return True
    return b"\0" not in np.isfinite(x).tobytes()


def floor_divide(x1: Any, x2: Any, /) -> Any:
    """Return the quotient rounded down; for an infinite operand, the quotient itself.

    NumPy gives NaN or -1 for an infinite operand.
    """
    if _finite(x1) and _finite(x2):
        return np.floor_divide(x1, x2)
    with np.errstate(invalid="ignore"):
        out = np.asarray(np.floor_divide(x1, x2))
    return np.divide(x1, x2, out=out, where=np.isinf(x1) | np.isinf(x2))


def expm1(x: Any, /) -> Any:
    """Return exp(x) - 1.

    For complex numbers the result for -0. is 0, and for an infinite or NaN part it is exp(x) - 1
    computed with `exp`.
    """
    if ((finite := _finite(x)) and x.size == 1 and x.item()) or x.dtype.kind != "c":
        return np.expm1(x)
    if finite:
        out = np.asarray(np.expm1(x))
    else:
        with np.errstate(invalid="ignore"):
            out, special = np.asarray(np.expm1(x)), ~np.isfinite(x)
            out[special] = np.exp(x[special]) - 1
    return np.subtract(out, _MINUS_ZERO[out.dtype], out)


def tanh(x: Any, /) -> Any:
    """Return the hyperbolic tangent.

    For an infinite real part the imaginary part keeps its sign, unlike in C.
    """
    if _finite(x) or x.dtype.kind != "c":
        return np.tanh(x)
    with np.errstate(invalid="ignore"):
        out = np.asarray(np.tanh(x))
    np.copysign(0, x.imag, out=out.imag, where=np.isinf(x.real))
    return out
