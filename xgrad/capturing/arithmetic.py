"""Options of optimizers and other numbers at a replay: read, asked what was asked of them, computed from each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xgrad.capturing.numbers import Number
from xgrad.capturing.readings import Reading
from xgrad.capturing.recorder import Recorder
from xgrad.random import Generator


class Arithmetic:
    """A list of numbers, in which each that is read or computed has its place, and so have constants.

    What depends on nothing but options, which hardly ever change, is left there from one replay to the next.

    Parameters
    ----------
    recorder : Recorder
        Who knows what was read, and what was asked of it.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._values: list[Any] = []
        self._places: dict[int, int] = {}  # of numbers, by id
        self._written = frozenset(recorder.readings.written)
        self._equal = list(recorder.readings.constants)  # options that are no numbers
        self._steady, self._moving = _Steps(), _Steps()  # of options, and of what the step itself changes, too
        self._from_moving: set[int] = set()  # the places of those
        self._options: list[tuple[Mapping[Any, Any], Any, Any]] = []  # as of the last replay
        self._known = False  # whether the steady numbers are those of these options
        for number in {number.key: number for number in recorder.readings.conditions}.values():
            self._compute(number, bool(number.value))

    def place(self, number: Any) -> int:
        """Return where in the list a number is, or anything else, which stays what it is."""
        if type(number) is not Number:
            return self._new(number)
        if id(number) not in self._places:
            self._places[id(number)] = self._read(number) if number.operator == "read" else self._compute(number)
        return self._places[id(number)]

    def values(self) -> list[Any] | None:
        """Return the list; None if an option is of another type or not equal, or something is answered otherwise."""
        for mapping, key, option in self._options:
            if mapping[key] is not option:
                self._known = False
        try:
            if not self._known and not self._renew():
                return None
            if self._from_moving and not self._moving.take(self._values):
                return None
        except ArithmeticError:  # which the step itself is to raise
            return None
        return self._values

    def _renew(self) -> bool:
        """Take the steady numbers anew, and return whether that is possible."""
        for mapping, key, option in self._equal:
            if mapping[key] != option:
                return False
        if not self._steady.take(self._values):
            return False
        places = [(mapping, key) for _, mapping, key, _, _ in self._steady.read]
        places += [(mapping, key) for mapping, key, _ in self._equal]
        options = {(id(mapping), key): (mapping, key, mapping[key]) for mapping, key in places}
        self._options = list(options.values())
        self._known = all(_is_fixed(option) for *_, option in self._options)
        return True

    # While a frame is made

    def _new(self, constant: Any = None) -> int:
        self._values.append(constant)
        return len(self._values) - 1

    def _read(self, number: Number) -> int:
        reading: Reading = number.operands[0]
        place = self._new()
        if isinstance(reading.holder, Generator):
            self._from_moving.add(place)
            self._moving.computed.append((place, _STATE[reading.path[0]], self._new(reading.holder), None, None))
            return place
        key, *within = reading.path
        moving = (id(reading.holder), key) in self._written
        if moving:
            self._from_moving.add(place)
        steps = self._moving if moving else self._steady
        steps.read.append((place, reading.holder, key, within[0] if within else None, reading.kind))
        return place

    def _compute(self, number: Number, answer: bool | None = None) -> int:
        x, *others = places = [self.place(operand) for operand in number.operands]
        place = self._new()
        moving = not self._from_moving.isdisjoint(places)
        if moving:
            self._from_moving.add(place)
        steps = self._moving if moving else self._steady
        steps.computed.append((place, number.function, x, others[0] if others else None, answer))
        return place


class _Steps:
    """What is read, and then computed, in this order. Some of it must be answered as it was."""

    def __init__(self) -> None:
        self.read: list[tuple[int, Mapping[Any, Any], Any, int | None, type]] = []
        self.computed: list[tuple[int, Callable[..., Any], int, int | None, bool | None]] = []

    def take(self, values: list[Any]) -> bool:
        """Put all in its place; return False if it is of another type, or answered otherwise."""
        for place, mapping, key, within, kind in self.read:
            value = mapping[key] if within is None else mapping[key][within]
            if type(value) is not kind and type(value := _plain(value)) is not kind:
                return False
            values[place] = value
        for place, function, x, y, answer in self.computed:
            values[place] = value = function(values[x]) if y is None else function(values[x], values[y])
            if answer is not None and value is not answer:
                return False
        return True


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


_FIXED = frozenset({bool, int, float, complex, str, type(None)})


def _is_fixed(option: Any) -> bool:
    """Return whether something is what it was as long as it is the same thing."""
    return all(map(_is_fixed, option)) if type(option) is tuple else type(option) in _FIXED


def _seed(generator: Any) -> Any:
    return generator._state[0]


def _count(generator: Any) -> Any:
    return generator._state[1]


_STATE = _seed, _count
