"""Linear and recurrent layers, embeddings, normalization, dropout: PyTorch's signatures."""

from __future__ import annotations

from typing import Any, Self

from xgrad import nn as xnn
from xgrad.compat.torch.nn import functional as F
from xgrad.compat.torch.nn.module import Module

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "AlphaDropout",
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "Bilinear",
    "CosineSimilarity",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "Embedding",
    "EmbeddingBag",
    "FeatureAlphaDropout",
    "Flatten",
    "GRUCell",
    "GroupNorm",
    "Identity",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LSTMCell",
    "LayerNorm",
    "Linear",
    "LocalResponseNorm",
    "PairwiseDistance",
    "RMSNorm",
    "RNNCell",
    "Unflatten",
]

_ON = "device=None dtype=None"
_BATCH_NORM = (
    f"num_features eps=1e-5 momentum=0.1 affine=True track_running_stats=True {_ON} * bias=True"
)
_INSTANCE_NORM = (
    f"num_features eps=1e-5 momentum=0.1 affine=False track_running_stats=False {_ON} * bias=True"
)


class Linear(Module, xnn.Linear, signature=f"in_features out_features bias=True {_ON}"):
    """`torch.nn.Linear`."""


class Bilinear(
    Module, xnn.Bilinear, signature=f"in1_features in2_features out_features bias=True {_ON}"
):
    """`torch.nn.Bilinear`."""


class _Rows(Module):
    """A table of rows, which may be given."""

    weight: Any

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
    def from_pretrained(cls, embeddings: Any, freeze: bool = True, *args: Any, **more: Any) -> Self:
        """Return a layer with the given rows; the constructor gets further arguments."""
        rows, columns = embeddings.shape
        given = {"_weight": embeddings, "_freeze": freeze, "dtype": embeddings.dtype}
        return cls(rows, columns, *args, **given, **more)


class Embedding(
    _Rows,
    xnn.Embedding,
    signature="num_embeddings embedding_dim padding_idx=None max_norm=None norm_type=2.0"
    f" scale_grad_by_freq=False sparse!=False _weight~=None _freeze~=False {_ON}",
):
    """`torch.nn.Embedding`."""


class EmbeddingBag(
    _Rows,
    xnn.EmbeddingBag,
    signature="num_embeddings embedding_dim max_norm=None norm_type=2.0 scale_grad_by_freq=False"
    " mode='mean' sparse!=False _weight~=None include_last_offset=False padding_idx=None"
    f" {_ON} * _freeze~=False",
):
    """`torch.nn.EmbeddingBag`."""


class BatchNorm1d(Module, xnn.BatchNorm1d, signature=_BATCH_NORM):
    """`torch.nn.BatchNorm1d`."""


class BatchNorm2d(Module, xnn.BatchNorm2d, signature=_BATCH_NORM):
    """`torch.nn.BatchNorm2d`."""


class BatchNorm3d(Module, xnn.BatchNorm3d, signature=_BATCH_NORM):
    """`torch.nn.BatchNorm3d`."""


class InstanceNorm1d(Module, xnn.InstanceNorm1d, signature=_INSTANCE_NORM):
    """`torch.nn.InstanceNorm1d`."""


class InstanceNorm2d(Module, xnn.InstanceNorm2d, signature=_INSTANCE_NORM):
    """`torch.nn.InstanceNorm2d`."""


class InstanceNorm3d(Module, xnn.InstanceNorm3d, signature=_INSTANCE_NORM):
    """`torch.nn.InstanceNorm3d`."""


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
    Module,
    xnn.GroupNorm,
    signature=f"num_groups num_channels eps=1e-5 affine=True {_ON} * bias=True",
):
    """`torch.nn.GroupNorm`."""


class LocalResponseNorm(Module, xnn.LocalResponseNorm, signature="size alpha=1e-4 beta=0.75 k=1.0"):
    """`torch.nn.LocalResponseNorm`."""


# Dropout, shapes, distances


class Dropout(Module, xnn.Dropout, signature="p=0.5 inplace=False"):
    """`torch.nn.Dropout`."""


class Dropout1d(Module, xnn.Dropout1d, signature="p=0.5 inplace=False"):
    """`torch.nn.Dropout1d`."""


class Dropout2d(Module, xnn.Dropout2d, signature="p=0.5 inplace=False"):
    """`torch.nn.Dropout2d`."""

    def forward(self, input: Any) -> Any:
        """Return the input without some of its channels, the second axis."""
        return F.FUNCTIONS["dropout2d"](input, self.p, self.training, self.inplace)


class Dropout3d(Module, xnn.Dropout3d, signature="p=0.5 inplace=False"):
    """`torch.nn.Dropout3d`."""

    def forward(self, input: Any) -> Any:
        """Return the input without some of its channels, the second axis."""
        return F.FUNCTIONS["dropout3d"](input, self.p, self.training, self.inplace)


class AlphaDropout(Module, xnn.AlphaDropout, signature="p=0.5 inplace=False"):
    """`torch.nn.AlphaDropout`."""


class FeatureAlphaDropout(Module, xnn.FeatureAlphaDropout, signature="p=0.5 inplace=False"):
    """`torch.nn.FeatureAlphaDropout`."""


class Flatten(Module, xnn.Flatten, signature="start_dim>start_axis=1 end_dim>end_axis=-1"):
    """`torch.nn.Flatten`."""


class Unflatten(Module, xnn.Unflatten, signature="dim>axis unflattened_size"):
    """`torch.nn.Unflatten`."""


class Identity(Module, xnn.Identity, signature=""):
    """`torch.nn.Identity`, which takes any arguments."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__()


class CosineSimilarity(Module, xnn.CosineSimilarity, signature="dim>axis=1 eps=1e-8"):
    """`torch.nn.CosineSimilarity`."""


class PairwiseDistance(
    Module, xnn.PairwiseDistance, signature="p=2.0 eps=1e-6 keepdim>keepdims=False"
):
    """`torch.nn.PairwiseDistance`."""


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
    signature=f"input_size hidden_size num_layers=1 {_RECURRENT} proj_size=0 {_ON}",
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
