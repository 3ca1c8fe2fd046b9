"""Elements several times, one after the other or in copies of the whole."""

from __future__ import annotations

import math
from typing import Any

from xgrad.declare import derivative
from xgrad.hints import explained
from xgrad.inputs import as_tensor
from xgrad.ops.indexing import take
from xgrad.ops.manipulation import reshape
from xgrad.tensor import Tensor


def _repeat_rule(g: Any, xp: Any, x_shape: tuple[int, ...], repeats: int, axis: int | None) -> Any:
    """Sum what became of each element; it lies along an axis of its own."""
    shape = (math.prod(x_shape),) if axis is None else x_shape
    axis = (axis or 0) % len(shape) + 1
    return xp.reshape(xp.sum(xp.reshape(g, (*shape[:axis], repeats, *shape[axis:])), axis=axis), x_shape)


@derivative(_repeat_rule)
def _repeat(xp: Any, x: Any, /, *, repeats: int, axis: int | None) -> Any:
    return xp.repeat(x, repeats, axis=axis)


@derivative(None)
def _repeated(xp: Any, repeats: Any, /, *, count: int) -> Any:
    """Return the number of each of `count` elements as often as it is repeated."""
    numbers = xp.arange(count, dtype=xp.int64, device=getattr(repeats, "device", None))
    return xp.repeat(numbers, xp.astype(repeats, xp.int64))


@explained
def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Return `x` with each element several times, one after the other.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    repeats : int or Tensor
        How often; one number for all, or integers of shape (n,) where there are n elements along `axis`. The shape of
        the result then depends on values, which makes a GPU wait.
    axis : int, optional
        Along what; by default all elements in row order, as one axis.

    Returns
    -------
    Tensor
        Of the shape of `x`, longer along `axis`; or with one axis.

    Raises
    ------
    TypeError
        If `repeats` are not integers.
    ValueError
        If one is negative, or there are not as many as elements.
    DeviceError
        If the two are on different devices.

    Notes
    -----
    Python array API standard, manipulation functions: ``repeat``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.repeat(xgrad.asarray([1, 2]), 2)
    Tensor([1, 1, 2, 2])
    >>> xgrad.repeat(xgrad.asarray([1, 2]), xgrad.asarray([0, 3]))
    Tensor([2, 2, 2])
    """
    x = as_tensor("repeat", "x", x)
    if x.ndim == 0 and axis in (0, -1):  # NumPy takes a 0-d array for one element, others do not
        axis = None
    if isinstance(repeats, int):
        return _repeat(x, repeats=repeats, axis=axis)
    repeats = as_tensor("repeat", "repeats", repeats)
    if repeats.dtype.kind not in "iu":
        raise TypeError(f"repeat: expected repeats of integers, got {repeats.dtype}")
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    if not -x.ndim <= axis < x.ndim:
        raise IndexError(f"repeat: axis {axis} is out of bounds for shape {x.shape}")
    if repeats.shape not in ((x.shape[axis],), (1,)):
        raise ValueError(f"repeat: expected repeats of shape ({x.shape[axis]},), one an element, got {repeats.shape}")
    return take(x, _repeated(repeats, count=x.shape[axis]), axis=axis)


def _tile_rule(g: Any, xp: Any, x_shape: tuple[int, ...], repetitions: tuple[int, ...]) -> Any:
    """Sum the copies: the even axes are numbers of copies, the odd ones those of `x`."""
    ndim = len(g.shape)
    shape, copies = ((1,) * (ndim - len(lengths)) + lengths for lengths in (x_shape, repetitions))
    g = xp.reshape(g, tuple(n for pair in zip(copies, shape, strict=True) for n in pair))
    return xp.reshape(xp.sum(g, axis=tuple(range(0, 2 * ndim, 2))), x_shape)


@derivative(_tile_rule)
def _tile(xp: Any, x: Any, /, *, repetitions: tuple[int, ...]) -> Any:
    return xp.tile(x, repetitions)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """Return copies of `x` side by side along axes.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    repetitions : tuple of int
        How many along each axis, from the last on; new axes come first, and those without a number have one copy.

    Returns
    -------
    Tensor
        With as many axes as `x` or as there are numbers, whichever is more.

    Raises
    ------
    TypeError
        If `repetitions` are not a tuple or list.
    ValueError
        If one is negative.

    Notes
    -----
    Python array API standard, manipulation functions: ``tile``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.tile(xgrad.asarray([1, 2]), (2, 2))
    Tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    if not isinstance(repetitions, (tuple, list)):
        raise TypeError(f"tile: expected a tuple of int for repetitions, got {repetitions!r}")
    if any(n < 0 for n in repetitions):
        raise ValueError(f"tile: expected no negative repetitions, got {repetitions}")
    return _tile(x, repetitions=tuple(repetitions))
