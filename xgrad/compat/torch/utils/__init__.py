"""`torch.utils`: data sets and loaders in `data`, and `checkpoint`."""

from __future__ import annotations

from typing import Any

from xgrad.compat.torch.unavailable import raise_missing
from xgrad.compat.torch.utils import checkpoint, data

__all__ = ["checkpoint", "data"]


def __getattr__(name: str) -> Any:
    raise_missing("torch.utils", name)
