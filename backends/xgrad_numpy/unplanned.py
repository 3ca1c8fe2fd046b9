"""A program as it was recorded: its calls are made anew, and return what they make in memory of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import getitem, itemgetter
from typing import Any

import numpy as np

from xgrad.capturing.numbers import Number
from xgrad.capturing.program import Call, Value
from xgrad_numpy.checks import check
from xgrad_numpy.layout import copied

#: A function, what takes its arguments from among the values, where among them what it returns is put, and which of
#: them nobody needs after that.
_Step = tuple[Callable[..., Any], Callable[[list[Any]], Any], int, list[int]]


class Unplanned:
    """What runs a program without a plan.

    Parameters
    ----------
    calls : list of Call
        Those of the program that are made at each replay.
    constants : dict of int to array
        What is known beforehand, by the number of the value.
    found, statics : list of Value
        The inputs that each run is given, and all others.
    numbers : list of Number
        What each run is given, too.
    outputs : list of Value
        What is wanted.
    """

    nbytes = 0

    def __init__(
        self,
        calls: list[Call],
        constants: dict[int, Any],
        found: list[Value],
        statics: list[Value],
        numbers: list[Number],
        outputs: list[Value],
    ) -> None:
        self.calls, self._given = calls, len(found) + len(numbers)
        self._values: list[Any] = []  # first what `run` is given, then what calls are given and make
        self._idle: list[Any] = []  # what is there when nothing runs
        self._before: list[_Step] = []  # before anything is changed that was there before
        self._after: list[_Step] = []
        self._numbers: dict[Any, int] = {number.key: len(found) + i for i, number in enumerate(numbers)}
        self._places = {value.number: i for i, value in enumerate(found)}
        self._places |= {value.number: self._given + i for i, value in enumerate(statics)}
        self._values += [None] * (self._given + len(statics))
        for number, constant in constants.items():
            self._places[number] = self._keep(constant)
        self._list = self._before
        ends: dict[int, list[int]] = {}  # by the number of a value, what nobody needs after the last call with it
        for call in calls:
            self._passing: list[int] = []  # what is there for this call only
            self._add(call)
            *_, dead = self._list[-1]
            dead += self._passing
            for value in (*call.reads, *call.results, *call.targets()):
                ends[value.number] = dead
        for number in (*constants, *[value.number for value in (*found, *statics, *outputs)]):
            ends.pop(number, None)
        for number, dead in ends.items():
            dead.append(self._places[number])
        self._list = self._after
        self._results = [self._output(value, constants) for value in outputs]
        del self._places, self._numbers

    def link(self, arrays: Sequence[np.ndarray]) -> None:
        """Take the arrays of `statics`."""
        self._values[self._given : self._given + len(arrays)] = arrays
        self._idle = [*self._values]

    def run(self, *given: Any) -> Any:
        """Make the calls: see `Replay`."""
        values = self._values
        values[: self._given] = given
        try:
            try:
                for function, take, place, dead in self._before:
                    values[place] = function(*take(values))
                    for i in dead:
                        values[i] = None
            except Exception as error:
                return error
            for function, take, place, dead in self._after:
                values[place] = function(*take(values))
                for i in dead:
                    values[i] = None
            return tuple([values[i] for i in self._results])
        finally:
            values[:] = self._idle

    def release(self) -> None:
        """Let go of all arrays now, though an error may still lead here: optimizers count who sees theirs."""
        self._values.clear()
        self._idle.clear()

    def finds(self) -> list[Callable[[], Any]]:
        """Return what finds arrays that stay, of which there are none but inputs."""
        return []

    def _keep(self, thing: Any = None) -> int:
        """Return the place of one more value, which is this one when nothing runs."""
        self._values.append(thing)
        return len(self._values) - 1

    def _add(self, call: Call) -> None:
        if call.check is not None:
            self._call(check, (call.check, *call.args))
            return
        function, args = call.function, call.args
        if call.target is not None and call.target.storage.kind != "temporary":
            self._list = self._after
        if call.options or call.out:
            options = {**call.options, "out": call.target} if call.out else call.options
            function, args = partial(_by_name, function, tuple(options)), (*args, *options.values())
        place = self._call(function, args)
        if not call.single or not call.results:
            self._passing.append(place)
        for i, value in enumerate(call.results):
            self._places[value.number] = place if call.single else self._step(getitem, [place, self._keep(i)])

    def _call(self, function: Callable[..., Any], args: tuple[Any, ...]) -> int:
        """Call a function with some arguments, and return the place of what it returns."""
        return self._step(function, [self._place(arg) for arg in args])

    def _step(self, function: Callable[..., Any], places: Sequence[int]) -> int:
        """Call a function with the values at some places, and return the place of what it returns."""
        first = places[0] if places else 0  # of one value, a slice is taken: it would be given as it is
        take = itemgetter(*places) if len(places) > 1 else itemgetter(slice(first, first + len(places)))
        self._list.append((function, take, self._keep(), []))
        return len(self._values) - 1

    def _place(self, arg: Any) -> int:
        """Return where an argument is among the values, once some calls are made."""
        kind = type(arg)
        place: int
        if kind is Value:
            place = self._places[arg.number]
        elif kind is Number:
            place = self._numbers[arg.key]
        elif (kind is tuple or kind is list) and _varies(arg):
            place = self._call(_tuple if kind is tuple else _list, tuple(arg))
            self._passing.append(place)
        else:
            place = self._keep(arg)
        return place

    def _output(self, value: Value, constants: dict[int, Any]) -> int:
        place = self._places[value.number]
        if value.number in constants or value.storage.kind != "temporary":
            function = copied if value.number in constants else np.ndarray.view
            place = self._step(function, [place])
        return place


def _varies(args: Any) -> bool:
    for arg in args:
        kind = type(arg)
        if kind is Value or kind is Number or ((kind is tuple or kind is list) and _varies(arg)):
            return True
    return False


def _by_name(function: Callable[..., Any], names: tuple[str, ...], *operands: Any) -> Any:
    """Call a function with its last operands by name."""
    first = len(operands) - len(names)
    return function(*operands[:first], **dict(zip(names, operands[first:], strict=True)))


def _tuple(*parts: Any) -> Any:
    return parts


def _list(*parts: Any) -> Any:
    return [*parts]
