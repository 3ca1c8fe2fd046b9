"""Checks of values: in a replay they must come out as they did when the program was recorded."""

from __future__ import annotations

from typing import Any

from xgrad.capturing.outcomes import Diverged


def check(wanted: bool, value: Any) -> None:
    """Raise `Diverged` unless a value is as true as it was."""
    if bool(value) is not wanted:
        raise Diverged


def check_comparison(wanted: bool, compare: Any, place_of_x: Any, x: Any, place_of_y: Any, y: Any) -> None:
    """Check a comparison of numbers, or of those in arrays at a place that is to be found."""
    if place_of_x is not None:
        x = x.item(place_of_x(x))
    if place_of_y is not None:
        y = y.item(place_of_y(y))
    if bool(compare(x, y)) is not wanted:
        raise Diverged
