"""Analysis of programs: makers, readers and last uses of values, and copies that can be elided."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from xgrad.capture.program import Call, Program, Storage, Value
from xgrad_numpy.buffer_assignment import has_layout


class Analysis:
    """Facts about the values of a program, by their numbers, given the arrays of its state."""

    def __init__(self, program: Program, arrays: Sequence[np.ndarray]) -> None:
        self._calls = calls = program.calls
        self.read_only = set[int]()  # views that NumPy does not write to
        self.readers: dict[int, list[Call]] = {}
        for call in calls:
            views = {
                x.storage
                for x in call.reads
                if call.function is np.broadcast_to or x.number in self.read_only
            }
            self.read_only.update([x.number for x in call.results if x.storage in views])
            for x in call.reads:
                self.readers.setdefault(x.number, []).append(call)
        # indices of the last calls that read each value
        self.last_reads = {x.number: i for i, call in enumerate(calls) for x in call.reads}
        # indices of the calls that make each value
        self.makers = {x.number: i for i, call in enumerate(calls) for x in call.results}
        # index of the last call that may end a replay; -1 without one
        checks = [i for i, call in enumerate(calls) if call.may_end_replay]
        self.last_check = checks[-1] if checks else -1
        self.escaping = {x.storage for x in program.outputs}
        last_uses = {
            x.storage: i
            for i, call in enumerate(calls)
            for x in (*call.reads, *call.results, *call.writes)
        }
        # index of the last call that uses each storage; outputs are used after all calls
        self._last_uses = last_uses | dict.fromkeys(self.escaping, len(calls))
        self._used_last: dict[int, list[Storage]] = {}  # the same, by call; with ones kept longer
        for storage, at in self._last_uses.items():
            self._used_last.setdefault(at, []).append(storage)
        # targets of copies, by value: a copy is its only use, so it is computed there
        self.targets: dict[int, Value] = {}
        extents = {x.number: byte_bounds(y) for x, y in zip(program.state, arrays, strict=True)}
        self._find_targets(extents, {x.storage: (0, math.inf) for x in program.state})
        # values that cover all memory that is written before the last check
        self.written_before_checks = self._written_before_checks(program, arrays)

    def dies_at(self, storage: Storage, at: int) -> bool:
        """Return whether nothing uses a storage after a call, given by its index."""
        return self._last_uses[storage] == at

    def dying(self, at: int) -> list[Storage]:
        """Return the storages that nothing uses after a call."""
        return [x for x in self._used_last.get(at, ()) if self.dies_at(x, at)]

    def keep(self, storage: Storage, until: int) -> None:
        """Keep a storage alive at least until a call."""
        if self._last_uses.get(storage, -1) < until:
            self._last_uses[storage] = until
            self._used_last.setdefault(until, []).append(storage)

    def _find_targets(self, extents: dict[int, Any], shared: dict[Storage, Any]) -> None:
        """Find values to compute directly in the arrays of the state that they are copied to.

        Nothing may access that memory between the computation and the copy.
        """
        # indices of calls, with extents of memory that they read or write
        accesses: list[tuple[float, float, float]] = []
        copies: list[tuple[int, int, Value, Value]] = []
        for i, call in enumerate(self._calls):
            for x in (*call.reads, *call.writes):
                if x.storage in shared:
                    accesses.append((i, *extents.get(x.number, shared[x.storage])))
            for x in call.results:
                known = [
                    extents[y.number]
                    for y in call.reads
                    if y.storage is x.storage and y.number in extents
                ]
                extents.update((x.number, memory) for memory in known[:1])
            if call.function is np.asarray and getattr(call.args[0], "scalar", False):
                if self._is_read_once(call.args[0]):
                    self.targets[call.args[0].number] = call.results[0]
            elif (
                call.function is operator.setitem
                and call.args[1] is Ellipsis
                and call.args[0].number in extents
            ):
                target, _, x = call.args
                if (
                    has_layout(x, target)
                    and self._is_read_once(x)
                    and x.storage.kind == "temporary"
                ):
                    copies.append((self.makers[x.number], i, x, target))
        table = np.array(accesses or [(0, 0, 0)])
        for start, end, x, target in copies:
            rows = table[slice(*np.searchsorted(table[:, 0], (start, end)))]
            low, high = extents[target.number]
            if start > self.last_check and not ((rows[:, 1] < high) & (rows[:, 2] > low)).any():
                self.targets[x.number] = target

    def _written_before_checks(self, program: Program, arrays: Sequence[np.ndarray]) -> list[Value]:
        before = self._calls[: max(self.last_check, 0)]
        written = {x.storage for call in before for x in call.writes}
        values = [x for x in program.inputs if x.storage in written]
        whole: list[tuple[int, int]] = []  # extents of contiguous arrays, large ones first
        state = [x for x in zip(program.state, arrays, strict=True) if x[0].storage in written]
        for x, array in sorted(state, key=lambda pair: -pair[1].nbytes):
            low, high = byte_bounds(array)
            if not any(start <= low and high <= end for start, end in whole):
                values.append(x)
                if array.flags.forc:
                    whole.append((low, high))
        return values

    def _is_read_once(self, x: Value) -> bool:
        """Return whether exactly one call reads a value that another call makes.

        No other value may share its memory.
        """
        if x.number not in self.makers or x.storage.writes or x.storage in self.escaping:
            return False
        alone = all(y.storage is not x.storage for y in self._calls[self.makers[x.number]].reads)
        return alone and len(self.readers[x.number]) == 1
