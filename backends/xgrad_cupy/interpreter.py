"""A program carried out call by call: what backends share whose library records or compiles calls by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from xgrad.capture.numbers import Number
from xgrad.capture.program import Call, Program, Unusable, Value, leaves, map_leaves


class Cell:
    """An array without axes that a call takes a number from, of the dtype that the call computes in.

    Attributes
    ----------
    source : int
        The index of the number among `Program.numbers`.
    dtype : dtype
        NumPy's.
    now : int, float or complex
        The number in the trace.
    """

    __slots__ = ("dtype", "now", "source")

    def __init__(self, source: int, dtype: Any, now: Any) -> None:
        self.source, self.dtype, self.now = source, dtype, now


class Interpreter:
    """The calls of a program, with arrays in the place of values, and arrays without axes in that of numbers.

    Parameters
    ----------
    program : Program
        What to carry out.

    Attributes
    ----------
    cells : list of Cell
        The arrays that numbers are put into.

    Raises
    ------
    Unusable
        If a value is checked, for which a GPU would be waited for.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.cells: list[Cell] = []
        self._cells: dict[Any, Cell] = {}
        self._sources = {number.text: i for i, number in enumerate(program.numbers)}
        for call in program.calls:
            if call.check is not None:
                raise Unusable("a value is checked, for which a GPU would be waited for", call.line)
        self._steps = [(call, *self._with_cells(call)) for call in program.calls]
        self._last = self._last_uses()

    def _last_uses(self) -> list[list[int]]:
        """Return for each call the values that no later call needs."""
        kept = {value.number for value in (*self.program.inputs, *self.program.state, *self.program.outputs)}
        kept |= self.program.constants.keys()
        ends: dict[int, int] = {}
        for i, call in enumerate(self.program.calls):
            for value in (*call.reads, *call.results, *call.writes):
                if value.number not in kept:
                    ends[value.number] = i
        last: list[list[int]] = [[] for _ in self.program.calls]
        for number, i in ends.items():
            last[i].append(number)
        return last

    def _with_cells(self, call: Call) -> tuple[Any, dict[str, Any]]:
        """Return the arguments and options of a call: numbers that are read as cells, constant ones as values."""

        def lowered(part: Any) -> Any:
            if type(part) is not Number:
                return part
            return self._cell(call, part) if part.reads else part.value

        return map_leaves(lowered, call.args), map_leaves(lowered, call.options)

    def _cell(self, call: Call, number: Number) -> Cell:
        dtype = np.dtype(np.uint64) if call.name == "random_bits" else self.number_dtype(call, number)
        key = number.text, dtype
        if key not in self._cells:
            self._cells[key] = Cell(self._sources[number.text], dtype, number.value)
            self.cells.append(self._cells[key])
        return self._cells[key]

    def number_dtype(self, call: Call, number: Number) -> Any:
        """Return the dtype that a call takes a number in: that of its arrays, as far as it holds the number.

        Arrays without axes do not give way to others as Python's numbers do, and make float64 of everything.
        """
        dtypes = [value.dtype for value in (*call.reads, *call.writes)]
        dtypes += [x.dtype for x in leaves((call.args, tuple(call.options.values()))) if _is_array(x)]
        return np.result_type(*(dtypes or [value.dtype for value in call.results]), type(number.value)())

    def execute(self, arrays: Mapping[int, Any], cells: Mapping[Cell, Any]) -> list[Any]:
        """Make all calls, and return the arrays of the outputs.

        Parameters
        ----------
        arrays : mapping of int to array
            Those of inputs and state, by the numbers of their values.
        cells : mapping of Cell to array
            Those that hold numbers.

        Raises
        ------
        Unusable
            If a call fails.
        MemoryError
            If there is no memory for it.
        """
        held = {**self.program.constants, **arrays}

        def concrete(part: Any) -> Any:
            return held[part.number] if type(part) is Value else cells[part] if type(part) is Cell else part

        for (call, args, options), last in zip(self._steps, self._last, strict=True):
            given = map_leaves(concrete, options)
            try:
                result = self.function_of(call)(*map_leaves(concrete, args), **given)
            except (Unusable, MemoryError):
                raise
            except Exception as error:
                raise Unusable(self.reason(call, error), call.line) from error
            if call.results:
                made = [result] if call.single else result
                held.update(zip([value.number for value in call.results], made, strict=True))
                del made
            del result, given
            for number in last:
                held.pop(number, None)
        return [held[value.number] for value in self.program.outputs]

    def function_of(self, call: Call) -> Callable[..., Any]:
        """Return what is called: by default the function of the call."""
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
        for call in self.program.calls:
            if value in call.results and not call.numbers and all(v.storage is value.storage for v in call.reads):

                def of(part: Any) -> Any:
                    return self.view(part, given) if type(part) is Value else part

                options = map_leaves(of, call.options)
                result = call.function(*map_leaves(of, call.args), **options)
                return result if call.single else result[call.results.index(value)]
        raise Unusable("a result shares memory with an argument in a way that cannot be followed")


def _is_array(arg: Any) -> bool:
    return hasattr(arg, "dtype") and type(getattr(arg, "shape", None)) is tuple and type(arg) is not Value
