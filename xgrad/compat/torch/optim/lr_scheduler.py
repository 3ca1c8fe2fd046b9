"""`torch.optim.lr_scheduler`: xgrad's schedules, which have PyTorch's signatures."""

from __future__ import annotations

from typing import Any

from xgrad.compat.torch.unavailable import raise_missing
from xgrad.optim.lr_scheduler import *
from xgrad.optim.lr_scheduler import LRScheduler

_LRScheduler = LRScheduler


def __getattr__(name: str) -> Any:
    raise_missing("torch.optim.lr_scheduler", name)
