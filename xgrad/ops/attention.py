"""Scaled dot-product attention, with its derivative in closed form."""

from __future__ import annotations

import math
from typing import Any

from xgrad.backend.overridable import overridable
from xgrad.core.arguments import as_tensor
from xgrad.core.dtypes import FLOATING, is_half
from xgrad.core.tensor import Tensor
from xgrad.ops import creation, searching
from xgrad.ops.declare import derivative
from xgrad.ops.dropout import check_probability, dropout_mask
from xgrad.ops.joining import repeat
from xgrad.random.generator import next_call


def _exponentials(xp: Any, query: Any, key: Any, mask: Any, causal: bool) -> tuple[Any, Any]:
    """Return the unnormalized softmax weights, and their sum for each query.

    If all keys of a query are masked, the sum is replaced by 1.
    """
    scores = _as_single(xp, xp.matmul(query, xp.matrix_transpose(key)))
    if mask is not None:
        scores = scores + mask
    if causal:
        scores = scores + causal_mask(xp, scores)
    top = xp.max(scores, axis=-1, keepdims=True)
    if mask is not None:
        top = xp.where(xp.isfinite(top), top, 0)  # -inf if all keys are masked
    weights = xp.exp(scores - top)
    total = xp.sum(weights, axis=-1, keepdims=True)
    return weights, total if mask is None else xp.where(total == 0, 1, total)


def _as_single(xp: Any, x: Any) -> Any:
    """Cast float16 to float32, and return other arrays unchanged.

    In float16, a softmax loses digits, and its sums overflow.
    """
    return xp.astype(x, xp.float32) if is_half(x.dtype) else x


def causal_mask(xp: Any, scores: Any) -> Any:
    """Return a mask to add to scores: minus infinity for keys after the query, else 0."""
    rows, columns = (xp.arange(n, device=scores.device) for n in scores.shape[-2:])
    later = columns > xp.expand_dims(rows, axis=-1)
    zeros = xp.zeros(later.shape, dtype=scores.dtype, device=scores.device)
    return xp.where(later, -math.inf, zeros)


@overridable
def _attention_values(
    xp: Any, query: Any, key: Any, value: Any, mask: Any,
    causal: bool, scale: float, p: float, seed: Any, call: Any, device: Any,
) -> Any:  # fmt: skip
    """Return the weighted means of the values, and the unnormalized weights with their sums."""
    exponentials, total = _exponentials(xp, query * scale, key, mask, causal)
    kept = (
        exponentials * dropout_mask(xp, exponentials, seed, call, device, p) if p else exponentials
    )
    if is_half(value.dtype):
        return xp.matmul(xp.astype(kept / total, value.dtype), value), (exponentials, total)
    return xp.matmul(kept, value) / total, (exponentials, total)


@overridable
def _attention_gradient(
    xp: Any, g: Any, query: Any, key: Any, value: Any, mask: Any, out: Any, weights: Any,
    causal: bool, scale: float, p: float, seed: Any, call: Any, device: Any,
) -> tuple[Any, ...]:  # fmt: skip
    """Return the gradients of the query, the key, the value, and the mask."""
    query = query * scale
    exponentials, total = (
        _exponentials(xp, query, key, mask, causal) if weights is None else weights
    )
    kept = dropout_mask(xp, exponentials, seed, call, device, p) if p else None
    if is_half(g.dtype):
        return _half_gradients(
            g, xp, query, key, value, mask, out, exponentials / total, kept, scale
        )
    g = g / total
    dropped = exponentials if kept is None else exponentials * kept
    dv = xp.matmul(xp.matrix_transpose(dropped), g)
    dw = xp.matmul(g, xp.matrix_transpose(value))
    dw = dw if kept is None else dw * kept
    ds = exponentials * (dw - xp.sum(g * out, axis=-1, keepdims=True))
    dq, dk = xp.matmul(ds, key), xp.matmul(xp.matrix_transpose(ds), query)
    return dq * scale, dk, dv, None if mask is None else ds


def _half_gradients(
    g: Any,
    xp: Any,
    query: Any,
    key: Any,
    value: Any,
    mask: Any,
    out: Any,
    weights: Any,
    kept: Any,
    scale: float,
) -> tuple[Any, ...]:
    """Return the gradients for inputs in float16.

    Matrix products use float16, in which devices are fast; sums and differences use float32.
    """
    dropped = weights if kept is None else weights * kept
    dv = xp.matmul(xp.matrix_transpose(xp.astype(dropped, g.dtype)), g)
    dw = _as_single(xp, xp.matmul(g, xp.matrix_transpose(value)))
    dw = dw if kept is None else dw * kept
    ds = weights * (dw - xp.sum(_as_single(xp, g) * out, axis=-1, keepdims=True))
    narrow = xp.astype(ds, g.dtype)
    dq, dk = xp.matmul(narrow, key), xp.matmul(xp.matrix_transpose(narrow), query)
    return dq * scale, dk, dv, None if mask is None else ds


def _attention_rule(
    g: Any, xp: Any, query: Any, key: Any, value: Any, mask: Any, out: Any, weights: Any,
    causal: bool, scale: float, p: float, seed: Any, call: Any, device: Any,
) -> tuple[Any, ...]:  # fmt: skip
    more = causal, scale, p, seed, call, device
    return _attention_gradient(xp, g, query, key, value, mask, out, weights, *more)


