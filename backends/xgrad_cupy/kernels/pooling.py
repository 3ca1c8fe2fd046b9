"""Pooling over windows: the largest elements and the sums, by one launch, and their gradients.

The rules are in `xgrad.ops.pooling`. Results have their bits: elements are compared and added in
the same order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xgrad.ops.windows import Window
from xgrad_cupy.kernels import windows
from xgrad_cupy.kernels.raw import THREADS, RawKernels, blocks_for

_SOURCE = f"""{windows.SOURCE}
#define WINDOW \\
    Index at = (Index)blockIdx.x * blockDim.x + threadIdx.x; \\
    if (at >= images * channels * rows * columns) return; \\
    Index column = at % columns, row = at / columns % rows, plane = at / columns / rows; \\
    input += plane * height * width;
#define ELEMENT \\
    Index at = (Index)blockIdx.x * blockDim.x + threadIdx.x; \\
    if (at >= images * channels * height * width) return; \\
    Index x = at % width, y = at / width % height, plane = at / width / height; \\
    grad += plane * rows * columns;
#define VALUE input[y * width + x]

extern "C" __global__ void maximum_pool(const T *input, T *out, {windows.PARAMETERS}) {{
    WINDOW
    T largest = -(T)__longlong_as_double(0x7ff0000000000000LL);
    EACH_ELEMENT(row, column, if (VALUE > largest || VALUE != VALUE) largest = VALUE;
                 if (largest != largest) break;)
    out[at] = largest;
}}

// The first largest element of each window, by its number in the window; the last one that is NaN
extern "C" __global__ void maximum_pool_choices(
    const T *input, short *choices, {windows.PARAMETERS}
) {{
    WINDOW
    T largest = 0;
    int choice = -1;
    EACH_ELEMENT(row, column, if (choice < 0 || VALUE > largest || VALUE != VALUE) {{
        largest = VALUE;
        choice = tap;
    }})
    choices[at] = (short)choice;
}}

extern "C" __global__ void maximum_pool_gradient(
    const T *grad, const short *choices, T *out, {windows.PARAMETERS}
) {{
    ELEMENT
    choices += plane * rows * columns;
    T sum = 0;
    EACH_WINDOW(y, x, {{
        Index window = row * columns + column;
        if (choices[window] == tap) sum += grad[window];
    }})
    out[at] = sum;
}}

extern "C" __global__ void sum_pool(const T *input, T *out, {windows.PARAMETERS}) {{
    WINDOW
    T sum = 0;
    EACH_ELEMENT(row, column, sum += VALUE;)
    out[at] = sum;
}}

extern "C" __global__ void sum_pool_gradient(const T *grad, T *out, {windows.PARAMETERS}) {{
    ELEMENT
    T sum = 0;
    EACH_WINDOW(y, x, sum += grad[row * columns + column];)
    out[at] = sum;
}}
"""

_MAX_TAPS = 1 << 15  # elements of a window, which are numbered by int16


class Pooling:
    """Kernels for CuPy, the module `cp`; they return NotImplemented for what they do not take."""

    def __init__(self, cp: Any) -> None:
        self._cp, self._kernels = cp, RawKernels(cp, _SOURCE)

    def maximum_pool(self, x: Any, *, window: Window) -> Any:
        """Return the largest element of each window."""
        return self._of_windows("maximum_pool", x, window)

    def maximum_pool_gradient(self, grad: Any, x: Any, *, window: Window) -> Any:
        """Return the gradient of `maximum_pool`."""
        if not windows.supported(window, grad, x) or np.prod(window.kernel) >= _MAX_TAPS:
            return NotImplemented
        choices = self._cp.empty(grad.shape, np.int16)
        x = self._cp.ascontiguousarray(x)
        self._launch("maximum_pool_choices", x.dtype, choices.size, (x, choices), window, x.shape)
        return self._of_elements("maximum_pool_gradient", grad, window, choices)

    def sum_pool(self, x: Any, *, window: Window) -> Any:
        """Return the sum of the elements of each window."""
        return self._of_windows("sum_pool", x, window)

    def sum_pool_gradient(self, grad: Any, *, window: Window) -> Any:
        """Return the gradient of `sum_pool`."""
        if not windows.supported(window, grad):
            return NotImplemented
        return self._of_elements("sum_pool_gradient", grad, window)

    def _of_windows(self, name: str, x: Any, window: Window) -> Any:
        if not windows.supported(window, x):
            return NotImplemented
        out = self._cp.empty((*x.shape[:2], *window.out), x.dtype)
        arrays = self._cp.ascontiguousarray(x), out
        self._launch(name, x.dtype, out.size, arrays, window, x.shape)
        return out

    def _of_elements(self, name: str, grad: Any, window: Window, *more: Any) -> Any:
        out = self._cp.empty((*grad.shape[:2], *window.size), grad.dtype)
        arrays = self._cp.ascontiguousarray(grad), *more, out
        self._launch(name, grad.dtype, out.size, arrays, window, out.shape)
        return out

    def _launch(
        self,
        name: str,
        dtype: Any,
        count: int,
        arrays: tuple[Any, ...],
        window: Window,
        shape: tuple[int, ...],
    ) -> None:
        args = *arrays, *windows.arguments(window, *shape[:2])
        self._kernels.launch(
            name, dtype, blocks_for(count), (THREADS,), args, largest=max(x.size for x in arrays)
        )
