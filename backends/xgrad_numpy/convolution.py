"""Convolution and its gradients for sequences and images, on NumPy.

Results lie in memory as (height, channels, images, width), whatever the order of their axes. The
rows of all channels and images under a kernel are then adjacent, and matrix products read them in
place, one product for each row of the output. Only the shifts along the width are copied, one for
each column of the kernel.

Native kernels, where available, compute the same products in the same layout, with bit-identical
results.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from xgrad.ops import convolution as generic
from xgrad.ops.windows import Window
from xgrad_numpy.native import convolution as native
from xgrad_numpy.native.convolution import Pair, Plane

_DTYPES = frozenset(map(np.dtype, ("float32", "float64")))
_MANY = 1 << 22  # elements from which the weight gradients of output rows are added one by one


def convolution(input: Any, weight: Any, bias: Any = None, *, window: Window, groups: int) -> Any:
    """Return the cross-correlation, plus a bias if given."""
    if not _supports(window, input, weight) or (bias is not None and bias.dtype != input.dtype):
        return _generic("convolution", input, weight, bias, window=window, groups=groups)
    return images_first(
        _correlate(rows_first(input), _as_images(weight), _plane(window), groups, bias), input
    )


def convolution_input(grad: Any, weight: Any, *, window: Window, groups: int) -> Any:
    """Return the gradient for the input.

    If the input has fewer channels than the output, or a stride or a dilation is not 1, products
    are scattered; otherwise `grad` is correlated with the reversed kernel.
    """
    if not _supports(window, grad, weight):
        return _generic("convolution_input", grad, weight, window=window, groups=groups)
    plane, size, g, w = _plane(window), _size(window), rows_first(grad), _as_images(weight)
    if plane.stride != (1, 1) or plane.dilation != (1, 1) or len(w) > groups * w.shape[1]:
        return images_first(_scattered(g, w, plane, size, groups), grad)
    w = (
        w.reshape(groups, -1, *w.shape[1:])
        .swapaxes(1, 2)
        .reshape(-1, len(w) // groups, *plane.kernel)
    )
    before = plane.kernel[0] - 1 - plane.before[0], plane.kernel[1] - 1 - plane.before[1]
    reverse = plane._replace(before=before, out=size)
    return images_first(_correlate(g, w[:, :, ::-1, ::-1], reverse, groups), grad)


def convolution_weight(input: Any, grad: Any, *, window: Window, groups: int) -> Any:
    """Return the gradient for the weight."""
    if not _supports(window, input, grad):
        return _generic("convolution_weight", input, grad, window=window, groups=groups)
    plane = _plane(window)
    (high, wide), channels = plane.kernel, input.shape[1] // groups
    x, g = rows_first(input), rows_first(grad)
    out = native.weight_gradient(x, g, plane) if groups == 1 else None
    if out is None:
        out = _weight_gradient(x, g, plane, groups)
    out = out.reshape(groups, high, channels, wide, -1).transpose(0, 4, 2, 1, 3)
    return out.reshape(grad.shape[1], channels, *window.kernel)


def _weight_gradient(x: Any, g: Any, plane: Plane, groups: int) -> Any:
    """Return the gradient of shape (groups, kernel height · in · kernel width, out)."""
    rows, g = _under_kernel(x, plane, groups), _by_group(g, groups).mT
    if g.shape[1] * g.shape[3] * rows.shape[2] * len(rows) < _MANY:
        return np.matmul(rows, g).sum(0)
    out = np.matmul(rows[0], g[0])
    for row, g_row in zip(rows[1:], g[1:], strict=True):
        out += np.matmul(row, g_row)
    return out


def _generic(name: str, *inputs: Any, **options: Any) -> Any:
    return getattr(generic, name).function.forward(np, *inputs, **options)


def _supports(window: Window, x: Any, y: Any) -> bool:
    if len(window.size) > 2 or x.dtype != y.dtype or x.dtype not in _DTYPES:
        return False
    return window.planar().dilation[0] == 1 and bool(x.size and y.size)


def _plane(window: Window) -> Plane:
    planar: Any = window.planar()
    (top, _), (left, _) = planar.padding
    return Plane(planar.kernel, planar.stride, (top, left), planar.dilation, planar.out)


def _size(window: Window) -> Any:
    return window.planar().size


def _as_images(x: Any) -> Any:
    """Return an array with four axes; one with three gets a height of 1."""
    return x if x.ndim == 4 else x[:, :, None]


def rows_first(x: Any) -> Any:
    """Return a view with shape (height, channels, images, width)."""
    return _as_images(x).transpose(2, 1, 0, 3)


def images_first(x: Any, like: Any) -> Any:
    """Return a view with shape (images, channels, ...) and as many axes as another array."""
    return x.transpose(2, 1, 0, 3) if like.ndim == 4 else x[0].swapaxes(0, 1)


def _by_group(x: Any, groups: int) -> Any:
    """Return rows as matrices with shape (height, groups, channels, images · width)."""
    height, channels, images, width = x.shape
    return np.ascontiguousarray(x).reshape(height, groups, channels // groups, images * width)


def _shifts(plane: Plane, size: Pair) -> Iterator[tuple[Any, Any]]:
    """Yield for each kernel column two keys: of the shifted rows, and of the input.

    The first selects where the elements of the input go, the second selects these elements.
    """
    (_, wide), (_, right), (top, left), (_, step), (_, columns) = plane
    first, last = _not_padding(plane, size[0])
    for i in range(wide):
        start = i * step - left  # the input column for the first output column
        begin = min(columns, max(0, -(start // right)))
        end = max(begin, min(columns, (size[1] - 1 - start) // right + 1))
        source = (
            slice(start + begin * right, start + end * right, right) if begin < end else slice(0)
        )
        yield (
            (slice(first, last), slice(None), i, ..., slice(begin, end)),
            (slice(first - top, last - top), ..., source),
        )


def _rows(plane: Plane) -> int:
    """Return the number of rows under the kernels of all rows of the output."""
    return (plane.out[0] - 1) * plane.stride[0] + plane.kernel[0]


def _not_padding(plane: Plane, height: int) -> Pair:
    """Return the first row under kernels that is an input row, and the end of these rows."""
    first = min(_rows(plane), max(0, plane.before[0]))
    return first, max(first, min(_rows(plane), height + plane.before[0]))


def _shifted(x: Any, plane: Plane) -> Any:
    """Return padded rows, shifted along the width.

    Their shape is (rows, channels, kernel width, images, width).
    """
    height, channels, images, width = x.shape
    (_, wide), (_, right), (top, left), _, (_, columns) = plane
    if (
        (wide, right, top, left, columns) == (1, 1, 0, 0, width)
        and _rows(plane) <= height
        and x.flags.c_contiguous
    ):
        return x[:, :, None]
    if right == 1 and columns == width:
        return _shifted_together(x, plane)
    out = np.zeros((_rows(plane), channels, wide, images, columns), x.dtype)
    for target, source in _shifts(plane, (height, width)):
        out[target] = x[source]
    return out


def _shifted_together(x: Any, plane: Plane) -> Any:
    """Return `_shifted` for an output as wide as the input.

    All images are shifted together as one row; then zeros are written at the edges.
    """
    (height, channels, images, width), (top, left) = x.shape, plane.before
    first, last = _not_padding(plane, height)
    out = np.empty((_rows(plane), channels, plane.kernel[1], images, width), x.dtype)
    out[:first] = out[last:] = 0
    inside = out[first:last]
    x = x.reshape(height, channels, images * width)[first - top : last - top]
    in_one_row = inside.reshape(*inside.shape[:3], images * width)
    for i in range(plane.kernel[1]):
        shift = i * plane.dilation[1] - left
        before, after = min(max(0, -shift), width), min(max(0, shift), width)
        length = images * width - before - after
        in_one_row[:, :, i, before : before + length] = x[..., after : after + length]
        inside[:, :, i, :, :before] = inside[:, :, i, :, width - after :] = 0
    return out


def _scattered(g: Any, weight: Any, plane: Plane, size: Pair, groups: int) -> Any:
    """Return the transpose of a correlation.

    Each output row gives one product, which is added to the rows under the kernel.
    """
    (high, wide), down, channels = plane.kernel, plane.stride[0], weight.shape[1]
    matrices = _matrices(weight, groups)
    out = native.scatter(g, matrices[0], plane, size) if groups == 1 else None
    if out is not None:
        return out
    matrices, g_rows = matrices.mT, _by_group(g, groups)
    rows = np.zeros((_rows(plane), groups, channels * wide, g_rows.shape[3]), g.dtype)
    for i, g_row in enumerate(g_rows):
        columns = np.matmul(matrices, g_row).reshape(groups, high, channels * wide, -1)
        rows[i * down : i * down + high] += columns.swapaxes(0, 1)
    rows = rows.reshape(len(rows), groups * channels, wide, g.shape[2], plane.out[1])
    out = np.zeros((size[0], groups * channels, g.shape[2], size[1]), g.dtype)
    for target, source in _shifts(plane, size):
        out[source] += rows[target]
    return out


def _matrices(weight: Any, groups: int) -> Any:
    """Return a weight as matrices with shape (groups, out, kernel height · in · kernel width)."""
    return np.ascontiguousarray(weight.swapaxes(1, 2).reshape(groups, len(weight) // groups, -1))


def _under_kernel(x: Any, plane: Plane, groups: int) -> Any:
    """Return for each output row the matrices of elements under the kernel, without copying rows.

    They have shape (rows, groups, kernel height · channels · kernel width, images · width).
    """
    shifted = _shifted(x, plane)
    if groups > 1:  # the rows of a group under the kernel must be adjacent
        shifted = (
            shifted.reshape(len(shifted), groups, -1, *shifted.shape[2:]).swapaxes(0, 1).copy()
        )
    else:
        shifted = shifted[None]
    _, _, channels, wide, images, columns = shifted.shape
    by_group, by_row = shifted.strides[:2]
    shape = plane.out[0], groups, plane.kernel[0] * channels * wide, images * columns
    strides = by_row * plane.stride[0], by_group, images * columns * x.itemsize, x.itemsize
    return np.ndarray(shape, x.dtype, shifted, 0, strides)


def _correlate(x: Any, weight: Any, plane: Plane, groups: int, bias: Any = None) -> Any:
    """Return the correlation of rows with a weight, plus a bias if given, with rows first.

    The weight has shape (out, in / groups, ...).
    """
    matrices = _matrices(weight, groups)
    out = native.correlate(x, matrices[0], bias, plane) if groups == 1 else None
    if out is not None:
        return out
    out = np.matmul(matrices, _under_kernel(x, plane, groups))
    out = out.reshape(plane.out[0], len(weight), x.shape[2], plane.out[1])
    if bias is not None:
        # twice as fast as adding to each channel
        out += np.repeat(bias, out[0, 0].size).reshape(out.shape[1:])
    return out
