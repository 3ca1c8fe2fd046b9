"""The standard's manipulation functions for shapes, broadcasting, and axis and element order."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from xgrad.backend import DeviceError
from xgrad.core.arguments import ArrayLike, as_tensor, axis_error
from xgrad.core.tensor import Tensor
from xgrad.ops.declare import derivative
from xgrad.support.hints import shown

__all__ = [
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "expand_dims",
    "flip",
    "matrix_transpose",
    "moveaxis",
    "permute_dims",
    "reshape",
    "roll",
    "squeeze",
]

Axes = int | tuple[int, ...]


@derivative(lambda g, xp, x_shape: xp.reshape(g, x_shape), views="shared")
def reshape(xp: Any, x: ArrayLike, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Any:
    r"""Return the elements of `x`, in row order, in another shape.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    shape : tuple of int
        The new shape; one length may be -1, and is inferred from the others.
    copy : bool, optional
        True always copies, False raises an error instead, and None copies only where necessary. A
        result without a copy is a view of `x`: writes to one reach the other.

    Returns
    -------
    Tensor
        Of the given shape.

    Raises
    ------
    ValueError
        If the number of elements differs, or ``copy=False`` and they must be copied.

    Notes
    -----
    .. math:: \operatorname{vec}(y) = \operatorname{vec}(x)

    - Gradient for `x`: :math:`\bar y` in the shape of `x`

    Python array API standard, manipulation functions: ``reshape``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.reshape(xgrad.arange(4), (2, -1))
    Tensor([[0, 1],
            [2, 3]])
    """
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if copy is None:
        return xp.reshape(x, shape)
    if copy:
        return xp.reshape(xp.asarray(x, copy=True), shape)
    try:
        return xp.reshape(x, shape, copy=False)
    except AttributeError:  # from CuPy and array-api-strict
        raise ValueError(
            f"copy=False, but shape {shape} of elements in this order needs a copy"
        ) from None


@derivative(
    lambda g, xp, axes: xp.permute_dims(g, tuple(np.argsort(np.mod(axes, len(axes))).tolist())),
    views=True,
)
def permute_dims(xp: Any, x: ArrayLike, /, axes: tuple[int, ...]) -> Any:
    r"""Return `x` with its axes in another order.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    axes : tuple of int
        For each axis of the result, the corresponding axis of `x`; negative ones count from the
        last.

    Returns
    -------
    Tensor
        Of the permuted shape.

    Raises
    ------
    ValueError
        If `axes` does not name every axis exactly once.

    Notes
    -----
    .. math:: y_{\pi(i)} = x_i

    - Gradient for `x`: :math:`\bar y_{\pi(i)}`; :math:`i` are indices along all axes, and
      :math:`\pi` permutes them

    Python array API standard, manipulation functions: ``permute_dims``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.permute_dims(xgrad.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return xp.permute_dims(x, axes)


@derivative(lambda g, xp: xp.matrix_transpose(g), views=True)
def matrix_transpose(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the transpose of each matrix in the last two axes.

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
    .. math:: Y = X^\top

    - Gradient for `x`: :math:`\bar Y^\top`

    Python array API standard, linear algebra functions: ``matrix_transpose``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.matrix_transpose(xgrad.asarray([[1, 2], [3, 4]]))
    Tensor([[1, 3],
            [2, 4]])
    """
    return xp.matrix_transpose(x)


@derivative(lambda g, xp, x_shape: xp.reshape(g, x_shape), views=True)
def expand_dims(xp: Any, x: ArrayLike, /, axis: Axes) -> Any:
    r"""Return `x` with new axes of length 1.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    axis : int or tuple of int
        The position of each new axis in the result; negative ones count from its end.

    Returns
    -------
    Tensor
        Of the shape of `x`, with an axis of length 1 at each position.

    Raises
    ------
    ValueError
        If a position is given twice.
    IndexError
        If a position is out of bounds.

    Notes
    -----
    .. math:: \operatorname{vec}(y) = \operatorname{vec}(x)

    - Gradient for `x`: :math:`\bar y` in the shape of `x`

    Python array API standard, manipulation functions: ``expand_dims``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.expand_dims(xgrad.ones(3), axis=1).shape
    (3, 1)
    >>> xgrad.expand_dims(xgrad.ones(3), axis=(0, -1)).shape
    (1, 3, 1)
    """
    if not isinstance(axis, (tuple, list)):
        if type(axis) is not int or not -1 <= axis <= len(x.shape):
            _check_positions(x, axis, 1)
        return xp.expand_dims(x, axis=axis)
    _check_positions(x, axis, len(axis))
    ndim = len(x.shape) + len(axis)
    for position in sorted([a % ndim for a in axis]):
        x = xp.expand_dims(x, axis=position)
    return x


def _check_positions(x: Any, axis: Any, added: int) -> None:
    if (error := axis_error("expand_dims", "axis", axis, x.shape, added)) is not None:
        raise error


@derivative(lambda g, xp, x_shape: xp.reshape(g, x_shape), views=True)
def squeeze(xp: Any, x: ArrayLike, /, axis: Axes) -> Any:
    r"""Return `x` without axes of length 1.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    axis : int or tuple of int
        The axes to remove.

    Returns
    -------
    Tensor
        Of the shape of `x` without these axes.

    Raises
    ------
    ValueError
        If the length of one of these axes is not 1.

    Notes
    -----
    .. math:: \operatorname{vec}(y) = \operatorname{vec}(x)

    - Gradient for `x`: :math:`\bar y` in the shape of `x`

    Python array API standard, manipulation functions: ``squeeze``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.squeeze(xgrad.ones((3, 1)), 1).shape
    (3,)
    """
    return xp.squeeze(x, axis=axis)


@derivative(lambda g: g, views=True)  # the engine sums it over the broadcast axes
def broadcast_to(xp: Any, x: ArrayLike, /, shape: tuple[int, ...]) -> Any:
    r"""Broadcast `x` to a shape, by repetition along new axes and axes of length 1.

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
        If `x` does not broadcast to this shape.

    Notes
    -----
    .. math:: y_{ri} = x_i

    - Gradient for `x`: :math:`\sum_r \bar y_{ri}`, over the axes of repetition

    Python array API standard, manipulation functions: ``broadcast_to``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.broadcast_to(xgrad.asarray([1, 2]), (2, 2))
    Tensor([[1, 2],
            [1, 2]])
    """
    return xp.broadcast_to(x, tuple(shape))


def on_one_device(op: str, name: str, arrays: Sequence[Any]) -> list[Tensor]:
    """Return arguments as tensors; raise DeviceError if they are on different devices."""
    tensors = [as_tensor(op, f"{name}[{i}]", x) for i, x in enumerate(arrays)]
    if len(devices := dict.fromkeys(str(x.device) for x in tensors)) > 1:
        raise DeviceError(
            f"{op}: expected tensors of one device, got {', '.join(devices)}: move them with"
            " .to(device)"
        )
    return tensors


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape to which the given shapes broadcast.

    Parameters
    ----------
    *shapes : tuple of int
        Any number of shapes.

    Returns
    -------
    tuple of int
        The common shape; ``()`` if there are no shapes.

    Raises
    ------
    ValueError
        If the shapes do not broadcast, or a length is negative.
    TypeError
        If a length is not an integer.

    Notes
    -----
    Python array API standard, manipulation functions: ``broadcast_shapes``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return _common_shape("broadcast_shapes", shapes)


def _common_shape(op: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*shapes)
    except (TypeError, ValueError) as error:
        got = ", ".join(map(str, shapes))
        raise type(error)(
            f"{op}: expected shapes that broadcast, got {got}, which could not be broadcast"
            " together"
        ) from None


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    r"""Broadcast tensors against each other.

    Parameters
    ----------
    *arrays : Tensor
        Of any dtypes and of shapes that broadcast, on one device.

    Returns
    -------
    tuple of Tensor
        One tensor for each input, all of one shape, each of its own dtype.

    Raises
    ------
    ValueError
        If the shapes do not broadcast.
    DeviceError
        If the tensors are on different devices.

    Notes
    -----
    .. math:: y_{ri} = x_i

    - Gradient for `arrays`: :math:`\sum_r \bar y_{ri}`, over the axes of repetition of its result

    Python array API standard, manipulation functions: ``broadcast_arrays``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.broadcast_arrays(xgrad.asarray([1, 2]), xgrad.asarray([[3], [4]]))[0]
    Tensor([[1, 2],
            [1, 2]])
    """
    tensors = on_one_device("broadcast_arrays", "arrays", arrays)
    shape = _common_shape("broadcast_arrays", [x.shape for x in tensors])
    return tuple([broadcast_to(x, shape) for x in tensors])


@derivative(lambda g, xp, axis: xp.flip(g, axis=axis), views="shared")
def flip(xp: Any, x: ArrayLike, /, *, axis: Axes | None = None) -> Any:
    r"""Return `x` with its elements in reverse order along axes.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    axis : int or tuple of int, optional
        The axes to reverse; by default all.

    Returns
    -------
    Tensor
        Of the same shape.

    Notes
    -----
    .. math:: y_i = x_{n-1-i}

    - Gradient for `x`: :math:`\bar y_{n-1-i}`

    Python array API standard, manipulation functions: ``flip``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.flip(xgrad.arange(3))
    Tensor([2, 1, 0])
    """
    return xp.flip(x, axis=axis)


def _shifts(shift: Axes, axis: Axes | None, sign: int = 1) -> Axes:
    """Return the shift along each axis times `sign`; a single number applies to all axes."""
    if isinstance(shift, (tuple, list)):
        return tuple([sign * n for n in shift])
    if not hasattr(shift, "__index__"):
        raise TypeError(f"expected shifts of int, got {shown(shift)}")
    shift = sign * operator.index(shift)
    return (shift,) * len(axis) if isinstance(axis, (tuple, list)) else shift


@derivative(lambda g, xp, shift, axis: xp.roll(g, _shifts(shift, axis, -1), axis=axis))
def roll(xp: Any, x: ArrayLike, /, shift: Axes, *, axis: Axes | None = None) -> Any:
    r"""Shift the elements of `x` along axes; elements that leave at one end enter at the other.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    shift : int or tuple of int
        The shift towards larger indices: one number for all axes, or one for each.
    axis : int or tuple of int, optional
        The axes to shift along; by default, the shift goes through all elements in row order.

    Returns
    -------
    Tensor
        Of the same shape.

    Raises
    ------
    ValueError
        If `shift` is a tuple and there are not as many axes.
    TypeError
        If a shift is not an integer.

    Notes
    -----
    .. math:: y_i = x_{(i - s) \bmod n}

    - Gradient for `x`: :math:`\bar y_{(i + s) \bmod n}`; :math:`s` is the ``shift``

    Python array API standard, manipulation functions: ``roll``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.roll(xgrad.arange(4), 1)
    Tensor([3, 0, 1, 2])
    """
    axis = tuple(axis) if isinstance(axis, list) else axis
    if isinstance(shift, (tuple, list)) and len(shift) != (
        len(axis) if isinstance(axis, tuple) else 1
    ):
        raise ValueError(f"expected as many axes as shifts, got shift {shift} and axis {axis}")
    return xp.roll(x, _shifts(shift, axis), axis=axis)


@derivative(lambda g, xp, source, destination: xp.moveaxis(g, destination, source), views=True)
def _moveaxis(xp: Any, x: Any, /, *, source: Axes, destination: Axes) -> Any:
    return xp.moveaxis(x, source, destination)


def moveaxis(x: Tensor, source: Axes, destination: Axes, /) -> Tensor:
    r"""Return `x` with some axes moved to other positions; the others keep their order.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    source : int or tuple of int
        The axes to move.
    destination : int or tuple of int
        Their positions in the result.

    Returns
    -------
    Tensor
        Of the permuted shape.

    Raises
    ------
    ValueError
        If there are not as many positions as axes, or an axis is named twice.
    IndexError
        If an axis is out of bounds.

    Notes
    -----
    .. math:: y_{\pi(i)} = x_i

    - Gradient for `x`: :math:`\bar y_{\pi(i)}`; :math:`i` are indices along all axes, and
      :math:`\pi` permutes them

    Python array API standard, manipulation functions: ``moveaxis``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.moveaxis(xgrad.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = as_tensor("moveaxis", "x", x)
    shape = x._data.shape
    if error := axis_error("moveaxis", "source", source, shape) or axis_error(
        "moveaxis", "destination", destination, shape
    ):
        raise error
    source, destination = (
        tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)
        for axes in (source, destination)
    )
    if len(source) != len(destination):
        got = f"{shown(source)} to {shown(destination)}"
        raise ValueError(f"moveaxis: expected as many places as axes, got {got}")
    return _moveaxis(x, source=source, destination=destination)
