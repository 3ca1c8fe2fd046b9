"""The memory of operands, as kernels access it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from xgrad_numpy.codegen import ArraySlot, array_of

Bounds = tuple[int, int]  # addresses of the first byte of an array, and after the last one


@dataclass(slots=True, eq=False)
class Place:
    """The memory of an operand for a statement, with its strides for the shape of the result."""

    operand: Any  # a slot, or an array
    array: np.ndarray
    strides: tuple[int, ...]
    bounds: Bounds = field(init=False)
    address: int = field(init=False)  # address of the first element

    def __post_init__(self) -> None:
        self.bounds = byte_bounds(self.array)
        self.address = self.array.__array_interface__["data"][0]

    @property
    def moves(self) -> bool:
        """Whether it is in other memory in each replay: an input, or a result in new memory."""
        return type(self.operand) is ArraySlot and self.operand.dynamic

    @property
    def is_new(self) -> bool:
        """Whether it is in memory that the run allocates for a result, and no input shares."""
        return type(self.operand) is ArraySlot and self.operand.new

    def is_same(self, other: Place) -> bool:
        """Return whether both are the same memory for each element; dtypes may differ."""
        same = self.address == other.address and self.strides == other.strides
        return same and self.array.itemsize == other.array.itemsize

    def is_apart(self, other: Place) -> bool:
        """Return whether the two share no byte, judged by their bounds."""
        return not overlap(self.bounds, other.bounds)


def array_in(operand: Any) -> np.ndarray | None:
    """Return the array of an operand; None for other operands, such as numbers."""
    array = array_of(operand)
    return array if isinstance(array, np.ndarray) else None


def places_of(operands: Iterable[Any]) -> list[Place] | None:
    """Return the places of operands; None if one is no array or is not aligned."""
    places: list[Place] = []
    for operand in operands:
        array = array_in(operand)
        if array is None or not array.flags.aligned:
            return None
        places.append(Place(operand, array, array.strides))
    return places


def distinct(places: Iterable[Place]) -> list[Place]:
    """Return places without duplicates."""
    known: list[Place] = []
    for place in places:
        if not any(place.is_same(other) for other in known):
            known.append(place)
    return known


def is_within(inner: Bounds, outer: Bounds) -> bool:
    """Return whether a range of memory is part of another."""
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def overlap(one: Bounds, other: Bounds) -> bool:
    """Return whether two ranges of memory share a byte."""
    return one[0] < other[1] and other[0] < one[1]


def without(bounds: Bounds, other: Bounds) -> list[Bounds]:
    """Return the parts of a range of memory that are outside another."""
    parts = (bounds[0], min(bounds[1], other[0])), (max(bounds[0], other[1]), bounds[1])
    return [part for part in parts if part[0] < part[1]]
