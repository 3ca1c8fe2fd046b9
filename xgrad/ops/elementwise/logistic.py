"""The logistic function, `softplus` and `logaddexp`."""

from __future__ import annotations

from typing import Any

from xgrad.backend.overridable import overridable
from xgrad.core.arguments import ArrayLike
from xgrad.core.dtypes import FLOATING, is_complex
from xgrad.ops.declare import as_arrays, call_op, derivative

__all__ = ["logaddexp", "sigmoid", "softplus"]


def _logistic_weight(g: Any, xp: Any, x: Any) -> Any:
    """Multiply `g` by the first exponential's share of ``exp(x1) + exp(x2)``.

    `x` is the difference of the exponents, ``x1 - x2``.
    """
    return g * call_op(sigmoid, xp, x)


@derivative(
    lambda g, xp, x1, x2: _logistic_weight(g, xp, x1 - x2),
    lambda g, xp, x1, x2: _logistic_weight(g, xp, x2 - x1),
    lowest=FLOATING,
    broadcasts=True,
)
def logaddexp(xp: Any, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    r"""Return log(exp(x1) + exp(x2)) without overflow.

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
    .. math:: y = \ln(e^{x_1} + e^{x_2})

    - Gradient for `x1`: :math:`\bar y\, \sigma(x_1 - x_2)`
    - Gradient for `x2`: :math:`\bar y\, \sigma(x_2 - x_1)`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``logaddexp``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.logaddexp(xgrad.asarray([1e4, 0.0]), 1e4)
    Tensor([10000.693, 10000.   ])
    """
    # The standard defines it for real numbers. For complex ones, the exponential with the larger
    # real part is factored out.
    x1, x2 = as_arrays(xp, x1, x2)
    if not is_complex(x1.dtype):
        return xp.logaddexp(x1, x2)
    first = xp.real(x1) >= xp.real(x2)
    top, other = xp.where(first, x1, x2), xp.where(first, x2, x1)
    return top + xp.log1p(xp.exp(other - xp.where(xp.isfinite(top), top, 0)))


@derivative(
    overridable(lambda xp, g, out: g * (out * (1 - out)), "sigmoid_gradient"),
    lowest=FLOATING,
    broadcasts=True,
)
def sigmoid(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return ``1 / (1 + exp(-x))`` without overflow; it is between 0 and 1 for real numbers.

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
    .. math:: y = \sigma(x) = \frac{1}{1 + e^{-x}}

    - Gradient for `x`: :math:`\bar y\, y\,(1 - y)`

    Differentiable to any order.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.sigmoid(xgrad.asarray([-1e4, 0.0, 1e4]))
    Tensor([0. , 0.5, 1. ])
    """
    if is_complex(x.dtype):
        left = xp.real(x) < 0
        small = xp.exp(xp.where(left, x, -x))
        return xp.where(left, small, 1) / (1 + small)
    small = xp.exp(-xp.abs(x))
    return xp.where(x < 0, small, 1) / (1 + small)


@derivative(
    overridable(lambda xp, g, out: g * -xp.expm1(-out), "softplus_gradient"),
    lowest=FLOATING,
    highest=FLOATING,
    broadcasts=True,
    autocast="wide",
)
def softplus(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return ``log(1 + exp(x))`` without overflow; it is positive.

    Parameters
    ----------
    x : Tensor
        Real numbers, of any shape; integers count as float32.

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
    .. math:: y = \ln(1 + e^x)

    - Gradient for `x`: :math:`\bar y\,(1 - e^{-y}) = \bar y\, \sigma(x)`

    Differentiable to any order.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.softplus(xgrad.asarray([-1e4, 0.0, 1e4]))
    Tensor([0.000000e+00, 6.931472e-01, 1.000000e+04])
    """
    return xp.maximum(x, 0) + xp.log1p(xp.exp(-xp.abs(x)))
