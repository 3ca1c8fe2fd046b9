"""Methods of tensors with PyTorch's names, and its names of parameters (`dim`, `keepdim`).

This file has the table of all, and the methods of shapes, dtypes and devices. The others are in the
files ``torch_*.py`` beside it, by subject; docs/pytorch.md lists the other differences.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from xgrad.backend.recording import check_true
from xgrad.core import dtypes, providers
from xgrad.core.arguments import (
    Scalar,
    as_int,
    as_number,
    check_tensor,
    front_axis,
)
from xgrad.core.methods import named
from xgrad.core.tensor import Tensor
from xgrad.core.views import layout
from xgrad.ops import (
    creation,
    elementwise,
    joining,
    manipulation,
    matrix_products,
    statistical,
    tensor_conversion,
    torch_arithmetic,
    torch_indexing,
    torch_reductions,
    writing,
)
from xgrad.support.hints import explained, shown

Dim = int | tuple[int, ...] | None


def _shape(sizes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a shape given as numbers or as one sequence."""
    return tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes


@explained
def flip(self: Tensor, dims: int | Sequence[int], *more: int) -> Tensor:
    """Return this tensor with the elements along axes in reverse order.

    Parameters
    ----------
    dims : int or tuple of int
        The axes.
    *more : int
        Further axes.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.arange(3).flip(0)
    Tensor([2, 1, 0])
    """
    return manipulation.flip(self, axis=_shape((dims, *more)))


@explained
def repeat_interleave(self: Tensor, repeats: int | Tensor, dim: int | None = None) -> Tensor:
    """Return this tensor with each element repeated: see `xgrad.repeat`.

    Parameters
    ----------
    repeats : int or Tensor of integers
        How often each element is repeated.
    dim : int, optional
        The axis; by default the elements of all axes, as a vector.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.arange(3).repeat_interleave(2)
    Tensor([0, 0, 1, 1, 2, 2])
    """
    return joining.repeat(self, repeats, axis=dim)


@explained
def roll(self: Tensor, shifts: int | tuple[int, ...], dims: Dim = None) -> Tensor:
    """Return this tensor with its elements shifted along axes, around the end: see `xgrad.roll`.

    Parameters
    ----------
    shifts : int or tuple of int
        By how many places, for each axis of `dims`.
    dims : int or tuple of int, optional
        The axes; by default the elements in row order.
    """
    return manipulation.roll(self, shifts, axis=dims)


def fliplr(self: Tensor) -> Tensor:
    """Return this tensor with its second axis in reverse order."""
    return manipulation.flip(self, axis=1)


def flipud(self: Tensor) -> Tensor:
    """Return this tensor with its first axis in reverse order."""
    return manipulation.flip(self, axis=0)


@explained
def rot90(self: Tensor, k: int = 1, dims: int | Sequence[int] = (0, 1)) -> Tensor:
    """Return this tensor turned `k` times by 90 degrees, from the first axis to the second.

    Parameters
    ----------
    k : int, default 1
        How often; negative numbers turn in the other direction.
    dims : tuple of two ints, default (0, 1)
        The axes that span the plane.

    Raises
    ------
    ValueError
        If `dims` is not a pair of different axes.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.asarray([[1, 2], [3, 4]]).rot90()
    Tensor([[2, 4],
            [1, 3]])
    """
    k = as_int("rot90", "k", k) % 4
    if not isinstance(dims, (list, tuple)) or len(dims) != 2:
        raise ValueError(f"rot90: expected two axes for dims, got {shown(dims)}")
    first, second = [front_axis("rot90", self, dim, "dims") for dim in dims]
    if first == second:
        raise ValueError(f"rot90: expected different axes for dims, got {shown(dims)}")
    turned = {0: (), 1: (second,), 2: (first, second), 3: (first,)}[k]
    flipped = manipulation.flip(self, axis=turned)
    return transpose(flipped, first, second) if k % 2 else flipped


