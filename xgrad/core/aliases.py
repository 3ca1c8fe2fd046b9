"""Methods with PyTorch's names, and its names of parameters (`dim`, `keepdim`).

docs/pytorch.md lists the other differences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from xgrad.core.namespace import namespace
from xgrad.core.operators import Operators
from xgrad.support.hints import HintedTensor

if TYPE_CHECKING:
    from xgrad.core.namespace import Tensor

__all__ = ["Aliases"]

Dim = int | tuple[int, ...] | None


def _named(method: Callable[..., Any], doc: str) -> Callable[..., Any]:
    method.__doc__ = doc
    return method


def _function(name: str) -> Callable[..., Tensor]:
    """Return a function of the namespace as a method."""
    return _named(lambda x, *others: getattr(namespace, name)(x, *others), f"See `xgrad.{name}`.")


def _cast(name: str) -> Callable[..., Tensor]:
    """Return the conversion to a dtype."""
    return _named(
        lambda x: x.to(dtype=getattr(namespace, name)), f"Return this tensor as `xgrad.{name}`."
    )


def _in_place(name: str) -> Callable[..., Tensor]:
    """Return a function of the namespace as a method that assigns the result to the tensor."""

    def method(x: Any, *others: Any, **options: Any) -> Any:
        return namespace.ops.writing.update(
            x, lambda x, others: getattr(namespace, name)(x, *others, **options), others
        )

    return _named(method, f"Give this tensor the value of `xgrad.{name}`, and return it.")


def _assign(x: Any, value: Any, key: Any = ...) -> Any:
    x[key] = value
    return x


def _shape(sizes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a shape given as numbers or as one sequence."""
    return tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes


def _axis(op: str, x: Any, axis: Any, name: str) -> Any:
    return namespace.core.arguments.front_axis(op, x, axis, name)


def _tensor(op: str, x: Any) -> Any:
    return namespace.core.arguments.check_tensor(op, "its argument", x)


