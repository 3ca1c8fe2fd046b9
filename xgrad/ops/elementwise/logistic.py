"""The logistic function, and logarithms of sums of exponentials."""

from __future__ import annotations

from typing import Any

from xgrad.backend.overridable import overridable
from xgrad.core.dtypes import FLOATING, is_complex
from xgrad.ops.declare import as_arrays, call_op, derivative

__all__ = ["logaddexp", "sigmoid", "softplus"]


def _logistic_weight(g: Any, xp: Any, x: Any) -> Any:
    """The share of the first of two exponentials in their sum, given the difference of the
    exponents.
    """
    return g * call_op(sigmoid, xp, x)


@derivative(
    lambda g, xp, x1, x2: _logistic_weight(g, xp, x1 - x2),
    lambda g, xp, x1, x2: _logistic_weight(g, xp, x2 - x1),
    kind=FLOATING,
    broadcasts=True,
)
def logaddexp(xp: Any, x1: Any, x2: Any, /) -> Any:
    """Return log(exp(x1) + exp(x2)), without overflow.

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

    Python array API standard, elementwise functions: ``logaddexp``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.logaddexp(xgrad.asarray([1e4, 0.0]), 1e4)
    Tensor([10000.693, 10000.   ])
    """
    # The standard's is for real numbers; of complex ones the larger real part is taken out.
    x1, x2 = as_arrays(xp, x1, x2)
    if not is_complex(x1.dtype):
        return xp.logaddexp(x1, x2)
    first = xp.real(x1) >= xp.real(x2)
    top, other = xp.where(first, x1, x2), xp.where(first, x2, x1)
    return top + xp.log1p(xp.exp(other - xp.where(xp.isfinite(top), top, 0)))


@derivative(
    overridable(lambda xp, g, out: g * (out * (1 - out)), "sigmoid_gradient"),
    kind=FLOATING,
    broadcasts=True,
)
def sigmoid(xp: Any, x: Any, /) -> Any:
    """Return ``1 / (1 + exp(-x))``, of real numbers between 0 and 1, without overflow.

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
    kind=FLOATING,
    highest=FLOATING,
    broadcasts=True,
)
def softplus(xp: Any, x: Any, /) -> Any:
    """Return ``log(1 + exp(x))``, which is positive, without overflow.

    Parameters
    ----------
    x : Tensor
        Of any shape, on one device; real numbers; integers count as float32.

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
    >>> xgrad.softplus(xgrad.asarray([-1e4, 0.0, 1e4]))
    Tensor([0.00...e+00, 6.93...e-01, 1.00...e+04])
    """
    return xp.maximum(x, 0) + xp.log1p(xp.exp(-xp.abs(x)))
