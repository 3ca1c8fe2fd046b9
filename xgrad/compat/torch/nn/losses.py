"""Losses: PyTorch's signatures over `xgrad.nn`."""

from __future__ import annotations

from typing import Any, ClassVar

from xgrad import nn as xnn
from xgrad.compat.torch.nn import functional as F
from xgrad.compat.torch.nn.module import Module

__all__ = [
    "AdaptiveLogSoftmaxWithLoss",
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]

_LOSS = "size_average~=None reduce~=None reduction='mean'"
_CLASSES = "weight=None size_average~=None ignore_index=-100 reduce~=None reduction='mean'"


class CrossEntropyLoss(Module, xnn.CrossEntropyLoss, signature=f"{_CLASSES} label_smoothing=0.0"):
    """`torch.nn.CrossEntropyLoss`."""

    function: ClassVar[Any] = staticmethod(F.cross_entropy)


class NLLLoss(Module, xnn.NLLLoss, signature=_CLASSES):
    """`torch.nn.NLLLoss`."""


class MSELoss(Module, xnn.MSELoss, signature=_LOSS):
    """`torch.nn.MSELoss`."""


class L1Loss(Module, xnn.L1Loss, signature=_LOSS):
    """`torch.nn.L1Loss`."""


class SmoothL1Loss(Module, xnn.SmoothL1Loss, signature=f"{_LOSS} beta=1.0"):
    """`torch.nn.SmoothL1Loss`."""


class HuberLoss(Module, xnn.HuberLoss, signature="reduction='mean' delta=1.0"):
    """`torch.nn.HuberLoss`."""


class KLDivLoss(Module, xnn.KLDivLoss, signature=f"{_LOSS} log_target=False"):
    """`torch.nn.KLDivLoss`."""

    function: ClassVar[Any] = staticmethod(F.kl_div)


class BCELoss(Module, xnn.BCELoss, signature=f"weight=None {_LOSS}"):
    """`torch.nn.BCELoss`."""


class BCEWithLogitsLoss(
    Module, xnn.BCEWithLogitsLoss, signature=f"weight=None {_LOSS} pos_weight=None"
):
    """`torch.nn.BCEWithLogitsLoss`."""


class SoftMarginLoss(Module, xnn.SoftMarginLoss, signature=_LOSS):
    """`torch.nn.SoftMarginLoss`."""


class HingeEmbeddingLoss(Module, xnn.HingeEmbeddingLoss, signature=f"margin=1.0 {_LOSS}"):
    """`torch.nn.HingeEmbeddingLoss`."""


class CosineEmbeddingLoss(Module, xnn.CosineEmbeddingLoss, signature=f"margin=0.0 {_LOSS}"):
    """`torch.nn.CosineEmbeddingLoss`."""


class MarginRankingLoss(Module, xnn.MarginRankingLoss, signature=f"margin=0.0 {_LOSS}"):
    """`torch.nn.MarginRankingLoss`."""


class MultiMarginLoss(Module, xnn.MultiMarginLoss, signature=f"p=1 margin=1.0 weight=None {_LOSS}"):
    """`torch.nn.MultiMarginLoss`."""


class MultiLabelSoftMarginLoss(
    Module, xnn.MultiLabelSoftMarginLoss, signature=f"weight=None {_LOSS}"
):
    """`torch.nn.MultiLabelSoftMarginLoss`."""


class TripletMarginLoss(
    Module, xnn.TripletMarginLoss, signature=f"margin=1.0 p=2.0 eps=1e-6 swap=False {_LOSS}"
):
    """`torch.nn.TripletMarginLoss`."""


class GaussianNLLLoss(
    Module, xnn.GaussianNLLLoss, signature="* full=False eps=1e-6 reduction='mean'"
):
    """`torch.nn.GaussianNLLLoss`."""

    function: ClassVar[Any] = staticmethod(F.gaussian_nll_loss)


class PoissonNLLLoss(
    Module,
    xnn.PoissonNLLLoss,
    signature="log_input=True full=False size_average~=None eps=1e-8 reduce~=None reduction='mean'",
):
    """`torch.nn.PoissonNLLLoss`."""


class MultiLabelMarginLoss(Module, xnn.MultiLabelMarginLoss, signature=_LOSS):
    """`torch.nn.MultiLabelMarginLoss`."""


class TripletMarginWithDistanceLoss(
    Module,
    xnn.TripletMarginWithDistanceLoss,
    signature="* distance_function=None margin=1.0 swap=False reduction='mean'",
):
    """`torch.nn.TripletMarginWithDistanceLoss`."""


class CTCLoss(Module, xnn.CTCLoss, signature="blank=0 reduction='mean' zero_infinity=False"):
    """`torch.nn.CTCLoss`."""

    function: ClassVar[Any] = staticmethod(F.ctc_loss)


class AdaptiveLogSoftmaxWithLoss(
    Module,
    xnn.AdaptiveLogSoftmaxWithLoss,
    signature="in_features n_classes cutoffs div_value=4.0 head_bias=False device=None dtype=None",
):
    """`torch.nn.AdaptiveLogSoftmaxWithLoss`."""
