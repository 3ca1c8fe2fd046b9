"""Numbers from a normal distribution between bounds, for `init.trunc_normal_`."""

from __future__ import annotations

import math
from functools import reduce

from xgrad.core.dtypes import float64
from xgrad.core.tensor import Tensor
from xgrad.ops import log, maximum, minimum, sqrt, where
from xgrad.random import Generator, uniform

# The quantile x of a probability p up to 1/2 is a smooth function of s = sqrt(-2 log(p)). With z =
# s - sqrt(2 log(2)), these are the coefficients, highest degree first, of a polynomial in
# _SLOPE * z / (z + _CENTER) - 1: the Chebyshev interpolant for s up to 9, within 1e-11.
_CENTER, _SLOPE = 6.0, 3.534018788475321
_QUANTILE = (
    7.306275053575206e-07,
    -5.8990443263668794e-06,
    -3.13681782775012e-06,
    -1.3669592966160923e-06,
    -9.086253118349208e-06,
    -7.271417125817387e-05,
    -9.212948362248045e-05,
    -0.00035431869066473087,
    -0.0006421052070632029,
    -0.002205745662810177,
    -0.004369773810865078,
    -0.013674130744904674,
    -0.02895403259945383,
    -0.08625569052094409,
    -0.1883225420101335,
    -0.552937704364134,
    -1.202527841308699,
    -3.6694528760606553,
    -2.9000405293636202,
)
_MEDIAN, _FARTHEST = math.sqrt(2 * math.log(2)), 8.0


def truncated_normal(
    shape: tuple[int, ...], low: float, high: float, generator: Generator | None
) -> Tensor:
    """Return float64 numbers on the CPU from the standard normal distribution between bounds.

    They are quantiles of uniform numbers, the same for each device of the result.
    """
    if low > 0:  # where small probabilities are exact
        return -truncated_normal(shape, -high, -low, generator)
    start, stop = _probability(low), _probability(high)
    p = start + (stop - start) * uniform(shape, dtype=float64, device="cpu", generator=generator)
    x = _quantile(minimum(p, 1 - p))
    return minimum(maximum(where(p > 0.5, -x, x), low), high)


def _probability(x: float) -> float:
    """Return the probability of a standard normal number below x."""
    return math.erfc(-x / math.sqrt(2)) / 2


def _quantile(p: Tensor) -> Tensor:
    """Return the number below which a standard normal number is with probability p, up to 1/2."""
    z = sqrt(-2 * log(maximum(p, _probability(-_FARTHEST)))) - _MEDIAN
    t = _SLOPE * (z / (z + _CENTER)) - 1
    return reduce(lambda total, c: total * t + c, _QUANTILE[1:], t * 0 + _QUANTILE[0])
