"""Distributions of choices among classes, by probabilities or logits along the last axis."""

from __future__ import annotations

import math
from typing import ClassVar

from xgrad import ops, random, special
from xgrad.core.arguments import ArrayLike, as_int
from xgrad.core.dtypes import int64
from xgrad.core.tensor import Tensor
from xgrad.distributions import constraints
from xgrad.distributions.constraints import Constraint
from xgrad.distributions.distribution import Distribution, Shape, one_of, parameters
from xgrad.ops.encoding import one_hot

__all__ = ["Categorical", "Multinomial", "OneHotCategorical"]

_WEIGHTS = Constraint(
    "numbers of 0 or more, not all 0 in the last axis",
    lambda x: ops.all(x >= 0, axis=-1) & (ops.sum(x, axis=-1) > 0),
    1,
)


class _OfClasses(Distribution):
    """A distribution with a probability for each of several classes."""

    arg_constraints: ClassVar = {"probs": _WEIGHTS, "logits": constraints.real_vector}

    def _set_probabilities(self, probs: ArrayLike | None, logits: ArrayLike | None) -> None:
        self._given, value = one_of(self._name, probs=probs, logits=logits)
        (x,) = parameters(self._name, (1,), **{self._given: value})
        if not x.shape[-1]:
            raise ValueError(f"{self._name}: expected one class or more, got shape {x.shape}")
        self._given_value, self._classes = x, x.shape[-1]

    @property
    def probs(self) -> Tensor:
        """The probabilities, with the sum 1."""
        x = self._given_value
        if self._given == "logits":
            return special.softmax(x, axis=-1)
        return x / ops.sum(x, axis=-1, keepdims=True)

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        if self._given == "logits":
            return special.log_softmax(self._given_value, axis=-1)
        probs = self.probs
        is_possible = probs > 0
        return ops.where(is_possible, ops.log(ops.where(is_possible, probs, 1.0)), -math.inf)

    @property
    def param_shape(self) -> Shape:
        """The shape of the parameter."""
        return self._given_value.shape

    def _parameters(self) -> dict[str, Tensor]:
        return {self._given: self._given_value}

    def _class_entropy(self) -> Tensor:
        logits = self.logits
        return -ops.sum(self.probs * ops.where(logits == -math.inf, 0.0, logits), axis=-1)

    def _drawn_classes(self, count: int) -> Tensor:
        """Return classes, int64, of shape ``batch_shape + (count,)``."""
        probs = self.probs.detach()
        rows = ops.reshape(probs, (-1, self._classes))
        if not rows.shape[0]:
            return ops.zeros((*self._batch_shape, count), dtype=int64, device=probs.device)
        drawn = random.multinomial(rows, count, replacement=True)
        return ops.reshape(drawn, (*self._batch_shape, count))

    def _sampled(self, sample_shape: Shape) -> Tensor:
        """Return classes of shape ``sample_shape + batch_shape``."""
        drawn = ops.moveaxis(self._drawn_classes(math.prod(sample_shape)), -1, 0)
        return ops.reshape(drawn, sample_shape + self._batch_shape)


