"""Tensors with other elements at indices, along an axis, on a diagonal or under a mask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import xgrad
from xgrad.compat.torch import elementwise
from xgrad.compat.torch.indexing import as_value
from xgrad.compat.torch.tensor import torch_function
from xgrad.core.arguments import front_axis
from xgrad.core.tensor import Tensor
from xgrad.ops import torch_indexing


def _with_axis(x: Any) -> Any:
    """Return a tensor without axes as one with one axis; anything else as it is."""
    return xgrad.reshape(x, (1,)) if isinstance(x, xgrad.Tensor) and not x.ndim else x


def _scattered(
    name: str,
    input: Any,
    dim: int,
    index: Any,
    src: Any,
    function: Callable[[Any, Any, Any], Any],
) -> Any:
    """Call a function with a tensor, the key of indices along an axis, and the values for it."""
    if not index.size:
        return xgrad.asarray(input, copy=True)
    x, i, src = _with_axis(input), _with_axis(index), _with_axis(src)
    if isinstance(src, xgrad.Tensor) and src.dtype != x.dtype:
        raise RuntimeError(f"{name}: expected src of {x.dtype}, got {src.dtype}")
    key, new = torch_indexing.along_axis(name, x, dim, i, src)
    out = function(x, key, new)
    return out if input.ndim else xgrad.reshape(out, ())


#: Names of reductions of `scatter`, and the ones of `scatter_reduce` that they stand for.
_REDUCTIONS = {"add": "sum", "multiply": "prod"}


@torch_function
def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Any = None,
    *,
    value: Any = None,
    reduce: str | None = None,
) -> Any:
    """Return the tensor with elements of `src`, or a number, at indices along an axis.

    With ``reduce="add"`` they are added. Where indices are equal, one of the elements remains.
    """
    new = torch_indexing.source_of("scatter", src, value)
    if reduce is not None:
        if reduce not in _REDUCTIONS:
            raise RuntimeError(f"scatter: expected reduce of 'add' or 'multiply', got {reduce!r}")
        if not isinstance(new, xgrad.Tensor):
            new = xgrad.full(tuple(index.shape), as_value(input, ..., new), dtype=input.dtype)
        return scatter_reduce(input, dim, index, new, _REDUCTIONS[reduce])
    if not isinstance(new, xgrad.Tensor):
        new = as_value(input, ..., new)
    return _scattered("scatter", input, dim, index, new, xgrad.ops.setitem)


@torch_function
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Any:
    """Return the tensor with elements added at indices along an axis: see `xgrad.ops.index_add`."""
    return _scattered("scatter_add", input, dim, index, src, xgrad.ops.index_add)


def _winners(x: Any, key: Any, new: Any, reduce: str) -> tuple[Any, Any]:
    """Return the largest or smallest of the values for each element, and whether there is any."""
    place = xgrad.reshape(xgrad.arange(int(x.size), dtype="int64", device=x.device), x.shape)
    target = xgrad.reshape(xgrad.broadcast_to(place[key], new.shape), (-1,))
    values = xgrad.reshape(new, (-1,))
    # by target, and by value among equal ones: the last of each target has the extremum
    order = xgrad.argsort(values.detach(), descending=reduce == "amin")
    order = xgrad.take(order, xgrad.argsort(xgrad.take(target, order)))
    target = xgrad.take(target, order)
    after = xgrad.concat([target[1:], xgrad.full((1,), -1, dtype="int64", device=x.device)])
    none = xgrad.zeros((int(x.size),), dtype="int64", device=x.device)
    last = xgrad.ops.index_add(none, target, xgrad.where(target != after, order + 1, 0))
    found = xgrad.take(values, xgrad.maximum(last - 1, 0))
    return xgrad.reshape(found, x.shape), xgrad.reshape(last > 0, x.shape)


def _reduced(x: Any, key: Any, new: Any, reduce: str, include_self: bool) -> Any:
    """Return the tensor with its elements at a key combined with values."""
    if reduce in ("amax", "amin"):
        found, is_any = _winners(x, key, new, reduce)
        if include_self:
            found = (elementwise.maximum if reduce == "amax" else elementwise.minimum)(x, found)
        return xgrad.where(is_any, found, x)
    start = x if include_self else xgrad.ops.setitem(x, key, xgrad.zeros_like(new))
    total = xgrad.ops.index_add(start, key, new)
    if reduce == "sum":
        return total
    first = xgrad.full(x.shape, int(include_self), dtype="int64", device=x.device)
    count = xgrad.ops.index_add(first, key, xgrad.ones_like(new, dtype="int64"))
    count = xgrad.astype(xgrad.maximum(count, 1), x.dtype)
    return (xgrad.floor_divide if x.dtype.kind in "iu" else xgrad.divide)(total, count)


def _check_reduction(name: str, reduce: str) -> None:
    if reduce not in ("sum", "mean", "amax", "amin"):
        raise NotImplementedError(
            f"{name}: reduce={reduce!r} is not available in xgrad.compat.torch, only 'sum', 'mean',"
            " 'amax' and 'amin'"
        )


@torch_function
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Any:
    """Return the tensor with sums, means or extrema of the elements at equal indices.

    The gradient of an extremum goes to one of equal elements.
    """
    _check_reduction("scatter_reduce", reduce)
    return _scattered(
        "scatter_reduce",
        input,
        dim,
        index,
        src,
        lambda x, key, new: _reduced(x, key, new, reduce, include_self),
    )


@torch_function
def index_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Any:
    """Return the tensor with means or extrema of the rows at equal indices of an axis."""
    _check_reduction("index_reduce", reduce)
    x, rows = _with_axis(input), _with_axis(source)
    axis = front_axis("index_reduce", x, dim, "dim")
    shape = tuple([-1 if i == axis else 1 for i in range(x.ndim)])
    spread = xgrad.broadcast_to(xgrad.reshape(index, shape), tuple(rows.shape))
    out = scatter_reduce(x, axis, spread, rows, reduce, include_self=include_self)
    return out if input.ndim else xgrad.reshape(out, ())


@torch_function
def index_put(
    input: Tensor, indices: Sequence[Any], values: Tensor, accumulate: bool = False
) -> Any:
    """Return the tensor with values at indices, or with values added there."""
    key = tuple([slice(None) if part is None else part for part in indices])
    change = xgrad.ops.index_add if accumulate else xgrad.ops.setitem
    return change(input, key, values)


@torch_function
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Any:
    """Return the tensor with values at indices into all elements, in row order."""
    key, values = (xgrad.reshape(x, (-1,)) for x in (index, source))
    flat = index_put(xgrad.reshape(input, (-1,)), (key,), values, accumulate)
    return xgrad.reshape(flat, tuple(input.shape))


@torch_function
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Any:
    """Return the tensor with elements of `source`, in order, where a mask is True."""
    shape = xgrad.broadcast_shapes(tuple(input.shape), tuple(mask.shape))
    x, mask = xgrad.broadcast_to(input, shape), xgrad.broadcast_to(mask, shape)
    flat = xgrad.reshape(mask, (-1,))
    needed, given = int(xgrad.count_nonzero(flat)), int(source.size)
    if needed > given:
        raise RuntimeError(
            f"masked_scatter: expected source of at least {needed} elements, got {given}"
        )
    if not needed:
        return xgrad.asarray(x, copy=True)
    order = xgrad.cumulative_sum(xgrad.astype(flat, "int64"), axis=0) - 1
    values = xgrad.take(xgrad.reshape(source, (-1,)), xgrad.maximum(order, 0))
    return xgrad.where(mask, xgrad.reshape(values, shape), x)


@torch_function
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Any:
    """Return the tensor with other elements in the slice at one index of an axis."""
    key = (slice(None),) * front_axis("select_scatter", input, dim, "dim")
    return xgrad.ops.setitem(input, (*key, index, ...), src)


@torch_function
def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Any:
    """Return the tensor with other elements in a slice along an axis."""
    key = (slice(None),) * front_axis("slice_scatter", input, dim, "dim")
    return xgrad.ops.setitem(input, (*key, slice(start, end, step)), src)


def _diagonal_key(x: Any, count: int, offset: int) -> Any:
    """Return the key of a diagonal of the matrices in the last two axes."""
    steps = xgrad.arange(count, dtype="int64", device=x.device)
    return (..., steps + max(-offset, 0), steps + max(offset, 0))


@torch_function
def diagonal_scatter(
    input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Any:
    """Return the tensor with other elements on the diagonals of the planes of two axes."""
    x = xgrad.moveaxis(input, (dim1, dim2), (-2, -1))
    out = xgrad.ops.setitem(x, _diagonal_key(x, src.shape[-1], offset), src)
    return xgrad.moveaxis(out, (-2, -1), (dim1, dim2))


@torch_function
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Return matrices with the elements of the last axis on a diagonal, and zeros elsewhere."""
    count = input.shape[-1]
    n = count + abs(offset)
    zeros = xgrad.zeros((*input.shape[:-1], n, n), dtype=input.dtype, device=input.device)
    out = xgrad.ops.setitem(zeros, _diagonal_key(input, count, offset), input)
    return xgrad.moveaxis(out, (-2, -1), (dim1, dim2))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        diag_embed, diagonal_scatter, index_put, index_reduce, masked_scatter, put, scatter,
        scatter_add, scatter_reduce, select_scatter, slice_scatter,
    )
}  # fmt: skip
#: Functions with a form in place.
IN_PLACE = {
    name: FUNCTIONS[name]
    for name in "index_reduce masked_scatter put scatter scatter_add scatter_reduce".split()
}
