"""Methods of tensors with PyTorch's names, and its names of parameters (`dim`, `keepdim`).

docs/pytorch.md lists the other differences.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from xgrad.core import dtypes, providers
from xgrad.core.arguments import check_tensor, front_axis
from xgrad.core.methods import named
from xgrad.core.tensor import Tensor
from xgrad.core.views import layout
from xgrad.ops import (
    creation,
    elementwise,
    indexing,
    joining,
    manipulation,
    matrix_products,
    searching,
    statistical,
    tensor_conversion,
    writing,
)
from xgrad.support.hints import explained

Dim = int | tuple[int, ...] | None


def _assign(x: Tensor, value: Any, key: Any = ...) -> Tensor:
    x[key] = value
    return x


def _shape(sizes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a shape given as numbers or as one sequence."""
    return tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes


def bitwise_not(self: Tensor) -> Tensor:
    """Invert every bit; for bools, return the logical NOT."""
    return elementwise.bitwise_invert(self)


def eq(self: Tensor, other: Any, /) -> Tensor:
    """Return whether elements are equal."""
    return elementwise.equal(self, other)


def rsqrt(self: Tensor) -> Tensor:
    """Return 1 divided by the square root of each element."""
    return elementwise.reciprocal(self.sqrt())


def clamp(self: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """Return the elements, limited to at least `min` and at most `max`: see `xgrad.clip`."""
    return elementwise.clip(self, min, max)


def masked_fill(self: Tensor, mask: Any, value: Any) -> Tensor:
    """Return this tensor with `value` where `mask` is True."""
    return searching.masked_fill(self, mask, value)


def outer(self: Tensor, vec2: Any) -> Tensor:
    """Return the products of all pairs of elements of two vectors: see `xgrad.linalg.outer`."""
    return matrix_products.outer(self, vec2)


def where(self: Tensor, condition: Any, other: Any) -> Tensor:
    """Return this tensor where `condition` is True, and `other` elsewhere."""
    return searching.where(condition, self, other)


def dot(self: Tensor, tensor: Any) -> Tensor:
    """Return the inner product of two vectors."""
    shapes = self.shape, check_tensor("dot", "its argument", tensor).shape
    if any(len(shape) != 1 for shape in shapes):
        raise ValueError(f"dot: expected vectors, got shapes {shapes[0]} and {shapes[1]}: use @")
    return matrix_products.matmul(self, tensor)


@explained
def amax(self: Tensor, dim: Dim = None, keepdim: bool = False) -> Tensor:
    """Return the maximum over axes, or over all: see `xgrad.max`."""
    return statistical.max(self, axis=dim, keepdims=keepdim)


@explained
def amin(self: Tensor, dim: Dim = None, keepdim: bool = False) -> Tensor:
    """Return the minimum over axes, or over all: see `xgrad.min`."""
    return statistical.min(self, axis=dim, keepdims=keepdim)


@explained
def argsort(self: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return the indices that sort this tensor along an axis: see `xgrad.argsort`."""
    return searching.argsort(self, axis=dim, descending=descending, stable=stable)


@explained
def count_nonzero(self: Tensor, dim: Dim = None) -> Tensor:
    """Return the number of nonzero elements over axes, or of all."""
    return searching.count_nonzero(self, axis=dim)


@explained
def cumprod(self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """Return the products of the elements so far along an axis: see `xgrad.cumulative_prod`."""
    return statistical.cumulative_prod(self, axis=dim, dtype=dtype)


@explained
def cumsum(self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """Return the sums of the elements so far along an axis: see `xgrad.cumulative_sum`."""
    return statistical.cumulative_sum(self, axis=dim, dtype=dtype)


@explained
def diff(
    self: Tensor, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None
) -> Tensor:
    """Return the differences of neighbours along an axis, `n` times: see `xgrad.diff`."""
    out: Tensor = providers.module("differences").diff(
        self, axis=dim, n=n, prepend=prepend, append=append
    )
    return out


@explained
def flip(self: Tensor, dims: Any, *more: int) -> Tensor:
    """Return this tensor with the elements along axes in reverse order."""
    return manipulation.flip(self, axis=_shape((dims, *more)))


@explained
def index_select(self: Tensor, dim: int, index: Any) -> Tensor:
    """Return the elements at `index` along an axis: see `xgrad.take`."""
    return indexing.take(self, index, axis=dim)


@explained
def log_softmax(self: Tensor, dim: int) -> Tensor:
    """Return the logarithm of `softmax` along an axis."""
    out: Tensor = providers.module("softmaxes").log_softmax(self, axis=dim)
    return out


@explained
def logsumexp(self: Tensor, dim: Dim, keepdim: bool = False) -> Tensor:
    """Return the logarithm of the sum of exponentials over axes: see `xgrad.logsumexp`."""
    return statistical.logsumexp(self, axis=dim, keepdims=keepdim)


@explained
def norm(self: Tensor, p: Any = 2, dim: Dim = None, keepdim: bool = False) -> Tensor:
    """Return the vector norm over axes, or of all elements: see `xgrad.linalg.vector_norm`."""
    out: Tensor = providers.module("norms").vector_norm(
        self, axis=dim, keepdims=keepdim, ord=2 if p == "fro" else p
    )
    return out


@explained
def repeat_interleave(self: Tensor, repeats: Any, dim: int | None = None) -> Tensor:
    """Return this tensor with each element repeated: see `xgrad.repeat`."""
    return joining.repeat(self, repeats, axis=dim)


@explained
def roll(self: Tensor, shifts: Any, dims: Dim = None) -> Tensor:
    """Return this tensor with its elements shifted along axes, around the end: see `xgrad.roll`."""
    return manipulation.roll(self, shifts, axis=dims)


@explained
def softmax(self: Tensor, dim: int) -> Tensor:
    """Return exponentials divided by their sum along an axis."""
    out: Tensor = providers.module("softmaxes").softmax(self, axis=dim)
    return out


@explained
def unbind(self: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Return the slices along an axis: see `xgrad.unstack`."""
    return joining.unstack(self, axis=dim)


@explained
def gather(self: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return the elements at indices along an axis.

    Along the other axes they are from the first ``index.shape`` elements.
    """
    dim = front_axis("gather", self, dim, "dim")
    first = tuple(
        [
            slice(None if i == dim else n)
            for i, n in enumerate(check_tensor("gather", "its argument", index).shape)
        ]
    )
    return indexing.take_along_axis(self[first], index, axis=dim)


def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """Return this tensor broadcast to the shape of another."""
    return manipulation.broadcast_to(self, check_tensor("expand_as", "its argument", other).shape)


def movedim(self: Tensor, source: Any, destination: Any) -> Tensor:
    """Return this tensor with axes in other places: see `xgrad.moveaxis`."""
    return manipulation.moveaxis(self, source, destination)


@explained
def permute(self: Tensor, dims: Any, *more: int) -> Tensor:
    """Return this tensor with its axes in another order: see `xgrad.permute_dims`."""
    return manipulation.permute_dims(self, _shape((dims, *more)))


def ravel(self: Tensor) -> Tensor:
    """Return the elements as a vector, in row order."""
    return manipulation.reshape(self.contiguous(), (-1,))


def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """Return the same elements in the shape of another tensor."""
    return manipulation.reshape(self, check_tensor("reshape_as", "its argument", other).shape)


def t(self: Tensor) -> Tensor:
    """Return the transpose of a matrix, or a tensor with fewer axes as it is."""
    return self if self.ndim < 2 else self.T


def tile(self: Tensor, *dims: Any) -> Tensor:
    """Return this tensor repeated along its axes: see `xgrad.tile`."""
    return joining.tile(self, _shape(dims))


def tril(self: Tensor, diagonal: int = 0) -> Tensor:
    """Return the lower triangles of matrices, with zeros above a diagonal: see `xgrad.tril`."""
    return creation.tril(self, k=diagonal)


def triu(self: Tensor, diagonal: int = 0) -> Tensor:
    """Return the upper triangles of matrices, with zeros below a diagonal: see `xgrad.triu`."""
    return creation.triu(self, k=diagonal)


@explained
def unsqueeze(self: Tensor, dim: int) -> Tensor:
    """Return this tensor with a new axis of length 1 at `dim`."""
    return manipulation.expand_dims(self, axis=dim)


def view(self: Tensor, *shape: Any) -> Tensor:
    """Return a view of this tensor in another shape; ValueError if that needs a copy.

    Writes to the view reach this tensor.
    """
    return writing.view(
        self, shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
    )


def view_as(self: Tensor, other: Tensor) -> Tensor:
    """Return a view of this tensor in the shape of another."""
    return writing.view(self, check_tensor("view_as", "its argument", other).shape)


def expand(self: Tensor, *sizes: Any) -> Tensor:
    """Return this tensor broadcast to a shape, in which -1 keeps a length."""
    shape = _shape(sizes)
    lengths: tuple[Any, ...] = (None,) * (len(shape) - self.ndim) + self.shape
    return manipulation.broadcast_to(
        self, tuple(m if n == -1 else n for n, m in zip(shape, lengths, strict=False))
    )


def flatten(self: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Return this tensor with the axes from `start_dim` to `end_dim` as one."""
    if not self.ndim:
        return manipulation.reshape(self, (1,))
    start = front_axis("flatten", self, start_dim, "start_dim")
    end = front_axis("flatten", self, end_dim, "end_dim")
    if start > end:
        got = f"{start_dim} and {end_dim} for x of shape {self.shape}"
        raise ValueError(f"flatten: expected a start_dim up to end_dim, got {got}")
    return manipulation.reshape(self, (*self.shape[:start], -1, *self.shape[end + 1 :]))


def transpose(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """Return this tensor with two axes exchanged."""
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


def cuda(self: Tensor, device: Any = None) -> Tensor:
    """Return this tensor on a GPU, by default the current one."""
    return self.to(f"cuda:{device}" if isinstance(device, int) else device or "cuda")


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


def new_full(self: Tensor, size: Any, fill_value: Any, **options: Any) -> Tensor:
    """Return a tensor full of a value, with this dtype and device."""
    return creation.full(
        size, fill_value, **{"dtype": self.dtype, "device": self.device, **options}
    )


def new_ones(self: Tensor, *size: Any, **options: Any) -> Tensor:
    """Return a tensor of ones, with this dtype and device."""
    return creation.ones(_shape(size), **{"dtype": self.dtype, "device": self.device, **options})


def new_zeros(self: Tensor, *size: Any, **options: Any) -> Tensor:
    """Return a tensor of zeros, with this dtype and device."""
    return creation.zeros(_shape(size), **{"dtype": self.dtype, "device": self.device, **options})


def numel(self: Tensor) -> int:
    """Return the number of elements."""
    return math.prod(self._data.shape)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """Return this tensor in the dtype and on the device of another."""
    return self.to(check_tensor("type_as", "its argument", other).device, dtype=other.dtype)


def copy_(self: Tensor, src: Any) -> Tensor:
    """Give this tensor the values of another, and return it."""
    return _assign(self, tensor_conversion.asarray(src, dtype=self.dtype, device=self.device))


def fill_(self: Tensor, value: Any) -> Tensor:
    """Give every element the same value, and return this tensor."""
    return _assign(self, value)


def masked_fill_(self: Tensor, mask: Any, value: Any) -> Tensor:
    """Give the elements where `mask` is True a value, and return this tensor."""
    return _assign(self, value, mask)


def zero_(self: Tensor) -> Tensor:
    """Give every element the value 0, and return this tensor."""
    return _assign(self, 0)


# In place


def abs_(self: Tensor) -> Tensor:
    """Give each element its absolute value, and return it."""
    return writing.update(self, lambda x, _: elementwise.abs(x), ())


def add_(self: Tensor, other: Any) -> Tensor:
    """Add to this tensor, and return it."""
    return writing.update(self, elementwise.add, other)


def clamp_(self: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """Limit the elements to at least `min` and at most `max`, and return it."""
    return writing.update(self, lambda x, bounds: elementwise.clip(x, *bounds), (min, max))


def div_(self: Tensor, other: Any) -> Tensor:
    """Divide this tensor, and return it."""
    return writing.update(self, elementwise.divide, other)


def exp_(self: Tensor) -> Tensor:
    """Give each element its exponential, and return it."""
    return writing.update(self, lambda x, _: elementwise.exp(x), ())


def mul_(self: Tensor, other: Any) -> Tensor:
    """Multiply this tensor, and return it."""
    return writing.update(self, elementwise.multiply, other)


def neg_(self: Tensor) -> Tensor:
    """Negate this tensor, and return it."""
    return writing.update(self, lambda x, _: elementwise.negative(x), ())


def pow_(self: Tensor, exponent: Any) -> Tensor:
    """Raise this tensor to a power, and return it."""
    return writing.update(self, elementwise.pow, exponent)


def sqrt_(self: Tensor) -> Tensor:
    """Give each element its square root, and return it."""
    return writing.update(self, lambda x, _: elementwise.sqrt(x), ())


def sub_(self: Tensor, other: Any) -> Tensor:
    """Subtract from this tensor, and return it."""
    return writing.update(self, elementwise.subtract, other)


# Dtypes


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
    elementwise.add,
    elementwise.atan2,
    elementwise.bitwise_and,
    elementwise.bitwise_or,
    elementwise.bitwise_xor,
    elementwise.copysign,
    elementwise.divide,
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
    elementwise.subtract,
    matrix_products.matmul,
)

METHODS: dict[str, Callable[..., Any]] = {
    **{op.__name__: op for op in _OPS},
    "absolute": elementwise.abs,
    "neg": elementwise.negative,
    "div": elementwise.divide,
    "true_divide": elementwise.divide,
    "ge": elementwise.greater_equal,
    "gt": elementwise.greater,
    "le": elementwise.less_equal,
    "lt": elementwise.less,
    "ne": elementwise.not_equal,
    "mul": elementwise.multiply,
    "sub": elementwise.subtract,
    "mm": matrix_products.matmul,
    "bmm": matrix_products.matmul,
    **{
        method.__name__: method
        for method in (
            bitwise_not,
            eq,
            rsqrt,
            clamp,
            masked_fill,
            outer,
            where,
            dot,
            amax,
            amin,
            argsort,
            count_nonzero,
            cumprod,
            cumsum,
            diff,
            flip,
            index_select,
            log_softmax,
            logsumexp,
            norm,
            repeat_interleave,
            roll,
            softmax,
            unbind,
            gather,
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
            new_full,
            new_ones,
            new_zeros,
            numel,
            type_as,
            copy_,
            fill_,
            masked_fill_,
            zero_,
            abs_,
            add_,
            clamp_,
            div_,
            exp_,
            mul_,
            neg_,
            pow_,
            sqrt_,
            sub_,
        )
    },
    "clip": clamp,
    "moveaxis": movedim,
    "swapaxes": transpose,
    "clip_": clamp_,
    "divide_": div_,
    "multiply_": mul_,
    "subtract_": sub_,
    "bool": named(to_bool, "bool"),
    "double": named(to_double, "double"),
    "float": named(to_float, "float"),
    "int": named(to_int, "int"),
    "long": named(to_long, "long"),
}
