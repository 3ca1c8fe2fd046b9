"""Logarithmic products and entropies: SciPy's functions that are made of the standard's."""

from __future__ import annotations

import math
from typing import Any

from xgrad.core.dtypes import FLOATING
from xgrad.ops.declare import arrays, derivative


def _xlog_first(g: Any, xp: Any, x: Any, y: Any, log: str, pole: float) -> Any:
    x, y = arrays(xp, x, y)
    return g * getattr(xp, log)(xp.where((x == 0) & (y <= pole), 1 + pole, y))


def _xlog_second(g: Any, xp: Any, x: Any, y: Any, pole: float) -> Any:
    x, y = arrays(xp, x, y)
    return g * (x / xp.where((x == 0) & (y == pole), 1, y - pole))


@derivative(
    lambda g, xp, x, y: _xlog_first(g, xp, x, y, "log", 0),
    lambda g, xp, x, y: _xlog_second(g, xp, x, y, 0),
    kind=FLOATING,
    highest=FLOATING,
    broadcasts=True,
    scipy_promotion=True,
)
def xlogy(xp: Any, x: Any, y: Any, /) -> Any:
    """Return x * log(y), which is 0 where `x` is 0, whatever `y` is but NaN.

    Parameters
    ----------
    x, y : Tensor
        Real, of shapes that broadcast; integers count as float32. Either may be a Python scalar, which promotes
        nothing.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to; float32 stays float32.

    Notes
    -----
    Differentiable to any order; where `x` is 0 and `y` not positive, both derivatives are 0. As
    ``scipy.special.xlogy``.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.xlogy(asarray([0.0, 2.0]), asarray([0.0, 1.0]))
    Tensor([0., 0.])
    """
    x, y = arrays(xp, x, y)
    return x * xp.log(xp.where((x == 0) & ~xp.isnan(y), 1, y))


@derivative(
    lambda g, xp, x, y: _xlog_first(g, xp, x, y, "log1p", -1),
    lambda g, xp, x, y: _xlog_second(g, xp, x, y, -1),
    kind=FLOATING,
    highest=FLOATING,
    broadcasts=True,
    scipy_promotion=True,
)
def xlog1py(xp: Any, x: Any, y: Any, /) -> Any:
    """Return x * log(1 + y), which is 0 where `x` is 0, whatever `y` is but NaN, and exact for small `y`.

    Parameters
    ----------
    x, y : Tensor
        Real, of shapes that broadcast; integers count as float32. Either may be a Python scalar, which promotes
        nothing.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to; float32 stays float32.

    Notes
    -----
    Differentiable to any order; where `x` is 0 and `y` not above -1, both derivatives are 0. As
    ``scipy.special.xlog1py``.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.xlog1py(asarray([0.0, 2.0]), asarray([-1.0, 1e-9]))
    Tensor([0.e+00, 2.e-09])
    """
    x, y = arrays(xp, x, y)
    return x * xp.log1p(xp.where((x == 0) & ~xp.isnan(y), 0, y))


@derivative(lambda g, xp, x: -g * (xp.log(x) + 1), kind=FLOATING, highest=FLOATING)
def entr(xp: Any, x: Any, /) -> Any:
    """Return -x * log(x), which is 0 at 0 and minus infinity below.

    Parameters
    ----------
    x : Tensor
        Real, of any shape; integers count as float32.

    Returns
    -------
    Tensor
        Of the same shape; float32 stays float32.

    Notes
    -----
    Differentiable to any order; the derivative at 0 is infinite, and below it is NaN. As ``scipy.special.entr``.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.entr(asarray([0.0, 0.5, 1.0]))
    Tensor([0.       , 0.346..., 0.       ])
    """
    return xp.where(x < 0, -math.inf, 0 - x * xp.log(xp.where(x <= 0, 1, x)))


def _log_ratio(xp: Any, x: Any, y: Any) -> Any:
    """log(x / y) of positive numbers, exact also where they are close, and where their ratio overflows."""
    away = (x - y) / y
    close = xp.abs(away) < 0.5
    return xp.where(close, xp.log1p(xp.where(close, away, 0)), xp.log(x) - xp.log(y))


def _in_domain(xp: Any, x: Any, y: Any, inside: Any, at_zero: Any, outside: Any) -> Any:
    """Return ``inside(x, y)`` for positive numbers, ``at_zero(x, y)`` for an `x` of 0, and elsewhere a number."""
    x, y = arrays(xp, x, y)
    both, zero = (x > 0) & (y > 0), (x == 0) & (y >= 0)
    # Elsewhere numbers that do no harm take part, so that no NaN is on the way of a gradient.
    values = inside(xp.where(both, x, 1), xp.where(both, y, 1))
    rest = xp.where(xp.isnan(x) | xp.isnan(y), math.nan, xp.full_like(x + y, outside))
    return xp.where(both, values, xp.where(zero, at_zero(x, y), rest))


