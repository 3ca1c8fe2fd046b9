"""A plan of memory: values that are not needed at the same time share it."""

from __future__ import annotations

from bisect import bisect
from typing import Any

import numpy as np

from xgrad.capturing.program import Storage, Value
from xgrad_numpy.layout import dense

_ALIGNED = 64  # bytes of a cache line


class Place:
    """Where a value will lie; called, the array there.

    Who takes the place of another that lies alike has the same array, not one more of the same memory: NumPy then sees
    at once that to write to what it reads does no harm, where it would have to find out.
    """

    __slots__ = ("array", "end", "nbytes", "offset", "plan", "start", "takes", "value")

    def __init__(self, plan: Plan, value: Value, start: int, end: int) -> None:
        self.plan, self.value, self.start, self.end = plan, value, start, end
        self.nbytes = -(-max(value.nbytes, 1) // _ALIGNED) * _ALIGNED
        self.offset = 0
        self.takes: Place | None = None
        self.array: Any = None

    def __call__(self) -> Any:
        if self.array is None:
            value, memory = self.value, self.plan.memory
            if self.takes is not None and self.takes.value.lies_as(value):
                self.array = self.takes()
            else:
                self.array = np.ndarray(value.shape, value.dtype, memory, self.offset, value.strides)
        return self.array


class Plan:
    """Memory for values, each needed from one call to another.

    Attributes
    ----------
    memory : array of uint8
        All of it, once it has been allocated.
    nbytes : int
        How much.
    """

    def __init__(self) -> None:
        self._live: dict[Storage, Place] = {}
        self._ends: dict[int, list[Place]] = {}  # by the last call that needs them
        self._free: list[tuple[int, int]] = []  # offsets and sizes, in order
        self.nbytes = 0

    def add(self, value: Value, start: int, end: int, reuse: tuple[Value, ...]) -> Place:
        """Find memory for a value that calls `start` to `end` need: that of another if one is given, and free then."""
        place = Place(self, value, start, end)
        for other in reuse:
            earlier = self._live.get(other.storage)
            if earlier is not None and earlier.nbytes == place.nbytes and self.fills(other):
                del self._live[other.storage]
                place.offset, place.takes = earlier.offset, earlier
                break
        else:
            place.offset = self._take(place.nbytes)
        self._live[value.storage] = place
        self._ends.setdefault(end, []).append(place)
        return place

    def fills(self, value: Value) -> bool:
        """Return whether a value is all that its memory was made for, or a view of all: its place can be another's."""
        place = self._live.get(value.storage)
        if place is None:
            return False
        return place.value.number == value.number or (place.value.nbytes == value.nbytes and dense(value))

    def _take(self, nbytes: int) -> int:
        fitting = [(size, offset) for offset, size in self._free if size >= nbytes]
        if fitting:
            size, offset = min(fitting)
            self._free.remove((offset, size))
            if size > nbytes:
                self._give(offset + nbytes, size - nbytes)
            return offset
        if self._free and sum(self._free[-1]) == self.nbytes:  # the end can grow
            offset, _ = self._free.pop()
        else:
            offset = self.nbytes
        self.nbytes = offset + nbytes
        return offset

    def _give(self, offset: int, nbytes: int) -> None:
        free, i = self._free, bisect(self._free, (offset, nbytes))
        if i < len(free) and offset + nbytes == free[i][0]:
            nbytes += free.pop(i)[1]
        if i and sum(free[i - 1]) == offset:
            i -= 1
            offset, size = free.pop(i)
            nbytes += size
        free.insert(i, (offset, nbytes))

    def release(self, at: int) -> None:
        """Free the memory of values that no call after this one needs."""
        for place in self._ends.pop(at, ()):
            if self._live.get(place.value.storage) is place:
                del self._live[place.value.storage]
                self._give(place.offset, place.nbytes)

    def allocate(self) -> None:
        """Get the memory."""
        spare = np.empty(self.nbytes + _ALIGNED, np.uint8)
        start = -spare.ctypes.data % _ALIGNED
        self.memory = spare[start : start + self.nbytes]
