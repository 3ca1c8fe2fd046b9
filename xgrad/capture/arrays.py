"""Traced arrays: arrays of the standard that record each operation, in tensors while a step is traced."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np

from xgrad.backend.device import tracing
from xgrad.core.errors import CaptureError

_NONE: Any = MappingProxyType({})


def record(function: Callable[..., Any], args: Any, options: Any = _NONE, writes: tuple[int, ...] = ()) -> Any:
    """Call a function with traced arrays, and add the call to the program of this thread's trace.

    Raises `CaptureError` if another thread's trace has these arrays in use.
    """
    trace = tracing.get()
    if trace is None:
        raise CaptureError(
            "capture: a tensor is used that another thread's step is being traced with: wait for that step, or give "
            "each thread tensors of its own"
        )
    return trace.call(function, args, options, writes)


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
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any: return np.asarray(self.read(), dtype)
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
        setattr(TracedArray, f"__{name}__", lambda x, y, f=function: record(f, (x, y)))
        setattr(TracedArray, f"__r{name}__", lambda x, y, f=function: record(f, (y, x)))
        setattr(TracedArray, f"__i{name}__", lambda x, y, f=in_place: record(f, (x, y), _NONE, (0,)))
        # A NumPy scalar has no operators in place: Python uses the others.
        setattr(TracedScalar, f"__i{name}__", lambda x, y, f=function: record(f, (x, y)))
    for name in "lt le gt ge eq ne".split():
        function = getattr(operator, name)
        setattr(TracedArray, f"__{name}__", lambda x, y, f=function: record(f, (x, y)))
    for name in "neg pos invert abs".split():
        function = getattr(operator, name)
        setattr(TracedArray, f"__{name}__", lambda x, f=function: record(f, (x,)))


_install()
