"""The line of the user's code that is running: the innermost that belongs neither to `xgrad` nor to a backend."""

from __future__ import annotations

import contextlib
import os
import sys
from types import CodeType, FrameType

#: Code, and the offset of an instruction in it.
Location = tuple[CodeType | None, int]
NOWHERE: Location = (None, 0)

_ours: dict[str, bool] = {contextlib.__file__: True}  # by the name of a file


def add_package(file: str) -> None:
    """Count the folder of a module, such as a backend's, as not the user's."""
    _packages.add(os.path.dirname(os.path.abspath(file)) + os.sep)
    _ours.clear()
    _ours[contextlib.__file__] = True


_packages = {os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep, "<"}


def _is_ours(name: str) -> bool:
    if name not in _ours:
        _ours[name] = name.startswith(tuple(_packages))
    return _ours[name]


def locate() -> Location:
    """Return the innermost instruction of the user's code."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not (_ours.get(name) or _is_ours(name)):
            return frame.f_code, frame.f_lasti
        frame = frame.f_back
    return NOWHERE


def describe(location: Location) -> str:
    """Return the file and line of an instruction, as messages name it."""
    code, instruction = location
    if code is None:
        return "?:0"
    lines = [line for start, end, line in code.co_lines() if start <= instruction < end and line is not None]
    return f"{os.path.basename(code.co_filename)}:{lines[0] if lines else code.co_firstlineno}"


def stacklevel() -> int:
    """Return the `stacklevel` by which `warnings.warn`, called where this is, names the user's line."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and (_ours.get(frame.f_code.co_filename) or _is_ours(frame.f_code.co_filename)):
        level, frame = level + 1, frame.f_back
    return level
