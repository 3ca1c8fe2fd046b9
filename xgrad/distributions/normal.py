"""Normal distributions of numbers, and distributions derived from them."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from xgrad import ops, special
from xgrad.core.arguments import ArrayLike
from xgrad.core.tensor import Tensor
from xgrad.distributions import constraints
from xgrad.distributions.distribution import (
    LOG_2PI,
    Distribution,
    Shape,
    normal_noise,
    parameters,
)

__all__ = ["HalfNormal", "LogNormal", "Normal"]


class Normal(Distribution):
    r"""The normal distribution.

    .. math:: \ln(p(x)) = -\frac{(x - \mu)^2}{2 \sigma^2} - \ln(\sigma) - \tfrac{1}{2} \ln(2 \pi)

    :math:`\mu` is `loc`, and :math:`\sigma` is `scale`.

    Parameters
    ----------
    loc : Tensor or float
        The mean.
    scale : Tensor or float
        The standard deviation, above 0.
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
    >>> normal = xgrad.distributions.Normal(0.0, xgrad.asarray([1.0, 2.0]))
    >>> normal.log_prob(0.0)
    Tensor([-0.9189385, -1.6120857])
    >>> scale = xgrad.tensor(2.0, requires_grad=True)
    >>> xgrad.distributions.Normal(1.0, scale).rsample((1000,)).std().backward()
    >>> 0.9 < scale.grad.item() < 1.1
    True
    """

    arg_constraints: ClassVar = {"loc": constraints.real, "scale": constraints.positive}
    _support = constraints.real
    has_rsample = True

    def __init__(self, loc: ArrayLike, scale: ArrayLike, validate_args: bool | None = None) -> None:
        self.loc, self.scale = parameters(self._name, loc=loc, scale=scale)
        super().__init__(self.loc.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return ops.square(self.scale)

    def _draw(self, sample_shape: Shape) -> Tensor:
        return self.loc + self.scale * normal_noise(self._full_shape(sample_shape), self.loc)

    def _standardized(self, value: Any) -> Tensor:
        return (self._value(value, self.loc) - self.loc) / self.scale

    def log_prob(self, value: ArrayLike) -> Tensor:
        return -ops.square(self._standardized(value)) / 2 - ops.log(self.scale) - LOG_2PI / 2

    def cdf(self, value: ArrayLike) -> Tensor:
        return special.ndtr(self._standardized(value))

    def icdf(self, value: ArrayLike) -> Tensor:
        return self.loc + self.scale * special.ndtri(self._probability(value, self.loc))

    def entropy(self) -> Tensor:
        return 0.5 + LOG_2PI / 2 + ops.log(self.scale)


class LogNormal(Distribution):
    r"""The distribution of numbers whose logarithm is normal.

    .. math::

        \ln(p(x)) = -\frac{(\ln(x) - \mu)^2}{2 \sigma^2} - \ln(\sigma\, x)
        - \tfrac{1}{2} \ln(2 \pi)

    :math:`\mu` is `loc`, and :math:`\sigma` is `scale`.

    Parameters
    ----------
    loc : Tensor or float
        The mean of the logarithm.
    scale : Tensor or float
        The standard deviation of the logarithm, above 0.
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
    >>> xgrad.distributions.LogNormal(0.0, 1.0).mean
    Tensor(1.6487212)
    """

    arg_constraints: ClassVar = Normal.arg_constraints
    _support = constraints.positive
    has_rsample = True

    def __init__(self, loc: ArrayLike, scale: ArrayLike, validate_args: bool | None = None) -> None:
        self.loc, self.scale = parameters(self._name, loc=loc, scale=scale)
        super().__init__(self.loc.shape, (), validate_args)

    @property
    def _normal(self) -> Normal:
        return Normal(self.loc, self.scale, validate_args=False)

    @property
    def mean(self) -> Tensor:
        return ops.exp(self.loc + ops.square(self.scale) / 2)

    @property
    def mode(self) -> Tensor:
        return ops.exp(self.loc - ops.square(self.scale))

    @property
    def variance(self) -> Tensor:
        squared = ops.square(self.scale)
        return ops.expm1(squared) * ops.exp(2 * self.loc + squared)

    def _draw(self, sample_shape: Shape) -> Tensor:
        return ops.exp(self._normal._draw(sample_shape))

    def log_prob(self, value: ArrayLike) -> Tensor:
        log = ops.log(self._value(value, self.loc))
        return self._normal.log_prob(log) - log

    def cdf(self, value: ArrayLike) -> Tensor:
        return self._normal.cdf(ops.log(self._value(value, self.loc)))

    def icdf(self, value: ArrayLike) -> Tensor:
        return ops.exp(self._normal.icdf(self._probability(value, self.loc)))

    def entropy(self) -> Tensor:
        return self._normal.entropy() + self.loc


class HalfNormal(Distribution):
    r"""The distribution of absolute values of normal numbers of mean 0.

    .. math::

        \ln(p(x)) = -\frac{x^2}{2 \sigma^2} - \ln(\sigma) + \tfrac{1}{2} \ln(2 / \pi),
        \quad x \ge 0

    :math:`\sigma` is `scale`.

    Parameters
    ----------
    scale : Tensor or float
        The standard deviation of the normal numbers, above 0.
    validate_args : bool, optional
        See `Distribution`.

    Raises
    ------
    TypeError
        If the parameter is not floating.
    ValueError
        If the parameter is invalid.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.distributions.HalfNormal(2.0).cdf(xgrad.asarray([0.0, 2.0]))
    Tensor([0.       , 0.6826895])
    """

    arg_constraints: ClassVar = {"scale": constraints.positive}
    _support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: ArrayLike, validate_args: bool | None = None) -> None:
        (self.scale,) = parameters(self._name, scale=scale)
        super().__init__(self.scale.shape, (), validate_args)

    @property
    def _normal(self) -> Normal:
        return Normal(ops.zeros_like(self.scale), self.scale, validate_args=False)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self) -> Tensor:
        return ops.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return ops.square(self.scale) * (1 - 2 / math.pi)

    def _draw(self, sample_shape: Shape) -> Tensor:
        return self.scale * ops.abs(normal_noise(self._full_shape(sample_shape), self.scale))

    def log_prob(self, value: ArrayLike) -> Tensor:
        value = self._value(value, self.scale)
        density = self._normal.log_prob(value) + math.log(2)
        return ops.where(value >= 0, density, -math.inf)

    def cdf(self, value: ArrayLike) -> Tensor:
        value = self._value(value, self.scale)
        return special.erf(value / (self.scale * math.sqrt(2)))

    def icdf(self, value: ArrayLike) -> Tensor:
        value = self._probability(value, self.scale)
        return self.scale * math.sqrt(2) * special.erfinv(value)

    def entropy(self) -> Tensor:
        return self._normal.entropy() - math.log(2)
