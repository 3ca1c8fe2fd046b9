"""Convolution and its gradients for sequences and images, on NumPy.

Results lie in memory as (height, channels, images, width), whatever the order of their axes. The rows of all channels
and images under a kernel are then adjacent, and matrix products read them in place, one for each row of the output.
Only the shifts along the width are copied, as many as the kernel is wide.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from xgrad.ops import convolution as generic
from xgrad.ops.windows import Window

_DTYPES = frozenset(map(np.dtype, ("float32", "float64")))
_MANY = 1 << 22  # elements of weight gradients, one for each row of the output, from which they are added one by one

Pair = tuple[int, int]


class _Plane(NamedTuple):
    """A window over two axes, with the padding before them only, which may be negative."""

    kernel: Pair
    stride: Pair
    before: Pair
    dilation: Pair
    out: Pair


def convolution(input: Any, weight: Any, bias: Any = None, *, window: Window, groups: int) -> Any:
    """Return the cross-correlation, plus a bias."""
    if not _supports(window, input, weight) or (bias is not None and bias.dtype != input.dtype):
        return _generic("convolution", input, weight, bias, window=window, groups=groups)
    out = _correlate(_rows_first(input), _as_images(weight), _plane(window), groups)
    if bias is not None:
        out += bias[:, None, None]
    return _images_first(out, input)


def convolution_input(grad: Any, weight: Any, *, window: Window, groups: int) -> Any:
    """Return the gradient for the input, as correlations with the reversed kernel."""
    if not _supports(window, grad, weight) or max(window.dilation) > 1:
        return _generic("convolution_input", grad, weight, window=window, groups=groups)
    plane, size, g, w = _plane(window), _pair(window.size), _rows_first(grad), _as_images(weight)
    w = w.reshape(groups, -1, *w.shape[1:]).swapaxes(1, 2).reshape(-1, len(w) // groups, *plane.kernel)
    w = w[:, :, ::-1, ::-1]
    if plane.stride == (1, 1):
        before = plane.kernel[0] - 1 - plane.before[0], plane.kernel[1] - 1 - plane.before[1]
        return _images_first(_correlate(g, w, plane._replace(before=before, out=size), groups), grad)
    out = np.zeros((size[0], len(w), grad.shape[0], size[1]), grad.dtype)
    for row in _phases(size[0], plane.kernel[0], plane.stride[0], plane.before[0]):
        for column in _phases(size[1], plane.kernel[1], plane.stride[1], plane.before[1]):
            (rows, down, top, high), (columns, right, left, wide) = row, column
            part = _Plane((high, wide), (1, 1), (top, left), (1, 1), (len(rows), len(columns)))
            taps = w[:, :, down :: plane.stride[0], right :: plane.stride[1]]
            out[rows.start :: rows.step, :, :, columns.start :: columns.step] = _correlate(g, taps, part, groups)
    return _images_first(out, grad)


def _phases(size: int, kernel: int, stride: int, before: int) -> Iterator[tuple[range, int, int, int]]:
    """Return for each remainder of positions modulo the stride those elements of the input that a kernel reaches.

    They come with the first element of the reversed kernel that reaches them, the padding of the gradient, and the
    number of elements of the kernel.
    """
    for remainder in range(min(stride, kernel)):
        elements = range((remainder - before) % stride, size, stride)
        taps = len(range(remainder, kernel, stride))
        if elements:
            first = (elements[0] + before) // stride  # the last window that reaches the first element
            yield elements, kernel - 1 - remainder - (taps - 1) * stride, taps - 1 - first, taps


def convolution_weight(input: Any, grad: Any, *, window: Window, groups: int) -> Any:
    """Return the gradient for the weight."""
    if not _supports(window, input, grad):
        return _generic("convolution_weight", input, grad, window=window, groups=groups)
    plane = _plane(window)
    (high, wide), channels = plane.kernel, input.shape[1] // groups
    rows = _under_kernel(_rows_first(input), plane, groups).mT
    g = np.ascontiguousarray(_rows_first(grad)).reshape(len(rows), groups, -1, rows.shape[2])
    if g.shape[1] * g.shape[2] * rows.shape[3] * len(rows) < _MANY:
        out = np.matmul(g, rows).sum(0)
    else:
        out = np.matmul(g[0], rows[0])
        for row, g_row in zip(rows[1:], g[1:], strict=True):
            out += np.matmul(g_row, row)
    out = out.reshape(-1, high, channels, wide).swapaxes(1, 2)
    return out.reshape(grad.shape[1], channels, *window.kernel)


def _generic(name: str, *inputs: Any, **options: Any) -> Any:
    return getattr(generic, name).function.forward(np, *inputs, **options)


def _supports(window: Window, x: Any, y: Any) -> bool:
    flat = len(window.size) < 3 and _pair(window.dilation)[0] == 1
    return flat and x.dtype == y.dtype and x.dtype in _DTYPES and bool(x.size and y.size)


def _pair(lengths: tuple[int, ...], first: int = 1) -> Any:
    return lengths if len(lengths) == 2 else (first, *lengths)


def _plane(window: Window) -> _Plane:
    before = _pair(tuple([n for n, _ in window.padding]), 0)
    return _Plane(_pair(window.kernel), _pair(window.stride), before, _pair(window.dilation), _pair(window.out))


def _as_images(x: Any) -> Any:
    """Return an array of four axes, with a height of 1 if it has three."""
    return x if x.ndim == 4 else x[:, :, None]


def _rows_first(x: Any) -> Any:
    """Return a view of shape (height, channels, images, width)."""
    return _as_images(x).transpose(2, 1, 0, 3)


def _images_first(x: Any, like: Any) -> Any:
    """Return a view of shape (images, channels, ...) with as many axes as another array."""
    return x.transpose(2, 1, 0, 3) if like.ndim == 4 else x[0].swapaxes(0, 1)


def _shifted(x: Any, plane: _Plane, groups: int) -> Any:
    """Return padded rows, shifted along the width: of shape (groups, rows, channels · kernel width, images · width)."""
    height, channels, images, width = x.shape
    (high, wide), (down, right), (top, left), (_, step), (rows, columns) = plane
    rows = (rows - 1) * down + high
    x = x.reshape(height, groups, -1, images, width).swapaxes(0, 1)
    if (wide, right, top, left, columns) == (1, 1, 0, 0, width) and rows <= height and x.flags.c_contiguous:
        return x.reshape(groups, height, -1, images * width)
    out = np.empty((groups, rows, channels // groups, wide, images, columns), x.dtype)
    first = min(rows, max(0, top))
    last = max(first, min(rows, height + top))
    out[:, :first], out[:, last:] = 0, 0
    for i in range(wide):
        start = i * step - left  # the column of the input for the first one of the output
        begin = min(columns, max(0, -(start // right)))
        end = max(begin, min(columns, (width - 1 - start) // right + 1))
        part = out[:, first:last, :, i]
        part[..., :begin], part[..., end:] = 0, 0
        if begin < end:
            source = slice(start + begin * right, start + (end - 1) * right + 1, right)
            part[..., begin:end] = x[:, first - top : last - top, ..., source]
    return out.reshape(groups, rows, -1, images * columns)


def _under_kernel(x: Any, plane: _Plane, groups: int) -> Any:
    """Return for each row of the output the matrices of elements under the kernel, without a copy of the rows.

    They have shape (rows, groups, kernel height · channels · kernel width, images · width).
    """
    shifted = _shifted(x, plane, groups)
    by_group, by_row, by_channel, by_column = shifted.strides
    shape = plane.out[0], groups, plane.kernel[0] * shifted.shape[2], shifted.shape[3]
    strides = by_row * plane.stride[0], by_group, by_channel, by_column
    return np.ndarray(shape, shifted.dtype, shifted, 0, strides)


def _correlate(x: Any, weight: Any, plane: _Plane, groups: int) -> Any:
    """Return the correlation of rows and a weight of shape (out, in / groups, ...), with rows first."""
    matrices = weight.swapaxes(1, 2).reshape(groups, len(weight) // groups, -1)
    out = np.matmul(matrices, _under_kernel(x, plane, groups))
    return out.reshape(plane.out[0], len(weight), x.shape[2], plane.out[1])
