"""The code of a replay while it is written: names of arrays, constants and numbers, statements, and memory."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from xgrad.capturing.numbers import Number
from xgrad.capturing.program import Storage, Value
from xgrad_numpy.layout import in_order, lies_in_order
from xgrad_numpy.memory import Plan
from xgrad_numpy.statements import Passed, Statement

FLOATS = frozenset(map(np.dtype, ("float32", "float64")))
SMALL = 1 << 16  # elements up to which a constant, or a row, is written out in full: NumPy's inner loops then are long


class Code:
    """Code of a function that is being written, call by call.

    Parameters
    ----------
    handed_out : set of Storage
        The memory that is handed out.
    """

    def __init__(self, handed_out: set[Storage]) -> None:
        self._handed_out = handed_out
        self._scope: dict[str, Any] = {"empty": np.empty, "setitem": operator.setitem, "dot": np.ndarray.dot}
        self._names: dict[int, str] = {}  # of values, by number
        self._links: list[tuple[str, Callable[[], Any]]] = []  # how to find the arrays that stay, in order
        self._fixed: set[int] = set()  # the values of which they are
        self._passed: dict[str, Passed] = {}  # arrays that do not stay
        self._objects: dict[int, str] = {}
        self._numbers: dict[Any, str] = {}
        self.numbers: list[Number] = []
        self._cells: dict[Any, str] = {}
        self._constants: dict[int, Any] = {}
        self._filled: list[Statement] = []  # numbers are put into cells before all else
        self._statements: list[Statement] = []
        self._plan = Plan()
        self._ends: dict[Storage, int] = {}  # the last call that needs each memory
        self._at = 0  # the call that is being written

    def _name(self, value: Value) -> str:
        name = self._names.get(value.number)
        if name is None:
            name = self._names[value.number] = f"v{value.number}"
        return name

    def _object(self, thing: Any, prefix: str = "c") -> str:
        """Return the name of something that stays the same."""
        name = self._objects.get(id(thing))
        if name is None:
            name = self._objects[id(thing)] = f"{prefix}{len(self._objects)}"
            self._scope[name] = thing
        return name

    def _text(self, arg: Any) -> str:
        """Return an argument as code."""
        kind = type(arg)
        if kind is Value:
            constant = self._constants.get(arg.number)
            return self._name(arg) if constant is None else self._object(constant)
        if kind is Number:
            return self._number(arg)
        if kind is tuple:
            text = f"({', '.join(map(self._text, arg))}{',' if len(arg) == 1 else ''})"
            if all(type(part) is int for part in arg):
                self._scope[text] = arg
            return text
        if kind is list:
            return f"[{', '.join(map(self._text, arg))}]"
        if arg is None or arg is Ellipsis or kind in (bool, int, str) or (kind is float and math.isfinite(arg)):
            text = "..." if arg is Ellipsis else repr(arg)
            self._scope[text] = arg  # for calls that are made with objects, not by code
            return text
        return self._object(arg)

    def _number(self, number: Number) -> str:
        name = self._numbers.get(number.key)
        if name is None:
            name = self._numbers[number.key] = f"n{len(self._numbers)}"
            self.numbers.append(number)
        return name

    def _add(self, code: str) -> None:
        self._statements.append(Statement(code=code))

    def _add_call(
        self,
        function: Any,
        *operands: str,
        shape: tuple[int, ...] | None = None,
        keyword: str = "",
        options: str = "",
    ) -> None:
        """Write the code of a call of a function; with a shape, of one that is elementwise and writes to the last."""
        self._statements.append(
            Statement(
                self._object(function, "f"), operands, shape, written=operands[-1], keyword=keyword, options=options
            )
        )

    def _add_copy(self, target: str, source: str, shape: tuple[int, ...] | None = None) -> None:
        """Write the code of a copy to all elements, of what may be shorter or of another dtype."""
        self._scope["..."] = ...
        self._statements.append(Statement("setitem", (target, "...", source), shape, written=target))

    def _spare(self, shape: tuple[int, ...], dtype: Any) -> str:
        """Return the name of memory that is needed for one call only."""
        spare = Value(-len(self._names) - 1, Storage("temporary", -1), np.empty(shape, dtype))
        name = self._names[spare.number] = f"s{len(self._names)}"
        self._links.append((name, self._plan.add(spare, self._at, self._at, ())))
        return name

    def _new(self, value: Value, reuse: tuple[Value, ...] = ()) -> str:
        """Return the name of memory for a new value: planned, or the user's if it is handed out."""
        name, storage = self._name(value), value.storage
        if storage in self._handed_out:
            self._statements.append(Statement(code=f"{name} = {self._made(value)}", makes=name))
            self._passed[name] = Passed(value.shape, lies_in_order(value), ours=True)
            return name
        place = self._plan.add(value, self._at, self._ends[storage], reuse)
        self._fixed.add(value.number)
        self._links.append((name, place))
        return name

    def _made(self, value: Value) -> str:
        shape, dtype = value.shape, self._object(value.dtype, "d")
        if in_order(value.strides, value.shape, value.dtype.itemsize):
            return f"empty({shape}, {dtype})"
        order = sorted(range(len(shape)), key=lambda axis: -value.strides[axis])
        back = tuple(order.index(axis) for axis in range(len(shape)))
        return f"empty({tuple(shape[axis] for axis in order)}, {dtype}).transpose({back})"

    def _kept(self, constant: np.ndarray) -> str:
        """Return the name of a constant, the same for equal ones."""
        key = (
            (constant.dtype, constant.shape, constant.strides, constant.tobytes())
            if constant.size <= SMALL
            else id(constant)
        )
        if key not in self._cells:
            name = self._cells[key] = f"k{len(self._cells)}"
            self._scope[name] = constant
        return self._cells[key]

    def _cell(self, number: Number, dtype: Any) -> str:
        """Return the name of an array without axes that holds a number: NumPy takes it sooner than the number."""
        if type(number.value) not in (int, float) or dtype not in FLOATS:
            return self._number(number)
        key = (number.key, dtype)
        if key not in self._cells:
            name = self._cells[key] = f"k{len(self._cells)}"
            self._scope[name] = np.empty((), dtype)
            self._filled.append(Statement(code=f"{name}[()] = {self._number(number)}"))
        return self._cells[key]

    def _replaceable(self, arg: Value, result: Value) -> bool:
        """Return whether a result may take the place of an argument, which is needed no longer."""
        return (
            arg.number in self._fixed
            and arg.storage.kind == "temporary"
            and self._ends[arg.storage] == self._at
            and arg.lies_as(result)
        )
