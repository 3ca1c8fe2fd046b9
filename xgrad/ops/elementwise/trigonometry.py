"""Trigonometric functions, in radians, and hyperbolic functions."""

from __future__ import annotations

from typing import Any

from xgrad.backend.overridable import overridable
from xgrad.core.arguments import ArrayLike
from xgrad.core.dtypes import FLOATING, is_complex
from xgrad.ops.declare import derivative, elementwise

__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cos",
    "cosh",
    "hypot",
    "sin",
    "sinh",
    "tan",
    "tanh",
]


def _nonzero_norm(xp: Any, distance: Any) -> Any:
    """Return a distance to divide by: 1 instead of 0, so that derivatives at the origin are 0."""
    return xp.where(distance == 0, 1, distance)


def _atan2_partial(g: Any, xp: Any, x: Any, x1: Any, x2: Any) -> Any:
    """Return the gradient of the angle by a coordinate: `g` times `x` over the squared distance."""
    distance = _nonzero_norm(xp, xp.hypot(x1, x2))
    return g * (x / distance / distance)


@elementwise(
    lambda g, xp, x1, out: g * (x1 / _nonzero_norm(xp, out)),
    lambda g, xp, x2, out: g * (x2 / _nonzero_norm(xp, out)),
    lowest=FLOATING,
    highest=FLOATING,
)
def hypot(xp: Any, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    r"""Return sqrt(x1 * x1 + x2 * x2) without overflow; the derivative at the origin is 0.

    Parameters
    ----------
    x1, x2 : Tensor
        Real numbers, of shapes that broadcast, on one device; integers count as float32. Either may
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
    .. math:: y = \sqrt{x_1^2 + x_2^2}

    - Gradient for `x1`: :math:`\bar y\, x_1 / y`
    - Gradient for `x2`: :math:`\bar y\, x_2 / y`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``hypot``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.hypot(xgrad.asarray([3.0, 0.0]), 4.0)
    Tensor([5., 4.])
    """
    return xp.hypot(x1, x2)


@elementwise(lambda g, xp, x: g * xp.cos(x), lowest=FLOATING)
def sin(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the sine.

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
    .. math:: y = \sin(x)

    - Gradient for `x`: :math:`\bar y \cos(x)`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``sin``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.sin(xgrad.asarray([0.0, 1.0]))
    Tensor([0.      , 0.841471])
    """
    return xp.sin(x)


@elementwise(lambda g, xp, x: -g * xp.sin(x), lowest=FLOATING)
def cos(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the cosine.

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
    .. math:: y = \cos(x)

    - Gradient for `x`: :math:`-\bar y \sin(x)`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``cos``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.cos(xgrad.asarray([0.0, 1.0]))
    Tensor([1.       , 0.5403023])
    """
    return xp.cos(x)


@elementwise(lambda g, out: g * (1 + out * out), lowest=FLOATING, autocast="wide")
def tan(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the tangent.

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
    .. math:: y = \tan(x)

    - Gradient for `x`: :math:`\bar y\,(1 + y^2)`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``tan``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.tan(xgrad.asarray([0.0, 1.0]))
    Tensor([0.       , 1.5574077])
    """
    return xp.tan(x)


@elementwise(lambda g, xp, x: g / xp.sqrt(1 - x * x), lowest=FLOATING, autocast="wide")
def asin(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the arcsine, from -pi/2 to pi/2.

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
    .. math:: y = \arcsin(x)

    - Gradient for `x`: :math:`\frac{\bar y}{\sqrt{1 - x^2}}`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``asin``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.asin(xgrad.asarray([0.0, 1.0]))
    Tensor([0.       , 1.5707964])
    """
    return xp.asin(x)


@elementwise(lambda g, xp, x: -g / xp.sqrt(1 - x * x), lowest=FLOATING, autocast="wide")
def acos(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the arccosine, from 0 to pi.

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
    .. math:: y = \arccos(x)

    - Gradient for `x`: :math:`-\frac{\bar y}{\sqrt{1 - x^2}}`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``acos``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.acos(xgrad.asarray([1.0, 0.0]))
    Tensor([0.       , 1.5707964])
    """
    return xp.acos(x)


@elementwise(lambda g, x: g / (1 + x * x), lowest=FLOATING)
def atan(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the arctangent, from -pi/2 to pi/2.

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
    .. math:: y = \arctan(x)

    - Gradient for `x`: :math:`\frac{\bar y}{1 + x^2}`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``atan``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.atan(xgrad.asarray([0.0, 1.0]))
    Tensor([0.       , 0.7853982])
    """
    return xp.atan(x)


@elementwise(
    lambda g, xp, x1, x2: _atan2_partial(g, xp, x2, x1, x2),
    lambda g, xp, x1, x2: -_atan2_partial(g, xp, x1, x1, x2),
    lowest=FLOATING,
    highest=FLOATING,
)
def atan2(xp: Any, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    r"""Return the angle of the point (x2, x1), from -pi to pi; the derivative at the origin is 0.

    Parameters
    ----------
    x1, x2 : Tensor
        Real numbers, of shapes that broadcast, on one device; integers count as float32. Either may
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
    .. math:: y = \operatorname{arg}(x_2 + i\, x_1)

    - Gradient for `x1`: :math:`\bar y\, \frac{x_2}{x_1^2 + x_2^2}`
    - Gradient for `x2`: :math:`-\bar y\, \frac{x_1}{x_1^2 + x_2^2}`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``atan2``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.atan2(xgrad.asarray([0.0, 1.0]), -1.0)
    Tensor([3.1415927, 2.3561945])
    """
    return xp.atan2(x1, x2)


@elementwise(lambda g, xp, x: g * xp.cosh(x), lowest=FLOATING, autocast="wide")
def sinh(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the hyperbolic sine.

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
    .. math:: y = \sinh(x)

    - Gradient for `x`: :math:`\bar y \cosh(x)`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``sinh``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.sinh(xgrad.asarray([0.0, 1.0]))
    Tensor([0.       , 1.1752012])
    """
    return xp.sinh(x)


@elementwise(lambda g, xp, x: g * xp.sinh(x), lowest=FLOATING, autocast="wide")
def cosh(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the hyperbolic cosine.

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
    .. math:: y = \cosh(x)

    - Gradient for `x`: :math:`\bar y \sinh(x)`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``cosh``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.cosh(xgrad.asarray([0.0, 1.0]))
    Tensor([1.       , 1.5430807])
    """
    return xp.cosh(x)


@derivative(
    overridable(lambda xp, g, out: g * (1 - out * out), "tanh_gradient"),
    lowest=FLOATING,
    native_of_reals=True,
    broadcasts=True,
)
def tanh(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the hyperbolic tangent.

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
    .. math:: y = \tanh(x)

    - Gradient for `x`: :math:`\bar y\,(1 - y^2)`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``tanh``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.tanh(xgrad.asarray([0.0, 0.5]))
    Tensor([0.       , 0.4621172])
    """
    # The standard's result for an infinite real part; C's tanh returns an imaginary zero with the
    # sign of ``sin(2 * imag(x))``.
    if not is_complex(x.dtype):
        return xp.tanh(x)
    limit = xp.astype(xp.sign(xp.real(x)), x.dtype)
    limit = xp.where(xp.signbit(xp.imag(x)), xp.conj(limit), limit)
    return xp.where(xp.isinf(xp.real(x)), limit, xp.tanh(x))


@elementwise(lambda g, xp, x: g / xp.sqrt(1 + x * x), lowest=FLOATING)
def asinh(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the inverse hyperbolic sine.

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
    .. math:: y = \operatorname{arsinh}(x)

    - Gradient for `x`: :math:`\frac{\bar y}{\sqrt{1 + x^2}}`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``asinh``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.asinh(xgrad.asarray([0.0, 1.0]))
    Tensor([0.       , 0.8813736])
    """
    return xp.asinh(x)


@elementwise(lambda g, xp, x: g / (xp.sqrt(x - 1) * xp.sqrt(x + 1)), lowest=FLOATING)
def acosh(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the inverse hyperbolic cosine.

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
    .. math:: y = \operatorname{arcosh}(x)

    - Gradient for `x`: :math:`\frac{\bar y}{\sqrt{x - 1}\, \sqrt{x + 1}}`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``acosh``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.acosh(xgrad.asarray([1.0, 2.0]))
    Tensor([0.      , 1.316958])
    """
    return xp.acosh(x)


@elementwise(lambda g, x: g / (1 - x * x), lowest=FLOATING)
def atanh(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the inverse hyperbolic tangent.

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
    .. math:: y = \operatorname{artanh}(x)

    - Gradient for `x`: :math:`\frac{\bar y}{1 - x^2}`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``atanh``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.atanh(xgrad.asarray([0.0, 0.5]))
    Tensor([0.        , 0.54930615])
    """
    return xp.atanh(x)
