"""The owner of an array's memory: arrays with one owner share memory."""

from __future__ import annotations

from typing import Any

import numpy as np


def owner_of(array: Any) -> Any:
    """Return what owns the memory of an array: another array, or an allocation."""
    if type(array) is np.ndarray:
        while type(array.base) is np.ndarray:
            array = array.base
        if array.base is None:
            return array
    allocation = getattr(getattr(array, "data", None), "mem", None)
    if allocation is not None:  # CuPy's, where not every view knows its base
        return allocation
    base = getattr(array, "base", None)
    while base is not None and hasattr(base, "shape"):
        array, base = base, getattr(base, "base", None)
    return array
