"""`torch.utils.data`: data sets, samplers, and the `DataLoader`."""

from __future__ import annotations

from typing import Any

from xgrad.compat.torch.unavailable import raise_missing
from xgrad.compat.torch.utils.data import dataloader, dataset, sampler
from xgrad.compat.torch.utils.data.dataloader import *
from xgrad.compat.torch.utils.data.dataset import *
from xgrad.compat.torch.utils.data.sampler import *

__all__ = [*dataloader.__all__, *dataset.__all__, *sampler.__all__]


def get_worker_info() -> None:
    """Return None, as in PyTorch's main process: workers are threads of it."""


def __getattr__(name: str) -> Any:
    raise_missing("torch.utils.data", name)
