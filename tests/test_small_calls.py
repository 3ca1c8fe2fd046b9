"""Calls on small arrays, whose time is that of the Python code around them, compared with PyTorch's."""

from __future__ import annotations

import timeit
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import xgrad

#: The calls, as lines of Python for both libraries, and how many times as long xgrad's may take.
CALLS = {
    "assignment of a tensor to a slice": ("x[1:7] = six", 3.6),
    "assignment of a number to a slice": ("x[1:7] = 2.0", 2.6),
    "assignment to a row": ("square[2] = four", 3.8),
    "part": ("x[1:7]", 2.1),
    "uniform numbers": ("draws.rand((3,))", 4.6),
    "normal numbers": ("draws.randn((3,))", 7.0),
    "tensor of an array": ("library.asarray(array)", 3.6),
    "tensor of a copied array": ("library.asarray(array, copy=True)", 2.5),
}


def seconds(mine: Callable[[], Any], theirs: Callable[[], Any]) -> tuple[float, float]:
    """Return the least times of two calls, measured in turn."""
    times = [(timeit.timeit(mine, number=50), timeit.timeit(theirs, number=50)) for _ in range(100)]
    first, second = zip(*times, strict=True)
    return min(first), min(second)


@pytest.mark.parametrize("name", CALLS)
def test_small_call_takes_at_most_a_multiple_of_the_time_of_pytorch(name: str, torch: ModuleType) -> None:
    line, limit = CALLS[name]
    calls = [timed_call(line, library) for library in (xgrad, torch)]
    ratios: list[float] = []
    while len(ratios) < 5 and min(ratios, default=limit + 1) > limit:  # other processes disturb
        mine, theirs = seconds(*calls)
        ratios.append(mine / theirs)
    assert min(ratios) <= limit


def timed_call(line: str, library: Any) -> Callable[[], None]:
    """Return a function of a line of Python, in which some arrays have names."""
    names = {
        "library": library,
        "draws": xgrad.random if library is xgrad else library,
        "array": np.ones(3, np.float32),
    }
    names |= {"x": library.zeros(10), "six": library.ones(6), "four": library.ones(4), "square": library.zeros((4, 4))}
    exec(f"def call():\n    {line}", names)
    return names["call"]  # type: ignore[no-any-return]
