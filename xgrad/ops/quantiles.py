"""Medians and quantiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from xgrad.core.arguments import axis_error
from xgrad.core.dtypes import int64
from xgrad.core.tensor import Tensor
from xgrad.ops import elementwise, indexing, manipulation, searching, statistical
from xgrad.ops.declare import Axis, normalize_axes
from xgrad.ops.matrix_products import as_floating
from xgrad.ops.precision import upcast
from xgrad.ops.tensor_conversion import asarray, astype
from xgrad.support.hints import explained, shown

__all__ = ["median", "nanmedian", "quantile"]

Method = Literal["linear", "lower", "higher", "midpoint", "nearest"]
_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")
_ROUNDINGS: dict[str, Any] = {"lower": np.floor, "higher": np.ceil, "nearest": np.round}


def _sorted_rows(op: str, x: Any, axis: Any, keepdims: bool) -> tuple[Tensor, tuple[int, ...]]:
    """Return the elements to reduce, sorted along a last axis, and the shape of the result.

    NaNs come last.
    """
    x = as_floating(op, "x", x)
    if x.dtype.kind == "c":
        raise TypeError(f"{op}: expected real numbers for x, got {x.dtype}")
    if axis is not None and (error := axis_error(op, "axis", axis, x.shape)) is not None:
        raise error
    axes = normalize_axes(x.ndim, axis if axis is None else tuple(np.atleast_1d(axis).tolist()))
    kept = tuple([a for a in range(x.ndim) if a not in axes])
    rows = math.prod([x.shape[a] for a in axes])
    if not rows:
        raise ValueError(f"{op}: expected at least one element, got shape {x.shape}, axis {axis}")
    moved = manipulation.permute_dims(x, (*kept, *axes))
    moved = manipulation.reshape(moved, (*[x.shape[a] for a in kept], rows))
    shape = [1 if a in axes else n for a, n in enumerate(x.shape) if keepdims or a not in axes]
    return searching.sort(moved, axis=-1), tuple(shape)


def _or_nan(rows: Tensor, out: Tensor) -> Tensor:
    """Return NaN in place of results of rows that have a NaN."""
    last = rows[..., -1:]
    return searching.where(elementwise.isnan(last), last, out)


@upcast
@explained
def quantile(
    x: Tensor,
    q: float | Sequence[float],
    /,
    *,
    axis: Axis = None,
    method: Method = "linear",
    keepdims: bool = False,
) -> Tensor:
    r"""Return quantiles: the values below which given fractions of the elements along axes lie.

    Parameters
    ----------
    x : Tensor
        Real numbers; integers and bools count as float32.
    q : float or sequence of float
        The fractions, from 0 to 1. A sequence gives the result a first axis.
    axis : int or tuple of int, optional
        The axes to reduce; by default all.
    method : {"linear", "lower", "higher", "midpoint", "nearest"}, default "linear"
        The value of a quantile between two elements: interpolated, one of them, or their mean.
        Halfway, the nearest is the one with the even index.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of the shape of `x` without the reduced axes, after an axis for `q` if that is a sequence;
        NaN where an element is NaN.

    Raises
    ------
    ValueError
        If a fraction is not from 0 to 1, `method` is none of these, or there are no elements.
    TypeError
        If `x` is complex, or `q` is a tensor: pass ``q.tolist()``.

    Notes
    -----
    .. math:: y = (1 - w)\, s_k + w\, s_{k+1}, \quad q (n - 1) = k + w

    :math:`s_0 \le \dots \le s_{n-1}` are the sorted elements, and `method` may round :math:`w`.

    - Gradient for `x`: :math:`(1 - w) \bar y` at :math:`s_k`, :math:`w \bar y` at
      :math:`s_{k+1}`, 0 elsewhere

    Differentiable to any order in `x`. All elements are sorted. Like ``numpy.quantile`` and
    ``torch.quantile``.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.asarray([1.0, 2.0, 4.0, 8.0])
    >>> xgrad.quantile(x, 0.5)
    Tensor(3.)
    >>> xgrad.quantile(x, [0.25, 1.0], method="lower")
    Tensor([1., 8.])
    """
    if isinstance(q, Tensor):
        raise TypeError("quantile: expected a float or a sequence of floats for q: use q.tolist()")
    if method not in _METHODS:
        raise ValueError(f"quantile: expected one of {_METHODS} for method, got {shown(method)}")
    parts = np.asarray(q)
    if parts.dtype.kind not in "iuf" or parts.ndim > 1:
        raise TypeError(f"quantile: expected a float or a sequence of floats for q, got {shown(q)}")
    if not ((parts >= 0) & (parts <= 1)).all():
        raise ValueError(f"quantile: expected q from 0 to 1, got {shown(q)}")
    rows, shape = _sorted_rows("quantile", x, axis, keepdims)
    positions = np.atleast_1d(parts).astype(np.float64) * (rows.shape[-1] - 1)
    if method in _ROUNDINGS:
        positions = _ROUNDINGS[method](positions)
    below, above = np.floor(positions), np.ceil(positions)
    weights = np.where(above > below, 0.5, 0.0) if method == "midpoint" else positions - below
    out = _at(rows, below)
    if weights.any():
        weight = asarray(weights.tolist(), dtype=rows.dtype, device=rows.device)
        out = _interpolated(out, _at(rows, above), weight)
    out = manipulation.moveaxis(_or_nan(rows, out), -1, 0)
    return manipulation.reshape(out, (*parts.shape, *shape))


def _at(rows: Tensor, positions: np.ndarray) -> Tensor:
    """Return the elements of sorted rows at positions along the last axis."""
    indices = asarray(positions.astype(np.int64).tolist(), dtype=int64, device=rows.device)
    return indexing.take(rows, indices, axis=-1)


def _interpolated(low: Tensor, high: Tensor, weight: Any) -> Tensor:
    """Return ``low + weight * (high - low)``, and an infinity between two equal ones."""
    same = elementwise.isinf(low) & (low == high)
    change = searching.where(same, 0, high) - searching.where(same, 0, low)
    return searching.where(weight < 0.5, low + change * weight, high - change * (1 - weight))


@upcast
@explained
def median(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    r"""Return the median along axes: the middle element, or the mean of the two in the middle.

    Parameters
    ----------
    x : Tensor
        Real numbers; integers and bools count as float32.
    axis : int or tuple of int, optional
        The axes to reduce; by default all.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of the shape of `x` without the reduced axes; NaN where an element is NaN.

    Raises
    ------
    ValueError
        If there are no elements to reduce.
    TypeError
        If `x` is complex.

    Notes
    -----
    .. math:: y = \tfrac{1}{2} \left(s_{\lfloor (n-1)/2 \rfloor} + s_{\lfloor n/2 \rfloor}\right)

    - Gradient for `x`: :math:`\bar y / 2` at both elements in the middle of the sorted :math:`s`,
      or :math:`\bar y` if they are one; 0 elsewhere

    Differentiable to any order. All elements are sorted. Like ``numpy.median``; ``torch.median``
    returns the lower of the two elements in the middle.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.median(xgrad.asarray([4.0, 1.0, 2.0, 9.0]))
    Tensor(3.)
    """
    rows, shape = _sorted_rows("median", x, axis, keepdims)
    n = rows.shape[-1]
    out = rows[..., n // 2 : n // 2 + 1]
    if n % 2 == 0:  # not for one element, since half of the smallest float is 0
        out = _mean_of_two(rows[..., n // 2 - 1 : n // 2], out)
    return manipulation.reshape(_or_nan(rows, out), shape)


def _mean_of_two(low: Tensor, high: Tensor) -> Tensor:
    return low / 2 + high / 2


@upcast
@explained
def nanmedian(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    r"""Return the median along axes of the elements that are not NaN: see `median`.

    Parameters
    ----------
    x : Tensor
        Real numbers; integers and bools count as float32.
    axis : int or tuple of int, optional
        The axes to reduce; by default all.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of the shape of `x` without the reduced axes; NaN where all elements are NaN.

    Raises
    ------
    ValueError
        If there are no elements to reduce.
    TypeError
        If `x` is complex.

    Notes
    -----
    .. math:: y = \tfrac{1}{2} \left(s_{\lfloor (n-1)/2 \rfloor} + s_{\lfloor n/2 \rfloor}\right)

    - Gradient for `x`: :math:`\bar y / 2` at both elements in the middle of the sorted :math:`s`,
      or :math:`\bar y` if they are one; 0 elsewhere. :math:`s` has the :math:`n` elements that are
      not NaN.

    Differentiable to any order. Like ``numpy.nanmedian``, without its warning;
    ``torch.nanmedian`` returns the lower of the two elements in the middle.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nanmedian(xgrad.asarray([4.0, xgrad.nan, 1.0]))
    Tensor(2.5)
    """
    rows, shape = _sorted_rows("nanmedian", x, axis, keepdims)
    known = statistical.sum(
        astype(~elementwise.isnan(rows), int64), axis=-1, keepdims=True, dtype=int64
    )
    low = indexing.take_along_axis(rows, elementwise.maximum(known - 1, 0) // 2, axis=-1)
    high = indexing.take_along_axis(
        rows, elementwise.minimum(known // 2, rows.shape[-1] - 1), axis=-1
    )
    return manipulation.reshape(_mean_of_two(low, high), shape)
