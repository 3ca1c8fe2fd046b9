"""Sums, products, quotients, powers of two, and the larger and smaller of two."""

from __future__ import annotations

from typing import Any

from xgrad.backend.overridable import overridable
from xgrad.core.arguments import as_tensor
from xgrad.core.dtypes import FLOATING, INTEGER, SCALARS
from xgrad.core.tensor import Tensor
from xgrad.ops.declare import as_arrays, call_op, derivative, elementwise
from xgrad.ops.tensor_conversion import astype

__all__ = [
    "abs",
    "add",
    "clip",
    "divide",
    "floor_divide",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "positive",
    "reciprocal",
    "relu",
    "remainder",
    "square",
    "subtract",
]


def _split_tie_gradient(g: Any, xp: Any, loses: Any, ties: Any) -> Any:
    """Return the gradient of the larger operand, or half of it for a tie; all of it for a NaN."""
    return xp.where(ties, g / 2, xp.where(loses, 0, g))


@overridable
def _relu(xp: Any, x: Any) -> Any:
    return xp.maximum(x, 0)


@derivative(None, None, kind=INTEGER, highest=FLOATING)
def _floor_quotient(xp: Any, x2: Any, x1: Any, /) -> Any:
    """The multiple of the divisor that `remainder` subtracts: -1 for a number and an infinity of
    the other sign.
    """
    return xp.floor_divide(x1, x2)


@elementwise(lambda g: g, lambda g: g, of_bools="logical_or")
def add(xp: Any, x1: Any, x2: Any, /) -> Any:
    """Add; of bools alone, logical or, as NumPy and PyTorch have it.

    Parameters
    ----------
    x1, x2 : Tensor
        Of any shapes that broadcast, on one device; numbers or bools. Either may be a Python
        scalar, which promotes nothing.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to.

    Raises
    ------
    DeviceError
        If the tensors are on several devices.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Differentiable to any order.

    Python array API standard, elementwise functions: ``add``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.add(xgrad.asarray([1.0, 2.0]), 3.0)
    Tensor([4., 5.])
    """
    return xp.add(x1, x2)


@elementwise(lambda g: g, lambda g: -g)
def subtract(xp: Any, x1: Any, x2: Any, /) -> Any:
    """Subtract the second from the first.

    Parameters
    ----------
    x1, x2 : Tensor
        Of any shapes that broadcast, on one device; numbers; bools count as integers. Either may be
        a Python scalar, which promotes nothing.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to.

    Raises
    ------
    DeviceError
        If the tensors are on several devices.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Differentiable to any order.

    Python array API standard, elementwise functions: ``subtract``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.subtract(xgrad.asarray([1.0, 2.0]), 3.0)
    Tensor([-2., -1.])
    """
    return xp.subtract(x1, x2)


@elementwise(lambda g, x2: g * x2, lambda g, x1: g * x1, of_bools="logical_and")
def multiply(xp: Any, x1: Any, x2: Any, /) -> Any:
    """Multiply; of bools alone, logical and, as NumPy and PyTorch have it.

    Parameters
    ----------
    x1, x2 : Tensor
        Of any shapes that broadcast, on one device; numbers or bools. Either may be a Python
        scalar, which promotes nothing.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to.

    Raises
    ------
    DeviceError
        If the tensors are on several devices.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Differentiable to any order.

    Python array API standard, elementwise functions: ``multiply``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.multiply(xgrad.asarray([1.0, 2.0]), 3.0)
    Tensor([3., 6.])
    """
    return xp.multiply(x1, x2)


@elementwise(lambda g, x2: g / x2, lambda g, x2, out: -(g * out) / x2, kind=FLOATING)
def divide(xp: Any, x1: Any, x2: Any, /) -> Any:
    """Divide the first by the second.

    Parameters
    ----------
    x1, x2 : Tensor
        Of any shapes that broadcast, on one device; numbers; integers count as float32. Either may
        be a Python scalar, which promotes nothing.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to.

    Raises
    ------
    DeviceError
        If the tensors are on several devices.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Differentiable to any order.

    Python array API standard, elementwise functions: ``divide``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.divide(xgrad.asarray([1.0, 2.0]), 4.0)
    Tensor([0.25, 0.5 ])
    """
    return xp.divide(x1, x2)


@elementwise(lambda g: -g, instead_for_bools="write ~x, or cast first")
def negative(xp: Any, x: Any, /) -> Any:
    """Change the sign.

    Parameters
    ----------
    x : Tensor
        Of any shape, on one device; numbers.

    Returns
    -------
    Tensor
        Of the same shape.

    Raises
    ------
    DeviceError
        If the tensors are on several devices.
    TypeError
        If the input is of bools: write ~x, or cast first.

    Notes
    -----
    Differentiable to any order.

    Python array API standard, elementwise functions: ``negative``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.negative(xgrad.asarray([1.0, -2.0]))
    Tensor([-1.,  2.])
    """
    return xp.negative(x)


