"""Signs and rounding: functions whose derivative is 0 where it exists, and `copysign`."""

from __future__ import annotations

from typing import Any

from xgrad.core.arguments import ArrayLike
from xgrad.core.dtypes import FLOATING, is_complex
from xgrad.ops.declare import elementwise

__all__ = ["ceil", "copysign", "floor", "nextafter", "round", "sign", "signbit", "trunc"]


def _copysign_rule(g: Any, xp: Any, x1: Any, out: Any) -> Any:
    flipped = (x1 < 0) != (out < 0)
    return xp.where(x1 == 0, 0, xp.where(flipped, -g, g))


def _sign_rule(g: Any, xp: Any, x: Any, out: Any) -> Any:
    """Return the gradient of the sign: along the unit circle if complex, 0 if real."""
    if not is_complex(g.dtype):
        return xp.zeros_like(g)
    size = xp.abs(x)
    across = g - out * xp.real(xp.conj(out) * g)
    return xp.where(size == 0, 0, across / xp.where(size == 0, 1, size))


@elementwise(_sign_rule, holomorphic=False)
def sign(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the sign: -1, 0 or 1; for a complex number, ``x / abs(x)``.

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
    .. math:: y = \begin{cases} x / |x| & \text{if } x \ne 0 \\ 0 & \text{if } x = 0 \end{cases}

    - Gradient for `x`: :math:`0` for real numbers, for complex numbers
      :math:`\frac{\bar y - y \operatorname{Re}(\overline{y}\, \bar y)}{|x|}`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``sign``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.sign(xgrad.asarray([-2.0, 0.0, 3.0]))
    Tensor([-1.,  0.,  1.])
    """
    return xp.sign(x)


@elementwise(lambda g, xp: xp.zeros_like(g), highest=FLOATING)
def floor(xp: Any, x: ArrayLike, /) -> Any:
    r"""Round towards minus infinity.

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
    .. math:: y = \lfloor x \rfloor

    - Gradient for `x`: :math:`0`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``floor``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.floor(xgrad.asarray([-1.5, 1.5]))
    Tensor([-2.,  1.])
    """
    return xp.floor(x)


@elementwise(lambda g, xp: xp.zeros_like(g), highest=FLOATING)
def ceil(xp: Any, x: ArrayLike, /) -> Any:
    r"""Round towards infinity.

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
    .. math:: y = \lceil x \rceil

    - Gradient for `x`: :math:`0`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``ceil``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.ceil(xgrad.asarray([-1.5, 1.5]))
    Tensor([-1.,  2.])
    """
    return xp.ceil(x)


@elementwise(lambda g, xp: xp.zeros_like(g), highest=FLOATING)
def trunc(xp: Any, x: ArrayLike, /) -> Any:
    r"""Round towards zero.

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
    .. math:: y = \operatorname{sign}(x) \lfloor |x| \rfloor

    - Gradient for `x`: :math:`0`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``trunc``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.trunc(xgrad.asarray([-1.5, 1.5]))
    Tensor([-1.,  1.])
    """
    return xp.trunc(x)


@elementwise(lambda g, xp: xp.zeros_like(g))
def round(xp: Any, x: ArrayLike, /) -> Any:
    r"""Round to the nearest integer; halves round to the nearest even integer.

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
    .. math:: y = \operatorname{round}(x)

    - Gradient for `x`: :math:`0`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``round``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.round(xgrad.asarray([0.5, 1.5]))
    Tensor([0., 2.])
    """
    return xp.round(x)


@elementwise(_copysign_rule, lambda g, xp: xp.zeros_like(g), lowest=FLOATING, highest=FLOATING)
def copysign(xp: Any, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    r"""Return the magnitude of `x1` with the sign of `x2`; the derivative at ``x1 == 0`` is 0.

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
    .. math:: y = |x_1| \operatorname{sign}(x_2)

    - Gradient for `x1`: :math:`\bar y\, \operatorname{sign}(x_1) \operatorname{sign}(x_2)`
    - Gradient for `x2`: :math:`0`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``copysign``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.copysign(xgrad.asarray([1.0, -2.0]), -0.0)
    Tensor([-1., -2.])
    """
    return xp.copysign(x1, x2)


@elementwise(None, None, lowest=FLOATING, highest=FLOATING)
def nextafter(xp: Any, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """Return the next representable number after `x1` in the direction of `x2`.

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
    Not differentiable: no gradient flows.

    Python array API standard, elementwise functions: ``nextafter``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nextafter(xgrad.asarray([1.0]), 2.0)
    Tensor([1.0000001])
    """
    return xp.nextafter(x1, x2)


@elementwise(None, lowest=FLOATING, highest=FLOATING)
def signbit(xp: Any, x: ArrayLike, /) -> Any:
    """Return whether the sign bit is set, as for negative numbers and -0.

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
    Not differentiable: no gradient flows.

    Python array API standard, elementwise functions: ``signbit``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.signbit(xgrad.asarray([-0.0, 0.0]))
    Tensor([ True, False])
    """
    return xp.signbit(x)