@derivative(
    _attention_rule,
    lowest=FLOATING,
    highest=FLOATING,
    residual="weights",
    joint_backward=True,
    autocast="narrow",
    upcast=True,
)
def _attention(
    xp: Any, query: Any, key: Any, value: Any, mask: Any = None, *,
    causal: bool, scale: float, p: float, seed: Any, call: Any, device: Any,
) -> Any:  # fmt: skip
    return _attention_values(xp, query, key, value, mask, causal, scale, p, seed, call, device)


def additive_mask(mask: Tensor, masked: bool, dtype: Any) -> Tensor:
    """Return a mask to add to scores; bools become minus infinity where they equal `masked`."""
    if mask.dtype.kind != "b":
        return mask
    zeros = creation.zeros(mask.shape, dtype=dtype, device=mask.device)
    return searching.where(mask if masked else ~mask, -math.inf, zeros)


def _repeated_heads(name: str, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Repeat each head of the keys and the values for all heads of the query that share it."""
    heads = [x.shape[-3] if x.ndim > 2 else 0 for x in (query, key, value)]
    if not all(heads) or heads[0] % heads[1] or heads[0] % heads[2]:
        raise ValueError(
            f"{name}: expected heads of key and value that divide the heads of query with"
            f" enable_gqa, the third axis from the end, got {query.shape}, {key.shape} and"
            f" {value.shape}"
        )
    return (
        repeat(key, heads[0] // heads[1], axis=-3),
        repeat(value, heads[0] // heads[2], axis=-3),
    )


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    r"""Return a weighted mean of the values for each query.

    The weights are the softmax of the query's products with the keys. If all keys of a query are
    masked, its result is 0.

    A. Vaswani et al., "Attention is all you need", NeurIPS, 2017.

    Parameters
    ----------
    query : Tensor
        Of shape (..., queries, channels), floating.
    key : Tensor
        Of shape (..., keys, channels).
    value : Tensor
        Of shape (..., keys, out).
    attn_mask : Tensor, optional
        Of a shape that broadcasts to (..., queries, keys): bools, True where a key takes part, or
        floats, which are added to the products.
    dropout_p : float, default 0
        The probability that a weight is replaced by 0; the other weights are divided by
        ``1 - dropout_p``. This function has no evaluation mode: pass 0 for evaluation.
    is_causal : bool, default False
        Whether the query at index i uses only the keys up to index i.
    scale : float, optional
        The factor of the products; by default ``1 / sqrt(channels)``.
    enable_gqa : bool, default False
        Whether several heads of the query share one head of the keys and the values: the third
        axis from the end may then be a multiple of theirs.

    Returns
    -------
    Tensor
        Of shape (..., queries, out).

    Raises
    ------
    ValueError
        If the shapes do not fit, or `dropout_p` is not from 0 to 1.
    TypeError
        If the inputs are not floating, or the mask holds integers.

    Notes
    -----
    .. math:: Y = P V, \quad P = \operatorname{softmax}(s\, Q K^\top + M)

    - Gradient for `query`: :math:`s\, \bar S K`
    - Gradient for `key`: :math:`s\, \bar S^\top Q`
    - Gradient for `value`: :math:`P^\top \bar Y`
    - Gradient for `attn_mask`: :math:`\bar S`, the gradient for the argument of the softmax:
      :math:`\bar S_{ij} = P_{ij} \left((\bar Y V^\top)_{ij} - \sum_k \bar Y_{ik} Y_{ik}\right)`

    Here, :math:`s` is `scale`, and :math:`M` the mask, with minus infinity for keys that are left
    out.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.asarray([[1.0, 0.0], [0.0, 1.0]])
    >>> xgrad.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
    Tensor([[1.        , 0.        ],
            [0.33023846, 0.66976154]])
    """
    name = "scaled_dot_product_attention"
    check_probability(name, dropout_p)
    inputs = {"query": query, "key": key, "value": value}
    query, key, value = (as_tensor(name, argument, x) for argument, x in inputs.items())
    for argument, x in zip(inputs, (query, key, value), strict=True):
        if x.dtype.kind != "f":
            raise TypeError(
                f"{name}: expected a floating {argument}, got {x.dtype}: use .astype(float32)"
            )
    fit = query.shape[-1:] == key.shape[-1:] and key.shape[-2:-1] == value.shape[-2:-1]
    if min(query.ndim, key.ndim, value.ndim) < 2 or not fit:
        raise ValueError(
            f"{name}: expected query (..., queries, channels), key (..., keys, channels) and value"
            f" (..., keys, out), got {query.shape}, {key.shape} and {value.shape}"
        )
    if enable_gqa:
        key, value = _repeated_heads(name, query, key, value)
    if not key.shape[-2]:
        raise ValueError(f"{name}: expected at least one key, got shape {key.shape}")
    mask = None if attn_mask is None else as_tensor(name, "attn_mask", attn_mask)
    if mask is not None:
        if mask.dtype.kind not in "bf":
            raise TypeError(f"{name}: expected attn_mask of bools or floats, got {mask.dtype}")
        mask = additive_mask(mask, False, query.dtype)
    seed, call = next_call(name, None) if dropout_p else (None, None)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    random: dict[str, Any] = {"p": dropout_p, "seed": seed, "call": call, "device": query.device}
    return _attention(query, key, value, mask, causal=is_causal, scale=scale, **random)
