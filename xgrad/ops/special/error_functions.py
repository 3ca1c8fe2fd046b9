"""The error function and the normal distribution: DLMF, chapter 7."""

from __future__ import annotations

import math
from typing import Any

from xgrad.core.arguments import ArrayLike
from xgrad.core.dtypes import COMPLEX
from xgrad.ops.special.kernels import kernel

__all__ = ["erf", "erfc", "erfcinv", "erfcx", "erfinv", "log_ndtr", "logit", "ndtr", "ndtri"]


def _log_ndtr_rule(g: Any, xp: Any, x: Any, out: Any) -> Any:
    """Return the gradient: the density divided by the distribution function.

    Far below 0 both vanish, so erfcx computes the quotient there; above 0 it would overflow.
    """
    below = xp.special.erfcx(xp.where(x > 0, 0, x) * -math.sqrt(0.5))
    return g * xp.where(
        x > 0, xp.exp(-(x * x) / 2 - out) / _ROOT_TAU, math.sqrt(2 / math.pi) / below
    )


def _erfcx_rule(g: Any, xp: Any, x: Any, out: Any) -> Any:
    """Return the gradient: `g` times 2 x erfcx(x) - 2 / sqrt(pi).

    For large x the difference cancels; there it is computed by a continued fraction of repeated
    integrals.
    """
    bound = 1.5 if x.dtype == xp.float32 else 3  # 36 terms are enough above it
    large = x > bound
    above, ratio = xp.where(large, x, bound), 0.0
    for k in range(36, 1, -1):
        ratio = 1 / (2 * above + 2 * k * ratio)
    return g * xp.where(large, -2 * ratio * out, 2 * x * out - 2 / _ROOT_PI)


_ROOT_PI, _ROOT_TAU = math.sqrt(math.pi), math.sqrt(2 * math.pi)


