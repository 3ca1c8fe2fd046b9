"""Ops that move elements, and compute nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xgrad.declare import derivative
from xgrad.dtypes import BOOLEAN
from xgrad.function import Function
from xgrad.inputs import as_tensor
from xgrad.tensor import Tensor


@derivative(lambda g, xp, x_shape: xp.reshape(g, x_shape))
def reshape(xp: Any, x: Any, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Any:
    """Return the same elements, in row order, in another shape.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    shape : tuple of int
        The new shape; one length may be -1, and follows from the others.
    copy : bool, optional
        Accepted for the standard's sake: whether memory is shared cannot be seen, for tensors are values.

    Returns
    -------
    Tensor
        Of the given shape.

    Raises
    ------
    ValueError
        If the number of elements differs.

    Notes
    -----
    Python array API standard, manipulation functions: ``reshape``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.reshape(xgrad.arange(4), (2, -1))
    Tensor([[0, 1],
            [2, 3]])
    """
    return xp.reshape(x, (shape,) if isinstance(shape, int) else tuple(shape))


@derivative(lambda g, xp, axes: xp.permute_dims(g, tuple(sorted(range(len(axes)), key=lambda i: axes[i] % len(axes)))))
def permute_dims(xp: Any, x: Any, /, axes: tuple[int, ...]) -> Any:
    """Return `x` with its axes in another order.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    axes : tuple of int
        For each axis of the result, the axis of `x` that it is.

    Returns
    -------
    Tensor
        Of the permuted shape.

    Raises
    ------
    ValueError
        If `axes` does not name every axis once.

    Notes
    -----
    Python array API standard, manipulation functions: ``permute_dims``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.permute_dims(xgrad.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return xp.permute_dims(x, axes)


@derivative(lambda g, xp: xp.matrix_transpose(g))
def matrix_transpose(xp: Any, x: Any, /) -> Any:
    """Return the transpose of each matrix in the last two axes.

    Parameters
    ----------
    x : Tensor
        Of shape (..., m, n).

    Returns
    -------
    Tensor
        Of shape (..., n, m).

    Raises
    ------
    ValueError
        If `x` has fewer than two axes.

    Notes
    -----
    Python array API standard, linear algebra functions: ``matrix_transpose``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.matrix_transpose(xgrad.asarray([[1, 2], [3, 4]]))
    Tensor([[1, 3],
            [2, 4]])
    """
    return xp.matrix_transpose(x)


@derivative(lambda g, xp, x_shape: xp.reshape(g, x_shape))
def expand_dims(xp: Any, x: Any, /, *, axis: int = 0) -> Any:
    """Return `x` with a new axis of length 1.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    axis : int, default 0
        Where the axis is in the result.

    Returns
    -------
    Tensor
        With one axis more.

    Raises
    ------
    IndexError
        If there is no such place.

    Notes
    -----
    Python array API standard, manipulation functions: ``expand_dims``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.expand_dims(xgrad.ones(3), axis=1).shape
    (3, 1)
    """
    if not -len(x.shape) - 1 <= axis <= len(x.shape):
        raise IndexError(f"axis {axis} is out of bounds for a result with {len(x.shape) + 1} axes")
    return xp.expand_dims(x, axis=axis)


@derivative(lambda g, xp, x_shape: xp.reshape(g, x_shape))
def squeeze(xp: Any, x: Any, /, axis: int | tuple[int, ...]) -> Any:
    """Return `x` without axes of length 1.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    axis : int or tuple of int
        Which axes to take away.

    Returns
    -------
    Tensor
        With fewer axes.

    Raises
    ------
    ValueError
        If the length of one of them is not 1.

    Notes
    -----
    Python array API standard, manipulation functions: ``squeeze``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.squeeze(xgrad.ones((3, 1)), 1).shape
    (3,)
    """
    return xp.squeeze(x, axis=axis)


@derivative(lambda g: g)  # the engine sums it over the broadcast axes
def broadcast_to(xp: Any, x: Any, /, shape: tuple[int, ...]) -> Any:
    """Return `x` repeated along new axes and along those of length 1, up to a shape.

    Parameters
    ----------
    x : Tensor
        Of any dtype.
    shape : tuple of int
        The shape of the result.

    Returns
    -------
    Tensor
        Of the given shape.

    Raises
    ------
    ValueError
        If `x` does not broadcast to it.

    Notes
    -----
    Python array API standard, manipulation functions: ``broadcast_to``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.broadcast_to(xgrad.asarray([1, 2]), (2, 2))
    Tensor([[1, 2],
            [1, 2]])
    """
    return xp.broadcast_to(x, tuple(shape))


@derivative(lambda g, xp, axis: xp.flip(g, axis=axis))
def flip(xp: Any, x: Any, /, *, axis: int | tuple[int, ...] | None = None) -> Any:
    """Return `x` with its elements in reverse order along axes.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    axis : int or tuple of int, optional
        Which axes to reverse; by default all.

    Returns
    -------
    Tensor
        Of the same shape.

    Notes
    -----
    Python array API standard, manipulation functions: ``flip``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.flip(xgrad.arange(3))
    Tensor([2, 1, 0])
    """
    return xp.flip(x, axis=axis)


def _split(g: Any, axis: int | None, arrays_shape: list[tuple[int, ...]], xp: Any) -> list[Any]:
    if axis is None:
        g, axis, lengths = g, 0, [_size(shape) for shape in arrays_shape]
    else:
        axis %= len(g.shape)
        lengths = [shape[axis] for shape in arrays_shape]
    parts, start = [], 0
    for shape, length in zip(arrays_shape, lengths, strict=True):
        part = g[(slice(None),) * axis + (slice(start, start + length), ...)]
        parts.append(xp.reshape(part, shape))
        start += length
    return parts


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size


@derivative(_split, kind=BOOLEAN)
def _concat(xp: Any, *arrays: Any, axis: int | None = 0) -> Any:
    return xp.concat(list(arrays), axis=axis)


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
    """The one op so far with several results."""

    name = "unstack"

    @staticmethod
    def forward(xp: Any, x: Any, *, axis: int) -> tuple[Any, ...]:
        before = (slice(None),) * (axis % len(x.shape))
        return tuple(x[(*before, i, ...)] for i in range(x.shape[axis]))

    @staticmethod
    def backward(xp: Any, g: Any, axis: int) -> Any:
        return xp.stack(list(g), axis=axis)


_unstack_function = _Unstack()


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
