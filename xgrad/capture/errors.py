"""Why a program is not replayed."""

from __future__ import annotations


class Diverged(Exception):
    """The outcome of a check of values differs from that of the trace."""


class Unusable(Exception):
    """A program that cannot be replayed; the message says why, `line` where in the user's code, if that is known."""

    def __init__(self, reason: str, line: str | None = None) -> None:
        super().__init__(reason)
        self.line = line
