"""The trace of a step: the calls that it makes on a tracing device, and the reasons why it cannot be replayed."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from weakref import ref

from xgrad.backend.device import Device, Interceptor
from xgrad.capture.numbers import Number, plain
from xgrad.capture.program import Call, Storage, Value, leaves, map_leaves
from xgrad.capture.tracing_device import TracedArray, TracedScalar, TracingDevice
from xgrad.core.lost_gradients import user_line
from xgrad.core.memory import owner_of
from xgrad.core.tensor import Tensor, from_placement
from xgrad.core.views import family_of, has_family
from xgrad.ops.writing import assign
from xgrad.optim.flat import FlatParameters

_FOREIGN = "that is neither an argument, nor found from the step, nor made by it"
#: Functions whose results have a shape that depends on values.
_SHAPED_BY_VALUES = frozenset("nonzero unique_all unique_counts unique_inverse unique_values".split())
#: Functions that raise an error for some values: `x[index]` is checked in advance.
_RAISE = {*"take take_along_axis cholesky eig eigh eigvals eigvalsh inv matrix_rank pinv solve svd svdvals".split()}
_CHECKED = _SHAPED_BY_VALUES | _RAISE | {"getitem", "setitem", "repeat"}


class Trace(Interceptor):
    """Calls of a step that runs once on the tracing device of a device; tensors of other devices are foreign."""

    def __init__(self, real: Device) -> None:
        self.real, self.device, self._array_type = real, TracingDevice.standing_for(real), real.array_type
        self.calls: list[Call] = []
        self.constants: dict[int, Any] = {}  # arrays made of Python's values, by the number of their value
        #: Where the numbers n0, n1 and so on are read: an owner, its attribute or key, an index or None; and the type.
        self.reads: list[tuple[Any, Any, int | None, type]] = []
        self.number_names: dict[str, tuple[str, str]] = {}  # the short and the full names of these numbers
        self.conditions: dict[str, bool] = {}  # the outcome of each test of a number
        #: Adds foreign tensors that share memory with the step to its state; the capture is refused then.
        self.adopt: Callable[[Iterable[Tensor]], None] = _adopt_none
        self.refusals: list[str] = []  # why the step cannot be replayed, each with the line
        self.journal: list[tuple[Any, ...]] = []  # functions with arguments that undo writes to state, last write first
        self.made: list[ref[TracedArray]] = []  # all traced arrays
        self._traced_arrays: dict[int, TracedArray] = {}  # by the id of an array, which the traced array keeps
        self._storages: dict[int, Storage] = {}  # of inputs and state, by the id of what owns their memory
        self._saved: set[int] = set()  # arrays of the state that the journal has a copy of, by id

    # Arrays and numbers

    def _traced(self, array: Any, storage: Storage, name: str = "") -> TracedArray:
        value = Value(len(self.made), storage, array, name)
        traced = (TracedArray if isinstance(array, self._array_type) else TracedScalar)(self, array, value)
        self.made.append(ref(traced))
        return traced

    def trace_array(self, array: Any, kind: str, name: str) -> TracedArray:
        """Return the traced array of an array that exists before the step: an "input", or part of the "state"."""
        known = self._traced_arrays.get(id(array))
        if known is None:
            storage = self._storages.setdefault(id(owner_of(array)), Storage(kind))
            known = self._traced_arrays[id(array)] = self._traced(array, storage, name)
        return known

    def constant(self, array: Any) -> TracedArray:
        """Return the traced array of an array made from Python's values: a copy, as the step may write to it."""
        original = self._traced(array, Storage("constant"))
        self.constants[original.value.number] = array
        copy: TracedArray = self.call(self.real.xp.asarray, (original,), {"copy": True}, ())
        return copy

    def read(self, value: Any, owner: Any, key: Any, name: str, index: int | None = None) -> Any:
        """Return the expression of a number, or a tuple of them, that is read from its owner."""
        if type(value) is tuple:
            return tuple([self.read(part, owner, key, name, i) for i, part in enumerate(value)])
        value = value.item() if hasattr(value, "item") else value
        part = "" if index is None else (".seed", ".draws")[index] if key == "_state" else f"[{index}]"
        number = Number(self, value, f"n{len(self.reads)}")
        self.number_names[number.text] = part[1:] if key == "_state" else f"{key}{part}", f"{name}{part}"
        self.reads.append((owner, key, index, type(value)))
        return number

    def forget(self) -> None:
        """Drop the arrays of inputs and state: numbers of the program refer to the trace."""
        self._traced_arrays.clear()
        self.journal.clear()
        self.adopt = _adopt_none  # not the recording, which refers to the trace

    # Calls

    def call(self, function: Callable[..., Any], args: Any, options: Any, writes: tuple[int, ...]) -> Any:
        """Call a function with the arrays that its arguments stand for, and record the call."""
        traced = [x for x in leaves((*args, *options.values())) if type(x) is TracedArray]  # NumPy has one True alone
        operands = {id(x.array): x for x in traced}
        written = [x for x in (*map(args.__getitem__, writes), options.get("out")) if type(x) is TracedArray]
        name = getattr(function, "__name__", "")
        if name in _CHECKED:
            self._check_call(name, args)
        if written:
            self._prepare_writes(written)
        result = function(*map_leaves(self._concrete, args), **map_leaves(self._concrete, options))
        single = not isinstance(result, (tuple, list))
        arrays = [result] if single else result
        if not written and not any(map(_is_array, arrays)):
            return result  # of shapes or dtypes
        known = single and (result is None or id(result) in operands)
        made = [] if known else [self._wrap(array, operands) for array in arrays]
        if made or written:  # else an argument is returned as it is: nothing happened
            stored, stored_options = map_leaves(_symbolic, args), map_leaves(_symbolic, options)
            results, writes_to = [x.value for x in made], tuple([x.value for x in written])
            self.calls.append(Call(function, stored, stored_options, writes_to, results, single, None, user_line()))
        if single:
            return made[0] if made else operands.get(id(result))
        return result._make(made) if hasattr(result, "_make") else type(result)(made)

    def _wrap(self, array: Any, operands: dict[int, TracedArray]) -> TracedArray:
        """Return the traced array of a result, which may be an operand, or share the memory of one."""
        if id(array) in operands:
            return operands[id(array)]
        owner = owner_of(array) if isinstance(array, self._array_type) else array
        for x in operands.values() if owner is not array else ():
            if owner is owner_of(x.array):
                return self._traced(array, x.value.storage)
        return self._traced(array, Storage("temporary"))

    def _concrete(self, x: Any) -> Any:
        """Return an argument as the function takes it; arrays of other origin refuse the capture."""
        if isinstance(x, TracedArray):
            if x.trace is not self:
                self.refuse("a tensor of an earlier trace is used")
            return x.array
        if isinstance(x, self._array_type):
            self.refuse("an array is used that is neither an argument nor made by the step")
        return x.real if type(x) is TracingDevice else plain(x)

    def _prepare_writes(self, written: list[TracedArray]) -> None:
        """Save the content of memory of the state before it is overwritten."""
        for x in written:
            storage = x.value.storage
            storage.writes += 1
            if storage.kind != "temporary" and id(x.array) not in self._saved:
                self._saved.add(id(x.array))
                self.journal.insert(0, (operator.setitem, x.array, Ellipsis, x.array.copy()))

    def _check_call(self, name: str, args: Sequence[Any]) -> None:
        """Refuse shapes that depend on values, and calls that may raise when a replay has written to the state."""
        if name == "getitem" or name == "setitem":
            self._check_key(name, *args)
        elif name in _SHAPED_BY_VALUES or (name == "repeat" and isinstance(args[1], TracedArray)):
            self.refuse(f"the shape of what {name} returns depends on values")
        elif name in _RAISE and self.journal and not self.real.backend.asynchronous:
            self.refuse(f"{name} may raise an error, and the step has written to tensors before: call it first")

    def _check_key(self, name: str, x: Any, key: Any, value: Any = None) -> None:
        """Refuse masks; after a write to the state, check the range of indices before all writes."""
        parts = key if type(key) is tuple else (key,)
        if any(isinstance(part, TracedArray) and "bool" in str(part.dtype) for part in parts):
            if name == "getitem":
                self.refuse("the shape of what x[mask] returns depends on values")
            elif getattr(value, "shape", ()):
                self.refuse("what x[mask] = array takes of the array depends on values")
        elif self.journal and not self.real.backend.asynchronous:
            for part, length in zip(parts, x.shape, strict=False):
                if part is Ellipsis or part is None:
                    break
                if isinstance(part, TracedArray):
                    self.check(self.device.xp.all((part >= -length) & (part < length)))

    def check(self, condition: Any) -> bool:
        """Return the truth of an array of one bool, and make it a check of the program."""
        truth = bool(condition.array)
        self.calls.append(Call(bool, (condition.value,), {}, check=truth, line=user_line()))
        return truth

    def check_parameters(self, flat: FlatParameters) -> None:
        """Refuse the capture unless parameters that an optimizer updates are of the state."""
        if getattr(flat.buffer._data, "value", None) is None:
            self.check_device(flat.device, "an optimizer updates parameters")

    # Hooks of the library: refusals, and constants in the place of foreign tensors

    def refuse(self, reason: str) -> None:
        """Note why the step cannot be replayed; it runs on."""
        self.refusals.append(f"{user_line()}: {reason}")

    def check_device(self, device: Device, action: str) -> None:
        """Refuse the capture unless a device is that of the trace."""
        if device is not self.device:
            self.refuse(f"{action} {_FOREIGN}: name it in state=")

    def device_for(self, device: Device) -> Device:
        """Return the tracing device for the device that is traced, and others as they are."""
        return self.device if device is self.real else device

    def seed(self, seed: Any) -> Number:
        """Return the seed that the step gives a generator as a number, by which the generator is known."""
        return seed if type(seed) is Number else Number(self, int(seed), repr(int(seed)))

    def check_generator(self, seed: Any) -> None:
        """Refuse generators that are not of the state."""
        if type(seed) is not Number:
            self.refuse(
                "random numbers are drawn from a generator that is not found from the step, or has no seed: name it "
                "in state="
            )

    def read_numbers(self, x: Any) -> Any:
        """Return the value of a number of the trace that meets a tensor, which refuses the capture."""
        if type(x) is list or type(x) is tuple:
            return type(x)(map(self.read_numbers, x)) if any(type(part) in (Number, list, tuple) for part in x) else x
        if type(x) is not Number:
            return x
        self.refuse("a number of an optimizer or a generator meets a tensor: pass it as an argument")
        return x.value

    def intercept(self, function: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Call a function with constants for foreign tensors, if there are any."""
        admitted = self.admit(function.name, inputs)
        return None if admitted is None else function(*admitted, **options)

    def admit(self, name: str, inputs: Sequence[Any]) -> list[Any] | None:
        """Return inputs of an op with constants for foreign tensors, which refuses the capture; None without any."""
        foreign = [x for x in inputs if isinstance(x, Tensor) and x._placement.device.root is not self.device]
        if not foreign:
            return None
        first, here = foreign[0], {id(x) for x in foreign if x._placement.device is self.real}
        self._propagate([x for x in foreign if id(x) in here])
        if id(first) in here:
            fault = f"shape {first.shape} {_FOREIGN}: pass it as an argument, or name it in state="
            self.refuse(f"{name} is given a tensor of {fault}")
        else:
            self.refuse(f"{name} is given a tensor on {first.device}, and the step runs on {self.real}: move it before")
        return [self._admitted(x) if id(x) in here else x for x in inputs] if here else None

    def _propagate(self, foreign: list[Tensor]) -> None:
        """Propagate writes of the step to foreign tensors that share memory with tensors of the step."""
        for x in foreign:
            family = family_of(x) if has_family(x) else []
            traced = [member for member in family if member._placement.device is self.device]
            if not traced:
                continue
            self.adopt(family)
            if traced[0]._data is not self._traced_arrays.get(id(traced[0]._data.array)):  # the step has written to it
                assign(traced[0], from_placement(traced[0]._data, traced[0]._placement), hidden=True)

    def _admitted(self, x: Tensor) -> Tensor:
        if x._placement.device is self.device:  # adopted
            return x
        return from_placement(self.constant(x._data), self.device.placements[x._data.dtype], x._edge)

    def admit_key(self, key: Tensor, device: Device) -> Any:
        """Return the array of an index on a device, if the index or the indexed array is foreign; else None."""
        if device is self.real and key._placement.device is self.device:
            self.refuse(f"a tensor is indexed {_FOREIGN}: pass it as an argument, or name it in state=")
            return key._data.array
        admitted = self.admit("indexing", [key]) if device is self.device else None
        return admitted and admitted[0]._data

    def convert(self, raw: Any, source: Device, kind: str) -> Any:
        """Return values that become a tensor as a constant; a `kind` of array that is no tensor refuses the capture."""
        if kind:
            self.refuse(f"a {kind} becomes a tensor: pass a tensor as an argument")
        return self.constant(raw) if source is self.device and not isinstance(raw, TracedArray) else raw


def _adopt_none(tensors: Iterable[Tensor]) -> None:
    """Adopt no tensors: before and after the step."""


def _symbolic(x: Any) -> Any:
    """Return an argument as a program has it."""
    return x.value if isinstance(x, TracedArray) else x.real if type(x) is TracingDevice else x


def _is_array(x: Any) -> bool:
    return hasattr(x, "dtype") and hasattr(x, "shape") and type(x) is not type
