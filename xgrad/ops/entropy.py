"""Logarithmic products, entropies, robust losses and soft maxima: SciPy's functions that are made of the standard's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xgrad.backend import DeviceError
from xgrad.declare import derivative
from xgrad.dtypes import FLOATING, SCALARS
from xgrad.inputs import as_tensor
from xgrad.operators import namespace
from xgrad.ops import nn, statistical
from xgrad.tensor import Tensor

Axis = int | tuple[int, ...] | None


def arrays(xp: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Return two inputs as arrays, a scalar with the dtype of the other."""
    if type(x) in SCALARS:
        return xp.full_like(y, x), y
    return x, xp.full_like(x, y) if type(y) in SCALARS else y


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


@derivative(_rel_entr_first, _rel_entr_second, kind=FLOATING, highest=FLOATING, broadcasts=True)
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


@derivative(_kl_div_first, _kl_div_second, kind=FLOATING, highest=FLOATING, broadcasts=True)
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


def _huber_rule(g: Any, xp: Any, delta: Any, r: Any) -> Any:
    delta, r = arrays(xp, delta, r)
    return g * xp.maximum(xp.minimum(r, delta), -delta)


def _huber_delta(g: Any, xp: Any, delta: Any, r: Any) -> Any:
    delta, r = arrays(xp, delta, r)
    return g * xp.where(xp.abs(r) <= delta, 0, xp.abs(r) - delta)


@derivative(_huber_delta, _huber_rule, kind=FLOATING, highest=FLOATING, broadcasts=True)
def huber(xp: Any, delta: Any, r: Any, /) -> Any:
    """Return Huber's loss: half the square of a residual up to `delta`, and linear beyond.

    Parameters
    ----------
    delta : Tensor
        Where the loss becomes linear; where it is negative, the loss is infinite.
    r : Tensor
        Residuals, of a shape that broadcasts with `delta`; integers count as float32. Either may be a Python
        scalar, which promotes nothing.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to; float32 stays float32.

    Notes
    -----
    Differentiable to any order, but at ``abs(r) == delta`` the second derivative is half that of the square. As
    ``scipy.special.huber``.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.huber(1.0, asarray([0.5, 2.0]))
    Tensor([0.125, 1.5  ])
    """
    delta, r = arrays(xp, delta, r)
    size = xp.abs(r)
    loss = xp.where(size <= delta, r * r / 2, delta * (size - delta / 2))
    return xp.where(delta < 0, math.inf, loss)


def _pseudo_huber_parts(xp: Any, delta: Any, r: Any) -> tuple[Any, Any, Any, Any]:
    """Return both inputs, and the root of their squares' sum, harmless where it is 0."""
    delta, r = arrays(xp, delta, r)
    squares = delta * delta + r * r
    return delta, r, xp.sqrt(xp.where(squares == 0, 1, squares)), squares == 0


def _pseudo_huber_delta(g: Any, xp: Any, delta: Any, r: Any) -> Any:
    delta, r, root, _ = _pseudo_huber_parts(xp, delta, r)
    part = r / (delta + root) * r
    return g * (part * part / root)


def _pseudo_huber_rule(g: Any, xp: Any, delta: Any, r: Any) -> Any:
    delta, r, root, _ = _pseudo_huber_parts(xp, delta, r)
    return g * (delta / root * r)


@derivative(_pseudo_huber_delta, _pseudo_huber_rule, kind=FLOATING, highest=FLOATING, broadcasts=True)
def pseudo_huber(xp: Any, delta: Any, r: Any, /) -> Any:
    """Return delta**2 * (sqrt(1 + (r / delta)**2) - 1), a smooth loss that is linear for residuals beyond `delta`.

    Parameters
    ----------
    delta : Tensor
        Where the loss becomes linear; where it is negative, the loss is infinite.
    r : Tensor
        Residuals, of a shape that broadcasts with `delta`; integers count as float32. Either may be a Python
        scalar, which promotes nothing.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to; float32 stays float32.

    Notes
    -----
    Differentiable to any order. As ``scipy.special.pseudo_huber``.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.pseudo_huber(1.0, asarray([0.0, 2.0]))
    Tensor([0.       , 1.236...])
    """
    delta, r, root, _ = _pseudo_huber_parts(xp, delta, r)
    loss = delta * r * (r / (xp.abs(delta) + root))  # the difference of the definition, without cancellation
    return xp.where(delta < 0, math.inf, loss)