def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """Return this tensor broadcast to the shape of another.

    Parameters
    ----------
    other : Tensor
        The tensor whose shape the result has.
    """
    return manipulation.broadcast_to(self, check_tensor("expand_as", "its argument", other).shape)


def movedim(
    self: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...]
) -> Tensor:
    """Return this tensor with axes in other places: see `xgrad.moveaxis`.

    Parameters
    ----------
    source : int or tuple of int
        The axes to move.
    destination : int or tuple of int
        Where they stand in the result.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.ones((2, 3, 4)).movedim(0, -1).shape
    (3, 4, 2)
    """
    return manipulation.moveaxis(self, source, destination)


@explained
def permute(self: Tensor, dims: int | Sequence[int], *more: int) -> Tensor:
    """Return this tensor with its axes in another order: see `xgrad.permute_dims`.

    Parameters
    ----------
    dims : int or tuple of int
        The axes of this tensor, in the order of the result.
    *more : int
        Further axes.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.ones((2, 3, 4)).permute(2, 0, 1).shape
    (4, 2, 3)
    """
    return manipulation.permute_dims(self, _shape((dims, *more)))


def ravel(self: Tensor) -> Tensor:
    """Return the elements as a vector, in row order."""
    return manipulation.reshape(self.contiguous(), (-1,))


def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """Return the same elements in the shape of another tensor.

    Parameters
    ----------
    other : Tensor
        The tensor whose shape the result has.
    """
    return manipulation.reshape(self, check_tensor("reshape_as", "its argument", other).shape)


def t(self: Tensor) -> Tensor:
    """Return the transpose of a matrix, or a tensor with fewer axes as it is."""
    return self if self.ndim < 2 else self.T


def tile(self: Tensor, *dims: int | Sequence[int]) -> Tensor:
    """Return this tensor repeated along its axes: see `xgrad.tile`.

    Parameters
    ----------
    *dims : int or tuple of int
        How often this tensor is repeated along each axis.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.arange(2).tile(2, 2)
    Tensor([[0, 1, 0, 1],
            [0, 1, 0, 1]])
    """
    return joining.tile(self, _shape(dims))


def tril(self: Tensor, diagonal: int = 0) -> Tensor:
    """Return the lower triangles of matrices, with zeros above a diagonal: see `xgrad.tril`.

    Parameters
    ----------
    diagonal : int, default 0
        The last diagonal that is kept: above the main one if positive, below it if negative.
    """
    return creation.tril(self, k=diagonal)


def triu(self: Tensor, diagonal: int = 0) -> Tensor:
    """Return the upper triangles of matrices, with zeros below a diagonal: see `xgrad.triu`.

    Parameters
    ----------
    diagonal : int, default 0
        The first diagonal that is kept: above the main one if positive, below it if negative.
    """
    return creation.triu(self, k=diagonal)


@explained
def unsqueeze(self: Tensor, dim: int) -> Tensor:
    """Return this tensor with a new axis of length 1 at `dim`.

    Parameters
    ----------
    dim : int
        The place of the new axis in the result.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.ones((2, 3)).unsqueeze(1).shape
    (2, 1, 3)
    """
    return manipulation.expand_dims(self, axis=dim)


def view(self: Tensor, *shape: int | Sequence[int]) -> Tensor:
    """Return a view of this tensor in another shape; ValueError if that needs a copy.

    Writes to the view reach this tensor.

    Parameters
    ----------
    *shape : int or tuple of int
        The lengths of the axes; one may be -1, which stands for the length that fits.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.zeros(4)
    >>> x.view(2, 2)[0] = 1.0
    >>> x
    Tensor([1., 1., 0., 0.])
    """
    return writing.view(
        self, shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
    )