@elementwise(lambda g: g)
def positive(xp: Any, x: Any, /) -> Any:
    """Return the same numbers.

    Parameters
    ----------
    x : Tensor
        Of any shape, on one device; numbers; bools count as integers.

    Returns
    -------
    Tensor
        Of the same shape.

    Raises
    ------
    DeviceError
        If the tensors are on several devices.

    Notes
    -----
    Differentiable to any order.

    Python array API standard, elementwise functions: ``positive``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.positive(xgrad.asarray([1.0, -2.0]))
    Tensor([ 1., -2.])
    """
    return xp.positive(x)


@elementwise(lambda g, xp, x: g * xp.sign(x), holomorphic=False)
def abs(xp: Any, x: Any, /) -> Any:
    """Return the absolute value; its derivative at 0 is 0.

    Parameters
    ----------
    x : Tensor
        Of any shape, on one device; numbers; bools count as integers.

    Returns
    -------
    Tensor
        Of the same shape.

    Raises
    ------
    DeviceError
        If the tensors are on several devices.

    Notes
    -----
    Differentiable to any order.

    Python array API standard, elementwise functions: ``abs``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.abs(xgrad.asarray([1.0, -2.0]))
    Tensor([1., 2.])
    """
    return xp.abs(x)


@elementwise(lambda g, x: g * (2 * x))
def square(xp: Any, x: Any, /) -> Any:
    """Return the square.

    Parameters
    ----------
    x : Tensor
        Of any shape, on one device; numbers; bools count as integers.

    Returns
    -------
    Tensor
        Of the same shape.

    Raises
    ------
    DeviceError
        If the tensors are on several devices.

    Notes
    -----
    Differentiable to any order.

    Python array API standard, elementwise functions: ``square``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.square(xgrad.asarray([1.0, -2.0]))
    Tensor([1., 4.])
    """
    return xp.square(x)


@elementwise(lambda g, out: -g * out * out, kind=FLOATING)
def reciprocal(xp: Any, x: Any, /) -> Any:
    """Return one over each element.

    Parameters
    ----------
    x : Tensor
        Of any shape, on one device; numbers; integers count as float32.

    Returns
    -------
    Tensor
        Of the same shape.

    Raises
    ------
    DeviceError
        If the tensors are on several devices.

    Notes
    -----
    Differentiable to any order.

    Python array API standard, elementwise functions: ``reciprocal``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.reciprocal(xgrad.asarray([1.0, -2.0]))
    Tensor([ 1. , -0.5])
    """
    return xp.reciprocal(x)


@derivative(None, None, kind=INTEGER, highest=FLOATING, broadcasts=True)
def floor_divide(xp: Any, x1: Any, x2: Any, /) -> Any:
    """Divide and round towards minus infinity.

    Parameters
    ----------
    x1, x2 : Tensor
        Of any shapes that broadcast, on one device; real numbers; bools count as integers. Either
        may be a Python scalar, which promotes nothing.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to.

    Raises
    ------
    DeviceError
        If the tensors are on several devices.
    ValueError
        If the shapes do not broadcast.
    TypeError
        If an input is not of real numbers.

    Notes
    -----
    Not differentiable: no gradient flows.

    Python array API standard, elementwise functions: ``floor_divide``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.floor_divide(xgrad.asarray([5, -5]), 3)
    Tensor([ 1, -2])
    """
    # The standard's result for infinite operands, the quotient; libraries follow Python: NaN, or
    # -1.
    out = xp.floor_divide(x1, x2)
    if not xp.isdtype(out.dtype, "real floating"):
        return out
    x1, x2 = as_arrays(xp, x1, x2)
    return xp.where(xp.isinf(x1) | xp.isinf(x2), x1 / x2, out)


@derivative(
    lambda g: g,
    lambda g, xp, x1, x2: -g * call_op(_floor_quotient, xp, x2, x1),
    kind=INTEGER,
    highest=FLOATING,
    broadcasts=True,
)
def remainder(xp: Any, x1: Any, x2: Any, /) -> Any:
    """Return the remainder of `floor_divide`, with the sign of the divisor.

    Parameters
    ----------
    x1, x2 : Tensor
        Of any shapes that broadcast, on one device; real numbers; bools count as integers. Either
        may be a Python scalar, which promotes nothing.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to.

    Raises
    ------
    DeviceError
        If the tensors are on several devices.
    ValueError
        If the shapes do not broadcast.
    TypeError
        If an input is not of real numbers.

    Notes
    -----
    Differentiable to any order.

    Python array API standard, elementwise functions: ``remainder``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.remainder(xgrad.asarray([5, -5]), 3)
    Tensor([2, 1])
    """
    # The standard's result by an infinity, NaN in CuPy, and with the sign of the divisor where it
    # is 0.
    out = xp.remainder(x1, x2)
    if not xp.isdtype(out.dtype, "real floating"):
        return out
    x1, x2 = as_arrays(xp, x1, x2)
    kept = (x1 == 0) | ((x1 < 0) == (x2 < 0))
    out = xp.where(xp.isinf(x2) & xp.isfinite(x1), xp.where(kept, x1, x2), out)
    return xp.where(out == 0, xp.copysign(out, x2), out)


