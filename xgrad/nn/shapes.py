"""Layers that change the shape of their input, or nothing."""

from __future__ import annotations

import math

from xgrad.core.arguments import as_int
from xgrad.core.tensor import Tensor
from xgrad.nn.module import Module
from xgrad.support.docstrings import documented


class Identity(Module):
    """The input as it is, in place of a layer.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Identity()(xgrad.ones(2))
    Tensor([1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return `input`."""
        return input


@documented()
class Flatten(Module):
    """Several adjacent axes as one.

    start_axis, end_axis : int -- The first and the last of them, by default all but the batch axis.
    raises ValueError -- In the call, if the input has no such axes.
    raises TypeError -- If an axis is not an int.

    >>> xgrad.nn.Flatten()(xgrad.ones((5, 28, 28))).shape
    (5, 784)
    """

    def __init__(self, start_axis: int = 1, end_axis: int = -1) -> None:
        super().__init__()
        self.start_axis = as_int("Flatten", "start_axis", start_axis)
        self.end_axis = as_int("Flatten", "end_axis", end_axis)

    def forward(self, input: Tensor) -> Tensor:
        """Return the same elements with fewer axes."""
        shape, axes = input.shape, range(input.ndim)
        try:
            start, end = axes[self.start_axis], axes[self.end_axis] + 1
        except IndexError:
            start, end = 1, 0
        if start >= end:
            raise ValueError(
                f"Flatten: expected axes {self.start_axis} to {self.end_axis}, got an input of shape {shape}"
            )
        return input.reshape((*shape[:start], math.prod(shape[start:end]), *shape[end:]))

    def extra_repr(self) -> str:
        return f"start_axis={self.start_axis}, end_axis={self.end_axis}"
