"""Attention and transformers: PyTorch's signatures over `xgrad.nn`."""

from __future__ import annotations

from typing import Any

from xgrad import nn as xnn
from xgrad.compat.torch.nn.module import Module
from xgrad.compat.torch.tensor import as_torch

__all__ = [
    "MultiheadAttention",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]

_ON = "device=None dtype=None"
_LAYER = (
    "d_model nhead dim_feedforward=2048 dropout=0.1 activation='relu' layer_norm_eps=1e-5"
    f" batch_first=False norm_first=False bias=True {_ON}"
)


class MultiheadAttention(
    Module,
    xnn.MultiheadAttention,
    signature="embed_dim num_heads dropout=0.0 bias=True add_bias_kv=False add_zero_attn=False"
    f" kdim=None vdim=None batch_first=False {_ON}",
):
    """`torch.nn.MultiheadAttention`."""


class TransformerEncoderLayer(Module, xnn.TransformerEncoderLayer, signature=_LAYER):
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


class TransformerDecoderLayer(Module, xnn.TransformerDecoderLayer, signature=_LAYER):
    """`torch.nn.TransformerDecoderLayer`."""


class TransformerDecoder(
    Module, xnn.TransformerDecoder, signature="decoder_layer num_layers norm=None"
):
    """`torch.nn.TransformerDecoder`."""


class Transformer(
    Module,
    xnn.Transformer,
    signature="d_model=512 nhead=8 num_encoder_layers=6 num_decoder_layers=6 dim_feedforward=2048"
    " dropout=0.1 activation='relu' custom_encoder=None custom_decoder=None layer_norm_eps=1e-5"
    f" batch_first=False norm_first=False bias=True {_ON}",
):
    """`torch.nn.Transformer`."""

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Any:
        """Return a mask to add to scores: minus infinity for the keys after each query, else 0."""
        return as_torch(xnn.Transformer.generate_square_subsequent_mask(sz, device, dtype))
