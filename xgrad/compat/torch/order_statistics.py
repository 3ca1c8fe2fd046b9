"""Medians, quantiles, the most frequent elements, and elements by rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import xgrad
from xgrad.compat.torch.reductions import at_index
from xgrad.compat.torch.return_types import ValuesAndIndices
from xgrad.compat.torch.tensor import torch_function
from xgrad.core.tensor import Tensor


def _with_axis(x: Any) -> Any:
    """Return a tensor without axes as one with one axis."""
    return x if x.ndim else xgrad.reshape(x, (1,))


def _median(name: str, rank: Callable[[Any, int], Any]) -> Callable[..., Any]:
    """Return a median: the element at a rank that depends on the number of NaNs along an axis."""

    def function(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
        if dim is None:
            flat = xgrad.reshape(input, (-1,))
            return function(flat, 0).values if flat.shape[0] else xgrad.sum(flat) * xgrad.nan
        x = _with_axis(input)
        order = xgrad.argsort(x.detach(), axis=dim)  # NaNs are last
        nans = xgrad.count_nonzero(xgrad.isnan(x), axis=dim, keepdims=True)
        indices = xgrad.take_along_axis(order, rank(nans, x.shape[dim]), axis=dim)
        return at_index(input, indices, dim, keepdim)

    function.__name__ = function.__qualname__ = name
    return torch_function(function)


#: ``median(input)``, and ``median(input, dim, keepdim=False)`` with indices: the lower one of two
#: elements in the middle, and NaN if there is any.
median = _median("median", lambda nans, n: xgrad.where(nans > 0, n - nans, (n - 1) // 2))
#: The same of the elements that are not NaN.
nanmedian = _median("nanmedian", lambda nans, n: xgrad.maximum((n - nans - 1) // 2, 0))


@torch_function
def quantile(
    input: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: Any = "linear",
) -> Any:
    """Return the values below which given parts of the elements are: see `xgrad.quantile`."""
    if input.dtype.kind != "f":
        raise RuntimeError(f"quantile: expected a floating dtype, got {input.dtype}: use .float()")
    if xgrad.is_grad_enabled() and getattr(q, "requires_grad", False):
        raise NotImplementedError(
            "quantile: its gradient for q is not available in xgrad.compat.torch: use q.detach()"
        )
    parts = q.detach().tolist() if isinstance(q, xgrad.Tensor) else q
    axis = None if not input.ndim else dim
    return xgrad.quantile(input, parts, axis=axis, method=interpolation, keepdims=keepdim)


@torch_function
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> ValuesAndIndices:
    """Return the k-th smallest element along an axis, and its index: see `xgrad.topk`."""
    _, indices = xgrad.topk(_with_axis(input), k, axis=dim, largest=False)
    last = xgrad.asarray([k - 1], device=input.device)
    return at_index(input, xgrad.take(indices, last, axis=dim), dim, keepdim)


@torch_function
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> ValuesAndIndices:
    """Return the most frequent element along an axis, the smallest of several, and an index."""
    x = _with_axis(input)
    order = xgrad.argsort(x.detach(), axis=dim)
    rows = xgrad.moveaxis(xgrad.take_along_axis(x.detach(), order, axis=dim), dim, -1)
    steps = xgrad.arange(rows.shape[-1], dtype="int64", device=x.device)
    is_new = xgrad.logical_or(steps == 0, rows != xgrad.roll(rows, 1, axis=-1))
    run = steps - xgrad.cummax(xgrad.where(is_new, steps, 0), axis=-1)
    place = xgrad.moveaxis(xgrad.argmax(run, axis=-1, keepdims=True), -1, dim)
    return at_index(input, xgrad.take_along_axis(order, place, axis=dim), dim, keepdim)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (kthvalue, median, mode, nanmedian, quantile)
}
