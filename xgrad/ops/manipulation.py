"""The standard's manipulation functions: shapes, axes and the order of elements, tensors joined and repeated."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from xgrad.backend import DeviceError
from xgrad.core.arguments import as_tensor
from xgrad.core.dtypes import BOOLEAN
from xgrad.core.function import Function
from xgrad.core.tensor import Tensor
from xgrad.core.views import link
from xgrad.ops.declare import derivative
from xgrad.ops.declare_reduction import front_axis, slice_axis
from xgrad.ops.indexing import getitem_function, take
from xgrad.support.docstrings import documented
from xgrad.support.hints import explained, shown

__all__ = [
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims", "flip", "matrix_transpose",
    "moveaxis", "permute_dims", "repeat", "reshape", "roll", "squeeze", "stack", "tile", "unstack",
]  # fmt: skip

Axes = int | tuple[int, ...]


@derivative(lambda g, xp, x_shape: xp.reshape(g, x_shape), views="shared")
@documented("manipulation functions")
def reshape(xp: Any, x: Any, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Any:
    """Return the same elements, in row order, in another shape.

    x
    shape : tuple of int -- The new shape; one length may be -1, and follows from the others.
    copy : bool, optional -- True copies; False refuses to; None copies where it must. All the same to users, for
        tensors are values.
    returns Tensor -- Of the given shape.
    raises ValueError -- If the number of elements differs, or ``copy=False`` and they must be copied.

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