@kernel(lambda g, xp, x: g * (xp.exp(-(x * x)) * (2 / _ROOT_PI)), highest=COMPLEX)
def erf(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the error function.

    Parameters
    ----------
    x : Tensor
        Numbers, of any shape; integers count as float32.

    Returns
    -------
    Tensor
        Same shape as `x`; float32 stays float32.

    Raises
    ------
    ImportError
        If the kernel is SciPy's and SciPy is not installed.

    Notes
    -----
    .. math:: y = \frac{2}{\sqrt{\pi}} \int_0^x e^{-t^2}\, dt

    - Gradient for `x`: :math:`\bar y\, \frac{2}{\sqrt{\pi}}\, e^{-x^2}`

    Differentiable to any order. Like ``scipy.special.erf``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.erf(asarray([0.0, 1.0]))
    Tensor([0.       , 0.8427008])
    """
    return xp.special.erf(x)


@kernel(lambda g, xp, x: g * (xp.exp(-(x * x)) * (-2 / _ROOT_PI)))
def erfc(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return 1 - erf(x), accurate where it is small.

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
    .. math:: y = 1 - \operatorname{erf}(x)

    - Gradient for `x`: :math:`-\bar y\, \frac{2}{\sqrt{\pi}}\, e^{-x^2}`

    Differentiable to any order. Like ``scipy.special.erfc``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.erfc(asarray([0.0, 1.0]))
    Tensor([1.       , 0.1572992])
    """
    return xp.special.erfc(x)


@kernel(_erfcx_rule)
def erfcx(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return exp(x**2) * erfc(x).

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
    .. math:: y = e^{x^2} \operatorname{erfc}(x)

    - Gradient for `x`: :math:`\bar y \left(2 x y - \frac{2}{\sqrt{\pi}}\right)`

    Differentiable to any order. Like ``scipy.special.erfcx``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.erfcx(asarray([0.0, 1.0]))
    Tensor([1.        , 0.42758358])
    """
    return xp.special.erfcx(x)


@kernel(lambda g, xp, out: g * (xp.exp(out * out) * (_ROOT_PI / 2)), autocast="wide")
def erfinv(xp: Any, y: ArrayLike, /) -> Any:
    r"""Return the inverse of the error function.

    Parameters
    ----------
    y : Tensor
        Real numbers, of any shape; integers count as float32.

    Returns
    -------
    Tensor
        Same shape as `y`; float32 stays float32.

    Raises
    ------
    TypeError
        If an input is complex.
    ImportError
        If the kernel is SciPy's and SciPy is not installed.

    Notes
    -----
    .. math:: z = \operatorname{erf}^{-1}(y)

    - Gradient for `y`: :math:`\bar z\, \frac{\sqrt{\pi}}{2}\, e^{z^2}`

    Differentiable to any order. Like ``scipy.special.erfinv``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.erfinv(asarray([0.0, 0.5]))
    Tensor([0.        , 0.47693628])
    """
    return xp.special.erfinv(y)


@kernel(lambda g, xp, out: g * (xp.exp(out * out) * (-_ROOT_PI / 2)))
def erfcinv(xp: Any, y: ArrayLike, /) -> Any:
    r"""Return the inverse of `erfc`.

    Parameters
    ----------
    y : Tensor
        Real numbers, of any shape; integers count as float32.

    Returns
    -------
    Tensor
        Same shape as `y`; float32 stays float32.

    Raises
    ------
    TypeError
        If an input is complex.
    ImportError
        If the kernel is SciPy's and SciPy is not installed.

    Notes
    -----
    .. math:: z = \operatorname{erfc}^{-1}(y)

    - Gradient for `y`: :math:`-\bar z\, \frac{\sqrt{\pi}}{2}\, e^{z^2}`

    Differentiable to any order. Like ``scipy.special.erfcinv``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.erfcinv(asarray([1.5, 0.5]))
    Tensor([-0.47693628,  0.47693628])
    """
    return xp.special.erfcinv(y)


@kernel(lambda g, xp, x: g * (xp.exp(-(x * x) / 2) / _ROOT_TAU))
def ndtr(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the standard normal distribution function.

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
    .. math:: y = \Phi(x) = \frac{1}{\sqrt{2 \pi}} \int_{-\infty}^x e^{-t^2 / 2}\, dt

    - Gradient for `x`: :math:`\bar y\, \frac{1}{\sqrt{2 \pi}}\, e^{-x^2 / 2}`

    Differentiable to any order. Like ``scipy.special.ndtr``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.ndtr(asarray([0.0, 1.0]))
    Tensor([0.5      , 0.8413448])
    """
    return xp.special.ndtr(x)


@kernel(lambda g, xp, out: g * (xp.exp(out * out / 2) * _ROOT_TAU))
def ndtri(xp: Any, y: ArrayLike, /) -> Any:
    r"""Return the quantiles of the standard normal distribution.

    Parameters
    ----------
    y : Tensor
        Real numbers, of any shape; integers count as float32.

    Returns
    -------
    Tensor
        Same shape as `y`; float32 stays float32.

    Raises
    ------
    TypeError
        If an input is complex.
    ImportError
        If the kernel is SciPy's and SciPy is not installed.

    Notes
    -----
    .. math:: z = \Phi^{-1}(y)

    - Gradient for `y`: :math:`\bar z\, \sqrt{2 \pi}\, e^{z^2 / 2}`

    Differentiable to any order. Like ``scipy.special.ndtri``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.ndtri(asarray([0.5, 0.9]))
    Tensor([0.       , 1.2815515])
    """
    return xp.special.ndtri(y)


@kernel(_log_ndtr_rule)
def log_ndtr(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return log(ndtr(x)), accurate where `ndtr` is small.

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
    .. math:: y = \ln(\Phi(x))

    - Gradient for `x`: :math:`\bar y\, \frac{1}{\sqrt{2 \pi}}\, e^{-x^2 / 2 - y}`

    Differentiable to any order. Like ``scipy.special.log_ndtr``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.log_ndtr(asarray([0.0, -1e3]))
    Tensor([-6.931472e-01, -5.000078e+05])
    """
    return xp.special.log_ndtr(x)


@kernel(lambda g, x: g / (x * (1 - x)))
def logit(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return log(x / (1 - x)), the inverse of `expit`.

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
    .. math:: y = \ln\left(\frac{x}{1 - x}\right)

    - Gradient for `x`: :math:`\frac{\bar y}{x (1 - x)}`

    Differentiable to any order. Like ``scipy.special.logit``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.logit(asarray([0.5, 0.9]))
    Tensor([0.       , 2.1972244])
    """
    return xp.special.logit(x)
