"""A plan of a program: calls in forms in which NumPy is quick, which write to memory that is shared by lifetime."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from xgrad.capturing.arrays import method
from xgrad.capturing.numbers import Number
from xgrad.capturing.operators import getitem, setitem
from xgrad.capturing.program import Call, Storage, Value
from xgrad_numpy.actions import Action, Slot, settled, slots_in
from xgrad_numpy.blocks import in_blocks
from xgrad_numpy.checks import check, check_comparison
from xgrad_numpy.forms import REDUCTIONS, Forms
from xgrad_numpy.forwarding import forwarded
from xgrad_numpy.layout import copied, dense, in_order
from xgrad_numpy.planning import ELEMENTWISE
from xgrad_numpy.writing import Written

#: Operators in place, and what they call.
_IN_PLACE: dict[Any, np.ufunc] = {
    operator.iadd: np.add,
    operator.isub: np.subtract,
    operator.imul: np.multiply,
    operator.itruediv: np.divide,
    operator.ifloordiv: np.floor_divide,
    operator.imod: np.remainder,
    operator.ipow: np.power,
    operator.iand: np.bitwise_and,
    operator.ior: np.bitwise_or,
    operator.ixor: np.bitwise_xor,
    operator.ilshift: np.left_shift,
    operator.irshift: np.right_shift,
    operator.imatmul: np.matmul,
}
_DOT, _ASTYPE, _COPY = method("dot"), method("astype"), method("copy")
_COMPARISONS = frozenset({operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne})
_PLACES: dict[Any, Any] = {np.minimum: np.ndarray.argmin, np.maximum: np.ndarray.argmax}


class Planned(Forms):
    """What runs a program in memory that is planned.

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

    Attributes
    ----------
    run : callable
        See `Replay`.
    """

    run: Callable[..., Any]

    def __init__(
        self,
        calls: list[Call],
        constants: dict[int, Any],
        found: list[Value],
        statics: list[Value],
        numbers: list[Number],
        outputs: list[Value],
    ) -> None:
        super().__init__({value.storage for value in outputs}, constants, numbers)
        self._statics, self._outputs = statics, outputs
        self._first_write: int | None = None
        given = [self._moves(value) for value in found]
        for value in statics:
            self._slots[value.number] = Slot()
        self.calls = forwarded(calls, self._handed_out)
        self._ends = self._lifetimes()
        self._asked: dict[int, Call] = {}  # comparisons that are left to the check of what they give
        self._extremes: dict[int, tuple[Any, Any]] = {}  # how such a comparison finds what it compares, and where
        for i, call in enumerate(self.calls):
            self._at = i
            self._plan_call(call)
            self._plan.release(i)
        first = len(self._actions) if self._first_write is None else self._first_write
        self._results = [self._output(value) for value in outputs]
        self._plan.allocate()
        self._takes = [*given, *self._numbers.values()]
        self._actions = self._filled + self._actions
        self._checks = len(self._filled) + first
        self._turn = 0  # how often arrays have been followed
        self._written: Written | None = None

    @property
    def nbytes(self) -> int:
        """How much memory it has of its own."""
        return self._plan.nbytes

    def finds(self) -> list[Callable[[], Any]]:
        """Return what finds the arrays that stay, of inputs excepted."""
        return [find for _, find, _ in self._links]

    def link(self, arrays: list[np.ndarray]) -> None:
        """Take the arrays of `statics`, and find all others that stay where they are."""
        self._turn += 1
        for value, array in zip(self._statics, arrays, strict=True):
            slot = self._slots[value.number]
            if slot.now is not array:
                slot.now, slot.turn = array, self._turn
        self._find(self._links)
        if self._written is None:
            self._write()
        else:
            self._written.follow(self._turn)

    def release(self) -> None:
        """Let go of all arrays at once, for optimizers count who has theirs."""
        if self._written is not None:
            self._written.release()
        for slot in [*self._slots.values(), *(slot for slot, *_ in self._links)]:
            slot.now = None
        self._links = []

    def _find(self, links: Iterable[tuple[Slot, Callable[[], Any], tuple[Slot, ...]]]) -> None:
        for slot, find, sources in links:
            if slot.now is None or [source for source in sources if source.turn == self._turn]:
                slot.now, slot.turn = find(), self._turn

    def _write(self) -> None:
        """Write the function, now that it is known where arrays lie."""
        known, parts = len(self._links), (self._actions[: self._checks], self._actions[self._checks :])
        checked, rest = (in_blocks(actions, self._plan.memory, self._lies) for actions in parts)
        self._find(self._links[known:])
        self._written = Written(checked, rest, self._takes, self._results)
        self.run = self._written.run
        self._actions = []

    # Calls

    def _plan_call(self, call: Call) -> None:
        if call.check is not None:
            self._plan_check(call)
        elif self._comparison_asked(call):
            self._asked[call.results[0].number] = call
        elif call.target is not None:
            self._plan_write(call, call.target)
        elif self._is_view(call):
            self._plan_view(call)
        elif not self._plan_extreme(call) and not self._plan_into(call):
            self._plan_plain(call)

    def _lifetimes(self) -> dict[Storage, int]:
        """Return the number of the last call that needs each memory."""
        ends: dict[Storage, int] = {}
        for i, call in enumerate(self.calls):
            for value in call.reads:
                ends[value.storage] = i
            for value in call.results:
                ends[value.storage] = i
            if call.target is not None:
                ends[call.target.storage] = i
        for value in self._outputs:
            ends[value.storage] = len(self.calls)
        return ends

    def _uses(self, value: Value) -> int:
        """Return how often a value is given to a call."""
        return sum(call.reads.count(value) for call in self.calls)

    def _comparison_asked(self, call: Call) -> bool:
        """Return whether a call compares single numbers for no more than a check."""
        if not call.single or call.function not in _COMPARISONS or not call.results:
            return False
        (result,) = call.results
        checks = [c for c in self.calls if c.check is not None and c.args[0] is result]
        return len(call.args) == 2 and result.shape == () and len(checks) == self._uses(result) == 1

    def _plan_check(self, call: Call) -> None:
        """Look whether a check comes out as it did."""
        value = call.args[0]
        asked = self._asked.get(value.number)
        if asked is None:
            self._add(check, call.check, self._given(value))
            return
        operands: list[Any] = []
        for arg in asked.args:
            extreme = self._extremes.get(arg.number) if type(arg) is Value else None
            operands += extreme or (None, self._given(arg))
        self._add(check_comparison, call.check, asked.function, *operands)

    def _is_view(self, call: Call) -> bool:
        """Return whether a call returns but views of what it is given."""
        given = [value.storage for value in call.reads]
        for value in call.results:
            if value.storage not in given:
                return False
        return bool(call.results)

    def _plan_view(self, call: Call) -> None:
        """Find a view of memory that stays once, of all other anew."""
        if not call.single or call.numbers:
            self._plan_plain(call)
            return
        for value in call.reads:
            if value.number not in self._constants and not self._stays(value):
                self._plan_plain(call)
                return
        found = Found(call, self._as_it_was(call))
        self._slots[call.results[0].number] = self._lies(found, *slots_in(found.operands()))

    def _plan_plain(self, call: Call) -> None:
        """Call a function that makes the memory of its results."""
        action = self._as_it_was(call)
        slots = tuple([self._moves(value) for value in call.results])
        action.into = slots[0] if call.single else slots
        self._actions.append(action)

    def _as_it_was(self, call: Call) -> Action:
        """Return a call as it was made."""
        function, operands = call.function, [self._given(arg) for arg in call.args]
        options = {name: self._given(value) for name, value in call.options.items()}
        if call.name.endswith(".reduce") and len(operands) == 1:  # of which NumPy reads names slowly
            operands.append(options.pop("axis", 0))
            ordinary = {"dtype": None, "keepdims": False}
            options = {
                name: value for name, value in options.items() if name not in ordinary or value != ordinary[name]
            }
        elif function is getitem:
            function = operator.getitem
        elif isinstance(function, _METHOD_TYPE) and _is_method(function) and _is_array(call.args[0]):
            function = getattr(np.ndarray, function.__name__)
        return Action(function, tuple(operands), options)

    def _plan_into(self, call: Call) -> bool:
        """Write the result to memory of ours, if the function can; return whether."""
        if not call.single or call.results[0].scalar or not dense(call.results[0]):
            return False
        result, function = call.results[0], call.function
        if isinstance(function, np.ufunc):
            return function.nout == 1 and self._plan_ufunc(call, function, result)
        if self._plan_reduction(call, result):
            return True
        if function is _DOT and in_order(result.strides, result.shape, result.dtype.itemsize):
            self._add(np.ndarray.dot, *map(self._given, call.args), self._new(result))
            return True
        if function is np.asarray and len(call.args) == 1:  # of a scalar
            if result.storage in self._handed_out:
                return False
            self._add_copy(self._new(result), self._given(call.args[0]))
            return True
        if function is np.where and len(call.args) == 3 and self._plan_choice(call, result):
            return True
        if self._plan_one_of_each_row(call, result):
            return True
        if function in (_ASTYPE, _COPY):
            x = self._given(call.args[0])
            self._add_copy(self._new(result), x, result.shape)
            return True
        if not call.reads and not call.numbers:  # what is made of nothing, and changed then
            value = np.asarray(call.function(*call.args, **call.options))
            self._add_copy(self._new(result), value)
            return True
        return False

    def _plan_extreme(self, call: Call) -> bool:
        """Find the least or largest of integers by its place, sooner known, if it is of use but to a check."""
        function = getattr(call.function, "__self__", None)
        if not isinstance(function, np.ufunc) or call.name not in ("minimum.reduce", "maximum.reduce"):
            return False
        given = dict(zip(REDUCTIONS, call.args[1:], strict=False)) | call.options
        x, result = call.args[0], call.results[0]
        plain = not given.get("keepdims") and not given.keys() - {"axis", "keepdims", "dtype", "out"}
        every = given.get("axis", 0) is None or (given.get("axis", 0) == 0 and len(x.shape) == 1)
        if not plain or not every or given.get("dtype") is not None or type(x) is not Value or x.dtype.kind not in "iu":
            return False
        if function not in _PLACES or not math.prod(x.shape):
            return False
        asked = any(result in c.args for c in self.calls if self._comparison_asked(c))
        if not result.scalar or self._uses(result) > 1 or not asked:
            return False
        self._extremes[result.number] = _PLACES[function], self._given(x)
        return True

    def _plan_write(self, call: Call, target: Value) -> None:
        """Call what changes what it is given."""
        if target.storage.kind != "temporary" and self._first_write is None:
            self._first_write = len(self._actions)
        function, out = call.function, self._given(target)
        ufunc: Any = _IN_PLACE.get(function, function if call.out and not call.options else None)
        if ufunc in ELEMENTWISE:
            self._add_writing(ufunc, self._operands(ufunc, call.args, target), out, target.shape)
        elif function in _IN_PLACE:
            self._add_writing(ufunc, [self._given(arg) for arg in call.args], out)
        elif function is setitem:
            self._add(operator.setitem, *map(self._given, call.args))
        elif call.out and function is _DOT:
            self._add(np.ndarray.dot, *map(self._given, call.args), out)
        else:
            action = self._as_it_was(call)
            if call.out:
                action.options = {**action.options, "out": out}
            self._actions.append(action)

    # Results

    def _output(self, value: Value) -> Slot:
        constant = self._constants.get(value.number)
        if constant is None and value.storage.kind == "temporary":
            return self._slots[value.number]
        slot = Slot(moves=True)
        if constant is not None:
            self._actions.append(Action(copied, (constant,), into=slot))
        else:  # so that an optimizer sees that somebody looks
            self._actions.append(Action(np.ndarray.view, (self._slots[value.number],), into=slot))
        return slot


class Found:
    """Find a view once more, of arrays that have moved."""

    def __init__(self, call: Call, action: Action) -> None:
        self.call, self.action = call, action

    def operands(self) -> list[Any]:
        """Return what it is a view of, and its other arguments."""
        return [*self.action.operands, *self.action.options.values()]

    def __call__(self) -> Any:
        action = self.action
        return action.function(*map(settled, action.operands), **action.options)


_METHOD_TYPE = type(lambda: None)


def _is_method(function: Any) -> bool:
    return method(function.__name__) is function if function.__module__ == method.__module__ else False


def _is_array(arg: Any) -> bool:
    return not arg.scalar if type(arg) is Value else isinstance(arg, np.ndarray)
