"""A recorded step as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xgrad.capturing.frame import Frame


def listing(frame: Frame) -> str:
    """Return the calls of a recording."""
    return str(frame.run.source)
