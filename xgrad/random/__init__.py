"""Random numbers, identical for equal seeds on every device.

Each thread or task has a separate stream.
"""

from xgrad.random.distributions import multinomial, normal, rand, randint, randn, randperm, uniform
from xgrad.random.generator import Generator, default_generator, get_state, manual_seed, set_state
from xgrad.random.sampling import (
    bernoulli,
    exponential,
    poisson,
    rand_like,
    randint_like,
    randn_like,
)
from xgrad.support import hints

__all__ = [
    "Generator",
    "bernoulli",
    "default_generator",
    "exponential",
    "get_state",
    "manual_seed",
    "multinomial",
    "normal",
    "poisson",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "set_state",
    "uniform",
]
hints.install(__name__)
