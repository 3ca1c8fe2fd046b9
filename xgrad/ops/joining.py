"""The standard's manipulation functions that join, split and repeat tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xgrad.core.arguments import as_tensor, front_axis
from xgrad.core.dtypes import BOOLEAN
from xgrad.core.function import Function
from xgrad.core.tensor import Tensor
from xgrad.core.views import link
from xgrad.ops.declare import derivative, slice_axis
from xgrad.ops.indexing import as_element, getitem_function, take
from xgrad.ops.manipulation import reshape
from xgrad.support.hints import explained, shown

__all__ = ["concat", "repeat", "stack", "tile", "unstack"]


def _split(g: Any, axis: int | None, arrays_shape: list[tuple[int, ...]], xp: Any) -> list[Any]:
    if axis is None:
        axis, lengths = 0, [math.prod(shape) for shape in arrays_shape]
    else:
        axis %= len(g.shape)
        lengths = [shape[axis] for shape in arrays_shape]
    parts, start = [], 0
    for shape, length in zip(arrays_shape, lengths, strict=True):
        parts.append(xp.reshape(g[slice_axis(axis, start, start + length)], shape))
        start += length
    return parts


@derivative(_split, lowest=BOOLEAN)
def _concat(xp: Any, *arrays: Any, axis: int | None = 0) -> Any:
    return xp.concat(list(arrays), axis=axis)


@explained
def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    r"""Join tensors along an existing axis.

    Parameters
    ----------
    arrays : sequence of Tensor
        At least one tensor; all on one device, of shapes that agree except along `axis`.
    axis : int or None, default 0
        The axis to join along; None joins all elements in row order.

    Returns
    -------
    Tensor
        Of the joined shape and of the dtype to which the inputs promote.

    Raises
    ------
    ValueError
        If the shapes do not agree.
    DeviceError
        If the tensors are on different devices.

    Notes
    -----
    .. math:: y = (x_1, x_2, \dots)

    - Gradient for `arrays`: :math:`\bar y`, of which each array gets its part

    Python array API standard, manipulation functions: ``concat``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.concat([xgrad.ones(2), xgrad.zeros(1)])
    Tensor([1., 1., 0.])
    """
    return _concat(*arrays, axis=axis)


def _unstack(g: Any, axis: int, xp: Any, arrays_shape: list[tuple[int, ...]]) -> list[Any]:
    before = (slice(None),) * (axis % len(g.shape))
    return [g[(*before, i, ...)] for i in range(len(arrays_shape))]


@derivative(_unstack, lowest=BOOLEAN)
def _stack(xp: Any, *arrays: Any, axis: int = 0) -> Any:
    return xp.stack(list(arrays), axis=axis)


@explained
def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    r"""Join tensors along a new axis.

    Parameters
    ----------
    arrays : sequence of Tensor
        At least one tensor; all of one shape, on one device.
    axis : int, default 0
        The position of the new axis in the result.

    Returns
    -------
    Tensor
        With one more axis, whose length is the number of tensors.

    Raises
    ------
    ValueError
        If the shapes differ.
    DeviceError
        If the tensors are on different devices.

    Notes
    -----
    .. math:: y_k = x_k

    - Gradient for `arrays`: :math:`\bar y_k` for array :math:`k`

    Python array API standard, manipulation functions: ``stack``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.stack([xgrad.ones(2), xgrad.zeros(2)], axis=1)
    Tensor([[1., 0.],
            [1., 0.]])
    """
    return _stack(*arrays, axis=axis)


class _Unstack(Function):
    """One tensor for each index along an axis."""

    name, own_rule = "unstack", False

    @staticmethod
    def forward(xp: Any, x: Any, *, axis: int) -> tuple[Any, ...]:
        before = (slice(None),) * (axis % len(x.shape))
        return tuple(x[(*before, i, ...)] for i in range(x.shape[axis]))

    @staticmethod
    def backward(xp: Any, g: Any, axis: int) -> Any:
        return xp.stack(list(g), axis=axis)


_unstack_function = _Unstack()


@explained
def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    r"""Split a tensor along an axis, which is removed.

    Parameters
    ----------
    x : Tensor
        With at least one axis.
    axis : int, default 0
        The axis to split along.

    Returns
    -------
    tuple of Tensor
        One tensor for each index along `axis`, with one axis less.

    Raises
    ------
    IndexError
        If `axis` is out of bounds.

    Notes
    -----
    .. math:: y_k = x_k

    - Gradient for `x`: :math:`(\bar y_1, \bar y_2, \dots)`, as by `stack`

    Python array API standard, manipulation functions: ``unstack``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.unstack(xgrad.asarray([[1, 2], [3, 4]]), axis=1)
    (Tensor([1, 3]), Tensor([2, 4]))
    """
    x = as_tensor("unstack", "x", x)
    axis = front_axis("unstack", x, axis)
    before = (slice(None),) * axis
    parts: tuple[Tensor, ...] = _unstack_function(x, axis=axis)
    for i, part in enumerate(parts):
        if x.ndim > 1:
            link(x, part, getitem_function, {"key": (*before, i, ...)})
        else:
            as_element(x, part)
    return parts


def _repeat_rule(g: Any, xp: Any, x_shape: tuple[int, ...], repeats: int, axis: int | None) -> Any:
    """Sum the gradients of each element's copies, which get an axis of their own."""
    shape = (math.prod(x_shape),) if axis is None else x_shape
    axis = (axis or 0) % len(shape) + 1
    return xp.reshape(
        xp.sum(xp.reshape(g, (*shape[:axis], repeats, *shape[axis:])), axis=axis), x_shape
    )


