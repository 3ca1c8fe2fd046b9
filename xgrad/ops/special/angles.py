"""Functions of angles in degrees, and `sinc`."""

from __future__ import annotations

import math
from typing import Any

from xgrad.core.arguments import ArrayLike
from xgrad.core.dtypes import FLOATING
from xgrad.core.tensor import Tensor
from xgrad.ops.declare import call_op, derivative
from xgrad.ops.special.kernels import kernel

__all__ = ["cosdg", "cotdg", "radian", "sinc", "sindg", "tandg"]


def _sinc_series(xp: Any, t: Any, order: int) -> Any:
    """Return a derivative of sin(t) / t by its power series.

    For t up to order + 1, the omitted terms are negligible.
    """
    first = (order + 1) // 2
    total = xp.zeros_like(t)
    for k in range(first + 16 + 2 * order, first - 1, -1):
        total = total * (t * t) + (-1) ** k / ((2 * k + 1) * math.factorial(2 * k - order))
    return total * t if order % 2 else total


def _sinc_rule(g: Any, xp: Any, x: Any, order: int) -> Any:
    return g * call_op(_sinc, xp, x, order=order + 1)


@derivative(_sinc_rule, lowest=FLOATING, upcast=True)
def _sinc(xp: Any, x: Any, /, *, order: int) -> Any:
    r"""Return the derivative of sinc of the given order.

    It is computed by a recurrence; near 0, where the recurrence cancels, by the power series.

    Notes
    -----
    .. math:: y = \frac{d^n}{dx^n} \frac{\sin(\pi x)}{\pi x}

    - Gradient for `x`: :math:`\bar y`, times the derivative of order :math:`n + 1`
    """
    t = math.pi * x
    small = xp.abs(t) < order + 1 if order else t == 0
    away = xp.where(small, 1, t)
    values = xp.sin(away) / away
    for n in range(1, order + 1):  # Leibniz' rule for the product of t and sin(t) / t
        wave = xp.cos(away) if n % 2 else xp.sin(away)
        values = (wave * (1, 1, -1, -1)[n % 4] - n * values) / away
    near = _sinc_series(xp, xp.where(small, t, 0), order) if order else xp.ones_like(t)
    return math.pi**order * xp.where(small, near, values)


def sinc(x: Tensor, /) -> Tensor:
    r"""Return sin(pi x) / (pi x), which is 1 at 0.

    Parameters
    ----------
    x : Tensor
        Numbers, of any shape; integers count as float32.

    Returns
    -------
    Tensor
        Same shape as `x`; float32 stays float32.

    Notes
    -----
    .. math:: y = \frac{\sin(\pi x)}{\pi x}

    - Gradient for `x`: :math:`\bar y\, \frac{\cos(\pi x) - y}{x}`, 0 at 0

    Differentiable to any order, also at 0. Like ``scipy.special.sinc``.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.sinc(asarray([0.0, 0.5]))
    Tensor([1.        , 0.63661975])
    """
    return _sinc(x, order=0)


_DEGREE = math.pi / 180


