"""The usable devices, the default device, and transfers between devices."""

from __future__ import annotations

import sys
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import numpy as np

from xgrad.backend import DeviceError
from xgrad.backend.device import Device
from xgrad.backend.registry import (
    PlugInErrors,
    backend_class,
    device_count,
    entry_points,
    open_backend,
)
from xgrad.support.hints import shown
from xgrad.support.scopes import Mode


def device_types() -> list[str]:
    """Return the names of the installed backends, usable or not, ``cpu`` first."""
    return sorted(entry_points(), key=lambda name: (name != "cpu", name))


#: Types of devices to search whenever devices are listed. Opening other libraries takes seconds,
#: and memory of a GPU.
LISTED = ("cpu", "cuda")


def devices(type: str | None = None) -> list[Device]:
    """Return the usable devices, the CPU first.

    These are the devices of ``cpu`` and ``cuda``, and of other types that are already in use. No
    other array library is imported, unless its type is given. ``xgrad info --open`` opens all of
    them, and prints why some are not usable.

    Parameters
    ----------
    type : str, optional
        The type of the devices to return, such as ``"torch"``.

    Raises
    ------
    TypeError
        If `type` is not a string.
    DeviceError
        If there is no such type, or its library, driver or device is missing.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.devices()[0]
    Device('cpu')
    >>> xgrad.devices("cpu")
    [Device('cpu')]
    """
    if type is not None:
        return _devices_of(type)
    usable = []
    for name in device_types():
        if name in LISTED or in_use(name):
            with suppress(DeviceError):
                usable += _devices_of(name)
    return usable


def _devices_of(kind: str) -> list[Device]:
    if not isinstance(kind, str):
        raise TypeError(f"devices: expected a type such as 'cuda', got {shown(kind)}")
    return [Device(f"{kind}:{i}") for i in range(device_count(kind))]


def in_use(kind: str) -> bool:
    """Return whether a device of a type has been made, which means that its library is loaded."""
    return any(device.type == kind for device in [*Device._known.values()])


def device_of(x: Any) -> Device | None:
    """Return the device of an array of any installed library, or None for anything else."""
    if type(x) is np.ndarray:
        return Device("cpu")
    root = type(x).__module__.partition(".")[0]
    if root not in sys.modules:
        return None
    for name in device_types():
        try:
            if root not in (backend_class(name).library, backend_class(name).array_module):
                continue
            # raised for an array that the backend refuses
            with PlugInErrors(name, passed=TypeError):
                backend = open_backend(name)
                if isinstance(x, (backend.array_type, *backend.native_types)):
                    return Device(f"{name}:{backend.index_of(x)}")
        except DeviceError:
            continue
    return None


def transfer(x: Any, source: Device, target: Device) -> Any:
    """Return an array of one device on another device; all transfers go through here."""
    if source is target:
        return x
    if source.backend is target.backend:
        return target.backend.transfer(x, target.index)
    return target.backend.from_host(source.backend.to_host(x), target.index)


def set_tf32(enabled: bool, device: str | Device = "cuda") -> None:
    """Set whether matrix products of float32 and complex64 may use TF32, which is off by default.

    TF32 has 10 bits of mantissa in place of 23. Products of matrices and of stacks of matrices are
    then several times as fast on an NVIDIA GPU, and about as accurate as in float16. So are ops
    that are made of products, such as convolution and attention. Sums and all other ops are not
    affected. The setting applies to all GPUs and threads of this process.

    Parameters
    ----------
    enabled : bool
        Whether TF32 may be used.
    device : str or Device, default "cuda"
        A device of the type to which the setting applies.

    Raises
    ------
    TypeError
        If `enabled` is not a bool.
    DeviceError
        If the device cannot be used, or has no TF32, which needs an NVIDIA GPU of compute
        capability 8.0 or more.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.set_tf32(False, device="cpu")
    >>> xgrad.set_tf32(True, device="cpu")
    Traceback (most recent call last):
    xgrad.backend.DeviceError: set_tf32: numpy has no TF32 that xgrad could turn on
    """
    if not isinstance(enabled, bool):
        raise TypeError(f"set_tf32: expected True or False, got {shown(enabled)}")
    Device(device).backend.set_tf32(enabled)


_default: ContextVar[Device | None] = ContextVar("xgrad_default_device", default=None)


def current_device() -> Device:
    """Return the device of new tensors: the innermost `default_device`, or else the CPU."""
    return _default.get() or Device("cpu")


class default_device(Mode[Device | None]):
    """Set the device of new tensors, in a ``with`` block or a decorated function.

    Other threads and tasks keep their default device.

    Parameters
    ----------
    device : str or Device
        The device for functions called without ``device``.

    Examples
    --------
    >>> import xgrad
    >>> with xgrad.default_device("cpu"):
    ...     xgrad.zeros(2).device
    Device('cpu')
    """

    def __init__(self, device: str | Device) -> None:
        super().__init__(_default, Device(device))
