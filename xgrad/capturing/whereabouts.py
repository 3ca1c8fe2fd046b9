"""Where in the user's code a step is: what is not of `xgrad` or a backend."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

#: Code, and the place of an instruction in it.
Where = tuple[CodeType | None, int]
NOWHERE: Where = (None, 0)


class Whereabouts:
    """Who tells where in the user's code one step is, again and again."""

    def __init__(self) -> None:
        self._files: dict[str, str] = {_HERE: "entrance"}
        self._entered = self._last = NOWHERE

    def now(self, depth: int) -> Where:
        """Return the innermost instruction that is the user's; as many frames as `depth` tells are not."""
        frame: FrameType | None = sys._getframe(depth)
        files = self._files
        while frame is not None:
            code = frame.f_code
            kind = files.get(code.co_filename) or self._kind(code.co_filename)
            if kind == "ours":
                frame = frame.f_back
            elif kind == "entrance":
                return self._entered
            else:
                if self._last[0] is not code or self._last[1] != frame.f_lasti:
                    self._last = code, frame.f_lasti
                return self._last
        return NOWHERE

    def _kind(self, name: str) -> str:
        mine = name.startswith(ours) or name == contextlib.__file__
        kind = self._files[name] = "ours" if mine else "user's"
        return kind

    def within(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call a function of ours in which much is asked, so that it need not be found out each time who called it."""
        before, self._entered = self._entered, self.now(2)
        try:
            return function(*args, **options)
        finally:
            self._entered = before


def line_of(where: Where) -> str:
    """Return the file and line of an instruction as messages name it."""
    code, instruction = where
    if code is None:
        return "?:0"
    lines = [line for start, end, line in code.co_lines() if start <= instruction < end and line is not None]
    return f"{os.path.basename(code.co_filename)}:{lines[0] if lines else code.co_firstlineno}"


def line_of_step() -> str:
    """Return where in the user's code we are, as messages name it, while nothing is recorded."""
    return line_of(Whereabouts().now(2))


_HERE = Whereabouts.now.__code__.co_filename

#: Where our code is: that of backends is added as they are recorded.
ours: tuple[str, ...] = (os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep, "<")
