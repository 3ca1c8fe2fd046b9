"""Functions that instructions call in addition to NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xgrad.capture.program import Diverged
from xgrad_numpy import functions

#: `numpy.putmask` without dispatch to other libraries.
PUTMASK = getattr(np.putmask, "__wrapped__", np.putmask)


def check(expected: bool, value: Any) -> None:
    """Raise `Diverged` unless the truth of a value is as in the trace."""
    if bool(value) is not expected:
        raise Diverged


def check_bound(
    expected: bool, x: np.ndarray, largest: bool, comparison: Callable[[int, int], bool], bound: int
) -> None:
    """Raise `Diverged` unless the largest or the smallest integer compares as in the trace."""
    extreme = x.item(x.argmax() if largest else x.argmin())
    if comparison(extreme, bound) is not expected:
        raise Diverged


def copy_array(x: np.ndarray, out: np.ndarray) -> None:
    """Write an array to `out`."""
    out[...] = x


def take_elements(x: np.ndarray, key: tuple[np.ndarray, ...], out: np.ndarray) -> None:
    """Write ``x[key]`` to `out`, given one integer array for each axis."""
    out[...] = x[key]


def take_rows(x: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
    """Write ``x[rows]`` to `out`, given integers along the first axis."""
    out[...] = x[rows]


def choose(condition: np.ndarray, x1: np.ndarray, x2: np.ndarray, out: np.ndarray) -> None:
    """Write `x1` where a condition holds, `x2` elsewhere, to `out`."""
    out[...] = functions.where(condition, x1, x2)


def end_replay(failed: int) -> None:
    """Raise `Diverged` if a C call has found a value that differs from the trace."""
    if failed:
        raise Diverged


def end_replay_of_unaligned(*arrays: np.ndarray) -> None:
    """Raise `Diverged` if an array is not aligned.

    `numpy.matmul` multiplies a copy of an unaligned array, in another layout; BLAS then adds in
    another order.
    """
    for x in arrays:
        if not x.flags.aligned:
            raise Diverged


def require_indices(failed: int) -> None:
    """Raise IndexError if a C call has found an index out of range."""
    if failed:
        raise IndexError("expected indices within the length of the axis, got others")
