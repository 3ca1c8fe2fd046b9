"""The trace of a step: the calls that it makes on a tracing device, and the reasons why it cannot be replayed."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any
from weakref import ref

import numpy as np

from xgrad.backend.device import Device
from xgrad.capture.arrays import TracedArray, TracedScalar
from xgrad.capture.numbers import Number, plain
from xgrad.capture.program import Call, Storage, Value, owner_of
from xgrad.capture.source_location import describe, locate
from xgrad.capture.tracing_device import TracingDevice
from xgrad.core.tensor import Tensor, from_placement
from xgrad.optim.flat import FlatParameters
from xgrad.support.refcounts import references

_PLAIN = frozenset({bool, int, float, complex, str, type(None), type(...), np.dtype, type})
_FOREIGN = "that is neither an argument, nor found from the step, nor made by it"
#: Functions whose results have a shape that depends on values.
_SHAPED_BY_VALUES = frozenset("nonzero unique_all unique_counts unique_inverse unique_values".split())
#: Functions that raise an error for some values: `x[index]` is checked in advance.
_RAISE = {*"take take_along_axis cholesky eig eigh eigvals eigvalsh inv matrix_rank pinv solve svd svdvals".split()}


class Trace:
    """Calls of a step that runs once on the tracing device of a device; tensors of other devices are foreign.

    Attributes
    ----------
    calls, constants : list of Call, dict of int to array
        The calls in order; and arrays made of Python's values, by the number of their value.
    reads : list of tuple
        Where the numbers n0, n1 and so on are read: an owner, its attribute or key, an index or None; and the type.
    conditions : dict of str to bool
        The outcome of each test of a number.
    refusals : list of str
        Why the step cannot be replayed, each with the line.
    journal : list of tuple
        Calls that undo the writes to state, last write first: functions and their arguments.
    made : list of reference
        All traced arrays.
    """

    def __init__(self, real: Device) -> None:
        self.real, self.device = real, TracingDevice.standing_for(real)
        self.calls: list[Call] = []
        self.constants: dict[int, Any] = {}
        self.reads: list[tuple[Any, Any, int | None, type]] = []
        self.conditions: dict[str, bool] = {}
        self.refusals: list[str] = []
        self.journal: list[tuple[Any, ...]] = []
        self.made: list[ref[TracedArray]] = []
        self._array_type = real.array_type
        self._lifted: dict[int, TracedArray] = {}  # by the id of an array, which the traced array keeps
        self._storages: dict[int, Storage] = {}  # of inputs and state, by the id of what owns their memory
        self._views: dict[Storage, list[ref[TracedArray]]] = {}  # of inputs and state
        self._exclusive: dict[Storage, int] = {}  # references to the buffers of parameters
        self._saved: set[int] = set()  # arrays of the state that the journal has a copy of, by id

    # Arrays and numbers

    def _traced(self, array: Any, storage: Storage, name: str = "") -> TracedArray:
        value = Value(len(self.made), storage, array, name)
        traced = (TracedArray if isinstance(array, self._array_type) else TracedScalar)(self, array, value)
        self.made.append(reference := ref(traced))
        if storage.kind == "state":
            self._views.setdefault(storage, []).append(reference)
        return traced

    def lift(self, array: Any, kind: str, name: str) -> TracedArray:
        """Return what stands for an array that exists before the step: an "input", or one of the "state"."""
        known = self._lifted.get(id(array))
        if known is None:
            storage = self._storages.setdefault(id(owner_of(array)), Storage(kind))
            known = self._lifted[id(array)] = self._traced(array, storage, name)
        return known

    def constant(self, array: Any) -> TracedArray:
        """Return what stands for an array made of Python's values."""
        traced = self._traced(array, Storage("constant"))
        self.constants[traced.value.number] = array
        return traced

    def read(self, value: Any, owner: Any, key: Any, index: int | None = None) -> Any:
        """Return what stands for a number, or a tuple of them, that is read from its owner."""
        if type(value) is tuple:
            return tuple([self.read(part, owner, key, i) for i, part in enumerate(value)])
        value = value.item() if hasattr(value, "item") else value
        self.reads.append((owner, key, index, type(value)))
        return Number(self, value, f"n{len(self.reads) - 1}")

    def forget(self) -> None:
        """Drop the arrays of inputs and state: numbers of the program refer to the trace."""
        self._lifted.clear()
        self.journal.clear()

    # Calls

    def call(
        self, function: Callable[..., Any], args: Sequence[Any], options: dict[str, Any], writes: tuple[int, ...]
    ) -> Any:
        """Call a function with the arrays that its arguments stand for, and record the call."""
        given: dict[int, TracedArray] = {}
        operands: list[Any] = []
        real, stored = self._take(args, given, operands)
        written = [args[i] for i in writes if type(args[i]) is TracedArray]
        named, named_stored = options, options
        if options:
            values = self._take(options.values(), given, operands)
            named, named_stored = [dict(zip(options, part, strict=True)) for part in values]
            if type(options.get("out")) is TracedArray:
                written.append(options["out"])
        self._check_call(function, args)
        if written:
            self._prepare_writes(written)
        result = function(*real, **named)
        kind = type(result)
        known, single = given.get(id(result)), True
        if known is not None or (result is None and written):
            parts: list[TracedArray] = []
        elif hasattr(result, "dtype") and hasattr(result, "shape") and kind is not type:
            parts = [self._new(result, given)]
        elif isinstance(result, (tuple, list)) and any(hasattr(part, "shape") for part in result):
            parts, single = [given.get(id(part)) or self._new(part, given) for part in result], False
        else:  # of shapes or dtypes
            return result
        if parts or written:  # else an argument is returned as it is: nothing happened
            writes_to = tuple([x.value for x in written])
            call = Call(function, tuple(stored), named_stored, writes_to, None, locate(), operands)
            call.results, call.single = [x.value for x in parts], single
            self.calls.append(call)
        if single:
            return known if known is not None else parts[0] if parts else None
        return result._make(parts) if hasattr(result, "_make") else kind(parts)

    def _new(self, array: Any, given: dict[int, TracedArray]) -> TracedArray:
        """Return what stands for a result, whose memory may be that of an argument."""
        if given and isinstance(array, self._array_type):
            owner = owner_of(array)
            if owner is not array or id(array) in given or type(array) is not np.ndarray:
                for x in given.values():
                    if owner is owner_of(x.array):
                        return self._traced(array, x.value.storage)
        return self._traced(array, Storage("temporary"))

    def _take(
        self, args: Iterable[Any], given: dict[int, TracedArray], operands: list[Any]
    ) -> tuple[list[Any], list[Any]]:
        """Return arguments as the function is given them, and as a program has them: see `leaves` for its operands."""
        real, stored = [], []
        for x in args:
            kind = type(x)
            one = other = x
            if kind is TracedArray or kind is TracedScalar:
                if x.trace is not self:
                    self.refuse("a tensor of an earlier trace is used")
                if kind is TracedArray:  # NumPy's scalars True and False exist but once
                    given[id(x.array)] = x
                one, other = x.array, x.value
                operands.append(other)
            elif kind in _PLAIN:
                pass
            elif kind is Number:
                one = x.value
                operands.append(x)
            elif kind is TracingDevice:
                one = other = x.real
            elif kind is tuple or kind is list:
                one, other = map(kind, self._take(x, given, operands))
            elif kind is slice:
                one, other = [slice(*part) for part in self._take((x.start, x.stop, x.step), given, operands)]
            elif isinstance(x, self._array_type):
                self.refuse("an array is used that is neither an argument nor made by the step")
            real.append(one)
            stored.append(other)
        return real, stored

    def _prepare_writes(self, written: list[TracedArray]) -> None:
        """Save what is in memory of the state before it is overwritten."""
        for x in written:
            storage = x.value.storage
            storage.writes += 1
            if storage.kind == "constant":
                storage.kind = "temporary"
                copied = Call(partial(_copy, self.real.xp, self.constants.pop(x.value.number).copy()), (), {})
                copied.results, copied.location = [x.value], locate()
                self.calls.insert(0, copied)  # before calls that read it
            elif storage.kind != "temporary" and id(x.array) not in self._saved:
                self._saved.add(id(x.array))
                self.journal.insert(0, (operator.setitem, x.array, Ellipsis, x.array.copy()))

    def _check_call(self, function: Callable[..., Any], args: Sequence[Any]) -> None:
        """Refuse shapes that depend on values, and calls that may raise when a replay has written to the state."""
        name = getattr(function, "__name__", "")
        if name == "getitem" or name == "setitem":
            self._check_key(name, *args)
        elif name in _SHAPED_BY_VALUES or (name == "repeat" and isinstance(args[1], TracedArray)):
            self.refuse(f"the shape of what {name} returns depends on values")
        elif self.journal and name in _RAISE and not self.real.backend.asynchronous:
            self.refuse(f"{name} may raise an error, and the step has written to tensors before: call it first")

    def _check_key(self, name: str, x: Any, key: Any, value: Any = None) -> None:
        """Refuse masks; after a write to the state, check the range of indices: errors must come before it."""
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
        """Return the truth of an array of one bool, which each replay checks."""
        truth = bool(condition.array)
        self.calls.append(Call(bool, (condition.value,), {}, check=truth, location=locate()))
        return truth

    # Parameters that optimizers update in place

    def count_references(self, flats: Iterable[FlatParameters]) -> None:
        """Count the references to the buffers of parameters while nothing but the state has any."""
        for flat in flats:
            storage = flat.buffer._data.value.storage
            self._exclusive[storage] = self._references(storage)

    def is_exclusive(self, flat: FlatParameters, moved: int) -> bool:
        """Return whether the step holds no view of parameters that are to be updated in place.

        The number of parameters that have `moved` to other arrays is known. If the step holds a view, the optimizer moves
        the parameters to another buffer, as it does without a trace, and the capture is refused.
        """
        value = getattr(flat.buffer._data, "value", None)  # no reference to the traced array
        if value is None:
            self.check_device(flat.device, "an optimizer updates parameters")
        elif self._references(value.storage) + moved > self._exclusive.get(value.storage, sys.maxsize):
            self.refuse(
                "a parameter, or a view of one, is still used when the optimizer updates it: copy it before, by "
                "xgrad.asarray(p.detach(), copy=True)"
            )
            return False
        return True

    def _references(self, storage: Storage) -> int:
        return references([x for x in map(operator.call, self._views.get(storage, ())) if x is not None])

    # Hooks of the library: refusals, and constants in the place of foreign tensors

    def refuse(self, reason: str) -> None:
        """Note why the step cannot be replayed; it runs on."""
        self.refusals.append(f"{describe(locate())}: {reason}")

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

    def value_of(self, number: Any) -> Any:
        """Return the value of a number of the trace, and anything else as it is."""
        return plain(number)

    def read_numbers(self, x: Any) -> Any:
        """Return the value of a number of the trace that meets a tensor, which refuses the capture."""
        if type(x) is list or type(x) is tuple:
            return type(x)(map(self.read_numbers, x)) if any(type(part) in (Number, list, tuple) for part in x) else x
        if type(x) is not Number:
            return x
        self.refuse("a number of an optimizer or a generator meets a tensor: pass it as an argument")
        return x.value

    def admit(self, name: str, inputs: Sequence[Any]) -> list[Any] | None:
        """Return inputs of an op with constants for foreign tensors, which refuses the capture; None without any."""
        foreign = [x for x in inputs if isinstance(x, Tensor) and x._placement.device is not self.device]
        if not foreign:
            return None
        first = foreign[0]
        if first._placement.device is self.real:
            fault = f"shape {first.shape} {_FOREIGN}: pass it as an argument, or name it in state="
            self.refuse(f"{name} is given a tensor of {fault}")
        else:
            self.refuse(f"{name} is given a tensor on {first.device}, and the step runs on {self.real}: move it before")
        if all(x._placement.device is not self.real for x in foreign):
            return None
        return [
            from_placement(self.constant(x._data), self.device.placements[x._data.dtype], x._edge)
            if isinstance(x, Tensor) and x._placement.device is self.real
            else x
            for x in inputs
        ]

    def admit_key(self, key: Tensor, device: Device) -> Any:
        """Return the array of a key of an index on a device, if the key or what it indexes is foreign; else None."""
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


def _copy(xp: Any, array: Any) -> Any:
    return xp.asarray(array, copy=True)
