"""Kullback-Leibler divergences in closed form, by the types of two distributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from xgrad import linalg, ops, special
from xgrad.core.tensor import Tensor
from xgrad.distributions.categorical import Categorical, OneHotCategorical
from xgrad.distributions.combined import Independent
from xgrad.distributions.counts import Bernoulli, Binomial, Geometric, Poisson
from xgrad.distributions.distribution import LOG_2PI, Distribution
from xgrad.distributions.gamma import Beta, Dirichlet, Exponential, Gamma
from xgrad.distributions.location_scale import EULER, Cauchy, Gumbel, Laplace, Uniform
from xgrad.distributions.multivariate_normal import MultivariateNormal, squared_mahalanobis
from xgrad.distributions.normal import HalfNormal, LogNormal, Normal
from xgrad.distributions.transformed import TransformedDistribution

__all__ = ["kl_divergence", "register_kl"]

Divergence = Callable[[Any, Any], Tensor]
F = TypeVar("F", bound=Divergence)
_REGISTRY: dict[tuple[type, type], Divergence] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[F], F]:
    """Return a decorator that registers the divergence of a pair of types.

    Parameters
    ----------
    type_p, type_q : type
        Subclasses of Distribution. The function is also used for their subclasses, unless they are
        registered themselves.

    Returns
    -------
    callable
        Takes and returns a function of two distributions, which returns a tensor of their batch
        shape.

    Raises
    ------
    TypeError
        If an argument is not a subclass of Distribution.

    Examples
    --------
    >>> import xgrad
    >>> from xgrad.distributions import Distribution, kl_divergence, register_kl
    >>> class Certain(Distribution):
    ...     pass
    >>> @register_kl(Certain, Certain)
    ... def divergence(p, q):
    ...     return xgrad.zeros(p.batch_shape)
    >>> kl_divergence(Certain(), Certain())
    Tensor(0.)
    """
    for kind in (type_p, type_q):
        if not isinstance(kind, type) or not issubclass(kind, Distribution):
            raise TypeError(f"register_kl: expected subclasses of Distribution, got {kind!r}")

    def register(function: F) -> F:
        _REGISTRY[type_p, type_q] = function
        return function

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return the Kullback-Leibler divergence of one distribution from another, in closed form.

    It is the mean of ``p.log_prob(x) - q.log_prob(x)`` over samples `x` of `p`.

    Parameters
    ----------
    p, q : Distribution
        Of batch shapes that broadcast.

    Returns
    -------
    Tensor
        In nats, of the batch shape.

    Raises
    ------
    TypeError
        If an argument is not a distribution.
    ValueError
        If the event shapes, or the numbers of classes, differ.
    NotImplementedError
        If no divergence is registered for the pair of types: see `register_kl`.

    Examples
    --------
    >>> import xgrad
    >>> from xgrad.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(xgrad.asarray([0.0, 1.0]), 1.0), Normal(0.0, 1.0))
    Tensor([0. , 0.5])
    """
    for name, x in (("p", p), ("q", q)):
        if not isinstance(x, Distribution):
            raise TypeError(
                f"kl_divergence: expected a Distribution for {name}, got {type(x).__name__}"
            )
    # the nearest base class of p, and for it the nearest one of q
    for kind_p in type(p).__mro__:
        for kind_q in type(q).__mro__:
            if (function := _REGISTRY.get((kind_p, kind_q))) is not None:
                if p.event_shape != q.event_shape:
                    raise ValueError(
                        "kl_divergence: expected distributions of equal event shapes, got"
                        f" {p.event_shape} and {q.event_shape}"
                    )
                return function(p, q)
    raise NotImplementedError(
        f"kl_divergence: expected a pair of types with a divergence, got {type(p).__name__} and"
        f" {type(q).__name__}: register one with register_kl, or average p.log_prob(x) -"
        " q.log_prob(x) over samples x of p"
    )


def _infinite(p: Any, q: Any) -> Tensor:
    """Return infinity: samples of p are impossible for q."""
    shape = ops.broadcast_shapes(p.batch_shape, q.batch_shape)
    return ops.full(shape, math.inf, dtype=p.mean.dtype, device=p.mean.device)


for _p, _names in (
    (Beta, ()),
    (Exponential, (Beta, Uniform)),
    (Gamma, (Beta, Uniform)),
    (Gumbel, (Beta, Exponential, Gamma, Uniform)),
    (Laplace, (Beta, Exponential, Gamma, Uniform)),
    (Normal, (Beta, Exponential, Gamma, Uniform)),
    (Poisson, (Bernoulli, Binomial)),
):
    for _q in _names:
        register_kl(_p, _q)(_infinite)


