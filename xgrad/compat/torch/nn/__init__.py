"""`torch.nn`: modules, layers and losses, with PyTorch's signatures over `xgrad.nn`.

A layer that xgrad has gets a class in the file of its kind, with PyTorch's signature: see `module`
and `xgrad.compat.torch.signatures`.
"""

from __future__ import annotations

from typing import Any as _Any

from xgrad.compat.torch.nn import activations as _activations
from xgrad.compat.torch.nn import (
    attention,
    functional,
    init,
    utils,
)
from xgrad.compat.torch.nn import containers as _containers
from xgrad.compat.torch.nn import convolutions as _convolutions
from xgrad.compat.torch.nn import images as _images
from xgrad.compat.torch.nn import layers as _layers
from xgrad.compat.torch.nn import losses as _losses
from xgrad.compat.torch.nn import pooling as _pooling
from xgrad.compat.torch.nn import transformers as _transformers
from xgrad.compat.torch.nn.activations import *
from xgrad.compat.torch.nn.containers import *
from xgrad.compat.torch.nn.convolutions import *
from xgrad.compat.torch.nn.images import *
from xgrad.compat.torch.nn.layers import *
from xgrad.compat.torch.nn.losses import *
from xgrad.compat.torch.nn.module import Module
from xgrad.compat.torch.nn.pooling import *
from xgrad.compat.torch.nn.transformers import *
from xgrad.compat.torch.tensor import Parameter
from xgrad.compat.torch.unavailable import raise_missing as _raise_missing

__all__ = [
    "Module",
    "Parameter",
    "attention",
    "functional",
    "init",
    "utils",
    *_activations.__all__,
    *_containers.__all__,
    *_convolutions.__all__,
    *_images.__all__,
    *_layers.__all__,
    *_losses.__all__,
    *_pooling.__all__,
    *_transformers.__all__,
]


def __getattr__(name: str) -> _Any:
    _raise_missing("torch.nn", name)
