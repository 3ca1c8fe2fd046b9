"""The size of a tensor: a number of elements that, when called, returns the shape."""

from __future__ import annotations

import math
import operator
from typing import Any

from xgrad.support.hints import shown


class Size(int):
    """The number of elements of a tensor; a call returns its shape, or the length of an axis.

    It is the int that ``x.size`` is in NumPy and the standard, and the method that it is in
    PyTorch. Copies and pickles of it, and results of arithmetic, are plain ints.
    """

    _shape: tuple[int, ...]

    def __call__(self, dim: int | None = None) -> Any:
        """Return the shape, or the length of the axis `dim`."""
        shape = self._shape
        if dim is None:
            return shape
        if isinstance(dim, bool) or not hasattr(dim, "__index__"):
            raise TypeError(f"size: expected an int for dim, got {shown(dim)}")
        try:
            return shape[operator.index(dim)]
        except IndexError:
            ndim = len(shape)
            raise IndexError(
                f"size: expected dim from {-ndim} to {ndim - 1} for x of shape {shape}, got {dim},"
                " out of range"
                if shape
                else f"size: expected x with at least one axis, got shape () and dim {dim}"
            ) from None

    def __reduce__(self) -> tuple[Any, ...]:
        return int, (int(self),)


def size_of(shape: tuple[int, ...]) -> Size:
    """Return the size of a tensor of a shape."""
    size = Size(math.prod(shape))
    size._shape = shape
    return size
