"""Logarithmic products and entropies under SciPy's names, composed of the standard's functions."""

from __future__ import annotations

import math
from typing import Any

from xgrad.core.arguments import ArrayLike
from xgrad.ops.declare import as_arrays
from xgrad.ops.special.kernels import kernel


def _xlog(xp: Any, x: Any, y: Any, log: Any, pole: int) -> Any:
    """Return ``x * log(y)``, 0 where `x` is 0, for a logarithm with a pole at `pole`."""
    x, y = as_arrays(xp, x, y)
    return x * log(xp.where((x == 0) & ~xp.isnan(y), 1 + pole, y))


def _xlog_by_x(g: Any, xp: Any, x: Any, y: Any, log: Any, pole: int) -> Any:
    x, y = as_arrays(xp, x, y)
    return g * log(xp.where((x == 0) & (y <= pole), 1 + pole, y))


def _xlog_by_y(g: Any, xp: Any, x: Any, y: Any, pole: int) -> Any:
    x, y = as_arrays(xp, x, y)
    return g * (x / xp.where((x == 0) & (y == pole), 1, y - pole))


@kernel(
    lambda g, xp, x, y: _xlog_by_x(g, xp, x, y, xp.log, 0),
    lambda g, xp, x, y: _xlog_by_y(g, xp, x, y, 0),
)
def xlogy(xp: Any, x: ArrayLike, y: ArrayLike, /) -> Any:
    r"""Return ``x * log(y)``, which is 0 where `x` is 0, for any `y` but NaN.

    Parameters
    ----------
    x, y : Tensor
        Real, of any shapes that broadcast, on one device; integers count as float32. All but one
        may be Python scalars, which promote nothing.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to; float32 stays float32.

    Raises
    ------
    TypeError
        If an input is complex.
    DeviceError
        If the tensors are on several devices.

    Notes
    -----
    .. math:: z = x \ln(y)

    - Gradient for `x`: :math:`\bar z \ln(y)`
    - Gradient for `y`: :math:`\bar z\, x / y`

    Differentiable to any order; where `x` is 0 and `y` is not positive, both derivatives are 0.
    Like ``scipy.special.xlogy``.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.xlogy(asarray([0.0, 2.0]), asarray([0.0, 1.0]))
    Tensor([0., 0.])
    """
    return _xlog(xp, x, y, xp.log, 0)


@kernel(
    lambda g, xp, x, y: _xlog_by_x(g, xp, x, y, xp.log1p, -1),
    lambda g, xp, x, y: _xlog_by_y(g, xp, x, y, -1),
)
def xlog1py(xp: Any, x: ArrayLike, y: ArrayLike, /) -> Any:
    r"""Return ``x * log(1 + y)``, which is 0 where `x` is 0, for any `y` but NaN.

    The result is exact for small `y`.

    Parameters
    ----------
    x, y : Tensor
        Real, of any shapes that broadcast, on one device; integers count as float32. All but one
        may be Python scalars, which promote nothing.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to; float32 stays float32.

    Raises
    ------
    TypeError
        If an input is complex.
    DeviceError
        If the tensors are on several devices.

    Notes
    -----
    .. math:: z = x \ln(1 + y)

    - Gradient for `x`: :math:`\bar z \ln(1 + y)`
    - Gradient for `y`: :math:`\bar z\, \frac{x}{1 + y}`

    Differentiable to any order; where `x` is 0 and `y` is not above -1, both derivatives are 0.
    Like ``scipy.special.xlog1py``.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.xlog1py(asarray([0.0, 2.0]), asarray([-1.0, 1e-9]))
    Tensor([0.e+00, 2.e-09])
    """
    return _xlog(xp, x, y, xp.log1p, -1)


