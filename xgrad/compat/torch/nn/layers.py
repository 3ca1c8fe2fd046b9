"""Layers with parameters, pooling, dropout, and changes of shape: PyTorch's signatures."""

from __future__ import annotations

from typing import Any, Self

from xgrad import nn as xnn
from xgrad.compat.torch.nn import functional as F
from xgrad.compat.torch.nn.module import InPlace, Module
from xgrad.compat.torch.tensor import as_torch

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AvgPool1d",
    "AvgPool2d",
    "BatchNorm1d",
    "BatchNorm2d",
    "Conv1d",
    "Conv2d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "CosineSimilarity",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Embedding",
    "Flatten",
    "GRUCell",
    "GroupNorm",
    "Identity",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "LSTMCell",
    "LayerNorm",
    "Linear",
    "MaxPool1d",
    "MaxPool2d",
    "MultiheadAttention",
    "PairwiseDistance",
    "RMSNorm",
    "RNNCell",
    "TransformerEncoder",
    "TransformerEncoderLayer",
    "Unflatten",
]

_ON = "device=None dtype=None"
_CONVOLUTION = (
    "in_channels out_channels kernel_size stride=1 padding=0 dilation=1 groups=1 bias=True"
    f" padding_mode='zeros' {_ON}"
)
_TRANSPOSED = (
    "in_channels out_channels kernel_size stride=1 padding=0 output_padding=0 groups=1 bias=True"
    f" dilation=1 padding_mode='zeros' {_ON}"
)
_BATCH_NORM = (
    f"num_features eps=1e-5 momentum=0.1 affine=True track_running_stats=True {_ON} * bias~=True"
)
_INSTANCE_NORM = (
    f"num_features eps=1e-5 momentum=0.1 affine=False track_running_stats=False {_ON} * bias~=True"
)
_AVERAGE = "kernel_size stride=None padding=0 ceil_mode=False count_include_pad=True"
_MAXIMUM = "kernel_size stride=None padding=0 dilation=1 return_indices!=False ceil_mode=False"


class Linear(Module, xnn.Linear, signature=f"in_features out_features bias=True {_ON}"):
    """`torch.nn.Linear`."""


class Conv1d(Module, xnn.Conv1d, signature=_CONVOLUTION):
    """`torch.nn.Conv1d`."""


class Conv2d(Module, xnn.Conv2d, signature=_CONVOLUTION):
    """`torch.nn.Conv2d`."""


class ConvTranspose1d(Module, xnn.ConvTranspose1d, signature=_TRANSPOSED):
    """`torch.nn.ConvTranspose1d`; ``output_size`` of the call is not available."""


class ConvTranspose2d(Module, xnn.ConvTranspose2d, signature=_TRANSPOSED):
    """`torch.nn.ConvTranspose2d`; ``output_size`` of the call is not available."""


class Embedding(
    Module,
    xnn.Embedding,
    signature="num_embeddings embedding_dim padding_idx=None max_norm!=None norm_type~=2.0"
    f" scale_grad_by_freq!=False sparse!=False _weight~=None _freeze~=False {_ON}",
):
    """`torch.nn.Embedding`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        weight, freeze = (
            self._signature.value(name, args, options)  # type: ignore[union-attr]
            for name in ("_weight", "_freeze")
        )
        if weight is not None:
            self.weight.data = weight
        if freeze:
            self.weight.requires_grad_(False)

    @classmethod
    def from_pretrained(
        cls, embeddings: Any, freeze: bool = True, padding_idx: int | None = None, **options: Any
    ) -> Self:
        """Return a layer with the given rows."""
        rows, columns = embeddings.shape
        return cls(
            rows,
            columns,
            padding_idx,
            _weight=embeddings,
            _freeze=freeze,
            dtype=embeddings.dtype,
            **options,
        )


class _Affine(Module):
    """A normalization with the option ``bias``: whether to add one beside the weight."""

    bias: Any

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if not options.get("bias", True):
            self.bias = None


class BatchNorm1d(_Affine, xnn.BatchNorm1d, signature=_BATCH_NORM):
    """`torch.nn.BatchNorm1d`."""


class BatchNorm2d(_Affine, xnn.BatchNorm2d, signature=_BATCH_NORM):
    """`torch.nn.BatchNorm2d`."""


class InstanceNorm1d(_Affine, xnn.InstanceNorm1d, signature=_INSTANCE_NORM):
    """`torch.nn.InstanceNorm1d`."""


class InstanceNorm2d(_Affine, xnn.InstanceNorm2d, signature=_INSTANCE_NORM):
    """`torch.nn.InstanceNorm2d`."""


class LayerNorm(
    Module,
    xnn.LayerNorm,
    signature=f"normalized_shape eps=1e-5 elementwise_affine=True bias=True {_ON}",
):
    """`torch.nn.LayerNorm`."""


class RMSNorm(
    Module, xnn.RMSNorm, signature=f"normalized_shape eps=None elementwise_affine=True {_ON}"
):
    """`torch.nn.RMSNorm`."""


class GroupNorm(
    _Affine,
    xnn.GroupNorm,
    signature=f"num_groups num_channels eps=1e-5 affine=True {_ON} * bias~=True",
):
    """`torch.nn.GroupNorm`."""


# Pooling


class AvgPool1d(Module, xnn.AvgPool1d, signature=_AVERAGE):
    """`torch.nn.AvgPool1d`."""


class AvgPool2d(Module, xnn.AvgPool2d, signature=f"{_AVERAGE} divisor_override!=None"):
    """`torch.nn.AvgPool2d`."""


class MaxPool1d(Module, xnn.MaxPool1d, signature=_MAXIMUM):
    """`torch.nn.MaxPool1d`."""


class MaxPool2d(Module, xnn.MaxPool2d, signature=_MAXIMUM):
    """`torch.nn.MaxPool2d`."""


class AdaptiveAvgPool1d(Module, xnn.AdaptiveAvgPool1d, signature="output_size"):
    """`torch.nn.AdaptiveAvgPool1d`."""


class AdaptiveAvgPool2d(Module, xnn.AdaptiveAvgPool2d, signature="output_size"):
    """`torch.nn.AdaptiveAvgPool2d`."""


class AdaptiveMaxPool1d(
    Module, xnn.AdaptiveMaxPool1d, signature="output_size return_indices!=False"
):
    """`torch.nn.AdaptiveMaxPool1d`."""


class AdaptiveMaxPool2d(
    Module, xnn.AdaptiveMaxPool2d, signature="output_size return_indices!=False"
):
    """`torch.nn.AdaptiveMaxPool2d`."""


# Dropout, shapes, distances


class Dropout(InPlace, xnn.Dropout, signature="p=0.5 inplace~=False"):
    """`torch.nn.Dropout`."""


class Dropout1d(InPlace, xnn.Dropout1d, signature="p=0.5 inplace~=False"):
    """`torch.nn.Dropout1d`."""


class Dropout2d(InPlace, xnn.Dropout2d, signature="p=0.5 inplace~=False"):
    """`torch.nn.Dropout2d`."""


class Flatten(Module, xnn.Flatten, signature="start_dim>start_axis=1 end_dim>end_axis=-1"):
    """`torch.nn.Flatten`."""


class Unflatten(Module, xnn.Unflatten, signature="dim>axis unflattened_size"):
    """`torch.nn.Unflatten`."""


class Identity(Module, xnn.Identity, signature=""):
    """`torch.nn.Identity`, which takes any arguments."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__()


