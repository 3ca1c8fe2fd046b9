"""Methods of tensors with PyTorch's names: parts of tensors, and writes to parts of a copy."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from numbers import Number
from typing import Any

from xgrad.core.arguments import ArrayLike, Scalar, as_int, check_tensor, front_axis
from xgrad.core.function import Function
from xgrad.core.tensor import Tensor
from xgrad.core.views import link
from xgrad.ops import creation, indexing, joining, manipulation, searching, writing
from xgrad.ops.declare import slice_axis
from xgrad.ops.torch_arithmetic import check_factor, scaled
from xgrad.support.hints import explained, shown


def masked_fill(self: Tensor, mask: ArrayLike, value: ArrayLike) -> Tensor:
    """Return this tensor with `value` where `mask` is True.

    Parameters
    ----------
    mask : Tensor of bools
        Where to write; it broadcasts with this tensor.
    value : scalar or Tensor
        A number, or a tensor with one element.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.asarray([1.0, 2.0])
    >>> x.masked_fill(x > 1, 0.0)
    Tensor([1., 0.])
    """
    return searching.masked_fill(self, mask, value)


def where(self: Tensor, condition: ArrayLike, other: ArrayLike) -> Tensor:
    """Return this tensor where `condition` is True, and `other` elsewhere.

    Parameters
    ----------
    condition : Tensor of bools
        Which elements are taken from this tensor.
    other : scalar or Tensor
        The other elements.
    """
    return searching.where(condition, self, other)


@explained
def index_select(self: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return the slices at an index along an axis: see `xgrad.take`.

    Parameters
    ----------
    dim : int
        The axis.
    index : Tensor of integers
        The indices along `dim`, with one axis.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.asarray([[1, 2], [3, 4]]).index_select(1, xgrad.asarray([1]))
    Tensor([[2],
            [4]])
    """
    return indexing.take(self, _index_vector("index_select", index), axis=dim)


