"""The products of the array API standard by `Cublas`, which a CUDA graph can contain."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xgrad_cupy.cublas import Cublas, layout, takes


class Products:
    """Products by an own handle of cuBLAS, in the place of functions that use CuPy's.

    Parameters
    ----------
    cp : module
        CuPy.
    cublas : Cublas
        The handle.
    """

    def __init__(self, cp: Any, cublas: Cublas) -> None:
        self._cp, self._cublas = cp, cublas
        self._functions: dict[str, Callable[..., Any]] = {
            "matmul": self.matmul,
            "imatmul": self.matmul,  # CuPy's arrays have no @= that writes in place
            "tensordot": self.tensordot,
            "vecdot": self.vecdot,
        }

    def capturable(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return what to call in place of a function of the standard or of ``operator``: itself if it is no product."""
        own = self._functions.get(getattr(function, "__name__", "").lstrip("_"))
        if own is None:
            return function

        def product(x1: Any, x2: Any, /, *args: Any, **options: Any) -> Any:
            chosen = own if takes(np.result_type(x1.dtype, x2.dtype)) else function  # integers are kernels of CuPy's
            return chosen(x1, x2, *args, **options)

        return product

    def matmul(self, x1: Any, x2: Any, /, out: Any = None) -> Any:
        """Return the product of matrices or stacks of them; vectors are a row on the left, a column on the right."""
        dtype = np.result_type(x1.dtype, x2.dtype)
        a, b = (x if x.dtype == dtype else x.astype(dtype) for x in (x1, x2))
        if a.ndim == 0 or b.ndim == 0 or a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
            raise ValueError(f"matmul: shapes {a.shape} and {b.shape} do not go together")
        row, column = a.ndim == 1, b.ndim == 1
        a, b = a[None, :] if row else a, b[:, None] if column else b
        shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
        fits = out is not None and out.shape == shape and out.dtype == dtype and not (row or column)
        into = out if fits and out.data.mem is not a.data.mem and out.data.mem is not b.data.mem else None
        made = self._multiplied(a, b, shape, into)
        if row or column:
            made = made.reshape(shape[:-2] + shape[-2:-1] * (not row) + shape[-1:] * (not column))
        if out is None or made is out:
            return made
        out[...] = made
        return out

    def _multiplied(self, a: Any, b: Any, shape: tuple[int, ...], into: Any) -> Any:
        cp, stack = self._cp, shape[:-2]
        if b.ndim == 2 and a.ndim > 2:  # a stack by one matrix is one product
            rows = a.reshape(math.prod(a.shape[:-1]), a.shape[-1])
            return self._multiplied(rows, b, (rows.shape[0], shape[-1]), None).reshape(shape)
        out = into
        lies = None if into is None else layout(into.shape[-2:], into.strides[-2:], into.dtype.itemsize)
        if lies is None or len(stack) > 1:
            out = cp.empty(shape, a.dtype)
        if not out.size:
            return out
        if not a.shape[-1]:
            out.fill(0)
        elif not stack:
            self._cublas.gemm(self._lying(a), self._lying(b), out)
        else:
            count = math.prod(stack)
            a, b = self._stacked(a, stack, count), self._stacked(b, stack, count)
            self._cublas.gemm(a, b, out.reshape(count, *shape[-2:]))
        return out

    def _stacked(self, x: Any, stack: tuple[int, ...], count: int) -> Any:
        """Return a stack of one axis; of one matrix, one that does not go on."""
        if x.ndim == 2 or math.prod(x.shape[:-2]) == 1:
            one = self._lying(x.reshape(x.shape[-2:]))
            return self._cp.broadcast_to(one, (count, *one.shape))
        x = self._cp.broadcast_to(x, (*stack, *x.shape[-2:])).reshape(count, *x.shape[-2:])
        regular = layout(x.shape[-2:], x.strides[-2:], x.dtype.itemsize) and x.strides[0] % x.dtype.itemsize == 0
        return x if regular and x.strides[0] >= 0 else self._cp.ascontiguousarray(x)

    def _lying(self, x: Any) -> Any:
        """Return a matrix in a form that cuBLAS takes: itself, by rows or by columns, or else a copy."""
        return x if layout(x.shape, x.strides, x.dtype.itemsize) else self._cp.ascontiguousarray(x)

    def tensordot(self, x1: Any, x2: Any, /, *, axes: int | Sequence[Sequence[int]] = 2) -> Any:
        """Return the sums of products over axes, by one product of matrices."""
        if isinstance(axes, int):
            axes = tuple(range(x1.ndim - axes, x1.ndim)), tuple(range(axes))
        summed = [[axis % x.ndim for axis in each] for x, each in zip((x1, x2), axes, strict=True)]
        kept = [[i for i in range(x.ndim) if i not in each] for x, each in zip((x1, x2), summed, strict=True)]
        count = math.prod([x1.shape[i] for i in summed[0]])
        rows = x1.transpose(tuple(kept[0] + summed[0])).reshape(math.prod([x1.shape[i] for i in kept[0]]), count)
        columns = x2.transpose(tuple(summed[1] + kept[1])).reshape(count, math.prod([x2.shape[i] for i in kept[1]]))
        shape = tuple([x.shape[i] for x, each in zip((x1, x2), kept, strict=True) for i in each])
        return self.matmul(rows, columns).reshape(shape)

    def vecdot(self, x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
        """Return the sums of products along an axis, which are no work for cuBLAS."""
        return (x1.conj() * x2).sum(axis=axis)