@kernel(lambda g, xp, x: g * (xp.special.cosdg(x) * _DEGREE))
def sindg(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the sine of an angle in degrees, exact at multiples of 30 and 90.

    Parameters
    ----------
    x : Tensor
        Real numbers, of any shape; integers count as float32.

    Returns
    -------
    Tensor
        Same shape as `x`; float32 stays float32.

    Raises
    ------
    TypeError
        If an input is complex.
    ImportError
        If the kernel is SciPy's and SciPy is not installed.

    Notes
    -----
    .. math:: y = \sin\left(\frac{\pi x}{180}\right)

    - Gradient for `x`: :math:`\bar y\, \frac{\pi}{180} \cos\left(\frac{\pi x}{180}\right)`

    Differentiable to any order. Like ``scipy.special.sindg``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.sindg(asarray([30.0, 90.0]))
    Tensor([0.5, 1. ])
    """
    return xp.special.sindg(x)


@kernel(lambda g, xp, x: -g * (xp.special.sindg(x) * _DEGREE))
def cosdg(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the cosine of an angle in degrees, exact at multiples of 60 and 90.

    Parameters
    ----------
    x : Tensor
        Real numbers, of any shape; integers count as float32.

    Returns
    -------
    Tensor
        Same shape as `x`; float32 stays float32.

    Raises
    ------
    TypeError
        If an input is complex.
    ImportError
        If the kernel is SciPy's and SciPy is not installed.

    Notes
    -----
    .. math:: y = \cos\left(\frac{\pi x}{180}\right)

    - Gradient for `x`: :math:`-\bar y\, \frac{\pi}{180} \sin\left(\frac{\pi x}{180}\right)`

    Differentiable to any order. Like ``scipy.special.cosdg``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.cosdg(asarray([0.0, 60.0]))
    Tensor([1. , 0.5])
    """
    return xp.special.cosdg(x)


@kernel(lambda g, out: g * ((1 + out * out) * _DEGREE))
def tandg(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the tangent of an angle in degrees.

    Parameters
    ----------
    x : Tensor
        Real numbers, of any shape; integers count as float32.

    Returns
    -------
    Tensor
        Same shape as `x`; float32 stays float32.

    Raises
    ------
    TypeError
        If an input is complex.
    ImportError
        If the kernel is SciPy's and SciPy is not installed.

    Notes
    -----
    .. math:: y = \tan\left(\frac{\pi x}{180}\right)

    - Gradient for `x`: :math:`\bar y\, \frac{\pi}{180}\, (1 + y^2)`

    Differentiable to any order. Like ``scipy.special.tandg``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.tandg(asarray([0.0, 45.0]))
    Tensor([0., 1.])
    """
    return xp.special.tandg(x)


@kernel(lambda g, out: -g * ((1 + out * out) * _DEGREE))
def cotdg(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the cotangent of an angle in degrees.

    Parameters
    ----------
    x : Tensor
        Real numbers, of any shape; integers count as float32.

    Returns
    -------
    Tensor
        Same shape as `x`; float32 stays float32.

    Raises
    ------
    TypeError
        If an input is complex.
    ImportError
        If the kernel is SciPy's and SciPy is not installed.

    Notes
    -----
    .. math:: y = \cot\left(\frac{\pi x}{180}\right)

    - Gradient for `x`: :math:`-\bar y\, \frac{\pi}{180}\, (1 + y^2)`

    Differentiable to any order. Like ``scipy.special.cotdg``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.cotdg(asarray([45.0, 90.0]))
    Tensor([1., 0.])
    """
    return xp.special.cotdg(x)


@kernel(lambda g: g * _DEGREE, lambda g: g * (_DEGREE / 60), lambda g: g * (_DEGREE / 3600))
def radian(xp: Any, d: ArrayLike, m: ArrayLike, s: ArrayLike, /) -> Any:
    r"""Convert an angle from degrees, minutes and seconds to radians.

    Parameters
    ----------
    d, m, s : Tensor
        Real numbers, of shapes that broadcast, on one device; integers count as float32. Any may be
        a Python scalar, which does not promote the others.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to; float32 stays float32.

    Raises
    ------
    TypeError
        If an input is complex.
    ImportError
        If the kernel is SciPy's and SciPy is not installed.
    DeviceError
        If the tensors are on different devices.

    Notes
    -----
    .. math:: y = \frac{\pi}{180} \left(d + \frac{m}{60} + \frac{s}{3600}\right)

    - Gradient for `d`: :math:`\bar y\, \frac{\pi}{180}`
    - Gradient for `m`: :math:`\bar y\, \frac{\pi}{180 \cdot 60}`
    - Gradient for `s`: :math:`\bar y\, \frac{\pi}{180 \cdot 3600}`

    Differentiable to any order. Like ``scipy.special.radian``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.radian(asarray([90.0, 180.0]), 30.0, 0.0)
    Tensor([1.579523 , 3.1503193])
    """
    return xp.special.radian(d, m, s)
