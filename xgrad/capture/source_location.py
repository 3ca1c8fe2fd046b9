"""The line of the user's code that is running: the innermost that belongs neither to `xgrad` nor to a backend."""

from __future__ import annotations

import sys
from types import CodeType, FrameType

#: Code, and the offset of an instruction in it.
Location = tuple[CodeType | None, int]
NOWHERE: Location = (None, 0)

_known: dict[str, bool] = {}  # whether the code of a module is not the user's, by the name of the module
_packages = {"", "xgrad", "contextlib"}  # code that xgrad generates is of a module without a name


def add_package(module: str) -> None:
    """Count the package of a module, such as a backend's, as not the user's."""
    _packages.add(module.partition(".")[0])
    _known.clear()


def locate() -> Location:
    """Return the innermost instruction of the user's code."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name not in _known:
            _known[name] = name.partition(".")[0] in _packages
        if not _known[name]:
            return frame.f_code, frame.f_lasti
        frame = frame.f_back
    return NOWHERE


def describe(location: Location) -> str:
    """Return the file and line of an instruction, as messages name it."""
    code, instruction = location
    if code is None:
        return "?:0"
    lines = [line for start, end, line in code.co_lines() if start <= instruction < end and line is not None]
    return f"{code.co_filename.rpartition('/')[2]}:{lines[0] if lines else code.co_firstlineno}"
