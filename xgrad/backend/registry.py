"""Backends by name, found as entry points of installed packages and opened when they are first used."""

from __future__ import annotations

from functools import cache
from typing import Any

from xgrad.backend import Backend, DeviceError

_GROUP = "xgrad.backends"


class _Refused:
    """An entry point that is not loaded: it raises the reason."""

    def __init__(self, reason: str) -> None:
        self.value, self.reason = "", reason

    def load(self) -> Any:
        """Raise DeviceError."""
        raise DeviceError(self.reason)


@cache
def entry_points() -> dict[str, Any]:
    """Return the entry points of all installed backends, by type of device.

    A name that xgrad declares itself is xgrad's: a second entry is listed as refused, under the name and its value. Of
    plug-ins that share another name none is used, because the order in which they are found means nothing.
    """
    from importlib import metadata  # 20 ms that `import xgrad` need not pay

    found: dict[str, dict[str, Any]] = {}
    own: dict[str, Any] = {}
    for point in metadata.entry_points(group=_GROUP):
        found.setdefault(point.name, {})[point.value] = point
        if point.dist is not None and point.dist.name == "xgrad":
            own[point.name] = point
    points = own.copy()
    for name, rivals in found.items():
        if name in own:
            for value in rivals.keys() - {own[name].value}:
                full = f"{name} ({value})"
                points[full] = _Refused(
                    f"{full}: the name {name!r} is taken by xgrad: rename the plug-in, or remove it"
                )
        elif len(rivals) > 1:
            values = " and ".join(sorted(rivals))
            points[name] = _Refused(f"{name}: expected one plug-in of this name, got {values}: remove all but one")
        else:
            (points[name],) = rivals.values()
    return points


class PlugInErrors:
    """A context in which whatever a plug-in raises becomes a DeviceError that names it.

    KeyboardInterrupt stays as it is, and so do errors that are `passed`.
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
    """Return the plug-in for a type of device, without loading its array library."""
    points = entry_points()
    if name not in points:
        known = ", ".join(sorted(points)) or "none: is xgrad installed? (pip install -e .)"
        raise DeviceError(f"unknown device {name!r}: the installed backends are {known}")
    with PlugInErrors(name):
        cls = points[name].load()
        if not (isinstance(cls, type) and issubclass(cls, Backend) and isinstance(cls.library, str)):
            raise TypeError(f"expected a subclass of xgrad.backend.Backend with the name of a library, got {cls!r}")
    return cls


@cache
def open_backend(name: str) -> Backend:
    """Return the backend for a type of device; DeviceError says why it cannot be used."""
    with PlugInErrors(name):
        return backend_class(name)()


def device_count(name: str) -> int:
    """Return the number of devices of a type."""
    with PlugInErrors(name):
        count = open_backend(name).count()
        if type(count) is not int or count < 0:
            raise TypeError(f"expected count() to return a number of devices, got {count!r}")
    return count
