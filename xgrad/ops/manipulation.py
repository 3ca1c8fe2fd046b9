"""Shapes, axes and the order of elements: what moves elements, and computes nothing."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from xgrad.backend import DeviceError
from xgrad.declare import derivative
from xgrad.inputs import as_tensor
from xgrad.tensor import Tensor

Axes = int | tuple[int, ...]


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
        True copies; False refuses to; None copies where it must. All the same to users, for tensors are values.

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
    except AttributeError:  # of CuPy and array-api-strict
        raise ValueError(f"copy=False, but shape {shape} of elements in this order needs a copy") from None


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
def expand_dims(xp: Any, x: Any, /, axis: int) -> Any:
    """Return `x` with a new axis of length 1.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    axis : int
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
def squeeze(xp: Any, x: Any, /, axis: Axes) -> Any:
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


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """Return tensors broadcast against each other.

    Parameters
    ----------
    *arrays : Tensor
        Of any dtypes and of shapes that broadcast, on one device.

    Returns
    -------
    list of Tensor
        As many, of one shape, each of its own dtype.

    Raises
    ------
    ValueError
        If the shapes do not broadcast.
    DeviceError
        If the tensors are on several devices.

    Notes
    -----
    Python array API standard, manipulation functions: ``broadcast_arrays``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.broadcast_arrays(xgrad.asarray([1, 2]), xgrad.asarray([[3], [4]]))[0]
    Tensor([[1, 2],
            [1, 2]])
    """
    tensors = [as_tensor("broadcast_arrays", f"arrays[{i}]", x) for i, x in enumerate(arrays)]
    shapes = [x.shape for x in tensors]
    if len(places := {x.device: None for x in tensors}) > 1:
        raise DeviceError(
            f"broadcast_arrays: expected tensors of one device, got {', '.join(map(str, places))}: move them with "
            ".to(device)"
        )
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(
            f"broadcast_arrays: expected shapes that broadcast, got {shapes}, which could not be broadcast together"
        ) from None
    return [broadcast_to(x, shape) for x in tensors]


@derivative(lambda g, xp, axis: xp.flip(g, axis=axis))
def flip(xp: Any, x: Any, /, *, axis: Axes | None = None) -> Any:
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


def _shifts(shift: Axes, axis: Axes | None, sign: int = 1) -> Axes:
    """Return the shift along each axis, of which a number alone stands for all."""
    if isinstance(shift, (tuple, list)):
        return tuple([sign * n for n in shift])
    if not hasattr(shift, "__index__"):
        raise TypeError(f"expected shifts of int, got {shift!r}")
    shift = sign * operator.index(shift)
    return (shift,) * len(axis) if isinstance(axis, (tuple, list)) else shift


@derivative(lambda g, xp, shift, axis: xp.roll(g, _shifts(shift, axis, -1), axis=axis))
def roll(xp: Any, x: Any, /, shift: Axes, *, axis: Axes | None = None) -> Any:
    """Return `x` with its elements moved along axes; those that leave at one end come in at the other.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    shift : int or tuple of int
        How far, towards larger indices: one number for all axes, or one for each.
    axis : int or tuple of int, optional
        Along what; by default through all elements in row order.

    Returns
    -------
    Tensor
        Of the same shape.

    Raises
    ------
    ValueError
        If there are several shifts, and not as many axes.
    TypeError
        If a shift is not an integer.

    Notes
    -----
    Python array API standard, manipulation functions: ``roll``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.roll(xgrad.arange(4), 1)
    Tensor([3, 0, 1, 2])
    """
    axis = tuple(axis) if isinstance(axis, list) else axis
    if isinstance(shift, (tuple, list)) and len(shift) != (len(axis) if isinstance(axis, tuple) else 1):
        raise ValueError(f"expected as many axes as shifts, got shift {shift} and axis {axis}")
    return xp.roll(x, _shifts(shift, axis), axis=axis)


@derivative(lambda g, xp, source, destination: xp.moveaxis(g, destination, source))
def _moveaxis(xp: Any, x: Any, /, *, source: Axes, destination: Axes) -> Any:
    return xp.moveaxis(x, source, destination)


def moveaxis(x: Tensor, source: Axes, destination: Axes, /) -> Tensor:
    """Return `x` with some axes in other places, and the rest in their order.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    source : int or tuple of int
        Which axes to move.
    destination : int or tuple of int
        For each of them, where it is in the result.

    Returns
    -------
    Tensor
        Of the permuted shape.

    Raises
    ------
    ValueError
        If there are not as many places as axes, or one is named twice.
    IndexError
        If there is no such axis.

    Notes
    -----
    Python array API standard, manipulation functions: ``moveaxis``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.moveaxis(xgrad.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = as_tensor("moveaxis", "x", x)
    source, destination = ((axes,) if isinstance(axes, int) else tuple(axes) for axes in (source, destination))
    if any(
        len({a % max(x.ndim, 1) for a in axes}) < max(len(source), len(destination)) for axes in (source, destination)
    ):
        raise ValueError(f"moveaxis: expected as many places as axes, each once, got {source} to {destination}")
    return _moveaxis(x, source=source, destination=destination)
