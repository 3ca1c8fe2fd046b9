"""Whose memory it is that an array is in: by that it is known which arrays share theirs."""

from __future__ import annotations

from typing import Any

import numpy as np


def root_of(array: Any) -> Any:
    """Return what owns the memory of an array, the same for all arrays in it: another array, or an allocation."""
    if type(array) is np.ndarray:  # the most frequent
        while type(array.base) is np.ndarray:
            array = array.base
        if array.base is None:
            return array
    allocation = getattr(getattr(array, "data", None), "mem", None)
    if allocation is not None:  # of CuPy, where not every view knows its base
        return allocation
    base = getattr(array, "base", None)
    while base is not None and hasattr(base, "shape"):
        array, base = base, getattr(base, "base", None)
    return array
