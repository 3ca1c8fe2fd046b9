"""Sums, means and maxima of looked-up rows, one for each bag of indices."""

from __future__ import annotations

import math
from typing import Literal

from xgrad.backend.recording import check_true
from xgrad.core.arguments import as_tensor
from xgrad.core.dtypes import int64
from xgrad.core.tensor import Tensor
from xgrad.ops.creation import arange, full, zeros
from xgrad.ops.dtype_functions import finfo
from xgrad.ops.elementwise import clip, maximum
from xgrad.ops.embedding import check_not_sparse, front_index, looked_up_rows, lookup_arguments
from xgrad.ops.indexing import _scatter_add, take, take_along_axis
from xgrad.ops.manipulation import broadcast_to, expand_dims, reshape, squeeze
from xgrad.ops.padding import pad
from xgrad.ops.precision import upcast
from xgrad.ops.searching import argmax, searchsorted, where
from xgrad.ops.statistical import all, any, cumulative_sum, sum
from xgrad.ops.tensor_conversion import astype
from xgrad.support.hints import shown

_MODES = ("sum", "mean", "max")


def check_bag_options(op: str, mode: str, scale_grad_by_freq: bool, sparse: bool) -> None:
    """Raise ValueError unless the options of bags are known and fit each other."""
    check_not_sparse(op, sparse)
    if mode not in _MODES:
        raise ValueError(f"{op}: expected a mode of {list(_MODES)}, got {shown(mode)}")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError(f"{op}: expected scale_grad_by_freq=False for mode='max', got True")


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: Literal["sum", "mean", "max"] = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    r"""Return the sum, mean or maximum of the rows of a matrix at each bag of indices.

    Parameters
    ----------
    input : Tensor
        The indices of rows, counted from 0: integers, of shape (bags, length) for bags of one
        length, or the concatenated bags, of shape (indices,).
    weight : Tensor
        Of shape (rows, features).
    offsets : Tensor, optional
        The first position of each bag in a vector `input`: integers of shape (bags,), in ascending
        order from 0. A bag may be empty; its result is 0.
    max_norm, norm_type, scale_grad_by_freq
        As for `embedding`.
    mode : {"sum", "mean", "max"}, default "mean"
        The reduction of a bag.
    sparse : bool, default False
        Must be False: gradients are dense.
    per_sample_weights : Tensor, optional
        A factor for each row, of the shape of `input` and the dtype of `weight`; with
        ``mode="sum"`` only.
    include_last_offset : bool, default False
        Whether `offsets` has one more element, the end of the last bag.
    padding_idx : int, optional
        The index of a row that is left out of all bags.

    Returns
    -------
    Tensor
        Of shape (bags, features).

    Raises
    ------
    IndexError
        If there is no such row; not checked on ``cuda``, where the check would synchronize.
    TypeError
        If `input` or `offsets` does not hold integers, or the weights have another dtype.
    ValueError
        If shapes or options do not fit, or `offsets` is not in ascending order from 0 (the order is
        not checked on ``cuda``).

    Notes
    -----
    .. math:: y_b = \sum_{i \in b} s_i\, w_{k_i}

    :math:`k_i` are the indices in bag :math:`b`, and :math:`s_i` is 1, one of
    ``per_sample_weights``, or for "mean" one divided by their number. For "max", :math:`y_b` is the
    largest of the :math:`w_{k_i}`, element by element.

    - Gradient for `weight`: :math:`\bar w_k = \sum_{b, i:\, k_i = k} s_i\, \bar y_b`, or for
      "max" the sum of the :math:`\bar y_b` of the elements that are largest
    - Gradient for `per_sample_weights`: :math:`\bar s_i = \bar y_b \cdot w_{k_i}`

    Examples
    --------
    >>> import xgrad
    >>> weight = xgrad.asarray([[0.0, 1.0], [1.0, 2.0], [3.0, 4.0]])
    >>> bags = xgrad.asarray([0, 2, 1])
    >>> xgrad.nn.functional.embedding_bag(bags, weight, xgrad.asarray([0, 2]), mode="sum")
    Tensor([[3., 5.],
            [1., 2.]])
    """
    op = "embedding_bag"
    input, weight = lookup_arguments(op, input, weight)
    check_bag_options(op, mode, scale_grad_by_freq, sparse)
    numbers = reshape(input, (-1,)) if input.size else zeros(0, dtype=int64, device=input.device)
    starts = _starts(input, offsets, include_last_offset)
    factors = _factors(input, weight, per_sample_weights, mode)
    padding = front_index(op, padding_idx, weight.shape[0])
    rows = looked_up_rows(op, numbers, weight, max_norm, norm_type, scale_grad_by_freq)
    inside = None if padding is None else numbers != padding
    if input.ndim == 2:
        bags, length = input.shape
        rows = reshape(rows, (bags, length, weight.shape[1]))
        inside = None if inside is None else reshape(inside, input.shape)
        factors = None if factors is None else reshape(factors, input.shape)
        return _reduce_padded(rows, inside, factors, mode)
    assert starts is not None
    out = _reduce_segments(rows, starts, inside, factors, mode)
    return out[:-1, :] if include_last_offset else out


