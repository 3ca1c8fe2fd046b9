"""Traced arrays and their device: operators, functions and kernels record their calls."""

from __future__ import annotations

import math
import operator
import types
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from xgrad.backend.device import Device, Placements, tracing
from xgrad.backend.overridable import OVERRIDABLE
from xgrad.backend.scipy_kernels import SciPyKernels
from xgrad.capture.numbers import Number
from xgrad.core.errors import CaptureError
from xgrad.core.lost_gradients import LIBRARIES

_NONE: dict[str, Any] = {}


def record(function: Callable[..., Any], args: Any, options: Any = _NONE, writes: tuple[int, ...] = ()) -> Any:
    """Call a function with traced arrays, and add the call to the program of this thread's trace.

    The call writes to the arguments at the positions in `writes`. Raises `CaptureError` if another thread's trace has
    these arrays in use.
    """
    trace = tracing.get()
    if trace is None:
        raise CaptureError(
            "capture: a tensor is used that another thread's step is being traced with: wait for that step, or give "
            "each thread tensors of its own"
        )
    return trace.call(function, args, options, writes)


def _recorded(function: Callable[..., Any], writes: tuple[int, ...] = ()) -> Callable[..., Any]:
    return lambda *args, **options: record(function, args, options, writes)


class TracedArray:
    """An array of a device, with its value in the program of the trace that records.

    It has the operators and attributes of the standard. Each operation runs on the array and is recorded. What needs
    the values, such as a conversion to a number, is given them, and refuses the capture.
    """

    __slots__ = ("__weakref__", "array", "dtype", "shape", "trace", "value")
    __array_ufunc__ = None  # NumPy's arrays and scalars leave operators to this class
    __hash__ = object.__hash__

    def __init__(self, trace: Any, array: Any, value: Any) -> None:
        self.trace, self.array, self.value, self.shape, self.dtype = trace, array, value, value.shape, array.dtype

    def read(self) -> Any:
        """Return the array, which refuses the capture."""
        self.trace.refuse("the value of a tensor is read")
        return self.array

    # fmt: off
    @property
    def ndim(self) -> int: return len(self.shape)
    @property
    def size(self) -> int: return math.prod(self.shape)
    @property
    def strides(self) -> Any: return self.value.strides
    @property
    def device(self) -> Any: return self.array.device
    @property
    def mT(self) -> Any: return record(self.trace.real.xp.matrix_transpose, (self,))
    T = mT

    def __repr__(self) -> str: return f"{type(self).__name__}({self.value})"
    def __len__(self) -> int: return int(self.shape[0])
    def __getitem__(self, key: Any) -> Any: return record(operator.getitem, (self, key))
    def __setitem__(self, key: Any, value: Any) -> None: record(operator.setitem, (self, key, value), _NONE, (0,))
    def __array__(self, *to: Any, **_: Any) -> Any: return np.asarray(self.trace.real.backend.to_host(self.read()), *to)
    def __bool__(self) -> bool: return bool(self.read())
    def __int__(self) -> int: return int(self.read())
    def __float__(self) -> float: return float(self.read())
    def __complex__(self) -> complex: return complex(self.read())
    def __index__(self) -> int: return operator.index(self.read())
    def item(self) -> Any: return self.read().item()
    def tolist(self) -> Any: return self.read().tolist()
    def __dlpack__(self, **options: Any) -> Any: return self.read().__dlpack__(**options)
    def __dlpack_device__(self) -> Any: return self.array.__dlpack_device__()
    # fmt: on


class TracedScalar(TracedArray):
    """A NumPy scalar, which is no array of the device: `Device.as_array` makes one of it, as without a trace."""

    __slots__ = ()


def _install() -> None:
    """Give traced arrays the operators of the standard, which are recorded as functions of the module ``operator``."""
    for name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split():
        function, in_place = getattr(operator, f"__{name}__"), getattr(operator, f"__i{name}__")
        setattr(TracedArray, f"__{name}__", _recorded(function))
        setattr(TracedArray, f"__r{name}__", lambda x, y, f=function: record(f, (y, x)))
        setattr(TracedArray, f"__i{name}__", _recorded(in_place, (0,)))
        setattr(TracedScalar, f"__i{name}__", _recorded(function))  # which has no operators in place
    for name in "lt le gt ge eq ne neg pos invert abs".split():
        setattr(TracedArray, f"__{name}__", _recorded(getattr(operator, name)))


_install()


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
    """A backend with functions that record their calls, and refuse the capture where values leave the device."""

    def __init__(self, real: Any) -> None:
        self.real, self.kernels = real, dict[str, Any]()
        for name, kernel in real.kernels.items():
            part = OVERRIDABLE.get(name)
            parameters = part.generic.__code__.co_varnames[1:] if part else ()
            self.kernels[name] = _recorded(kernel, tuple(map(parameters.index, part.changes)) if part else ())
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
        return type(x) is type(y) is TracedArray and x.value.storage is y.value.storage

    def from_dlpack(self, x: Any, index: int) -> Any:
        """Return an array of another library, which refuses the capture."""
        tracing.get().refuse("an array of another library is taken through DLPack: pass a tensor as an argument")
        return tracing.get().constant(self.real.from_dlpack(x, index))

    def export_buffer(self, x: Any, *, read_only: bool, copy: bool) -> Any:
        """Return an array for another library, which refuses the capture."""
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
        self.root = self
        self.xp = TracingNamespace(real.xp, kernels=self.backend.kernels)  # where `overridable` looks for them
        self.placements = Placements(self)
        del self.as_array
        LIBRARIES.add(type(real.backend).__module__.partition(".")[0])
        return self

    def as_array(self, x: Any) -> Any:
        """Return the result of a rule as an array: a traced scalar, or a constant."""
        if isinstance(x, TracedArray):
            return record(self.real.as_array, (x,))
        if type(x) is Number:
            tracing.get().refuse("a number of an optimizer or a generator becomes a tensor")
            x = x.value
        return tracing.get().constant(self.real.as_array(x))

    def __eq__(self, other: object) -> bool:
        return self is other or self.real is other

    __hash__ = object.__hash__  # caches by device keep the two apart