@derivative(lambda g, xp, axes: xp.permute_dims(g, tuple(np.argsort(np.mod(axes, len(axes))).tolist())), views=True)
@documented("manipulation functions")
def permute_dims(xp: Any, x: Any, /, axes: tuple[int, ...]) -> Any:
    """Return `x` with its axes in another order.

    x
    axes : tuple of int -- For each axis of the result, the axis of `x` that it is; negative ones count from the last.
    returns Tensor -- Of the permuted shape.
    raises ValueError -- If `axes` does not name every axis once.

    >>> xgrad.permute_dims(xgrad.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return xp.permute_dims(x, axes)


@derivative(lambda g, xp: xp.matrix_transpose(g), views=True)
@documented("linear algebra functions")
def matrix_transpose(xp: Any, x: Any, /) -> Any:
    """Return the transpose of each matrix in the last two axes.

    x : Tensor -- Of shape (..., m, n).
    returns Tensor -- Of shape (..., n, m).
    raises ValueError -- If `x` has fewer than two axes.

    >>> xgrad.matrix_transpose(xgrad.asarray([[1, 2], [3, 4]]))
    Tensor([[1, 3],
            [2, 4]])
    """
    return xp.matrix_transpose(x)


@derivative(lambda g, xp, x_shape: xp.reshape(g, x_shape), views=True)
@documented("manipulation functions")
def expand_dims(xp: Any, x: Any, /, axis: Axes) -> Any:
    """Return `x` with new axes of length 1.

    x
    axis : int or tuple of int -- The position of each new axis in the result; negative ones count from its end.
    returns Tensor -- Of the shape of `x`, with an axis of length 1 at each position.
    raises IndexError -- If a position is out of bounds, or given twice.

    >>> xgrad.expand_dims(xgrad.ones(3), axis=1).shape
    (3, 1)
    >>> xgrad.expand_dims(xgrad.ones(3), axis=(0, -1)).shape
    (1, 3, 1)
    """
    if not isinstance(axis, (tuple, list)):
        _position(axis, len(x.shape) + 1)
        return xp.expand_dims(x, axis=axis)
    positions = {_position(a, len(x.shape) + len(axis)) for a in axis}
    if len(positions) < len(axis):
        raise IndexError(f"expected different positions for axis, got {axis}")
    for position in sorted(positions):
        x = xp.expand_dims(x, axis=position)
    return x


def _position(axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise IndexError(f"axis {axis} is out of bounds for a result with {ndim} axes")
    return axis % ndim


@derivative(lambda g, xp, x_shape: xp.reshape(g, x_shape), views=True)
@documented("manipulation functions")
def squeeze(xp: Any, x: Any, /, axis: Axes) -> Any:
    """Return `x` without axes of length 1.

    x
    axis : int or tuple of int -- Which axes to take away.
    returns Tensor -- With fewer axes.
    raises ValueError -- If the length of one of them is not 1.

    >>> xgrad.squeeze(xgrad.ones((3, 1)), 1).shape
    (3,)
    """
    return xp.squeeze(x, axis=axis)


@derivative(lambda g: g, views=True)  # the engine sums it over the broadcast axes
@documented("manipulation functions")
def broadcast_to(xp: Any, x: Any, /, shape: tuple[int, ...]) -> Any:
    """Return `x` repeated along new axes and along those of length 1, up to a shape.

    x : Tensor -- Of any dtype.
    shape : tuple of int -- The shape of the result.
    returns Tensor -- Of the given shape.
    raises ValueError -- If `x` does not broadcast to it.

    >>> xgrad.broadcast_to(xgrad.asarray([1, 2]), (2, 2))
    Tensor([[1, 2],
            [1, 2]])
    """
    return xp.broadcast_to(x, tuple(shape))


def on_one_device(op: str, name: str, arrays: Sequence[Any]) -> list[Tensor]:
    """Return arguments as tensors; DeviceError if they are on several devices."""
    tensors = [as_tensor(op, f"{name}[{i}]", x) for i, x in enumerate(arrays)]
    if len(devices := dict.fromkeys(str(x.device) for x in tensors)) > 1:
        raise DeviceError(f"{op}: expected tensors of one device, got {', '.join(devices)}: move them with .to(device)")
    return tensors


@documented("manipulation functions")
def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that shapes broadcast to.

    *shapes : tuple of int -- Any number of shapes.
    returns tuple of int -- The common shape: ``()`` of no shapes.
    raises ValueError -- If the shapes do not broadcast, or a length is negative.
    raises TypeError -- If a length is not an integer.

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
            f"{op}: expected shapes that broadcast, got {got}, which could not be broadcast together"
        ) from None


@documented("manipulation functions")
def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """Return tensors broadcast against each other.

    *arrays : Tensor -- Of any dtypes and of shapes that broadcast, on one device.
    returns tuple of Tensor -- As many, of one shape, each of its own dtype.
    raises ValueError -- If the shapes do not broadcast.
    raises DeviceError

    >>> xgrad.broadcast_arrays(xgrad.asarray([1, 2]), xgrad.asarray([[3], [4]]))[0]
    Tensor([[1, 2],
            [1, 2]])
    """
    tensors = on_one_device("broadcast_arrays", "arrays", arrays)
    shape = _common_shape("broadcast_arrays", [x.shape for x in tensors])
    return tuple([broadcast_to(x, shape) for x in tensors])


@derivative(lambda g, xp, axis: xp.flip(g, axis=axis), views="shared")
@documented("manipulation functions")
def flip(xp: Any, x: Any, /, *, axis: Axes | None = None) -> Any:
    """Return `x` with its elements in reverse order along axes.

    x
    axis : int or tuple of int, optional -- Which axes to reverse; by default all.
    returns Tensor -- Of the same shape.

    >>> xgrad.flip(xgrad.arange(3))
    Tensor([2, 1, 0])
    """
    return xp.flip(x, axis=axis)


def _shifts(shift: Axes, axis: Axes | None, sign: int = 1) -> Axes:
    """Return the shift along each axis, of which a number alone stands for all."""
    if isinstance(shift, (tuple, list)):
        return tuple([sign * n for n in shift])
    if not hasattr(shift, "__index__"):
        raise TypeError(f"expected shifts of int, got {shown(shift)}")
    shift = sign * operator.index(shift)
    return (shift,) * len(axis) if isinstance(axis, (tuple, list)) else shift


@derivative(lambda g, xp, shift, axis: xp.roll(g, _shifts(shift, axis, -1), axis=axis))
@documented("manipulation functions")
def roll(xp: Any, x: Any, /, shift: Axes, *, axis: Axes | None = None) -> Any:
    """Return `x` with its elements moved along axes; those that leave at one end come in at the other.

    x
    shift : int or tuple of int -- How far, towards larger indices: one number for all axes, or one for each.
    axis : int or tuple of int, optional -- Along what; by default through all elements in row order.
    returns Tensor -- Of the same shape.
    raises ValueError -- If there are several shifts, and not as many axes.
    raises TypeError -- If a shift is not an integer.

    >>> xgrad.roll(xgrad.arange(4), 1)
    Tensor([3, 0, 1, 2])
    """
    axis = tuple(axis) if isinstance(axis, list) else axis
    if isinstance(shift, (tuple, list)) and len(shift) != (len(axis) if isinstance(axis, tuple) else 1):
        raise ValueError(f"expected as many axes as shifts, got shift {shift} and axis {axis}")
    return xp.roll(x, _shifts(shift, axis), axis=axis)


@derivative(lambda g, xp, source, destination: xp.moveaxis(g, destination, source), views=True)
def _moveaxis(xp: Any, x: Any, /, *, source: Axes, destination: Axes) -> Any:
    return xp.moveaxis(x, source, destination)


@documented("manipulation functions")
def moveaxis(x: Tensor, source: Axes, destination: Axes, /) -> Tensor:
    """Return `x` with some axes in other places, and the rest in their order.

    x
    source : int or tuple of int -- Which axes to move.
    destination : int or tuple of int -- For each of them, where it is in the result.
    returns Tensor -- Of the permuted shape.
    raises ValueError -- If there are not as many places as axes, or one is named twice.
    raises IndexError

    >>> xgrad.moveaxis(xgrad.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = as_tensor("moveaxis", "x", x)
    source, destination = ((axes,) if isinstance(axes, int) else tuple(axes) for axes in (source, destination))
    if any(
        len({a % max(x.ndim, 1) for a in axes}) < max(len(source), len(destination)) for axes in (source, destination)
    ):
        got = f"{shown(source)} to {shown(destination)}"
        raise ValueError(f"moveaxis: expected as many places as axes, each once, got {got}")
    return _moveaxis(x, source=source, destination=destination)


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


@derivative(_split, kind=BOOLEAN)
def _concat(xp: Any, *arrays: Any, axis: int | None = 0) -> Any:
    return xp.concat(list(arrays), axis=axis)


@explained
@documented("manipulation functions")
def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Join tensors along an axis that they have.

    arrays : sequence of Tensor -- At least one, of shapes that agree but for `axis`, on one device.
    axis : int or None, default 0 -- Along what to join; None joins all elements in row order.
    returns Tensor -- Of the joined shape, and of the dtype that all promote to.
    raises ValueError -- If the shapes do not agree.
    raises DeviceError

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
@documented("manipulation functions")
def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Join tensors along a new axis.

    arrays : sequence of Tensor -- At least one, of one shape, on one device.
    axis : int, default 0 -- Where the new axis is in the result.
    returns Tensor -- With one axis more, as long as there are tensors.
    raises ValueError -- If the shapes differ.
    raises DeviceError

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
@documented("manipulation functions")
def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Split a tensor along an axis, which goes.

    x : Tensor -- With at least one axis.
    axis : int, default 0 -- Along what to split.
    returns tuple of Tensor -- As many as `axis` is long, with one axis less.
    raises IndexError

    >>> xgrad.unstack(xgrad.asarray([[1, 2], [3, 4]]), axis=1)
    (Tensor([1, 3]), Tensor([2, 4]))
    """
    x = as_tensor("unstack", "x", x)
    before = (slice(None),) * front_axis("unstack", x, axis)
    parts: tuple[Tensor, ...] = _unstack_function(x, axis=axis)
    for i, part in enumerate(parts):
        if x.ndim > 1:
            link(x, part, getitem_function, {"key": (*before, i, ...)})
        else:  # an element, which is a value of its own
            part._view = None
    return parts


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
@documented("manipulation functions")
def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Return `x` with each element several times, one after the other.

    x
    repeats : int or Tensor -- How often; one number for all, or integers of shape (n,) where there are n elements along
        `axis`. The shape of the result then depends on values, which makes a GPU wait.
    axis : int, optional -- Along what; by default all elements in row order, as one axis.
    returns Tensor -- Of the shape of `x`, longer along `axis`; or with one axis.
    raises TypeError -- If `repeats` are not integers.
    raises ValueError -- If one is negative, or there are not as many as elements.
    raises DeviceError -- If the two are on different devices.

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
    n = x.shape[front_axis("repeat", x, axis)]
    if repeats.shape not in ((n,), (1,)):
        raise ValueError(f"repeat: expected repeats of shape ({n},), one an element, got {repeats.shape}")
    return take(x, _repeated(repeats, count=n), axis=axis)


def _tile_rule(g: Any, xp: Any, x_shape: tuple[int, ...], repetitions: tuple[int, ...]) -> Any:
    """Sum the copies: the even axes are numbers of copies, the odd ones those of `x`."""
    ndim = len(g.shape)
    shape, copies = ((1,) * (ndim - len(lengths)) + lengths for lengths in (x_shape, repetitions))
    g = xp.reshape(g, tuple(n for pair in zip(copies, shape, strict=True) for n in pair))
    return xp.reshape(xp.sum(g, axis=tuple(range(0, 2 * ndim, 2))), x_shape)


@derivative(_tile_rule)
def _tile(xp: Any, x: Any, /, *, repetitions: tuple[int, ...]) -> Any:
    return xp.tile(x, repetitions)


@documented("manipulation functions")
def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """Return copies of `x` side by side along axes.

    x
    repetitions : tuple of int -- How many along each axis, from the last on; new axes come first, and those without a
        number have one copy.
    returns Tensor -- With as many axes as `x` or as there are numbers, whichever is more.
    raises TypeError -- If `repetitions` are not a tuple or list.
    raises ValueError -- If one is negative.

    >>> xgrad.tile(xgrad.asarray([1, 2]), (2, 2))
    Tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    if not isinstance(repetitions, (tuple, list)):
        raise TypeError(f"tile: expected a tuple of int for repetitions, got {shown(repetitions)}")
    if any(n < 0 for n in repetitions):
        raise ValueError(f"tile: expected no negative repetitions, got {repetitions}")
    return _tile(x, repetitions=tuple(repetitions))
