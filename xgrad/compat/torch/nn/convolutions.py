"""Convolutions: PyTorch's signatures over `xgrad.nn`."""

from __future__ import annotations

from xgrad import nn as xnn
from xgrad.compat.torch.nn.module import Module

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
]

_CONVOLUTION = (
    "in_channels out_channels kernel_size stride=1 padding=0 dilation=1 groups=1 bias=True"
    " padding_mode='zeros' device=None dtype=None"
)
_TRANSPOSED = (
    "in_channels out_channels kernel_size stride=1 padding=0 output_padding=0 groups=1 bias=True"
    " dilation=1 padding_mode='zeros' device=None dtype=None"
)


class Conv1d(Module, xnn.Conv1d, signature=_CONVOLUTION):
    """`torch.nn.Conv1d`."""


class Conv2d(Module, xnn.Conv2d, signature=_CONVOLUTION):
    """`torch.nn.Conv2d`."""


class Conv3d(Module, xnn.Conv3d, signature=_CONVOLUTION):
    """`torch.nn.Conv3d`."""


class ConvTranspose1d(Module, xnn.ConvTranspose1d, signature=_TRANSPOSED):
    """`torch.nn.ConvTranspose1d`; ``output_size`` of the call is not available."""


class ConvTranspose2d(Module, xnn.ConvTranspose2d, signature=_TRANSPOSED):
    """`torch.nn.ConvTranspose2d`; ``output_size`` of the call is not available."""


class ConvTranspose3d(Module, xnn.ConvTranspose3d, signature=_TRANSPOSED):
    """`torch.nn.ConvTranspose3d`; ``output_size`` of the call is not available."""
