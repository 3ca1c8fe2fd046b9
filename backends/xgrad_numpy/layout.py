"""How the elements of a value lie in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from xgrad.capturing.program import Value


def dense(value: Value) -> bool:
    """Return whether the elements of a value fill a piece of memory, in whichever order of the axes."""
    if lies_in_order(value):
        return True
    steps = sorted((s, n) for s, n in zip(value.strides, value.shape, strict=True) if n > 1)
    expected = value.dtype.itemsize
    for stride, n in steps:
        if stride != expected:
            return False
        expected *= n
    return True


def lies_in_order(value: Value) -> bool:
    """Return whether the elements of a value lie in C order."""
    return in_order(value.strides, value.shape, value.dtype.itemsize)


def in_order(strides: Any, shape: Any, itemsize: int) -> bool:
    """Return whether elements lie in C order."""
    expected = itemsize
    for n, stride in zip(shape[::-1], strides[::-1], strict=True):
        if n > 1:
            if stride != expected:
                return False
            expected *= n
    return True


def copied(x: Any) -> Any:
    """Return a copy that lies in memory as the array does."""
    steps = [(n - 1) * stride for n, stride in zip(x.shape, x.strides, strict=True)]
    if not x.size or not steps:
        return x.copy()
    first = -sum(step for step in steps if step < 0)
    memory = np.empty(first + sum(step for step in steps if step > 0) + x.itemsize, np.uint8)
    copy: np.ndarray = np.ndarray(x.shape, x.dtype, memory, first, x.strides)
    copy[...] = x
    return copy
