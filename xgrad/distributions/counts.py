"""Distributions of counts, by probabilities or their logits."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from xgrad import ops, special
from xgrad.core.arguments import ArrayLike
from xgrad.core.dtypes import float64, get_default_dtype
from xgrad.core.tensor import Tensor
from xgrad.distributions import constraints
from xgrad.distributions.constraints import Constraint
from xgrad.distributions.distribution import (
    Distribution,
    Shape,
    one_of,
    parameters,
    probability_noise,
    uniform_noise,
)
from xgrad.random.counts import binomial_quantile, poisson_quantile

__all__ = ["Bernoulli", "Binomial", "Geometric", "Poisson"]


class _OfProbability(Distribution):
    """A distribution of single numbers with a probability, which is given itself or as a logit."""

    arg_constraints: ClassVar = {"probs": constraints.unit_interval, "logits": constraints.real}

    def _set_probability(self, probs: ArrayLike | None, logits: ArrayLike | None) -> None:
        self._given, value = one_of(self._name, probs=probs, logits=logits)
        (self._given_value,) = parameters(self._name, **{self._given: value})

    @property
    def probs(self) -> Tensor:
        """The probability of 1, or of success."""
        given = self._given_value
        return given if self._given == "probs" else ops.sigmoid(given)

    @property
    def logits(self) -> Tensor:
        """The logarithm of ``probs / (1 - probs)``."""
        given = self._given_value
        return given if self._given == "logits" else special.logit(given)

    def _parameters(self) -> dict[str, Tensor]:
        return {self._given: self._given_value}

    def _weighted_logs(self, successes: Tensor, failures: Tensor) -> Tensor:
        """Return successes * log(p) + failures * log(1 - p); the product of 0 and infinity is 0."""
        given = self._given_value
        if self._given == "probs":
            return special.xlogy(successes, given) + special.xlog1py(failures, -given)
        pairs = (successes, special.log_expit(given)), (failures, special.log_expit(-given))
        first, second = [
            count * ops.where((count == 0) & (log == -math.inf), 0.0, log) for count, log in pairs
        ]
        return first + second

    def _entropy_of_one(self) -> Tensor:
        """Return the entropy of one trial."""
        return -self._weighted_logs(self.probs, 1 - self.probs)


class Bernoulli(_OfProbability):
    r"""The distribution of numbers that are 1 with a probability, or else 0.

    .. math:: \ln(p(x)) = x \ln(q) + (1 - x) \ln(1 - q)

    q is `probs`.

    Parameters
    ----------
    probs : Tensor or float, optional
        The probability of 1.
    logits : Tensor or float, optional
        The logarithm of ``probs / (1 - probs)``. Exactly one of both is given.
    validate_args : bool, optional
        See `Distribution`.

    Raises
    ------
    TypeError
        If the parameter is not floating.
    ValueError
        If none or both are given, or the parameter is invalid.

    Notes
    -----
    Samples have the dtype of the parameter. `log_prob` of an impossible sample is minus infinity;
    PyTorch's is finite, since it clips probabilities by its dtype's epsilon.

    Examples
    --------
    >>> import xgrad
    >>> bernoulli = xgrad.distributions.Bernoulli(xgrad.asarray([0.25, 1.0]))
    >>> bernoulli.log_prob(1.0), bernoulli.variance
    (Tensor([-1.3862944,  0.       ]), Tensor([0.1875, 0.    ]))
    """

    _support = constraints.boolean
    has_enumerate_support = True

    def __init__(
        self,
        probs: ArrayLike | None = None,
        logits: ArrayLike | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._set_probability(probs, logits)
        super().__init__(self._given_value.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        probs = self.probs
        return ops.where(probs == 0.5, math.nan, ops.astype(probs > 0.5, probs.dtype))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def _draw(self, sample_shape: Shape) -> Tensor:
        probs = self.probs.detach()
        drawn = uniform_noise(self._full_shape(sample_shape), probs)
        return ops.astype(drawn < probs, probs.dtype)

    def log_prob(self, value: ArrayLike) -> Tensor:
        value = self._value(value, self._given_value)
        return self._weighted_logs(value, 1 - value)

    def entropy(self) -> Tensor:
        return self._entropy_of_one()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return _counted(self, 2, expand, self._given_value)


class Binomial(_OfProbability):
    r"""The distribution of the number of successes in independent trials.

    .. math:: \ln(p(x)) = \ln\left(\binom{n}{x}\right) + x \ln(q) + (n - x) \ln(1 - q)

    n is `total_count`, and q is `probs`.

    Parameters
    ----------
    total_count : int or Tensor, default 1
        The number of trials.
    probs : Tensor or float, optional
        The probability of a success.
    logits : Tensor or float, optional
        The logarithm of ``probs / (1 - probs)``. Exactly one of both is given.
    validate_args : bool, optional
        See `Distribution`.

    Raises
    ------
    TypeError
        If a parameter is not floating.
    ValueError
        If none or both of `probs` and `logits` are given, or a parameter is invalid.

    Examples
    --------
    >>> import xgrad
    >>> binomial = xgrad.distributions.Binomial(4, xgrad.asarray([0.25, 0.5]))
    >>> binomial.mean, binomial.log_prob(2.0)
    (Tensor([1., 2.]), Tensor([-1.5561934 , -0.98082924]))
    """

    arg_constraints: ClassVar = {
        "total_count": constraints.nonnegative_integer,
        **_OfProbability.arg_constraints,
    }

    def __init__(
        self,
        total_count: ArrayLike = 1,
        probs: ArrayLike | None = None,
        logits: ArrayLike | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._given, value = one_of(self._name, probs=probs, logits=logits)
        self._trials = None
        if isinstance(total_count, (int, float)) and not isinstance(total_count, bool):
            self._trials = int(total_count) if float(total_count).is_integer() else None
        if isinstance(total_count, Tensor) and total_count.dtype.kind in "iu":
            like = value.dtype if isinstance(value, Tensor) else None
            total_count = total_count.astype(like or get_default_dtype())
        self.total_count, self._given_value = parameters(
            self._name, **{"total_count": total_count, self._given: value}
        )
        super().__init__(self.total_count.shape, (), validate_args)

    has_enumerate_support = True

    @property
    def support(self) -> Constraint:
        return constraints.integer_interval(0, self.total_count)

    def _parameters(self) -> dict[str, Tensor]:
        return {"total_count": self.total_count, self._given: self._given_value}

    def _rebuilt(self, parameters: dict[str, Tensor]) -> Distribution:
        count: Any = parameters.pop("total_count") if self._trials is None else self._trials
        parameters.pop("total_count", None)
        return Binomial(count, **parameters, validate_args=False)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ops.clip(ops.floor((self.total_count + 1) * self.probs), None, self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def _draw(self, sample_shape: Shape) -> Tensor:
        count, probs = self.total_count.detach(), self.probs.detach()
        drawn = probability_noise(self._full_shape(sample_shape), count)
        counts = binomial_quantile(count.astype(float64), probs.astype(float64), drawn)
        return counts.astype(count.dtype)

    def log_prob(self, value: ArrayLike) -> Tensor:
        count = self.total_count
        value = self._value(value, count)
        ways = (
            special.gammaln(count + 1)
            - special.gammaln(value + 1)
            - special.gammaln(count - value + 1)
        )
        return ways + self._weighted_logs(value, count - value)

    def cdf(self, value: ArrayLike) -> Tensor:
        count = self.total_count
        value = ops.floor(self._value(value, count))
        inner = ops.where(value < count, value, 0.0)
        left = ops.where(count > inner, count - inner, 1.0)
        return ops.where(value < count, special.betaincc(inner + 1, left, self.probs), 1.0)

    def entropy(self) -> Tensor:
        """Return the entropy, a sum over all counts, if `total_count` is an int."""
        logs = self.log_prob(self.enumerate_support(expand=False))
        return -ops.sum(ops.exp(logs) * ops.where(logs == -math.inf, 0.0, logs), axis=0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self._trials is None:
            raise NotImplementedError(
                "Binomial: expected total_count of int for enumerate_support and entropy, got a"
                " tensor"
            )
        return _counted(self, self._trials + 1, expand, self.total_count)


class Geometric(_OfProbability):
    r"""The distribution of the number of failures before the first success.

    .. math:: \ln(p(x)) = \ln(q) + x \ln(1 - q)

    q is `probs`.

    Parameters
    ----------
    probs : Tensor or float, optional
        The probability of a success, above 0.
    logits : Tensor or float, optional
        The logarithm of ``probs / (1 - probs)``. Exactly one of both is given.
    validate_args : bool, optional
        See `Distribution`.

    Raises
    ------
    TypeError
        If the parameter is not floating.
    ValueError
        If none or both are given, or the parameter is invalid.

    Examples
    --------
    >>> import xgrad
    >>> geometric = xgrad.distributions.Geometric(0.25)
    >>> geometric.mean, geometric.log_prob(1.0)
    (Tensor(3.), Tensor(-1.6739764))
    """

    arg_constraints: ClassVar = {
        "probs": Constraint("numbers above 0, up to 1", lambda x: (x > 0) & (x <= 1)),
        "logits": constraints.real,
    }
    _support = constraints.nonnegative_integer

    def __init__(
        self,
        probs: ArrayLike | None = None,
        logits: ArrayLike | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._set_probability(probs, logits)
        super().__init__(self._given_value.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        return ops.zeros_like(self._given_value)

    @property
    def variance(self) -> Tensor:
        return (1 / self.probs - 1) / self.probs

    def _draw(self, sample_shape: Shape) -> Tensor:
        probs = self.probs.detach().astype(float64)
        drawn = probability_noise(self._full_shape(sample_shape), probs)
        failure = ops.log1p(-ops.minimum(probs, 1 - 2.0**-53))
        count = ops.floor(ops.log(drawn) / ops.minimum(failure, -(2.0**-1022)))
        return ops.where(probs == 1, 0.0, count).astype(self._given_value.dtype)

    def log_prob(self, value: ArrayLike) -> Tensor:
        value = self._value(value, self._given_value)
        return self._weighted_logs(ops.ones_like(value), value)

    def cdf(self, value: ArrayLike) -> Tensor:
        count = ops.floor(self._value(value, self._given_value)) + 1
        return -ops.expm1(self._weighted_logs(ops.zeros_like(count), count))

    def entropy(self) -> Tensor:
        return self._entropy_of_one() / self.probs


class Poisson(Distribution):
    r"""The Poisson distribution.

    .. math:: \ln(p(x)) = x \ln(r) - r - \ln(x!)

    r is `rate`.

    Parameters
    ----------
    rate : Tensor or float
        The mean, from 0 on.
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
    >>> poisson = xgrad.distributions.Poisson(xgrad.asarray([1.0, 4.0]))
    >>> poisson.variance, poisson.log_prob(2.0)
    (Tensor([1., 4.]), Tensor([-1.6931472, -1.9205585]))
    """

    arg_constraints: ClassVar = {"rate": constraints.nonnegative}
    _support = constraints.nonnegative_integer

    def __init__(self, rate: ArrayLike, validate_args: bool | None = None) -> None:
        (self.rate,) = parameters(self._name, rate=rate)
        super().__init__(self.rate.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return ops.floor(self.rate)

    @property
    def variance(self) -> Tensor:
        return self.rate

    def _draw(self, sample_shape: Shape) -> Tensor:
        rate = self.rate.detach()
        drawn = probability_noise(self._full_shape(sample_shape), rate)
        return poisson_quantile(rate.astype(float64), drawn).astype(rate.dtype)

    def log_prob(self, value: ArrayLike) -> Tensor:
        value = self._value(value, self.rate)
        return special.xlogy(value, self.rate) - self.rate - special.gammaln(value + 1)

    def cdf(self, value: ArrayLike) -> Tensor:
        return special.gammaincc(ops.floor(self._value(value, self.rate)) + 1, self.rate)


def _counted(distribution: Distribution, count: int, expand: bool, like: Tensor) -> Tensor:
    """Return the integers below `count` along a first axis, before the axes of a batch."""
    values = ops.arange(count, dtype=like.dtype, device=like.device)
    values = ops.reshape(values, (count, *[1] * len(distribution.batch_shape)))
    return ops.broadcast_to(values, (count, *distribution.batch_shape)) if expand else values
