"""Multi-head attention."""

from __future__ import annotations

from typing import Any

from xgrad.backend.device import Device
from xgrad.core.arguments import as_tensor
from xgrad.core.tensor import Tensor
from xgrad.nn import init
from xgrad.nn.checks import of_dtype_of, positive_int
from xgrad.nn.functional import linear, scaled_dot_product_attention
from xgrad.nn.linear import Linear
from xgrad.nn.module import Module
from xgrad.nn.parameter import Parameter
from xgrad.ops import (
    arange,
    broadcast_to,
    concat,
    empty,
    expand_dims,
    eye,
    mean,
    permute_dims,
    reshape,
    squeeze,
    unstack,
    zeros,
)
from xgrad.ops.attention import additive_mask
from xgrad.ops.dropout import check_probability
from xgrad.ops.padding import pad
from xgrad.ops.precision import is_cast


class MultiheadAttention(Module):
    r"""Multi-head attention: see `functional.scaled_dot_product_attention`.

    Queries, keys and values are projected and split into heads; the results of all heads are
    concatenated and projected again.

    A. Vaswani et al., "Attention is all you need", NeurIPS, 2017.

    Parameters
    ----------
    embed_dim : int
        The length of the last axis of the queries and of the output.
    num_heads : int
        The number of heads, a divisor of `embed_dim`.
    dropout : float, default 0
        The dropout probability of the attention weights.
    bias : bool, default True
        Whether the projections add biases.
    add_bias_kv : bool, default False
        Whether each sequence of keys and values gets one more element, a pair of parameters.
    add_zero_attn : bool, default False
        Whether each sequence of keys and values gets one more element of zeros.
    kdim, vdim : int, optional
        The lengths of the last axes of the keys and the values; by default `embed_dim`.
    batch_first : bool, default False
        Whether the first axis of the inputs and the output is the batch instead of the sequence.
    device : str or Device, optional
        By default the `default_device`.
    dtype : dtype, optional
        A floating dtype; by default the result of `get_default_dtype`.

    Attributes
    ----------
    in_proj_weight : Parameter or None
        Of shape (3 embed_dim, embed_dim), the rows for queries, keys and values. If their lengths
        differ, it is None, and ``q_proj_weight``, ``k_proj_weight`` and ``v_proj_weight`` take its
        place, of shapes (embed_dim, embed_dim), (embed_dim, kdim) and (embed_dim, vdim).
    in_proj_bias : Parameter or None
        Of shape (3 embed_dim,).
    out_proj : Linear
        The projection of the output.
    bias_k, bias_v : Parameter or None
        The key and the value of `add_bias_kv`, of shape (1, 1, embed_dim).

    Raises
    ------
    ValueError
        If a length is not an int above 0, or `num_heads` does not divide `embed_dim`; in the call,
        if the shapes do not fit.
    TypeError
        In the call, if an input has another dtype than the weights, or a mask
        has neither this dtype nor bools.
    DeviceError
        If the device is unknown or cannot be used; in the call, if the inputs are on another one.

    Notes
    -----
    .. math:: Y = P V, \quad P = \operatorname{softmax}(s\, Q K^\top + M)

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.MultiheadAttention(8, num_heads=2, batch_first=True)
    >>> x = xgrad.ones((5, 3, 8))
    >>> output, weights = layer(x, x, x)
    >>> output.shape, weights.shape
    ((5, 3, 8), (5, 3, 3))
    """

    in_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        *,
        device: str | Device | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        check_probability(name, dropout)
        self.embed_dim = positive_int(name, "embed_dim", embed_dim)
        self.num_heads = positive_int(name, "num_heads", num_heads)
        self.kdim = self.embed_dim if kdim is None else positive_int(name, "kdim", kdim)
        self.vdim = self.embed_dim if vdim is None else positive_int(name, "vdim", vdim)
        if embed_dim % num_heads:
            raise ValueError(
                f"{name}: expected num_heads to divide embed_dim, got {num_heads} and {embed_dim}"
            )
        self.dropout, self.batch_first = dropout, batch_first
        self.add_zero_attn = add_zero_attn
        self.in_proj_weight = self.q_proj_weight = self.k_proj_weight = self.v_proj_weight = None
        if self.kdim == self.vdim == embed_dim:
            self.in_proj_weight = Parameter(
                empty((3 * embed_dim, embed_dim), device=device, dtype=dtype)
            )
        else:
            for part, length in (("q", embed_dim), ("k", self.kdim), ("v", self.vdim)):
                weight = Parameter(empty((embed_dim, length), device=device, dtype=dtype))
                setattr(self, f"{part}_proj_weight", weight)
        self.in_proj_bias = (
            Parameter(empty(3 * embed_dim, device=device, dtype=dtype)) if bias else None
        )
        self.bias_k = self.bias_v = None
        if add_bias_kv:
            self.bias_k, self.bias_v = (
                Parameter(empty((1, 1, embed_dim), device=device, dtype=dtype)) for _ in range(2)
            )
        self.out_proj = Linear(embed_dim, embed_dim, bias, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the parameters again.

        The weights of the input projections are filled by `init.xavier_uniform_`, the biases with
        0, and the additional key and value by `init.xavier_normal_`.
        """
        for weight in (
            self.in_proj_weight,
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
        ):
            if weight is not None:
                init.xavier_uniform_(weight)
        self.out_proj.reset_parameters()
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                init.zeros_(bias)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                init.xavier_normal_(extra)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the output, of the shape of `query`, and the attention weights.

        `query`, `key` and `value` have shape (length, batch, channels), or (batch, length,
        channels) if `batch_first`, or (length, channels) without a batch. `key_padding_mask` has
        shape (batch, keys); `attn_mask` has shape (queries, keys), or (batch * heads, queries,
        keys). In a boolean mask, True excludes a key, unlike in
        `functional.scaled_dot_product_attention`; a floating mask is added to the scores.
        `is_causal` excludes the keys after each query and
        needs no mask. No mask excludes the keys of `add_bias_kv` and `add_zero_attn`.

        The weights have shape (batch, queries, keys), averaged over the heads, or (batch, heads,
        queries, keys) unless `average_attn_weights`; the additional keys are the last ones.
        Without `need_weights` they are None, which is faster.
        """
        batched = query.ndim == 3
        q, k, v = self._heads(query, key, value)
        mask = self._mask(attn_mask, key_padding_mask, q, k)
        if self.bias_k is not None or self.add_zero_attn:
            if is_causal:
                later = self._additive("is_causal", _later_keys(q, k), q)
                mask, is_causal = later if mask is None else mask + later, False
            k, v, mask = self._extended(k, v, mask)
        options: dict[str, Any] = {
            "dropout_p": self.dropout if self.training else 0.0,
            "is_causal": is_causal,
        }
        weights = None
        if need_weights:  # attention to the rows of the identity returns the weights
            one = eye(k.shape[2], device=k.device, dtype=k.dtype)
            weights = scaled_dot_product_attention(q, k, one, mask, **options)
            out = weights @ v
            weights = mean(weights, axis=1) if average_attn_weights else weights
        else:
            out = scaled_dot_product_attention(q, k, v, mask, **options)
        order = (0, 2, 1, 3) if self.batch_first or not batched else (2, 0, 1, 3)
        out = permute_dims(out, order)
        out = self.out_proj(reshape(out, (*out.shape[:2], self.embed_dim)))
        if batched:
            return out, weights
        return squeeze(out, axis=0), None if weights is None else squeeze(weights, axis=0)

    def _heads(self, *inputs: Tensor) -> list[Tensor]:
        """Return queries, keys and values, each of shape (batch, heads, length, channels)."""
        checked = self._checked(inputs)
        batched = checked[0].ndim == 3
        order = (0, 2, 1, 3) if self.batch_first or not batched else (1, 2, 0, 3)
        weight, bias = self.in_proj_weight, self.in_proj_bias
        channels = self.embed_dim // self.num_heads
        if weight is not None and inputs[0] is inputs[1] is inputs[2]:
            x = checked[0] if batched else expand_dims(checked[0], axis=0)
            both = reshape(linear(x, weight, bias), (*x.shape[:2], 3, self.num_heads, channels))
            return [permute_dims(part, order) for part in unstack(both, axis=2)]
        weights: Any = self.q_proj_weight, self.k_proj_weight, self.v_proj_weight
        if weight is not None:
            weights = unstack(reshape(weight, (3, self.embed_dim, self.embed_dim)))
        biases: Any = [None] * 3 if bias is None else unstack(reshape(bias, (3, self.embed_dim)))
        heads = []
        for x, w, b in zip(checked, weights, biases, strict=True):
            x = linear(x if batched else expand_dims(x, axis=0), w, b)
            heads.append(permute_dims(reshape(x, (*x.shape[:2], self.num_heads, channels)), order))
        return heads

    def _extended(
        self, k: Tensor, v: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Append the additional keys and values, of all heads, which no mask excludes."""
        batch, heads, keys, channels = k.shape
        shape = (batch, heads, 1, channels)
        if self.bias_k is not None and self.bias_v is not None:
            extras = [
                broadcast_to(reshape(extra, (1, *shape[1:])), shape)
                for extra in (self.bias_k, self.bias_v)
            ]
            k, v = (concat(pair, axis=2) for pair in zip((k, v), extras, strict=True))
        if self.add_zero_attn:
            row = zeros(shape, device=k.device, dtype=k.dtype)
            k, v = (concat([x, row], axis=2) for x in (k, v))
        if mask is not None:
            mask = pad(mask, ((0, 0),) * (mask.ndim - 1) + ((0, k.shape[2] - keys),))
        return k, v, mask

    def _checked(self, inputs: tuple[Tensor, ...]) -> list[Tensor]:
        """Return the inputs as tensors; ValueError unless their shapes fit."""
        name, names = type(self).__name__, ("query", "key", "value")
        weight = self.out_proj.weight
        query, key, value = (
            of_dtype_of(weight, x, name, which) for x, which in zip(inputs, names, strict=True)
        )
        lengths = (self.embed_dim, self.kdim, self.vdim)
        fits = (
            query.ndim in (2, 3)
            and query.ndim == key.ndim == value.ndim
            and key.shape[:-1] == value.shape[:-1]
        )
        if not fits or tuple([x.shape[-1] for x in (query, key, value)]) != lengths:
            fits = False
        elif query.ndim == 3:
            axis = 0 if self.batch_first else 1
            fits = query.shape[axis] == key.shape[axis]
        if not fits:
            axes = "(batch, length, ...)" if self.batch_first else "(length, batch, ...)"
            raise ValueError(
                f"{name}: expected query, key and value of shape {axes} or (length, ...) that end"
                f" with {lengths}, got {query.shape}, {key.shape} and {value.shape}"
            )
        return [query, key, value]

    def _mask(
        self, mask: Tensor | None, padding: Tensor | None, query: Tensor, key: Tensor
    ) -> Tensor | None:
        """Combine both masks into one to add to the scores; None without any."""
        name, (batch, heads, rows, _), columns = type(self).__name__, query.shape, key.shape[2]
        added: Tensor | None = None
        if mask is not None:
            added = self._additive("attn_mask", mask, query)
            if added.shape == (batch * heads, rows, columns):
                added = reshape(added, (batch, heads, rows, columns))
            elif added.shape != (rows, columns):
                raise ValueError(
                    f"{name}: expected attn_mask of shape {(rows, columns)} or"
                    f" {(batch * heads, rows, columns)}, got {added.shape}"
                )
        if padding is not None:
            of_keys = self._additive("key_padding_mask", padding, query)
            if of_keys.shape not in ((batch, columns), (columns,)[: 2 - batch]):
                raise ValueError(
                    f"{name}: expected key_padding_mask of shape {(batch, columns)}, got"
                    f" {of_keys.shape}"
                )
            of_keys = reshape(of_keys, (batch, 1, 1, columns))
            added = of_keys if added is None else added + of_keys
        return added

    def _additive(self, argument: str, mask: Tensor, query: Tensor) -> Tensor:
        name = type(self).__name__
        mask = as_tensor(name, argument, mask)
        if mask.dtype.kind != "b" and mask.dtype != query.dtype and not is_cast(mask, query):
            raise TypeError(
                f"{name}: expected {argument} of bools or of {query.dtype}, got {mask.dtype}: use"
                " .astype"
            )
        return additive_mask(mask, True, query.dtype)

    def extra_repr(self) -> str:
        return f"{self.embed_dim}, num_heads={self.num_heads}, batch_first={self.batch_first}"


def _later_keys(query: Tensor, key: Tensor) -> Tensor:
    """Return a mask of bools, True for the keys after each query."""
    rows, columns = (arange(x.shape[2], device=x.device) for x in (query, key))
    return columns > expand_dims(rows, axis=1)
