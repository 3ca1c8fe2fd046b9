"""Random numbers, the same for the same seed on every device, in a stream of each thread's or task's own."""

from xgrad.random.distributions import multinomial, normal, rand, randint, randn, randperm, uniform
from xgrad.random.generator import Generator, default_generator, manual_seed
from xgrad.support import hints

__all__ = [
    "Generator", "default_generator", "manual_seed", "multinomial", "normal", "rand", "randint", "randn", "randperm",
    "uniform",
]  # fmt: skip
hints.install(__name__)