class Categorical(_OfClasses):
    r"""The distribution of the index of a class.

    .. math:: \ln(p(x)) = \ln(q_x)

    q are the probabilities.

    Parameters
    ----------
    probs : Tensor, optional
        The probabilities along the last axis; they need not sum to 1.
    logits : Tensor, optional
        Logarithms of the probabilities, up to a constant. Exactly one of both is given.
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
    `log_prob` of a class with the probability 0 is minus infinity; PyTorch's is finite, since it
    clips probabilities by its dtype's epsilon.

    Examples
    --------
    >>> import xgrad
    >>> categorical = xgrad.distributions.Categorical(xgrad.asarray([1.0, 1.0, 2.0]))
    >>> categorical.log_prob(xgrad.asarray([0, 2]))
    Tensor([-1.3862944, -0.6931472])
    >>> categorical.sample((4,)).shape, categorical.entropy()
    ((4,), Tensor(1.0397208))
    """

    has_enumerate_support = True

    def __init__(
        self,
        probs: ArrayLike | None = None,
        logits: ArrayLike | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._set_probabilities(probs, logits)
        super().__init__(self._given_value.shape[:-1], (), validate_args)

    @property
    def support(self) -> Constraint:
        return constraints.integer_interval(0, self._classes - 1)

    @property
    def mean(self) -> Tensor:
        return ops.full_like(self._given_value[..., 0], math.nan)

    @property
    def mode(self) -> Tensor:
        return ops.argmax(self._given_value, axis=-1)

    @property
    def variance(self) -> Tensor:
        return ops.full_like(self._given_value[..., 0], math.nan)

    def _draw(self, sample_shape: Shape) -> Tensor:
        return self._sampled(sample_shape)

    def log_prob(self, value: ArrayLike) -> Tensor:
        indices = self._value(value, self._given_value, floating=False).astype(int64)
        logits, shape = self.logits, ops.broadcast_shapes(indices.shape, self._batch_shape)
        logits = ops.broadcast_to(logits, (*shape, self._classes))
        indices = ops.expand_dims(ops.broadcast_to(indices, shape), axis=-1)
        return ops.take_along_axis(logits, indices, axis=-1)[..., 0]

    def entropy(self) -> Tensor:
        return self._class_entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        x, n = self._given_value, self._classes
        values = ops.arange(n, dtype=int64, device=x.device)
        values = ops.reshape(values, (n, *[1] * len(self._batch_shape)))
        return ops.broadcast_to(values, (n, *self._batch_shape)) if expand else values


class OneHotCategorical(_OfClasses):
    r"""The distribution of a class as a vector of zeros with a one.

    .. math:: \ln(p(x)) = \sum_i x_i \ln(q_i)

    q are the probabilities.

    Parameters
    ----------
    probs : Tensor, optional
        The probabilities along the last axis; they need not sum to 1.
    logits : Tensor, optional
        Logarithms of the probabilities, up to a constant. Exactly one of both is given.
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
    >>> one_hot = xgrad.distributions.OneHotCategorical(xgrad.asarray([0.0, 0.0, 2.0]))
    >>> one_hot.sample(), one_hot.log_prob(xgrad.asarray([0.0, 0.0, 1.0]))
    (Tensor([0., 0., 1.]), Tensor(0.))
    """

    _support = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self,
        probs: ArrayLike | None = None,
        logits: ArrayLike | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._set_probabilities(probs, logits)
        shape = self._given_value.shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    @property
    def _categorical(self) -> Categorical:
        return Categorical(**self._parameters(), validate_args=False)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return self._encoded(ops.argmax(self._given_value, axis=-1))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def _encoded(self, classes: Tensor) -> Tensor:
        return one_hot(classes, self._classes, dtype=self._given_value.dtype)

    def _draw(self, sample_shape: Shape) -> Tensor:
        return self._encoded(self._sampled(sample_shape))

    def log_prob(self, value: ArrayLike) -> Tensor:
        value = self._value(value, self._given_value)
        return self._categorical.log_prob(ops.argmax(value, axis=-1))

    def entropy(self) -> Tensor:
        return self._class_entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        x, n = self._given_value, self._classes
        values = ops.eye(n, dtype=x.dtype, device=x.device)
        values = ops.reshape(values, (n, *[1] * len(self._batch_shape), n))
        return ops.broadcast_to(values, (n, *self._batch_shape, n)) if expand else values


class Multinomial(_OfClasses):
    r"""The distribution of the counts of classes in independent trials.

    .. math:: \ln(p(x)) = \ln(n!) + \sum_i (x_i \ln(q_i) - \ln(x_i!))

    n is `total_count`, and q are the probabilities.

    Parameters
    ----------
    total_count : int, default 1
        The number of trials.
    probs : Tensor, optional
        The probabilities along the last axis; they need not sum to 1.
    logits : Tensor, optional
        Logarithms of the probabilities, up to a constant. Exactly one of both is given.
    validate_args : bool, optional
        See `Distribution`.

    Raises
    ------
    TypeError
        If `total_count` is not an int, or the parameter is not floating.
    ValueError
        If none or both are given, or a parameter is invalid.

    Examples
    --------
    >>> import xgrad
    >>> multinomial = xgrad.distributions.Multinomial(10, xgrad.asarray([0.5, 0.25, 0.25]))
    >>> multinomial.mean, multinomial.sample().sum()
    (Tensor([5. , 2.5, 2.5]), Tensor(10.))
    """

    def __init__(
        self,
        total_count: int = 1,
        probs: ArrayLike | None = None,
        logits: ArrayLike | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.total_count = as_int(self._name, "total_count", total_count)
        if self.total_count < 0:
            raise ValueError(f"Multinomial: expected total_count of 0 or more, got {total_count}")
        self._set_probabilities(probs, logits)
        shape = self._given_value.shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    @property
    def support(self) -> Constraint:
        return constraints.multinomial(self.total_count)

    def _rebuilt(self, parameters: dict[str, Tensor]) -> Distribution:
        return Multinomial(self.total_count, **parameters, validate_args=False)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def _draw(self, sample_shape: Shape) -> Tensor:
        draws, total = math.prod(sample_shape), self.total_count
        drawn = self._drawn_classes(draws * total)
        drawn = ops.reshape(drawn, (*self._batch_shape, draws, total))
        hits = one_hot(drawn, self._classes, dtype=self._given_value.dtype)
        counts = ops.moveaxis(ops.sum(hits, axis=-2), -2, 0)
        return ops.reshape(counts, self._full_shape(sample_shape))

    def log_prob(self, value: ArrayLike) -> Tensor:
        value = self._value(value, self._given_value)
        logits = self.logits
        impossible = (value == 0) & (logits == -math.inf)
        logs = ops.sum(value * ops.where(impossible, 0.0, logits), axis=-1)
        ways = special.gammaln(ops.sum(value, axis=-1) + 1)
        return logs + ways - ops.sum(special.gammaln(value + 1), axis=-1)

    def entropy(self) -> Tensor:
        """Return the entropy, by sums over the counts of single classes."""
        n, probs = self.total_count, self.probs
        counts = ops.arange(n + 1, dtype=probs.dtype, device=probs.device)
        counts = ops.reshape(counts, (n + 1, *[1] * probs.ndim))
        ways = (
            special.gammaln(ops.full_like(counts, n + 1.0))
            - special.gammaln(counts + 1)
            - special.gammaln(n - counts + 1)
        )
        logs = ways + special.xlogy(counts, probs) + special.xlog1py(n - counts, -probs)
        factorials = ops.exp(logs) * special.gammaln(counts + 1)
        return n * self._class_entropy() - math.lgamma(n + 1) + ops.sum(factorials, axis=(0, -1))
