"""Sums, means and running sums on NumPy.

BLAS computes them where it is faster. Some have smaller rounding errors than NumPy's.
"""

from __future__ import annotations

import math
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from xgrad_numpy.products import BLAS_DTYPES, ones, product_with_ones

_FLOAT16, _FLOAT32, _FLOAT64 = map(np.dtype, ("float16", "float32", "float64"))
_add: Any = np.add.reduce
_accumulate: Any = np.add.accumulate
# NumPy 2.5 has overloads for `keepdims=True` and `keepdims=False`, but not for bool
_mean: Any = np.mean
_cumulative_sum: Any = getattr(np, "cumulative_sum", None) or (  # not in NumPy 2.0
    lambda x, **options: import_module("array_api_compat.numpy").cumulative_sum(x, **options)
)
_LONGEST_SIDE = 1 << 10  # elements of a row up to which BLAS sums each row of a matrix
_ROWS = 1 << 15  # number of rows up to which BLAS adds them in one call
_BLOCK = 1 << 12  # number of rows that BLAS adds at once if there are more
_FEW = 16  # elements from which BLAS is faster at summing a row
_FEW_TO_ADD = 32  # elements from which BLAS is faster at summing rows or columns
_LONGEST_ROW = 1 << 13  # elements of a row up to which BLAS sums it on one thread
_RUN = 1 << 16  # elements of a float32 running sum before its total is kept in float64


def is_for_blas(ndim: int, size: int) -> bool:
    """Return whether BLAS may sum the rows or the columns of an array.

    For few elements NumPy is faster.
    """
    return ndim > 1 and size >= _FEW_TO_ADD


def summed_side(x: Any, axis: Any, contiguous: bool, transposed: bool) -> int | None:
    """Return the axis to sum of an array seen as a matrix of rows; None if BLAS cannot sum it.

    The axis is 1 for the last axis, and 0 for all others, as in the gradient of a bias.
    `transposed` is whether the array is contiguous with its axes reversed.
    """
    shape = x.shape
    n = len(shape)
    if (
        n < 2
        or 0 in shape
        or x.dtype not in BLAS_DTYPES
        or not (contiguous or (n == 2 and transposed))
    ):
        return None
    axes = axis if type(axis) is tuple else (axis,)
    if axes == (-1,) or axes == (n - 1,):
        return 1 if shape[-1] <= _LONGEST_SIDE else None
    if n == 2:
        return 0 if axes == (0,) and shape[0] <= _ROWS else None
    return 0 if axes == tuple(range(n - 1)) and math.prod(shape[:-1]) <= _ROWS else None


def has_many_rows(x: Any, axis: Any, contiguous: bool) -> bool:
    """Return whether `sum` adds an array as rows in blocks: over all axes but the last."""
    n = len(x.shape)
    axes = axis if type(axis) is tuple else (axis,)
    many = n >= 2 and contiguous and 0 not in x.shape and x.dtype in BLAS_DTYPES
    return many and axes == tuple(range(n - 1)) and math.prod(x.shape[:-1]) > _ROWS


def sum_rows(rows: Any, out: Any = None) -> Any:
    """Return the sum of many rows, in blocks by BLAS.

    This is up to 20 times as fast as NumPy, which adds row by row. Rounding errors grow only with
    the size of a block.
    """
    column, count = ones(_BLOCK, rows.dtype), len(rows) // _BLOCK
    blocks, rest = rows[: count * _BLOCK].reshape(count, _BLOCK, -1), rows[count * _BLOCK :]
    total = _add(np.matmul(column, blocks), 0, _FLOAT64)
    total += rest.T.dot(column[: len(rest)])
    if out is None:
        return total.astype(rows.dtype)
    out[...] = total
    return out


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Sum; by BLAS over the last axis or all others, 4 to 10 times as fast; float16 in float32."""
    if x.dtype is _FLOAT16:  # NumPy would add rows in float16
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
    out = sum_rows(rows) if many else product_with_ones(rows if side else rows.T)
    if keepdims:
        return out.reshape((*x.shape[:-1], 1) if side else (*[1] * (x.ndim - 1), x.shape[-1]))
    return out.reshape(x.shape[:-1]) if side else out


def cumulative_sum(
    x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    """Return running sums; for many float32 in runs, with totals in float64.

    Rounding errors then grow only with the length of a run. Runs are used for the last axis only:
    they take about 4 % more time there, and would take 40 % more along other axes.
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


def mean(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Average, without NumPy's wrapper, which takes as long as averaging 8000 elements."""
    if x.dtype not in BLAS_DTYPES or not x.size:
        return _mean(x, axis=axis, keepdims=keepdims)
    total = sum(x, axis=axis, keepdims=keepdims)
    return total / (x.size // total.size)


def sum_products(x: Any, y: Any, axes: tuple[int, ...]) -> Any:
    """Return the sums of products, or of `x`, over several axes.

    Over the first and the last axes in memory they are row sums by BLAS, which threads share out.
    For other layouts `einsum` is 1.5 to 4 times as fast as NumPy's sum.
    """
    ends = summed_ends(x.shape, x.strides, x.dtype, axes)
    shape = [1 if a in axes else n for a, n in enumerate(x.shape)]
    if ends is None or (y is not None and (y.strides != x.strides or y.dtype != x.dtype)):
        every = [*range(x.ndim)]
        operands = (x, every) if y is None else (x, every, y, every)
        return np.einsum(*operands, [a for a in every if a not in axes]).reshape(shape)
    rows = x.transpose(ends.order).reshape(ends.outer, ends.middle, ends.inner)
    if y is None:
        total = product_with_ones(rows.reshape(-1, ends.inner)).reshape(ends.outer, ends.middle)
    else:
        total = np.vecdot(rows, y.transpose(ends.order).reshape(rows.shape))
    return (_add(total, 0) if ends.outer > 1 else total).reshape(shape)


class SummedEnds(NamedTuple):
    """An array seen as three axes, of which the first and the last are summed over.

    `order` is the order of its own axes; the other members are the lengths of the three.
    """

    order: tuple[int, ...]
    outer: int
    middle: int
    inner: int


@lru_cache(1024)
def summed_ends(
    shape: tuple[int, ...], strides: Any, dtype: Any, axes: tuple[int, ...]
) -> SummedEnds | None:
    """Return an array without gaps as three axes, in memory order.

    None if there are more, or BLAS does not sum the rows.
    """
    order = tuple(sorted(range(len(shape)), key=lambda i: -strides[i]))
    expected = dtype.itemsize
    for i in reversed(order):
        if shape[i] != 1 and strides[i] != expected:
            return None
        expected *= shape[i]
    kept = [i for i in order if i not in axes and shape[i] != 1]
    if dtype not in BLAS_DTYPES or 0 in shape or not kept or kept != sorted(kept):
        return None
    first, last = order.index(kept[0]), order.index(kept[-1])
    if any(i in axes and shape[i] != 1 for i in order[first:last]):
        return None
    outer, middle, inner = (
        math.prod([shape[i] for i in part])
        for part in (order[:first], order[first : last + 1], order[last + 1 :])
    )
    return SummedEnds(order, outer, middle, inner) if _FEW <= inner <= _LONGEST_ROW else None