def view_as(self: Tensor, other: Tensor) -> Tensor:
    """Return a view of this tensor in the shape of another.

    Parameters
    ----------
    other : Tensor
        The tensor whose shape the view has.
    """
    return writing.view(self, check_tensor("view_as", "its argument", other).shape)


def expand(self: Tensor, *sizes: int | Sequence[int]) -> Tensor:
    """Return this tensor broadcast to a shape, in which -1 keeps a length.

    Parameters
    ----------
    *sizes : int or tuple of int
        The lengths of the axes; new ones stand first.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.asarray([[1], [2]]).expand(-1, 3)
    Tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    shape = _shape(sizes)
    lengths: tuple[Any, ...] = (None,) * (len(shape) - self.ndim) + self.shape
    return manipulation.broadcast_to(
        self, tuple(m if n == -1 else n for n, m in zip(shape, lengths, strict=False))
    )


def flatten(self: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Return this tensor with the axes from `start_dim` to `end_dim` as one.

    Parameters
    ----------
    start_dim : int, default 0
        The first axis to join.
    end_dim : int, default -1
        The last axis to join.

    Raises
    ------
    ValueError
        If `start_dim` is after `end_dim`.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.ones((2, 3, 4)).flatten(1).shape
    (2, 12)
    """
    if not self.ndim:
        return manipulation.reshape(self, (1,))
    start = front_axis("flatten", self, start_dim, "start_dim")
    end = front_axis("flatten", self, end_dim, "end_dim")
    if start > end:
        got = f"{start_dim} and {end_dim} for x of shape {self.shape}"
        raise ValueError(f"flatten: expected a start_dim up to end_dim, got {got}")
    return manipulation.reshape(self, (*self.shape[:start], -1, *self.shape[end + 1 :]))


