"""Random counts: quantiles of discrete distributions, found by bisection.

Each count takes one uniform number, whatever the parameters, so that calls have a fixed number of
steps. Devices could disagree only where a uniform number is within rounding of a value of the
distribution function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xgrad.core import providers
from xgrad.core.dtypes import float64
from xgrad.core.tensor import Tensor
from xgrad.random.generator import Generator

_STEPS = (32, 16, 8, 4, 2, 1)  # of the bisection, which covers 64 integers


def open_uniform(generator: Generator, shape: tuple[int, ...], device: Any) -> Tensor:
    """Return uniform numbers above 0 and below 1, float64."""
    xp = providers.module("functions")
    numbers: Tensor = xp.maximum(generator.rand(shape, dtype=float64, device=device), 2.0**-54)
    return numbers


def poisson_quantile(rate: Tensor, uniform: Tensor) -> Tensor:
    """Return the quantiles of Poisson distributions; all numbers are float64."""
    special = providers.module("functions").special
    return _quantile(lambda k: special.gammaincc(k + 1, rate), uniform, rate, rate, 1.0)


def binomial_quantile(count: Tensor, probability: Tensor, uniform: Tensor) -> Tensor:
    """Return the quantiles of binomial distributions; all numbers are float64."""
    xp = providers.module("functions")

    def distribution(k: Tensor) -> Tensor:
        left = xp.maximum(count - k, 1)
        # not by betaincc, which CuPy lacks; uniform numbers are no finer than the rounding of 1 - x
        above = xp.special.betainc(k + 1, left, probability)
        result: Tensor = xp.where(k < count, 1 - above, 1.0)
        return result

    mean = count * probability
    return _quantile(distribution, uniform, mean, mean * (1 - probability), 1 - 2 * probability)


def _quantile(
    distribution: Callable[[Tensor], Tensor],
    uniform: Tensor,
    mean: Tensor,
    variance: Tensor,
    skew: Any,
) -> Tensor:
    """Return the smallest integers from 0 on with a distribution function of `uniform` or more.

    They are within 32 of the first terms of the expansion of Cornish and Fisher [1]_. `skew` is the
    skewness, times the standard deviation.

    .. [1] E. A. Cornish, R. A. Fisher, "Moments and cumulants in the specification of
       distributions", Revue de l'Institut International de Statistique 5, 1938.
    """
    xp = providers.module("functions")
    z = xp.special.ndtri(uniform)
    near = mean + xp.sqrt(variance) * z + skew * (z * z - 1) / 6
    below: Tensor = xp.maximum(xp.floor(near) - _STEPS[0], -1)  # the function is less than uniform
    for step in _STEPS:
        below = xp.where(distribution(below + step) < uniform, below + step, below)
    return below + 1
