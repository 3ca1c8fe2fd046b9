"""The actions of a replay while they are planned: slots for values and numbers, constants, and memory."""

from __future__ import annotations

from collections.abc import Callable
from operator import setitem
from typing import Any

import numpy as np

from xgrad.capturing.numbers import Number
from xgrad.capturing.program import Call, Storage, Value
from xgrad_numpy.actions import Action, Slot
from xgrad_numpy.layout import lies_in_order
from xgrad_numpy.memory import Plan

ELEMENTWISE = frozenset(u for u in vars(np).values() if isinstance(u, np.ufunc) and u.signature is None)
FLOATS = frozenset(map(np.dtype, ("float32", "float64")))
SMALL = 1 << 16  # elements up to which a constant, or a row, is written out in full: NumPy's inner loops then are long


class Planning:
    """The actions of a replay, call by call of a program.

    Parameters
    ----------
    handed_out : set of Storage
        The memory that is handed out.
    constants : dict of int to array
        What is known beforehand, by the number of the value.
    numbers : list of Number
        What is given at each replay.
    """

    def __init__(self, handed_out: set[Storage], constants: dict[int, Any], numbers: list[Number]) -> None:
        self.calls: list[Call] = []
        self._handed_out, self._constants = handed_out, constants
        self._slots: dict[int, Slot] = {}  # of values, by number
        self._links: list[tuple[Slot, Callable[[], Any], tuple[Slot, ...]]] = []  # how to find what stays, and where
        self._numbers = {number.key: Slot(moves=True) for number in numbers}
        self._cells: dict[Any, np.ndarray] = {}
        self._filled: list[Action] = []  # numbers are put into cells before all else
        self._actions: list[Action] = []
        self._plan = Plan()
        self._ends: dict[Storage, int] = {}  # the last call that needs each memory
        self._at = 0  # the call that is being planned

    # Operands

    def _given(self, arg: Any) -> Any:
        """Return an argument of a call as an operand."""
        kind = type(arg)
        if kind is Value:
            constant = self._constants.get(arg.number)
            return self._slots[arg.number] if constant is None else constant
        if kind is Number:
            return self._numbers[arg.key]
        return kind(map(self._given, arg)) if kind is tuple or kind is list else arg

    def _stays(self, value: Value) -> bool:
        """Return whether a value lies in the same place at each replay."""
        slot = self._slots.get(value.number)
        return slot is not None and not slot.moves

    # Actions

    def _add(self, function: Callable[..., Any], *operands: Any, **options: Any) -> None:
        self._actions.append(Action(function, operands, options))

    def _add_writing(
        self, function: np.ufunc, operands: list[Any], out: Any, shape: tuple[int, ...] | None = None, **options: Any
    ) -> None:
        """Call a function, maybe elementwise over a shape, with what it writes to: by position, if it can."""
        action = Action(function, (*operands, out))
        if options or function is np.maximum or function is np.minimum:  # which warn otherwise
            action = Action(function, tuple(operands), {**options, "out": out})
        if function in ELEMENTWISE:  # not a product of matrices
            action.shape, action.written = shape, out
        self._actions.append(action)

    def _add_copy(self, target: Any, source: Any, shape: tuple[int, ...] | None = None) -> None:
        """Copy to all elements, what may be shorter or of another dtype."""
        self._actions.append(Action(setitem, (target, ..., source), shape=shape, written=target))

    # Memory

    def _moves(self, value: Value, *, ours: bool = False) -> Slot:
        """Return the slot of a value that moves."""
        slot = Slot(moves=True, shape=value.shape, in_order=lies_in_order(value), ours=ours)
        self._slots[value.number] = slot
        return slot

    def _lies(self, find: Callable[[], Any], *sources: Slot) -> Slot:
        """Return the slot of an array that stays, given how to find it, and of what it is a view."""
        slot = Slot()
        self._links.append((slot, find, sources))
        return slot

    def _view(self, whole: Slot, view: Callable[[Any], Any], shape: tuple[int, ...]) -> Slot:
        """Return the slot of a view of an array of this shape, which is found once if that stays."""
        if not whole.moves:
            return self._lies(lambda: view(whole.now), whole)
        slot = Slot(moves=True, shape=shape, in_order=whole.in_order and shape == whole.shape, ours=whole.ours)
        self._actions.append(Action(view, (whole,), into=slot))
        return slot

    def _spare(self, shape: tuple[int, ...], dtype: Any) -> Slot:
        """Return memory that is needed for one call only."""
        spare = Value(-len(self._links) - 1, Storage("temporary", -1), np.empty(shape, dtype))
        return self._lies(self._plan.add(spare, self._at, self._at, ()))

    def _new(self, value: Value, reuse: tuple[Value, ...] = ()) -> Slot:
        """Return memory for a new value: planned, or the user's if it is handed out."""
        if value.storage not in self._handed_out:
            place = self._plan.add(value, self._at, self._ends[value.storage], reuse)
            slot = self._slots[value.number] = self._lies(place)
            return slot
        slot, shape = self._moves(value, ours=True), value.shape
        action = Action(np.empty, (shape, value.dtype), into=slot, makes=True)
        if not lies_in_order(value):
            order = sorted(range(len(shape)), key=lambda axis: -value.strides[axis])
            back = tuple([order.index(axis) for axis in range(len(order))])
            action.function = _empty
            action.operands = tuple([shape[axis] for axis in order]), value.dtype, back
        self._actions.append(action)
        return slot

    def _kept(self, constant: np.ndarray) -> np.ndarray:
        """Return a constant, the same for equal ones if they are small."""
        if constant.size > SMALL:
            return constant
        key = constant.dtype, constant.shape, constant.strides, constant.tobytes()
        return self._cells.setdefault(key, constant)

    def _cell(self, number: Number, dtype: Any) -> Any:
        """Return an array without axes that holds a number: NumPy takes it sooner than the number."""
        if type(number.value) not in (int, float) or dtype not in FLOATS:
            return self._numbers[number.key]
        key = number.key, dtype
        if key not in self._cells:
            self._cells[key] = np.empty((), dtype)
            self._filled.append(Action(setitem, (self._cells[key], (), self._numbers[number.key])))
        return self._cells[key]

    def _replaceable(self, arg: Value, result: Value) -> bool:
        """Return whether a result may take the place of an argument, which is needed no longer."""
        return (
            arg.storage.kind == "temporary"
            and self._stays(arg)
            and self._ends[arg.storage] == self._at
            and arg.lies_as(result)
        )


def _empty(shape: tuple[int, ...], dtype: Any, axes: tuple[int, ...]) -> np.ndarray:
    return np.empty(shape, dtype).transpose(axes)
