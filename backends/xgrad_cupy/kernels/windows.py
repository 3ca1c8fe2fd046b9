"""Windows over images, as arguments of kernels: see `xgrad.ops.windows.Window`."""

from __future__ import annotations

from typing import Any

import numpy as np

from xgrad.ops.windows import Window
from xgrad_cupy.kernels.raw import FLOATS

#: The parameters of a window over two axes, and the input's shape, in CUDA C++.
PARAMETERS = (
    "Index images, Index channels, Index height, Index width, Index rows, Index columns,"
    " int kernel_h, int kernel_w, int stride_h, int stride_w, int before_h, int before_w,"
    " int dilation_h, int dilation_w"
)

#: Loops over the elements under a window, and over the windows over an element. `tap` counts the
#: elements of a window in row order.
SOURCE = """
// The elements of the window at (row, column) that are not padding
#define EACH_ELEMENT(row, column, statement) \\
    for (int tap = 0; tap < kernel_h * kernel_w; ++tap) { \\
        Index y = (row) * stride_h - before_h + tap / kernel_w * dilation_h; \\
        Index x = (column) * stride_w - before_w + tap % kernel_w * dilation_w; \\
        if (y < 0 || y >= height || x < 0 || x >= width) continue; \\
        statement \\
    }

// The windows that have the element (y, x) under them
#define EACH_WINDOW(y, x, statement) \\
    for (int tap = 0; tap < kernel_h * kernel_w; ++tap) { \\
        Index down = (y) + before_h - tap / kernel_w * dilation_h; \\
        Index right = (x) + before_w - tap % kernel_w * dilation_w; \\
        if (down < 0 || right < 0 || down % stride_h || right % stride_w) continue; \\
        Index row = down / stride_h, column = right / stride_w; \\
        if (row >= rows || column >= columns) continue; \\
        statement \\
    }
"""


def arguments(window: Window, images: int, channels: int) -> tuple[Any, ...]:
    """Return the arguments for `PARAMETERS`, for a window over one axis or two."""
    window = window.planar()
    before = [pair[0] for pair in window.padding]
    numbers = *window.kernel, *window.stride, *before, *window.dilation
    return images, channels, *window.size, *window.out, *map(np.int32, numbers)


def supported(window: Window, *arrays: Any) -> bool:
    """Return whether kernels take arrays of these dtypes and shapes, and the window."""
    return len(window.size) <= 2 and all(
        x.dtype in FLOATS and x.dtype == arrays[0].dtype and 0 not in x.shape for x in arrays
    )


def strides_of(x: Any) -> tuple[int, ...]:
    """Return the strides of images, channels, rows and columns, in elements."""
    strides = [stride // x.itemsize for stride in x.strides]
    return tuple(strides if x.ndim == 4 else [*strides[:2], 0, strides[2]])