def _rel_entr_first(g: Any, xp: Any, x: Any, y: Any) -> Any:
    def above_zero(x: Any, y: Any) -> Any:
        return xp.where(y > 0, -math.inf, xp.full_like(x + y, math.nan))

    return g * _in_domain(xp, x, y, lambda x, y: _log_ratio(xp, x, y) + 1, above_zero, math.nan)


def _rel_entr_second(g: Any, xp: Any, x: Any, y: Any) -> Any:
    return g * _in_domain(xp, x, y, lambda x, y: -x / y, lambda x, y: xp.zeros_like(x + y), math.nan)


@derivative(_rel_entr_first, _rel_entr_second, kind=FLOATING, highest=FLOATING, broadcasts=True, scipy_promotion=True)
def rel_entr(xp: Any, x: Any, y: Any, /) -> Any:
    """Return x * log(x / y), the terms of the relative entropy of one distribution to another.

    Parameters
    ----------
    x, y : Tensor
        Real, of shapes that broadcast; integers count as float32. Either may be a Python scalar, which promotes
        nothing.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to; 0 where `x` is 0 and `y` not negative, infinite elsewhere outside
        of positive numbers. float32 stays float32.

    Notes
    -----
    Differentiable to any order. Where `x` is 0, the derivative by a positive `y` is 0, that by `x` minus infinity;
    where the result is infinite, they are NaN. As ``scipy.special.rel_entr``.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.rel_entr(asarray([0.0, 0.5]), asarray([0.5, 0.25]))
    Tensor([0.       , 0.346...])
    """
    return _in_domain(xp, x, y, lambda x, y: x * _log_ratio(xp, x, y), lambda x, y: xp.zeros_like(x + y), math.inf)


def _kl_div_first(g: Any, xp: Any, x: Any, y: Any) -> Any:
    def above_zero(x: Any, y: Any) -> Any:
        return xp.where(y > 0, -math.inf, xp.full_like(x + y, math.nan))

    return g * _in_domain(xp, x, y, lambda x, y: _log_ratio(xp, x, y), above_zero, math.nan)


def _kl_div_second(g: Any, xp: Any, x: Any, y: Any) -> Any:
    return g * _in_domain(xp, x, y, lambda x, y: (y - x) / y, lambda x, y: xp.ones_like(x + y), math.nan)


@derivative(_kl_div_first, _kl_div_second, kind=FLOATING, highest=FLOATING, broadcasts=True, scipy_promotion=True)
def kl_div(xp: Any, x: Any, y: Any, /) -> Any:
    """Return x * log(x / y) - x + y, the terms of the Kullback-Leibler divergence, none of them negative.

    Parameters
    ----------
    x, y : Tensor
        Real, of shapes that broadcast; integers count as float32. Either may be a Python scalar, which promotes
        nothing.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to; `y` where `x` is 0 and `y` not negative, infinite elsewhere
        outside of positive numbers. float32 stays float32.

    Notes
    -----
    Differentiable to any order. Where `x` is 0, the derivative by a positive `y` is 1, that by `x` minus infinity;
    where the result is infinite, they are NaN. As ``scipy.special.kl_div``, which differs from PyTorch's ``kl_div``.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.kl_div(asarray([0.0, 0.5]), asarray([0.5, 0.25]))
    Tensor([0.5      , 0.096...])
    """
    return _in_domain(xp, x, y, lambda x, y: x * _log_ratio(xp, x, y) - x + y, lambda x, y: x + y, math.inf)


@derivative(lambda g, xp, x: g / (1 + xp.exp(x)), kind=FLOATING, highest=FLOATING)
def log_expit(xp: Any, x: Any, /) -> Any:
    """Return the logarithm of `expit`, without overflow or loss of small probabilities.

    Parameters
    ----------
    x : Tensor
        Real, of any shape; integers count as float32.

    Returns
    -------
    Tensor
        Of the same shape; float32 stays float32.

    Notes
    -----
    Differentiable to any order. As ``scipy.special.log_expit``.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.log_expit(asarray([-1e4, 0.0]))
    Tensor([-1.00...e+04, -6.93...e-01])
    """
    return xp.minimum(x, 0) - xp.log1p(xp.exp(-xp.abs(x)))