# Pairs of one type


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    a = p.probs
    return -p.entropy() - q._weighted_logs(a, 1 - a)


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    a, b, total = p.concentration1, p.concentration0, p._total
    c, d = q.concentration1, q.concentration0
    return (
        special.betaln(c, d)
        - special.betaln(a, b)
        + (a - c) * special.psi(a)
        + (b - d) * special.psi(b)
        + (c + d - total) * special.psi(total)
    )


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    a, n = p.probs, p.total_count
    one = -p._entropy_of_one() - q._weighted_logs(a, 1 - a)
    result = ops.where(n > q.total_count, math.inf, n * one)
    # with fewer trials, the coefficients do not cancel
    return ops.where(n < q.total_count, math.nan, result)


@register_kl(Categorical, Categorical)
@register_kl(OneHotCategorical, OneHotCategorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    if p._classes != q._classes:
        raise ValueError(
            "kl_divergence: expected distributions of equal numbers of classes, got"
            f" {p._classes} and {q._classes}"
        )
    probs = p.probs
    difference = p.logits - q.logits
    return ops.sum(
        ops.where(probs > 0, probs * ops.where(probs > 0, difference, 0.0), 0.0), axis=-1
    )


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    squares = ops.square(p.scale + q.scale) + ops.square(p.loc - q.loc)
    return ops.log(squares) - ops.log(4 * p.scale * q.scale)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    total, other = ops.sum(a, axis=-1), ops.sum(b, axis=-1)
    levels = special.psi(a) - ops.expand_dims(special.psi(total), axis=-1)
    return (
        special.gammaln(total)
        - special.gammaln(other)
        + ops.sum(special.gammaln(b) - special.gammaln(a) + (a - b) * levels, axis=-1)
    )


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1 - ops.log(ratio)


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
    a, b = p.concentration, q.concentration
    return (
        b * ops.log(p.rate / q.rate)
        + special.gammaln(b)
        - special.gammaln(a)
        + (a - b) * special.psi(a)
        + (q.rate - p.rate) * (a / p.rate)
    )


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - q._weighted_logs(ops.ones_like(p.mean), p.mean)


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio, shift = p.scale / q.scale, (q.loc - p.loc) / q.scale
    last = ops.exp(shift + special.gammaln(ratio + 1))
    return -ops.log(ratio) - shift + ratio * EULER + last - (1 + EULER)


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return _normal(p._normal, q._normal)


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    distance = ops.abs(p.loc - q.loc)
    near = p.scale / q.scale * ops.exp(-distance / p.scale)
    return ops.log(q.scale / p.scale) + distance / q.scale + near - 1


@register_kl(LogNormal, LogNormal)
def _log_normal(p: LogNormal, q: LogNormal) -> Tensor:
    return _normal(p._normal, q._normal)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    trace = ops.square(linalg.solve_triangular(q.scale_tril, p.scale_tril, upper=False))
    shift = squared_mahalanobis(q.scale_tril, q.loc - p.loc)
    return (
        q.half_log_det
        - p.half_log_det
        + (ops.sum(trace, axis=(-2, -1)) + shift - p.event_shape[0]) / 2
    )


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    ratio, shift = ops.square(p.scale / q.scale), ops.square((p.loc - q.loc) / q.scale)
    return (ratio + shift - 1 - ops.log(ratio)) / 2


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return special.xlogy(p.rate, p.rate) - special.xlogy(p.rate, q.rate) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    logs = ops.log((q.high - q.low) / (p.high - p.low))
    return ops.where((q.low > p.low) | (q.high < p.high), math.inf, logs)


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            "kl_divergence: expected Independent distributions of the same"
            f" reinterpreted_batch_ndims, got {p.reinterpreted_batch_ndims} and"
            f" {q.reinterpreted_batch_ndims}"
        )
    return p._summed(kl_divergence(p.base_dist, q.base_dist))


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms:
        raise NotImplementedError(
            "kl_divergence: expected TransformedDistributions by the same transforms, got others"
        )
    return kl_divergence(p.base_dist, q.base_dist)


# Pairs of two types: minus the entropy of p, minus the mean of q.log_prob over p


