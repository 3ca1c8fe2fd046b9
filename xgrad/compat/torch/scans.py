"""Running sums and extrema, and sorting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import xgrad
from xgrad.compat.torch.return_types import ValuesAndIndices
from xgrad.compat.torch.tensor import torch_function
from xgrad.core.tensor import Tensor


def _along(x: Any, function: Callable[[Any], Any]) -> Any:
    """Apply a function along an axis also to a tensor without axes, as PyTorch does."""
    return function(x) if x.ndim else xgrad.reshape(function(xgrad.reshape(x, (1,))), ())


def _zero_index(x: Any) -> Any:
    return xgrad.zeros((), dtype=xgrad.int64, device=x.device)


@torch_function
def cumsum(input: Tensor, dim: int, *, dtype: Any = None) -> Any:
    """Return the sums so far along an axis: see `xgrad.cumulative_sum`."""
    if dtype is None and input.dtype.kind in "bui":
        dtype = xgrad.int64
    return _along(input, lambda x: xgrad.cumulative_sum(x, axis=dim, dtype=dtype))


@torch_function
def cumprod(input: Tensor, dim: int, *, dtype: Any = None) -> Any:
    """Return the products so far along an axis: see `xgrad.cumulative_prod`."""
    if dtype is None and input.dtype.kind in "bui":
        dtype = xgrad.int64
    return _along(input, lambda x: xgrad.cumulative_prod(x, axis=dim, dtype=dtype))


@torch_function
def logcumsumexp(input: Tensor, dim: int) -> Any:
    """Return logarithms of the sums of exponentials so far: see `xgrad.logcumsumexp`."""
    return _along(input, lambda x: xgrad.logcumsumexp(x, axis=dim))


@torch_function
def sort(
    input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False
) -> ValuesAndIndices:
    """Return the elements sorted along an axis, and their indices: see `xgrad.argsort`."""
    if not input.ndim:
        return ValuesAndIndices(xgrad.asarray(input, copy=True), _zero_index(input))
    indices = xgrad.argsort(input, axis=dim, descending=descending)
    return ValuesAndIndices(xgrad.take_along_axis(input, indices, axis=dim), indices)


@torch_function
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """Return the indices that sort along an axis: see `xgrad.argsort`."""
    return _along(input, lambda x: xgrad.argsort(x, axis=dim, descending=descending))


@torch_function
def msort(input: Tensor) -> Any:
    """Return the elements sorted along the first axis: see `xgrad.sort`."""
    return xgrad.sort(input, axis=0)


@torch_function
def topk(
    input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> ValuesAndIndices:
    """Return the largest or smallest elements along an axis: see `xgrad.topk`."""
    if not input.ndim:
        return ValuesAndIndices(xgrad.asarray(input, copy=True), _zero_index(input))
    return ValuesAndIndices(*xgrad.topk(input, k, axis=dim, largest=largest))


@torch_function
def diff(input: Tensor, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Return the differences of neighbours along an axis: see `xgrad.diff`."""
    return xgrad.diff(input, axis=dim, n=n, prepend=prepend, append=append)


def _running(name: str, op: Callable[..., Any], compare: Callable[..., Any]) -> Callable[..., Any]:
    def function(input: Tensor, dim: int) -> ValuesAndIndices:
        if not input.ndim:
            return ValuesAndIndices(xgrad.asarray(input, copy=True), _zero_index(input))
        plain = input.detach()
        values = op(plain, axis=dim)
        # the last index so far at which an element equals the extremum
        hits = xgrad.logical_or(xgrad.equal(plain, values), xgrad.isnan(plain))
        axis = dim % input.ndim
        shape = [1] * input.ndim
        shape[axis] = input.shape[axis]
        steps = xgrad.reshape(xgrad.arange(shape[axis], device=input.device), tuple(shape))
        indices = xgrad.cummax(xgrad.where(hits, steps, 0), axis=axis)
        return ValuesAndIndices(xgrad.take_along_axis(input, indices, axis=axis), indices)

    function.__name__ = function.__qualname__ = name
    return torch_function(function)


#: ``cummax(input, dim)``: the values so far, and the index of the last element that equals each.
cummax = _running("cummax", xgrad.cummax, xgrad.greater_equal)
cummin = _running("cummin", xgrad.cummin, xgrad.less_equal)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        argsort, cummax, cummin, cumprod, cumsum, diff, logcumsumexp, msort, sort, topk,
    )
}  # fmt: skip
