"""The executor of captured steps on NumPy: a program as instructions that write to preassigned buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xgrad.capture.program import Program
from xgrad_numpy.codegen import Code, Slot
from xgrad_numpy.lowering import Lowering


class Executor:
    """Executor of a program on NumPy: see "Captured steps" in ``backends/README.md`` for the interface."""

    run: Callable[..., Any]

    def __init__(self, program: Program) -> None:
        self._program = program
        self._lowering: Lowering | None = None
        self._code: Code | None = None
        self.nbytes = 0

    def link(self, arrays: Sequence[np.ndarray]) -> None:
        """Use these arrays of the state. The first call lowers the program, which depends on overlaps between them."""
        lowering = self._lowering = self._lowering or Lowering(self._program, arrays)
        changed = [(slot, array) for slot, array in zip(lowering.state, arrays, strict=True) if slot.array is not array]
        for slot, array in changed:
            slot.array = array
        pending, affected = [slot for slot, _ in changed], set[Slot]()
        while pending:
            new = set(pending.pop().dependents) - affected
            affected |= new
            pending += new
        for slot in lowering.static if self._code is None else sorted(affected, key=lambda slot: slot.order):
            slot.array = slot.find()
        if self._code is None:
            self._code = code = Code(lowering.parameters, lowering.before, lowering.after, lowering.outputs)
            self.run, self.nbytes = code.run, lowering.nbytes
        else:
            self._code.update([*[slot for slot, _ in changed], *affected])

    def release(self) -> None:
        """Drop all arrays; the next `link` lowers the program again."""
        if self._lowering is not None and self._code is not None:
            self._code.scope.clear()
            for slot in (*self._lowering.state, *self._lowering.static):
                slot.array = None
        self._lowering = self._code = None