def _starts(input: Tensor, offsets: Tensor | None, include_last_offset: bool) -> Tensor | None:
    """Return the first position of each bag as a tensor, after checks; None for a matrix."""
    op = "embedding_bag"
    if input.ndim == 2:
        if offsets is not None or include_last_offset:
            raise ValueError(f"{op}: expected no offsets for bags of one length, input of two axes")
        return None
    if input.ndim != 1 or offsets is None:
        raise ValueError(
            f"{op}: expected input of shape (bags, length), or (indices,) with offsets, got"
            f" {input.shape}{' without offsets' if offsets is None else ''}"
        )
    starts = as_tensor(op, "offsets", offsets)
    if starts.dtype.kind not in "iu":
        raise TypeError(f"{op}: expected offsets of integers, got {starts.dtype}")
    if starts.ndim != 1 or starts.shape[0] < include_last_offset:
        raise ValueError(f"{op}: expected offsets of shape (bags,), got {starts.shape}")
    starts = astype(starts, int64, copy=False)
    if starts.shape[0] and not starts.device.backend.asynchronous:
        wrong = (starts[1:] < starts[:-1]) | (starts[1:] > input.shape[0])
        ordered = all(~wrong) & (starts[0] == 0)
        if not check_true(ordered.device, ordered._data):
            got = "others" if starts.device.level else starts.tolist()
            raise ValueError(
                f"{op}: expected offsets in ascending order from 0 to at most {input.shape[0]},"
                f" got {got}"
            )
    return starts


def _factors(
    input: Tensor, weight: Tensor, per_sample_weights: Tensor | None, mode: str
) -> Tensor | None:
    """Return the factors of the rows as a vector, after checks."""
    op = "embedding_bag"
    if per_sample_weights is None:
        return None
    factors = as_tensor(op, "per_sample_weights", per_sample_weights)
    if mode != "sum":
        raise ValueError(f"{op}: expected mode='sum' for per_sample_weights, got {shown(mode)}")
    if factors.dtype != weight.dtype:
        raise TypeError(
            f"{op}: expected per_sample_weights of {weight.dtype}, the dtype of weight, got"
            f" {factors.dtype}"
        )
    if factors.shape != input.shape:
        raise ValueError(
            f"{op}: expected per_sample_weights of the shape of input, {input.shape}, got"
            f" {factors.shape}"
        )
    return reshape(factors, (input.size,))


@upcast
def _reduce_padded(
    rows: Tensor, inside: Tensor | None, factors: Tensor | None, mode: str
) -> Tensor:
    """Return the reduction of rows of shape (bags, length, features) over the second axis.

    `inside` tells which rows belong to a bag.
    """
    if not rows.size:
        return sum(rows, axis=1)
    if mode == "max":
        if inside is not None:
            rows = where(expand_dims(inside, axis=2), rows, _lowest(rows.detach()))
        best = argmax(rows, axis=1, keepdims=True)  # the first on ties
        out = squeeze(take_along_axis(rows, best, axis=1), axis=1)
        return out if inside is None else where(any(inside, axis=1, keepdims=True), out, 0)
    if factors is not None:
        rows = rows * expand_dims(factors, axis=2)
    if inside is not None:
        rows = where(expand_dims(inside, axis=2), rows, 0)
    total = sum(rows, axis=1)
    if mode == "sum":
        return total
    if inside is None:
        return total / rows.shape[1]
    counts = sum(astype(inside, int64), axis=1, keepdims=True)
    return total / astype(maximum(counts, 1), rows.dtype)


