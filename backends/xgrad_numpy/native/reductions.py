"""Reductions by NumPy's inner loops: the axes that C can reduce, and checks of the bits."""

from __future__ import annotations

import ctypes
import math
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from xgrad_numpy.native.loops import Loop
from xgrad_numpy.native.runtime import Runtime

#: Functions whose NumPy loop reduces, by their `reduce` methods.
REDUCTIONS: dict[Any, np.ufunc] = {f.reduce: f for f in (np.add, np.maximum, np.minimum)}
_LARGEST = 1 << 22  # maximum number of elements with which a reduction is tried out
# number of signed zeros with which extremes are tried out: which of two zeros a loop chooses
# depends on their places
_SIGNS = 64

_KNOWN: dict[Any, bool] = {}


class ReducedAxes(NamedTuple):
    """The lengths of three axes, and whether the middle one is reduced.

    If it is not, the outer and the inner one are reduced.
    """

    outer: int
    middle: int
    inner: int
    of_middle: int

    @property
    def is_whole(self) -> bool:
        """Whether there is one result."""
        return not self.of_middle and self.middle == 1


def reduced_axes(x: np.ndarray, axis: Any) -> ReducedAxes | None:
    """Return the axes of an array without gaps as three, in memory order.

    None if there are more.
    """
    order, count = _order(x), x.ndim
    if not count:  # NumPy takes the axes 0 and -1 here
        return None
    reduced = set(
        range(count)
        if axis is None
        else [i % count for i in (axis if type(axis) is tuple else (axis,))]
    )
    kept = [i for i in order if i not in reduced and x.shape[i] > 1]
    if not x.size or not x.transpose(order).flags.c_contiguous or kept != sorted(kept):
        return None
    longer = [(i in reduced, x.shape[i]) for i in order if x.shape[i] > 1]
    groups = [
        (of, math.prod(n for _, n in part)) for of, part in groupby(longer, lambda part: part[0])
    ]
    if not any(of for of, _ in groups) or len(groups) > 3:
        return None
    outer, middle, inner = [1] * (3 - len(groups)) + [n for _, n in groups]
    return ReducedAxes(outer, middle, inner, int(not groups[-1][0]))


def _order(x: np.ndarray) -> list[int]:
    """Return the axes from the outermost in memory to the innermost."""
    return sorted(range(x.ndim), key=lambda i: -x.strides[i])


def reductions_have_bits_of_numpy(
    function: np.ufunc, layout: ReducedAxes, x: np.ndarray, axis: Any, loop: Loop, runtime: Runtime
) -> bool:
    """Return whether the runtime reduces arrays like `x` with NumPy's bits.

    This is tried once for a layout in a process.
    """
    key = function, x.dtype, x.shape, x.strides, axis
    if key not in _KNOWN:
        _KNOWN[key] = x.size <= _LARGEST and _agrees(function, layout, x, axis, loop, runtime)
    return _KNOWN[key]


def _agrees(
    function: np.ufunc, layout: ReducedAxes, x: np.ndarray, axis: Any, loop: Loop, runtime: Runtime
) -> bool:
    results = layout.outer * layout.inner if layout.of_middle else layout.middle
    rounds = 1 if function is np.add else -(-_SIGNS // results)
    if rounds * x.size > _LARGEST:
        return False
    rng, before, order = np.random.default_rng(0), runtime.take_raised(), _order(x)
    numbers = list(map(ctypes.c_int64, (*layout, x.itemsize, function is np.add)))
    shape = [x.shape[i] for i in order]

    def has_bits(trial: np.ndarray) -> bool:
        right = np.asarray(function.reduce(trial.transpose(np.argsort(order)), axis))
        out = np.empty_like(right, order="C")
        addresses = [ctypes.c_void_p(y.__array_interface__["data"][0]) for y in (trial, out)]
        runtime.functions.reduce(ctypes.byref(loop), *addresses, *numbers)
        return out.tobytes() == right.tobytes()

    trials = [rng.standard_normal(shape), np.full(shape, -0.0)]
    trials += [np.copysign(0.0, rng.random(shape) - rng.random()) for _ in range(rounds)]
    agree = all(has_bits(trial.astype(x.dtype)) for trial in trials)
    runtime.take_raised()
    runtime.functions.note(before)
    return agree
