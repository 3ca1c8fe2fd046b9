"""The line of the user's code that is running: the innermost that belongs neither to `xgrad` nor to a backend."""

from __future__ import annotations

import sys
from types import CodeType, FrameType

#: Code, and the offset of an instruction in it.
Location = tuple[CodeType | None, int]
NOWHERE: Location = (None, 0)

_ours: dict[str, bool] = {"": True}  # by the name of a module; code that xgrad generates has none
_packages = {"xgrad", "contextlib"}


def add_package(module: str) -> None:
    """Count the package of a module, such as a backend's, as not the user's."""
    _packages.add(module.partition(".")[0])
    _ours.clear()


def _is_ours(frame: FrameType) -> bool:
    name = frame.f_globals.get("__name__", "")
    if name not in _ours:
        _ours[name] = not name or name.partition(".")[0] in _packages
    return _ours[name]


def locate() -> Location:
    """Return the innermost instruction of the user's code."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and (_ours.get(frame.f_globals.get("__name__", "")) or _is_ours(frame)):
        frame = frame.f_back
    return NOWHERE if frame is None else (frame.f_code, frame.f_lasti)


def describe(location: Location) -> str:
    """Return the file and line of an instruction, as messages name it."""
    code, instruction = location
    if code is None:
        return "?:0"
    lines = [line for start, end, line in code.co_lines() if start <= instruction < end and line is not None]
    return f"{code.co_filename.rpartition('/')[2]}:{lines[0] if lines else code.co_firstlineno}"


def stacklevel() -> int:
    """Return the `stacklevel` by which `warnings.warn`, called where this is, names the user's line."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame):
        level, frame = level + 1, frame.f_back
    return level
