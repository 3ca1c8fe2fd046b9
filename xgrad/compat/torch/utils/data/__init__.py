"""`torch.utils.data`: data sets, samplers, and the `DataLoader`."""

from __future__ import annotations

from typing import Any

from xgrad.compat.torch.unavailable import raise_missing
from xgrad.compat.torch.utils.data import dataloader, dataset, distributed, sampler
from xgrad.compat.torch.utils.data.dataloader import *
from xgrad.compat.torch.utils.data.dataset import *
from xgrad.compat.torch.utils.data.sampler import *
from xgrad.data import get_worker_info

__all__ = [
    "distributed",
    "get_worker_info",
    *dataloader.__all__,
    *dataset.__all__,
    *sampler.__all__,
]


def __getattr__(name: str) -> Any:
    raise_missing("torch.utils.data", name)
