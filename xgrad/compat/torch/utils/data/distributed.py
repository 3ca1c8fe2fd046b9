"""`torch.utils.data.distributed`: the share of each process in a data set."""

from __future__ import annotations

from xgrad.data import DistributedSampler

__all__ = ["DistributedSampler"]
