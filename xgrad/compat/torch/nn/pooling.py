"""Pooling: PyTorch's signatures over `xgrad.nn`."""

from __future__ import annotations

from typing import Any

from xgrad import nn as xnn
from xgrad.compat.torch.nn import functional as F
from xgrad.compat.torch.nn.module import Module

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]

_AVERAGE = "kernel_size stride=None padding=0 ceil_mode=False count_include_pad=True"
_MAXIMUM = "kernel_size stride=None padding=0 dilation=1 return_indices=False ceil_mode=False"
_INDICES = "output_size return_indices=False"
_NORM = "norm_type kernel_size stride=None ceil_mode=False"


class MaxPooling(Module):
    """Maximum pooling by the function of this namespace, which takes integers, too."""

    def forward(self, input: Any) -> Any:
        """Return the largest elements of windows, with their indices if they are asked for."""
        pool = F.FUNCTIONS[f"max_pool{self.ndim}d"]
        return pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )


class MaxUnpooling(Module):
    """Unpooling by the function of this namespace, which has PyTorch's gradient."""

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        """Return the elements of `input` at their indices, and zeros elsewhere."""
        unpool = F.FUNCTIONS[f"max_unpool{self.ndim}d"]
        return unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class AvgPool1d(Module, xnn.AvgPool1d, signature=_AVERAGE):
    """`torch.nn.AvgPool1d`."""


class AvgPool2d(Module, xnn.AvgPool2d, signature=f"{_AVERAGE} divisor_override=None"):
    """`torch.nn.AvgPool2d`."""


class AvgPool3d(Module, xnn.AvgPool3d, signature=f"{_AVERAGE} divisor_override=None"):
    """`torch.nn.AvgPool3d`."""


class MaxPool1d(MaxPooling, xnn.MaxPool1d, signature=_MAXIMUM):
    """`torch.nn.MaxPool1d`."""


class MaxPool2d(MaxPooling, xnn.MaxPool2d, signature=_MAXIMUM):
    """`torch.nn.MaxPool2d`."""


class MaxPool3d(MaxPooling, xnn.MaxPool3d, signature=_MAXIMUM):
    """`torch.nn.MaxPool3d`."""


class AdaptiveAvgPool1d(Module, xnn.AdaptiveAvgPool1d, signature="output_size"):
    """`torch.nn.AdaptiveAvgPool1d`."""


class AdaptiveAvgPool2d(Module, xnn.AdaptiveAvgPool2d, signature="output_size"):
    """`torch.nn.AdaptiveAvgPool2d`."""


class AdaptiveAvgPool3d(Module, xnn.AdaptiveAvgPool3d, signature="output_size"):
    """`torch.nn.AdaptiveAvgPool3d`."""


class AdaptiveMaxPool1d(Module, xnn.AdaptiveMaxPool1d, signature=_INDICES):
    """`torch.nn.AdaptiveMaxPool1d`."""


class AdaptiveMaxPool2d(Module, xnn.AdaptiveMaxPool2d, signature=_INDICES):
    """`torch.nn.AdaptiveMaxPool2d`."""


class AdaptiveMaxPool3d(Module, xnn.AdaptiveMaxPool3d, signature=_INDICES):
    """`torch.nn.AdaptiveMaxPool3d`."""


class LPPool1d(Module, xnn.LPPool1d, signature=_NORM):
    """`torch.nn.LPPool1d`."""


class LPPool2d(Module, xnn.LPPool2d, signature=_NORM):
    """`torch.nn.LPPool2d`."""


class LPPool3d(Module, xnn.LPPool3d, signature=_NORM):
    """`torch.nn.LPPool3d`."""


class MaxUnpool1d(MaxUnpooling, xnn.MaxUnpool1d, signature="kernel_size stride=None padding=0"):
    """`torch.nn.MaxUnpool1d`."""


class MaxUnpool2d(MaxUnpooling, xnn.MaxUnpool2d, signature="kernel_size stride=None padding=0"):
    """`torch.nn.MaxUnpool2d`."""


class MaxUnpool3d(MaxUnpooling, xnn.MaxUnpool3d, signature="kernel_size stride=None padding=0"):
    """`torch.nn.MaxUnpool3d`."""
