"""The code of a frame while it is written: lines, names of objects, places of arrays, and numbers."""

from __future__ import annotations

from typing import Any

from xgrad.capturing.arrays import Recorded
from xgrad.capturing.numbers import Number
from xgrad.capturing.program import Value
from xgrad.capturing.recorder import Reading, Recorder
from xgrad.graph import Leaf, clock
from xgrad.nn.module import edits
from xgrad.random import Generator
from xgrad.tensor import Tensor, placed

#: What a frame returns when it is not the one for a call.
MISS: Any = type("Miss", (), {"__slots__": ()})()


class Unusable(Exception):
    """A recording cannot be replayed; the message says why, and `line` at which line of the user's, if known."""

    def __init__(self, why: str, line: str | None = None) -> None:
        super().__init__(why)
        self.line = line


class Writing:
    """Code that is being written.

    Parameters
    ----------
    recorder : Recorder
        What was written down.
    arguments : list of Tensor
        The tensors among the step's arguments.
    last : dict of int to Recorded
        What the tensors that were made hold, by their id.
    """

    run: Any  # what runs the program

    def __init__(self, recorder: Recorder, arguments: list[Tensor], last: dict[int, Recorded]) -> None:
        self._recorder, self._device, self._last = recorder, recorder.device, last
        self._scope: dict[str, Any] = {
            "plain": _plain,
            "MISS": MISS,
            "Tensor": Tensor,
            "change": clock.change,
            "placed": placed,
            "edits": edits,
        }
        self._names: dict[int, str] = {}
        self._lines: list[str] = []
        self._arguments = {id(tensor): i for i, tensor in enumerate(arguments)}
        self._slots = recorder.slots()
        self._flats = list(recorder.flats.values())

    def _object(self, thing: Any, prefix: str = "x") -> str:
        """Return the name of an object."""
        if id(thing) not in self._names:
            name = self._names[id(thing)] = f"{prefix}{len(self._names)}"
            self._scope[name] = thing
        return self._names[id(thing)]

    def _text(self, thing: Any) -> str:
        return repr(thing) if thing is None or type(thing) in (bool, int, str) else self._object(thing)

    def _leaf_code(self, leaf: Leaf) -> str:
        for i, tensor in enumerate(self._recorder.arguments):
            if tensor._leaf is leaf:
                return f"args[{i}]._leaf"
        return self._object(leaf)

    def _place(self, value: Value) -> str:
        source = value.source
        assert source is not None
        if source.kind == "argument":
            return f"a{source.holder}._data"
        if source.kind == "gradient":
            leaf = self._leaf_code(source.holder)
            return f"None if {leaf}.grad is None else {leaf}.grad._data"
        return f"{self._object(source.holder)}._data"

    def _argument(self, value: Value) -> str:
        return f"d{value.number}"

    # Numbers

    def _read_numbers(self) -> None:
        """Write the code that reads the numbers that are needed."""
        written = [value for _, _, value in self._recorder.written.values() if type(value) is Number]
        needed = _read_for([*self._recorder.conditions, *written, *self.run.numbers])
        for number in self._recorder.reads():
            if id(number) not in needed:
                continue
            place: Reading = number.operands[0]
            name = self._reading(number)
            holder = self._object(place.holder)
            if isinstance(place.holder, Generator):
                self._lines.append(f"{name} = {holder}._state[{place.path[0]}]")
            else:
                path = "".join(f"[{key!r}]" for key in place.path)
                self._lines.append(f"{name} = {holder}{path}")
                kind = place.kind.__name__
                self._lines.append(
                    f"if type({name}) is not {kind} and type({name} := plain({name})) is not {kind}: return MISS"
                )

    def _answer(self, number: Number) -> str:
        """Return the code of what a question about numbers must be answered as it was."""
        if number.operator == "bool":
            return f"{'' if number.value else 'not '}{self._expression(number.operands[0])}"
        return f"{self._expression(number)} is {bool(number.value)}"

    def _expression(self, number: Any) -> str:
        """Return the code of a number."""
        if type(number) is not Number:
            return f"({number!r})" if type(number) in (int, float, bool, complex) else self._object(number)
        if number.operator == "read":
            return self._reading(number)
        parts = [self._expression(part) for part in number.operands]
        if len(parts) == 1:
            prefix = {"abs": "abs", "bool": "bool"}.get(number.operator, number.operator)
            return f"{prefix}({parts[0]})"
        return f"({parts[0]} {number.operator} {parts[1]})"

    def _reading(self, number: Number) -> str:
        return f"r{[id(n) for n in self._recorder.reads()].index(id(number))}"

    def _computed(self) -> list[str]:
        """Write the code of the numbers that the program takes, and return their names."""
        names = []
        for i, number in enumerate(self.run.numbers):
            if number.operator == "read":
                names.append(self._reading(number))
                continue
            self._lines.append(f"n{i} = {self._expression(number)}")
            names.append(f"n{i}")
        return names


def _read_for(numbers: list[Any]) -> set[int]:
    """Return the ids of the numbers that are read in order to compute some."""
    found, waiting = set(), list(numbers)
    while waiting:
        number = waiting.pop()
        if type(number) is Number:
            if number.operator == "read":
                found.add(id(number))
            else:
                waiting += number.operands
    return found


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
