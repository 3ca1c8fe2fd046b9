"""When a recording is not used: not for a call, or never."""

from __future__ import annotations

from typing import Any

#: What a frame returns when it is not the one for a call.
MISS: Any = type("Miss", (), {"__slots__": ()})()


class Diverged(Exception):
    """A check of values came out otherwise than when the program was recorded."""


class Unusable(Exception):
    """A recording cannot be replayed; the message says why, and `line` at which line of the user's, if known."""

    def __init__(self, why: str, line: str | None = None) -> None:
        super().__init__(why)
        self.line = line
