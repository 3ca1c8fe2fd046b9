"""Backends by name: entry points of installed packages, opened at their first use."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from typing import Any

from xgrad.backend import Backend, DeviceError

_GROUP = "xgrad.backends"
#: Modules that adapt xgrad to libraries which are imported before the first tensor is made.
_ADAPTERS = {"einops": "xgrad.einops"}


class _Refused:
    """A refused entry point: loading it raises DeviceError with the reason."""

    def __init__(self, reason: str) -> None:
        self.value, self.reason = "", reason

    def load(self) -> Any:
        """Raise DeviceError."""
        raise DeviceError(self.reason)


@cache
def entry_points() -> dict[str, Any]:
    """Return the entry points of all installed backends, by type of device.

    A second entry for one of xgrad's own names is listed as refused, under the name and its value.
    Plug-ins that share another name are all refused.
    """
    from importlib import metadata  # not at the top: 20 ms of `import xgrad`

    declared: dict[str, dict[str, Any]] = {}
    own: dict[str, Any] = {}
    for point in metadata.entry_points(group=_GROUP):
        declared.setdefault(point.name, {})[point.value] = point
        if point.dist is not None and point.dist.name == "xgrad":
            own[point.name] = point
    points = own.copy()
    for name, rivals in declared.items():
        if name in own:
            for value in rivals.keys() - {own[name].value}:
                full = f"{name} ({value})"
                points[full] = _Refused(
                    f"{full}: the name {name!r} is taken by xgrad: rename the plug-in, or remove it"
                )
        elif len(rivals) > 1:
            values = " and ".join(sorted(rivals))
            points[name] = _Refused(
                f"{name}: expected one plug-in of this name, got {values}: remove all but one"
            )
        else:
            (points[name],) = rivals.values()
    return points


class PlugInErrors:
    """A context that turns errors of a plug-in into a DeviceError that names it.

    Interrupts and exceptions of type `passed` are left unchanged.
    """

    def __init__(self, name: str, passed: type[Exception] = DeviceError) -> None:
        self.name, self.passed = name, passed

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is None or isinstance(error, (DeviceError, KeyboardInterrupt, self.passed)):
            return
        from traceback import format_exception_only  # not at the top: for errors only

        reason = " ".join("".join(format_exception_only(error)).split())
        value = getattr(entry_points().get(self.name), "value", "")
        raise DeviceError(f"{self.name}: the plug-in {value} cannot be used: {reason}") from error


@cache
def backend_class(name: str) -> type[Backend]:
    """Return the backend class of a type of device, without loading its array library."""
    points = entry_points()
    if name not in points:
        known = ", ".join(sorted(points)) or "none: is xgrad installed? (pip install -e .)"
        hint = import_module("xgrad.support.suggestions").did_you_mean(name, points)
        raise DeviceError(f"unknown device {name!r}: the installed backends are {known}{hint}")
    with PlugInErrors(name):
        cls = points[name].load()
        if not (
            isinstance(cls, type) and issubclass(cls, Backend) and isinstance(cls.library, str)
        ):
            raise TypeError(
                "expected a subclass of xgrad.backend.Backend with the name of a library, got"
                f" {cls!r}"
            )
    return cls


@cache
def open_backend(name: str) -> Backend:
    """Return the backend of a type of device; DeviceError says why it cannot be used."""
    for library, adapter in _ADAPTERS.items():
        if library in sys.modules:
            import_module(adapter).register()
    with PlugInErrors(name):
        return backend_class(name)()


def device_count(name: str) -> int:
    """Return the number of devices of a type."""
    with PlugInErrors(name):
        count = open_backend(name).count()
        if type(count) is not int or count < 0:
            raise TypeError(f"expected count() to return a number of devices, got {count!r}")
    return count
