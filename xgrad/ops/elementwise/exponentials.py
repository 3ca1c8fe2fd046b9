"""Exponentials, logarithms, powers and roots."""

from __future__ import annotations

import math
from typing import Any

from xgrad.core.arguments import ArrayLike
from xgrad.core.dtypes import FLOATING, INTEGER, SCALARS, is_complex
from xgrad.ops.declare import derivative, elementwise

__all__ = ["exp", "expm1", "log", "log1p", "log2", "log10", "pow", "sqrt"]


def _pow_base(g: Any, xp: Any, x1: Any, x2: Any) -> Any:
    if type(x2) not in SCALARS:
        x1 = xp.where((x1 == 0) & (x2 == 0), 1, x1)  # avoids 0 * inf: the derivative is 0
        return g * (x2 * x1 ** (x2 - 1))
    if x2 == 0:
        return xp.zeros_like(g)
    if x2 == 2:
        return g * (2 * x1)  # on a GPU, pow(x1, 1) is rounded
    return g * (x2 * xp.pow(x1, x2 - 1))


def _pow_exponent(g: Any, xp: Any, x1: Any, x2: Any, out: Any) -> Any:
    x1 = xp.full_like(x2, x1) if type(x1) in SCALARS else x1
    limit = x1 == 0 if is_complex(out.dtype) else (x1 == 0) & (x2 >= 0)
    return g * (out * xp.log(xp.where(limit, 1, x1)))  # avoids 0 * -inf: the limit is 0


@elementwise(lambda g, out: g * out, lowest=FLOATING, autocast="wide")
def exp(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return e to the power of each element.

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
    .. math:: y = e^x

    - Gradient for `x`: :math:`\bar y\, y`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``exp``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.exp(xgrad.asarray([0.0, 1.0]))
    Tensor([1.      , 2.718282])
    """
    return xp.exp(x)


@derivative(
    lambda g, out: g * (out + 1),
    lowest=FLOATING,
    native_of_reals=True,
    broadcasts=True,
    autocast="wide",
)
def expm1(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return exp(x) - 1, accurate near 0.

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
    .. math:: y = e^x - 1

    - Gradient for `x`: :math:`\bar y\,(y + 1)`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``expm1``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.expm1(xgrad.asarray([0.0, 1e-9]))
    Tensor([0.e+00, 1.e-09])
    """
    # The standard's results: libraries multiply infinite and NaN parts by 0, and may return a real
    # part of -0 instead of 0.
    if not is_complex(x.dtype):
        return xp.expm1(x)
    out = xp.where(xp.isfinite(x), xp.expm1(x), xp.exp(x) + complex(-1.0, -0.0))
    return out - complex(-0.0, 0.0)


@elementwise(lambda g, x: g / x, lowest=FLOATING, autocast="wide")
def log(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the natural logarithm.

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
    .. math:: y = \ln(x)

    - Gradient for `x`: :math:`\bar y / x`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``log``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.log(xgrad.asarray([1.0, 10.0]))
    Tensor([0.       , 2.3025851])
    """
    return xp.log(x)


@elementwise(lambda g, x: g / (1 + x), lowest=FLOATING, autocast="wide")
def log1p(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return log(1 + x), accurate near 0.

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
    .. math:: y = \ln(1 + x)

    - Gradient for `x`: :math:`\bar y / (1 + x)`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``log1p``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.log1p(xgrad.asarray([0.0, 1e-9]))
    Tensor([0.e+00, 1.e-09])
    """
    return xp.log1p(x)


@elementwise(lambda g, x: g / (x * math.log(2)), lowest=FLOATING, autocast="wide")
def log2(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the logarithm to base 2.

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
    .. math:: y = \log_2(x)

    - Gradient for `x`: :math:`\frac{\bar y}{x \ln(2)}`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``log2``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.log2(xgrad.asarray([1.0, 8.0]))
    Tensor([0., 3.])
    """
    return xp.log2(x)


@elementwise(lambda g, x: g / (x * math.log(10)), lowest=FLOATING, autocast="wide")
def log10(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the logarithm to base 10.

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
    .. math:: y = \log_{10}(x)

    - Gradient for `x`: :math:`\frac{\bar y}{x \ln(10)}`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``log10``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.log10(xgrad.asarray([1.0, 10.0]))
    Tensor([0., 1.])
    """
    return xp.log10(x)


@derivative(_pow_base, _pow_exponent, lowest=INTEGER, broadcasts=True, autocast="wide")
def pow(xp: Any, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    r"""Raise `x1` to the power of `x2`.

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
    .. math:: y = x_1^{x_2}

    - Gradient for `x1`: :math:`\bar y\, x_2\, x_1^{x_2 - 1}`
    - Gradient for `x2`: :math:`\bar y\, y \ln(x_1)`

    Differentiable to any order. At a base of 0, the derivative by the exponent is 0, or infinite
    where the power is infinite.

    Python array API standard, elementwise functions: ``pow``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.pow(xgrad.asarray([1.0, 2.0]), 3)
    Tensor([1., 8.])
    """
    return x1**x2 if type(x1) in SCALARS or type(x2) in SCALARS else xp.pow(x1, x2)


@elementwise(lambda g, out: g / (2 * out), lowest=FLOATING)
def sqrt(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the square root.

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
    .. math:: y = \sqrt{x}

    - Gradient for `x`: :math:`\frac{\bar y}{2 y}`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``sqrt``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.sqrt(xgrad.asarray([1.0, 4.0]))
    Tensor([1., 2.])
    """
    return xp.sqrt(x)
