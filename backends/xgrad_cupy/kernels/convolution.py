"""Convolution by matrix products: the elements under the kernel as columns, and their gradient.

The rules are in `xgrad.ops.convolution`. cuBLAS makes the products.
"""

from __future__ import annotations

import math
from typing import Any

from xgrad.ops import convolution as rules
from xgrad.ops.convolution import _matrix, _swapped
from xgrad.ops.windows import Window
from xgrad_cupy.kernels import windows
from xgrad_cupy.kernels.raw import THREADS, RawKernels, blocks_for, extent_of

_SOURCE = f"""{windows.SOURCE}
#define ELEMENT(count) \\
    Index at = (Index)blockIdx.x * blockDim.x + threadIdx.x; if (at >= (count)) return;

// Each element under the kernel, of shape (channels, kernel, images, windows)
extern "C" __global__ void columns_of(
    const T *input, T *out, Index to_image, Index to_channel, Index to_row, Index to_column,
    {windows.PARAMETERS}
) {{
    ELEMENT(channels * kernel_h * kernel_w * images * rows * columns)
    Index column = at % columns, row = at / columns % rows, image = at / columns / rows % images;
    Index line = at / columns / rows / images;
    int tap = line % (kernel_h * kernel_w);
    Index channel = line / (kernel_h * kernel_w);
    Index y = row * stride_h - before_h + tap / kernel_w * dilation_h;
    Index x = column * stride_w - before_w + tap % kernel_w * dilation_w;
    bool inside = y >= 0 && y < height && x >= 0 && x < width;
    input += image * to_image + channel * to_channel + y * to_row + x * to_column;
    out[at] = inside ? *input : (T)0;
}}

// The sums of columns over the windows that have an element under them. The columns have a stride
// for channels, one for the elements under the kernel, and one for images; windows are adjacent.
extern "C" __global__ void sums_of_columns(
    const T *values, T *out, Index to_channel, Index to_tap, Index to_image,
    {windows.PARAMETERS}
) {{
    ELEMENT(images * channels * height * width)
    Index x = at % width, y = at / width % height, channel = at / width / height % channels;
    values += at / width / height / channels * to_image + channel * to_channel;
    T sum = 0;
    EACH_WINDOW(y, x, sum += values[tap * to_tap + row * columns + column];)
    out[at] = sum;
}}

// An array of shape (channels, images, positions) as one of (images, channels, positions), plus a
// number for each channel
extern "C" __global__ void images_of(
    const T *values, const T *bias, T *out, Index images, Index channels, Index positions
) {{
    ELEMENT(images * channels * positions)
    Index channel = at / positions % channels, image = at / positions / channels;
    T value = values[(channel * images + image) * positions + at % positions];
    out[at] = bias ? value + bias[channel] : value;
}}
"""


class Convolution:
    """Kernels for CuPy, the module `cp`, as functions of arrays that a captured step records."""

    def __init__(self, cp: Any) -> None:
        self._cp, self._kernels = cp, RawKernels(cp, _SOURCE)

    def columns_of(self, x: Any, window: Window) -> Any:
        """Return the elements under the kernel, of shape (channels, kernel, images, windows)."""
        images, channels = x.shape[:2]
        shape = channels, math.prod(window.kernel), images, math.prod(window.out)
        out = self._cp.empty(shape, x.dtype)
        args = x, out, *windows.strides_of(x), *windows.arguments(window, images, channels)
        self._launch("columns_of", out, args, max(extent_of(x), out.size))
        return out

    def sums_of_columns(self, values: Any, window: Window, of_images: bool) -> Any:
        """Return images in which each element is the sum of its places in columns.

        The columns have shape (images, channels, kernel, windows) if `of_images` is true, and
        otherwise (channels, kernel, images, windows).
        """
        values = self._cp.ascontiguousarray(values)
        positions = values.shape[-1]
        if of_images:
            images, channels, taps = values.shape[:3]
            strides = taps * positions, positions, channels * taps * positions
        else:
            channels, taps, images = values.shape[:3]
            strides = taps * images * positions, images * positions, positions
        out = self._cp.empty((images, channels, *window.size), values.dtype)
        args = values, out, *strides, *windows.arguments(window, images, channels)
        self._launch("sums_of_columns", out, args, max(values.size, out.size))
        return out

    def images_of(self, values: Any, bias: Any) -> Any:
        """Return values of shape (channels, images, positions) by images, plus a bias."""
        channels, images, positions = values.shape
        out = self._cp.empty((images, channels, positions), values.dtype)
        bias = None if bias is None else self._cp.ascontiguousarray(bias)
        args = values, bias, out, images, channels, positions
        self._launch("images_of", out, args, out.size)
        return out

    def _launch(self, name: str, out: Any, args: tuple[Any, ...], largest: int) -> None:
        self._kernels.launch(
            name, out.dtype, blocks_for(out.size), (THREADS,), args, largest=largest
        )


def convolution(
    xp: Any, input: Any, weight: Any, bias: Any = None, *, window: Window, groups: int
) -> Any:
    """Return the cross-correlation of an input and a weight."""
    arrays = [x for x in (input, weight, bias) if x is not None]
    if not windows.supported(window, *arrays):
        return _rule("convolution")(xp, input, weight, bias, window=window, groups=groups)
    columns = _matrix(xp, xp.fused.columns_of(input, window), groups, axes=2)
    out = xp.matmul(_matrix(xp, weight, groups, axes=1), columns)
    shape = weight.shape[0], input.shape[0], math.prod(window.out)
    out = xp.fused.images_of(xp.reshape(out, shape), bias)
    return xp.reshape(out, (*out.shape[:2], *window.out))


def convolution_input(xp: Any, grad: Any, weight: Any, *, window: Window, groups: int) -> Any:
    """Return the gradient of a convolution for its input."""
    if not windows.supported(window, grad, weight):
        return _rule("convolution_input")(xp, grad, weight, window=window, groups=groups)
    images, positions = grad.shape[0], math.prod(window.out)
    channels, taps = groups * weight.shape[1], math.prod(window.kernel)
    factors = xp.matrix_transpose(_matrix(xp, weight, groups, axes=1))
    if groups == 1:  # a product for each image, since its gradients are a matrix
        columns = xp.matmul(factors, xp.reshape(grad, (images, -1, positions)))
        columns = xp.reshape(columns, (images, channels, taps, positions))
    else:
        columns = xp.matmul(factors, _matrix(xp, _swapped(xp, grad), groups, axes=1))
        columns = xp.reshape(columns, (channels, taps, images, positions))
    return xp.fused.sums_of_columns(columns, window, groups == 1)


def convolution_weight(xp: Any, input: Any, grad: Any, *, window: Window, groups: int) -> Any:
    """Return the gradient of a convolution for its weight."""
    if not windows.supported(window, input, grad):
        return _rule("convolution_weight")(xp, input, grad, window=window, groups=groups)
    columns = _matrix(xp, xp.fused.columns_of(input, window), groups, axes=2)
    slopes = _matrix(xp, _swapped(xp, grad), groups, axes=1)
    out = xp.matmul(slopes, xp.matrix_transpose(columns))
    return xp.reshape(out, (grad.shape[1], input.shape[1] // groups, *window.kernel))


def _rule(op: str) -> Any:
    """Return the generic rule of an op."""
    return getattr(rules, op).function.forward
