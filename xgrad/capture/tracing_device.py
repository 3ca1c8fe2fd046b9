"""The device of tensors while a step is traced: its namespace and kernels record what they are called with."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, ClassVar

from xgrad.backend.device import Device, Placements, tracing
from xgrad.backend.overridable import OVERRIDABLE
from xgrad.backend.scipy_kernels import SciPyKernels
from xgrad.capture.arrays import TracedArray, record
from xgrad.capture.numbers import Number
from xgrad.capture.source_location import add_package


def _recorded(function: Callable[..., Any], writes: tuple[int, ...] = ()) -> Callable[..., Any]:
    """Return a function that records its calls, and writes to the arguments at some positions."""
    return lambda *args, **options: record(function, args, options, writes)


def _recorded_kernel(name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
    part = OVERRIDABLE.get(name)
    parameters = part.generic.__code__.co_varnames[1:] if part else ()
    return _recorded(kernel, tuple([parameters.index(p) for p in part.changes]) if part else ())


class TracingNamespace:
    """A namespace with the functions of another, which record their calls; wrapped at their first use."""

    def __init__(self, real: Any, **more: Any) -> None:
        self._real = real
        vars(self).update(more)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._real, name)
        if isinstance(value, (types.ModuleType, types.SimpleNamespace, SciPyKernels)):
            value = TracingNamespace(value)
        elif callable(value) and not isinstance(value, type):
            value = _recorded(value, (0,) if name == "index_add" else ())
        setattr(self, name, value)
        return value


class TracingBackend:
    """A backend whose functions record their calls, and refuse the capture where values leave the device."""

    def __init__(self, real: Any) -> None:
        self.real = real
        self.kernels = {name: _recorded_kernel(name, kernel) for name, kernel in real.kernels.items()}
        self.index_add = _recorded(real.index_add, (0,))
        self.random_bits, self.from_words = _recorded(real.random_bits), _recorded(real.from_words)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def check_true(self, condition: Any) -> bool:
        """Return whether a check of an argument holds, and make it a check of the program."""
        return bool(tracing.get().check(condition))

    def from_host(self, x: Any, index: int) -> Any:
        """Return an array of the host as a constant of the program."""
        return tracing.get().constant(self.real.from_host(x, index))

    def to_host(self, x: Any) -> Any:
        """Return the values of an array, which refuses the capture."""
        return self.real.to_host(x.read() if isinstance(x, TracedArray) else x)

    def shares_memory(self, x: Any, y: Any) -> bool:
        """Return whether an array lies in the memory of another."""
        return x.value.storage is y.value.storage

    def from_dlpack(self, x: Any, index: int) -> Any:
        """Return what another library shares, which refuses the capture."""
        tracing.get().refuse("an array of another library is taken through DLPack: pass a tensor as an argument")
        return tracing.get().constant(self.real.from_dlpack(x, index))

    def export_buffer(self, x: Any, *, read_only: bool, copy: bool) -> Any:
        """Return an array to be given away, which refuses the capture."""
        return self.real.export_buffer(x.read(), read_only=read_only, copy=copy)


class TracingDevice(Device):
    """The device that stands for another while a step is traced: one for each, shared by all traces.

    It has the name of the other and equals it. The trace of the thread or task records what its functions do.
    """

    _devices: ClassVar[dict[Device, TracingDevice]] = {}
    real: Device

    @classmethod
    def standing_for(cls, real: Device) -> TracingDevice:
        """Return the tracing device of a device."""
        return cls._devices.get(real) or cls._devices.setdefault(real, cls._make(real))

    @classmethod
    def _make(cls, real: Device) -> TracingDevice:
        self = object.__new__(cls)
        vars(self).update(vars(real), real=real, backend=TracingBackend(real.backend), array_type=TracedArray)
        self.xp = TracingNamespace(real.xp, kernels=self.backend.kernels)  # where `overridable` looks for them
        self.placements = Placements(self)
        del self.as_array
        add_package(type(real.backend).__module__)
        return self

    def as_array(self, x: Any) -> Any:
        """Return an array of what a rule made: a traced scalar, or a constant."""
        if isinstance(x, TracedArray):
            return record(self.real.as_array, (x,))
        if type(x) is Number:
            tracing.get().refuse("a number of an optimizer or a generator becomes a tensor")
            x = x.value
        return tracing.get().constant(self.real.as_array(x))

    def __eq__(self, other: object) -> bool:
        return self is other or self.real is other

    __hash__ = object.__hash__  # caches by device keep the two apart