@upcast
def _reduce_segments(
    rows: Tensor, starts: Tensor, inside: Tensor | None, factors: Tensor | None, mode: str
) -> Tensor:
    """Return the reduction of the rows, of shape (indices, features), from each start on."""
    bags, (count, features) = starts.shape[0], rows.shape
    if not bags or not rows.size:
        return zeros((bags, features), dtype=rows.dtype, device=rows.device)
    of_bag = searchsorted(starts, arange(count, device=rows.device), side="right") - 1
    present = full(count, 1, dtype=int64, device=rows.device)
    present = present if inside is None else astype(inside, int64)
    sizes = expand_dims(_scatter_add(present, of_bag, axis=0, shape=(bags,)), axis=1)
    if mode == "max":
        if inside is not None:
            rows = where(expand_dims(inside, axis=1), rows, _lowest(rows.detach()))
        best = _places_of_maxima(rows.detach(), starts)
        return where(sizes == 0, 0, take_along_axis(rows, best, axis=0))
    if factors is not None:
        rows = rows * expand_dims(factors, axis=1)
    if inside is not None:
        rows = where(expand_dims(inside, axis=1), rows, 0)
    total = _scatter_add(rows, of_bag, axis=0, shape=(bags, features))
    return total if mode == "sum" else total / astype(maximum(sizes, 1), rows.dtype)


def _places_of_maxima(values: Tensor, starts: Tensor) -> Tensor:
    """Return the index of the largest element of each bag and feature, the first on ties.

    Bags are cut into chunks of the mean length of a bag, so that no length is read: first the
    largest elements of all chunks are found, then those of bags among them.
    """
    (count, _), bags = values.shape, starts.shape[0]
    width = -(-count // bags)
    ends = pad(starts[1:], ((0, 1),), constant_values=count)
    chunks = (ends - starts + width - 1) // width
    firsts = cumulative_sum(chunks) - chunks
    numbers = arange(count // width + bags, device=values.device)  # at least as many as chunks
    of_bag = searchsorted(firsts, numbers, side="right") - 1
    begins = take(starts - width * firsts, of_bag, axis=0) + width * numbers
    places = expand_dims(begins, axis=1) + arange(width, device=values.device)
    real = places < expand_dims(take(ends, of_bag, axis=0), axis=1)
    places = where(real, places, 0)
    rows = reshape(take(values, reshape(places, (-1,)), axis=0), (*places.shape, values.shape[1]))
    rows = where(expand_dims(real, axis=2), rows, _lowest(rows))
    best = argmax(rows, axis=1, keepdims=True)
    tops = squeeze(take_along_axis(rows, best, axis=1), axis=1)
    chosen = take(_rows_of_maxima(tops, of_bag), maximum(firsts + chunks - 1, 0), axis=0)
    best = expand_dims(begins, axis=1) + squeeze(best, axis=1)
    return clip(take_along_axis(best, chosen, axis=0), 0, count - 1)


def _lowest(x: Tensor) -> Tensor:
    """Return a number that is not above any element.

    It is -inf only if an element is: otherwise it would be reported as an anomaly.
    """
    infinite = full((), -math.inf, dtype=x.dtype, device=x.device)
    return where(any(x == -math.inf), infinite, float(finfo(x.dtype).min))


def _rows_of_maxima(values: Tensor, of_bag: Tensor) -> Tensor:
    """Return the index of the largest element so far in the same bag, the first on ties.

    A window before each row doubles in each step.
    """
    count = values.shape[0]
    best = broadcast_to(expand_dims(arange(count, device=values.device), axis=1), values.shape)
    step = 1
    while step < count:
        shift = ((step, 0), (0, 0))
        same = expand_dims(of_bag == pad(of_bag, ((step, 0),), constant_values=-1)[:count], axis=1)
        earlier, before = pad(values, shift)[:count, :], pad(best, shift)[:count, :]
        chosen = same & (earlier >= values)
        values, best = where(chosen, earlier, values), where(chosen, before, best)
        step *= 2
    return best
