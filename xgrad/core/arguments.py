"""Arguments of ops: conversion to tensors, and checks."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from typing import Any, Protocol

from xgrad.backend.devices import device_of
from xgrad.core import providers
from xgrad.core.dtypes import SCALARS, as_scalar
from xgrad.core.op import Op
from xgrad.core.tensor import Tensor
from xgrad.support.hints import shown


class HasArray(Protocol):
    """An array that NumPy can read, such as NumPy's own arrays and scalars."""

    @property
    def __array__(self) -> Callable[..., Any]: ...


Scalar = bool | int | float | complex
#: What ops take: a tensor, an array, which is copied on its device, or a number.
ArrayLike = Tensor | HasArray | Scalar


def as_tensor(op: str, name: str, x: Any) -> Tensor:
    """Return an argument as a tensor; an array is copied on its device.

    The TypeError of anything else names the op and the argument.
    """
    if isinstance(x, Tensor):
        return x
    if isinstance(x, (str, bytes, list, tuple, dict, set)) or not hasattr(x, "__array__"):
        raise TypeError(
            f"{op}: expected a tensor, an array or a number for {name}, got {type(x).__name__}:"
            " make a tensor with xgrad.asarray"
        )
    copied: Tensor = providers.module("functions").asarray(
        x, device=device_of(x) or "cpu", copy=True
    )
    return copied


def check_tensor(op: str, name: str, x: Any) -> Tensor:
    """Return an argument that must be a tensor; TypeError names the op and the argument."""
    if not isinstance(x, Tensor):
        raise TypeError(
            f"{op}: expected a tensor for {name}, got {type(x).__name__}: make one with"
            " xgrad.asarray"
        )
    return x


def check_tensors(op: str, name: str, xs: Any) -> list[Tensor]:
    """Return an argument that must be a tensor, or an iterable of tensors, as a list."""
    if isinstance(xs, Tensor):
        return [xs]
    if not isinstance(xs, Iterable):
        raise TypeError(
            f"{op}: expected a tensor, or a sequence of tensors, for {name}, got"
            f" {type(xs).__name__}"
        )
    return [check_tensor(op, f"{name}[{i}]", x) for i, x in enumerate(xs)]


def as_int(op: str, name: str, value: Any) -> int:
    """Return an argument as an int; TypeError names the op and the argument."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{op}: expected an int for {name}, got {shown(value)}")
    return operator.index(value)


def axis_error(
    op: str,
    name: str,
    axis: Any,
    shape: tuple[int, ...],
    added: int = 0,
    several: bool = True,
    of: str = "x",
) -> Exception | None:
    """Return the error of an argument that names an axis, None if it is right.

    The argument may be a tuple if it takes `several` axes. `of` is the argument with the axes, and
    `shape` its shape, to which the function adds as many axes as `added`.
    """
    if type(axis) is int and -len(shape) <= axis < len(shape):
        return None
    axes = axis if several and isinstance(axis, (tuple, list)) else (axis,)
    if any(isinstance(a, bool) or not hasattr(a, "__index__") for a in axes):
        kind = "an int or a tuple of ints" if several else "an int"
        return TypeError(f"{op}: expected {kind} for {name}, got {shown(axis)}")
    ndim, shape = len(shape) + added, tuple(shape)
    if not all(-ndim <= operator.index(a) < ndim for a in axes):
        if not ndim:
            return IndexError(
                f"{op}: expected {of} with at least one axis, got shape () and {name} {shown(axis)}"
            )
        return IndexError(
            f"{op}: expected {name} from {-ndim} to {ndim - 1} for {of} of shape {shape}, got"
            f" {shown(axis)}, out of range"
        )
    if len({operator.index(a) % ndim for a in axes}) < len(axes):
        return ValueError(
            f"{op}: expected different axes for {name}, got {shown(axis)} for {of} of shape {shape}"
        )
    return None


def front_axis(
    op: str, x: Tensor, axis: Any, name: str = "axis", of: str = "x", added: int = 0
) -> int:
    """Return an axis counted from the front.

    The TypeError or IndexError of a wrong axis names the op and the argument.
    """
    ndim = len(x._data.shape) + added
    if type(axis) is int and -ndim <= axis < ndim:
        return axis % ndim
    if (error := axis_error(op, name, axis, x.shape, added, several=False, of=of)) is not None:
        raise error
    return operator.index(axis) % ndim


def as_number(op: str, name: str, value: Any) -> Any:
    """Return an argument that must be a real number; TypeError names the op and the argument."""
    # the check of the class `Real` is slow
    if type(value) is not float and (isinstance(value, bool) or not isinstance(value, Real)):
        raise TypeError(f"{op}: expected a number for {name}, got {shown(value)}")
    return value


def to_tensors(op: Op, inputs: Sequence[Any], scalars: bool = False) -> list[Any]:
    """Convert the arrays among the inputs of a call to tensors.

    If there are only scalars, the first one is converted.
    """
    tensors = []
    for name, x in op.named(inputs):
        x = as_scalar(x)  # NumPy's scalars do not promote arrays either
        if type(x) in SCALARS:
            x, scalars = (providers.module("functions").asarray(x) if scalars else x), False
        elif x is not None or not op.nullable:
            x = as_tensor(op.name, name, x)
        tensors.append(x)
    if scalars:
        raise TypeError(f"{op.name}{op.signature}: expected at least one tensor, got none")
    return tensors


# Checks of values: array code, for `xgrad.backend.recording.run_array_code`


def is_not_negative(device: Any, x: Any) -> bool:
    """Return whether no element of an array is negative."""
    return bool(device.backend.check_true(device.xp.min(x) >= 0))


def is_below(device: Any, x: Any, bound: int) -> bool:
    """Return whether all elements of an array are below a bound."""
    return bool(device.backend.check_true(device.xp.max(x) < bound))
