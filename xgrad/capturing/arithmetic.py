"""Numbers at a replay, such as learning rates: read, asked what was asked of them, and computed from each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xgrad.capturing.numbers import Number
from xgrad.capturing.recorder import Reading
from xgrad.random import Generator


class Arithmetic:
    """Numbers that are read and computed anew at each replay. Each has a place in a list, as constants have.

    Parameters
    ----------
    conditions : sequence of Number
        What was asked, in this order: it must be answered as it was.
    """

    def __init__(self, conditions: Sequence[Number]) -> None:
        self._constants: list[Any] = []  # and None where others have their places
        self._places: dict[int, int] = {}  # of numbers, by id
        self._options: list[tuple[int, Mapping[Any, Any], Any, int | None, type]] = []
        self._states: list[tuple[int, Any, int]] = []
        self._truths: list[tuple[int, bool]] = []  # of what is read
        self._computed: list[tuple[int, Callable[..., Any], int, int | None, bool | None]] = []
        for number in {number.key: number for number in conditions}.values():
            self._ask(number)

    def place(self, number: Any) -> int:
        """Return where in the list a number is, or anything else, which stays what it is."""
        if type(number) is not Number:
            return self._new(number)
        if id(number) not in self._places:
            if number.operator == "read":
                self._read(number)
            else:
                self._compute(number)
        return self._places[id(number)]

    def _new(self, constant: Any = None) -> int:
        self._constants.append(constant)
        return len(self._constants) - 1

    def _read(self, number: Number) -> None:
        reading: Reading = number.operands[0]
        place = self._places[id(number)] = self._new()
        if isinstance(reading.holder, Generator):
            self._states.append((place, reading.holder, *reading.path))
        else:
            key, *within = reading.path
            self._options.append((place, reading.holder, key, within[0] if within else None, reading.kind))

    def _ask(self, condition: Number) -> None:
        """Note what was asked: computing what is asked next may fail if this is answered otherwise."""
        number, answer = condition.operands[0], bool(condition.value)
        if condition.operator == "bool" and number.operator == "read":
            self._truths.append((self.place(number), answer))
        else:
            self._compute(condition, answer)

    def _compute(self, number: Number, answer: bool | None = None) -> None:
        x, *others = map(self.place, number.operands)
        place = self._places[id(number)] = self._new()
        self._computed.append((place, number.function, x, others[0] if others else None, answer))

    def values(self) -> list[Any] | None:
        """Return the list; None if something is of another type than it was, or answered otherwise."""
        values = self._constants.copy()
        for place, mapping, key, within, kind in self._options:
            value = mapping[key] if within is None else mapping[key][within]
            if type(value) is not kind and type(value := _plain(value)) is not kind:
                return None
            values[place] = value
        for place, generator, part in self._states:
            values[place] = generator._state[part]
        for place, answer in self._truths:
            if bool(values[place]) is not answer:
                return None
        for place, function, x, y, answer in self._computed:
            values[place] = value = function(values[x]) if y is None else function(values[x], values[y])
            if answer is not None and value is not answer:
                return None
        return values


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
