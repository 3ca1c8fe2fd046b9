"""Elementwise arithmetic: sums, products, quotients, squares, maxima and minima."""

from __future__ import annotations

from typing import Any

from xgrad.backend.overridable import overridable
from xgrad.core.arguments import ArrayLike, as_tensor
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
    """Return an operand's gradient: all of `g` if it wins or one is NaN, half on a tie, else 0."""
    return xp.where(ties, g / 2, xp.where(loses, 0, g))


@overridable
def _relu(xp: Any, x: Any) -> Any:
    return xp.maximum(x, 0)


@derivative(None, None, lowest=INTEGER, highest=FLOATING)
def _floor_quotient(xp: Any, x2: Any, x1: Any, /) -> Any:
    """Return the multiple of the divisor that `remainder` subtracts.

    It is -1 for a finite dividend and an infinite divisor of the other sign.
    """
    return xp.floor_divide(x1, x2)


@elementwise(lambda g: g, lambda g: g, of_bools="logical_or")
def add(xp: Any, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    r"""Add element by element; for two boolean inputs, logical OR, as in NumPy and PyTorch.

    Parameters
    ----------
    x1, x2 : Tensor
        Numbers or bools, of shapes that broadcast, on one device. Either may be a Python scalar,
        which does not promote the other.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to.

    Raises
    ------
    DeviceError
        If the tensors are on different devices.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    .. math:: y = x_1 + x_2

    - Gradient for `x1`: :math:`\bar y`
    - Gradient for `x2`: :math:`\bar y`

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
def subtract(xp: Any, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    r"""Subtract `x2` from `x1`.

    Parameters
    ----------
    x1, x2 : Tensor
        Numbers, of shapes that broadcast, on one device; bools count as integers. Either may be a
        Python scalar, which does not promote the other.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to.

    Raises
    ------
    DeviceError
        If the tensors are on different devices.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    .. math:: y = x_1 - x_2

    - Gradient for `x1`: :math:`\bar y`
    - Gradient for `x2`: :math:`-\bar y`

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
def multiply(xp: Any, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    r"""Multiply element by element; for two boolean inputs, logical AND, as in NumPy and PyTorch.

    Parameters
    ----------
    x1, x2 : Tensor
        Numbers or bools, of shapes that broadcast, on one device. Either may be a Python scalar,
        which does not promote the other.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to.

    Raises
    ------
    DeviceError
        If the tensors are on different devices.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    .. math:: y = x_1 x_2

    - Gradient for `x1`: :math:`\bar y\, x_2`
    - Gradient for `x2`: :math:`\bar y\, x_1`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``multiply``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.multiply(xgrad.asarray([1.0, 2.0]), 3.0)
    Tensor([3., 6.])
    """
    return xp.multiply(x1, x2)


@elementwise(lambda g, x2: g / x2, lambda g, x2, out: -(g * out) / x2, lowest=FLOATING)
def divide(xp: Any, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    r"""Divide `x1` by `x2`.

    Parameters
    ----------
    x1, x2 : Tensor
        Numbers, of shapes that broadcast, on one device; integers count as float32. Either may be a
        Python scalar, which does not promote the other.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to.

    Raises
    ------
    DeviceError
        If the tensors are on different devices.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    .. math:: y = \frac{x_1}{x_2}

    - Gradient for `x1`: :math:`\bar y / x_2`
    - Gradient for `x2`: :math:`-\bar y\, y / x_2`

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
def negative(xp: Any, x: ArrayLike, /) -> Any:
    r"""Negate each element.

    Parameters
    ----------
    x : Tensor
        Numbers, of any shape.

    Returns
    -------
    Tensor
        Same shape as `x`.

    Raises
    ------
    TypeError
        If the dtype of `x` is bool: write ~x, or cast first.

    Notes
    -----
    .. math:: y = -x

    - Gradient for `x`: :math:`-\bar y`

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
def positive(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the elements unchanged.

    Parameters
    ----------
    x : Tensor
        Numbers, of any shape; bools count as integers.

    Returns
    -------
    Tensor
        Same shape as `x`.

    Notes
    -----
    .. math:: y = x

    - Gradient for `x`: :math:`\bar y`

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
def abs(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the absolute value; the derivative at 0 is 0.

    Parameters
    ----------
    x : Tensor
        Numbers, of any shape; bools count as integers.

    Returns
    -------
    Tensor
        Same shape as `x`.

    Notes
    -----
    .. math:: y = |x|

    - Gradient for `x`: :math:`\bar y\, \operatorname{sign}(x)`, for complex numbers
      :math:`\bar y\, x / |x|`

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
def square(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the square.

    Parameters
    ----------
    x : Tensor
        Numbers, of any shape; bools count as integers.

    Returns
    -------
    Tensor
        Same shape as `x`.

    Notes
    -----
    .. math:: y = x^2

    - Gradient for `x`: :math:`2\, \bar y\, x`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``square``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.square(xgrad.asarray([1.0, -2.0]))
    Tensor([1., 4.])
    """
    return xp.square(x)


@elementwise(lambda g, out: -g * out * out, lowest=FLOATING, autocast="wide")
def reciprocal(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the reciprocal, ``1 / x``.

    Parameters
    ----------
    x : Tensor
        Numbers, of any shape; integers count as float32.

    Returns
    -------
    Tensor
        Same shape as `x`.

    Notes
    -----
    .. math:: y = \frac{1}{x}

    - Gradient for `x`: :math:`-\bar y\, y^2`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``reciprocal``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.reciprocal(xgrad.asarray([1.0, -2.0]))
    Tensor([ 1. , -0.5])
    """
    return xp.reciprocal(x)


@derivative(None, None, lowest=INTEGER, highest=FLOATING, broadcasts=True)
def floor_divide(xp: Any, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    r"""Divide `x1` by `x2` and round towards minus infinity.

    Parameters
    ----------
    x1, x2 : Tensor
        Real numbers, of shapes that broadcast, on one device; bools count as integers. Either may
        be a Python scalar, which does not promote the other.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to.

    Raises
    ------
    DeviceError
        If the tensors are on different devices.
    ValueError
        If the shapes do not broadcast.
    TypeError
        If an input is complex.

    Notes
    -----
    .. math:: y = \lfloor x_1 / x_2 \rfloor

    Not differentiable: no gradient flows.

    Python array API standard, elementwise functions: ``floor_divide``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.floor_divide(xgrad.asarray([5, -5]), 3)
    Tensor([ 1, -2])
    """
    # For infinite operands, the standard requires the quotient; libraries follow Python and return
    # NaN or -1.
    out = xp.floor_divide(x1, x2)
    if not xp.isdtype(out.dtype, "real floating"):
        return out
    x1, x2 = as_arrays(xp, x1, x2)
    return xp.where(xp.isinf(x1) | xp.isinf(x2), x1 / x2, out)


@derivative(
    lambda g: g,
    lambda g, xp, x1, x2: -g * call_op(_floor_quotient, xp, x2, x1),
    lowest=INTEGER,
    highest=FLOATING,
    broadcasts=True,
)
def remainder(xp: Any, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    r"""Return the remainder of `floor_divide`, with the sign of the divisor.

    Parameters
    ----------
    x1, x2 : Tensor
        Real numbers, of shapes that broadcast, on one device; bools count as integers. Either may
        be a Python scalar, which does not promote the other.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to.

    Raises
    ------
    DeviceError
        If the tensors are on different devices.
    ValueError
        If the shapes do not broadcast.
    TypeError
        If an input is complex.

    Notes
    -----
    .. math:: y = x_1 - x_2 \lfloor x_1 / x_2 \rfloor

    - Gradient for `x1`: :math:`\bar y`
    - Gradient for `x2`: :math:`-\bar y\, \lfloor x_1 / x_2 \rfloor`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``remainder``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.remainder(xgrad.asarray([5, -5]), 3)
    Tensor([2, 1])
    """
    # The standard defines the remainder for an infinite divisor, where CuPy returns NaN, and gives
    # a remainder of 0 the sign of the divisor.
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
def maximum(xp: Any, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    r"""Return the larger of two elements; on ties, both get half of the gradient.

    Parameters
    ----------
    x1, x2 : Tensor
        Real numbers, of shapes that broadcast, on one device; bools count as integers. Either may
        be a Python scalar, which does not promote the other.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to.

    Raises
    ------
    DeviceError
        If the tensors are on different devices.
    ValueError
        If the shapes do not broadcast.
    TypeError
        If an input is complex.

    Notes
    -----
    .. math:: y = \max(x_1, x_2)

    - Gradient for `x1`: :math:`\bar y\, [x_1 > x_2]`, on ties :math:`\bar y / 2`
    - Gradient for `x2`: :math:`\bar y\, [x_2 > x_1]`, on ties :math:`\bar y / 2`

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
def minimum(xp: Any, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    r"""Return the smaller of two elements; on ties, both get half of the gradient.

    Parameters
    ----------
    x1, x2 : Tensor
        Real numbers, of shapes that broadcast, on one device; bools count as integers. Either may
        be a Python scalar, which does not promote the other.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to.

    Raises
    ------
    DeviceError
        If the tensors are on different devices.
    ValueError
        If the shapes do not broadcast.
    TypeError
        If an input is complex.

    Notes
    -----
    .. math:: y = \min(x_1, x_2)

    - Gradient for `x1`: :math:`\bar y\, [x_1 < x_2]`, on ties :math:`\bar y / 2`
    - Gradient for `x2`: :math:`\bar y\, [x_2 < x_1]`, on ties :math:`\bar y / 2`

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
    lowest=INTEGER,
    highest=FLOATING,
    broadcasts=True,
)
def relu(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return positive elements unchanged and 0 for the others; the derivative at 0 is 0.

    Parameters
    ----------
    x : Tensor
        Real numbers, of any shape; bools count as integers.

    Returns
    -------
    Tensor
        Same shape as `x`.

    Raises
    ------
    TypeError
        If an input is complex.

    Notes
    -----
    .. math:: y = \max(x, 0)

    - Gradient for `x`: :math:`\bar y\, [x > 0]`

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
    lowest=INTEGER,
    highest=FLOATING,
    broadcasts=True,
)
def _clip(xp: Any, x: Any, min: Any = None, max: Any = None, /) -> Any:
    x = x if min is None else xp.maximum(x, min)
    return xp.positive(x) if max is None else xp.minimum(x, max)


def _inside(xp: Any, x: Any, min: Any, max: Any) -> Any:
    above = xp.ones_like(x, dtype=xp.bool) if min is None else x >= min
    return above if max is None else above & (x <= max)


def clip(x: ArrayLike, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Tensor:
    r"""Limit elements to an interval.

    Parameters
    ----------
    x : Tensor
        Numbers, of any shape.
    min, max : Tensor or scalar, optional
        The bounds, of shapes that broadcast with `x`; None for no bound. Where `min` is greater
        than `max`, the result is `max`.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to and of the dtype of `x`; float32 where `x` is
        integer and a bound is not.

    Raises
    ------
    ValueError
        If the shapes do not broadcast.
    TypeError
        If an input is complex.

    Notes
    -----
    .. math:: y = \min(\max(x, \mathrm{min}), \mathrm{max})

    - Gradient for `x`: :math:`\bar y\, [\mathrm{min} \le x \le \mathrm{max}]`
    - Gradient for `min`: :math:`\bar y\, [x < \mathrm{min} < \mathrm{max}]`
    - Gradient for `max`: :math:`\bar y\, [x > \mathrm{max}]`, and :math:`\bar y` where
      :math:`x < \mathrm{min}` and :math:`\mathrm{min} \ge \mathrm{max}`

    Exactly at a bound, the gradient goes to `x`.

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
