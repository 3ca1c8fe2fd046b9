"""The gamma distribution, and the distributions of ratios and roots of gamma variates.

Samples are quantiles of uniform numbers. Their derivative by the shape is the implicit one [1]_,
minus the derivative of the distribution function by the shape, divided by the density, which
`gammaincinv` has as its gradient. It is exact at first order; second derivatives by the shape are
refused.

.. [1] M. Figurnov, S. Mohamed, A. Mnih, "Implicit reparameterization gradients", NeurIPS 2018.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from xgrad import ops, special
from xgrad.core.arguments import ArrayLike
from xgrad.core.dtypes import float64
from xgrad.core.tensor import Tensor
from xgrad.distributions import constraints
from xgrad.distributions.distribution import (
    Distribution,
    Shape,
    exponential_noise,
    normal_noise,
    parameters,
    probability_noise,
)

__all__ = ["Beta", "Chi2", "Dirichlet", "Exponential", "Gamma", "StudentT"]

_SMALL = 1e-30  # below, one term of a series gives the logarithm of a gamma variate


def standard_gamma(concentration: Tensor, shape: Shape) -> Tensor:
    """Return gamma variates of rate 1, at least the smallest normal number."""
    uniform = probability_noise(shape, concentration)
    drawn = special.gammaincinv(concentration.astype(float64), uniform)
    return ops.maximum(
        drawn.astype(concentration.dtype), ops.finfo(concentration.dtype).smallest_normal
    )


def log_standard_gamma(concentration: Tensor, shape: Shape) -> Tensor:
    """Return logarithms of gamma variates, float64, also where the variates underflow."""
    uniform = probability_noise(shape, concentration)
    a = ops.broadcast_to(concentration.astype(float64), shape)
    drawn = special.gammaincinv(a, uniform)
    is_small = drawn < _SMALL
    first_term = (ops.log(uniform) + special.gammaln(a + 1)) / a  # of x in u = x**a / gamma(a + 1)
    return ops.where(is_small, first_term, ops.log(ops.where(is_small, 1.0, drawn)))


class Gamma(Distribution):
    r"""The gamma distribution.

    .. math:: \ln(p(x)) = a \ln(b) + (a - 1) \ln(x) - b\, x - \ln(\Gamma(a))

    a is `concentration`, and b is `rate`.

    Parameters
    ----------
    concentration : Tensor or float
        The shape, above 0.
    rate : Tensor or float
        One divided by the scale, above 0.
    validate_args : bool, optional
        See `Distribution`.

    Raises
    ------
    TypeError
        If a parameter is not floating.
    ValueError
        If a parameter is invalid, or the shapes do not broadcast.
    NotImplementedError
        In a backward pass, for second derivatives of `cdf`, `icdf` and samples by `concentration`.

    Notes
    -----
    Samples have the implicit derivative by `concentration`, to about 12 digits in float64 [1]_.

    References
    ----------
    .. [1] M. Figurnov, S. Mohamed, A. Mnih, "Implicit reparameterization gradients", NeurIPS 2018.

    Examples
    --------
    >>> import xgrad
    >>> gamma = xgrad.distributions.Gamma(xgrad.asarray([1.0, 2.0]), 2.0)
    >>> gamma.mean, gamma.log_prob(1.0)
    (Tensor([0.5, 1. ]), Tensor([-1.3068528 , -0.61370564]))
    """

    arg_constraints: ClassVar = {
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    _support = constraints.nonnegative
    has_rsample = True

    def __init__(
        self, concentration: ArrayLike, rate: ArrayLike, validate_args: bool | None = None
    ) -> None:
        self.concentration, self.rate = parameters(
            self._name, concentration=concentration, rate=rate
        )
        super().__init__(self.rate.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ops.maximum(self.concentration - 1, 0.0) / self.rate

    @property
    def variance(self) -> Tensor:
        return self.concentration / ops.square(self.rate)

    def _draw(self, sample_shape: Shape) -> Tensor:
        return standard_gamma(self.concentration, self._full_shape(sample_shape)) / self.rate

    def log_prob(self, value: ArrayLike) -> Tensor:
        x = self._value(value, self.rate)
        return (
            self.concentration * ops.log(self.rate)
            + special.xlogy(self.concentration - 1, x)
            - self.rate * x
            - special.gammaln(self.concentration)
        )

    def cdf(self, value: ArrayLike) -> Tensor:
        return special.gammainc(self.concentration, self.rate * self._value(value, self.rate))

    def icdf(self, value: ArrayLike) -> Tensor:
        probability = self._probability(value, self.rate)
        return special.gammaincinv(self.concentration, probability) / self.rate

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - ops.log(self.rate) + special.gammaln(a) + (1 - a) * special.psi(a)


class Chi2(Gamma):
    r"""The chi-squared distribution: the sum of squares of `df` standard normal numbers.

    .. math:: \ln(p(x)) = (k / 2 - 1) \ln(x) - x / 2 - (k / 2) \ln(2) - \ln(\Gamma(k / 2))

    k is `df`.

    Parameters
    ----------
    df : Tensor or float
        The degrees of freedom, above 0.
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
    >>> chi2 = xgrad.distributions.Chi2(3.0)
    >>> chi2.mean, chi2.variance
    (Tensor(3.), Tensor(6.))
    """

    arg_constraints: ClassVar = {"df": constraints.positive}

    def __init__(self, df: ArrayLike, validate_args: bool | None = None) -> None:
        (self.df,) = parameters(self._name, df=df)
        super().__init__(self.df / 2, ops.full_like(self.df, 0.5), validate_args)


class Exponential(Distribution):
    r"""The exponential distribution.

    .. math:: \ln(p(x)) = \ln(b) - b\, x

    b is `rate`.

    Parameters
    ----------
    rate : Tensor or float
        One divided by the mean, above 0.
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
    >>> xgrad.distributions.Exponential(2.0).mean
    Tensor(0.5)
    """

    arg_constraints: ClassVar = {"rate": constraints.positive}
    _support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate: ArrayLike, validate_args: bool | None = None) -> None:
        (self.rate,) = parameters(self._name, rate=rate)
        super().__init__(self.rate.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return 1 / self.rate

    @property
    def mode(self) -> Tensor:
        return ops.zeros_like(self.rate)

    @property
    def variance(self) -> Tensor:
        return 1 / ops.square(self.rate)

    @property
    def stddev(self) -> Tensor:
        return 1 / self.rate

    def _draw(self, sample_shape: Shape) -> Tensor:
        return exponential_noise(self._full_shape(sample_shape), self.rate) / self.rate

    def log_prob(self, value: ArrayLike) -> Tensor:
        return ops.log(self.rate) - self.rate * self._value(value, self.rate)

    def cdf(self, value: ArrayLike) -> Tensor:
        return -ops.expm1(-self.rate * self._value(value, self.rate))

    def icdf(self, value: ArrayLike) -> Tensor:
        return -ops.log1p(-self._probability(value, self.rate)) / self.rate

    def entropy(self) -> Tensor:
        return 1 - ops.log(self.rate)


class Beta(Distribution):
    r"""The beta distribution, of numbers from 0 to 1.

    .. math:: \ln(p(x)) = (a - 1) \ln(x) + (b - 1) \ln(1 - x) - \ln(B(a, b))

    a is `concentration1`, b is `concentration0`, and B the beta function.

    Parameters
    ----------
    concentration1, concentration0 : Tensor or float
        The shapes, above 0.
    validate_args : bool, optional
        See `Distribution`.

    Raises
    ------
    TypeError
        If a parameter is not floating.
    ValueError
        If a parameter is invalid, or the shapes do not broadcast.
    NotImplementedError
        In a backward pass, for derivatives of `cdf` and `icdf` by the parameters, and for second
        derivatives of samples by them.

    Notes
    -----
    A sample is the share of one of two gamma variates in their sum, and has their implicit
    derivatives: see `Gamma`. PyTorch's samples depend on their parameters in another way, so that
    gradients of single samples differ; their means agree.

    Examples
    --------
    >>> import xgrad
    >>> beta = xgrad.distributions.Beta(2.0, 3.0)
    >>> beta.mean, beta.log_prob(0.5)
    (Tensor(0.4), Tensor(0.40546513))
    """

    arg_constraints: ClassVar = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    _support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        concentration1: ArrayLike,
        concentration0: ArrayLike,
        validate_args: bool | None = None,
    ) -> None:
        self.concentration1, self.concentration0 = parameters(
            self._name, concentration1=concentration1, concentration0=concentration0
        )
        super().__init__(self.concentration1.shape, (), validate_args)

    @property
    def _total(self) -> Tensor:
        return self.concentration1 + self.concentration0

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / self._total

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        inner = (a - 1) / ops.where(a + b == 2, 1.0, a + b - 2)
        is_one_peak = (a > 1) & (b > 1)
        at_end = ops.where(a == b, math.nan, ops.astype(a > b, a.dtype))
        return ops.where(is_one_peak, inner, at_end)

    @property
    def variance(self) -> Tensor:
        total = self._total
        return self.concentration1 * self.concentration0 / (ops.square(total) * (total + 1))

    def _draw(self, sample_shape: Shape) -> Tensor:
        shape = self._full_shape(sample_shape)
        ratio = log_standard_gamma(self.concentration1, shape) - log_standard_gamma(
            self.concentration0, shape
        )
        return ops.sigmoid(ratio).astype(self.concentration1.dtype)

    def log_prob(self, value: ArrayLike) -> Tensor:
        a, b = self.concentration1, self.concentration0
        value = self._value(value, a)
        return special.xlogy(a - 1, value) + special.xlog1py(b - 1, -value) - special.betaln(a, b)

    def cdf(self, value: ArrayLike) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return special.betainc(a, b, self._value(value, a))

    def icdf(self, value: ArrayLike) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return special.betaincinv(a, b, self._probability(value, a))

    def entropy(self) -> Tensor:
        a, b, total = self.concentration1, self.concentration0, self._total
        return (
            special.betaln(a, b)
            - (a - 1) * special.psi(a)
            - (b - 1) * special.psi(b)
            + (total - 2) * special.psi(total)
        )


class Dirichlet(Distribution):
    r"""The Dirichlet distribution, of vectors of probabilities.

    .. math::

        \ln(p(x)) = \sum_i (a_i - 1) \ln(x_i) + \ln(\Gamma(\sum_i a_i))
        - \sum_i \ln(\Gamma(a_i))

    a is `concentration`.

    Parameters
    ----------
    concentration : Tensor
        The shapes, above 0, along the last axis.
    validate_args : bool, optional
        See `Distribution`.

    Raises
    ------
    TypeError
        If the parameter is not floating.
    ValueError
        If the parameter is invalid, or has no axis.
    NotImplementedError
        In a backward pass, for second derivatives of samples by `concentration`.

    Notes
    -----
    A sample has the shares of gamma variates in their sum, with their implicit derivatives: see
    `Gamma`. The variates are computed as logarithms, so that no sample is NaN at small shapes.

    Examples
    --------
    >>> import xgrad
    >>> dirichlet = xgrad.distributions.Dirichlet(xgrad.asarray([1.0, 2.0, 5.0]))
    >>> dirichlet.mean
    Tensor([0.125, 0.25 , 0.625])
    >>> round(dirichlet.sample().sum().item(), 5)
    1.0
    """

    arg_constraints: ClassVar = {
        "concentration": constraints.Constraint(
            "numbers above 0", lambda x: ops.all(x > 0, axis=-1), 1
        )
    }
    _support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: ArrayLike, validate_args: bool | None = None) -> None:
        (self.concentration,) = parameters(self._name, (1,), concentration=concentration)
        shape = self.concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    @property
    def _total(self) -> Tensor:
        return ops.sum(self.concentration, axis=-1, keepdims=True)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self._total

    @property
    def mode(self) -> Tensor:
        above = ops.maximum(self.concentration - 1, 0.0)
        total = ops.sum(above, axis=-1, keepdims=True)
        return ops.where(total > 0, above / ops.where(total > 0, total, 1.0), math.nan)

    @property
    def variance(self) -> Tensor:
        a, total = self.concentration, self._total
        return a * (total - a) / (ops.square(total) * (total + 1))

    def _draw(self, sample_shape: Shape) -> Tensor:
        logs = log_standard_gamma(self.concentration, self._full_shape(sample_shape))
        return special.softmax(logs, axis=-1).astype(self.concentration.dtype)

    def log_prob(self, value: ArrayLike) -> Tensor:
        a = self.concentration
        value = self._value(value, a)
        return (
            ops.sum(special.xlogy(a - 1, value), axis=-1)
            + special.gammaln(ops.sum(a, axis=-1))
            - ops.sum(special.gammaln(a), axis=-1)
        )

    def entropy(self) -> Tensor:
        a, total, n = self.concentration, self._total[..., 0], self._event_shape[0]
        return (
            ops.sum(special.gammaln(a), axis=-1)
            - special.gammaln(total)
            - (n - total) * special.psi(total)
            - ops.sum((a - 1) * special.psi(a), axis=-1)
        )


class StudentT(Distribution):
    r"""Student's t distribution.

    .. math::

        \ln(p(x)) = -\frac{k + 1}{2} \ln\left(1 + \frac{z^2}{k}\right) - \ln(\sigma)
        - \tfrac{1}{2} \ln(k) - \ln(B(\tfrac{1}{2}, \tfrac{k}{2})),
        \quad z = \frac{x - \mu}{\sigma}

    k is `df`, :math:`\mu` is `loc`, :math:`\sigma` is `scale`, and B the beta function.

    Parameters
    ----------
    df : Tensor or float
        The degrees of freedom, above 0.
    loc : Tensor or float, default 0.0
        The median.
    scale : Tensor or float, default 1.0
        Above 0.
    validate_args : bool, optional
        See `Distribution`.

    Raises
    ------
    TypeError
        If a parameter is not floating.
    ValueError
        If a parameter is invalid, or the shapes do not broadcast.
    NotImplementedError
        In a backward pass, for derivatives of `cdf` and `icdf` by `df`, and for second derivatives
        of samples by it.

    Examples
    --------
    >>> import xgrad
    >>> student = xgrad.distributions.StudentT(xgrad.asarray([1.0, 1.5, 4.0]))
    >>> student.mean, student.variance
    (Tensor([nan,  0.,  0.]), Tensor([nan, inf,  2.]))
    """

    arg_constraints: ClassVar = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    _support = constraints.real
    has_rsample = True

    def __init__(
        self,
        df: ArrayLike,
        loc: ArrayLike = 0.0,
        scale: ArrayLike = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        self.df, self.loc, self.scale = parameters(self._name, df=df, loc=loc, scale=scale)
        super().__init__(self.df.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return ops.where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        df = ops.where(self.df > 2, self.df, 3.0)
        finite = ops.square(self.scale) * df / (df - 2)
        return ops.where(
            self.df > 2, finite, ops.where(self.df > 1, ops.full_like(df, math.inf), math.nan)
        )

    def _draw(self, sample_shape: Shape) -> Tensor:
        shape = self._full_shape(sample_shape)
        normal, chi2 = normal_noise(shape, self.df), 2 * standard_gamma(self.df / 2, shape)
        return self.loc + self.scale * normal * ops.sqrt(self.df / chi2)

    def _standardized(self, value: Any) -> Tensor:
        return (self._value(value, self.loc) - self.loc) / self.scale

    def log_prob(self, value: ArrayLike) -> Tensor:
        z = self._standardized(value)
        normalizer = ops.log(self.scale) + ops.log(self.df) / 2 + special.betaln(0.5, self.df / 2)
        return -(self.df + 1) / 2 * ops.log1p(ops.square(z) / self.df) - normalizer

    def cdf(self, value: ArrayLike) -> Tensor:
        return special.stdtr(self.df, self._standardized(value))

    def icdf(self, value: ArrayLike) -> Tensor:
        probability = self._probability(value, self.loc)
        return self.loc + self.scale * special.stdtrit(self.df, probability)

    def entropy(self) -> Tensor:
        half = (self.df + 1) / 2
        return (
            ops.log(self.scale)
            + half * (special.psi(half) - special.psi(self.df / 2))
            + ops.log(self.df) / 2
            + special.betaln(self.df / 2, 0.5)
        )
