"""Cross-entropy of classes by one launch, and its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from xgrad_cupy.kernels import rows
from xgrad_cupy.kernels.raw import RawKernels
from xgrad_cupy.kernels.sums import Sums

_ONE_BLOCK = 1 << 14  # elements of rows that one block handles in the time of a launch

_SOURCE = (
    rows.SOURCE
    + rows.SOFTMAX
    + """
// The loss of a row, which thread 0 of the row gets
__device__ T cross_entropy_of(
    const T *x, long long wanted, T *scale, T *sum, double smoothing, Index length
) {
    T largest = largest_of(x, length), total = total_of_exp(x, largest, length), mean = 0;
    if (smoothing != 0) {
        EACH mean += x[k] - largest;
        mean = reduce<Total>(mean) / (T)length;
    }
    if (threadIdx.x != 0) return 0;
    wanted %= length;  // out of bounds, it wraps around, as indices do in CuPy
    T logs = log(total), loss = logs - (x[wanted < 0 ? wanted + length : wanted] - largest);
    if (smoothing != 0) loss = loss * (T)(1 - smoothing) + (T)smoothing * (logs - mean);
    *scale = largest;
    *sum = total;
    return loss;
}

extern "C" __global__ void cross_entropy(
    const T *x, const Class *target, T *losses, T *scale, double smoothing,
    Index rows, Index length
) {
    ROW
    T loss = cross_entropy_of(
        x + row * length, (long long)target[row], scale + row, scale + rows + row, smoothing, length
    );
    if (threadIdx.x == 0) losses[row] = loss;
}

// The sum of the losses of few rows, divided: one block with a warp for each row in turn
extern "C" __global__ void __launch_bounds__(1024) cross_entropy_total(
    const T *x, const Class *target, T *loss, T *scale, double smoothing, T divisor,
    Index rows, Index length
) {
    __shared__ T sums[32];
    T sum = 0;
    for (Index row = threadIdx.y; row < rows; row += blockDim.y)
        sum += cross_entropy_of(
            x + row * length, (long long)target[row], scale + row, scale + rows + row, smoothing,
            length
        );
    if (threadIdx.x == 0) sums[threadIdx.y] = sum;
    __syncthreads();
    if (threadIdx.x != 0 || threadIdx.y != 0) return;
    sum = 0;
    for (int k = 0; k < (int)blockDim.y; ++k) sum += sums[k];
    *loss = sum / divisor;
}

// `g` has a gradient for each row, or one for all.
extern "C" __global__ void cross_entropy_gradient(
    const T *g, int each, const T *x, const Class *target, const T *tops, const T *totals,
    T *result, double smoothing, Index count, Index rows, Index length
) {
    ROW
    x += row * length;
    result += row * length;
    T top = tops[row], total = totals[row], factor = g[each ? row : 0] / (T)count,
      miss = 0, hit = 1;
    if (smoothing != 0) {
        miss = (T)(smoothing / length);
        hit = (T)(1 - smoothing) + miss;
    }
    long long wanted = (long long)target[row];
    EACH result[k] = (exp(x[k] - top) / total - (k == wanted ? hit : miss)) * factor;
}
"""
)


class CrossEntropy:
    """Kernels for CuPy, the module `cp`; they return NotImplemented for few long rows."""

    def __init__(self, cp: Any) -> None:
        self._cp, self._kernels = cp, RawKernels(cp, _SOURCE)
        self._total = Sums(cp, "const T *x, T divisor, ", ["x[at] / divisor"])

    def cross_entropy(
        self, input: Any, target: Any, *, reduction: str, label_smoothing: float
    ) -> Any:
        """Return the loss and, for the derivative, row maxima and sums of exponentials.

        The latter two are in one array.
        """
        cp, axis = self._cp, 0 if input.ndim == 1 else 1
        classes = input.shape[axis]
        if not classes and target.size:
            raise IndexError("expected classes, got none")
        empty_mean = reduction == "mean" and not target.size  # NaN
        if empty_mean or rows.underuse_gpu(target.size, classes):
            return NotImplemented
        x = cp.ascontiguousarray(self._moved(input, axis, -1))
        scale = cp.empty((2, target.size), x.dtype)
        parts = scale.reshape(2, *input.shape[:axis], 1, *input.shape[axis + 1 :])
        target, smoothing = cp.ascontiguousarray(target), np.float64(label_smoothing)
        divisor = x.dtype.type(target.size if reduction == "mean" else 1)
        if reduction != "none" and 0 < x.size <= _ONE_BLOCK and classes <= rows.WARP_LENGTH:
            loss = cp.empty((), x.dtype)
            total = x, target, loss, scale, smoothing, divisor, target.size, classes
            block = rows.WARP, rows.WARP
            self._kernels.launch(
                "cross_entropy_total", x.dtype, (1,), block, total, Class=target.dtype
            )
            return loss, parts
        losses = cp.empty(target.shape, x.dtype)
        args = x, target, losses, scale, smoothing
        self._launch("cross_entropy", x, target.dtype, args, classes)
        if reduction == "none":
            return losses, parts
        return self._total((losses, divisor), x.dtype, (1, 1, target.size)).reshape(()), parts

    def cross_entropy_gradient(
        self, g: Any, input: Any, target: Any, reduction: str, label_smoothing: float, scale: Any
    ) -> Any:
        """Return the gradient of the logits."""
        cp, axis = self._cp, 0 if input.ndim == 1 else 1
        classes = input.shape[axis]
        if rows.underuse_gpu(target.size, classes):
            return NotImplemented
        arrays = g, self._moved(input, axis, -1), target, scale[0], scale[1]
        g, x, target, maxima, sums = map(cp.ascontiguousarray, arrays)
        result = cp.empty(x.shape, x.dtype)
        each = np.int32(reduction == "none")
        count = target.size if reduction == "mean" else 1
        args = g, each, x, target, maxima, sums, result, np.float64(label_smoothing), count
        self._launch("cross_entropy_gradient", x, target.dtype, args, classes)
        return self._moved(result, -1, axis)

    def _launch(self, name: str, x: Any, classes: Any, args: tuple[Any, ...], length: int) -> None:
        """Run a kernel on all rows of `x`, which have a given length."""
        if x.size:
            grid, block = rows.shape_of(x.size // length, length)
            args = *args, x.size // length, length
            self._kernels.launch(name, x.dtype, grid, block, args, largest=x.size, Class=classes)

    def _moved(self, x: Any, source: int, target: int) -> Any:
        """Return a view with an axis moved.

        `moveaxis` takes time even if the axis is already in place.
        """
        return x if (source - target) % x.ndim == 0 else self._cp.moveaxis(x, source, target)
