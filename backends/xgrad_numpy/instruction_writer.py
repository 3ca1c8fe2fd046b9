"""Writer of the instructions of a program: operands, constants, buffers, and result memory."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from mmap import mmap
from typing import Any

import numpy as np

from xgrad.capture.numbers import Number
from xgrad.capture.program import Call, Program, Storage, Value, map_leaves
from xgrad_numpy.analysis import Analysis
from xgrad_numpy.buffer_assignment import (
    BufferAssignment,
    contiguous_strides,
    copy_with_strides,
    has_layout,
)
from xgrad_numpy.codegen import ArraySlot, Instruction, Parts
from xgrad_numpy.instructions import copy_array

FLOATS = frozenset(map(np.dtype, ("float32", "float64")))
KEYWORD_OUT = frozenset({np.maximum, np.minimum})  # these warn about a positional `out`
# elements up to which constants and rows are broadcast in advance, for long inner loops
SMALL = 1 << 16


class InstructionWriter:
    """The instructions of a program, given the arrays of its state.

    `before` are the instructions before the first write to the state or an input. `tentative` are
    the ones from that write to the last check, if it comes later: an error there calls `restore`,
    which undoes the writes. `after` are all others. `parameters` are inputs and numbers; `static`
    are the static slots outside the state, in the order of their dependencies. Unless kernels in C
    are to follow (`native`), single floats are NumPy scalars, and rows are in new memory: that
    takes less time.

    The calls are lowered in order, and `_at` is the index of the current one. What dies there gives
    its memory to a result (`_destination`), or back to the buffers after the call (`_release`).
    """

    outputs: list[ArraySlot]

    def __init__(self, program: Program, arrays: Sequence[np.ndarray], native: bool) -> None:
        self._program, self._constants, self._native = program, program.constants, native
        self._early: list[Instruction] = []  # views of inputs, and numbers stored in arrays
        self.before, self.tentative = list[Instruction](), list[Instruction]()
        self.after, self.restore = list[Instruction](), list[Instruction]()
        self._current = self.before
        self._at = 0
        self._numbers = {
            number.text: ArraySlot(dynamic=True, early=True) for number in program.numbers
        }
        self._slots = {x.number: ArraySlot(dynamic=True, early=True) for x in program.inputs}
        if not any(x.storage.kind == "input" for call in program.calls for x in call.writes):
            for x in program.inputs:
                self._slots[x.number].example = _example(x)
        self.parameters = [*self._slots.values(), *self._numbers.values()]
        self.state = [self._slots.setdefault(x.number, ArraySlot()) for x in program.state]
        self.static: list[ArraySlot] = []
        self._arrays: dict[Any, np.ndarray] = {}  # 0-d arrays of numbers, and small constants
        self._facts = Analysis(program, arrays)
        self._buffers = BufferAssignment()
        self.nbytes = 0
        self.memory = self.add_static(self._buffers.memory)

    @property
    def parts(self) -> Parts:
        """All instructions."""
        return Parts(self.before, self.tentative, self.after, self.restore)

    def _begin_writes(self) -> None:
        """Begin the writes to the state and inputs, which later checks may still undo."""
        if self._at > self._facts.last_check:
            self._current = self.after
        elif self._current is self.before:
            for x in self._facts.written_before_checks:
                copy = self._scratch(np.empty(x.shape, x.dtype), self._facts.last_check)
                self._emit(copy_array, self._slots[x.number], copy)
                self.restore.append(Instruction(copy_array, (copy, self._slots[x.number]), {}))
            self._current = self.tentative

    def _release(self) -> None:
        """Release the buffers that nothing needs after the current call."""
        for storage in self._facts.dying(self._at):
            self._buffers.release(storage)
        if self._at == self._facts.last_check and self._current is self.tentative:
            self._current = self.after

    def _finish(self) -> None:
        """Make the outputs, and set the final lists and sizes."""
        self.outputs = [self._output(x) for x in self._program.outputs]
        self.before, self.nbytes = self._early + self.before, self._buffers.nbytes

    def _operand(self, arg: Any) -> Any:
        """Return an argument of a call with slots and constants in place of values and numbers."""
        return map_leaves(self._leaf, arg)

    def _leaf(self, arg: Any) -> Any:
        if type(arg) is Value:
            constant = self._constants.get(arg.number)
            return self._slots[arg.number] if constant is None else constant
        return self._numbers[arg.text] if type(arg) is Number else arg

    def _constant(self, value: Any, dtype: Any = None) -> np.ndarray:
        """Return a constant as an array; small equal constants share one array."""
        array = np.asarray(value, dtype)
        if array.size > SMALL:
            return array
        return self._arrays.setdefault(
            (array.dtype, array.shape, array.strides, array.tobytes()), array
        )

    def _number_array(self, number: Number, dtype: Any) -> Any:
        """Return a 0-d array that holds a number during a run: a faster operand than the number."""
        slot, key = self._numbers[number.text], (number.text, dtype)
        if type(number.value) not in (int, float) or dtype not in FLOATS:
            return slot
        if key not in self._arrays:
            self._arrays[key] = np.empty((), dtype)
            self._early.append(Instruction(operator.setitem, (self._arrays[key], (), slot), {}))
        return self._arrays[key]

    def add_static(self, find: Callable[[], Any], *sources: ArraySlot) -> ArraySlot:
        """Return a new static slot that `find` computes from the arrays of other slots."""
        slot = ArraySlot(find=find, order=len(self.static))
        for source in sources:
            source.dependents.append(slot)
        self.static.append(slot)
        return slot

    def _pure(self, function: Callable[..., Any], *operands: Any, **options: Any) -> ArraySlot:
        """Return the slot of a view or of new memory, made as early as possible."""
        call = Instruction(function, operands, options)
        if call.slots and not any(slot.dynamic for slot in call.slots):
            return self.add_static(lambda: operator.call(*call.entry()), *call.slots)
        early = all(slot.early or not slot.dynamic for slot in call.slots)
        call.result = ArraySlot(dynamic=True, early=early)
        (self._early if early else self._current).append(call)
        if any(slot.example is not None for slot in call.slots):  # the result is then a view
            call.result.example = call.example()
            call.result.new = all(slot.new for slot in call.slots if slot.dynamic)
        return call.result

    def _view(self, x: Any, view: Callable[..., Any], *args: Any) -> Any:
        """Return a view of an operand."""
        return self._pure(view, x, *args) if type(x) is ArraySlot else view(x, *args)

    def _buffer(self, value: Value) -> ArraySlot:
        offset, memory = self._buffers.allocate(value), self.memory
        shape, dtype, strides = value.shape, value.dtype, value.strides
        return self.add_static(
            lambda: np.ndarray(shape, dtype, memory.array, offset, strides), memory
        )

    def _scratch(self, like: np.ndarray, until: int = -1) -> ArraySlot:
        """Return a buffer that is used by this call only, or by the calls up to an index."""
        storage = Storage("temporary")
        self._facts.keep(storage, max(self._at, until))
        return self._buffer(Value(-1, storage, like))

    def _destination(self, value: Value, reuse: tuple[Any, ...] = ()) -> ArraySlot:
        """Return memory for a result.

        It is the target of the result, new memory, the memory of a dying operand, or a buffer.
        """
        target, slots = self._facts.targets.get(value.number), self._slots
        if target is not None and target.storage.kind == "temporary":
            slots[value.number] = self._destination(target)
        elif target is not None:
            self._current, slots[value.number] = self.after, slots[target.number]
        elif self._is_copied(value):
            # not in a buffer: it would split free memory until the end
            number = np.empty((), value.dtype)
            slots[value.number] = self.add_static(lambda: number)
        elif value.storage in self._facts.escaping:
            strides = () if value.strides == contiguous_strides(value) else (None, 0, value.strides)
            slot = self._pure(
                np.ndarray if strides else np.empty, value.shape, value.dtype, *strides
            )
            slots[value.number] = slot
            slot.example, slot.new = _example(value), True
        else:
            for old in reuse:
                if (
                    has_layout(old, value)
                    and self._facts.dies_at(old.storage, self._at)
                    and old.number not in self._facts.read_only
                    and self._buffers.transfer(old, value)
                ):
                    slots[value.number] = slots[old.number]
                    break
            else:
                slots[value.number] = self._buffer(value)
        return slots[value.number]

    def _is_copied(self, value: Value) -> bool:
        """Return whether an output is copied at the end.

        For a single number a copy takes less time than new memory.
        """
        return (
            not value.shape and [x.storage for x in self._program.outputs].count(value.storage) == 1
        )

    def _output(self, value: Value) -> ArraySlot:
        x, kind = self._operand(value), value.storage.kind
        if kind == "temporary" and type(x) is ArraySlot and x.dynamic:
            return x
        early = type(x) is not ArraySlot or x.early or not (x.dynamic or kind == "temporary")
        result = ArraySlot(dynamic=True, early=early)
        copy = copy_with_strides if value.shape else np.ndarray.copy
        function = np.ndarray.view if kind in ("state", "input") else copy
        (self._early if early else self._current).append(Instruction(function, (x,), {}, result))
        return result

    def _emit(self, function: Callable[..., Any], *operands: Any, **options: Any) -> None:
        self._current.append(Instruction(function, operands, options))

    def _emit_ufunc(self, function: np.ufunc, operands: Sequence[Any], out: Any) -> None:
        keyword = function in KEYWORD_OUT
        self._emit(
            function, *operands, *([] if keyword else [out]), **({"out": out} if keyword else {})
        )

    def _emit_result(self, result: Value, function: Callable[..., Any], *operands: Any) -> bool:
        """Emit a call whose result is in new memory."""
        self._current.append(Instruction(function, operands, {}, self._new(result)))
        return True

    def _new(self, result: Value) -> ArraySlot:
        """Return the slot of a result in new memory."""
        slot = self._slots.setdefault(result.number, ArraySlot(dynamic=True))
        if not result.scalar:
            slot.example = _example(result)
        return slot

    def _lower_plainly(self, call: Call) -> None:
        """Emit a call unchanged, with its results in new memory."""
        slots = tuple(map(self._new, call.results))
        result = None if not slots else slots[0] if call.single else slots
        args, options = (map_leaves(self._plain_leaf, x) for x in (call.args, call.options))
        self._current.append(Instruction(call.function, args, options, result))

    def _plain_leaf(self, arg: Any) -> Any:
        """Return an operand; a scalar that is stored in an array becomes a scalar again.

        Functions return views for arrays, and new arrays for scalars.
        """
        operand = self._leaf(arg)
        if type(arg) is Value and arg.scalar and type(operand) is ArraySlot and not operand.dynamic:
            scalar = ArraySlot(dynamic=True)
            self._current.append(Instruction(operator.getitem, (operand, ()), {}, scalar))
            return scalar
        return operand


def _example(value: Value) -> np.ndarray | None:
    """Return an array with the layout of a value.

    Its pages are never touched, and so take no memory.
    """
    if any(stride < 0 for stride in value.strides or ()):
        return None
    extent = sum(
        (n - 1) * stride for n, stride in zip(value.shape, value.strides or (), strict=True)
    )
    pages = mmap(-1, max(0, extent) + value.dtype.itemsize)
    return np.ndarray(value.shape, value.dtype, pages, 0, value.strides)
