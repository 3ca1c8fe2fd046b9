"""Calls of the native kernels of maximum pooling, pooling.c."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np

from xgrad.ops.windows import Window
from xgrad_numpy.native.expressions import chooses_first
from xgrad_numpy.native.runtime import loaded_runtime
from xgrad_numpy.native.windows import (
    TYPES,
    StepsStruct,
    WindowStruct,
    function,
    steps,
    table,
    with_adjacent_columns,
)

_LONGEST = 512  # of windows.h


class _Pooling(ctypes.Structure):
    """``struct pooling`` of windows.h."""

    _fields_ = (
        *[(name, ctypes.c_int64) for name in ("height", "width", "channels", "images")],
        *[(name, WindowStruct) for name in ("down", "right")],
        *[(name, StepsStruct) for name in ("input", "grad", "out")],
        *[(name, ctypes.c_int32) for name in ("padded", "failed")],
        *[(name, ctypes.c_void_p) for name in ("x", "g", "result", "rows")],
    )


def supports(window: Window, dtype: Any) -> bool:
    """Return whether there are native kernels for a window and a dtype now."""
    if dtype not in TYPES or loaded_runtime() is None or window.span[1] > _LONGEST:
        return False
    return chooses_first(np.maximum, dtype) is not None


def pool(x: Any, window: Window) -> Any:
    """Return the largest elements of windows of padded rows, laid out as by NumPy.

    None for some layouts.
    """
    if window.kernel == (1, 1):
        return None
    height, width = window.out
    if x.flags.c_contiguous or 1 in window.kernel:  # NumPy copies rows for a kernel of 1
        out = np.empty((height, *x.shape[1:3], width), x.dtype)
    elif x.transpose(2, 1, 0, 3).flags.c_contiguous:
        out = np.empty((x.shape[2], x.shape[1], height, width), x.dtype).transpose(2, 1, 0, 3)
    else:
        return None
    if out.size:
        x = with_adjacent_columns(x)
        struct = _struct(window, x.shape, x.strides, None, out.strides)
        function("pool", x.dtype)(struct, table(x, out))
    return out


def spread(grad: Any, x: Any, window: Window) -> Any:
    """Return the gradient for padded rows.

    None if a maximum is NaN, or may be padding, which is not an element.
    """
    x, grad = with_adjacent_columns(x), with_adjacent_columns(grad)
    out = np.empty(x.shape, x.dtype)
    pairs = window.kernel == window.stride == (2, 2) and window.dilation == (1, 1)
    # two for each row, see pooling.c
    rows = np.empty(0 if pairs else 2 * out[..., 0].size * window.out[1], x.dtype)
    struct = _struct(window, x.shape, x.strides, grad.strides, out.strides)
    defined = function("spread", x.dtype)(struct, table(x, grad, out, rows))
    return out if defined else None


@lru_cache(256)
def _struct(window: Window, shape: Any, x: Any, grad: Any, out: Any) -> Any:
    """Return the address of a struct for rows of a shape and arrays with strides.

    C adds the arrays.
    """
    struct, item = _Pooling(shape[0], shape[3], shape[1], shape[2]), out[3]
    numbers = zip(window.kernel, window.stride, window.dilation, window.out, strict=True)
    struct.down, struct.right = [WindowStruct(*axis) for axis in numbers]
    struct.input, struct.grad, struct.out = [
        steps(strides, item) for strides in (x, grad or x, out)
    ]
    struct.padded = window.padded != window.size
    return ctypes.byref(struct)