class CosineSimilarity(Module):
    """`torch.nn.CosineSimilarity`."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Any, x2: Any) -> Any:
        """Return the cosines of the angles between vectors along an axis."""
        return F.FUNCTIONS["cosine_similarity"](x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """`torch.nn.PairwiseDistance`."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Any, x2: Any) -> Any:
        """Return the distances between vectors along the last axis."""
        return F.FUNCTIONS["pairwise_distance"](x1, x2, self.norm, self.eps, self.keepdim)


# Sequences


class _Recurrent(Module):
    def flatten_parameters(self) -> None:
        """Do nothing: weights have the layout that xgrad's kernels use."""

    @property
    def all_weights(self) -> list[list[Any]]:
        """The parameters of each layer and direction."""
        layers: dict[str, list[Any]] = {}
        for name, p in self.named_parameters(recurse=False):
            layers.setdefault(name.partition("_l")[2], []).append(p)
        return list(layers.values())


_RECURRENT = "bias=True batch_first=False dropout=0.0 bidirectional=False"


class RNN(
    _Recurrent,
    xnn.RNN,
    signature=f"input_size hidden_size num_layers=1 nonlinearity='tanh' {_RECURRENT} {_ON}",
):
    """`torch.nn.RNN`."""


class LSTM(
    _Recurrent,
    xnn.LSTM,
    signature=f"input_size hidden_size num_layers=1 {_RECURRENT} proj_size!=0 {_ON}",
):
    """`torch.nn.LSTM`."""


class GRU(_Recurrent, xnn.GRU, signature=f"input_size hidden_size num_layers=1 {_RECURRENT} {_ON}"):
    """`torch.nn.GRU`."""


class RNNCell(
    Module, xnn.RNNCell, signature=f"input_size hidden_size bias=True nonlinearity='tanh' {_ON}"
):
    """`torch.nn.RNNCell`."""


class LSTMCell(Module, xnn.LSTMCell, signature=f"input_size hidden_size bias=True {_ON}"):
    """`torch.nn.LSTMCell`."""


class GRUCell(Module, xnn.GRUCell, signature=f"input_size hidden_size bias=True {_ON}"):
    """`torch.nn.GRUCell`."""


class MultiheadAttention(
    Module,
    xnn.MultiheadAttention,
    signature="embed_dim num_heads dropout=0.0 bias=True add_bias_kv!=False add_zero_attn!=False"
    f" kdim=None vdim=None batch_first=False {_ON}",
):
    """`torch.nn.MultiheadAttention`."""


class TransformerEncoderLayer(
    Module,
    xnn.TransformerEncoderLayer,
    signature="d_model nhead dim_feedforward=2048 dropout=0.1 activation='relu'"
    f" layer_norm_eps=1e-5 batch_first=False norm_first=False bias=True {_ON}",
):
    """`torch.nn.TransformerEncoderLayer`."""


class TransformerEncoder(
    Module,
    xnn.TransformerEncoder,
    signature="encoder_layer num_layers norm=None enable_nested_tensor~=True mask_check~=True",
):
    """`torch.nn.TransformerEncoder`."""

    def forward(
        self,
        src: Any,
        mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool | None = None,
    ) -> Any:
        """Return a tensor of the shape of `src`; `is_causal` says that `mask` is causal."""
        causal = bool(is_causal) and mask is None
        return as_torch(super().forward(src, mask, src_key_padding_mask, causal))
