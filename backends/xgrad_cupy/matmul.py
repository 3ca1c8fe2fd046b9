"""Matrix products of the array API standard in a form that a CUDA graph can contain."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xgrad_cupy.cublas import Cublas, layout, supports


class Products:
    """Products by a cuBLAS handle, `cublas`, in place of CuPy's functions."""

    def __init__(self, cp: Any, cublas: Cublas) -> None:
        self._cp, self.cublas = cp, cublas
        self._functions: dict[str, Callable[..., Any]] = {
            "matmul": self.matmul,
            "imatmul": self.matmul,  # @= of CuPy's arrays does not write in place
            "tensordot": self.tensordot,
        }

    def capturable(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the product that replaces a function of the standard or of ``operator``.

        Other functions are returned unchanged.
        """
        own = self._functions.get(getattr(function, "__name__", "").lstrip("_"))
        if own is None:
            return function

        def product(x1: Any, x2: Any, /, *args: Any, **options: Any) -> Any:
            chosen = own if supports(np.result_type(x1.dtype, x2.dtype)) else function
            return chosen(x1, x2, *args, **options)

        return product

    def matmul(self, x1: Any, x2: Any, /, out: Any = None) -> Any:
        """Return the product of matrices or of stacks of them.

        A vector is a row on the left, a column on the right.
        """
        dtype = np.result_type(x1.dtype, x2.dtype)
        a, b = (x if x.dtype == dtype else x.astype(dtype) for x in (x1, x2))
        if a.ndim == 0 or b.ndim == 0 or a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
            raise ValueError(f"matmul: shapes {a.shape} and {b.shape} do not go together")
        row, column = a.ndim == 1, b.ndim == 1
        a, b = a[None, :] if row else a, b[:, None] if column else b
        shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
        fits = out is not None and out.shape == shape and out.dtype == dtype and not (row or column)
        disjoint = fits and out.data.mem is not a.data.mem and out.data.mem is not b.data.mem
        result = self._multiply(a, b, shape, out if disjoint else None)
        if row or column:
            result = result.reshape(
                shape[:-2] + shape[-2:-1] * (not row) + shape[-1:] * (not column)
            )
        if out is None or result is out:
            return result
        out[...] = result
        return out

    def _multiply(self, a: Any, b: Any, shape: tuple[int, ...], out: Any) -> Any:
        """Return the product of stacks of matrices.

        The result is in `out` if that is given and cuBLAS can write to it.
        """
        stack = shape[:-2]
        # CuPy sums these without cuBLAS: keep its bits
        if shape == (1, 1) and a.size and a.dtype != np.float16:
            return self._cp.dot(a.ravel(), b.ravel()).reshape(1, 1)
        if b.ndim == 2 and a.ndim > 2:  # a stack by one matrix is one product
            rows = a.reshape(math.prod(a.shape[:-1]), a.shape[-1])
            return self._multiply(rows, b, (rows.shape[0], shape[-1]), None).reshape(shape)
        if out is None or len(stack) > 1 or layout(out) is None:
            out = self._cp.empty(shape, a.dtype)
        if not out.size:
            return out
        if not a.shape[-1]:
            out.fill(0)
        elif not stack:
            self.cublas.gemm(self._regular(a), self._regular(b), out)
        else:
            count = math.prod(stack)
            a, b = self._stacked(a, stack, count), self._stacked(b, stack, count)
            self.cublas.gemm(a, b, out.reshape(count, *shape[-2:]))
        return out

    def _stacked(self, x: Any, stack: tuple[int, ...], count: int) -> Any:
        """Return a stack with one leading axis, with stride 0 if it repeats one matrix."""
        if x.ndim == 2 or math.prod(x.shape[:-2]) == 1:
            one = self._regular(x.reshape(x.shape[-2:]))
            return self._cp.broadcast_to(one, (count, *one.shape))
        x = self._cp.broadcast_to(x, (*stack, *x.shape[-2:])).reshape(count, *x.shape[-2:])
        whole = x.strides[0] >= 0 and x.strides[0] % x.dtype.itemsize == 0
        return self._regular(x) if whole else self._cp.ascontiguousarray(x)

    def _regular(self, x: Any) -> Any:
        """Return an array, or a contiguous copy if cuBLAS cannot take its layout."""
        return self._cp.ascontiguousarray(x) if layout(x) is None else x

    def tensordot(self, x1: Any, x2: Any, /, *, axes: int | Sequence[Sequence[int]] = 2) -> Any:
        """Return the sums of products over axes, by one matrix product."""
        if isinstance(axes, int):
            axes = tuple(range(x1.ndim - axes, x1.ndim)), tuple(range(axes))
        summed = [[axis % x.ndim for axis in each] for x, each in zip((x1, x2), axes, strict=True)]
        free = [
            [i for i in range(x.ndim) if i not in each]
            for x, each in zip((x1, x2), summed, strict=True)
        ]
        count = math.prod([x1.shape[i] for i in summed[0]])
        rows = x1.transpose(tuple(free[0] + summed[0])).reshape(
            math.prod([x1.shape[i] for i in free[0]]), count
        )
        columns = x2.transpose(tuple(summed[1] + free[1])).reshape(
            count, math.prod([x2.shape[i] for i in free[1]])
        )
        shape = tuple([x.shape[i] for x, each in zip((x1, x2), free, strict=True) for i in each])
        return self.matmul(rows, columns).reshape(shape)
