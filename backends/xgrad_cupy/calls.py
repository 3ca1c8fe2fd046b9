"""Questions about the calls of a program: which of them access the memory of a value."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xgrad.capture.program import Call, Storage, Value


def is_view(call: Call) -> bool:
    """Return whether a call only makes views of an array."""
    storages = {x.storage for x in (*call.reads, *call.results)}
    return bool(call.reads and call.results) and not call.writes and len(storages) == 1


class Uses:
    """The accesses of memory by calls, in order.

    `overlap` tells whether two parts of the state share memory.
    """

    def __init__(self, calls: Sequence[Call], overlap: Callable[[Value, Value], bool]) -> None:
        self._calls, self._overlap = calls, overlap
        self._viewed = {view: x.reads[0] for x in calls if is_view(x) for view in x.results}
        self._of: dict[Storage, list[int]] = {}
        for i, call in enumerate(calls):
            for storage in {x.storage for x in (*call.reads, *call.writes, *call.results)}:
                self._of.setdefault(storage, []).append(i)

    def of(self, value: Value) -> list[int]:
        """Return the indices of the calls that access the storage of a value, or make views."""
        return self._of.get(value.storage, [])

    def origin(self, value: Value) -> Value:
        """Return the value that a value is a view of, directly or not, or the value itself."""
        while value in self._viewed:
            value = self._viewed[value]
        return value

    def between(self, value: Value, first: int, last: int) -> bool:
        """Return whether the memory of a value is accessed, or the value made, in a range of calls.

        The call at index `last` does not count.
        """
        return any(
            value in self._calls[i].results or self.accesses(self._calls[i], value)
            for i in range(first, last)
        )

    def written(self, value: Value, first: int, last: int) -> bool:
        """Return whether a call at an index from `first` to `last` - 1 writes to the memory."""
        return any(
            value.storage in {x.storage for x in self._calls[i].writes}
            and self.accesses(self._calls[i], value)
            for i in range(first, last)
        )

    def accesses(self, call: Call, value: Value) -> bool:
        """Return whether a call reads or writes the memory of a value; a view does neither."""
        origin = self.origin(value)
        return not is_view(call) and any(
            x.storage is value.storage and self._overlap(self.origin(x), origin)
            for x in (*call.reads, *call.writes, *call.results)
        )
