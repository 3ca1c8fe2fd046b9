"""The distribution of transformed samples."""

from __future__ import annotations

from typing import Any

from xgrad import ops
from xgrad.core.arguments import ArrayLike
from xgrad.core.tensor import Tensor
from xgrad.distributions import constraints
from xgrad.distributions.combined import Independent
from xgrad.distributions.constraints import Constraint
from xgrad.distributions.distribution import Distribution, Shape, as_like
from xgrad.distributions.transforms import ComposeTransform, Transform

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    r"""The distribution of invertible functions of the samples of another.

    .. math:: \ln(p(y)) = \ln(p(x)) - \ln\left(\left|\frac{\partial y}{\partial x}\right|\right)

    y is the value of a transform at x.

    Parameters
    ----------
    base_distribution : Distribution
        Of continuous samples.
    transforms : Transform or sequence of Transform
        Of `xgrad.distributions.transforms`; the first is applied first.
    validate_args : bool, optional
        Whether to check the arguments of `log_prob` and `cdf`; by default they are checked.

    Raises
    ------
    TypeError
        If an argument has another type.
    ValueError
        If a transform of vectors is given with a distribution of too few axes.

    Examples
    --------
    >>> import xgrad
    >>> from xgrad.distributions import Normal, TransformedDistribution, transforms
    >>> squashed = TransformedDistribution(Normal(0.0, 1.0), transforms.TanhTransform())
    >>> squashed.log_prob(0.0), squashed.cdf(0.0)
    (Tensor(-0.9189385), Tensor(0.5))
    """

    def __init__(
        self, base_distribution: Distribution, transforms: Any, validate_args: bool | None = None
    ) -> None:
        if not isinstance(base_distribution, Distribution):
            raise TypeError(
                "TransformedDistribution: expected a Distribution for base_distribution, got"
                f" {type(base_distribution).__name__}"
            )
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        self._composed = ComposeTransform(self.transforms)
        batch, event = base_distribution.batch_shape, base_distribution.event_shape
        shape = self._composed.forward_shape(batch + event)
        missing = self._composed.event_dim - len(event)
        if missing > len(shape) - len(event):
            raise ValueError(
                f"TransformedDistribution: expected {self._composed.event_dim} or more axes of the"
                f" base distribution, got batch shape {batch} and event shape {event}"
            )
        if event and shape[-len(event) :] != event:
            raise ValueError(
                f"TransformedDistribution: expected transforms of samples of shape {event}, got"
                f" transforms to shape {shape}"
            )
        if shape != batch + event:  # a transform of several parameters makes several distributions
            base_distribution = base_distribution.expand(shape[: len(shape) - len(event)])
        self.base_dist = (
            Independent(base_distribution, missing) if missing > 0 else base_distribution
        )
        self.has_rsample = self.base_dist.has_rsample
        super().__init__(self.base_dist.batch_shape, self.base_dist.event_shape, validate_args)

    @property
    def support(self) -> Constraint:
        if not self.transforms:
            return self.base_dist.support
        codomain = self._composed.codomain
        return constraints.independent(codomain, len(self._event_shape) - codomain.event_dim)

    def _draw(self, sample_shape: Shape) -> Tensor:
        return self._composed(self.base_dist._draw(sample_shape))

    def _like(self) -> Tensor:
        return self.base_dist._like()

    def _base(self) -> Distribution:
        return self.base_dist if self._validates else self.base_dist._unchecked()

    def _checked(self, value: Any) -> Tensor:
        """Return an argument, checked; a tensor keeps its dtype."""
        return self._value(value, self._like(), floating=False)

    def log_prob(self, value: ArrayLike) -> Tensor:
        value = self._checked(value)
        x = self._composed.inv(value)
        log = self._composed.log_abs_det_jacobian(x, value)
        axes = tuple(range(self._composed.event_dim - len(self._event_shape), 0))
        return self._base().log_prob(x) - (ops.sum(log, axis=axes) if axes else log)

    def cdf(self, value: ArrayLike) -> Tensor:
        """Return the probability of samples up to a value."""
        below = self._base().cdf(self._composed.inv(self._checked(value)))
        return self._mirrored(below)

    def icdf(self, value: ArrayLike) -> Tensor:
        """Return the quantiles of probabilities, the inverse of `cdf`."""
        probability = as_like(self._name, "value", value, self._like())
        return self._composed(self.base_dist.icdf(self._mirrored(probability)))

    def _mirrored(self, probability: Tensor) -> Tensor:
        """Return a probability, or its complement if the transform decreases."""
        sign = self._composed.sign
        mirrored: Tensor = sign * (probability - 0.5) + 0.5
        return mirrored

    def expand(self, batch_shape: Shape) -> Distribution:
        """Return the same distributions, broadcast to a batch shape."""
        base = self.base_dist.expand(self._sample_shape(batch_shape))
        return TransformedDistribution(base, self.transforms, validate_args=self._validates)

    def __repr__(self) -> str:
        return f"TransformedDistribution({self.base_dist}, {self.transforms})"
