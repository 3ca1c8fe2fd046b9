"""Division that truncates: `fmod`, and the quotient to which it belongs."""

from __future__ import annotations

from typing import Any

from xgrad.core.arguments import ArrayLike
from xgrad.core.dtypes import FLOATING, INTEGER
from xgrad.ops.declare import as_arrays, call_op, derivative
from xgrad.ops.elementwise import remainder

__all__ = ["fmod"]


@derivative(
    lambda g, xp: xp.zeros_like(g),
    lambda g, xp: xp.zeros_like(g),
    lowest=INTEGER,
    highest=FLOATING,
    broadcasts=True,
)
def truncated_quotient(xp: Any, x1: Any, x2: Any, /) -> Any:
    r"""Return ``x1 / x2`` rounded towards zero; for integers, an integer.

    Parameters
    ----------
    x1, x2 : Tensor
        Real numbers, of shapes that broadcast; bools count as integers. Either may be a Python
        scalar, which does not promote the other.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to.

    Notes
    -----
    .. math:: y = \operatorname{trunc}(x_1 / x_2)

    - Gradient for `x1`: :math:`0`
    - Gradient for `x2`: :math:`0`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.asarray([7, -7]).div(2, rounding_mode="trunc")
    Tensor([ 3, -3])
    """
    x1, x2 = as_arrays(xp, x1, x2)
    if xp.isdtype(x1.dtype, "real floating"):
        return xp.trunc(x1 / x2)
    quotient = xp.floor_divide(x1, x2)
    inexact = (xp.remainder(x1, x2) != 0) & ((x1 < 0) != (x2 < 0))
    return quotient + xp.astype(inexact, quotient.dtype)


@derivative(
    lambda g: g,
    lambda g, xp, x1, x2: -g * call_op(truncated_quotient, xp, x1, x2),
    lowest=INTEGER,
    highest=FLOATING,
    broadcasts=True,
)
def fmod(xp: Any, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    r"""Return the remainder of a division rounded towards zero, with the sign of the dividend.

    Parameters
    ----------
    x1, x2 : Tensor
        Real numbers, of shapes that broadcast, on one device; bools count as integers. Either may
        be a Python scalar, which does not promote the other.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to. Of floats and 0 it is NaN; of integers and 0 it
        is what the device returns.

    Raises
    ------
    DeviceError
        If the tensors are on different devices.
    ValueError
        If the shapes do not broadcast.
    TypeError
        If an input is complex.

    See Also
    --------
    remainder : Has the sign of the divisor.

    Notes
    -----
    .. math:: y = x_1 - x_2 \operatorname{trunc}(x_1 / x_2)

    - Gradient for `x1`: :math:`\bar y`
    - Gradient for `x2`: :math:`-\bar y \operatorname{trunc}(x_1 / x_2)`

    Differentiable to any order; exact. Like ``numpy.fmod`` and ``torch.fmod``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.fmod(xgrad.asarray([5.5, -5.5]), 2.0)
    Tensor([ 1.5, -1.5])
    >>> xgrad.remainder(xgrad.asarray([5.5, -5.5]), 2.0)
    Tensor([1.5, 0.5])
    """
    x1, x2 = as_arrays(xp, x1, x2)
    if xp.isdtype(x1.dtype, "real floating"):
        # the op, not the library's function, which need not be exact, or take infinite divisors
        return xp.copysign(call_op(remainder, xp, xp.abs(x1), xp.abs(x2)), x1)
    out = xp.remainder(x1, x2)
    return xp.where((out != 0) & ((x1 < 0) != (x2 < 0)), out - x2, out)
