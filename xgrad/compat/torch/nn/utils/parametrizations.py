"""`torch.nn.utils.parametrizations`: orthogonal and normalized weights."""

from __future__ import annotations

from typing import Any

from xgrad.compat.torch.unavailable import raise_missing
from xgrad.nn.utils.parametrizations import orthogonal, spectral_norm, weight_norm

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def __getattr__(name: str) -> Any:
    raise_missing("torch.nn.utils.parametrizations", name)
