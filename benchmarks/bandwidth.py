"""Bandwidth of sums, norms, updates and copies on a device: shapes, and the transfers they count.

The count of a kernel is ideal: each of its inputs and outputs is read or written once. A kernel
that reads an array twice, or writes intermediate results, has a lower bandwidth by this count.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

ROW = 1024  # columns of matrices, and width of the layer normalization
CHANNELS, SIDE = 32, 16  # of images
SIZES = (1 << 24, 1 << 27, 1 << 20)  # numbers of elements, all float32
QUICK = (1 << 14,)
ARRAYS = 32  # arrays of the full size for which the device must have memory: of three processes
#: For each kernel, the number of arrays of the full size that it reads or writes.
KERNELS = {
    "sum of all": 1,
    "sum over axis 0": 1,
    "sum over axis 1": 1,
    "sum over all but channels": 1,
    "layer norm, forward": 2,
    "layer norm, forward and backward": 5,  # x to y; x and the gradient of y to the gradient of x
    "batch norm, forward": 2,
    "batch norm, forward and backward": 5,
    "softmax, forward": 2,
    "softmax, forward and backward": 5,  # x to y; y and its gradient to the gradient of x
    "Adam": 7,  # reads parameter, gradient and two moments; writes all but the gradient
    "copy": 2,
    "host to device": 1,
    "pinned host to device": 1,
    "device to host": 1,
}
COPY = KERNELS["copy"]


def shape(kernel: str, elements: int) -> tuple[int, ...]:
    """Return the shape of the array of a kernel: a matrix, images, or a vector."""
    if kernel.startswith("batch norm") or "channels" in kernel:
        return elements // (CHANNELS * SIDE**2), CHANNELS, SIDE, SIDE
    if kernel.startswith(("sum over", "layer norm", "softmax")):
        return elements // ROW, ROW
    return (elements,)


def data(kernel: str, elements: int) -> np.ndarray:
    """Return random float32 numbers of the shape of a kernel."""
    return _numbers(elements).reshape(shape(kernel, elements))


@lru_cache(maxsize=1)  # kernels of one size follow each other
def _numbers(elements: int) -> np.ndarray:
    """Return random numbers that repeat after a million, as drawing takes long."""
    drawn = np.random.default_rng(0).standard_normal(min(elements, 1 << 20), np.float32)
    return np.resize(drawn, elements)