class Aliases(Operators, HintedTensor):
    """Methods with PyTorch's names."""

    __slots__ = ()

    # Unary functions
    absolute = Operators.abs
    acos = _function("acos")
    acosh = _function("acosh")
    asin = _function("asin")
    asinh = _function("asinh")
    atan = _function("atan")
    atanh = _function("atanh")
    bitwise_not = _function("bitwise_invert")
    ceil = _function("ceil")
    cos = _function("cos")
    cosh = _function("cosh")
    expm1 = _function("expm1")
    floor = _function("floor")
    isfinite = _function("isfinite")
    isinf = _function("isinf")
    isnan = _function("isnan")
    log10 = _function("log10")
    log1p = _function("log1p")
    log2 = _function("log2")
    logical_not = _function("logical_not")
    neg = negative = Operators.__neg__
    reciprocal = _function("reciprocal")
    round = _function("round")
    sign = _function("sign")
    signbit = _function("signbit")
    sin = _function("sin")
    sinh = _function("sinh")
    square = _function("square")
    tan = _function("tan")
    trunc = _function("trunc")

    def rsqrt(self) -> Tensor:
        return namespace.reciprocal(self.sqrt())

    # Binary functions
    add = Operators.__add__
    atan2 = _function("atan2")
    bitwise_and = Operators.__and__
    bitwise_or = Operators.__or__
    bitwise_xor = Operators.__xor__
    copysign = _function("copysign")
    div = divide = true_divide = Operators.__truediv__
    eq = _function("equal")
    floor_divide = Operators.__floordiv__
    ge = greater_equal = _function("greater_equal")
    gt = greater = _function("greater")
    hypot = _function("hypot")
    le = less_equal = _function("less_equal")
    logaddexp = _function("logaddexp")
    logical_and = _function("logical_and")
    logical_or = _function("logical_or")
    logical_xor = _function("logical_xor")
    lt = less = _function("less")
    matmul = mm = bmm = Operators.__matmul__
    maximum = _function("maximum")
    minimum = _function("minimum")
    mul = multiply = Operators.__mul__
    ne = not_equal = _function("not_equal")
    pow = Operators.__pow__
    remainder = Operators.__mod__
    sub = subtract = Operators.__sub__

    def clamp(self, min: Any = None, max: Any = None) -> Tensor:
        return namespace.clip(self, min, max)

    clip = clamp

    def masked_fill(self: Any, mask: Any, value: Any) -> Tensor:
        return namespace.ops.searching.masked_fill(self, mask, value)

    def outer(self, vec2: Any) -> Tensor:
        return namespace.linalg.outer(self, vec2)

    def where(self, condition: Any, other: Any) -> Tensor:
        return namespace.where(condition, self, other)

    def dot(self: Any, tensor: Any) -> Tensor:
        """Return the inner product of two vectors."""
        if (shapes := [self.shape, _tensor("dot", tensor).shape]) and any(
            len(shape) != 1 for shape in shapes
        ):
            raise ValueError(
                f"dot: expected vectors, got shapes {shapes[0]} and {shapes[1]}: use @"
            )
        return namespace.matmul(self, tensor)

    # Functions along axes
    def amax(self, dim: Dim = None, keepdim: bool = False) -> Tensor:
        return namespace.max(self, axis=dim, keepdims=keepdim)

    def amin(self, dim: Dim = None, keepdim: bool = False) -> Tensor:
        return namespace.min(self, axis=dim, keepdims=keepdim)

    def argsort(self, dim: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
        return namespace.argsort(self, axis=dim, descending=descending, stable=stable)

    def count_nonzero(self, dim: Dim = None) -> Tensor:
        return namespace.count_nonzero(self, axis=dim)

    def cumprod(self, dim: int, dtype: Any = None) -> Tensor:
        return namespace.cumulative_prod(self, axis=dim, dtype=dtype)

    def cumsum(self, dim: int, dtype: Any = None) -> Tensor:
        return namespace.cumulative_sum(self, axis=dim, dtype=dtype)

    def diff(
        self: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None
    ) -> Tensor:
        return namespace.diff(self, axis=dim, n=n, prepend=prepend, append=append)

    def flip(self, dims: Any, *more: int) -> Tensor:
        return namespace.flip(self, axis=_shape((dims, *more)))

    def index_select(self, dim: int, index: Any) -> Tensor:
        return namespace.take(self, index, axis=dim)

    def log_softmax(self, dim: int) -> Tensor:
        return namespace.ops.log_softmax(self, axis=dim)

    def logsumexp(self, dim: Dim, keepdim: bool = False) -> Tensor:
        return namespace.logsumexp(self, axis=dim, keepdims=keepdim)

    def norm(self, p: Any = 2, dim: Dim = None, keepdim: bool = False) -> Tensor:
        return namespace.linalg.vector_norm(
            self, axis=dim, keepdims=keepdim, ord=2 if p == "fro" else p
        )

    def repeat_interleave(self: Any, repeats: Any, dim: int | None = None) -> Tensor:
        return namespace.repeat(self, repeats, axis=dim)

    def roll(self, shifts: Any, dims: Dim = None) -> Tensor:
        return namespace.roll(self, shifts, axis=dims)

    def softmax(self, dim: int) -> Tensor:
        return namespace.ops.softmax(self, axis=dim)

    def unbind(self: Any, dim: int = 0) -> tuple[Tensor, ...]:
        return namespace.unstack(self, axis=dim)

    def gather(self: Any, dim: int, index: Tensor) -> Tensor:
        """Return the elements at indices along an axis.

        Along the other axes they are from the first ``index.shape`` elements.
        """
        dim = _axis("gather", self, dim, "dim")
        first = tuple(
            [slice(None if i == dim else n) for i, n in enumerate(_tensor("gather", index).shape)]
        )
        return namespace.take_along_axis(self[first], index, axis=dim)

    # Shapes
    def expand_as(self, other: Tensor) -> Tensor:
        return namespace.broadcast_to(self, _tensor("expand_as", other).shape)

    def movedim(self: Any, source: Any, destination: Any) -> Tensor:
        return namespace.moveaxis(self, source, destination)

    moveaxis = movedim

    def permute(self, dims: Any, *more: int) -> Tensor:
        return namespace.permute_dims(self, _shape((dims, *more)))

    def ravel(self: Any) -> Tensor:
        return namespace.reshape(self.contiguous(), (-1,))

    def reshape_as(self, other: Tensor) -> Tensor:
        return namespace.reshape(self, _tensor("reshape_as", other).shape)

    def t(self: Any) -> Tensor:
        return cast("Tensor", self if self.ndim < 2 else self.T)

    def tile(self: Any, *dims: Any) -> Tensor:
        return namespace.tile(self, _shape(dims))

    def tril(self: Any, diagonal: int = 0) -> Tensor:
        return namespace.tril(self, k=diagonal)

    def triu(self: Any, diagonal: int = 0) -> Tensor:
        return namespace.triu(self, k=diagonal)

    def unsqueeze(self, dim: int) -> Tensor:
        return namespace.expand_dims(self, axis=dim)

    def view(self: Any, *shape: Any) -> Tensor:
        """Return a view of this tensor in another shape; ValueError if that needs a copy.

        Writes to the view reach this tensor.
        """
        return namespace.ops.writing.view(
            self, shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        )

    def view_as(self: Any, other: Tensor) -> Tensor:
        """Return a view of this tensor in the shape of another."""
        return namespace.ops.writing.view(self, _tensor("view_as", other).shape)

    def expand(self: Any, *sizes: Any) -> Tensor:
        """Return this tensor broadcast to a shape, in which -1 keeps a length."""
        shape = _shape(sizes)
        lengths = (None,) * (len(shape) - self.ndim) + self.shape
        return namespace.broadcast_to(
            self, tuple(m if n == -1 else n for n, m in zip(shape, lengths, strict=False))
        )

    def flatten(self: Any, start_dim: int = 0, end_dim: int = -1) -> Tensor:
        """Return this tensor with the axes from `start_dim` to `end_dim` as one."""
        if not self.ndim:
            return namespace.reshape(self, (1,))
        start, end = (
            _axis("flatten", self, start_dim, "start_dim"),
            _axis("flatten", self, end_dim, "end_dim"),
        )
        if start > end:
            got = f"{start_dim} and {end_dim} for x of shape {self.shape}"
            raise ValueError(f"flatten: expected a start_dim up to end_dim, got {got}")
        return namespace.reshape(self, (*self.shape[:start], -1, *self.shape[end + 1 :]))

    def transpose(self: Any, dim0: int, dim1: int) -> Tensor:
        """Return this tensor with two axes exchanged."""
        axes = list(range(len(self._data.shape)))
        try:
            axes[dim0], axes[dim1] = axes[dim1], axes[dim0]
        except (IndexError, TypeError):
            # which raise a better error
            _axis("transpose", self, dim0, "dim0"), _axis("transpose", self, dim1, "dim1")
            raise
        return namespace.permute_dims(self, tuple(axes))

    swapaxes = transpose

    # Copies and devices
    def clone(self) -> Tensor:
        return namespace.asarray(self, copy=True)

    def contiguous(self: Any) -> Tensor:
        return cast(
            "Tensor",
            self
            if not getattr(self, "_view", None)
            or namespace.core.views.layout(self).flags.c_contiguous
            else self.clone(),
        )

    def cuda(self: Any, device: Any = None) -> Tensor:
        return cast(
            "Tensor", self.to(f"cuda:{device}" if isinstance(device, int) else device or "cuda")
        )

    def dim(self: Any) -> int:
        return len(self.shape)

    def element_size(self: Any) -> int:
        return cast("int", self.dtype.itemsize)

    def is_complex(self: Any) -> bool:
        return cast("bool", self.dtype.kind == "c")

    def is_floating_point(self: Any) -> bool:
        return cast("bool", self.dtype.kind == "f")

    def new_full(self: Any, size: Any, fill_value: Any, **options: Any) -> Tensor:
        return namespace.full(
            size, fill_value, **{"dtype": self.dtype, "device": self.device, **options}
        )

    def new_ones(self: Any, *size: Any, **options: Any) -> Tensor:
        return namespace.ones(
            _shape(size), **{"dtype": self.dtype, "device": self.device, **options}
        )

    def new_zeros(self: Any, *size: Any, **options: Any) -> Tensor:
        return namespace.zeros(
            _shape(size), **{"dtype": self.dtype, "device": self.device, **options}
        )

    def numel(self: Any) -> int:
        return cast("int", self.size)

    def type_as(self: Any, other: Tensor) -> Tensor:
        return cast("Tensor", self.to(_tensor("type_as", other).device, dtype=other.dtype))

    # In place
    abs_ = _in_place("abs")
    add_ = _in_place("add")
    clamp_ = clip_ = _in_place("clip")
    div_ = divide_ = _in_place("divide")
    exp_ = _in_place("exp")
    mul_ = multiply_ = _in_place("multiply")
    neg_ = _in_place("negative")
    pow_ = _in_place("pow")
    sqrt_ = _in_place("sqrt")
    sub_ = subtract_ = _in_place("subtract")

    def copy_(self: Any, src: Any) -> Tensor:
        return cast(
            "Tensor", _assign(self, namespace.asarray(src, dtype=self.dtype, device=self.device))
        )

    def fill_(self: Any, value: Any) -> Tensor:
        return cast("Tensor", _assign(self, value))

    def masked_fill_(self: Any, mask: Any, value: Any) -> Tensor:
        return cast("Tensor", _assign(self, value, mask))

    def zero_(self: Any) -> Tensor:
        return cast("Tensor", _assign(self, 0))

    # Dtypes: last, since annotations above mean Python's types
    bool = _cast("bool")
    double = _cast("float64")
    float = _cast("float32")
    int = _cast("int32")
    long = _cast("int64")
