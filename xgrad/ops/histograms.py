"""Counts of integers and of numbers in bins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xgrad.backend.recording import check_true
from xgrad.core.arguments import as_int, as_number, as_tensor
from xgrad.core.dtypes import float64, get_default_dtype, int64
from xgrad.core.tensor import Tensor
from xgrad.ops import creation, elementwise, indexing, manipulation, searching, statistical
from xgrad.ops.matrix_products import as_floating
from xgrad.ops.tensor_conversion import asarray, astype
from xgrad.support.hints import explained, shown

__all__ = ["bincount", "histogram"]


def _weights(op: str, x: Tensor, weights: Any) -> Tensor | None:
    """Return weights as a vector of floats, and raise ValueError unless there is one an element."""
    if weights is None:
        return None
    weights = as_tensor(op, "weights", weights)
    if weights.shape != x.shape:
        raise ValueError(
            f"{op}: expected weights of the shape of x, {x.shape}, got {weights.shape}"
        )
    if weights.dtype.kind not in "fc":
        weights = astype(weights, get_default_dtype())
    return manipulation.reshape(weights, (-1,))


def _count(indices: Tensor, weights: Tensor | None, length: int) -> Tensor:
    """Return how often each index occurs, or the sum of its weights."""
    dtype = int64 if weights is None else weights.dtype
    empty = creation.zeros(length, dtype=dtype, device=indices.device)
    return indexing.index_add(empty, indices, 1 if weights is None else weights)


@explained
def bincount(x: Tensor, /, *, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    r"""Return how often each integer from 0 to the largest occurs, or the sums of its weights.

    Parameters
    ----------
    x : Tensor
        Integers of shape (n,), not negative.
    weights : Tensor, optional
        Numbers of shape (n,) that are added up, instead of counting; integers count as float32.
    minlength : int, default 0
        The least length of the result.

    Returns
    -------
    Tensor
        Of length ``max(x) + 1``, or `minlength` if that is more: int64, or of the dtype of the
        weights. The length depends on values, which synchronizes with a GPU.

    Raises
    ------
    ValueError
        If `x` has not one axis or has negative elements, the shapes differ, or `minlength` is
        negative.
    TypeError
        If `x` does not have integers.

    Notes
    -----
    .. math:: y_k = \sum_{i:\, x_i = k} w_i

    - Gradient for `weights`: :math:`\bar w_i = \bar y_{x_i}`

    Differentiable to any order in `weights`. Like ``numpy.bincount`` and ``torch.bincount``, except
    that weights of float32 give sums of float32.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.bincount(xgrad.asarray([0, 2, 2]), minlength=4)
    Tensor([1, 0, 2, 0])
    >>> xgrad.bincount(xgrad.asarray([0, 2, 2]), weights=xgrad.asarray([1.0, 0.5, 0.25]))
    Tensor([1.  , 0.  , 0.75])
    """
    op = "bincount"
    x, minlength = as_tensor(op, "x", x), as_int(op, "minlength", minlength)
    if x.dtype.kind not in "iu":
        raise TypeError(f"{op}: expected x of integers, got {x.dtype}: use .astype(int64)")
    if x.ndim != 1:
        raise ValueError(f"{op}: expected x with one axis, got shape {x.shape}: use .ravel()")
    if minlength < 0:
        raise ValueError(f"{op}: expected minlength of 0 or more, got {minlength}")
    weights, indices = _weights(op, x, weights), astype(x, int64, copy=False)
    if indices.shape[0]:
        least, most = int(statistical.min(indices)), int(statistical.max(indices))
        if least < 0:
            raise ValueError(f"{op}: expected x without negative elements, got {least}")
        minlength = max(minlength, most + 1)
    return _count(indices, weights, minlength)


class HistogramResult(NamedTuple):
    """The result of `histogram`."""

    hist: Tensor
    bin_edges: Tensor


@explained
def histogram(
    x: Tensor,
    /,
    *,
    bins: int | Sequence[float] | Tensor = 10,
    range: tuple[float, float] | None = None,
    weights: Tensor | None = None,
    density: bool = False,
) -> HistogramResult:
    r"""Return how many elements are in each of adjacent bins, and the edges of the bins.

    Parameters
    ----------
    x : Tensor
        Real numbers, of any shape; integers and bools count as float64.
    bins : int, sequence of float or Tensor, default 10
        The number of bins of equal widths, or their edges, in ascending order.
    range : (float, float), optional
        The outer edges of bins of equal widths; by default the least and the largest element.
        Elements outside are not counted.
    weights : Tensor, optional
        Numbers of the shape of `x` that are added up, instead of counting.
    density : bool, default False
        Whether the result is a density, which integrates to 1.

    Returns
    -------
    hist : Tensor
        Of shape (bins,): int64, of the dtype of the weights, or floats for a density. Bins contain
        their lower edges; the last one contains both.
    bin_edges : Tensor
        Of shape (bins + 1,).

    Raises
    ------
    ValueError
        If the number of bins is not positive, a range is not of two finite numbers in ascending
        order, edges are not ascending, `weights` has another shape, or an element of `x` is not
        finite and no range is given.
    TypeError
        If `x` is complex.

    Notes
    -----
    .. math::

        h_k = \sum_{i:\, e_k \le x_i < e_{k+1}} w_i,
        \quad \text{as a density } y_k = \frac{h_k}{(e_{k+1} - e_k) \sum_j h_j}

    - Gradient for `weights`: :math:`\bar w_i = \bar h_k` for the bin :math:`k` of :math:`x_i`; as a
      density, :math:`\bar w_i = (\bar y_k / (e_{k+1} - e_k) - \sum_j \bar y_j y_j) / \sum_j h_j`.
      Elements outside of the bins get 0.

    Differentiable to any order in `weights`. Like ``numpy.histogram``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.histogram(xgrad.asarray([0.0, 1.0, 1.5, 4.0]), bins=2)
    HistogramResult(hist=Tensor([3, 1]), bin_edges=Tensor([0., 2., 4.]))
    """
    op = "histogram"
    x = as_tensor(op, "x", x)
    x = x if x.dtype.kind in "fc" else astype(x, float64)
    if x.dtype.kind == "c":
        raise TypeError(f"{op}: expected real numbers for x, got {x.dtype}")
    if not isinstance(density, bool):
        raise TypeError(f"{op}: expected a bool for density, got {shown(density)}")
    weights = _weights(op, x, weights)
    flat = manipulation.reshape(x.detach(), (-1,))
    if isinstance(bins, int) and not isinstance(bins, bool):
        edges = _equal_edges(flat, bins, range)
    elif range is not None:
        raise ValueError(f"{op}: expected range=None beside edges of bins, got {shown(range)}")
    else:
        edges = _given_edges(flat, bins)
    count = edges.shape[0] - 1
    # In the result of searchsorted, bins count from 1. Elements below have 0, and elements above
    # and NaN have count + 1: they are dropped with these bins.
    indices = searching.searchsorted(edges, flat, side="right")
    indices = searching.where(flat == edges[-1], count, indices)
    indices = searching.where(elementwise.isnan(flat), count + 1, indices)
    hist = _count(indices, weights, count + 2)[1:-1]
    if density:
        widths = edges[1:] - edges[:-1]
        hist = hist / (statistical.sum(hist) * widths)
    return HistogramResult(hist, edges)


def _equal_edges(x: Tensor, bins: int, limits: Any) -> Tensor:
    """Return the edges of bins of equal widths."""
    if bins < 1:
        raise ValueError(f"histogram: expected bins of 1 or more, got {bins}")
    if limits is None and not x.shape[0]:
        limits = (0.0, 1.0)
    if limits is not None:
        if not isinstance(limits, (list, tuple)) or len(limits) != 2:
            raise ValueError(f"histogram: expected two numbers for range, got {shown(limits)}")
        first, last = [as_number("histogram", "range", limit) for limit in limits]
        if not -float("inf") < first <= last < float("inf"):
            raise ValueError(
                f"histogram: expected two finite numbers in ascending order for range, got"
                f" {shown(limits)}"
            )
        if first == last:
            first, last = first - 0.5, last + 0.5
        return creation.linspace(first, last, bins + 1, dtype=x.dtype, device=x.device)
    low, high = statistical.min(x), statistical.max(x)
    finite = elementwise.isfinite(high - low)
    if not x.device.backend.asynchronous and not check_true(finite.device, finite._data):
        raise ValueError("histogram: expected finite elements of x, or a range")
    same = low == high
    low, high = searching.where(same, low - 0.5, low), searching.where(same, high + 0.5, high)
    steps = creation.arange(bins + 1, dtype=x.dtype, device=x.device)
    edges = low + steps * ((high - low) / bins)
    return searching.where(steps == bins, high, edges)


def _given_edges(x: Tensor, bins: Any) -> Tensor:
    """Return given edges in the dtype and on the device of the elements."""
    if isinstance(bins, str):
        raise TypeError(f"histogram: expected an int, or edges, for bins, got {shown(bins)}")
    edges = bins if isinstance(bins, Tensor) else asarray(bins, device=x.device)
    edges = astype(as_floating("histogram", "bins", edges).detach(), x.dtype, copy=False)
    if edges.ndim != 1 or edges.shape[0] < 2:
        raise ValueError(
            f"histogram: expected an int, or two or more edges, for bins, got {shown(bins)}"
        )
    ascending = statistical.all(edges[1:] >= edges[:-1])
    if not x.device.backend.asynchronous and not check_true(ascending.device, ascending._data):
        raise ValueError("histogram: expected edges in ascending order for bins")
    return edges