@elementwise(
    lambda g, xp, x1, x2: _split_tie_gradient(g, xp, x1 < x2, x1 == x2),
    lambda g, xp, x1, x2: _split_tie_gradient(g, xp, x2 < x1, x1 == x2),
    highest=FLOATING,
)
def maximum(xp: Any, x1: Any, x2: Any, /) -> Any:
    """Return the larger of two; a tie shares its gradient.

    Parameters
    ----------
    x1, x2 : Tensor
        Of any shapes that broadcast, on one device; real numbers; bools count as integers. Either
        may be a Python scalar, which promotes nothing.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to.

    Raises
    ------
    DeviceError
        If the tensors are on several devices.
    ValueError
        If the shapes do not broadcast.
    TypeError
        If an input is not of real numbers.

    Notes
    -----
    Differentiable to any order.

    Python array API standard, elementwise functions: ``maximum``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.maximum(xgrad.asarray([1.0, 5.0]), 3.0)
    Tensor([3., 5.])
    """
    return xp.maximum(x1, x2)


@elementwise(
    lambda g, xp, x1, x2: _split_tie_gradient(g, xp, x1 > x2, x1 == x2),
    lambda g, xp, x1, x2: _split_tie_gradient(g, xp, x2 > x1, x1 == x2),
    highest=FLOATING,
)
def minimum(xp: Any, x1: Any, x2: Any, /) -> Any:
    """Return the smaller of two; a tie shares its gradient.

    Parameters
    ----------
    x1, x2 : Tensor
        Of any shapes that broadcast, on one device; real numbers; bools count as integers. Either
        may be a Python scalar, which promotes nothing.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to.

    Raises
    ------
    DeviceError
        If the tensors are on several devices.
    ValueError
        If the shapes do not broadcast.
    TypeError
        If an input is not of real numbers.

    Notes
    -----
    Differentiable to any order.

    Python array API standard, elementwise functions: ``minimum``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.minimum(xgrad.asarray([1.0, 5.0]), 3.0)
    Tensor([1., 3.])
    """
    return xp.minimum(x1, x2)


@derivative(
    overridable(lambda xp, g, out: xp.where(out <= 0, 0, g), "relu_gradient"),
    kind=INTEGER,
    highest=FLOATING,
    broadcasts=True,
)
def relu(xp: Any, x: Any, /) -> Any:
    """Return positive elements, and 0 for the others; its derivative at 0 is 0.

    Parameters
    ----------
    x : Tensor
        Of any shape, on one device; real numbers; bools count as integers.

    Returns
    -------
    Tensor
        Of the same shape.

    Raises
    ------
    DeviceError
        If the tensors are on several devices.
    TypeError
        If an input is not of real numbers.

    Notes
    -----
    Differentiable to any order.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.relu(xgrad.asarray([-1.0, 2.0]))
    Tensor([0., 2.])
    """
    return _relu(xp, x)


@derivative(
    lambda g, xp, x, min, max: xp.where(_inside(xp, x, min, max), g, 0),
    lambda g, xp, x, min, max: xp.where((x < min) & (True if max is None else min < max), g, 0),
    lambda g, xp, x, min, max: xp.where(
        (x > max) | (False if min is None else (x < min) & (min >= max)), g, 0
    ),
    kind=INTEGER,
    highest=FLOATING,
    broadcasts=True,
)
def _clip(xp: Any, x: Any, min: Any = None, max: Any = None, /) -> Any:
    x = x if min is None else xp.maximum(x, min)
    return xp.positive(x) if max is None else xp.minimum(x, max)


def _inside(xp: Any, x: Any, min: Any, max: Any) -> Any:
    above = xp.ones_like(x, dtype=xp.bool) if min is None else x >= min
    return above if max is None else above & (x <= max)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Tensor:
    """Limit elements to an interval.

    Parameters
    ----------
    x : Tensor
        Numbers, of any shape.
    min, max : Tensor or scalar, optional
        The ends, of shapes that broadcast with `x`; None where there is none.
        Where `min` is the larger, the result is `max`.

    Returns
    -------
    Tensor
        Of the shape that all broadcast to, and of the dtype of `x`; float32 where `x` is of
        integers and an end is not.

    Raises
    ------
    ValueError
        If the shapes do not broadcast.
    TypeError
        If an input is complex.

    Notes
    -----
    At an end exactly, the gradient goes to `x`.

    Python array API standard, elementwise functions: ``clip``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.clip(xgrad.asarray([-2.0, 0.5, 2.0]), -1.0, 1.0)
    Tensor([-1. ,  0.5,  1. ])
    """
    x = x if type(x) in SCALARS else as_tensor("clip", "x", x)
    out = _clip(x, min, max)
    narrower = type(x) not in SCALARS and out.dtype.kind == x.dtype.kind
    return astype(out, x.dtype, copy=False) if narrower else out
