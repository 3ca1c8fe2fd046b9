"""The error function and the normal distribution: DLMF, chapter 7."""

from __future__ import annotations

import math
from typing import Any

from xgrad.core.dtypes import COMPLEX
from xgrad.ops.special.kernels import kernel

__all__ = ["erf", "erfc", "erfcinv", "erfcx", "erfinv", "log_ndtr", "logit", "ndtr", "ndtri"]


def _log_ndtr_rule(g: Any, xp: Any, x: Any, out: Any) -> Any:
    """The density over the distribution: far below 0 by erfcx, since both vanish; it overflows
    above.
    """
    below = xp.special.erfcx(xp.where(x > 0, 0, x) * -math.sqrt(0.5))
    return g * xp.where(
        x > 0, xp.exp(-(x * x) / 2 - out) / _ROOT_TAU, math.sqrt(2 / math.pi) / below
    )


def _erfcx_rule(g: Any, xp: Any, x: Any, out: Any) -> Any:
    """2 x erfcx(x) - 2 / sqrt(pi), which cancels for large x: there by a continued fraction, of
    repeated integrals.
    """
    bound = 1.5 if x.dtype == xp.float32 else 3  # above which 36 terms are enough
    large = x > bound
    above, ratio = xp.where(large, x, bound), 0.0
    for k in range(36, 1, -1):
        ratio = 1 / (2 * above + 2 * k * ratio)
    return g * xp.where(large, -2 * ratio * out, 2 * x * out - 2 / _ROOT_PI)


_ROOT_PI, _ROOT_TAU = math.sqrt(math.pi), math.sqrt(2 * math.pi)


@kernel(lambda g, xp, x: g * (xp.exp(-(x * x)) * (2 / _ROOT_PI)), highest=COMPLEX)
def erf(xp: Any, x: Any, /) -> Any:
    """Return the error function.

    Parameters
    ----------
    x : Tensor
        Numbers, of any shape, on one device; integers count as float32.

    Returns
    -------
    Tensor
        Of the same shape; float32 stays float32.

    Raises
    ------
    ImportError
        If SciPy is missing and the kernel is SciPy's.
    DeviceError
        If the tensors are on several devices.

    Notes
    -----
    Differentiable to any order. Like ``scipy.special.erf``, computed as `xgrad.special` says.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.erf(asarray([0.0, 1.0]))
    Tensor([0.       , 0.842...])
    """
    return xp.special.erf(x)


@kernel(lambda g, xp, x: g * (xp.exp(-(x * x)) * (-2 / _ROOT_PI)))
def erfc(xp: Any, x: Any, /) -> Any:
    """Return 1 - erf(x), exact where that is small.

    Parameters
    ----------
    x : Tensor
        Real, of any shape, on one device; integers count as float32.

    Returns
    -------
    Tensor
        Of the same shape; float32 stays float32.

    Raises
    ------
    TypeError
        If an input is complex.
    ImportError
        If SciPy is missing and the kernel is SciPy's.
    DeviceError
        If the tensors are on several devices.

    Notes
    -----
    Differentiable to any order. Like ``scipy.special.erfc``, computed as `xgrad.special` says.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.erfc(asarray([0.0, 1.0]))
    Tensor([1.       , 0.157...])
    """
    return xp.special.erfc(x)


@kernel(_erfcx_rule)
def erfcx(xp: Any, x: Any, /) -> Any:
    """Return exp(x**2) * erfc(x).

    Parameters
    ----------
    x : Tensor
        Real, of any shape, on one device; integers count as float32.

    Returns
    -------
    Tensor
        Of the same shape; float32 stays float32.

    Raises
    ------
    TypeError
        If an input is complex.
    ImportError
        If SciPy is missing and the kernel is SciPy's.
    DeviceError
        If the tensors are on several devices.

    Notes
    -----
    Differentiable to any order. Like ``scipy.special.erfcx``, computed as `xgrad.special` says.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.erfcx(asarray([0.0, 1.0]))
    Tensor([1.       , 0.427...])
    """
    return xp.special.erfcx(x)


@kernel(lambda g, xp, out: g * (xp.exp(out * out) * (_ROOT_PI / 2)))
def erfinv(xp: Any, y: Any, /) -> Any:
    """Return the inverse of the error function.

    Parameters
    ----------
    y : Tensor
        Real, of any shape, on one device; integers count as float32.

    Returns
    -------
    Tensor
        Of the same shape; float32 stays float32.

    Raises
    ------
    TypeError
        If an input is complex.
    ImportError
        If SciPy is missing and the kernel is SciPy's.
    DeviceError
        If the tensors are on several devices.

    Notes
    -----
    Differentiable to any order. Like ``scipy.special.erfinv``, computed as `xgrad.special` says.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.erfinv(asarray([0.0, 0.5]))
    Tensor([0.       , 0.476...])
    """
    return xp.special.erfinv(y)