@kernel(lambda g, xp, x: -g * (xp.log(x) + 1))
def entr(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return ``-x * log(x)``, which is 0 at 0 and minus infinity below.

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

    Notes
    -----
    .. math:: y = -x \ln(x)

    - Gradient for `x`: :math:`-\bar y\, (\ln(x) + 1)`

    Differentiable to any order; the derivative at 0 is infinite, and below it is NaN. Like
    ``scipy.special.entr``.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.entr(asarray([0.0, 0.5, 1.0]))
    Tensor([0.       , 0.3465736, 0.       ])
    """
    return xp.where(x < 0, -math.inf, 0 - x * xp.log(xp.where(x <= 0, 1, x)))


def _log_ratio(xp: Any, x: Any, y: Any) -> Any:
    """Return ``log(x / y)`` for positive numbers.

    The result is exact even where they are close, and where their ratio overflows.
    """
    distance = (x - y) / y
    close = xp.abs(distance) < 0.5
    return xp.where(close, xp.log1p(xp.where(close, distance, 0)), xp.log(x) - xp.log(y))


def _in_domain(xp: Any, x: Any, y: Any, inside: Any, at_zero: Any, outside: Any) -> Any:
    """Return ``inside(x, y)`` for positive numbers, else ``at_zero(x, y)`` or `outside`.

    `at_zero` applies where `x` is 0 and `y` is not negative. NaN stays NaN.
    """
    x, y = as_arrays(xp, x, y)
    both, zero = (x > 0) & (y > 0), (x == 0) & (y >= 0)
    # Elsewhere, `inside` gets 1, so that no NaN enters a gradient.
    values = inside(xp.where(both, x, 1), xp.where(both, y, 1))
    rest = xp.where(xp.isnan(x) | xp.isnan(y), math.nan, xp.full_like(x + y, outside))
    return xp.where(both, values, xp.where(zero, at_zero(x, y), rest))


def _x_gradient(g: Any, xp: Any, x: Any, y: Any, constant: int) -> Any:
    """Return `g` times ``log(x / y) + constant``, which is minus infinity where `x` is 0."""

    def at_zero(x: Any, y: Any) -> Any:
        return xp.where(y > 0, -math.inf, xp.full_like(x + y, math.nan))

    return g * _in_domain(xp, x, y, lambda x, y: _log_ratio(xp, x, y) + constant, at_zero, math.nan)


def _rel_entr_y(g: Any, xp: Any, x: Any, y: Any) -> Any:
    return g * _in_domain(
        xp, x, y, lambda x, y: -x / y, lambda x, y: xp.zeros_like(x + y), math.nan
    )


@kernel(lambda g, xp, x, y: _x_gradient(g, xp, x, y, 1), _rel_entr_y)
def rel_entr(xp: Any, x: ArrayLike, y: ArrayLike, /) -> Any:
    r"""Return ``x * log(x / y)``, the terms of the relative entropy of one distribution to another.

    The result is 0 where `x` is 0 and `y` is not negative. Elsewhere, it is infinite unless `x` and
    `y` are positive.

    Parameters
    ----------
    x, y : Tensor
        Real, of any shapes that broadcast, on one device; integers count as float32. All but one
        may be Python scalars, which promote nothing.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to; float32 stays float32.

    Raises
    ------
    TypeError
        If an input is complex.
    DeviceError
        If the tensors are on several devices.

    Notes
    -----
    .. math:: z = x \ln\left(\frac{x}{y}\right)

    - Gradient for `x`: :math:`\bar z \left(\ln\left(\frac{x}{y}\right) + 1\right)`
    - Gradient for `y`: :math:`-\bar z\, x / y`

    Differentiable to any order. Where `x` is 0 and `y` is positive, the derivative is minus
    infinity in `x` and 0 in `y`; where the result is infinite, both are NaN. Like
    ``scipy.special.rel_entr``.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.rel_entr(asarray([0.0, 0.5]), asarray([0.5, 0.25]))
    Tensor([0.       , 0.3465736])
    """
    return _in_domain(
        xp, x, y, lambda x, y: x * _log_ratio(xp, x, y), lambda x, y: xp.zeros_like(x + y), math.inf
    )


def _kl_div_y(g: Any, xp: Any, x: Any, y: Any) -> Any:
    return g * _in_domain(
        xp, x, y, lambda x, y: (y - x) / y, lambda x, y: xp.ones_like(x + y), math.nan
    )


@kernel(lambda g, xp, x, y: _x_gradient(g, xp, x, y, 0), _kl_div_y)
def kl_div(xp: Any, x: ArrayLike, y: ArrayLike, /) -> Any:
    r"""Return ``x * log(x / y) - x + y``, the terms of the Kullback-Leibler divergence.

    No term is negative. The result is `y` where `x` is 0 and `y` is not negative. Elsewhere, it is
    infinite unless `x` and `y` are positive. PyTorch's ``kl_div`` is another function.

    Parameters
    ----------
    x, y : Tensor
        Real, of any shapes that broadcast, on one device; integers count as float32. All but one
        may be Python scalars, which promote nothing.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to; float32 stays float32.

    Raises
    ------
    TypeError
        If an input is complex.
    DeviceError
        If the tensors are on several devices.

    Notes
    -----
    .. math:: z = x \ln\left(\frac{x}{y}\right) - x + y

    - Gradient for `x`: :math:`\bar z \ln\left(\frac{x}{y}\right)`
    - Gradient for `y`: :math:`\bar z\, \frac{y - x}{y}`

    Differentiable to any order. Where `x` is 0 and `y` is positive, the derivative is minus
    infinity in `x` and 1 in `y`; where the result is infinite, both are NaN. Like
    ``scipy.special.kl_div``.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.kl_div(asarray([0.0, 0.5]), asarray([0.5, 0.25]))
    Tensor([0.5       , 0.09657359])
    """
    return _in_domain(
        xp, x, y, lambda x, y: x * _log_ratio(xp, x, y) - x + y, lambda x, y: x + y, math.inf
    )


@kernel(lambda g, xp, x: g / (1 + xp.exp(x)))
def log_expit(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the logarithm of `expit`, without overflow or loss of small probabilities.

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

    Notes
    -----
    .. math:: y = \ln(\sigma(x)) = -\ln(1 + e^{-x})

    - Gradient for `x`: :math:`\frac{\bar y}{1 + e^x}`

    Differentiable to any order. Like ``scipy.special.log_expit``.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.log_expit(asarray([-1e4, 0.0]))
    Tensor([-1.000000e+04, -6.931472e-01])
    """
    return xp.minimum(x, 0) - xp.log1p(xp.exp(-xp.abs(x)))
