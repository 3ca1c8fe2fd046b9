"""Checks of the arguments of samplers and transforms."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence, Sized
from numbers import Real
from typing import Any

from xgrad.support.hints import shown

MODES = ("constant", "edge", "reflect", "symmetric")


def sized(name: str, source: Any) -> Any:
    """Return an object; TypeError unless it has a length."""
    if not isinstance(source, Sized):
        raise TypeError(f"{name}: expected an object with a length, got {type(source).__name__}")
    return source


def count(name: str, argument: str, value: Any, least: int = 1) -> int:
    """Return an int; ValueError unless it is `least` or more."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(
            f"{name}: expected an int of {least} or more for {argument}, got {shown(value)}"
        )
    return value


def flag(name: str, argument: str, value: Any) -> bool:
    """Return a bool; TypeError for anything else."""
    if not isinstance(value, bool):
        raise TypeError(f"{name}: expected True or False for {argument}, got {shown(value)}")
    return value


def is_count(value: Any, least: int) -> bool:
    """Return whether a value is an int of `least` or more."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def as_size(name: str, size: Any) -> tuple[int, int]:
    """Return a height and a width, given one number or two."""
    values = list(size) if isinstance(size, Sequence) else [size, size]
    if len(values) != 2 or not all(is_count(n, 1) for n in values):
        raise ValueError(
            f"{name}: expected one or two ints of 1 or more for size, got {shown(size)}"
        )
    return values[0], values[1]


def as_widths(name: str, padding: Any) -> tuple[int, int, int, int]:
    """Return the left, top, right and bottom widths of a border, given one, two or four."""
    values = list(padding) if isinstance(padding, Sequence) else [padding]
    if len(values) not in (1, 2, 4) or not all(is_count(n, 0) for n in values):
        raise ValueError(
            f"{name}: expected one, two or four ints of 0 or more for padding, got {shown(padding)}"
        )
    left, top, right, bottom = (values * 4)[:4]
    return left, top, right, bottom


def as_fill(name: str, fill: Any) -> float:
    """Return a number; TypeError for anything else."""
    if not isinstance(fill, Real):
        raise TypeError(f"{name}: expected a number for fill, got {shown(fill)}")
    return fill  # type: ignore[return-value]


def as_mode(name: str, mode: Any) -> str:
    """Return a mode of padding; ValueError for anything else."""
    if mode not in MODES:
        raise ValueError(f"{name}: expected padding_mode to be one of {MODES}, got {shown(mode)}")
    return str(mode)


def as_probability(name: str, p: Any) -> float:
    """Return a probability; ValueError unless it is from 0 to 1."""
    if isinstance(p, bool) or not isinstance(p, int | float) or not 0 <= p <= 1:
        raise ValueError(f"{name}: expected a number from 0 to 1 for p, got {shown(p)}")
    return float(p)


def as_numbers(name: str, argument: str, value: Any) -> tuple[float, ...]:
    """Return one or more numbers; TypeError for anything else."""
    values = list(value) if isinstance(value, Iterable) else [value]
    for x in values:
        if isinstance(x, bool) or not isinstance(x, Real) or x != x:
            raise TypeError(f"{name}: expected numbers for {argument}, got {shown(value)}")
    if not values:
        raise ValueError(f"{name}: expected numbers for {argument}, got none")
    return tuple(map(float, values))


def as_bounds(name: str, argument: str, value: Any) -> tuple[float, float]:
    """Return two finite numbers above 0 in ascending order; ValueError for anything else."""
    low, high = values if len(values := as_numbers(name, argument, value)) == 2 else (0.0, 0.0)
    if not 0 < low <= high < math.inf:
        raise ValueError(
            f"{name}: expected two finite numbers above 0 in ascending order for {argument}, got"
            f" {shown(value)}"
        )
    return low, high
