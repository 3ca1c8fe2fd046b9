"""A recorded program, carried out call by call: what backends share that write no code of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from xgrad.capturing.numbers import Number
from xgrad.capturing.outcomes import Unusable
from xgrad.capturing.program import Call, Program, Value, replaced
from xgrad.capturing.readings import Reading
from xgrad.capturing.simplifying import folded, without_repeated
from xgrad.random import Generator


class Cell:
    """Where a call takes a number from: an array without axes, of the dtype that the call computes in.

    Attributes
    ----------
    source : int
        The place of the number among `Execution.numbers`.
    dtype : dtype
        Of NumPy's.
    now : int, float or complex
        What the number was when it was recorded.
    """

    __slots__ = ("dtype", "now", "source")

    def __init__(self, source: int, dtype: Any, now: Any) -> None:
        self.source, self.dtype, self.now = source, dtype, now


class Execution:
    """The calls of a program, to be made in order: with arrays for values, and with arrays without axes for numbers.

    That is what a library can record or compile for itself, for it sees arrays alone.

    Parameters
    ----------
    program : Program
        The calls, and what is wanted of them.
    found : list of Value
        The inputs that are given anew each time.

    Attributes
    ----------
    statics : list of Value
        All other inputs.
    numbers : list of Number
        What is to be computed before.
    cells : list of Cell
        Where numbers are to be put: what calls read.
    calls : list of Call
        Those that are left to be made.
    constants : dict of int to array
        What depends on nothing, by the number of the value.

    Raises
    ------
    Unusable
        If there is a call that cannot be made in this way.
    """

    def __init__(self, program: Program, found: list[Value]) -> None:
        self.program, self.found = without_repeated(program), found
        self.statics = [value for value in program.inputs if value not in found]
        self.numbers: list[Number] = []
        self.cells: list[Cell] = []
        self._cells: dict[Any, Cell] = {}  # by number and dtype
        self._places: dict[Any, int] = {}  # of numbers, by key
        for call in program.calls:
            if call.check is not None:
                raise Unusable("a value is checked, for which a GPU would be waited for", call.line)
        self.calls, self.constants = folded(program)
        self._steps = [(call, *self._lowered(call)) for call in self.calls]
        self._last = self._last_uses()

    # What is known beforehand

    def _last_uses(self) -> list[list[int]]:
        """Return the values that are needed no longer after each call: what they hold can be let go of."""
        kept = {value.number for value in (*self.program.inputs, *self.program.outputs)} | self.constants.keys()
        ends: dict[int, int] = {}
        for i, call in enumerate(self.calls):
            for value in (*call.reads, *call.results, *call.targets()):
                if value.number not in kept:
                    ends[value.number] = i
        last: list[list[int]] = [[] for _ in self.calls]
        for number, i in ends.items():
            last[i].append(number)
        return last

    # Numbers

    def _lowered(self, call: Call) -> tuple[Any, dict[str, Any]]:
        """Return arguments and options of a call with cells in the place of numbers."""

        def lowered(part: Any) -> Any:
            return self._cell(call, part) if type(part) is Number else part

        return replaced(call.args, lowered), {name: replaced(value, lowered) for name, value in call.options.items()}

    def _cell(self, call: Call, number: Number) -> Cell:
        if number.key not in self._places:
            self._places[number.key] = len(self.numbers)
            self.numbers.append(number)
        dtype = np.dtype(np.uint64) if _is_drawn(number) else self.number_dtype(call, number)
        key = number.key, dtype
        if key not in self._cells:
            self._cells[key] = Cell(self._places[number.key], dtype, number.value)
            self.cells.append(self._cells[key])
        return self._cells[key]

    def number_dtype(self, call: Call, number: Number) -> Any:
        """Return the dtype in which a call takes a number of Python's: that of the arrays with it, by promotion.

        As an array it would count for as much as they do, and make float64 of everything.
        """
        dtypes = [value.dtype for value in (*call.reads, *call.targets())] + list(_constants(call))
        if not dtypes:
            dtypes = [value.dtype for value in call.results]
        return np.result_type(*dtypes, type(number.value)())

    # The calls

    def execute(self, arrays: Mapping[int, Any], cells: Mapping[Cell, Any]) -> list[Any]:
        """Make all calls, and return the arrays of the outputs.

        Parameters
        ----------
        arrays : mapping of int to array
            Those of the inputs, by the numbers of their values.
        cells : mapping of Cell to array
            Those that hold numbers.

        Raises
        ------
        Unusable
            If a call fails.
        """
        held = {**self.constants, **arrays}

        def concrete(part: Any) -> Any:
            return held[part.number] if type(part) is Value else cells[part] if type(part) is Cell else part

        for (call, args, options), last in zip(self._steps, self._last, strict=True):
            given = {name: replaced(value, concrete) for name, value in options.items()}
            if call.out and call.target is not None:
                given["out"] = held[call.target.number]
            try:
                result = self.function_of(call)(*replaced(args, concrete), **given)
            except Unusable:
                raise
            except Exception as error:
                raise Unusable(self.reason(call, error), call.line) from error
            if call.results:  # and not something that is changed
                arrays_made = [result] if call.single else result
                held.update(zip([value.number for value in call.results], arrays_made, strict=True))
                del arrays_made
            del result, given
            for number in last:
                held.pop(number, None)
        return [held[value.number] for value in self.program.outputs]

    def function_of(self, call: Call) -> Callable[..., Any]:
        """Return what is called: by default the function that was recorded."""
        return call.function

    def reason(self, call: Call, error: Exception) -> str:
        """Return why a step cannot be replayed of which a call fails."""
        return f"{call.name} cannot be replayed: {type(error).__name__}: {str(error).partition(chr(10))[0]}"

    def view(self, value: Value, given: Mapping[int, Any]) -> Any:
        """Return an output that is a view of an input, of the array that is given for that.

        Raises
        ------
        Unusable
            If it is none.
        """
        if value.number in given:
            return given[value.number]
        for call in self.calls:
            if value in call.results:
                inside = all(read.storage is value.storage for read in call.reads)
                if not inside or call.numbers:
                    break
                new = [replaced(arg, lambda part: self.view(part, given) if type(part) is Value else part)
                       for arg in (call.args, *call.options.values())]  # fmt: skip
                result = call.function(*new[0], **dict(zip(call.options, new[1:], strict=True)))
                return result if call.single else result[call.results.index(value)]
        raise Unusable("a result shares memory with an argument in a way that cannot be followed")


def _is_drawn(number: Any) -> bool:
    """Return whether a number is of a generator: the seed, or the number of a call, of 64 bits."""
    if type(number) is not Number:
        return False
    if number.operator == "read":
        place: Reading = number.operands[0]
        return isinstance(place.holder, Generator)
    return any(map(_is_drawn, number.operands))


def _constants(call: Call) -> list[Any]:
    """Return the dtypes of the arrays among the arguments that are no values."""
    found = []

    def look(arg: Any) -> None:
        if type(arg) is tuple or type(arg) is list:
            for part in arg:
                look(part)
        elif _is_array(arg):
            found.append(arg.dtype)

    look((*call.args, *call.options.values()))
    return found


def _is_array(arg: Any) -> bool:
    """Return whether an argument is an array, which stays the same; scalar types have such attributes, too."""
    return type(arg) not in (Value, Number) and hasattr(arg, "dtype") and type(getattr(arg, "shape", None)) is tuple
