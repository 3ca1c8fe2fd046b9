"""Functions of the standard that are faster on NumPy than its function of the name, or right for special values."""

from __future__ import annotations

import cmath
import math
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from xgrad.core.dtypes import SCALARS

_BLAS = frozenset(map(np.dtype, ("float32", "float64")))
_BITS: dict[Any, Any] = {np.dtype("float32"): np.dtype("int32"), np.dtype("float64"): np.dtype("int64")}
_MINUS_ZERO = {dtype: np.array(complex(-0.0, 0.0), dtype) for dtype in map(np.dtype, ("complex64", "complex128"))}
_FLOAT16, _FLOAT32, _FLOAT64 = map(np.dtype, ("float16", "float32", "float64"))
_NUMBERS = frozenset({int, float})
#: Of random bits: unsigned integers, the number of bits that a float does not hold, and the unit of the others.
_UNIFORM = {
    np.dtype(f"int{bits}"): (np.dtype(f"uint{bits}"), np.array(spare, f"uint{bits}"), np.array(unit, f"float{bits}"))
    for bits, spare, unit in ((32, 8, 2.0**-24), (64, 11, 2.0**-53))
}
_add: Any = np.add.reduce
_accumulate: Any = np.add.accumulate
_mean: Any = np.mean  # NumPy 2.5 declares it for `keepdims=True` and `keepdims=False`, not for a bool
_cumulative_sum: Any = getattr(np, "cumulative_sum", None) or (  # not in NumPy 2.0
    lambda x, **options: import_module("array_api_compat.numpy").cumulative_sum(x, **options)
)
_maximum: Any = np.maximum.reduce
_minimum: Any = np.minimum.reduce
_LARGE = 1 << 10  # elements from which more calls and fewer mispredicted branches pay
_MANY = 1 << 16  # elements up to which constants are cached
_ROWS = 1 << 15  # rows up to which BLAS adds them in one call
_BLOCK = 1 << 12  # rows that BLAS adds at once of more
_FEW = 16  # elements from which products are faster than a power of NumPy, and BLAS is at adding up a row
_FEW_TO_ADD = 32  # elements from which BLAS is faster at adding up rows or columns
_LONGEST_ROW = 1 << 13  # elements of a row that BLAS adds up on one thread
_LARGEST_WHOLE = 1 << 24  # up to which float32 has all integers
_ALONE = 1 << 23  # multiplications above which panels are looked for on one thread
_BY_BLAS = 1 << 18  # multiplications above which BLAS uses several threads
_SIDE = 1 << 13  # elements that the first of the matrices has at least: one look for small ones
_SHARED_BY_VECTOR = 9216  # elements of a matrix from which BLAS multiplies it by a vector on several threads
_RUN = 1 << 16  # elements of a running sum in float32 before its total goes on in float64


class Sharing:
    """The size of a matrix product, in multiplications, above which native/eager_products.py may compute it.

    Whether there are `several` threads is known once the runtime of native code is loaded.
    """

    def __init__(self) -> None:
        self.above, self._threads = _ALONE, 1

    @property
    def several(self) -> bool:
        """Whether there are several threads."""
        return self._threads > 1

    def follow(self, threads: int) -> bool:
        """Set the size for a number of threads of BLAS, and return whether there were others before.

        With one, only large products are worth the question.
        """
        changed = threads != self._threads
        self.above, self._threads = _ALONE if threads == 1 else _BY_BLAS, threads
        return changed


sharing = Sharing()


def is_for_blas(ndim: int, size: int) -> bool:
    """Return whether BLAS may add the rows or the columns of an array: for few elements NumPy takes less time."""
    return ndim > 1 and size >= _FEW_TO_ADD