def softmax(x: Tensor, axis: Axis = None) -> Tensor:
    """Return exponentials scaled to a sum of 1 along axes, without overflow.

    Parameters
    ----------
    x : Tensor
        Real, not empty along the axes; integers count as float32.
    axis : int or tuple of int, optional
        Along what they sum to 1; by default along all.

    Returns
    -------
    Tensor
        Of the same shape; float32 stays float32.

    Notes
    -----
    Differentiable to any order. As ``scipy.special.softmax``.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.softmax(asarray([[0.0, 0.0], [1e4, 1e4]]), axis=1)
    Tensor([[0.5, 0.5],
            [0.5, 0.5]])
    """
    return nn.softmax(x, axis=axis)


def log_softmax(x: Tensor, axis: Axis = None) -> Tensor:
    """Return the logarithm of `softmax`, without overflow or loss of small probabilities.

    Parameters
    ----------
    x : Tensor
        Real, not empty along the axes; integers count as float32.
    axis : int or tuple of int, optional
        Along what the probabilities sum to 1; by default along all.

    Returns
    -------
    Tensor
        Of the same shape; float32 stays float32.

    Notes
    -----
    Differentiable to any order. As ``scipy.special.log_softmax``.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.log_softmax(asarray([0.0, 1e4]))
    Tensor([-10000.,      0.])
    """
    return nn.log_softmax(x, axis=axis)


def logsumexp(
    a: Tensor, axis: Axis = None, b: Tensor | float | None = None, keepdims: bool = False, return_sign: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """Return the logarithm of the sum of exponentials along axes, of which each may have a weight.

    Parameters
    ----------
    a : Tensor
        The exponents, real; integers count as float32.
    axis : int or tuple of int, optional
        What to reduce; by default all.
    b : Tensor or scalar, optional
        The weights, of a shape that broadcasts with `a`. What has a weight of 0 counts for nothing, whatever it is.
    keepdims : bool, default False
        Whether reduced axes stay, with length 1.
    return_sign : bool, default False
        Whether to return the logarithm of the absolute value of the sum, and the sum's sign beside it.

    Returns
    -------
    Tensor or (Tensor, Tensor)
        Of the shape of `a` without the reduced axes; minus infinity for no elements, NaN for a negative sum
        unless `return_sign`. float32 stays float32.

    Raises
    ------
    TypeError
        If `a` is complex.
    DeviceError
        If `b` is on another device than `a`.

    Notes
    -----
    Differentiable to any order, in `a` and `b`. As ``scipy.special.logsumexp``, for real numbers.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.logsumexp(asarray([1e4, 1e4]))
    Tensor(10000.693)
    >>> special.logsumexp(asarray([0.0, 0.0]), b=asarray([1.0, -3.0]), return_sign=True)
    (Tensor(0.693...), Tensor(-1.))
    """
    xp, a = namespace, as_tensor("logsumexp", "a", a)
    if a.dtype.kind != "f":
        if a.dtype.kind == "c":
            raise TypeError(f"logsumexp: expected real numbers for a, got {a.dtype}: use .real, or exp, sum and log")
        a = xp.astype(a, xp.float32)
    if b is None and a.size and not return_sign:
        return statistical.logsumexp(a, axis=axis, keepdims=keepdims)
    weights = (
        xp.ones_like(a) if b is None else xp.full_like(a, b) if type(b) in SCALARS else as_tensor("logsumexp", "b", b)
    )
    if weights.device is not a.device:
        raise DeviceError(
            f"logsumexp: expected b on {a.device}, where a is, got it on {weights.device}: use .to(device)"
        )
    counted = xp.where(weights == 0, -math.inf, a.detach())
    if 0 in counted.shape:
        sums = xp.sum(a * weights, axis=axis, keepdims=keepdims)
        return (sums - math.inf, sums) if return_sign else sums - math.inf
    top = xp.max(counted, axis=axis, keepdims=True)  # any number here gives the same result
    top = xp.where(xp.isfinite(top), top, 0)
    # Of what has no weight there is a derivative by the weight, unless it is too large.
    fits = (weights != 0) | (a - top < math.log(np.finfo(a.dtype).max))
    total = xp.sum(weights * xp.exp(xp.where(fits, a - top, -math.inf)), axis=axis, keepdims=True)
    sign = xp.sign(total.detach())
    result = xp.log(xp.abs(total) if return_sign else total) + top
    if not keepdims:
        axes = tuple(range(total.ndim)) if axis is None else axis
        result, sign = xp.squeeze(result, axis=axes), xp.squeeze(sign, axis=axes)
    return (result, sign) if return_sign else result
