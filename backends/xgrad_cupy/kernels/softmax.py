"""Softmax and its logarithm along axes by one launch, and the gradients."""

from __future__ import annotations

import math
from typing import Any

from xgrad_cupy.kernels import rows
from xgrad_cupy.kernels.raw import RawKernels

_SOURCE = (
    rows.SOURCE
    + rows.SOFTMAX
    + """
extern "C" __global__ void softmax(const T *x, T *out, Index rows, Index length) {
    ROW
    x += row * length;
    out += row * length;
    T largest = largest_of(x, length), total = total_of_exp(x, largest, length);
    EACH out[k] = exp(x[k] - largest) / total;
}

extern "C" __global__ void log_softmax(const T *x, T *out, Index rows, Index length) {
    ROW
    x += row * length;
    out += row * length;
    T largest = largest_of(x, length);
    if (!isfinite(largest)) largest = 0;  // or inf - inf would make the row NaN
    T logs = log(total_of_exp(x, largest, length));
    EACH out[k] = x[k] - largest - logs;
}

extern "C" __global__ void softmax_gradient(
    const T *g, const T *out, T *result, Index rows, Index length
) {
    ROW
    g += row * length;
    out += row * length;
    result += row * length;
    T total = 0;
    EACH total += g[k] * out[k];
    total = reduce<Total>(total);
    EACH result[k] = out[k] * (g[k] - total);
}

extern "C" __global__ void log_softmax_gradient(
    const T *g, const T *out, T *result, Index rows, Index length
) {
    ROW
    g += row * length;
    out += row * length;
    result += row * length;
    T total = 0;
    EACH total += g[k];
    total = reduce<Total>(total);
    EACH result[k] = g[k] - exp(out[k]) * total;
}
"""
)


class Softmax:
    """Kernels for CuPy, the module `cp`; they return NotImplemented for few long rows."""

    def __init__(self, cp: Any) -> None:
        self._cp, self._kernels = cp, RawKernels(cp, _SOURCE)

    def softmax(self, x: Any, *, axis: Any) -> Any:
        """Return the softmax."""
        return self._by_rows("softmax", axis, x)

    def log_softmax(self, x: Any, *, axis: Any) -> Any:
        """Return the logarithm of the softmax."""
        return self._by_rows("log_softmax", axis, x)

    def softmax_gradient(self, g: Any, out: Any, axis: Any) -> Any:
        """Return the gradient of `softmax`, given its result."""
        return self._by_rows("softmax_gradient", axis, g, out)

    def log_softmax_gradient(self, g: Any, out: Any, axis: Any) -> Any:
        """Return the gradient of `log_softmax`, given its result."""
        return self._by_rows("log_softmax_gradient", axis, g, out)

    def _by_rows(self, name: str, axis: Any, *arrays: Any) -> Any:
        """Run a kernel on the rows of arrays of one shape, along one axis or several.

        None stands for all axes.
        """
        cp, shape = self._cp, arrays[0].shape
        axes = axis if isinstance(axis, tuple) else (axis,)
        if axis is None:
            axes = tuple(range(len(shape)))
        last = tuple(range(-len(axes), 0))
        in_place = bool(shape) and axes in ((-1,), (len(shape) - 1,))
        moved = arrays if in_place else [cp.moveaxis(x, axes, last) for x in arrays]
        length = math.prod([shape[i] for i in axes])
        if not length or rows.underuse_gpu(arrays[0].size // length, length):
            return NotImplemented
        out = cp.empty(moved[0].shape, moved[0].dtype)
        if out.size:
            grid, block = rows.shape_of(out.size // length, length)
            args = *map(cp.ascontiguousarray, moved), out, out.size // length, length
            self._kernels.launch(name, out.dtype, grid, block, args, largest=out.size)
        return out if in_place else cp.moveaxis(out, last, axes)