@kernel(lambda g, xp, out: g * (xp.exp(out * out) * (-_ROOT_PI / 2)))
def erfcinv(xp: Any, y: Any, /) -> Any:
    """Return the inverse of `erfc`.

    Parameters
    ----------
    y : Tensor
        Real, of any shape, on one device; integers count as float32.

    Returns
    -------
    Tensor
        Of the same shape; float32 stays float32.

    Raises
    ------
    TypeError
        If an input is complex.
    ImportError
        If SciPy is missing and the kernel is SciPy's.
    DeviceError
        If the tensors are on several devices.

    Notes
    -----
    Differentiable to any order. Like ``scipy.special.erfcinv``, computed as `xgrad.special` says.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.erfcinv(asarray([1.5, 0.5]))
    Tensor([-0.476...,  0.476...])
    """
    return xp.special.erfcinv(y)


@kernel(lambda g, xp, x: g * (xp.exp(-(x * x) / 2) / _ROOT_TAU))
def ndtr(xp: Any, x: Any, /) -> Any:
    """Return the distribution function of the standard normal distribution.

    Parameters
    ----------
    x : Tensor
        Real, of any shape, on one device; integers count as float32.

    Returns
    -------
    Tensor
        Of the same shape; float32 stays float32.

    Raises
    ------
    TypeError
        If an input is complex.
    ImportError
        If SciPy is missing and the kernel is SciPy's.
    DeviceError
        If the tensors are on several devices.

    Notes
    -----
    Differentiable to any order. Like ``scipy.special.ndtr``, computed as `xgrad.special` says.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.ndtr(asarray([0.0, 1.0]))
    Tensor([0.5      , 0.841...])
    """
    return xp.special.ndtr(x)


@kernel(lambda g, xp, out: g * (xp.exp(out * out / 2) * _ROOT_TAU))
def ndtri(xp: Any, y: Any, /) -> Any:
    """Return the quantiles of the standard normal distribution.

    Parameters
    ----------
    y : Tensor
        Real, of any shape, on one device; integers count as float32.

    Returns
    -------
    Tensor
        Of the same shape; float32 stays float32.

    Raises
    ------
    TypeError
        If an input is complex.
    ImportError
        If SciPy is missing and the kernel is SciPy's.
    DeviceError
        If the tensors are on several devices.

    Notes
    -----
    Differentiable to any order. Like ``scipy.special.ndtri``, computed as `xgrad.special` says.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.ndtri(asarray([0.5, 0.9]))
    Tensor([0.       , 1.281...])
    """
    return xp.special.ndtri(y)


@kernel(_log_ndtr_rule)
def log_ndtr(xp: Any, x: Any, /) -> Any:
    """Return log(ndtr(x)), exact where `ndtr` is small.

    Parameters
    ----------
    x : Tensor
        Real, of any shape, on one device; integers count as float32.

    Returns
    -------
    Tensor
        Of the same shape; float32 stays float32.

    Raises
    ------
    TypeError
        If an input is complex.
    ImportError
        If SciPy is missing and the kernel is SciPy's.
    DeviceError
        If the tensors are on several devices.

    Notes
    -----
    Differentiable to any order. Like ``scipy.special.log_ndtr``, computed as `xgrad.special` says.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.log_ndtr(asarray([0.0, -1e3]))
    Tensor([-6.93147...e-01, -5.00007...e+05])
    """
    return xp.special.log_ndtr(x)


@kernel(lambda g, x: g / (x * (1 - x)))
def logit(xp: Any, x: Any, /) -> Any:
    """Return log(x / (1 - x)), the inverse of `expit`.

    Parameters
    ----------
    x : Tensor
        Real, of any shape, on one device; integers count as float32.

    Returns
    -------
    Tensor
        Of the same shape; float32 stays float32.

    Raises
    ------
    TypeError
        If an input is complex.
    ImportError
        If SciPy is missing and the kernel is SciPy's.
    DeviceError
        If the tensors are on several devices.

    Notes
    -----
    Differentiable to any order. Like ``scipy.special.logit``, computed as `xgrad.special` says.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.logit(asarray([0.5, 0.9]))
    Tensor([0.       , 2.197...])
    """
    return xp.special.logit(x)
