"""Inspection of the namespace: capabilities, devices and dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from xgrad.backend.device import Device
from xgrad.backend.devices import current_device, devices
from xgrad.core.dtypes import STANDARD, defaults, is_of_kind


class Info:
    """Capabilities, devices and dtypes, as `__array_namespace_info__` returns them.

    Examples
    --------
    >>> import xgrad
    >>> info = xgrad.__array_namespace_info__()
    >>> info.default_dtypes()["real floating"], info.default_device()
    (dtype('float32'), Device('cpu'))
    """

    def capabilities(self) -> dict[str, bool | int | None]:
        """Return the capabilities of the default device's library, by the standard's three keys."""
        device = current_device()
        if (library := _library(device)) is not None:
            return dict(library.capabilities())
        depends = device.backend.data_dependent_shapes
        return {"boolean indexing": depends, "data-dependent shapes": depends, "max dimensions": 64}

    def default_device(self) -> Device:
        """Return the device of new tensors: see `xgrad.default_device`."""
        return current_device()

    def default_dtypes(self, *, device: str | Device | None = None) -> dict[str, np.dtype]:
        """Return the dtypes of Python's numbers, and of indices, on every device.

        `xgrad.set_default_dtype` sets them.
        """
        Device(current_device() if device is None else device)
        _, integral, floating, of_complex = defaults()
        return {
            "real floating": floating,
            "complex floating": of_complex,
            "integral": integral,
            "indexing": integral,
        }

    def dtypes(
        self, *, device: str | Device | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, np.dtype]:
        """Return the dtypes of the standard that a device supports, by name.

        `xgrad.isdtype` has the kinds.
        """
        target = current_device() if device is None else Device(device)
        library = _library(target)
        names = None if library is None else library.dtypes(device=target.native)
        return {
            dtype.name: dtype
            for dtype in STANDARD
            if (_has(target, dtype) if names is None else dtype.name in names)
            and (kind is None or is_of_kind("dtypes", dtype, kind))
        }

    def devices(self) -> tuple[Device, ...]:
        """Return the devices that can be listed without loading another library, the CPU first.

        See `xgrad.devices`.
        """
        return tuple(devices())


def _library(device: Device) -> Any:
    """Return the inspection object of the library of a device, None if it has none."""
    inspect = getattr(device.xp, "__array_namespace_info__", None)
    return None if inspect is None else inspect()


def _has(device: Device, dtype: np.dtype) -> bool:
    """Return whether the library of a device has a dtype."""
    try:
        device.backend.dtype(dtype)
    except TypeError:
        return False
    return True


def __array_namespace_info__() -> Info:
    """Return the object with the inspection functions of the standard.

    Returns
    -------
    Info
        With ``capabilities()``, ``default_device()``, ``default_dtypes()``, ``dtypes()`` and
        ``devices()``.

    Notes
    -----
    Python array API standard, inspection: ``__array_namespace_info__``.

    Examples
    --------
    >>> import xgrad
    >>> sorted(xgrad.__array_namespace_info__().dtypes(kind="real floating"))
    ['float32', 'float64']
    """
    return Info()
