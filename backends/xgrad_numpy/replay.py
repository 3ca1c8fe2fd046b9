"""What runs a recorded program on NumPy: its calls as they were recorded at first, a plan of them where that pays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xgrad.capturing.program import Call, Program, Value
from xgrad.capturing.simplifying import folded, without_repeated
from xgrad_numpy.memory import Place
from xgrad_numpy.planned import Found, Planned
from xgrad_numpy.unplanned import Unplanned

_OFTEN = 80  # replays, in which a plan saves what it takes to make it
_PIECE = 1 << 17  # bytes: for each so many that need not be asked for, it does so in half as many


class Replay:
    """What runs a program.

    To plan a small network's step takes as long as some fifteen eager ones. Its first replays make the calls as they
    were recorded, which takes little preparation; a step on large arrays is planned at once.

    Parameters
    ----------
    program : Program
        The calls, and what is wanted of them.
    found : list of Value
        The inputs that are given to `run`, in this order; all others are given to `link`.

    Attributes
    ----------
    run : callable
        Takes the arrays of `found`, then the numbers that `numbers` lists, and returns a tuple of the outputs; or an
        error, such as that a check came out otherwise: then nothing has been changed, and the step is to run eagerly.
    statics : list of Value
        The inputs whose arrays are given to `link`.
    numbers : list of Number
        What is computed before.
    planned : bool
        Whether the plan is made.
    ripe : bool
        Whether the next `link` makes it.
    """

    def __init__(self, program: Program, found: list[Value]) -> None:
        self.program, self._found = program, found
        self.statics = [value for value in program.inputs if value not in found]
        self._calls, self.constants = folded(program)
        self.numbers = list({number.key: number for call in self._calls for number in call.numbers}.values())
        made = {value.storage: value.nbytes for call in self._calls for value in call.results[:1]}
        nbytes = sum(n for storage, n in made.items() if storage.kind == "temporary")
        self._left = _OFTEN >> (nbytes // _PIECE)  # replays before the plan
        self.ripe = not self._left
        self.planned = False
        self._way: Planned | Unplanned | None = None
        self.run: Callable[..., Any] = self._run

    def link(self, arrays: list[np.ndarray]) -> None:
        """Take the arrays of `statics`, and find all others that stay where they are."""
        if self.ripe:
            self.program = without_repeated(self.program)
            self._calls, self.constants = folded(self.program)
        if self._way is None or self.ripe:
            if self._way is not None:
                self._way.release()
            make = Planned if self.ripe else Unplanned
            self._way = make(self._calls, self.constants, self._found, self.statics, self.numbers, self.program.outputs)
            self.planned, self.ripe = self.ripe, False
        self._way.link(arrays)
        if self.planned:
            self.run = self._way.run

    def _run(self, *given: Any) -> Any:
        """Run the calls as they were recorded, until that was so often that a plan pays."""
        assert self._way is not None
        self._left -= 1
        self.ripe = self._left <= 0
        return self._way.run(*given)

    def release(self) -> None:
        """Let go of all arrays."""
        if self._way is not None:
            self._way.release()
        self._way, self.run, self.constants = None, self._run, {}

    # What it does, to be looked at

    @property
    def calls(self) -> list[Call]:
        """The calls that are made, some of them once and for all."""
        return self._calls if self._way is None else self._way.calls

    @property
    def nbytes(self) -> int:
        """How much memory it has of its own."""
        return 0 if self._way is None else self._way.nbytes

    @property
    def places(self) -> dict[int, Place]:
        """Where values lie in the planned memory, by number; numbers below 0 are of what a single call needs."""
        return {find.value.number: find for find in self._finds() if isinstance(find, Place)}

    @property
    def found(self) -> set[int]:
        """The numbers of views of memory that stays, which are found once and for all."""
        return {value.number for find in self._finds() if isinstance(find, Found) for value in find.call.results}

    def _finds(self) -> list[Any]:
        return [] if self._way is None else self._way.finds()
