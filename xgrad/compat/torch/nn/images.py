"""Padding, resizing and rearrangement of images: PyTorch's signatures over `xgrad.nn`."""

from __future__ import annotations

from xgrad import nn as xnn
from xgrad.compat.torch.nn.module import Module

__all__ = [
    "ChannelShuffle",
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "Fold",
    "PixelShuffle",
    "PixelUnshuffle",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "Unfold",
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]

_UPSAMPLE = (
    "size=None scale_factor=None mode='nearest' align_corners=None recompute_scale_factor=None"
)


class CircularPad1d(Module, xnn.CircularPad1d, signature="padding"):
    """`torch.nn.CircularPad1d`."""


class CircularPad2d(Module, xnn.CircularPad2d, signature="padding"):
    """`torch.nn.CircularPad2d`."""


class CircularPad3d(Module, xnn.CircularPad3d, signature="padding"):
    """`torch.nn.CircularPad3d`."""


class ConstantPad1d(Module, xnn.ConstantPad1d, signature="padding value"):
    """`torch.nn.ConstantPad1d`."""


class ConstantPad2d(Module, xnn.ConstantPad2d, signature="padding value"):
    """`torch.nn.ConstantPad2d`."""


class ConstantPad3d(Module, xnn.ConstantPad3d, signature="padding value"):
    """`torch.nn.ConstantPad3d`."""


class ReflectionPad1d(Module, xnn.ReflectionPad1d, signature="padding"):
    """`torch.nn.ReflectionPad1d`."""


class ReflectionPad2d(Module, xnn.ReflectionPad2d, signature="padding"):
    """`torch.nn.ReflectionPad2d`."""


class ReflectionPad3d(Module, xnn.ReflectionPad3d, signature="padding"):
    """`torch.nn.ReflectionPad3d`."""


class ReplicationPad1d(Module, xnn.ReplicationPad1d, signature="padding"):
    """`torch.nn.ReplicationPad1d`."""


class ReplicationPad2d(Module, xnn.ReplicationPad2d, signature="padding"):
    """`torch.nn.ReplicationPad2d`."""


class ReplicationPad3d(Module, xnn.ReplicationPad3d, signature="padding"):
    """`torch.nn.ReplicationPad3d`."""


class ZeroPad1d(Module, xnn.ZeroPad1d, signature="padding"):
    """`torch.nn.ZeroPad1d`."""


class ZeroPad2d(Module, xnn.ZeroPad2d, signature="padding"):
    """`torch.nn.ZeroPad2d`."""


class ZeroPad3d(Module, xnn.ZeroPad3d, signature="padding"):
    """`torch.nn.ZeroPad3d`."""


class PixelShuffle(Module, xnn.PixelShuffle, signature="upscale_factor"):
    """`torch.nn.PixelShuffle`."""


class PixelUnshuffle(Module, xnn.PixelUnshuffle, signature="downscale_factor"):
    """`torch.nn.PixelUnshuffle`."""


class ChannelShuffle(Module, xnn.ChannelShuffle, signature="groups"):
    """`torch.nn.ChannelShuffle`."""


class Fold(Module, xnn.Fold, signature="output_size kernel_size dilation=1 padding=0 stride=1"):
    """`torch.nn.Fold`."""


class Unfold(Module, xnn.Unfold, signature="kernel_size dilation=1 padding=0 stride=1"):
    """`torch.nn.Unfold`."""


class Upsample(Module, xnn.Upsample, signature=_UPSAMPLE):
    """`torch.nn.Upsample`."""


class UpsamplingBilinear2d(
    Module, xnn.UpsamplingBilinear2d, signature="size=None scale_factor=None"
):
    """`torch.nn.UpsamplingBilinear2d`."""


class UpsamplingNearest2d(Module, xnn.UpsamplingNearest2d, signature="size=None scale_factor=None"):
    """`torch.nn.UpsamplingNearest2d`."""
