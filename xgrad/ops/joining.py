"""Tensors joined to one, and one taken apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xgrad.declare import derivative
from xgrad.dtypes import BOOLEAN
from xgrad.function import Function
from xgrad.hints import explained
from xgrad.inputs import as_tensor
from xgrad.ops.axes import cut
from xgrad.tensor import Tensor


def _split(g: Any, axis: int | None, arrays_shape: list[tuple[int, ...]], xp: Any) -> list[Any]:
    if axis is None:
        axis, lengths = 0, [math.prod(shape) for shape in arrays_shape]
    else:
        axis %= len(g.shape)
        lengths = [shape[axis] for shape in arrays_shape]
    parts, start = [], 0
    for shape, length in zip(arrays_shape, lengths, strict=True):
        parts.append(xp.reshape(g[cut(axis, start, start + length)], shape))
        start += length
    return parts


@derivative(_split, kind=BOOLEAN)
def _concat(xp: Any, *arrays: Any, axis: int | None = 0) -> Any:
    return xp.concat(list(arrays), axis=axis)


@explained
def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Join tensors along an axis that they have.

    Parameters
    ----------
    arrays : sequence of Tensor
        At least one, of shapes that agree but for `axis`, on one device.
    axis : int or None, default 0
        Along what to join; None joins all elements in row order.

    Returns
    -------
    Tensor
        Of the joined shape, and of the dtype that all promote to.

    Raises
    ------
    ValueError
        If the shapes do not agree.
    DeviceError
        If the tensors are on several devices.

    Notes
    -----
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


@derivative(_unstack, kind=BOOLEAN)
def _stack(xp: Any, *arrays: Any, axis: int = 0) -> Any:
    return xp.stack(list(arrays), axis=axis)


@explained
def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Join tensors along a new axis.

    Parameters
    ----------
    arrays : sequence of Tensor
        At least one, of one shape, on one device.
    axis : int, default 0
        Where the new axis is in the result.

    Returns
    -------
    Tensor
        With one axis more, as long as there are tensors.

    Raises
    ------
    ValueError
        If the shapes differ.
    DeviceError
        If the tensors are on several devices.

    Notes
    -----
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

    name = "unstack"

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
    """Split a tensor along an axis, which goes.

    Parameters
    ----------
    x : Tensor
        With at least one axis.
    axis : int, default 0
        Along what to split.

    Returns
    -------
    tuple of Tensor
        As many as `axis` is long, with one axis less.

    Raises
    ------
    IndexError
        If there is no such axis.

    Notes
    -----
    Python array API standard, manipulation functions: ``unstack``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.unstack(xgrad.asarray([[1, 2], [3, 4]]), axis=1)
    (Tensor([1, 3]), Tensor([2, 4]))
    """
    x = as_tensor("unstack", "x", x)
    if not -x.ndim <= axis < x.ndim:
        raise IndexError(f"unstack: axis {axis} is out of bounds for shape {x.shape}")
    parts: tuple[Tensor, ...] = _unstack_function(x, axis=axis)
    return parts
