"""Medians and their spread, ratios, and exponents."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Spread(NamedTuple):
    """A median and the quartiles around it."""

    low: float
    median: float
    high: float


def spread(samples: Sequence[float]) -> Spread:
    """Return the quartiles of one or more samples."""
    if len(samples) == 1:
        return Spread(samples[0], samples[0], samples[0])
    return Spread(*statistics.quantiles(samples, n=4, method="inclusive"))


def short(number: float) -> str:
    """Return a number with three significant digits."""
    if number == int(number) or abs(number) >= 1000:
        return f"{number:,.0f}".replace(",", " ")
    return f"{number:#.3g}".removesuffix(".")


def ratios(above: Sequence[float], below: Sequence[float]) -> list[float]:
    """Return ratios block by block: a slow machine during a block affects both parts of a ratio."""
    return [a / b for a, b in zip(above, below, strict=True)]


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Return p of the power law cost = c sizeᵖ.

    It is fitted to the upper half of the sizes by least squares in logarithms.
    """
    upper = min(len(sizes) // 2, len(sizes) - 3)
    if upper < 0:
        raise ValueError(f"exponent: expected three sizes or more, got {len(sizes)}")
    return float(np.polyfit(np.log(sizes[upper:]), np.log(costs[upper:]), 1)[0])
