"""Distributions made from others: of independent parts, and mixtures."""

from __future__ import annotations

from typing import Any

from xgrad import ops, special
from xgrad.core.arguments import ArrayLike, as_int
from xgrad.core.tensor import Tensor
from xgrad.distributions import constraints
from xgrad.distributions.categorical import Categorical
from xgrad.distributions.constraints import Constraint
from xgrad.distributions.distribution import Distribution, Shape

__all__ = ["Independent", "MixtureSameFamily"]


class Independent(Distribution):
    r"""A distribution whose last batch axes count as axes of one sample.

    .. math:: \ln(p(x)) = \sum_i \ln(p_i(x_i))

    Parameters
    ----------
    base_distribution : Distribution
        With as many batch axes or more.
    reinterpreted_batch_ndims : int
        The number of these axes: `log_prob` is summed over them.
    validate_args : bool, optional
        If False, the arguments of `log_prob` are not checked; by default the base distribution
        decides.

    Raises
    ------
    TypeError
        If an argument has another type.
    ValueError
        If the base distribution has fewer batch axes.

    Examples
    --------
    >>> import xgrad
    >>> normal = xgrad.distributions.Normal(xgrad.zeros(3), 1.0)
    >>> vectors = xgrad.distributions.Independent(normal, 1)
    >>> vectors.batch_shape, vectors.event_shape, vectors.log_prob(xgrad.zeros(3))
    ((), (3,), Tensor(-2.7568154))
    """

    def __init__(
        self,
        base_distribution: Distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        _check_distribution("Independent", "base_distribution", base_distribution)
        axes = as_int("Independent", "reinterpreted_batch_ndims", reinterpreted_batch_ndims)
        batch, event = base_distribution.batch_shape, base_distribution.event_shape
        if not 0 <= axes <= len(batch):
            raise ValueError(
                f"Independent: expected reinterpreted_batch_ndims from 0 to {len(batch)}, as the"
                f" base distribution has the batch shape {batch}, got {axes}"
            )
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, axes
        self.has_rsample = base_distribution.has_rsample
        self.has_enumerate_support = base_distribution.has_enumerate_support and not axes
        kept = len(batch) - axes
        super().__init__(batch[:kept], batch[kept:] + event, validate_args)

    @property
    def support(self) -> Constraint:
        return constraints.independent(self.base_dist.support, self.reinterpreted_batch_ndims)

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def _draw(self, sample_shape: Shape) -> Tensor:
        return self.base_dist._draw(sample_shape)

    def _like(self) -> Tensor:
        return self.base_dist._like()

    def _summed(self, x: Tensor) -> Tensor:
        axes = tuple(range(-self.reinterpreted_batch_ndims, 0))
        return ops.sum(x, axis=axes) if axes else x

    def log_prob(self, value: ArrayLike) -> Tensor:
        base = self.base_dist if self._validates else self.base_dist._unchecked()
        return self._summed(base.log_prob(value))

    def entropy(self) -> Tensor:
        return self._summed(self.base_dist.entropy())

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims:
            self._lacks("enumerate_support")
        return self.base_dist.enumerate_support(expand)

    def expand(self, batch_shape: Shape) -> Distribution:
        shape = self._sample_shape(batch_shape)
        inner = self._event_shape[: self.reinterpreted_batch_ndims]
        base = self.base_dist.expand(shape + inner)
        return Independent(base, self.reinterpreted_batch_ndims, validate_args=self._validates)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamily(Distribution):
    r"""A mixture of distributions of one kind, which are in the last batch axis of another.

    .. math:: \ln(p(x)) = \ln\left(\sum_i w_i\, p_i(x)\right)

    w are the weights of the components i.

    Parameters
    ----------
    mixture_distribution : Categorical
        The weights of the components.
    component_distribution : Distribution
        With the components in its last batch axis.
    validate_args : bool, optional
        Whether to check the arguments of `log_prob`; by default they are checked.

    Raises
    ------
    TypeError
        If an argument has another type.
    ValueError
        If the number of components differs, or the batch shapes do not fit.

    Examples
    --------
    >>> import xgrad
    >>> weights = xgrad.distributions.Categorical(xgrad.asarray([0.5, 0.5]))
    >>> normals = xgrad.distributions.Normal(xgrad.asarray([-1.0, 1.0]), 0.5)
    >>> mixture = xgrad.distributions.MixtureSameFamily(weights, normals)
    >>> mixture.mean, mixture.variance
    (Tensor(0.), Tensor(1.25))
    """

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise TypeError(
                "MixtureSameFamily: expected a Categorical for mixture_distribution, got"
                f" {type(mixture_distribution).__name__}"
            )
        _check_distribution("MixtureSameFamily", "component_distribution", component_distribution)
        batch, count = component_distribution.batch_shape, mixture_distribution._classes
        weights = mixture_distribution.batch_shape
        if not batch or batch[-1] != count or weights not in ((), batch[:-1]):
            raise ValueError(
                f"MixtureSameFamily: expected components of batch shape {(*weights, count)}, as the"
                f" weights have, got {batch}"
            )
        self._mixture, self._components = mixture_distribution, component_distribution
        super().__init__(batch[:-1], component_distribution.event_shape, validate_args)

    @property
    def mixture_distribution(self) -> Categorical:
        """The distribution of the index of a component."""
        return self._mixture

    @property
    def component_distribution(self) -> Distribution:
        """The components, in the last batch axis."""
        return self._components

    @property
    def support(self) -> Constraint:
        """The union of the supports of the components, whose bounds may differ."""
        support, axes = self._components.support, len(self._event_shape)
        return Constraint(
            support.text,
            lambda x: ops.any(support.check(ops.expand_dims(x, axis=-1 - axes)), axis=-1),
            support.event_dim,
            support.is_discrete,
        )

    def _like(self) -> Tensor:
        return self._components._like()

    def _weighted(self, x: Tensor) -> Tensor:
        """Return the mean over components of an array of shape ``batch + (count,) + event``."""
        axes, probs = len(self._event_shape), self._mixture.probs
        probs = ops.reshape(probs, probs.shape + (1,) * axes)
        return ops.sum(probs * x, axis=-1 - axes)

    @property
    def mean(self) -> Tensor:
        return self._weighted(self._components.mean)

    @property
    def variance(self) -> Tensor:
        means = self._components.mean
        center = ops.expand_dims(self.mean, axis=-1 - len(self._event_shape))
        return self._weighted(self._components.variance + ops.square(means - center))

    def _draw(self, sample_shape: Shape) -> Tensor:
        axes = len(self._event_shape)
        weights = self._mixture.expand(self._batch_shape)
        chosen, drawn = weights._draw(sample_shape), self._components._draw(sample_shape).detach()
        indices = ops.reshape(chosen, (*chosen.shape, 1) + (1,) * axes)
        indices = ops.broadcast_to(indices, (*chosen.shape, 1, *self._event_shape))
        return ops.squeeze(ops.take_along_axis(drawn, indices, axis=-1 - axes), axis=-1 - axes)

    def log_prob(self, value: ArrayLike) -> Tensor:
        inner = self._per_component(value)
        logs = self._components._unchecked().log_prob(inner) + self._mixture.logits
        total = special.logsumexp(logs, axis=-1)
        assert isinstance(total, Tensor)  # a pair only with return_sign
        return total

    def cdf(self, value: ArrayLike) -> Tensor:
        probabilities = self._components._unchecked().cdf(self._per_component(value))
        return ops.sum(self._mixture.probs * probabilities, axis=-1)

    def _per_component(self, value: Any) -> Tensor:
        like = self._mixture._given_value
        x = self._value(value, like, floating=False)
        return ops.expand_dims(x, axis=-1 - len(self._event_shape))

    def expand(self, batch_shape: Shape) -> Distribution:
        shape = self._sample_shape(batch_shape)
        components = self._components.expand((*shape, self._mixture._classes))
        weights = self._mixture.expand(shape)
        assert isinstance(weights, Categorical)
        return MixtureSameFamily(weights, components, validate_args=self._validates)

    def __repr__(self) -> str:
        return f"MixtureSameFamily({self._mixture}, {self._components})"


def _check_distribution(title: str, name: str, x: Any) -> None:
    if not isinstance(x, Distribution):
        raise TypeError(f"{title}: expected a Distribution for {name}, got {type(x).__name__}")
