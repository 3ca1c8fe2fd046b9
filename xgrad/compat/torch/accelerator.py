"""`torch.accelerator`: the GPU, if there is one that can be used."""

from __future__ import annotations

from typing import Any

import xgrad
from xgrad.compat.torch.cuda import device_count, is_available, set_device, synchronize
from xgrad.compat.torch.unavailable import raise_missing

__all__ = [
    "current_accelerator",
    "current_device_index",
    "device_count",
    "is_available",
    "set_device_index",
    "synchronize",
]

set_device_index = set_device


def current_accelerator(check_available: bool = False) -> Any:
    """Return the device of the GPU, or None without one."""
    return xgrad.Device("cuda") if is_available() else None


def current_device_index() -> int:
    """Return the index of the GPU that ``"cuda"`` stands for."""
    return xgrad.Device("cuda").index


def __getattr__(name: str) -> Any:
    raise_missing("torch.accelerator", name)
