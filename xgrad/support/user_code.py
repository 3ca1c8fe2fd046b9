"""The line of the user's code that calls the library, and warnings at it, NumPy's included."""

from __future__ import annotations

import sys
import warnings
from functools import lru_cache
from types import FrameType
from typing import Any

#: Packages whose code is not the user's. That of backends is added; generated code is of xgrad.
LIBRARIES = {"xgrad", "xgrad_numpy", "numpy", "array_api_compat", "contextlib"}


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line of the user's code: neither of xgrad nor of NumPy."""
    warnings.warn(message, category, stacklevel=user_frame()[1])


_NUMERIC = ("numpy", "scipy", "array_api_compat")


class _NumpyWarnings:
    """The message of a filter that issues NumPy's warnings again, at the user's line.

    NumPy and SciPy warn at the line that calls them, which is in this library and tells the user
    nothing. The filter ignores these warnings; warnings of the user's own calls do not match.
    """

    def match(self, text: str) -> bool:
        """Return whether a call by this library caused a warning, which is then issued again.

        The warnings that this library issues itself do not match.
        """
        frame: FrameType | None = sys._getframe(1)
        if frame is not None and frame.f_code is warn_user.__code__:
            return False
        while frame is not None and package(frame.f_globals.get("__name__", "")) in _NUMERIC:
            frame = frame.f_back
        if frame is None or not is_of_library(frame):
            return False
        warn_user(text, RuntimeWarning)
        return True


# Any `match` method will do. The filter stands before the filters of the command line, and after
# those that are set later.
_filters: Any = warnings.filters
_filters.insert(0, ("ignore", _NumpyWarnings(), RuntimeWarning, None, 0))


def user_location() -> str:
    """Return the line of the user's code, as ``file:line``."""
    return line_of(user_frame()[0])


def line_of(frame: FrameType) -> str:
    """Return the line that a frame runs, as ``file:line``."""
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def user_line() -> str:
    """Return the line of the user's code, with the file without its folders."""
    return user_location().rpartition("/")[2]


def user_frame() -> tuple[FrameType, int]:
    """Return the innermost frame of the user's code, and its distance from the caller."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and is_of_library(frame):
        frame, level = frame.f_back, level + 1
    return frame, level


def is_of_library(frame: FrameType) -> bool:
    """Return whether a frame runs code that is not the user's."""
    return package(frame.f_globals.get("__name__", "")) in LIBRARIES


@lru_cache
def package(module: str) -> str:
    """Return the package of a module."""
    return module.partition(".")[0]
