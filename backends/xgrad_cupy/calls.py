"""Memory accesses of the calls of a program, and its sums over leading axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from xgrad.capture.program import Call, Storage, Value
from xgrad_cupy.kernels.raw import FLOATS
from xgrad_cupy.kernels.sums import view_of


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


def summed_values(calls: Iterable[Call], sum: Callable[..., Any]) -> set[Value]:
    """Return the values of which a call of `sum` takes the sums over the leading axes."""
    origins: dict[Value, Value] = {}
    summed = set()
    for call in calls:
        if is_view(call):
            for view in call.results:
                origins[view] = origins.get(call.reads[0], call.reads[0])
        elif call.function is sum and columns_of_sum(call) is not None:
            summed.add(origins.get(call.reads[0], call.reads[0]))
    return summed


def columns_of_sum(call: Call) -> tuple[int, int, int] | None:
    """Return how a sum over the leading axes sees its operand; None for any other sum."""
    x, axis = call.reads[0], call.options.get("axis")
    if axis is None or call.options.get("dtype") is not None or x.dtype not in FLOATS:
        return None
    axes = axis if isinstance(axis, tuple) else (axis,)
    view = view_of(x.shape, [i % len(x.shape) for i in axes])
    return view if view is not None and view[2] == 1 and view[0] > 1 else None
