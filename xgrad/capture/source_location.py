"""The line of the user's code that is running: the innermost that belongs neither to `xgrad` nor to a backend."""

from __future__ import annotations

import sys
from types import FrameType

_known: dict[str, bool] = {}  # whether the code of a module is not the user's, by the name of the module
_packages = {"", "xgrad", "contextlib"}  # code that xgrad generates is of a module without a name


def add_package(module: str) -> None:
    """Count the package of a module, such as a backend's, as not the user's."""
    _packages.add(module.partition(".")[0])
    _known.clear()


def user_line() -> str:
    """Return the file and the line, as messages name them."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name not in _known:
            _known[name] = name.partition(".")[0] in _packages
        if not _known[name]:
            return f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno}"
        frame = frame.f_back
    return "?:0"
