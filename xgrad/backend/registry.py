"""Backends by name, found as entry points of installed packages and opened when they are first used."""

from __future__ import annotations

from functools import cache
from typing import Any

from xgrad.backend import Backend, DeviceError


@cache
def entry_points() -> dict[str, Any]:
    """Return the entry points of all installed backends, by type of device."""
    from importlib import metadata  # 20 ms that `import xgrad` need not pay

    return {point.name: point for point in metadata.entry_points(group="xgrad.backends")}


@cache
def backend_class(name: str) -> type[Backend]:
    """Return the plug-in for a type of device, without loading its array library."""
    points = entry_points()
    if name not in points:
        known = ", ".join(sorted(points)) or "none: is xgrad installed? (pip install -e .)"
        raise DeviceError(f"unknown device {name!r}: the installed backends are {known}")
    try:
        cls: type[Backend] = points[name].load()
    except (ImportError, AttributeError) as error:
        raise DeviceError(f"{name}: the plug-in {points[name].value} cannot be loaded: {error}") from error
    return cls


@cache
def open_backend(name: str) -> Backend:
    """Return the backend for a type of device; DeviceError says why it cannot be used."""
    return backend_class(name)()