def _cross_normal(p: Distribution, q: Normal) -> Tensor:
    """Return minus the mean of the logarithm of a normal density: it depends on two moments."""
    squares = p.variance + ops.square(p.mean - q.loc)
    return squares / (2 * ops.square(q.scale)) + ops.log(q.scale) + LOG_2PI / 2


@register_kl(Beta, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Uniform, Normal)
def _to_normal(p: Distribution, q: Normal) -> Tensor:
    return _cross_normal(p, q) - p.entropy()


@register_kl(Beta, Exponential)
@register_kl(Gamma, Exponential)
@register_kl(Uniform, Exponential)
def _to_exponential(p: Distribution, q: Exponential) -> Tensor:
    divergence = q.rate * p.mean - ops.log(q.rate) - p.entropy()
    return ops.where(p.low < 0, math.inf, divergence) if isinstance(p, Uniform) else divergence


def _cross_gamma(mean: Tensor, mean_log: Tensor, q: Gamma) -> Tensor:
    """Return minus the mean of the logarithm of a gamma density."""
    a = q.concentration
    return special.gammaln(a) - a * ops.log(q.rate) - (a - 1) * mean_log + q.rate * mean


@register_kl(Beta, Gamma)
def _beta_gamma(p: Beta, q: Gamma) -> Tensor:
    mean_log = special.psi(p.concentration1) - special.psi(p._total)
    return _cross_gamma(p.mean, mean_log, q) - p.entropy()


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Exponential, q: Gamma) -> Tensor:
    return _cross_gamma(p.mean, -EULER - ops.log(p.rate), q) - p.entropy()


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Uniform, q: Gamma) -> Tensor:
    inside = p.low >= 0
    low, high = ops.where(inside, p.low, 0.0), ops.where(inside, p.high, 1.0)
    mean_log = (special.xlogy(high, high) - special.xlogy(low, low)) / (high - low) - 1
    divergence = _cross_gamma((low + high) / 2, mean_log, q) - ops.log(high - low)
    return ops.where(inside, divergence, math.inf)


@register_kl(Uniform, Beta)
def _uniform_beta(p: Uniform, q: Beta) -> Tensor:
    inside = (p.low >= 0) & (p.high <= 1)
    low, high = ops.where(inside, p.low, 0.0), ops.where(inside, p.high, 1.0)
    width = high - low
    mean_log = (special.xlogy(high, high) - special.xlogy(low, low)) / width - 1
    others = special.xlog1py(1 - low, -low) - special.xlog1py(1 - high, -high)
    mean_other = others / width - 1
    a, b = q.concentration1, q.concentration0
    divergence = special.betaln(a, b) - (a - 1) * mean_log - (b - 1) * mean_other - ops.log(width)
    return ops.where(inside, divergence, math.inf)


@register_kl(Beta, Uniform)
def _beta_uniform(p: Beta, q: Uniform) -> Tensor:
    divergence = ops.log(q.high - q.low) - p.entropy()
    return ops.where((q.low > 0) | (q.high < 1), math.inf, divergence)


@register_kl(Exponential, Gumbel)
@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Exponential | Gamma, q: Gumbel) -> Tensor:
    """The mean of exp(-x / scale) is (rate / (rate + 1 / scale))**concentration."""
    a = p.concentration if isinstance(p, Gamma) else 1.0
    power = ops.exp(q.loc / q.scale - a * ops.log1p(1 / (p.rate * q.scale)))
    return (p.mean - q.loc) / q.scale + power + ops.log(q.scale) - p.entropy()


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Normal, q: Gumbel) -> Tensor:
    shift, ratio = (p.loc - q.loc) / q.scale, p.scale / q.scale
    return shift + ops.exp(ops.square(ratio) / 2 - shift) + ops.log(q.scale) - p.entropy()


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Uniform, q: Gumbel) -> Tensor:
    low, high = (p.low - q.loc) / q.scale, (p.high - q.loc) / q.scale
    mean_exp = (ops.exp(-low) - ops.exp(-high)) / (high - low)
    return (low + high) / 2 + mean_exp + ops.log(q.scale) - p.entropy()


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> Tensor:
    z = (p.loc - q.loc) / p.scale
    distance = p.scale * math.sqrt(2 / math.pi) * ops.exp(-ops.square(z) / 2) + (
        p.loc - q.loc
    ) * special.erf(z / math.sqrt(2))
    return distance / q.scale + ops.log(2 * q.scale) - p.entropy()


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return q.rate - special.xlogy(p.probs, q.rate) - p.entropy()
