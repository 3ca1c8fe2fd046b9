"""`torch.nn`: modules, layers and losses, with PyTorch's signatures over `xgrad.nn`."""

from __future__ import annotations

from typing import Any as _Any

from xgrad.compat.torch.nn import functional, init, utils
from xgrad.compat.torch.nn.activations import *
from xgrad.compat.torch.nn.containers import (
    DataParallel,
    ModuleDict,
    ModuleList,
    ParameterDict,
    ParameterList,
    Sequential,
)
from xgrad.compat.torch.nn.layers import *
from xgrad.compat.torch.nn.losses import *
from xgrad.compat.torch.nn.module import Module
from xgrad.compat.torch.tensor import Parameter
from xgrad.compat.torch.unavailable import raise_missing as _raise_missing

Container = Module


def __getattr__(name: str) -> _Any:
    _raise_missing("torch.nn", name)
