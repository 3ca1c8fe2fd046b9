"""`torch.optim.swa_utils`: averages of weights."""

from __future__ import annotations

from typing import Any

from xgrad.compat.torch.nn.module import Module
from xgrad.compat.torch.unavailable import raise_missing
from xgrad.optim import swa_utils
from xgrad.optim.swa_utils import get_ema_avg_fn, get_swa_avg_fn, update_bn

__all__ = ["AveragedModel", "get_ema_avg_fn", "get_swa_avg_fn", "update_bn"]


class AveragedModel(Module, swa_utils.AveragedModel):
    """`torch.optim.swa_utils.AveragedModel`."""


def __getattr__(name: str) -> Any:
    raise_missing("torch.optim.swa_utils", name)
