"""Helpers of several test modules: leaves, host arrays, random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from xgrad import Tensor


def leaf(values: Any, device: str = "cpu") -> Tensor:
    """Return a leaf that requires a gradient; Python numbers and integers become float64 or complex128."""
    values = np.asarray(values)
    values = values.astype(np.float64) if values.dtype.kind in "biu" else values
    return Tensor(values, dtype=values.dtype, device=device, requires_grad=True)


def host(x: Tensor) -> np.ndarray:
    """Return the values of a tensor as a NumPy array."""
    return np.asarray(x.detach().cpu().numpy())


def uniform(*shape: int, seed: int = 0, low: float = 0.5, high: float = 2.0) -> np.ndarray:
    """Return uniform random numbers."""
    return np.random.default_rng(seed).uniform(low, high, shape)
