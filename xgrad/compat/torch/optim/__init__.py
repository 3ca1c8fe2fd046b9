"""`torch.optim`: optimizers with PyTorch's signatures, and learning rate schedules."""

from __future__ import annotations

from typing import Any as _Any

from xgrad.compat.torch.optim import lr_scheduler, swa_utils
from xgrad.compat.torch.optim.optimizer import (
    ASGD,
    LBFGS,
    SGD,
    Adadelta,
    Adafactor,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    Muon,
    NAdam,
    Optimizer,
    RAdam,
    RMSprop,
    Rprop,
)
from xgrad.compat.torch.unavailable import raise_missing as _raise_missing

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
    "swa_utils",
]


def __getattr__(name: str) -> _Any:
    _raise_missing("torch.optim", name)
