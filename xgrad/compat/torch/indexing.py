"""Selection by index, mask and condition, and PyTorch's rules of ``x[key]``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import xgrad
from xgrad.compat.torch.promotion import as_operands, is_number, result_type
from xgrad.compat.torch.tensor import as_torch, torch_function
from xgrad.core.arguments import front_axis
from xgrad.core.tensor import Tensor
from xgrad.ops import indexing, torch_indexing, writing


def as_key(key: Any) -> Any:
    """Return a key of ``x[key]`` in the form of xgrad.

    uint8 counts as bool, and a range or a NumPy integer as what it stands for.
    """
    if type(key) is tuple:
        return tuple([as_key(part) for part in key])
    if isinstance(key, xgrad.Tensor) and key.dtype == np.uint8:
        return xgrad.astype(key, xgrad.bool)
    if isinstance(key, np.generic):
        return key.item()
    return key


def _is_integer(part: Any) -> bool:
    """Return whether a part of a key selects one index of an axis."""
    if isinstance(part, xgrad.Tensor):
        return not part._data.shape and part.dtype.kind in "iu"
    return isinstance(part, int) and not isinstance(part, bool)


def _is_array(part: Any) -> bool:
    """Return whether a part of a key is an array of indices, or a mask."""
    if isinstance(part, (xgrad.Tensor, np.ndarray)):
        return not _is_integer(part)
    return isinstance(part, (list, tuple, range, bool))


def _axes_taken(part: Any) -> int:
    """Return the number of axes that a part of a key takes."""
    if part is None or isinstance(part, bool):
        return 0
    dtype = getattr(part, "dtype", None)
    if dtype is not None and dtype.kind == "b":
        return int(part.ndim)
    if isinstance(part, (list, tuple)):
        array = (
            np.asarray(part, dtype=None)
            if not any(isinstance(x, xgrad.Tensor) for x in part)
            else np.zeros(1, int)
        )
        return array.ndim if array.dtype.kind == "b" else 1
    return 1


def split_key(ndim: int, key: Any) -> tuple[Any, Any]:
    """Return two keys that are applied one after the other, the second is None if one suffices.

    In PyTorch, integers of a key select first, and arrays of indices take their places among the
    axes that remain. In NumPy, and in xgrad, integers count as arrays of indices, which decides
    where the axes of the result stand.
    """
    if type(key) is not tuple:
        return ((key, ...) if _is_integer(key) else key), None
    integers = sum(map(_is_integer, key))
    if integers == len(key):
        return (*key, ...), None
    if not integers or not any(map(_is_array, key)):
        return key, None
    parts = list(key)
    if not any(part is ... for part in parts):
        parts.append(...)
    place = next(i for i, part in enumerate(parts) if part is ...)
    taken = sum(_axes_taken(part) for part in parts if part is not ...)
    parts[place : place + 1] = [slice(None)] * (ndim - taken)
    first: list[Any] = []
    second: list[Any] = []
    for part in parts:
        if _is_integer(part):
            first.append(part)
        else:
            first += [slice(None)] * _axes_taken(part)
            second.append(part)
    return tuple(first), tuple(second)


def __getitem__(self: Tensor, key: Any) -> Tensor:
    kind = type(key)
    if kind is int:  # the most frequent
        return as_torch(indexing.getitem(self, (key, ...)))  # type: ignore[no-any-return]
    if kind is not slice:
        key, rest = split_key(self.ndim, as_key(key))
        if rest is not None:
            self, key = as_torch(indexing.getitem(self, key)), rest
    return as_torch(indexing.getitem(self, key))  # type: ignore[no-any-return]


def __setitem__(self: Tensor, key: Any, value: Any) -> None:
    key, rest = split_key(self.ndim, as_key(key))
    if rest is not None:
        integers = tuple([part if isinstance(part, slice) else int(part) for part in key])
        self, key = as_torch(indexing.getitem(self, integers)), rest
    writing.write(self, key, as_value(self, key, value))


def as_value(x: Any, key: Any, value: Any) -> Any:
    """Return a value that is assigned to elements of a tensor in its dtype, as PyTorch casts it."""
    if is_number(value):
        value = value.item() if isinstance(value, np.generic) else value
        if isinstance(value, complex) and x.dtype.kind != "c":
            raise RuntimeError(f"cannot assign a complex number to a tensor of {x.dtype}")
        kind = x.dtype.kind
        return bool(value) if kind == "b" else int(value) if kind in "iu" else value
    if not isinstance(value, xgrad.Tensor):
        value = xgrad.asarray(value, device=x.device)
    if value.dtype != x.dtype:
        value = xgrad.astype(value, x.dtype)
    if value.ndim > 1 and value.shape[0] == 1:
        ndim = indexing.getitem(x._without_history(), key).ndim
        while value.ndim > ndim and value.shape[0] == 1:
            value = xgrad.squeeze(value, axis=0)
    return value


@torch_function
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Any:
    """Return the elements at indices along an axis: see `xgrad.take_along_axis`."""
    if not index.size:  # of any number of axes
        return xgrad.reshape(xgrad.reshape(input, (-1,))[:0], tuple(index.shape))
    x, i = (t if t.ndim else xgrad.reshape(t, (1,)) for t in (input, index))
    return xgrad.reshape(torch_indexing.gather(x, dim, i), tuple(index.shape))


@torch_function
def index_select(input: Tensor, dim: int, index: Tensor) -> Any:
    """Return the elements at indices along an axis: see `xgrad.take`."""
    if not input.ndim:
        return xgrad.reshape(input, ())
    return xgrad.take(input, xgrad.reshape(index, (-1,)), axis=dim)


@torch_function
def take(input: Tensor, index: Tensor) -> Any:
    """Return the elements at indices into all elements, in row order: see `xgrad.take`."""
    flat = xgrad.take(xgrad.reshape(input, (-1,)), xgrad.reshape(index, (-1,)))
    return xgrad.reshape(flat, tuple(index.shape))


@torch_function
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Any:
    """Return the elements at indices along an axis: see `xgrad.take_along_axis`."""
    if dim is None:
        return xgrad.take(xgrad.reshape(input, (-1,)), xgrad.reshape(indices, (-1,)))
    axis = front_axis("take_along_dim", input, dim, "dim")
    shape = list(
        xgrad.broadcast_shapes(
            tuple([1 if i == axis else n for i, n in enumerate(input.shape)]),
            tuple([1 if i == axis else n for i, n in enumerate(indices.shape)]),
        )
    )
    x, i = (
        xgrad.broadcast_to(y, (*shape[:axis], y.shape[axis], *shape[axis + 1 :]))
        for y in (input, indices)
    )
    return xgrad.take_along_axis(x, i, axis=axis)


@torch_function
def masked_select(input: Tensor, mask: Tensor) -> Any:
    """Return the elements where a mask is True, as a vector."""
    shape = xgrad.broadcast_shapes(tuple(input.shape), tuple(mask.shape))
    x, mask = xgrad.broadcast_to(input, shape), xgrad.broadcast_to(mask, shape)
    return indexing.getitem(x, mask)


@torch_function
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Any:
    """Return the tensor with a value where a mask is True: see `xgrad.where`."""
    if isinstance(value, xgrad.Tensor):
        if value._data.shape:
            raise RuntimeError(
                f"masked_fill: expected a value without axes, got shape {tuple(value.shape)}"
            )
        value = xgrad.astype(value, input.dtype, copy=False)
    else:
        value = as_value(input, ..., value)
    if mask.dtype.kind != "b":
        raise RuntimeError(f"masked_fill: expected a mask of bools, got {mask.dtype}: use .bool()")
    return xgrad.ops.searching.masked_fill(input, mask, value)


@torch_function
def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """Return elements of one tensor or another; without them, `nonzero` of the condition."""
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    if input is None or other is None:
        raise TypeError("where: expected a condition alone, or input and other as well")
    if condition.dtype == np.uint8:
        condition = xgrad.astype(condition, xgrad.bool)
    if is_number(input) and is_number(other):
        dtype = result_type(input, other)
        input = xgrad.asarray(input, dtype=dtype, device=condition.device)
        return xgrad.where(condition, input, other)
    x1, x2 = as_operands(input, other)
    dtype = result_type(input, other)
    x1, x2 = (
        x if isinstance(x, xgrad.Tensor) else xgrad.asarray(x, dtype=dtype, device=condition.device)
        for x in (x1, x2)
    )
    return xgrad.where(condition, x1, x2)


@torch_function
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """Return the indices of nonzero elements, as rows, or along each axis: see `xgrad.nonzero`."""
    if not input.ndim:
        if as_tuple:
            return xgrad.nonzero(xgrad.reshape(input, (1,)))
        return xgrad.zeros((int(bool(input)), 0), dtype=xgrad.int64, device=input.device)
    found: Any = xgrad.nonzero(input)
    return found if as_tuple else xgrad.stack(found, axis=1)


@torch_function
def argwhere(input: Tensor) -> Any:
    """Return the indices of nonzero elements, as rows: see `xgrad.nonzero`."""
    return nonzero(input)


def _at_rows(
    name: str, input: Any, dim: int, index: Any, function: Callable[[Any, Any], Any]
) -> Any:
    """Call a function with a tensor and the key of indices of one of its axes.

    A tensor without axes counts as one with an axis, as in PyTorch.
    """
    x = input if input.ndim else xgrad.reshape(input, (1,))
    key = (slice(None),) * front_axis(name, x, dim, "dim")
    out = function(x, (*key, xgrad.reshape(index, (-1,))))
    return out if input.ndim else xgrad.reshape(out, ())


def _scaled(x: Any, factor: Any) -> Any:
    """Return a tensor times a factor, which PyTorch casts for integers and bools."""
    if x.dtype.kind == "b":
        return x if factor else xgrad.zeros_like(x)
    return (int(factor) if x.dtype.kind in "iu" else factor) * x


@torch_function
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Any:
    """Return the tensor with rows added at indices of an axis: see `xgrad.ops.index_add`."""
    added = source if alpha == 1 else _scaled(source, alpha)
    return _at_rows(
        "index_add", input, dim, index, lambda x, key: xgrad.ops.index_add(x, key, added)
    )


@torch_function
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Any:
    """Return the tensor with rows replaced at indices of an axis: see `xgrad.ops.setitem`."""
    return _at_rows(
        "index_copy", input, dim, index, lambda x, key: xgrad.ops.setitem(x, key, source)
    )


@torch_function
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Any:
    """Return the tensor with a value at indices of an axis: see `xgrad.ops.setitem`."""
    cast = as_value(input, ..., value)
    return _at_rows("index_fill", input, dim, index, lambda x, key: xgrad.ops.setitem(x, key, cast))


def _searched_rows(rows: Any, values: Any, side: str, sorter: Any, out_int32: bool) -> Any:
    """Return the indices at which elements would be inserted into sorted rows.

    Each element is compared with all elements of its row.
    """
    if rows.shape[:-1] != values.shape[:-1]:
        raise RuntimeError(
            "searchsorted: expected equal shapes but for the last axis, got"
            f" {tuple(rows.shape)} and {tuple(values.shape)}"
        )
    if sorter is not None:
        rows = xgrad.take_along_axis(rows, sorter, axis=-1)
    row, value = xgrad.expand_dims(rows, axis=-2), xgrad.expand_dims(values, axis=-1)
    before = row < value if side == "left" else row <= value
    if value.dtype.kind == "f":  # NaNs are last
        before = before | xgrad.isnan(value)
    return xgrad.astype(
        xgrad.count_nonzero(before, axis=-1), xgrad.int32 if out_int32 else xgrad.int64, copy=False
    )


@torch_function
def searchsorted(
    sorted_sequence: Tensor,
    values: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Any:
    """Return the indices at which elements would be inserted: see `xgrad.searchsorted`."""
    chosen: Any = side or ("right" if right else "left")
    if sorted_sequence.ndim != 1:
        return _searched_rows(sorted_sequence, values, chosen, sorter, out_int32)
    found = xgrad.searchsorted(sorted_sequence, values, side=chosen, sorter=sorter)
    return xgrad.astype(found, xgrad.int32) if out_int32 else found


@torch_function
def bucketize(
    input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Any:
    """Return the indices of the intervals of elements: see `xgrad.searchsorted`."""
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        argwhere, bucketize, gather, index_add, index_copy, index_fill, index_select, masked_fill,
        masked_select, nonzero, searchsorted, take, take_along_dim, where,
    )
}  # fmt: skip
