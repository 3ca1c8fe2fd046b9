"""Transformer decoders, and the whole transformer of an encoder and a decoder."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from xgrad.backend.device import Device
from xgrad.core.tensor import Tensor
from xgrad.nn import init
from xgrad.nn.attention import MultiheadAttention
from xgrad.nn.checks import positive_int
from xgrad.nn.dropout import Dropout
from xgrad.nn.linear import Linear
from xgrad.nn.module import Module
from xgrad.nn.normalization import LayerNorm
from xgrad.nn.transformer import (
    TransformerEncoder,
    TransformerEncoderLayer,
    activation_function,
    layer_copies,
)
from xgrad.ops import full, triu
from xgrad.support.hints import shown


class TransformerDecoderLayer(Module):
    """Self-attention, attention to a memory, and a feedforward part.

    Each of the three parts has a residual connection and a `LayerNorm`:
    ``x = norm1(x + self_attn(x))``, ``x = norm2(x + multihead_attn(x, memory))``, then
    ``norm3(x + linear2(activation(linear1(x))))``; with `norm_first`, the normalizations are
    applied to the inputs of the parts instead.

    A. Vaswani et al., "Attention is all you need", NeurIPS, 2017.

    Parameters
    ----------
    d_model, nhead : int
        The length of the last axis, and the number of heads, which divides it.
    dim_feedforward : int, default 2048
        The number of hidden units between the linear layers.
    dropout : float, default 0.1
        The dropout probability of the attention weights, the activations and the outputs of the
        parts.
    activation : {"relu", "gelu"} or callable, default "relu"
        The activation.
    layer_norm_eps : float, default 1e-5
        Added to the variance.
    batch_first : bool, default False
        Whether the first axis of the inputs is the batch instead of the sequence.
    norm_first : bool, default False
        Whether to normalize before each part.
    bias : bool, default True
        Whether linear layers and normalizations add biases.
    device : str or Device, optional
        By default the `default_device`.
    dtype : dtype, optional
        A floating dtype; by default the result of `get_default_dtype`.

    Attributes
    ----------
    self_attn, multihead_attn : MultiheadAttention
        The attention to the input, and to the memory.
    linear1, linear2 : Linear
        The linear layers.
    norm1, norm2, norm3 : LayerNorm
        The normalizations.

    Raises
    ------
    ValueError
        If a length is not an int above 0, `nhead` does not divide `d_model`, or the activation is
        unknown; in the call, if the shapes do not fit.
    TypeError
        In the call, if an input has another dtype than the weights.
    DeviceError
        If the device is unknown or cannot be used; in the call, if an input is on another one.

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.TransformerDecoderLayer(
    ...     8, nhead=2, dim_feedforward=16, batch_first=True
    ... )
    >>> memory = xgrad.ones((5, 7, 8))
    >>> layer(xgrad.ones((5, 3, 8)), memory, tgt_is_causal=True).shape
    (5, 3, 8)
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        *,
        device: str | Device | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        on: dict[str, Any] = {"device": device, "dtype": dtype}
        name = type(self).__name__
        for argument, value in (("d_model", d_model), ("nhead", nhead)):
            positive_int(name, argument, value)
        self.activation, self.norm_first = activation_function(name, activation), norm_first
        self.self_attn, self.multihead_attn = (
            MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **on)
            for _ in range(2)
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias, **on)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **on)
        self.norm1, self.norm2, self.norm3 = (
            LayerNorm(d_model, layer_norm_eps, bias=bias, **on) for _ in range(3)
        )
        self.dropout1, self.dropout2, self.dropout3 = (Dropout(dropout) for _ in range(3))

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return a tensor of the shape of `tgt`.

        `memory` are the keys and values of the second part, such as the output of an encoder. The
        masks are the same as in `MultiheadAttention.forward`: `tgt_mask`, `tgt_key_padding_mask`
        and `tgt_is_causal` for the attention to `tgt`; `memory_mask`, `memory_key_padding_mask` and
        `memory_is_causal` for the attention to `memory`.
        """
        own = tgt_mask, tgt_key_padding_mask, tgt_is_causal
        others = memory_mask, memory_key_padding_mask, memory_is_causal
        x = tgt
        if self.norm_first:
            y = self.norm1(x)
            x = x + self.dropout1(_attend(self.self_attn, y, y, *own))
            y = self.norm2(x)
            x = x + self.dropout2(_attend(self.multihead_attn, y, memory, *others))
            final: Tensor = x + self._transform(self.norm3(x))
            return final
        x = self.norm1(x + self.dropout1(_attend(self.self_attn, x, x, *own)))
        x = self.norm2(x + self.dropout2(_attend(self.multihead_attn, x, memory, *others)))
        out: Tensor = self.norm3(x + self._transform(x))
        return out

    def _transform(self, x: Tensor) -> Tensor:
        x = self.linear2(self.dropout(self.activation(self.linear1(x))))
        out: Tensor = self.dropout3(x)
        return out


def _attend(
    attention: Module,
    x: Tensor,
    memory: Tensor,
    mask: Tensor | None,
    padding: Tensor | None,
    is_causal: bool,
) -> Tensor:
    out: Tensor = attention(
        x,
        memory,
        memory,
        key_padding_mask=padding,
        need_weights=False,
        attn_mask=mask,
        is_causal=is_causal,
    )[0]
    return out


class TransformerDecoder(Module):
    """A stack of decoder layers.

    Parameters
    ----------
    decoder_layer : Module
        The layer, such as a `TransformerDecoderLayer`; it is copied, weights included.
    num_layers : int
        The number of layers.
    norm : Module, optional
        A module applied to the output of the last layer, as is usual with `norm_first`.

    Attributes
    ----------
    layers : ModuleList
        The layers.

    Raises
    ------
    ValueError
        If `num_layers` is not an int above 0.
    TypeError
        If `decoder_layer` is not a module.

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.TransformerDecoderLayer(
    ...     8, nhead=2, dim_feedforward=16, batch_first=True
    ... )
    >>> decoder = xgrad.nn.TransformerDecoder(layer, num_layers=3)
    >>> decoder(xgrad.ones((5, 3, 8)), xgrad.ones((5, 7, 8)), tgt_is_causal=True).shape
    (5, 3, 8)
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        name = type(self).__name__
        self.layers = layer_copies(name, "decoder_layer", decoder_layer, num_layers)
        self.num_layers, self.norm = len(self.layers), norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return a tensor of the shape of `tgt`.

        The parameters are the same as in `TransformerDecoderLayer.forward`; None for
        `tgt_is_causal` is False.
        """
        masks = {
            "tgt_mask": tgt_mask,
            "memory_mask": memory_mask,
            "tgt_key_padding_mask": tgt_key_padding_mask,
            "memory_key_padding_mask": memory_key_padding_mask,
            "tgt_is_causal": bool(tgt_is_causal),
            "memory_is_causal": memory_is_causal,
        }
        for layer in self.layers:
            tgt = layer(tgt, memory, **masks)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """A `TransformerEncoder`, and a `TransformerDecoder` that attends to its output.

    Both end with a `LayerNorm`. Matrices are initialized by `init.xavier_uniform_`.

    A. Vaswani et al., "Attention is all you need", NeurIPS, 2017.

    Parameters
    ----------
    d_model, nhead : int
        The length of the last axis, and the number of heads, which divides it.
    num_encoder_layers, num_decoder_layers : int, default 6
        The numbers of layers.
    dim_feedforward, dropout, activation
        The options of all layers: see `TransformerDecoderLayer`.
    custom_encoder, custom_decoder : Module, optional
        Modules in place of the encoder and the decoder, which are called in the same way.
    layer_norm_eps, batch_first, norm_first, bias
        Further options of all layers.
    device : str or Device, optional
        By default the `default_device`.
    dtype : dtype, optional
        A floating dtype; by default the result of `get_default_dtype`.

    Attributes
    ----------
    encoder, decoder : Module
        The encoder and the decoder.

    Raises
    ------
    ValueError
        If a length is not an int above 0, `nhead` does not divide `d_model`, or the activation is
        unknown; in the call, if the shapes do not fit.
    TypeError
        If a custom encoder or decoder is not a module; in the call, if an input has another dtype
        than the weights.
    DeviceError
        If the device is unknown or cannot be used; in the call, if an input is on another one.

    Examples
    --------
    >>> import xgrad
    >>> model = xgrad.nn.Transformer(8, 2, 1, 1, dim_feedforward=16, batch_first=True)
    >>> source, target = xgrad.ones((5, 7, 8)), xgrad.ones((5, 3, 8))
    >>> model(source, target, tgt_is_causal=True).shape
    (5, 3, 8)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = "relu",
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        *,
        device: str | Device | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        for argument, module in (
            ("custom_encoder", custom_encoder),
            ("custom_decoder", custom_decoder),
        ):
            if not isinstance(module, (Module, type(None))):
                raise TypeError(
                    f"{type(self).__name__}: expected a module for {argument}, got {shown(module)}"
                )
        on: dict[str, Any] = {"device": device, "dtype": dtype}
        options: dict[str, Any] = {
            "dim_feedforward": dim_feedforward,
            "dropout": dropout,
            "activation": activation,
            "layer_norm_eps": layer_norm_eps,
            "batch_first": batch_first,
            "norm_first": norm_first,
            "bias": bias,
        }
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        if custom_encoder is None:
            custom_encoder = TransformerEncoder(
                TransformerEncoderLayer(d_model, nhead, **options, **on),
                num_encoder_layers,
                LayerNorm(d_model, layer_norm_eps, bias=bias, **on),
            )
        if custom_decoder is None:
            custom_decoder = TransformerDecoder(
                TransformerDecoderLayer(d_model, nhead, **options, **on),
                num_decoder_layers,
                LayerNorm(d_model, layer_norm_eps, bias=bias, **on),
            )
        self.encoder, self.decoder = custom_encoder, custom_decoder
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fill the matrices with `init.xavier_uniform_` again, of custom modules too."""
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return a tensor of the shape of `tgt`.

        `src` is the input of the encoder, and `tgt` of the decoder. The other parameters are the
        masks of `MultiheadAttention.forward`: for the encoder, and for the decoder's attention to
        `tgt` and to the output of the encoder. None for `src_is_causal` or
        `tgt_is_causal` is False.
        """
        memory = self.encoder(
            src,
            mask=src_mask,
            src_key_padding_mask=src_key_padding_mask,
            is_causal=src_is_causal,
        )
        out: Tensor = self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )
        return out

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: str | Device | None = None, dtype: Any = None
    ) -> Tensor:
        """Return a mask to add to scores: minus infinity for the keys after each query, else 0.

        Parameters
        ----------
        sz : int
            The length of the sequence.
        device : str or Device, optional
            By default the `default_device`.
        dtype : dtype, optional
            A floating dtype; by default the result of `get_default_dtype`.

        Returns
        -------
        Tensor
            Of shape (sz, sz).

        Examples
        --------
        >>> import xgrad
        >>> xgrad.nn.Transformer.generate_square_subsequent_mask(2)
        Tensor([[  0., -inf],
                [  0.,   0.]])
        """
        sz = positive_int("generate_square_subsequent_mask", "sz", sz)
        return triu(full((sz, sz), -math.inf, device=device, dtype=dtype), k=1)
