"""The trace of a step: the calls that it makes on a tracing device, and the reasons why it cannot be replayed."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any
from weakref import ref

import numpy as np

from xgrad.capture.arrays import TracedArray, TracedScalar
from xgrad.capture.memory import owner_of
from xgrad.capture.numbers import Number, plain
from xgrad.capture.program import Call, Storage, Value
from xgrad.capture.source_location import describe, locate
from xgrad.capture.tracing_device import TracingDevice
from xgrad.device import Device
from xgrad.optim.flat import Flat
from xgrad.tensor import Tensor, placed

_PLAIN = frozenset({bool, int, float, complex, str, type(None), type(...), np.dtype, type})
_FOREIGN = "that is neither an argument, nor found from the step, nor made by it"


class Trace:
    """What a step does while it runs once on a tracing device.

    Parameters
    ----------
    real : Device
        The device that is traced. Tensors of others are foreign.

    Attributes
    ----------
    device : TracingDevice
        The device that stands for it.
    calls : list of Call
        In order.
    constants : dict of int to array
        Arrays made of Python's values, by the number of their value.
    conditions : list of Number
        Numbers whose truth the step has asked for, each with its answer as its value.
    refusals : list of str
        Why the step cannot be replayed, each with the line.
    journal : list of callable
        Functions that undo the writes to state, last write first.
    """

    def __init__(self, real: Device) -> None:
        self.real, self.device = real, TracingDevice.standing_for(real)
        self.transpose: Callable[[Any], Any] = real.xp.matrix_transpose
        self.calls: list[Call] = []
        self.constants: dict[int, Any] = {}
        self.conditions: list[Number] = []
        self.refusals: list[str] = []
        self.journal: list[Callable[[], Any]] = []
        self.made: list[ref[TracedArray]] = []
        self._array_type = real.array_type
        self._lifted: dict[int, TracedArray] = {}  # by the id of an array, which the traced array keeps
        self._storages: dict[int, Storage] = {}  # of inputs and state, by the id of what owns their memory
        self._views: dict[int, list[ref[TracedArray]]] = {}  # of state, by the id of its storage
        self._exclusive: dict[int, int] = {}  # references to the buffers of parameters, by the id of the storage
        self._saved: set[int] = set()  # arrays of the state that the journal has a copy of, by id
        self._count = 0

    # Arrays

    def _traced(self, array: Any, storage: Storage, name: str = "") -> TracedArray:
        value = Value(self._count, storage, array, name)
        self._count += 1
        traced = (TracedArray if isinstance(array, self._array_type) else TracedScalar)(self, array, value)
        self.made.append(reference := ref(traced))
        if storage.kind == "state":
            self._views.setdefault(id(storage), []).append(reference)
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
        taken = [self._take(x, given) for x in args]
        named = {name: self._take(x, given) for name, x in options.items()}
        written = [args[i] for i in writes if type(args[i]) is TracedArray]
        if type(options.get("out")) is TracedArray:
            written.append(options["out"])
        if written:
            self._prepare_writes(written)
        if function is operator.getitem or function is operator.setitem:
            self._check_key(function, args)
        result = function(*[real for real, _ in taken], **{name: real for name, (real, _) in named.items()})
        kind = type(result)
        known, single = given.get(id(result)), True
        if known is not None or (result is None and written):
            parts: list[TracedArray] = []
        elif hasattr(result, "dtype") and hasattr(result, "shape") and not isinstance(result, type):
            parts = [self._new(result, given)]
        elif isinstance(result, (tuple, list)) and any(hasattr(part, "shape") for part in result):
            parts, single = [given.get(id(part)) or self._new(part, given) for part in result], False
        else:  # of shapes or dtypes
            return result
        if parts or written:  # else an argument is returned as it is: nothing happened
            stored = {name: x for name, (_, x) in named.items()}
            call = Call(function, tuple([x for _, x in taken]), stored, tuple([x.value for x in written]))
            call.results, call.single, call.location = [x.value for x in parts], single, locate()
            self.calls.append(call)
        if single:
            return known if known is not None else parts[0] if parts else None
        return result._make(parts) if hasattr(result, "_make") else kind(parts)

    def _new(self, array: Any, given: dict[int, TracedArray]) -> TracedArray:
        """Return what stands for a result, whose memory may be that of an argument."""
        if given and isinstance(array, self._array_type):
            owner = owner_of(array)
            for x in given.values():
                if owner is owner_of(x.array):
                    return self._traced(array, x.value.storage)
        return self._traced(array, Storage("temporary"))

    def _take(self, x: Any, given: dict[int, TracedArray]) -> tuple[Any, Any]:
        """Return an argument as the function is given it, and as a program has it."""
        kind = type(x)
        if kind is TracedArray or kind is TracedScalar:
            if x.trace is not self:
                self.refuse("a tensor of an earlier trace is used")
            if kind is TracedArray:  # NumPy's scalars True and False exist but once
                given[id(x.array)] = x
            return x.array, x.value
        if kind in _PLAIN:
            return x, x
        if kind is Number:
            return x.value, x
        if kind is TracingDevice:
            return x.real, x.real
        if kind is tuple or kind is list:
            parts = [self._take(part, given) for part in x]
            return kind([real for real, _ in parts]), kind([stored for _, stored in parts])
        if kind is slice:
            real, stored = self._take((x.start, x.stop, x.step), given)
            return slice(*real), slice(*stored)
        if isinstance(x, self._array_type):
            self.refuse("an array is used that is neither an argument nor made by the step")
        return x, x

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
                self.journal.insert(0, partial(operator.setitem, x.array, Ellipsis, x.array.copy()))

    def _check_key(self, function: Callable[..., Any], args: Sequence[Any]) -> None:
        """Refuse keys whose values determine a shape; after a write to the state, check the range of indices."""
        x, key = args[:2]
        parts = key if type(key) is tuple else (key,)
        if any(isinstance(part, TracedArray) and "bool" in str(part.dtype) for part in parts):
            if function is operator.getitem:
                self.refuse("the shape of what x[mask] returns depends on values")
            elif getattr(args[2], "shape", ()):
                self.refuse("what x[mask] = array takes of the array depends on values")
        elif self.journal and not self.real.backend.asynchronous:
            for part, length in zip(parts, x.shape, strict=False):
                if part is Ellipsis or part is None:
                    break
                if isinstance(part, TracedArray):  # an error of a replay must come before its first write
                    within = self.device.xp.all((part >= -length) & (part < length))
                    self.check(within)

    # Parameters that optimizers update in place

    def count_references(self, flats: Iterable[Flat]) -> None:
        """Count the references to the buffers of parameters while nothing but the state has any."""
        for flat in flats:
            storage = flat.buffer._data.value.storage
            self._exclusive[id(storage)] = self._references(storage)

    def is_private(self, flat: Flat) -> bool:
        """Return whether the step holds no view of parameters that are to be updated in place.

        If it does the optimizer moves them to another buffer, as it does without a trace; the capture is refused.
        """
        value = getattr(flat.buffer._data, "value", None)  # no reference to the traced array
        if value is None:
            self.check_device(flat.device, "an optimizer updates parameters")
        elif self._references(value.storage) > self._exclusive.get(id(value.storage), sys.maxsize):
            self.refuse(
                "a parameter, or a view of one, is still used when the optimizer updates it: copy it before, by "
                "xgrad.asarray(p.detach(), copy=True)"
            )
            return False
        return True

    def _references(self, storage: Storage) -> int:
        views = self._views.get(id(storage), ())
        return sum(sys.getrefcount(x) for reference in views if (x := reference()) is not None)

    # Checks and conditions

    def check(self, condition: Any) -> bool:
        """Return the truth of an array of one bool, which each replay checks."""
        truth = bool(condition.array)
        call = Call(bool, (condition.value,), {}, check=truth)
        call.location = locate()
        self.calls.append(call)
        return truth

    def guard(self, number: Number) -> None:
        """Make the truth of a number a condition of the program."""
        self.conditions.append(number)

    def read_numbers(self, x: Any) -> Any:
        """Return the value of a number of the trace that meets a tensor, which refuses the capture."""
        if type(x) is list or type(x) is tuple:
            return type(x)(map(self.read_numbers, x)) if any(type(part) in (Number, list, tuple) for part in x) else x
        if type(x) is Number:
            self.refuse("a number of an optimizer or a generator meets a tensor: pass it as an argument")
        return plain(x)

    def value_of(self, number: Any) -> Any:
        """Return the value of a number of the trace, and anything else as it is."""
        return plain(number)

    def seed(self, seed: Any) -> Number:
        """Return the seed that the step gives a generator as a number, by which the generator is known."""
        return seed if type(seed) is Number else Number(self, int(seed), "constant", (int(seed),))

    def check_generator(self, seed: Any) -> None:
        """Refuse generators that are not of the state."""
        if type(seed) is not Number:
            self.refuse(
                "random numbers are drawn from a generator that is not found from the step, or has no seed: name it "
                "in state="
            )

    # Refusals

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

    def admit(self, name: str, inputs: Sequence[Any]) -> list[Any] | None:
        """Return inputs of an op with constants for foreign tensors, which refuses the capture; None without any."""
        foreign = [x for x in inputs if isinstance(x, Tensor) and x._place.device is not self.device]
        if foreign and foreign[0]._place.device is not self.real:
            self.refuse(
                f"{name} is given a tensor on {foreign[0].device}, and the step runs on {self.real}: move it before"
            )
        elif foreign:
            self.refuse(
                f"{name} is given a tensor of shape {foreign[0].shape} {_FOREIGN}: pass it as an argument, or name it "
                "in state="
            )
        if not any(x._place.device is self.real for x in foreign):
            return None
        return [self._admitted(x) for x in inputs]

    def admit_key(self, key: Tensor, device: Device) -> Any:
        """Return the array of a key of an index on a device, if the key or what it indexes is foreign; else None."""
        if device is self.real and key._place.device is self.device:
            self.refuse(f"a tensor is indexed {_FOREIGN}: pass it as an argument, or name it in state=")
            return key._data.array
        admitted = self.admit("indexing", [key]) if device is self.device else None
        return admitted and admitted[0]._data

    def _admitted(self, x: Any) -> Any:
        if not isinstance(x, Tensor) or x._place.device is not self.real:
            return x
        return placed(self.constant(x._data), self.device.places[x._data.dtype], x._edge)

    def convert(self, raw: Any, source: Device, kind: str) -> Any:
        """Return values that become a tensor as a constant; a `kind` of array that is no tensor refuses the capture."""
        if kind:
            self.refuse(f"a {kind} becomes a tensor: pass a tensor as an argument")
        return self.constant(raw) if source is self.device and not isinstance(raw, TracedArray) else raw


def _copy(xp: Any, array: Any) -> Any:
    return xp.asarray(array, copy=True)
