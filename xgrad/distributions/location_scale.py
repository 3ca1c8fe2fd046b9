"""Continuous distributions with a closed form of their quantiles, from which they are drawn."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from xgrad import ops
from xgrad.core.arguments import ArrayLike
from xgrad.core.tensor import Tensor
from xgrad.distributions import constraints
from xgrad.distributions.constraints import Constraint
from xgrad.distributions.distribution import (
    Distribution,
    Shape,
    exponential_noise,
    parameters,
    probability_noise,
    uniform_noise,
)

__all__ = ["Cauchy", "Gumbel", "Laplace", "Uniform"]

EULER = 0.5772156649015328606  # the constant of Euler and Mascheroni


class _LocationScale(Distribution):
    """A distribution with a location and a scale, drawn by its quantiles."""

    arg_constraints: ClassVar = {"loc": constraints.real, "scale": constraints.positive}
    _support = constraints.real
    has_rsample = True

    def __init__(self, loc: ArrayLike, scale: ArrayLike, validate_args: bool | None = None) -> None:
        self.loc, self.scale = parameters(self._name, loc=loc, scale=scale)
        super().__init__(self.loc.shape, (), validate_args)

    @property
    def mode(self) -> Tensor:
        return self.loc

    def _standardized(self, value: Any) -> Tensor:
        return (self._value(value, self.loc) - self.loc) / self.scale

    def _noise(self, sample_shape: Shape) -> Tensor:
        """Return probabilities, which are drawn in float64 for the sake of the tails."""
        return probability_noise(self._full_shape(sample_shape), self.loc)


class Laplace(_LocationScale):
    r"""The Laplace distribution.

    .. math:: \ln(p(x)) = -\frac{|x - \mu|}{s} - \ln(2 s)

    μ is `loc`, and s is `scale`.

    Parameters
    ----------
    loc : Tensor or float
        The mean.
    scale : Tensor or float
        Above 0.
    validate_args : bool, optional
        See `Distribution`.

    Raises
    ------
    TypeError
        If a parameter is not floating.
    ValueError
        If a parameter is invalid, or the shapes do not broadcast.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.distributions.Laplace(0.0, 1.0).cdf(xgrad.asarray([-1.0, 0.0]))
    Tensor([0.18393971, 0.5       ])
    """

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 2 * ops.square(self.scale)

    def _draw(self, sample_shape: Shape) -> Tensor:
        return self.loc + self.scale * _laplace(self._noise(sample_shape)).astype(self.loc.dtype)

    def log_prob(self, value: ArrayLike) -> Tensor:
        return -ops.log(2 * self.scale) - ops.abs(self._standardized(value))

    def cdf(self, value: ArrayLike) -> Tensor:
        z = self._standardized(value)
        below, above = ops.where(z < 0, z, 0.0), ops.where(z < 0, 0.0, z)
        return ops.where(z < 0, ops.exp(below) / 2, 1 - ops.exp(-above) / 2)

    def icdf(self, value: ArrayLike) -> Tensor:
        return self.loc + self.scale * _laplace(self._probability(value, self.loc))

    def entropy(self) -> Tensor:
        return 1 + ops.log(2 * self.scale)


def _laplace(p: Tensor) -> Tensor:
    """Return the quantiles of the standard distribution."""
    is_lower = p < 0.5
    lower, upper = ops.where(is_lower, p, 0.5), ops.where(is_lower, 0.5, p)
    return ops.where(is_lower, ops.log(2 * lower), -ops.log(2 * (1 - upper)))


class Cauchy(_LocationScale):
    r"""The Cauchy distribution, which has no mean.

    .. math:: \ln(p(x)) = -\ln\left(1 + \frac{(x - \mu)^2}{s^2}\right) - \ln(\pi s)

    μ is `loc`, and s is `scale`.

    Parameters
    ----------
    loc : Tensor or float
        The median.
    scale : Tensor or float
        Half the distance of the quartiles, above 0.
    validate_args : bool, optional
        See `Distribution`.

    Raises
    ------
    TypeError
        If a parameter is not floating.
    ValueError
        If a parameter is invalid, or the shapes do not broadcast.

    Examples
    --------
    >>> import xgrad
    >>> cauchy = xgrad.distributions.Cauchy(0.0, 1.0)
    >>> cauchy.cdf(1.0), cauchy.mean
    (Tensor(0.75), Tensor(nan))
    """

    @property
    def mean(self) -> Tensor:
        return ops.full_like(self.loc, math.nan)

    @property
    def variance(self) -> Tensor:
        return ops.full_like(self.loc, math.inf)

    def _draw(self, sample_shape: Shape) -> Tensor:
        return self.loc + self.scale * _cauchy(self._noise(sample_shape)).astype(self.loc.dtype)

    def log_prob(self, value: ArrayLike) -> Tensor:
        squared = ops.square(self._standardized(value))
        return -math.log(math.pi) - ops.log(self.scale) - ops.log1p(squared)

    def cdf(self, value: ArrayLike) -> Tensor:
        return ops.atan(self._standardized(value)) / math.pi + 0.5

    def icdf(self, value: ArrayLike) -> Tensor:
        return self.loc + self.scale * _cauchy(self._probability(value, self.loc))

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + ops.log(self.scale)


def _cauchy(p: Tensor) -> Tensor:
    """Return the quantiles of the standard distribution."""
    return ops.tan(math.pi * (p - 0.5))


class Gumbel(_LocationScale):
    r"""The Gumbel distribution, of the largest of many exponential numbers.

    .. math:: \ln(p(x)) = -z - e^{-z} - \ln(s), \quad z = \frac{x - \mu}{s}

    μ is `loc`, and s is `scale`.

    Parameters
    ----------
    loc : Tensor or float
        The mode.
    scale : Tensor or float
        Above 0.
    validate_args : bool, optional
        See `Distribution`.

    Raises
    ------
    TypeError
        If a parameter is not floating.
    ValueError
        If a parameter is invalid, or the shapes do not broadcast.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.distributions.Gumbel(1.0, 2.0).mean
    Tensor(2.1544313)
    """

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * EULER

    @property
    def variance(self) -> Tensor:
        return ops.square(self.scale) * (math.pi**2 / 6)

    def _draw(self, sample_shape: Shape) -> Tensor:
        drawn = exponential_noise(self._full_shape(sample_shape), self.loc)
        smallest = 2.0**-54  # of the exponential numbers, which may be 0
        return self.loc - self.scale * ops.log(ops.maximum(drawn, smallest))

    def log_prob(self, value: ArrayLike) -> Tensor:
        z = self._standardized(value)
        return -z - ops.exp(-z) - ops.log(self.scale)

    def cdf(self, value: ArrayLike) -> Tensor:
        return ops.exp(-ops.exp(-self._standardized(value)))

    def icdf(self, value: ArrayLike) -> Tensor:
        return self.loc - self.scale * ops.log(-ops.log(self._probability(value, self.loc)))

    def entropy(self) -> Tensor:
        return ops.log(self.scale) + (1 + EULER)


class Uniform(Distribution):
    r"""The uniform distribution from `low` to `high`.

    .. math:: \ln(p(x)) = -\ln(b - a), \quad a \le x < b

    a is `low`, and b is `high`.

    Parameters
    ----------
    low, high : Tensor or float
        The bounds: `low` is below `high`.
    validate_args : bool, optional
        See `Distribution`.

    Raises
    ------
    TypeError
        If a parameter is not floating.
    ValueError
        If the bounds are in the wrong order, or the shapes do not broadcast.

    Examples
    --------
    >>> import xgrad
    >>> uniform = xgrad.distributions.Uniform(-1.0, 3.0)
    >>> uniform.mean, uniform.cdf(0.0)
    (Tensor(1.), Tensor(0.25))
    """

    arg_constraints: ClassVar = {"low": constraints.real, "high": constraints.real}
    has_rsample = True

    def __init__(self, low: ArrayLike, high: ArrayLike, validate_args: bool | None = None) -> None:
        self.low, self.high = parameters(self._name, low=low, high=high)
        super().__init__(self.low.shape, (), validate_args)
        if self._validates:
            self._check("low and high", self.low < self.high, "low < high")

    @property
    def support(self) -> Constraint:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.low + self.high) / 2

    @property
    def mode(self) -> Tensor:
        return ops.full_like(self.low, math.nan)

    @property
    def variance(self) -> Tensor:
        return ops.square(self.high - self.low) / 12

    def _draw(self, sample_shape: Shape) -> Tensor:
        drawn = uniform_noise(self._full_shape(sample_shape), self.low)
        return self.low + (self.high - self.low) * drawn

    def log_prob(self, value: ArrayLike) -> Tensor:
        value = self._value(value, self.low)
        inside = (value >= self.low) & (value < self.high)
        return ops.where(inside, -ops.log(self.high - self.low), -math.inf)

    def cdf(self, value: ArrayLike) -> Tensor:
        value = self._value(value, self.low)
        return ops.clip((value - self.low) / (self.high - self.low), 0.0, 1.0)

    def icdf(self, value: ArrayLike) -> Tensor:
        return self.low + (self.high - self.low) * self._probability(value, self.low)

    def entropy(self) -> Tensor:
        return ops.log(self.high - self.low)
