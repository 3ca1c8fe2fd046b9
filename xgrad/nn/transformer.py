"""Transformer encoders and positional encodings."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from xgrad.backend.device import Device
from xgrad.core.tensor import Tensor
from xgrad.nn import init
from xgrad.nn.attention import MultiheadAttention
from xgrad.nn.checks import of_dtype_of, positive_int
from xgrad.nn.containers import ModuleList
from xgrad.nn.dropout import Dropout
from xgrad.nn.functional import gelu, relu
from xgrad.nn.linear import Linear
from xgrad.nn.module import Module
from xgrad.nn.normalization import LayerNorm
from xgrad.nn.parameter import Parameter
from xgrad.ops import asarray, empty, expand_dims
from xgrad.support.hints import shown

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": relu, "gelu": gelu}


def activation_function(
    layer: str, activation: str | Callable[[Tensor], Tensor]
) -> Callable[[Tensor], Tensor]:
    """Return an activation that is given by name or as a function."""
    function = _ACTIVATIONS.get(activation) if isinstance(activation, str) else activation
    if not callable(function):
        raise ValueError(
            f"{layer}: expected an activation of {list(_ACTIVATIONS)}, got {shown(activation)}"
        )
    return function


def layer_copies(owner: str, argument: str, layer: Module, num_layers: int) -> ModuleList:
    """Return copies of a layer, weights included."""
    if not isinstance(layer, Module):
        raise TypeError(f"{owner}: expected a module for {argument}, got {shown(layer)}")
    count = positive_int(owner, "num_layers", num_layers)
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


class TransformerEncoderLayer(Module):
    """Self-attention and a feedforward part, each with a residual connection and a `LayerNorm`.

    The feedforward part has two linear layers with an activation between them.

    ``x = norm1(x + self_attn(x))``, then ``norm2(x + linear2(activation(linear1(x))))``; with
    `norm_first`, the normalizations are applied to the inputs of the two parts instead.

    A. Vaswani et al., "Attention is all you need", NeurIPS, 2017; with `norm_first`, R. Xiong et
    al., "On layer normalization in the transformer architecture", ICML, 2020.

    Parameters
    ----------
    d_model, nhead : int
        The length of the last axis, and the number of heads, which divides it.
    dim_feedforward : int, default 2048
        The number of hidden units between the linear layers.
    dropout : float, default 0.1
        The dropout probability of the attention weights, the activations and the outputs of both
        parts.
    activation : {"relu", "gelu"} or callable, default "relu"
        The activation.
    layer_norm_eps : float, default 1e-5
        Added to the variance.
    batch_first : bool, default False
        Whether the first axis of the input is the batch instead of the sequence.
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
    self_attn : MultiheadAttention
        The attention.
    linear1, linear2 : Linear
        The linear layers.
    norm1, norm2 : LayerNorm
        The normalizations.

    Raises
    ------
    ValueError
        If a length is not an int above 0, `nhead` does not divide `d_model`, or the activation is
        unknown; in the call, if the shapes do not fit.
    TypeError
        In the call, if the input has another dtype than the weights.
    DeviceError
        If the device is unknown or cannot be used; in the call, if the input is on another one.

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.TransformerEncoderLayer(
    ...     8, nhead=2, dim_feedforward=16, batch_first=True
    ... )
    >>> layer(xgrad.ones((5, 3, 8)), is_causal=True).shape
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
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, **on
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias, **on)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **on)
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, **on)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, **on)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Return a tensor of the shape of `src`.

        `src_mask` and `src_key_padding_mask` are the masks of `MultiheadAttention.forward`, and
        `is_causal` says that each position attends to earlier ones alone.
        """
        masks: dict[str, Any] = {"attn_mask": src_mask, "key_padding_mask": src_key_padding_mask}
        masks["is_causal"] = is_causal
        x = src
        if self.norm_first:
            x = x + self._attend(self.norm1(x), masks)
            return x + self._transform(self.norm2(x))
        x = self.norm1(x + self._attend(x, masks))
        out: Tensor = self.norm2(x + self._transform(x))
        return out

    def _attend(self, x: Tensor, masks: dict[str, Any]) -> Tensor:
        out: Tensor = self.dropout1(self.self_attn(x, x, x, need_weights=False, **masks)[0])
        return out

    def _transform(self, x: Tensor) -> Tensor:
        x = self.linear2(self.dropout(self.activation(self.linear1(x))))
        out: Tensor = self.dropout2(x)
        return out


class TransformerEncoder(Module):
    """A stack of encoder layers.

    Parameters
    ----------
    encoder_layer : Module
        The layer, such as a `TransformerEncoderLayer`; it is copied, weights included.
    num_layers : int
        The number of layers.
    norm : Module, optional
        A module applied to the output of the last layer, as is usual with `norm_first`.
    enable_nested_tensor, mask_check : bool, default True
        Accepted for compatibility with PyTorch; there are no nested tensors, and masked positions
        are computed like all others.

    Attributes
    ----------
    layers : ModuleList
        The layers.

    Raises
    ------
    ValueError
        If `num_layers` is not an int above 0.
    TypeError
        If `encoder_layer` is not a module.

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.TransformerEncoderLayer(
    ...     8, nhead=2, dim_feedforward=16, batch_first=True
    ... )
    >>> xgrad.nn.TransformerEncoder(layer, num_layers=3)(xgrad.ones((5, 3, 8))).shape
    (5, 3, 8)
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        self.layers = layer_copies(name, "encoder_layer", encoder_layer, num_layers)
        self.num_layers, self.norm = len(self.layers), norm
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Return a tensor of the shape of `src`.

        `mask` and `src_key_padding_mask` are the masks of `MultiheadAttention.forward`; None for
        `is_causal` is False.
        """
        masks = {"src_mask": mask, "src_key_padding_mask": src_key_padding_mask}
        for layer in self.layers:
            src = layer(src, **masks, is_causal=bool(is_causal))
        return src if self.norm is None else self.norm(src)


class PositionalEncoding(Module):
    """The input plus a vector for each position.

    The vectors are learned, or sines and cosines of wavelengths from 2π to 20000π.

    Unless learned, channels 2i and 2i + 1 at position t are the sine and the cosine of t /
    10000^(2i / d_model).

    A. Vaswani et al., "Attention is all you need", NeurIPS, 2017.

    Parameters
    ----------
    d_model : int
        The length of the last axis.
    max_length : int, default 5000
        The number of positions.
    dropout : float, default 0
        The dropout probability of the sum.
    learned : bool, default False
        Whether the vectors are a parameter, initialized with normal random numbers of standard
        deviation 0.02.
    batch_first : bool, default False
        Whether the first axis of the input is the batch instead of the sequence.
    device : str or Device, optional
        By default the `default_device`.
    dtype : dtype, optional
        A floating dtype; by default the result of `get_default_dtype`.

    Attributes
    ----------
    encoding : Tensor or Parameter
        Of shape (max_length, d_model); unless learned, a buffer that is not in
        `state_dict`.

    Raises
    ------
    ValueError
        If a length is not an int above 0, or `dropout` is not from 0 to 1; in the call, if the
        input is longer than `max_length`, or its shape does not fit.
    TypeError
        In the call, if the input has another dtype than the encoding.

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.PositionalEncoding(4, max_length=10)
    >>> layer(xgrad.zeros((2, 4)))
    Tensor([[0.        , 1.        , 0.        , 1.        ],
            [0.84147096, 0.5403023 , 0.00999983, 0.99995   ]])
    """

    encoding: Tensor

    def __init__(
        self,
        d_model: int,
        max_length: int = 5000,
        dropout: float = 0.0,
        learned: bool = False,
        batch_first: bool = False,
        *,
        device: str | Device | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        self.d_model = positive_int(name, "d_model", d_model)
        self.max_length = positive_int(name, "max_length", max_length)
        self.batch_first, self.dropout = batch_first, Dropout(dropout)
        encoding = empty((max_length, d_model), device=device, dtype=dtype)
        if learned:
            self.encoding = Parameter(init.normal_(encoding, std=0.02))
        else:
            waves = asarray(
                _waves(d_model, max_length), device=encoding.device, dtype=encoding.dtype
            )
            self.register_buffer("encoding", waves, persistent=False)

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the shape of `input`.

        The shape is (length, batch, d_model), or (batch, length, d_model) with `batch_first`, or
        (length, d_model).
        """
        name = type(self).__name__
        x = of_dtype_of(self.encoding, input, name)
        axis = 1 if self.batch_first and x.ndim == 3 else 0
        if x.ndim not in (2, 3) or x.shape[-1] != self.d_model or x.shape[axis] > self.max_length:
            axes = "(batch, length, d_model)" if self.batch_first else "(length, batch, d_model)"
            raise ValueError(
                f"{name}: expected input of shape {axes} or (length, d_model), a length up to"
                f" {self.max_length} and d_model = {self.d_model}, got {x.shape}"
            )
        encoding = self.encoding[: x.shape[axis], :]
        encoding = expand_dims(encoding, axis=1) if x.ndim == 3 and axis == 0 else encoding
        out: Tensor = self.dropout(x + encoding)
        return out

    def extra_repr(self) -> str:
        return f"{self.d_model}, max_length={self.max_length}"


def _waves(channels: int, length: int) -> np.ndarray[Any, Any]:
    """Return sines and cosines, of shape (length, channels), in float64."""
    frequencies = 10000.0 ** -(np.arange(0, channels, 2) / channels)
    angles = np.arange(length)[:, None] * frequencies
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(length, -1)[:, :channels]
