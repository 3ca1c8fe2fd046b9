"""Layers that change only the shape of their input, and the identity."""

from __future__ import annotations

import math
from typing import Any

from xgrad.core.arguments import as_int, as_tensor, front_axis
from xgrad.core.tensor import Tensor
from xgrad.nn.module import Module
from xgrad.support.hints import explained, shown


class Identity(Module):
    """The identity, as a placeholder for a layer.

    Parameters
    ----------
    *args, **kwargs
        The options of the layer that it replaces, of which it uses none, as in PyTorch.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Identity()(xgrad.ones(2))
    Tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """Return `input`."""
        return input


class Flatten(Module):
    """Several adjacent axes merged into one.

    Parameters
    ----------
    start_axis, end_axis : int
        The first and the last axis to merge; by default all but the batch axis are merged.

    Raises
    ------
    ValueError
        In the call, if the input does not have these axes, in this order.
    TypeError
        If an axis is not an int.

    Examples
    --------
    >>> import xgrad
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
                f"Flatten: expected axes {self.start_axis} to {self.end_axis}, got an input of"
                f" shape {shape}"
            )
        return input.reshape((*shape[:start], math.prod(shape[start:end]), *shape[end:]))

    def extra_repr(self) -> str:
        return f"start_axis={self.start_axis}, end_axis={self.end_axis}"


class Unflatten(Module):
    """One axis split into several: the inverse of `Flatten`.

    Parameters
    ----------
    axis : int
        The axis to split.
    unflattened_size : tuple of int
        The lengths of the axes that replace it; one of them may be -1, and follows from the others.

    Raises
    ------
    TypeError
        If `axis` or a length is not an int.
    ValueError
        If more than one length is -1, or a length is below -1; in the call, if the product of the
        lengths differs from the length of the axis.
    IndexError
        In the call, if the axis does not exist.

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.Unflatten(1, (1, 28, 28))
    >>> layer(xgrad.ones((5, 784))).shape
    (5, 1, 28, 28)
    """

    @explained
    def __init__(self, axis: int, unflattened_size: tuple[int, ...]) -> None:
        super().__init__()
        self.axis = as_int("Unflatten", "axis", axis)
        if not isinstance(unflattened_size, (tuple, list)) or not unflattened_size:
            raise TypeError(
                "Unflatten: expected a tuple of ints for unflattened_size, got"
                f" {shown(unflattened_size)}"
            )
        self.unflattened_size = tuple(
            [as_int("Unflatten", "unflattened_size", n) for n in unflattened_size]
        )
        if min(self.unflattened_size) < -1 or self.unflattened_size.count(-1) > 1:
            raise ValueError(
                "Unflatten: expected lengths of at least 0, and at most one of -1, got"
                f" {self.unflattened_size}"
            )

    def forward(self, input: Tensor) -> Tensor:
        """Return the same elements with more axes."""
        input = as_tensor("Unflatten", "input", input)
        axis = front_axis("Unflatten", input, self.axis, of="input")
        length, sizes = input.shape[axis], self.unflattened_size
        known = math.prod([n for n in sizes if n != -1])
        missing = length // known if known else 0
        if known * (missing if -1 in sizes else 1) != length:
            raise ValueError(
                f"Unflatten: expected an axis of length {sizes}, got {length} in shape"
                f" {input.shape}"
            )
        inner = tuple([missing if n == -1 else n for n in sizes])
        return input.reshape((*input.shape[:axis], *inner, *input.shape[axis + 1 :]))

    def extra_repr(self) -> str:
        return f"axis={self.axis}, unflattened_size={self.unflattened_size}"
