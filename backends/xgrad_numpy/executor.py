"""The executor of captured steps on NumPy: a program as calls that write to buffers assigned in advance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xgrad.capture.program import Program
from xgrad_numpy.codegen import Code, Slot
from xgrad_numpy.lowering import Lowering


class Executor:
    """Executor of a program on NumPy.

    `run` takes the arrays of the inputs and the values of the numbers, and returns a tuple of the outputs, or an error
    from before the first write to the state or an input. After the last write the outputs are in `done`.
    """

    run: Callable[..., Any]

    def __init__(self, program: Program) -> None:
        self._program = program
        self._plan: Lowering | None = None
        self._code: Code | None = None
        self.nbytes, self.source, self.done = 0, "", list[Any]()

    def link(self, arrays: Sequence[np.ndarray]) -> None:
        """Use these arrays of the state. The first call plans, for that depends on which of them overlap."""
        plan = self._plan = self._plan or Lowering(self._program, arrays)
        changed = [(slot, array) for slot, array in zip(plan.state, arrays, strict=True) if slot.array is not array]
        for slot, array in changed:
            slot.array = array
        pending, affected = [slot for slot, _ in changed], set[Slot]()
        while pending:
            new = set(pending.pop().dependents) - affected
            affected |= new
            pending += new
        for slot in plan.static if self._code is None else sorted(affected, key=lambda slot: slot.order):
            slot.array = slot.find()
        if self._code is None:
            self._code = code = Code(plan.parameters, plan.before, plan.after, plan.outputs)
            self.run, self.source, self.done, self.nbytes = code.run, code.source, code.done, plan.nbytes
        else:
            self._code.update([*[slot for slot, _ in changed], *affected])

    def release(self) -> None:
        """Drop all arrays; `link` plans anew."""
        if self._plan is not None and self._code is not None:
            self._code.scope.clear()
            for slot in (*self._plan.state, *self._plan.static):
                slot.array = None
        self._plan = self._code = None