def summed_side(x: Any, axis: Any, contiguous: bool, transposed: bool) -> int | None:
    """Return the axis that a sum adds of an array seen as a matrix of rows; None if BLAS cannot add it.

    That is 1 for the last axis, or 0 for all others, as in the gradient of a bias. `transposed` is whether the array is
    contiguous with its axes reversed.
    """
    shape = x.shape
    n = len(shape)
    if n < 2 or 0 in shape or x.dtype not in _BLAS or not (contiguous or (n == 2 and transposed)):
        return None
    axes = axis if type(axis) is tuple else (axis,)
    if axes == (-1,) or axes == (n - 1,):
        return 1 if shape[-1] <= _LARGE else None
    if n == 2:
        return 0 if axes == (0,) and shape[0] <= _ROWS else None
    return 0 if axes == tuple(range(n - 1)) and math.prod(shape[:-1]) <= _ROWS else None


def has_many_rows(x: Any, axis: Any, contiguous: bool) -> bool:
    """Return whether `sum` adds an array as rows in blocks: along all axes but the last."""
    n = len(x.shape)
    axes = axis if type(axis) is tuple else (axis,)
    many = n >= 2 and contiguous and 0 not in x.shape and x.dtype in _BLAS
    return many and axes == tuple(range(n - 1)) and math.prod(x.shape[:-1]) > _ROWS


