"""Devices, and the backends behind them: the only way in which xgrad reaches an array library."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, ClassVar

import numpy as np


class DeviceError(RuntimeError):
    """A device that is unknown, unusable, or not the one where the other arrays are."""


class Backend:
    """What an array library adds to the standard; a plug-in subclasses this (see ``backends/README.md``).

    The constructor imports the library and raises `DeviceError`, saying what is missing and what to
    install, where it cannot be used. Arrays below are the library's own, never tensors.

    Attributes
    ----------
    library : str
        The import name of the library, by which its arrays are recognised before it is loaded.
    xp : namespace
        The array API namespace that rules run on.
    array_type : type
        The class of its arrays. A result of any other type passes through `coercer`.
    kernels : mapping of str to callable
        Fused kernels, by op name, that replace the op's generic forward rule. Each takes the same
        arguments without `xp`.
    asynchronous : bool
        Whether to read a value is to wait for the device, so that checks of values are left out.
    """

    library: ClassVar[str]
    xp: Any
    array_type: type
    kernels: Mapping[str, Callable[..., Any]] = {}
    asynchronous: bool = False

    def count(self) -> int:
        """Return the number of devices."""
        return 1

    def describe(self, index: int) -> str:
        """Return a name of the device that means something to a person."""
        return self.library

    def native_device(self, index: int) -> Any:
        """Return the library's own device object."""
        raise NotImplementedError

    def index_of(self, x: Any) -> int:
        """Return the index of the device that holds the array `x`."""
        return 0

    def guard(self, index: int) -> Callable[[], AbstractContextManager[Any]] | None:
        """Return what makes the device current, or None where a library has no current device."""
        return None

    def size(self, x: Any) -> int:
        """Return the number of elements of the array `x`."""
        return math.prod(x.shape)

    def to_host(self, x: Any) -> np.ndarray:
        """Return the values of `x` as a NumPy array, without a copy where memory is shared."""
        raise NotImplementedError

    def from_host(self, x: np.ndarray, index: int) -> Any:
        """Return the values of the NumPy array `x` on a device, without a copy where memory is shared."""
        raise NotImplementedError

    def transfer(self, x: Any, index: int) -> Any:
        """Return the array `x` of this library on another of its devices."""
        return self.from_host(self.to_host(x), index)

    def coercer(self, index: int) -> Callable[[Any], Any]:
        """Return what makes an array of an op's result: some libraries give scalars for 0-d results."""
        return lambda value: self.from_host(np.asarray(value), index)

    def dtype(self, dtype: Any) -> Any:
        """Return the library's dtype for a NumPy one; its own are returned as they are."""
        return np.dtype(dtype)

    def numpy_dtype(self, dtype: Any) -> np.dtype:
        """Return the NumPy dtype for one of the library's own: the inverse of `dtype`."""
        return np.dtype(dtype)

    def index_add(self, x: Any, key: Any, values: Any) -> Any:
        """Add `values` into ``x[key]`` in place, repeated indices adding up, and return `x`."""
        raise NotImplementedError

    def synchronize(self, index: int) -> None:
        """Wait until the device has done all that was asked of it."""

    def memory(self, index: int) -> dict[str, int]:
        """Return memory figures of the device in bytes: ``used``, ``reserved``, ``free``, ``total``, as known."""
        return {}


@cache
def entry_points() -> dict[str, Any]:
    from importlib import metadata  # 20 ms that `import xgrad` need not pay

    return {point.name: point for point in metadata.entry_points(group="xgrad.backends")}


@cache
def backend_class(name: str) -> type[Backend]:
    """Return the plug-in for a type of device, without loading its array library."""
    points = entry_points()
    if name not in points:
        known = ", ".join(sorted(points)) or "none: is xgrad installed? (pip install -e .)"
        raise DeviceError(f"unknown device {name!r}: the installed backends are {known}")
    cls: type[Backend] = points[name].load()
    return cls


@cache
def open_backend(name: str) -> Backend:
    return backend_class(name)()


class Device:
    """Where a tensor's data lives and its ops run; two names of one place are one object.

    Parameters
    ----------
    name : str or Device
        A backend's name, with an index where it has several devices: ``"cpu"``, ``"cuda"``, ``"cuda:1"``.

    Raises
    ------
    DeviceError
        If no backend has the name, or its library, driver or device is missing; the message says which.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.Device("cpu")
    Device('cpu')
    >>> xgrad.Device("cpu:0") is xgrad.Device("cpu")
    True
    """

    __slots__ = ("array_type", "backend", "coerce", "floats", "guard", "index", "native", "type", "xp")

    _known: ClassVar[dict[str, Device]] = {}
    type: str
    index: int
    backend: Backend
    xp: Any
    array_type: type
    coerce: Callable[[Any], Any]
    floats: tuple[Any, ...]
    guard: Callable[[], AbstractContextManager[Any]] | None
    native: Any

    def __new__(cls, name: str | Device = "cpu") -> Device:
        if isinstance(name, Device):
            return name
        known = cls._known.get(name)
        return known if known is not None else cls._open(name)

    @classmethod
    def _open(cls, name: str) -> Device:
        if not isinstance(name, str):
            raise TypeError(f"Device: expected a name such as 'cpu' or 'cuda:1', got {name!r}")
        kind, colon, digits = name.partition(":")
        if colon and not digits.isdecimal():
            raise DeviceError(f"unknown device {name!r}: expected a name such as 'cpu' or 'cuda:1'")
        backend, index = open_backend(kind), int(digits or 0)
        if index >= backend.count():
            raise DeviceError(f"unknown device {name!r}: this machine has {backend.count()} of type {kind!r}")
        device = cls._known.get(f"{kind}:{index}")
        if device is None:
            device = object.__new__(cls)
            device.type, device.index, device.backend = kind, index, backend
            device.xp, device.array_type = backend.xp, backend.array_type
            device.floats = tuple(backend.dtype(t) for t in ("float32", "float64", "complex64", "complex128"))
            device.coerce = backend.coercer(index)
            device.guard, device.native = backend.guard(index), backend.native_device(index)
            device = cls._known.setdefault(f"{kind}:{index}", device)
        return cls._known.setdefault(name, device)

    def __str__(self) -> str:
        return f"{self.type}:{self.index}" if self.index else self.type

    def __repr__(self) -> str:
        return f"Device({str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Device, (str(self),)

    def synchronize(self) -> None:
        """Wait until the device has done all that was asked of it: call this before reading a clock."""
        self.backend.synchronize(self.index)

    def memory(self) -> dict[str, int]:
        """Return memory figures in bytes (``used``, ``reserved``, ``free``, ``total``), as far as known."""
        return self.backend.memory(self.index)
