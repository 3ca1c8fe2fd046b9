"""The lines of a replay: calls that are alike each time are made in a loop, those on large arrays block by block."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

_LARGE = 1 << 17  # elements from which a run is done in blocks: two float32 arrays no longer fit in a usual L2 cache
_MANY = 32  # calls, from which on a loop is worth the 10 ns by which each takes longer in it than in a line
_BLOCK = 1 << 15  # elements of a block, which takes ten times as long as to call a function


class Statement:
    """A line of code: a call of a function, or whatever stands in `code`.

    Attributes
    ----------
    function : str
        The name of what is called.
    operands : tuple of str
        The names of what it is given, by position.
    written : str
        The one that it writes to, if it is elementwise.
    shape : tuple of int, optional
        Over what it is elementwise.
    keyword : str
        The name by which the last operand is given, if not by position.
    options : str
        What else it is given, as code.
    makes : str
        The name of the array that it makes and that nothing has been written to yet, if it does nothing else.
    """

    __slots__ = ("code", "function", "keyword", "makes", "operands", "options", "shape", "written")

    def __init__(
        self,
        function: str = "",
        operands: tuple[str, ...] = (),
        shape: tuple[int, ...] | None = None,
        *,
        written: str = "",
        keyword: str = "",
        options: str = "",
        code: str = "",
        makes: str = "",
    ) -> None:
        self.function, self.operands, self.shape, self.written = function, operands, shape, written
        self.keyword, self.options, self.code, self.makes = keyword, options, code, makes

    def text(self, names: Mapping[str, str] = {}) -> str:
        """Return the line, with other names for operands."""
        if not self.function:
            return self.code
        operands = [names.get(name, name) for name in self.operands] if names else [*self.operands]
        if self.function == "setitem":
            return f"{operands[0]}[{operands[1]}] = {operands[2]}"
        if self.keyword:
            operands[-1] = f"{self.keyword}={operands[-1]}"
        return f"{self.function}({', '.join(operands)}{self.options})"


class Passed:
    """What is known of an array that each replay is given, or makes, anew.

    Attributes
    ----------
    shape : tuple of int
        Its shape.
    in_order : bool
        Whether its elements lie in C order.
    ours : bool
        Whether nothing else can share its memory.
    """

    __slots__ = ("in_order", "ours", "shape")

    def __init__(self, shape: tuple[int, ...], in_order: bool, ours: bool) -> None:
        self.shape, self.in_order, self.ours = shape, in_order, ours


class Lines:
    """Lines in which runs of statements are loops: over calls that are the same each time, and over blocks of arrays.

    A loop over many calls takes hardly longer than a line for each, and is sooner compiled.

    Parameters
    ----------
    arrays : mapping of str to object
        Arrays that stay where they are, and other things that names stand for.
    passed : mapping of str to Passed
        Those that do not.
    planned : array
        The memory that only the program sees.

    Attributes
    ----------
    links : list of (str, callable)
        Names of lists of calls and blocks, and how to find them anew when arrays have moved.
    """

    def __init__(self, arrays: Mapping[str, Any], passed: Mapping[str, Passed], planned: np.ndarray) -> None:
        self.arrays, self.passed, self.planned = arrays, passed, planned
        self.links: list[tuple[str, Callable[[], Any]]] = []

    def of(self, statements: Sequence[Statement]) -> list[str]:
        """Return the lines of statements."""
        lines: list[str] = []
        calls: list[Statement] = []  # that are the same each time
        for part in self._in_blocks(statements):
            if isinstance(part, Statement) and self._stays(part):
                calls.append(part)
            else:
                lines += self._of_calls(calls)
                lines.append(part.text() if isinstance(part, Statement) else part)
                calls = []
        return lines + self._of_calls(calls)

    def _stays(self, statement: Statement) -> bool:
        """Return whether a statement is a call with the same objects each time."""
        plain = statement.function and not statement.keyword and not statement.options
        return bool(plain) and self.arrays.keys() >= {*statement.operands}

    def _of_calls(self, calls: list[Statement]) -> list[str]:
        if len(calls) < _MANY:
            return [call.text() for call in calls]
        name = f"C{len(self.links)}"
        self.links.append((name, partial(self._calls, [(call.function, call.operands) for call in calls])))
        return [f"for f, x in {name}: f(*x)"]

    def _calls(self, calls: list[tuple[str, tuple[str, ...]]]) -> list[Any]:
        find = self.arrays.__getitem__
        return [(find(function), tuple(map(find, operands))) for function, operands in calls]

    def _in_blocks(self, statements: Sequence[Statement]) -> list[Statement | str]:
        """Return the statements, with lines in the place of those that are done block by block."""
        lines: list[Statement | str] = []
        run: list[Statement] = []
        made: list[Statement] = []  # among the run
        for statement in statements:
            if run and statement.makes:
                made.append(statement)
            elif run and statement.shape == run[0].shape:
                run.append(statement)
            else:
                lines += self._of_run(run, made)
                run, made = [], []
                if statement.shape is not None and math.prod(statement.shape) >= _LARGE:
                    run = [statement]
                else:
                    lines.append(statement)
        return lines + self._of_run(run, made)

    def _of_run(self, run: list[Statement], made: list[Statement]) -> list[Statement | str]:
        if not run:
            return []
        names = list(dict.fromkeys(name for statement in run for name in statement.operands))
        names = [name for name in names if self._about(name) is not None]
        cuts = self._cuts(run, names) if len(run) > 1 else None
        if cuts is None:
            return [*made, *run]
        slices, flat = cuts
        shape = run[0].shape or ()
        cut = [name for name in names if self._is_cut(name, shape)]
        columns = []
        for name in cut:
            column = f"B{len(self.links)}"
            if name in self.passed:
                whole = f"{name}.reshape(-1)" if flat else name
                self.links.append((f"{column}s", lambda: slices))
                columns.append(f"[{whole}[s] for s in {column}s]")
            else:
                self.links.append((column, partial(self._blocks, name, slices, flat)))
                columns.append(column)
        inner = {name: f"q{i}" for i, name in enumerate(cut)}
        head = f"for {', '.join(inner.values())}, in zip({', '.join(columns)}):"
        return [*made, head, *("    " + statement.text(inner) for statement in run)]

    def _blocks(self, name: str, slices: list[slice], flat: bool) -> list[Any]:
        array = self.arrays[name]
        array = array.reshape(-1) if flat else array
        return [array[s] for s in slices]

    def _about(self, name: str) -> Any:
        """Return the array of a name, or what is known of it; None if it stands for something else."""
        array = self.arrays.get(name)
        return self.passed.get(name) or (array if isinstance(array, np.ndarray) else None)

    def _is_cut(self, name: str, shape: tuple[int, ...]) -> bool:
        """Return whether an operand has the axis that is cut."""
        own = self._about(name).shape
        return len(own) == len(shape) and own[0] == shape[0] > 1

    def _cuts(self, run: list[Statement], names: list[str]) -> tuple[list[slice], bool] | None:
        """Return the pieces into which the run is cut, and whether all axes count as one; None if it cannot be."""
        shape = run[0].shape or ()
        about = {name: self._about(name) for name in names}
        if not shape or not self._apart(run, names):
            return None
        single = [name for name in names if math.prod(about[name].shape) == 1]
        whole = [name for name in names if tuple(about[name].shape) == shape]
        flat = len(whole) + len(single) == len(names) and all(_in_order(about[name]) for name in whole)
        length = math.prod(shape) if flat else shape[0]
        step = _BLOCK if flat else max(1, _BLOCK * shape[0] // math.prod(shape))
        if 2 * step > length:
            return None
        return [slice(start, start + step) for start in range(0, length, step)], flat

    def _apart(self, run: list[Statement], names: list[str]) -> bool:
        """Return whether what is written in one block is not what another block reads."""
        written = {statement.written for statement in run}
        fixed = {name: self.arrays[name] for name in names if name not in self.passed}
        for name in written & fixed.keys():
            array = fixed[name]
            if any(not p.ours for n, p in self.passed.items() if n in names) and not _within(array, self.planned):
                return False
            for other in fixed.values():
                same = _place(array) == _place(other) and array.itemsize == other.itemsize
                if not same and np.may_share_memory(array, other):
                    return False
        return True


def _in_order(about: Any) -> bool:
    return about.in_order if isinstance(about, Passed) else bool(about.flags.c_contiguous)


def _place(array: np.ndarray) -> tuple[Any, ...]:
    return array.ctypes.data, array.shape, array.strides


def _within(array: np.ndarray, memory: np.ndarray) -> bool:
    return bool(np.may_share_memory(array, memory))
