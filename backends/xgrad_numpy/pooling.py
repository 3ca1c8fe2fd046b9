"""Maximum pooling on NumPy: along the width, then along the height.

Arrays have the layout of `convolution`.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np

from xgrad.ops import pooling
from xgrad.ops.windows import Window
from xgrad_numpy.convolution import images_first, rows_first
from xgrad_numpy.native import pooling as native

generic: Any = pooling
_BITS: dict[Any, Any] = {
    np.dtype("float32"): np.dtype("int32"),
    np.dtype("float64"): np.dtype("int64"),
}


def maximum_pool(x: Any, *, window: Window) -> Any:
    """Return the largest element of each window."""
    if len(window.size) > 2 or not x.size:
        return generic.maximum_pool.function.forward(np, x, window=window)
    window = window.planar()
    padded = _padded(rows_first(x), window)
    out = native.pool(padded, window) if native.supports(window, x.dtype) else None
    if out is None:
        out = _maxima(_maxima(padded, window, 0), window, 1)
    return images_first(out, x)


def maximum_pool_gradient(grad: Any, x: Any, *, window: Window) -> Any:
    """Return the gradient; each window passes its gradient to its first largest element.

    That is the first largest element in the first row that has one.
    """
    planar = window.planar()
    if len(window.size) <= 2 and x.size and x.dtype == grad.dtype and x.dtype in _BITS:
        padded, g = _padded(rows_first(x), planar), rows_first(grad)
        out = (native.spread if native.supports(planar, x.dtype) else _of_maxima)(g, padded, planar)
        if out is not None:
            (top, _), (left, _) = planar.padding
            return images_first(
                out[top : top + planar.size[0], ..., left : left + planar.size[1]], x
            )
    return generic.maximum_pool_gradient.function.forward(np, grad, x, window=window)


def _of_maxima(g: Any, padded: Any, window: Window) -> Any:
    """Return the gradient for padded rows.

    None if a maximum is NaN, or may be padding, which is not an element.
    """
    rows = _maxima(padded, window, 1)
    maxima = _maxima(rows, window, 0)
    if window.padded != window.size and np.isneginf(maxima).any():
        return None
    of_rows = _spread(g, rows, maxima, window, 0)
    return None if of_rows is None else _spread(of_rows, padded, rows, window, 1)


def _padded(x: Any, window: Window) -> Any:
    """Return rows padded with minus infinity."""
    if window.padded == window.size:
        return x
    (top, _), (left, _) = window.padding
    (height, width), (rows, columns) = window.size, window.padded
    out = np.full((rows, *x.shape[1:3], columns), -math.inf, x.dtype)
    out[top : top + height, ..., left : left + width] = x
    return out


def _keys(window: Window, axis: int) -> list[Any]:
    """Return the keys of the elements of all windows along the height (0) or the width (1)."""
    kernel, stride, step, count = (
        part[axis] for part in (window.kernel, window.stride, window.dilation, window.out)
    )
    slices = [slice(i * step, i * step + (count - 1) * stride + 1, stride) for i in range(kernel)]
    return [(..., key) for key in slices] if axis else slices


def _maxima(x: Any, window: Window, axis: int) -> Any:
    """Return the largest elements of windows along an axis."""
    first, *others = [x[key] for key in _keys(window, axis)]
    return reduce(np.maximum, others[1:], np.maximum(first, others[0])) if others else first.copy()


def _spread(grad: Any, x: Any, maxima: Any, window: Window, axis: int) -> Any:
    """Return the gradient for `x` of its maxima along an axis; None if there are NaNs.

    The bits of the gradient are multiplied by 0 or 1, which is exact for infinities, too.
    """
    bits = _BITS[grad.dtype]
    rest = grad.copy("C").view(bits)
    out = np.zeros(x.shape, grad.dtype)
    overlapping = window.stride[axis] < window.span[axis]
    for key in _keys(window, axis):
        part = rest * (x[key] == maxima)
        rest -= part
        if overlapping:
            out[key] += part.view(grad.dtype)
        else:
            out.view(bits)[key] = part
    return None if rest.any() else out
