"""Buffer assignment, and layouts of values.

Values that are not live at the same time share memory.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from xgrad.capture.program import Storage, Value

ALIGNMENT = 64  # bytes of a cache line


class BufferAssignment:
    """Offsets for values in one block of memory of `nbytes`: best fit.

    Adjacent free blocks are joined.
    """

    def __init__(self) -> None:
        self.nbytes = 0
        # offset, and bytes of the value it was allocated for
        self._live: dict[Storage, tuple[int, int]] = {}
        self._free: list[tuple[int, int]] = []  # starts and ends, sorted

    def allocate(self, value: Value) -> int:
        """Return the offset of memory for a value, until its storage is released."""
        size = _aligned(value.nbytes)
        fitting = [(end - start, start) for start, end in self._free if end - start >= size]
        if fitting:
            free, offset = min(fitting)
            i = bisect_left(self._free, (offset,))
            self._free[i : i + 1] = [(offset + size, offset + free)] if free > size else []
        else:
            # whether a free block at the end can grow
            last = bool(self._free) and self._free[-1][1] == self.nbytes
            offset = self._free.pop()[0] if last else self.nbytes
            self.nbytes = offset + size
        self._live[value.storage] = offset, value.nbytes
        return offset

    def transfer(self, old: Value, new: Value) -> bool:
        """Give the memory of a value to a new value of the same layout.

        Returns False, and does nothing, unless the old value owned all of it.
        """
        if (
            old.storage not in self._live
            or self._live[old.storage][1] != old.nbytes
            or not is_dense(old)
        ):
            return False
        self._live[new.storage] = self._live.pop(old.storage)
        return True

    def release(self, storage: Storage) -> None:
        """Free the memory of a storage, if it has any."""
        if storage in self._live:
            start, nbytes = self._live.pop(storage)
            end = start + _aligned(nbytes)
            i = bisect_left(self._free, (start,))
            if i < len(self._free) and self._free[i][0] == end:
                end = self._free.pop(i)[1]
            if i and self._free[i - 1][1] == start:
                i -= 1
                start = self._free.pop(i)[0]
            self._free.insert(i, (start, end))

    def memory(self) -> np.ndarray:
        """Return new memory for the block."""
        memory = np.empty(self.nbytes + ALIGNMENT, np.uint8)
        start = -memory.ctypes.data % ALIGNMENT
        return memory[start : start + self.nbytes]


def _aligned(nbytes: int) -> int:
    return -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT


def is_contiguous(value: Value, axes: Iterable[int] | None = None) -> bool:
    """Return whether the elements lie without gaps, in the given order of axes.

    `axes` starts with the innermost axis; the default is C order.
    """
    strides: Any = value.strides
    expected = int(value.dtype.itemsize)
    for axis in axes or reversed(range(len(value.shape))):
        if value.shape[axis] > 1 and strides[axis] != expected:
            return 0 in value.shape
        expected *= value.shape[axis]
    return True


def contiguous_strides(value: Value) -> tuple[int, ...]:
    """Return the strides of new memory in C order, also for axes of length 1."""
    strides, step = list[int](), int(value.dtype.itemsize)
    for n in reversed(value.shape):
        strides.append(step)
        step *= max(n, 1)
    return (
        tuple(reversed(strides))
        if math.prod(value.shape)
        else np.empty(value.shape, value.dtype).strides
    )


def is_dense(value: Value) -> bool:
    """Return whether the elements lie without gaps, in any order of the axes."""
    strides: Any = value.strides
    return is_contiguous(value) or is_contiguous(
        value, sorted(range(len(strides)), key=strides.__getitem__)
    )


def has_layout(x: Any, y: Value) -> bool:
    """Return whether an argument has the shape, strides and dtype of a value."""
    return (
        type(x) is Value
        and x.shape == y.shape
        and x.strides == y.strides
        and bool(x.dtype == y.dtype)
    )


def copy_with_strides(x: Any) -> Any:
    """Return a copy with the same strides."""
    if not x.size or not x.shape:
        return x.copy()
    low, high = byte_bounds(x)
    copy: np.ndarray = np.ndarray(
        x.shape, x.dtype, np.empty(high - low, np.uint8), x.ctypes.data - low, x.strides
    )
    copy[...] = x
    return copy
