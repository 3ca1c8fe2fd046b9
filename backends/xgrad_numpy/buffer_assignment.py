"""Buffer assignment: values that are not live at the same time share memory. And the layouts of values in memory."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from xgrad.capture.program import Storage, Value

ALIGNMENT = 64  # bytes of a cache line


class BufferAssignment:
    """Offsets for values in one piece of memory of `nbytes`: best fit, with neighbouring free pieces joined."""

    def __init__(self) -> None:
        self.nbytes = 0
        self._live: dict[Storage, tuple[int, int]] = {}  # offsets, and the size of the value allocated for
        self._free: list[tuple[int, int]] = []  # sizes and offsets, sorted
        self._ends: dict[int, int] = {}  # of free pieces, by where they begin
        self._starts: dict[int, int] = {}  # of free pieces, by where they end

    def allocate(self, value: Value) -> int:
        """Return the offset of memory for a value, until its storage is released."""
        size = _aligned(value.nbytes)
        i = bisect_left(self._free, (size, 0))
        if i < len(self._free):
            free, offset = self._free[i]
            self._remove(offset, offset + free)
            if free > size:
                self._add(offset + size, offset + free)
        else:
            offset = self._starts.get(self.nbytes, self.nbytes)
            if offset < self.nbytes:  # the free piece at the end grows
                self._remove(offset, self.nbytes)
            self.nbytes = offset + size
        self._live[value.storage] = offset, value.nbytes
        return offset

    def transfer(self, old: Value, new: Value) -> bool:
        """Give the memory of a value to one of the same layout; return whether the old value has it for itself."""
        if old.storage not in self._live or self._live[old.storage][1] != old.nbytes or not is_dense(old):
            return False
        self._live[new.storage] = self._live.pop(old.storage)
        return True

    def release(self, storage: Storage) -> None:
        """Free the memory of a storage, if it has any."""
        if storage in self._live:
            start, nbytes = self._live.pop(storage)
            end = start + _aligned(nbytes)
            if end in self._ends:
                after, end = end, self._ends[end]
                self._remove(after, end)
            if start in self._starts:
                before, start = start, self._starts[start]
                self._remove(start, before)
            self._add(start, end)

    def memory(self) -> np.ndarray:
        """Return new memory of this size."""
        memory = np.empty(self.nbytes + ALIGNMENT, np.uint8)
        start = -memory.ctypes.data % ALIGNMENT
        return memory[start : start + self.nbytes]

    def _add(self, start: int, end: int) -> None:
        insort(self._free, (end - start, start))
        self._ends[start], self._starts[end] = end, start

    def _remove(self, start: int, end: int) -> None:
        del self._free[bisect_left(self._free, (end - start, start))], self._ends[start], self._starts[end]


def _aligned(nbytes: int) -> int:
    return -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT


def is_contiguous(value: Value, axes: Iterable[int] | None = None) -> bool:
    """Return whether the elements lie without gaps, with the axes from the innermost; by default in C order."""
    strides: Any = value.strides
    expected = int(value.dtype.itemsize)
    for axis in axes or reversed(range(len(value.shape))):
        if value.shape[axis] > 1 and strides[axis] != expected:
            return 0 in value.shape
        expected *= value.shape[axis]
    return True


def is_dense(value: Value) -> bool:
    """Return whether the elements lie without gaps, in any order of the axes."""
    strides: Any = value.strides
    return is_contiguous(value) or is_contiguous(value, sorted(range(len(strides)), key=strides.__getitem__))


def has_layout(x: Any, y: Value) -> bool:
    """Return whether an argument has the shape, strides and dtype of a value."""
    return type(x) is Value and x.shape == y.shape and x.strides == y.strides and bool(x.dtype == y.dtype)


def copy_with_strides(x: Any) -> Any:
    """Return a copy with the same strides."""
    if not x.size or not x.shape:
        return x.copy()
    low, high = byte_bounds(x)
    copy: np.ndarray = np.ndarray(x.shape, x.dtype, np.empty(high - low, np.uint8), x.ctypes.data - low, x.strides)
    copy[...] = x
    return copy
