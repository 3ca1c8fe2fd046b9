"""Warnings and errors of captured steps."""

from __future__ import annotations


class CaptureWarning(UserWarning):
    """A step cannot be captured and runs eagerly, or needs more programs than `limit`."""


class CaptureError(RuntimeError):
    """A replay differs from the eager step, as ``verify`` finds; or another thread's step is traced with a tensor."""


class Diverged(Exception):
    """The outcome of a check of values differs from that of the trace."""


class Unusable(Exception):
    """A program that cannot be replayed; the message says why, `line` where in the user's code, if that is known."""

    def __init__(self, reason: str, line: str | None = None) -> None:
        super().__init__(reason)
        self.line = line
