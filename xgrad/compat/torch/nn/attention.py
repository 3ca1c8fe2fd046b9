"""`torch.nn.attention`: the choice of an implementation, which has no effect in xgrad."""

from __future__ import annotations

from contextlib import nullcontext
from enum import Enum
from typing import Any

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(Enum):
    """Implementations of PyTorch's ``scaled_dot_product_attention``."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


def sdpa_kernel(backends: Any, set_priority: bool = False) -> Any:
    """Return a context without effect: xgrad chooses the implementation."""
    return nullcontext()
