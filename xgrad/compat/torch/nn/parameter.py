"""`torch.nn.parameter`: the trainable tensor, under PyTorch's path."""

from __future__ import annotations

from typing import Any

from xgrad.compat.torch.tensor import Parameter
from xgrad.compat.torch.unavailable import raise_missing

__all__ = ["Parameter"]


def __getattr__(name: str) -> Any:
    raise_missing("torch.nn.parameter", name)
