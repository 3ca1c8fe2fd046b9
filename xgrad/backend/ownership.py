"""Owners of the memory of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np


def owner_of(array: Any) -> Any:
    """Return the owner of the memory of an array, an array or an allocation; arrays with one owner
    share memory.
    """
    allocation = (
        None if type(array) is np.ndarray else getattr(getattr(array, "data", None), "mem", None)
    )
    if allocation is not None:  # CuPy's, where not every view knows its base
        return allocation
    # no memoryview
    while (base := getattr(array, "base", None)) is not None and hasattr(base, "dtype"):
        array = base
    return array