@explained
def unbind(self: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Return the slices along an axis: see `xgrad.unstack`.

    Parameters
    ----------
    dim : int, default 0
        The axis.
    """
    return joining.unstack(self, axis=dim)


@explained
def gather(self: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return the elements at indices along an axis.

    Along the other axes they are from the first ``index.shape`` elements.

    Parameters
    ----------
    dim : int
        The axis.
    index : Tensor of integers
        The indices along `dim`, with as many axes as this tensor; the result has its shape.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.asarray([[1, 2], [3, 4]])
    >>> x.gather(1, xgrad.asarray([[0], [1]]))
    Tensor([[1],
            [4]])
    """
    dim = front_axis("gather", self, dim, "dim")
    first = tuple(
        [
            slice(None if i == dim else n)
            for i, n in enumerate(check_tensor("gather", "its argument", index).shape)
        ]
    )
    return indexing.take_along_axis(self[first], index, axis=dim)


# Parts along an axis, which are views


class _Split(Function):
    """Parts along an axis; in a gradient, they are joined once."""

    name, own_rule = "split", False

    @staticmethod
    def forward(xp: Any, x: Any, *, axis: int, ends: tuple[int, ...]) -> tuple[Any, ...]:
        return tuple([x[slice_axis(axis, *pair)] for pair in itertools.pairwise((0, *ends))])

    @staticmethod
    def backward(xp: Any, g: Any, axis: int) -> Any:
        return xp.concat(list(g), axis=axis)


_split = _Split()


def _parts(x: Tensor, axis: int, lengths: Sequence[int]) -> tuple[Tensor, ...]:
    """Return views of parts with lengths that add up to the length of an axis."""
    ends = tuple(itertools.accumulate(lengths))
    parts: tuple[Tensor, ...] = _split(x, axis=axis, ends=ends)
    for part, pair in zip(parts, itertools.pairwise((0, *ends)), strict=True):
        link(x, part, indexing.getitem_function, {"key": slice_axis(axis, *pair)})
    return parts


@explained
def split(self: Tensor, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Return views of parts along an axis, of one length but for the last, or of given ones.

    Parameters
    ----------
    split_size : int or sequence of int
        The length of the parts, or the length of each.
    dim : int, default 0
        The axis.

    Raises
    ------
    ValueError
        If the lengths do not add up to the length of the axis, or the length of parts is below 1.

    Examples
    --------
    >>> import xgrad
    >>> [part.tolist() for part in xgrad.arange(5).split(2)]
    [[0, 1], [2, 3], [4]]
    """
    axis = front_axis("split", self, dim, "dim")
    n = self.shape[axis]
    if not isinstance(split_size, (list, tuple)):
        size = as_int("split", "split_size", split_size)
        if size < 0 or (size == 0 < n):
            raise ValueError(f"split: expected split_size of 1 or more, got {size}")
        starts = range(0, n, size) if n else range(1)
        return _parts(self, axis, [min(size, n - start) for start in starts])
    lengths = [as_int("split", "split_size", length) for length in split_size]
    if sum(lengths) != n or any(length < 0 for length in lengths):
        raise ValueError(
            f"split: expected split_size of lengths that add up to {n}, along dim {dim} of shape"
            f" {self.shape}, got {shown(split_size)}"
        )
    return _parts(self, axis, lengths)


@explained
def chunk(self: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Return views of up to `chunks` parts along an axis, of one length but for the last.

    Parameters
    ----------
    chunks : int
        The largest number of parts.
    dim : int, default 0
        The axis.

    Examples
    --------
    >>> import xgrad
    >>> [part.tolist() for part in xgrad.arange(5).chunk(2)]
    [[0, 1, 2], [3, 4]]
    """
    axis, chunks = front_axis("chunk", self, dim, "dim"), as_int("chunk", "chunks", chunks)
    if chunks < 1:
        raise ValueError(f"chunk: expected chunks of 1 or more, got {chunks}")
    n = self.shape[axis]
    return split(self, -(-n // chunks), dim) if n else _parts(self, axis, [0] * chunks)


@explained
def tensor_split(
    self: Tensor, indices_or_sections: int | Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    """Return views of parts along an axis: nearly equal ones, or split at indices.

    Parameters
    ----------
    indices_or_sections : int or sequence of int
        The number of parts, or the indices at which they begin.
    dim : int, default 0
        The axis.

    Examples
    --------
    >>> import xgrad
    >>> [part.tolist() for part in xgrad.arange(5).tensor_split([1, 3])]
    [[0], [1, 2], [3, 4]]
    """
    op, name = "tensor_split", "indices_or_sections"
    axis = front_axis(op, self, dim, "dim")
    n = self.shape[axis]
    if isinstance(indices_or_sections, (list, tuple)):
        ends = [slice(as_int(op, name, end)).indices(n)[1] for end in (*indices_or_sections, n)]
        pairs = list(itertools.pairwise((0, *ends)))
        if all(start <= stop for start, stop in pairs):
            return _parts(self, axis, [stop - start for start, stop in pairs])
        return tuple([self[slice_axis(axis, *pair)] for pair in pairs])
    sections = as_int(op, name, indices_or_sections)
    if sections < 1:
        raise ValueError(f"{op}: expected {name} of 1 or more, got {sections}")
    return _parts(self, axis, [n // sections + (i < n % sections) for i in range(sections)])


@explained
def narrow(self: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Return a view of `length` elements along an axis, from `start` on.

    Parameters
    ----------
    dim : int
        The axis.
    start : int
        The index of the first element; a negative one counts from the end.
    length : int
        The number of elements.

    Raises
    ------
    IndexError
        If the elements are not all within the axis.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.arange(5).narrow(0, 1, 3)
    Tensor([1, 2, 3])
    """
    axis = front_axis("narrow", self, dim, "dim")
    n = self.shape[axis]
    start, length = as_int("narrow", "start", start), as_int("narrow", "length", length)
    first = start + n if start < 0 else start
    if not (0 <= first <= n and 0 <= length <= n - first):
        raise IndexError(
            f"narrow: expected start and length within {n} elements along dim {dim} of shape"
            f" {self.shape}, got {start} and {length}"
        )
    return indexing.getitem(self, slice_axis(axis, first, first + length))


def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Return the windows that slide along an axis, as a new last axis; a copy, not a view.

    Parameters
    ----------
    dimension : int
        The axis.
    size : int
        The length of a window.
    step : int
        The distance of the windows.

    Raises
    ------
    ValueError
        If a window is longer than the axis, or `step` is below 1.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.arange(5).unfold(0, 3, 2)
    Tensor([[0, 1, 2],
            [2, 3, 4]])
    """
    axis = front_axis("unfold", self, dimension, "dimension")
    n = self.shape[axis]
    size, step = as_int("unfold", "size", size), as_int("unfold", "step", step)
    if not 0 <= size <= n:
        raise ValueError(
            f"unfold: expected size from 0 to {n} along dimension {dimension} of shape"
            f" {self.shape}, got {size}"
        )
    if step < 1:
        raise ValueError(f"unfold: expected step of 1 or more, got {step}")
    count = (n - size) // step + 1
    starts = creation.arange(count, dtype="int64", device=self.device) * step
    within = creation.arange(size, dtype="int64", device=self.device)
    indices = manipulation.reshape(manipulation.expand_dims(starts, axis=1) + within, (-1,))
    windows = manipulation.reshape(
        indexing.take(self, indices, axis=axis),
        (*self.shape[:axis], count, size, *self.shape[axis + 1 :]),
    )
    return manipulation.moveaxis(windows, axis + 1, -1)


def masked_select(self: Tensor, mask: Tensor) -> Tensor:
    """Return the elements where `mask` is True, as a vector.

    Parameters
    ----------
    mask : Tensor of bools
        Which elements; it broadcasts with this tensor.

    Raises
    ------
    TypeError
        If `mask` has no bools.
    """
    mask = check_tensor("masked_select", "mask", mask)
    if mask.dtype.kind != "b":
        raise TypeError(f"masked_select: expected bools for mask, got {mask.dtype}")
    x, mask = manipulation.broadcast_arrays(self, mask)
    return x[mask]


# Writes to elements at indices along an axis, in a copy


def along_axis(
    op: str, x: Tensor, dim: Any, index: Any, value: Any = 0
) -> tuple[tuple[Any, ...], Any]:
    """Return the key of the elements at an index along an axis, and the values for them.

    Along the other axes the elements are the first ones; of a larger tensor of values, too.
    """
    axis, index = front_axis(op, x, dim, "dim"), _check_integers(op, index)
    inside = index.ndim == x.ndim and all(
        i == axis or n <= x.shape[i] for i, n in enumerate(index.shape)
    )
    if not inside:
        raise ValueError(
            f"{op}: expected index with {x.ndim} axes, no longer than x of shape {x.shape} but"
            f" along dim {dim}, got shape {index.shape}"
        )
    key: list[Any] = [
        manipulation.reshape(
            creation.arange(n, dtype="int64", device=index.device),
            (-1,) + (1,) * (index.ndim - 1 - i),
        )
        for i, n in enumerate(index.shape)
    ]
    key[axis] = index
    if not isinstance(value, Number):
        value = check_tensor(op, "src", value)
        if value.ndim != index.ndim or any(
            n > m for n, m in zip(index.shape, value.shape, strict=True)
        ):
            raise ValueError(
                f"{op}: expected src of the shape of index, {index.shape}, or longer, got"
                f" {value.shape}"
            )
        if value.shape != index.shape:
            value = value[tuple([slice(n) for n in index.shape])]
    return tuple(key), value


def source_of(op: str, src: Any, value: Any) -> Any:
    """Return the values to scatter: one of `src` and `value`."""
    if (src is None) == (value is None):
        raise TypeError(
            f"{op}: expected either src or value, got {'none' if src is None else 'both'}"
        )
    if src is None and not isinstance(value, Number):
        raise TypeError(f"{op}: expected a number for value, got {type(value).__name__}: use src")
    return value if src is None else src


def _check_integers(op: str, index: Any) -> Tensor:
    """Return an index; raise IndexError unless it has integers, since bools would be a mask."""
    found: Tensor = check_tensor(op, "index", index)
    if found.dtype.kind not in "iu":
        raise IndexError(f"{op}: expected integers for index, got {found.dtype}")
    return found


def _index_vector(op: str, index: Any) -> Tensor:
    """Return an index with one axis, given it or a single 0-d index."""
    index = _check_integers(op, index)
    if index.ndim > 1:
        raise ValueError(f"{op}: expected index with one axis, got shape {index.shape}")
    return index if index.ndim else manipulation.reshape(index, (1,))


def _slices(op: str, x: Tensor, dim: Any, index: Any) -> tuple[Any, ...]:
    """Return the key of the slices at an index along an axis."""
    axis = front_axis(op, x, dim, "dim")
    return (*(slice(None),) * axis, _index_vector(op, index), ...)


def _slices_and_source(
    op: str, x: Tensor, dim: Any, index: Any, source: Any
) -> tuple[tuple[Any, ...], Tensor]:
    """Return the key of the slices at an index, and the values for them, which do not broadcast."""
    key, source = _slices(op, x, dim, index), check_tensor(op, "source", source)
    axis = len(key) - 2
    expected = (*x.shape[:axis], *key[axis].shape, *x.shape[axis + 1 :])
    if source.shape != expected:
        raise ValueError(f"{op}: expected source of shape {expected}, got {source.shape}")
    return key, source


def _fill_value(op: str, value: Any) -> Any:
    """Return a number or a 0-d tensor; the op refuses anything else that is not an array."""
    if getattr(value, "ndim", 0):
        raise ValueError(f"{op}: expected a number for value, got shape {value.shape}")
    return value


@explained
def scatter(
    self: Tensor,
    dim: int,
    index: Tensor,
    src: ArrayLike | None = None,
    *,
    value: ArrayLike | None = None,
) -> Tensor:
    """Return a copy with elements of `src`, or one number, at indices along an axis.

    Parameters
    ----------
    dim : int
        The axis.
    index : Tensor of integers
        The indices along `dim`, with as many axes as this tensor; along the other axes it is no
        longer than this tensor.
    src : Tensor, optional
        The elements, of the shape of `index` or longer.
    value : scalar, optional
        One number, instead of `src`.

    Raises
    ------
    TypeError
        If both or none of `src` and `value` are given.
    ValueError
        If the shapes do not fit.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.zeros(4).scatter(0, xgrad.asarray([1, 3]), value=5.0)
    Tensor([0., 5., 0., 5.])
    """
    key, new = along_axis("scatter", self, dim, index, source_of("scatter", src, value))
    return indexing.setitem(self, key, new)


@explained
def scatter_add(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Return a copy with elements of `src` added at indices along an axis.

    Parameters
    ----------
    dim : int
        The axis.
    index : Tensor of integers
        The indices along `dim`, with as many axes as this tensor; along the other axes it is no
        longer than this tensor.
    src : Tensor
        The elements, of the shape of `index` or longer; those at the same index are added up.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.zeros(3).scatter_add(0, xgrad.asarray([1, 1]), xgrad.asarray([2.0, 3.0]))
    Tensor([0., 5., 0.])
    """
    key, new = along_axis("scatter_add", self, dim, index, check_tensor("scatter_add", "src", src))
    return indexing.index_add(self, key, new)


@explained
def index_add(
    self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Scalar = 1
) -> Tensor:
    """Return a copy with slices of `source`, times `alpha`, added at indices along an axis.

    Parameters
    ----------
    dim : int
        The axis.
    index : Tensor of integers
        The indices along `dim`, with one axis.
    source : Tensor
        The slices: of the shape of this tensor, but along `dim` as long as `index`; those at the
        same index are added up.
    alpha : scalar, default 1
        A factor of `source`.
    """
    key, source = _slices_and_source("index_add", self, dim, index, source)
    return indexing.index_add(self, key, scaled(source, check_factor("index_add", "alpha", alpha)))


@explained
def index_copy(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Return a copy with slices of `source` at indices along an axis.

    Parameters
    ----------
    dim : int
        The axis.
    index : Tensor of integers
        The indices along `dim`, with one axis.
    source : Tensor
        The slices: of the shape of this tensor, but along `dim` as long as `index`.
    """
    return indexing.setitem(self, *_slices_and_source("index_copy", self, dim, index, source))


@explained
def index_fill(self: Tensor, dim: int, index: Tensor, value: ArrayLike) -> Tensor:
    """Return a copy with a number in the slices at indices along an axis.

    Parameters
    ----------
    dim : int
        The axis.
    index : Tensor of integers
        The indices along `dim`, with one axis.
    value : scalar or Tensor
        A number, or a tensor with one element.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.zeros((2, 2)).index_fill(0, xgrad.asarray([1]), 7.0)
    Tensor([[0., 0.],
            [7., 7.]])
    """
    key = _slices("index_fill", self, dim, index)
    return indexing.setitem(self, key, _fill_value("index_fill", value))


# In place


def assign(x: Tensor, key: Any, value: Any) -> Tensor:
    """Assign to a part of a tensor, and return the tensor."""
    x[key] = value
    return x


@explained
def scatter_(
    self: Tensor,
    dim: int,
    index: Tensor,
    src: ArrayLike | None = None,
    *,
    value: ArrayLike | None = None,
) -> Tensor:
    """Write elements of `src`, or a number, at indices along an axis; return this tensor.

    The parameters are as in `scatter`.
    """
    key, new = along_axis("scatter_", self, dim, index, source_of("scatter_", src, value))
    return assign(self, key, new)


@explained
def scatter_add_(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Add elements of `src` at indices along an axis, and return this tensor.

    The parameters are as in `scatter_add`.
    """
    return writing.update(self, lambda x, src: scatter_add(x, dim, index, src), src)


@explained
def index_add_(
    self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Scalar = 1
) -> Tensor:
    """Add slices of `source`, times `alpha`, at indices along an axis; return this tensor.

    The parameters are as in `index_add`.
    """
    return writing.update(self, lambda x, y: index_add(x, dim, index, y, alpha=alpha), source)


@explained
def index_copy_(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Write slices of `source` at indices along an axis, and return this tensor.

    The parameters are as in `index_copy`.
    """
    return assign(self, *_slices_and_source("index_copy_", self, dim, index, source))


@explained
def index_fill_(self: Tensor, dim: int, index: Tensor, value: ArrayLike) -> Tensor:
    """Write a number to the slices at indices along an axis, and return this tensor.

    The parameters are as in `index_fill`.
    """
    key = _slices("index_fill_", self, dim, index)
    return assign(self, key, _fill_value("index_fill_", value))


METHODS: dict[str, Any] = {
    method.__name__: method
    for method in (
        masked_fill, where, index_select, unbind, gather, split, chunk, tensor_split, narrow,
        unfold, masked_select, scatter, scatter_add, index_add, index_copy, index_fill, scatter_,
        scatter_add_, index_add_, index_copy_, index_fill_,
    )
}  # fmt: skip