@derivative(_repeat_rule)
def _repeat(xp: Any, x: Any, /, *, repeats: int, axis: int | None) -> Any:
    return xp.repeat(x, repeats, axis=axis)


@derivative(None)
def _repeated(xp: Any, repeats: Any, /, *, count: int) -> Any:
    """Return the indices of `count` elements, each repeated as often as its element."""
    numbers = xp.arange(count, dtype=xp.int64, device=getattr(repeats, "device", None))
    return xp.repeat(numbers, xp.astype(repeats, xp.int64))


@explained
def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    r"""Repeat each element of `x`.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    repeats : int or Tensor
        The number of copies of each element: one number for all, or integers of shape (n,) for n
        elements along `axis`. With a tensor, the shape of the result depends on its values, which
        synchronizes with a GPU.
    axis : int, optional
        The axis to repeat along; by default, all elements in row order form one axis.

    Returns
    -------
    Tensor
        Of the shape of `x` with another length along `axis`; without an `axis`, with one axis.

    Raises
    ------
    TypeError
        If `repeats` is not an int or integers.
    ValueError
        If a number is negative, or `repeats` has neither n numbers nor one.
    DeviceError
        If `x` and `repeats` are on different devices.

    Notes
    -----
    .. math:: y_{ni + k} = x_i, \quad 0 \le k < n

    - Gradient for `x`: :math:`\sum_k \bar y_{ni + k}`

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
    if x.ndim == 0 and axis in (0, -1):  # NumPy treats a 0-d array as one element, others do not
        axis = None
    if isinstance(repeats, int):
        return _repeat(x, repeats=repeats, axis=axis)
    repeats = as_tensor("repeat", "repeats", repeats)
    if repeats.dtype.kind not in "iu":
        raise TypeError(f"repeat: expected repeats of integers, got {repeats.dtype}")
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    axis = front_axis("repeat", x, axis)
    n = x.shape[axis]
    if repeats.shape not in ((n,), (1,)):
        raise ValueError(
            f"repeat: expected repeats of shape ({n},), one an element, got {repeats.shape}"
        )
    return take(x, _repeated(repeats, count=n), axis=axis)


def _tile_rule(g: Any, xp: Any, x_shape: tuple[int, ...], repetitions: tuple[int, ...]) -> Any:
    """Sum the gradients of the copies: even axes count copies, odd axes are the axes of `x`."""
    ndim = len(g.shape)
    shape, copies = ((1,) * (ndim - len(lengths)) + lengths for lengths in (x_shape, repetitions))
    g = xp.reshape(g, tuple(n for pair in zip(copies, shape, strict=True) for n in pair))
    return xp.reshape(xp.sum(g, axis=tuple(range(0, 2 * ndim, 2))), x_shape)


@derivative(_tile_rule)
def _tile(xp: Any, x: Any, /, *, repetitions: tuple[int, ...]) -> Any:
    return xp.tile(x, repetitions)


@explained
def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    r"""Return copies of `x` side by side along each axis.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    repetitions : tuple of int
        The number of copies along each axis, aligned at the last axis. New axes come first; an axis
        without a number gets one copy.

    Returns
    -------
    Tensor
        With as many axes as `x` or as `repetitions` has numbers, whichever is more.

    Raises
    ------
    TypeError
        If `repetitions` is not a tuple or list.
    ValueError
        If a number is negative.

    Notes
    -----
    .. math:: y_{kn + i} = x_i, \quad 0 \le i < n

    - Gradient for `x`: :math:`\sum_k \bar y_{kn + i}`

    Python array API standard, manipulation functions: ``tile``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.tile(xgrad.asarray([1, 2]), (2, 2))
    Tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    if not isinstance(repetitions, (tuple, list)):
        raise TypeError(f"tile: expected a tuple of int for repetitions, got {shown(repetitions)}")
    if any(n < 0 for n in repetitions):
        raise ValueError(f"tile: expected no negative repetitions, got {repetitions}")
    return _tile(x, repetitions=tuple(repetitions))