def transpose(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """Return this tensor with two axes exchanged.

    Parameters
    ----------
    dim0, dim1 : int
        The axes.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.ones((2, 3, 4)).transpose(0, 2).shape
    (4, 3, 2)
    """
    axes = list(range(len(self._data.shape)))
    try:
        axes[dim0], axes[dim1] = axes[dim1], axes[dim0]
    except (IndexError, TypeError):
        # which raise a better error
        front_axis("transpose", self, dim0, "dim0"), front_axis("transpose", self, dim1, "dim1")
        raise
    return manipulation.permute_dims(self, tuple(axes))


def clone(self: Tensor) -> Tensor:
    """Return a copy of this tensor; differentiable."""
    return tensor_conversion.asarray(self, copy=True)


def contiguous(self: Tensor) -> Tensor:
    """Return this tensor, or a copy in row order if it is a view in another order."""
    in_order = not getattr(self, "_view", None) or layout(self).flags.c_contiguous
    return self if in_order else self.clone()


def cuda(self: Tensor, device: Any = None, non_blocking: bool = False) -> Tensor:
    """Return this tensor on a GPU, by default the current one.

    Parameters
    ----------
    device : int, str or Device, optional
        The GPU, by its number or name; by default the current one.
    non_blocking : bool, default False
        Accepted, and without effect.

    Raises
    ------
    DeviceError
        If there is no GPU, or CuPy is missing.
    """
    target = f"cuda:{device}" if isinstance(device, int) else device or "cuda"
    return self.to(target, non_blocking=non_blocking)


def dim(self: Tensor) -> int:
    """Return the number of axes."""
    return len(self.shape)


def element_size(self: Tensor) -> int:
    """Return the size of an element in bytes."""
    return self.dtype.itemsize


def is_complex(self: Tensor) -> bool:
    """Return whether the dtype is complex."""
    return self.dtype.kind == "c"


def is_floating_point(self: Tensor) -> bool:
    """Return whether the dtype is a real floating one."""
    return self.dtype.kind == "f"


def bernoulli(self: Tensor, p: Any = None, *, generator: Any = None) -> Tensor:
    """Return random zeros and ones: one with the probabilities of this tensor, or `p`.

    Parameters
    ----------
    p : float or Tensor, optional
        The probabilities of a one; by default this tensor's values, from 0 to 1.
    generator : Generator, optional
        The source of random numbers; by default the one of `xgrad.manual_seed`.

    Returns
    -------
    Tensor
        Of the shape and the dtype of this tensor; without a gradient.

    Raises
    ------
    TypeError
        If this tensor has no floating dtype, and `p` is not given.
    ValueError
        If a probability is not from 0 to 1.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.asarray([0.0, 1.0]).bernoulli()
    Tensor([0., 1.])
    """
    if p is None and self.dtype.kind != "f":
        raise TypeError(f"bernoulli: expected probabilities in a floating dtype, got {self.dtype}")
    probabilities: Any = self.detach() if p is None else p
    if not isinstance(probabilities, Tensor):
        probabilities = as_number("bernoulli", "p", probabilities)
    inside = (probabilities >= 0) & (probabilities <= 1)
    if isinstance(inside, Tensor):
        inside = statistical.all(inside)
        fits = self.device.backend.asynchronous or check_true(inside.device, inside._data)
    else:
        fits = inside
    if not fits:
        raise ValueError("bernoulli: expected probabilities from 0 to 1")
    wide = dtypes.float64 if self.dtype == dtypes.float64 else dtypes.float32
    random = providers.module("functions").random
    draws = random.rand(self.shape, dtype=wide, device=self.device, generator=generator)
    return tensor_conversion.astype(draws < probabilities, self.dtype)


def new_full(
    self: Tensor, size: int | tuple[int, ...], fill_value: Scalar | Tensor, **options: Any
) -> Tensor:
    """Return a tensor full of a value, with this dtype and device.

    Parameters
    ----------
    size : int or tuple of int
        The shape.
    fill_value : scalar
        The value of each element.
    **options
        Options of `xgrad.full`: ``dtype`` and ``device``, by default as in this tensor, and
        ``requires_grad``.
    """
    return creation.full(
        size, fill_value, **{"dtype": self.dtype, "device": self.device, **options}
    )


def new_ones(self: Tensor, *size: int | Sequence[int], **options: Any) -> Tensor:
    """Return a tensor of ones, with this dtype and device.

    Parameters
    ----------
    *size : int or tuple of int
        The shape.
    **options
        Options of `xgrad.ones`: ``dtype`` and ``device``, by default as in this tensor, and
        ``requires_grad``.
    """
    return creation.ones(_shape(size), **{"dtype": self.dtype, "device": self.device, **options})


def new_zeros(self: Tensor, *size: int | Sequence[int], **options: Any) -> Tensor:
    """Return a tensor of zeros, with this dtype and device.

    Parameters
    ----------
    *size : int or tuple of int
        The shape.
    **options
        Options of `xgrad.zeros`: ``dtype`` and ``device``, by default as in this tensor, and
        ``requires_grad``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.ones(2, dtype=xgrad.float64).new_zeros(3)
    Tensor([0., 0., 0.], dtype=float64)
    """
    return creation.zeros(_shape(size), **{"dtype": self.dtype, "device": self.device, **options})


def numel(self: Tensor) -> int:
    """Return the number of elements."""
    return math.prod(self._data.shape)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """Return this tensor in the dtype and on the device of another.

    Parameters
    ----------
    other : Tensor
        The tensor whose dtype and device the result has.
    """
    return self.to(check_tensor("type_as", "its argument", other).device, dtype=other.dtype)


def to_byte(self: Tensor) -> Tensor:
    """Return this tensor as `xgrad.uint8`."""
    return self.to(dtype=dtypes.uint8)


def to_half(self: Tensor) -> Tensor:
    """Return this tensor as `xgrad.float16`."""
    return self.to(dtype=dtypes.float16)


def to_short(self: Tensor) -> Tensor:
    """Return this tensor as `xgrad.int16`."""
    return self.to(dtype=dtypes.int16)


def to_bool(self: Tensor) -> Tensor:
    """Return this tensor as `xgrad.bool`."""
    return self.to(dtype=dtypes.bool)


def to_double(self: Tensor) -> Tensor:
    """Return this tensor as `xgrad.float64`."""
    return self.to(dtype=dtypes.float64)


def to_float(self: Tensor) -> Tensor:
    """Return this tensor as `xgrad.float32`."""
    return self.to(dtype=dtypes.float32)


def to_int(self: Tensor) -> Tensor:
    """Return this tensor as `xgrad.int32`."""
    return self.to(dtype=dtypes.int32)


def to_long(self: Tensor) -> Tensor:
    """Return this tensor as `xgrad.int64`."""
    return self.to(dtype=dtypes.int64)


#: Methods that are ops, under the names of the ops.
_OPS = (
    elementwise.acos,
    elementwise.acosh,
    elementwise.asin,
    elementwise.asinh,
    elementwise.atan,
    elementwise.atanh,
    elementwise.ceil,
    elementwise.cos,
    elementwise.cosh,
    elementwise.expm1,
    elementwise.floor,
    elementwise.isfinite,
    elementwise.isinf,
    elementwise.isnan,
    elementwise.log10,
    elementwise.log1p,
    elementwise.log2,
    elementwise.logical_not,
    elementwise.negative,
    elementwise.reciprocal,
    elementwise.round,
    elementwise.sign,
    elementwise.signbit,
    elementwise.sin,
    elementwise.sinh,
    elementwise.square,
    elementwise.tan,
    elementwise.trunc,
    elementwise.atan2,
    elementwise.bitwise_and,
    elementwise.bitwise_or,
    elementwise.bitwise_xor,
    elementwise.copysign,
    elementwise.floor_divide,
    elementwise.greater,
    elementwise.greater_equal,
    elementwise.hypot,
    elementwise.less,
    elementwise.less_equal,
    elementwise.logaddexp,
    elementwise.logical_and,
    elementwise.logical_or,
    elementwise.logical_xor,
    elementwise.maximum,
    elementwise.minimum,
    elementwise.multiply,
    elementwise.not_equal,
    elementwise.pow,
    elementwise.remainder,
    matrix_products.matmul,
)

METHODS: dict[str, Callable[..., Any]] = {
    **{op.__name__: op for op in _OPS},
    "absolute": elementwise.abs,
    "neg": elementwise.negative,
    "true_divide": elementwise.divide,
    "ge": elementwise.greater_equal,
    "gt": elementwise.greater,
    "le": elementwise.less_equal,
    "lt": elementwise.less,
    "ne": elementwise.not_equal,
    "mul": elementwise.multiply,
    "mm": matrix_products.matmul,
    "bmm": matrix_products.matmul,
    **torch_arithmetic.METHODS,
    **torch_reductions.METHODS,
    **torch_indexing.METHODS,
    **{
        method.__name__: method
        for method in (
            flip,
            repeat_interleave,
            roll,
            fliplr,
            flipud,
            rot90,
            expand_as,
            movedim,
            permute,
            ravel,
            reshape_as,
            t,
            tile,
            tril,
            triu,
            unsqueeze,
            view,
            view_as,
            expand,
            flatten,
            transpose,
            clone,
            contiguous,
            cuda,
            dim,
            element_size,
            is_complex,
            is_floating_point,
            bernoulli,
            new_full,
            new_ones,
            new_zeros,
            numel,
            type_as,
        )
    },
    "moveaxis": movedim,
    "swapaxes": transpose,
    "bool": named(to_bool, "bool"),
    "byte": named(to_byte, "byte"),
    "double": named(to_double, "double"),
    "float": named(to_float, "float"),
    "half": named(to_half, "half"),
    "int": named(to_int, "int"),
    "long": named(to_long, "long"),
    "short": named(to_short, "short"),
}
