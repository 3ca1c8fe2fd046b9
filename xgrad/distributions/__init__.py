"""Probability distributions, with PyTorch's names, parameters and shapes.

Samples are drawn from the default generator: the same seed gives the same samples on every device,
to rounding. Where `has_rsample` is true, samples have derivatives by the parameters.
"""

from xgrad.distributions import constraints, transforms
from xgrad.distributions.categorical import Categorical, Multinomial, OneHotCategorical
from xgrad.distributions.combined import Independent, MixtureSameFamily
from xgrad.distributions.counts import Bernoulli, Binomial, Geometric, Poisson
from xgrad.distributions.distribution import Distribution
from xgrad.distributions.gamma import Beta, Chi2, Dirichlet, Exponential, Gamma, StudentT
from xgrad.distributions.kl import kl_divergence, register_kl
from xgrad.distributions.location_scale import Cauchy, Gumbel, Laplace, Uniform
from xgrad.distributions.multivariate_normal import MultivariateNormal
from xgrad.distributions.normal import HalfNormal, LogNormal, Normal
from xgrad.distributions.transformed import TransformedDistribution
from xgrad.support import hints

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
    "kl_divergence",
    "register_kl",
    "transforms",
]
hints.install(__name__)
