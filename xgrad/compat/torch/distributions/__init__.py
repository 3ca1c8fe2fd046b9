"""`torch.distributions`: xgrad's, with PyTorch's signatures, and tensors of this namespace."""

from __future__ import annotations

from typing import Any

from xgrad import distributions as xd
from xgrad.compat.torch.distributions import kl, transforms
from xgrad.compat.torch.distributions.adapted import Adapted
from xgrad.compat.torch.distributions.kl import kl_divergence, register_kl
from xgrad.compat.torch.shape import Size
from xgrad.compat.torch.unavailable import raise_missing
from xgrad.distributions import constraints

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Cauchy",
    "Chi2",
    "Dirichlet",
    "Distribution",
    "Exponential",
    "Gamma",
    "Geometric",
    "Gumbel",
    "HalfNormal",
    "Independent",
    "Laplace",
    "LogNormal",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "Normal",
    "OneHotCategorical",
    "Poisson",
    "StudentT",
    "TransformedDistribution",
    "Uniform",
    "constraints",
    "kl",
    "kl_divergence",
    "register_kl",
    "transforms",
]


class Distribution(Adapted, xd.Distribution):
    """The base class of distributions: attributes and results are tensors of this namespace."""

    @property
    def batch_shape(self) -> Size:
        """The shape of the array of distributions."""
        return Size(super().batch_shape)

    @property
    def event_shape(self) -> Size:
        """The shape of one sample of one distribution."""
        return Size(super().event_shape)


class Bernoulli(Distribution, xd.Bernoulli):
    """`torch.distributions.Bernoulli`."""


class Beta(Distribution, xd.Beta):
    """`torch.distributions.Beta`."""


class Binomial(Distribution, xd.Binomial):
    """`torch.distributions.Binomial`."""


class Categorical(Distribution, xd.Categorical):
    """`torch.distributions.Categorical`."""


class Cauchy(Distribution, xd.Cauchy):
    """`torch.distributions.Cauchy`."""


class Chi2(Distribution, xd.Chi2):
    """`torch.distributions.Chi2`."""


class Dirichlet(Distribution, xd.Dirichlet):
    """`torch.distributions.Dirichlet`."""


class Exponential(Distribution, xd.Exponential):
    """`torch.distributions.Exponential`."""


class Gamma(Distribution, xd.Gamma):
    """`torch.distributions.Gamma`."""


class Geometric(Distribution, xd.Geometric):
    """`torch.distributions.Geometric`."""


class Gumbel(Distribution, xd.Gumbel):
    """`torch.distributions.Gumbel`."""


class HalfNormal(Distribution, xd.HalfNormal):
    """`torch.distributions.HalfNormal`."""


class Independent(Distribution, xd.Independent):
    """`torch.distributions.Independent`."""


class Laplace(Distribution, xd.Laplace):
    """`torch.distributions.Laplace`."""


class LogNormal(Distribution, xd.LogNormal):
    """`torch.distributions.LogNormal`."""


class MixtureSameFamily(Distribution, xd.MixtureSameFamily):
    """`torch.distributions.MixtureSameFamily`."""


class Multinomial(Distribution, xd.Multinomial):
    """`torch.distributions.Multinomial`."""


class MultivariateNormal(Distribution, xd.MultivariateNormal):
    """`torch.distributions.MultivariateNormal`."""


class Normal(Distribution, xd.Normal):
    """`torch.distributions.Normal`."""


class OneHotCategorical(Distribution, xd.OneHotCategorical):
    """`torch.distributions.OneHotCategorical`."""


class Poisson(Distribution, xd.Poisson):
    """`torch.distributions.Poisson`."""


class StudentT(Distribution, xd.StudentT):
    """`torch.distributions.StudentT`."""


class TransformedDistribution(Distribution, xd.TransformedDistribution):
    """`torch.distributions.TransformedDistribution`."""


class Uniform(Distribution, xd.Uniform):
    """`torch.distributions.Uniform`."""


def __getattr__(name: str) -> Any:
    raise_missing("torch.distributions", name)