def sum_rows(rows: Any, out: Any = None) -> Any:
    """Return the sum of many rows, in blocks by BLAS.

    It is up to 20 times as fast as NumPy, which adds row by row, and its rounding errors grow with the block alone.
    """
    ones, count = _ones(_BLOCK, rows.dtype), len(rows) // _BLOCK
    blocks, rest = rows[: count * _BLOCK].reshape(count, _BLOCK, -1), rows[count * _BLOCK :]
    total = _add(np.matmul(ones, blocks), 0, _FLOAT64)
    total += rest.T.dot(ones[: len(rest)])
    if out is None:
        return total.astype(rows.dtype)
    out[...] = total
    return out


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Sum; along the last axis or all others by BLAS, 4 to 10 times as fast; float16 in float32."""
    if x.dtype is _FLOAT16:  # NumPy adds rows in float16
        wide = np.result_type(_FLOAT32, dtype or _FLOAT16)
        return _add(x, axis, wide, None, keepdims).astype(dtype or _FLOAT16)
    if axis is None or dtype is not None or not is_for_blas(x.ndim, x.size):
        return _add(x, axis, dtype, None, keepdims)
    flags = x.flags
    side = summed_side(x, axis, flags.c_contiguous, flags.f_contiguous)
    many = side is None and has_many_rows(x, axis, flags.c_contiguous)
    if side is None and not many:
        return _add(x, axis, None, None, keepdims)
    rows = x if x.ndim == 2 else x.reshape(-1, x.shape[-1])
    out = sum_rows(rows) if many else _product_with_ones(rows if side else rows.T)
    if keepdims:
        return out.reshape((*x.shape[:-1], 1) if side else (*[1] * (x.ndim - 1), x.shape[-1]))
    return out.reshape(x.shape[:-1]) if side else out


def cumulative_sum(x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """Return running sums; of many float32 in runs, with totals in float64: errors grow with the run alone.

    Along the last axis alone, where it takes about 4 % more time; along others it would take 40 %.
    """
    if x.size <= _RUN or x.dtype != _FLOAT32 or dtype not in (None, _FLOAT32):
        return _cumulative_sum(x, axis=axis, dtype=dtype, include_initial=include_initial)
    last = axis in (-1, x.ndim - 1) or (axis is None and x.ndim == 1)
    if not last or x.shape[-1] <= _RUN:
        return _cumulative_sum(x, axis=axis, dtype=dtype, include_initial=include_initial)
    n, first = x.shape[-1], int(include_initial)
    out = np.empty((*x.shape[:-1], n + first), _FLOAT32)
    out[..., :first] = 0
    total: Any = 0.0
    for start in range(0, n, _RUN):
        run = out[..., start + first : start + first + _RUN]
        _accumulate(x[..., start : start + _RUN], -1, None, run)
        end = run[..., -1:].astype(_FLOAT64)
        if start:
            run += total.astype(_FLOAT32)
        total = total + end
    return out


def _product_with_ones(x: Any) -> Any:
    """Return the sums of the rows of a matrix."""
    ones = _ones(x.shape[1], x.dtype)
    shared = x.size >= _SHARED_BY_VECTOR and sharing.several
    product = _eager_products()(np.ndarray.dot, x, ones, None) if shared else None
    return x.dot(ones) if product is None else product


@lru_cache(16)
def _ones(n: int, dtype: Any) -> np.ndarray:
    return np.ones(n, dtype)


def mean(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Average, without NumPy's wrapper, which takes as long as 8000 elements."""
    if x.dtype not in _BLAS or not x.size:
        return _mean(x, axis=axis, keepdims=keepdims)
    total = sum(x, axis=axis, keepdims=keepdims)
    return total / (x.size // total.size)


def sum_products(x: Any, y: Any, axes: tuple[int, ...]) -> Any:
    """Return the sums of products, or of `x`, over several axes.

    Over the first and the last axes in memory they are sums by BLAS of rows, which threads share out. Of other layouts
    `einsum` is 1.5 to 4 times as fast as NumPy's sum.
    """
    ends = summed_ends(x.shape, x.strides, x.dtype, axes)
    shape = [1 if a in axes else n for a, n in enumerate(x.shape)]
    if ends is None or (y is not None and (y.strides != x.strides or y.dtype != x.dtype)):
        every = [*range(x.ndim)]
        operands = (x, every) if y is None else (x, every, y, every)
        return np.einsum(*operands, [a for a in every if a not in axes]).reshape(shape)
    rows = x.transpose(ends.order).reshape(ends.outer, ends.middle, ends.inner)
    if y is None:
        total = _product_with_ones(rows.reshape(-1, ends.inner)).reshape(ends.outer, ends.middle)
    else:
        total = np.vecdot(rows, y.transpose(ends.order).reshape(rows.shape))
    return (_add(total, 0) if ends.outer > 1 else total).reshape(shape)


class SummedEnds(NamedTuple):
    """An array as one of three axes, the first and the last of which are summed over: its own axes, and the lengths."""

    order: tuple[int, ...]
    outer: int
    middle: int
    inner: int


@lru_cache(1024)
def summed_ends(shape: tuple[int, ...], strides: Any, dtype: Any, axes: tuple[int, ...]) -> SummedEnds | None:
    """Return an array without gaps as three axes, in the order in memory; None if it has more, or BLAS adds no rows."""
    order = tuple(sorted(range(len(shape)), key=lambda i: -strides[i]))
    expected = dtype.itemsize
    for i in reversed(order):
        if shape[i] != 1 and strides[i] != expected:
            return None
        expected *= shape[i]
    kept = [i for i in order if i not in axes and shape[i] != 1]
    if dtype not in _BLAS or 0 in shape or not kept or kept != sorted(kept):
        return None
    first, last = order.index(kept[0]), order.index(kept[-1])
    if any(i in axes and shape[i] != 1 for i in order[first:last]):
        return None
    outer, middle, inner = (
        math.prod([shape[i] for i in part]) for part in (order[:first], order[first : last + 1], order[last + 1 :])
    )
    return SummedEnds(order, outer, middle, inner) if _FEW <= inner <= _LONGEST_ROW else None


def max(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the largest, without NumPy's wrapper; of each row at its index, which is found 2 to 5 times as fast."""
    rows = x.size >= _LARGE and axis is not None and has_rows(x, axis, x.flags.c_contiguous)
    return _of_rows(x, x.argmax, keepdims) if rows else _maximum(x, axis, None, None, keepdims)


def min(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the smallest, without NumPy's wrapper; of each row at its index, as `max`."""
    rows = x.size >= _LARGE and axis is not None and has_rows(x, axis, x.flags.c_contiguous)
    return _of_rows(x, x.argmin, keepdims) if rows else _minimum(x, axis, None, None, keepdims)


def has_rows(x: Any, axis: Any, contiguous: bool) -> bool:
    """Return whether `max` looks for indices: along the last axis of many contiguous floats."""
    return summed_side(x, axis, contiguous, False) == 1 and math.prod(x.shape) >= _LARGE


def _of_rows(x: Any, find: Any, keepdims: bool, out: Any = None) -> Any:
    """Return the element of each row that a method, `argmax` or `argmin`, finds."""
    indices = find(-1)
    flat = indices.reshape(-1)
    flat += np.arange(0, x.size, x.shape[-1])
    out = x.reshape(-1).take(indices, None, out, "raise" if out is None else "clip")  # "raise" copies `out`
    return out[..., None] if keepdims else out


def largest_of_rows(x: Any, out: Any) -> None:
    """Write the largest element of each row of a contiguous matrix to a vector, as `max` chooses it."""
    _of_rows(x, x.argmax, False, out)


def smallest_of_rows(x: Any, out: Any) -> None:
    """Write the smallest element of each row of a contiguous matrix to a vector, as `min` chooses it."""
    _of_rows(x, x.argmin, False, out)


def matmul(x1: Any, x2: Any, /, out: Any = None) -> Any:
    """Multiply; two matrices by `dot`, with half the overhead, a stack by one matrix as its rows."""
    n = x1.ndim
    if x2.ndim == 2 <= n and x1.dtype in _BLAS:
        if n == 2:
            size = x1.size
            if size < _SIDE or size * x2.shape[1] <= sharing.above:
                return x1.dot(x2, out)
            product = _eager_products()(np.ndarray.dot, x1, x2, out)
            return x1.dot(x2, out) if product is None else product
        if x1.size and x2.size and out is None:
            return matmul(x1.reshape(-1, x1.shape[-1]), x2).reshape(*x1.shape[:-1], x2.shape[1])
    if n == x2.ndim > 2 and x1.size * x2.shape[-1] > sharing.above and x1.dtype in _BLAS:
        product = _eager_products()(np.matmul, x1, x2, out)
        return np.matmul(x1, x2, out=out) if product is None else product
    return np.matmul(x1, x2, out=out)


def multiply_add(x: Any, y: Any, added: Any) -> Any:
    """Return the product of two matrices plus a row; threads that share out the product add it, too."""
    size = x.size
    if size >= _SIDE and size * y.shape[1] > sharing.above and added.dtype == x.dtype and x.dtype in _BLAS:
        out = _eager_products()(np.ndarray.dot, x, y, None, added)
        if out is not None:
            return out
    out = x.dot(y) if x.dtype in _BLAS else np.matmul(x, y)
    if added.dtype != out.dtype:
        return out + added
    out += added
    return out


@cache
def _eager_products() -> Any:
    """Return the function for large products, which returns None if NumPy is to compute it."""
    from xgrad_numpy.native.eager_products import product  # not at the top: it starts a compiler

    return product


@cache
def _compiled_rule() -> Any:
    from xgrad_numpy.native.rule_kernels import find  # not at the top: it starts a compiler

    return find


# Methods and attributes: NumPy's functions of these names take longer to look them up than to run them.


def matrix_transpose(x: Any, /) -> Any:
    """Exchange the last two axes."""
    return x.mT


def reshape(x: Any, /, shape: Any, *, copy: bool | None = None) -> Any:
    """Return the elements in another shape."""
    if copy is None:
        return x.reshape(shape)
    return import_module("array_api_compat.numpy").reshape(x, shape, copy=copy)  # NumPy's has no `copy` before 2.1


def squeeze(x: Any, /, axis: Any) -> Any:
    """Remove axes of length 1."""
    return x.squeeze(axis)


def expand_dims(x: Any, /, *, axis: int = 0) -> Any:
    """Insert an axis of length 1."""
    return x[..., None] if axis == -1 else x[(slice(None),) * axis + (None,)] if axis >= 0 else np.expand_dims(x, axis)


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """Convert; also scalars, which NumPy 2.0 refuses."""
    return x.astype(dtype, copy=copy)


def where(condition: Any, x1: Any, x2: Any, /) -> Any:
    """Choose; of large arrays by arithmetic on bits, exact for every value, and 5 to 20 times as fast.

    NumPy branches at each element, which is mispredicted at half of the elements of a random mask.
    """
    if getattr(condition, "size", 0) >= _LARGE and condition.dtype == bool:
        swap = type(x1) is int and x1 == 0
        x, other = (x2, x1) if swap else (x1, x2)
        if type(other) is int and other == 0 and np.shape(x) == condition.shape and x.dtype in _BITS:
            out = np.empty_like(condition, x.dtype)
            np.multiply(x.view(_BITS[x.dtype]), ~condition if swap else condition, out.view(_BITS[x.dtype]))
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
    """Return the bits of an operand of `where`: an array of the shape of the condition, or a number beside one."""
    if type(x) in _NUMBERS and type(other) is np.ndarray and other.dtype in _BITS:
        return other.dtype.type(x).view(_BITS[other.dtype])
    if type(x) is not np.ndarray or x.dtype not in _BITS or x.shape != condition.shape or not x.flags.c_contiguous:
        return None
    return x.view(_BITS[x.dtype]) if type(other) in _NUMBERS or getattr(other, "dtype", None) == x.dtype else None


def _few_zeros(condition: Any, x1: Any, x2: Any) -> bool:
    """Return whether 0 replaces elements of a small array with the layout of the result of `np.where`."""
    arrays = type(condition) is type(x2) is np.ndarray and type(x1) is int and x1 == 0
    if not arrays or x2.shape != condition.shape or x2.dtype not in _BITS or condition.dtype != bool:
        return False
    return bool(x2.flags.c_contiguous and condition.flags.c_contiguous)


def clip(x: Any, min: Any = None, max: Any = None, /) -> Any:
    """Clip; between two numbers in one pass."""
    if getattr(x, "size", 0) >= _LARGE and type(min) in _NUMBERS and type(max) in _NUMBERS:
        return x.clip(min, max)
    x = x if min is None else np.maximum(x, min)
    return +x if max is None else np.minimum(x, max)


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Sort; not stably, which is faster, unless the order of zeros of both signs would show."""
    visible = stable and x.dtype.kind == "f" and (x.size < _LARGE or ((x == 0) & np.signbit(x)).any())
    out = np.sort(x, axis, "stable" if visible else None)
    return np.flip(out, axis) if descending else out


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Return the order; of many float32 by pairs of number and index in an int64, which need no stable sort."""
    if x.dtype != _FLOAT32 or x.size < _LARGE or not -x.ndim <= axis < x.ndim or x.shape[axis] >= 1 << 31:
        if descending:
            order = np.flip(np.argsort(np.flip(x, axis), axis, "stable"), axis)
            return x.shape[axis] - 1 - order
        return np.argsort(x, axis, "stable")
    bits = (x + 0.0).view(np.int32)  # those of 0. for -0.
    bits[np.isnan(x)] = np.float32(np.nan).view(np.int32)
    ranks = bits ^ ((bits >> 31) & 0x7FFFFFFF)  # integers in the order of the numbers
    pairs = np.moveaxis((~ranks if descending else ranks).astype(np.int64) << 32, axis, -1) | np.arange(x.shape[axis])
    pairs.sort(-1)
    return np.moveaxis(pairs & 0xFFFFFFFF, -1, axis)


def index_add(x: Any, key: Any, values: Any) -> Any:
    """Add at indices that may repeat; rows as single elements, for which NumPy is 4 to 10 times as fast."""
    parts = key if isinstance(key, tuple) else (key,)
    arrays = [part for part in parts if isinstance(part, np.ndarray) and part.dtype != bool]
    if not arrays:  # no index repeats
        x[key] += values
    elif x.dtype == _FLOAT16:  # in float32: a sum in float16 stays at 2048
        x[...] = index_add(x.astype(_FLOAT32), key, values)
    elif len(parts) == 1 < x.ndim and x.size and x.flags.c_contiguous:
        rows, inner = arrays[0].astype(np.intp, copy=False), x.shape[1:]
        elements = rows[..., None] * math.prod(inner) + np.arange(math.prod(inner))
        np.add.at(x.reshape(-1), elements.ravel(), np.broadcast_to(values, (*rows.shape, *inner)).ravel())
    else:
        np.add.at(x, key, values)
    return x


def relu(x: Any, /) -> Any:
    """Return the positive part; NumPy compares with an array or a row of zeros 3 times as fast as with one."""
    if not x.ndim or x.dtype not in _BITS:
        return np.maximum(x, 0)
    if x.size <= _MANY:
        return np.maximum(x, _zeros(x.shape, x.dtype))
    compiled = _compiled_rule()("relu", [x])
    return np.maximum(x, _zeros(x.shape[-1:], x.dtype)) if compiled is None else compiled([x])


def uniform(bits: Any, dtype: Any) -> Any:
    """Return uniform floats over [0, 1): see `xgrad.random.variates`. Shifted as unsigned, bits need no mask."""
    unsigned, spare, unit = _UNIFORM[bits.dtype]
    numbers = (bits.view(unsigned) >> spare).view(bits.dtype).astype(dtype)
    numbers *= unit
    return numbers


@lru_cache(16)
def _zeros(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return np.zeros(shape, dtype)


def has_own_power(dtype: Any, size: int, exponent: Any) -> bool:
    """Return whether `pow` computes a power other than by NumPy's operator, which has fast paths from -1 to 2."""
    if size < _FEW or type(exponent) not in _NUMBERS or exponent % 1 or -2 < exponent <= 2:
        return False
    return dtype in _BLAS and -_LARGEST_WHOLE <= exponent <= _LARGEST_WHOLE


def pow(x1: Any, x2: Any, /, out: Any = None) -> Any:
    """Raise to a power; floats to a whole one by products, or as the power of the magnitudes with the signs.

    NumPy takes up to 60 times as long for a power of a negative float as for a positive one. Products are within 2 ULP
    up to the fourth power.
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


# Special values: one fast check of the operands, and the slow path only if an element is infinite or NaN.


def _finite(x: Any) -> bool:
    """Return whether all numbers are finite; many are if their sum of squares is.

    It does not warn, and does not depend on floating-point flags, which some functions of NumPy and BLAS do not raise.
    """
    if type(x) in _NUMBERS:
        return cmath.isfinite(x)
    if x.size == 1:
        return cmath.isfinite(x.item())
    if x.dtype.kind in "iu" or (x.size >= _LARGE and cmath.isfinite(np.vdot(x, x))):
        return True
    return b"\0" not in np.isfinite(x).tobytes()


def floor_divide(x1: Any, x2: Any, /) -> Any:
    """Divide and round down; the quotient for an infinite operand, for which NumPy gives NaN or -1."""
    if _finite(x1) and _finite(x2):
        return np.floor_divide(x1, x2)
    with np.errstate(invalid="ignore"):
        out = np.asarray(np.floor_divide(x1, x2))
    return np.divide(x1, x2, out=out, where=np.isinf(x1) | np.isinf(x2))


def expm1(x: Any, /) -> Any:
    """Return exp(x) - 1; of complex numbers 0 for -0., and that of `exp` for an infinite or NaN part."""
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
    """Return the hyperbolic tangent; for infinite real parts the imaginary part keeps its sign, unlike in C."""
    if _finite(x) or x.dtype.kind != "c":
        return np.tanh(x)
    with np.errstate(invalid="ignore"):
        out = np.asarray(np.tanh(x))
    np.copysign(0, x.imag, out=out.imag, where=np.isinf(x.real))
    return out
