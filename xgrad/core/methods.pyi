"""Declarations of the methods that are ops, for type checkers and editors: see `methods.py`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Never

from xgrad.backend.device import Device
from xgrad.core.arguments import ArrayLike, Scalar
from xgrad.core.tensor import Tensor

Axis = int | tuple[int, ...] | None
Dim = int | tuple[int, ...] | None

def named(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Give a function the name of the method that it is, by which bound methods are pickled."""

def define_methods(kind: type, methods: Mapping[str, Any]) -> None:
    """Give a class methods, by their names."""

class Methods:
    """Operators and methods that are ops."""

    # Operators
    def __add__(self, x2: ArrayLike, /) -> Tensor: ...
    def __sub__(self, x2: ArrayLike, /) -> Tensor: ...
    def __mul__(self, x2: ArrayLike, /) -> Tensor: ...
    def __truediv__(self, x2: ArrayLike, /) -> Tensor: ...
    def __floordiv__(self, x2: ArrayLike, /) -> Tensor: ...
    def __mod__(self, x2: ArrayLike, /) -> Tensor: ...
    def __pow__(self, x2: ArrayLike, /) -> Tensor: ...
    def __matmul__(self, x2: ArrayLike, /) -> Tensor: ...
    def __and__(self, x2: ArrayLike, /) -> Tensor: ...
    def __or__(self, x2: ArrayLike, /) -> Tensor: ...
    def __xor__(self, x2: ArrayLike, /) -> Tensor: ...
    def __lshift__(self, x2: ArrayLike, /) -> Tensor: ...
    def __rshift__(self, x2: ArrayLike, /) -> Tensor: ...
    def __radd__(self, other: ArrayLike, /) -> Tensor: ...
    def __rsub__(self, other: ArrayLike, /) -> Tensor: ...
    def __rmul__(self, other: ArrayLike, /) -> Tensor: ...
    def __rtruediv__(self, other: ArrayLike, /) -> Tensor: ...
    def __rfloordiv__(self, other: ArrayLike, /) -> Tensor: ...
    def __rmod__(self, other: ArrayLike, /) -> Tensor: ...
    def __rpow__(self, other: ArrayLike, /) -> Tensor: ...
    def __rmatmul__(self, other: ArrayLike, /) -> Tensor: ...
    def __rand__(self, other: ArrayLike, /) -> Tensor: ...
    def __ror__(self, other: ArrayLike, /) -> Tensor: ...
    def __rxor__(self, other: ArrayLike, /) -> Tensor: ...
    def __rlshift__(self, other: ArrayLike, /) -> Tensor: ...
    def __rrshift__(self, other: ArrayLike, /) -> Tensor: ...
    def __iadd__(self, other: ArrayLike, /) -> Tensor: ...
    def __isub__(self, other: ArrayLike, /) -> Tensor: ...
    def __imul__(self, other: ArrayLike, /) -> Tensor: ...
    def __itruediv__(self, other: ArrayLike, /) -> Tensor: ...
    def __ifloordiv__(self, other: ArrayLike, /) -> Tensor: ...
    def __imod__(self, other: ArrayLike, /) -> Tensor: ...
    def __ipow__(self, other: ArrayLike, /) -> Tensor: ...
    def __imatmul__(self, other: ArrayLike, /) -> Tensor: ...
    def __iand__(self, other: ArrayLike, /) -> Tensor: ...
    def __ior__(self, other: ArrayLike, /) -> Tensor: ...
    def __ixor__(self, other: ArrayLike, /) -> Tensor: ...
    def __ilshift__(self, other: ArrayLike, /) -> Tensor: ...
    def __irshift__(self, other: ArrayLike, /) -> Tensor: ...
    def __eq__(self, other: object) -> Tensor: ...  # type: ignore[override]
    def __ne__(self, other: object) -> Tensor: ...  # type: ignore[override]
    def __lt__(self, x2: ArrayLike, /) -> Tensor: ...
    def __le__(self, x2: ArrayLike, /) -> Tensor: ...
    def __gt__(self, x2: ArrayLike, /) -> Tensor: ...
    def __ge__(self, x2: ArrayLike, /) -> Tensor: ...
    def __neg__(self, /) -> Tensor: ...
    def __pos__(self, /) -> Tensor: ...
    def __abs__(self, /) -> Tensor: ...
    def __invert__(self, /) -> Tensor: ...
    def __getitem__(self, key: Any, /) -> Tensor: ...
    def __setitem__(self, key: Any, value: ArrayLike, /) -> None: ...
    def __iter__(self) -> Iterator[Tensor]: ...

    # Methods of the standard and of NumPy
    @property
    def T(self) -> Tensor:
        """The transpose of a matrix."""
    @property
    def mT(self) -> Tensor:
        """The transpose of each matrix in the last two axes."""
    def abs(self, /) -> Tensor:
        """Return the absolute value; the derivative at 0 is 0."""
    def conj(self, /) -> Tensor:
        """Return the complex conjugate."""
    def exp(self, /) -> Tensor:
        """Return e to the power of each element."""
    def log(self, /) -> Tensor:
        """Return the natural logarithm."""
    def relu(self, /) -> Tensor:
        """Return positive elements unchanged and 0 for the others; the derivative at 0 is 0."""
    def sigmoid(self, /) -> Tensor:
        """Return ``1 / (1 + exp(-x))`` without overflow; it is between 0 and 1 for real numbers."""
    def sqrt(self, /) -> Tensor:
        """Return the square root."""
    def tanh(self, /) -> Tensor:
        """Return the hyperbolic tangent."""
    def all(self, axis: Axis = None, keepdims: bool = False, **unknown: Never) -> Tensor:
        """Return whether all elements over axes, or all, are nonzero: see `xgrad.all`."""
    def any(self, axis: Axis = None, keepdims: bool = False, **unknown: Never) -> Tensor:
        """Return whether any element over axes, or of all, is nonzero: see `xgrad.any`."""
    def argmax(self, axis: int | None = None, keepdims: bool = False, **unknown: Never) -> Tensor:
        """Return the index of the maximum along an axis, or of all: see `xgrad.argmax`."""
    def argmin(self, axis: int | None = None, keepdims: bool = False, **unknown: Never) -> Tensor:
        """Return the index of the minimum along an axis, or of all: see `xgrad.argmin`."""
    def astype(self, dtype: Any) -> Tensor:
        """Return a copy of this tensor in a dtype."""
    def cpu(self) -> Tensor:
        """Return this tensor on the CPU."""
    def max(self, axis: Axis = None, keepdims: bool = False, **unknown: Never) -> Tensor:
        """Return the maximum over axes, or over all: see `xgrad.max`."""
    def mean(self, axis: Axis = None, keepdims: bool = False, **unknown: Never) -> Tensor:
        """Return the mean over axes, or over all: see `xgrad.mean`."""
    def min(self, axis: Axis = None, keepdims: bool = False, **unknown: Never) -> Tensor:
        """Return the minimum over axes, or over all: see `xgrad.min`."""
    def prod(
        self, axis: Axis = None, keepdims: bool = False, *, dtype: Any = None, **unknown: Never
    ) -> Tensor:
        """Return the product over axes, or over all: see `xgrad.prod`."""
    def reshape(self, *shape: int | Sequence[int]) -> Tensor:
        """Return the same elements in another shape, given as numbers or as one tuple."""
    def squeeze(self, axis: Axis = None) -> Tensor:
        """Return this tensor without axes of length 1: all of them, or the given ones."""
    def std(
        self, axis: Axis = None, correction: float = 0, keepdims: bool = False, **unknown: Never
    ) -> Tensor:
        """Return the standard deviation over axes, or over all: see `xgrad.std`."""
    def sum(
        self, axis: Axis = None, keepdims: bool = False, *, dtype: Any = None, **unknown: Never
    ) -> Tensor:
        """Return the sum over axes, or over all: see `xgrad.sum`."""
    def to(
        self, device: Any = None, dtype: Any = None, non_blocking: bool = False, copy: bool = False
    ) -> Tensor:
        """Return this tensor on another device, in another dtype, or both; differentiable."""
    def to_device(self, device: str | Device, /, *, stream: Any = None) -> Tensor:
        """Return this tensor on another device: the standard's name for `to`."""
    def var(
        self, axis: Axis = None, correction: float = 0, keepdims: bool = False, **unknown: Never
    ) -> Tensor:
        """Return the variance over axes, or over all: see `xgrad.var`."""

    # PyTorch's names
    def acos(self, /) -> Tensor:
        """Return the arccosine, from 0 to pi."""
    def acosh(self, /) -> Tensor:
        """Return the inverse hyperbolic cosine."""
    def asin(self, /) -> Tensor:
        """Return the arcsine, from -pi/2 to pi/2."""
    def asinh(self, /) -> Tensor:
        """Return the inverse hyperbolic sine."""
    def atan(self, /) -> Tensor:
        """Return the arctangent, from -pi/2 to pi/2."""
    def atanh(self, /) -> Tensor:
        """Return the inverse hyperbolic tangent."""
    def ceil(self, /) -> Tensor:
        """Round towards infinity."""
    def cos(self, /) -> Tensor:
        """Return the cosine."""
    def cosh(self, /) -> Tensor:
        """Return the hyperbolic cosine."""
    def expm1(self, /) -> Tensor:
        """Return exp(x) - 1, accurate near 0."""
    def floor(self, /) -> Tensor:
        """Round towards minus infinity."""
    def isfinite(self, /) -> Tensor:
        """Return whether each element is a finite number."""
    def isinf(self, /) -> Tensor:
        """Return whether each element is infinite."""
    def isnan(self, /) -> Tensor:
        """Return whether each element is NaN."""
    def log10(self, /) -> Tensor:
        """Return the logarithm to base 10."""
    def log1p(self, /) -> Tensor:
        """Return log(1 + x), accurate near 0."""
    def log2(self, /) -> Tensor:
        """Return the logarithm to base 2."""
    def logical_not(self, /) -> Tensor:
        """Return the logical NOT: whether each element is false."""
    def negative(self, /) -> Tensor:
        """Negate each element."""
    def reciprocal(self, /) -> Tensor:
        """Return the reciprocal, ``1 / x``."""
    def round(self, /) -> Tensor:
        """Round to the nearest integer; halves round to the nearest even integer."""
    def sign(self, /) -> Tensor:
        """Return the sign: -1, 0 or 1; for a complex number, ``x / abs(x)``."""
    def signbit(self, /) -> Tensor:
        """Return whether the sign bit is set, as for negative numbers and -0."""
    def sin(self, /) -> Tensor:
        """Return the sine."""
    def sinh(self, /) -> Tensor:
        """Return the hyperbolic sine."""
    def square(self, /) -> Tensor:
        """Return the square."""
    def tan(self, /) -> Tensor:
        """Return the tangent."""
    def trunc(self, /) -> Tensor:
        """Round towards zero."""
    def add(self, other: ArrayLike, *, alpha: Scalar = 1) -> Tensor:
        """Add `other`, times the number `alpha`: see `xgrad.add`."""
    def atan2(self, x2: ArrayLike, /) -> Tensor:
        """Return the angle of the point (x2, x1), from -pi to pi."""
    def bitwise_and(self, x2: ArrayLike, /) -> Tensor:
        """Return the bitwise AND; for bools, the logical AND."""
    def bitwise_or(self, x2: ArrayLike, /) -> Tensor:
        """Return the bitwise OR; for bools, the logical OR."""
    def bitwise_xor(self, x2: ArrayLike, /) -> Tensor:
        """Return the bitwise XOR; for bools, the logical XOR."""
    def copysign(self, x2: ArrayLike, /) -> Tensor:
        """Return the magnitude of `x1` with the sign of `x2`."""
    def divide(self, other: ArrayLike, *, rounding_mode: str | None = None) -> Tensor:
        """Divide, and round the quotient down ("floor"), towards zero ("trunc") or not at all."""
    def floor_divide(self, x2: ArrayLike, /) -> Tensor:
        """Divide `x1` by `x2` and round towards minus infinity."""
    def greater(self, x2: ArrayLike, /) -> Tensor:
        """Return whether `x1` is greater than `x2`."""
    def greater_equal(self, x2: ArrayLike, /) -> Tensor:
        """Return whether `x1` is greater than or equal to `x2`."""
    def hypot(self, x2: ArrayLike, /) -> Tensor:
        """Return sqrt(x1 * x1 + x2 * x2) without overflow; the derivative at the origin is 0."""
    def less(self, x2: ArrayLike, /) -> Tensor:
        """Return whether `x1` is less than `x2`."""
    def less_equal(self, x2: ArrayLike, /) -> Tensor:
        """Return whether `x1` is less than or equal to `x2`."""
    def logaddexp(self, x2: ArrayLike, /) -> Tensor:
        """Return log(exp(x1) + exp(x2)) without overflow."""
    def logical_and(self, x2: ArrayLike, /) -> Tensor:
        """Return the logical AND: whether both elements are true."""
    def logical_or(self, x2: ArrayLike, /) -> Tensor:
        """Return the logical OR: whether at least one element is true."""
    def logical_xor(self, x2: ArrayLike, /) -> Tensor:
        """Return the logical XOR: whether exactly one element is true."""
    def maximum(self, x2: ArrayLike, /) -> Tensor:
        """Return the larger of two elements; on ties, both get half of the gradient."""
    def minimum(self, x2: ArrayLike, /) -> Tensor:
        """Return the smaller of two elements; on ties, both get half of the gradient."""
    def multiply(self, x2: ArrayLike, /) -> Tensor:
        """Multiply element by element."""
    def not_equal(self, x2: ArrayLike, /) -> Tensor:
        """Return whether elements differ."""
    def pow(self, x2: ArrayLike, /) -> Tensor:
        """Raise `x1` to the power of `x2`."""
    def remainder(self, x2: ArrayLike, /) -> Tensor:
        """Return the remainder of `floor_divide`, with the sign of the divisor."""
    def subtract(self, other: ArrayLike, *, alpha: Scalar = 1) -> Tensor:
        """Subtract `other`, times the number `alpha`: see `xgrad.subtract`."""
    def matmul(self, x2: ArrayLike, /) -> Tensor:
        """Return the matrix product."""
    def absolute(self, /) -> Tensor:
        """Return the absolute value; the derivative at 0 is 0."""
    def bitwise_not(self) -> Tensor:
        """Invert every bit; for bools, return the logical NOT."""
    def neg(self, /) -> Tensor:
        """Negate each element."""
    def div(self, other: ArrayLike, *, rounding_mode: str | None = None) -> Tensor:
        """Divide, and round the quotient down ("floor"), towards zero ("trunc") or not at all."""
    def true_divide(self, x2: ArrayLike, /) -> Tensor:
        """Divide `x1` by `x2`."""
    def eq(self, other: ArrayLike, /) -> Tensor:
        """Return whether elements are equal."""
    def ge(self, x2: ArrayLike, /) -> Tensor:
        """Return whether `x1` is greater than or equal to `x2`."""
    def gt(self, x2: ArrayLike, /) -> Tensor:
        """Return whether `x1` is greater than `x2`."""
    def le(self, x2: ArrayLike, /) -> Tensor:
        """Return whether `x1` is less than or equal to `x2`."""
    def lt(self, x2: ArrayLike, /) -> Tensor:
        """Return whether `x1` is less than `x2`."""
    def ne(self, x2: ArrayLike, /) -> Tensor:
        """Return whether elements differ."""
    def mul(self, x2: ArrayLike, /) -> Tensor:
        """Multiply element by element."""
    def sub(self, other: ArrayLike, *, alpha: Scalar = 1) -> Tensor:
        """Subtract `other`, times the number `alpha`: see `xgrad.subtract`."""
    def mm(self, x2: ArrayLike, /) -> Tensor:
        """Return the matrix product."""
    def bmm(self, x2: ArrayLike, /) -> Tensor:
        """Return the matrix product."""
    def rsqrt(self) -> Tensor:
        """Return 1 divided by the square root of each element."""
    def clamp(self, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Tensor:
        """Return the elements, limited to at least `min` and at most `max`: see `xgrad.clip`."""
    def masked_fill(self, mask: ArrayLike, value: ArrayLike) -> Tensor:
        """Return this tensor with `value` where `mask` is True."""
    def outer(self, vec2: ArrayLike) -> Tensor:
        """Return the products of all pairs of elements of two vectors: see `xgrad.linalg.outer`."""
    def where(self, condition: ArrayLike, other: ArrayLike) -> Tensor:
        """Return this tensor where `condition` is True, and `other` elsewhere."""
    def dot(self, tensor: Tensor) -> Tensor:
        """Return the inner product of two vectors."""
    def amax(self, dim: Dim = None, keepdim: bool = False) -> Tensor:
        """Return the maximum over axes, or over all: see `xgrad.max`."""
    def amin(self, dim: Dim = None, keepdim: bool = False) -> Tensor:
        """Return the minimum over axes, or over all: see `xgrad.min`."""
    def argsort(self, dim: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
        """Return the indices that sort this tensor along an axis: see `xgrad.argsort`."""
    def count_nonzero(self, dim: Dim = None) -> Tensor:
        """Return the number of nonzero elements over axes, or of all."""
    def cumprod(self, dim: int, dtype: Any = None) -> Tensor:
        """Return the products of the elements so far along an axis: see `xgrad.cumulative_prod`."""
    def cumsum(self, dim: int, dtype: Any = None) -> Tensor:
        """Return the sums of the elements so far along an axis: see `xgrad.cumulative_sum`."""
    def diff(self, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
        """Return the differences of neighbours along an axis, `n` times: see `xgrad.diff`."""
    def flip(self, dims: int | Sequence[int], *more: int) -> Tensor:
        """Return this tensor with the elements along axes in reverse order."""
    def index_select(self, dim: int, index: Tensor) -> Tensor:
        """Return the slices at an index along an axis: see `xgrad.take`."""
    def log_softmax(self, dim: int, dtype: Any = None) -> Tensor:
        """Return the logarithm of `softmax` along an axis."""
    def logsumexp(self, dim: Dim, keepdim: bool = False) -> Tensor:
        """Return the logarithm of the sum of exponentials over axes: see `xgrad.logsumexp`."""
    def norm(self, p: Any = 2, dim: Dim = None, keepdim: bool = False) -> Tensor:
        """Return the vector norm over axes, or of all elements: see `xgrad.linalg.vector_norm`."""
    def repeat_interleave(self, repeats: int | Tensor, dim: int | None = None) -> Tensor:
        """Return this tensor with each element repeated: see `xgrad.repeat`."""
    def roll(self, shifts: int | tuple[int, ...], dims: Dim = None) -> Tensor:
        """Return this tensor with its elements shifted along axes, around the end."""
    def softmax(self, dim: int, dtype: Any = None) -> Tensor:
        """Return exponentials divided by their sum along an axis."""
    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        """Return the slices along an axis: see `xgrad.unstack`."""
    def gather(self, dim: int, index: Tensor) -> Tensor:
        """Return the elements at indices along an axis."""
    def expand_as(self, other: Tensor) -> Tensor:
        """Return this tensor broadcast to the shape of another."""
    def movedim(self, source: int | tuple[int, ...], destination: int | tuple[int, ...]) -> Tensor:
        """Return this tensor with axes in other places: see `xgrad.moveaxis`."""
    def permute(self, dims: int | Sequence[int], *more: int) -> Tensor:
        """Return this tensor with its axes in another order: see `xgrad.permute_dims`."""
    def ravel(self) -> Tensor:
        """Return the elements as a vector, in row order."""
    def reshape_as(self, other: Tensor) -> Tensor:
        """Return the same elements in the shape of another tensor."""
    def t(self) -> Tensor:
        """Return the transpose of a matrix, or a tensor with fewer axes as it is."""
    def tile(self, *dims: int | Sequence[int]) -> Tensor:
        """Return this tensor repeated along its axes: see `xgrad.tile`."""
    def tril(self, diagonal: int = 0) -> Tensor:
        """Return the lower triangles of matrices, with zeros above a diagonal: see `xgrad.tril`."""
    def triu(self, diagonal: int = 0) -> Tensor:
        """Return the upper triangles of matrices, with zeros below a diagonal: see `xgrad.triu`."""
    def unsqueeze(self, dim: int) -> Tensor:
        """Return this tensor with a new axis of length 1 at `dim`."""
    def view(self, *shape: int | Sequence[int]) -> Tensor:
        """Return a view of this tensor in another shape; ValueError if that needs a copy."""
    def view_as(self, other: Tensor) -> Tensor:
        """Return a view of this tensor in the shape of another."""
    def expand(self, *sizes: int | Sequence[int]) -> Tensor:
        """Return this tensor broadcast to a shape, in which -1 keeps a length."""
    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Tensor:
        """Return this tensor with the axes from `start_dim` to `end_dim` as one."""
    def transpose(self, dim0: int, dim1: int) -> Tensor:
        """Return this tensor with two axes exchanged."""
    def clone(self) -> Tensor:
        """Return a copy of this tensor; differentiable."""
    def contiguous(self) -> Tensor:
        """Return this tensor, or a copy in row order if it is a view in another order."""
    def cuda(self, device: Any = None, non_blocking: bool = False) -> Tensor:
        """Return this tensor on a GPU, by default the current one."""
    def dim(self) -> int:
        """Return the number of axes."""
    def element_size(self) -> int:
        """Return the size of an element in bytes."""
    def is_complex(self) -> bool:
        """Return whether the dtype is complex."""
    def is_floating_point(self) -> bool:
        """Return whether the dtype is a real floating one."""
    def new_full(
        self, size: int | tuple[int, ...], fill_value: Scalar | Tensor, **options: Any
    ) -> Tensor:
        """Return a tensor full of a value, with this dtype and device."""
    def new_ones(self, *size: int | Sequence[int], **options: Any) -> Tensor:
        """Return a tensor of ones, with this dtype and device."""
    def new_zeros(self, *size: int | Sequence[int], **options: Any) -> Tensor:
        """Return a tensor of zeros, with this dtype and device."""
    def numel(self) -> int:
        """Return the number of elements."""
    def type_as(self, other: Tensor) -> Tensor:
        """Return this tensor in the dtype and on the device of another."""
    def copy_(self, src: ArrayLike) -> Tensor:
        """Copy the values of another tensor into this one, and return it."""
    def fill_(self, value: ArrayLike) -> Tensor:
        """Give every element the same value, and return this tensor."""
    def masked_fill_(self, mask: ArrayLike, value: ArrayLike) -> Tensor:
        """Give the elements where `mask` is True a value, and return this tensor."""
    def zero_(self) -> Tensor:
        """Give every element the value 0, and return this tensor."""
    def abs_(self) -> Tensor:
        """Replace each element by its absolute value, and return this tensor."""
    def add_(self, other: ArrayLike, *, alpha: Scalar = 1) -> Tensor:
        """Add `other`, times the number `alpha`, to this tensor, and return it."""
    def clamp_(self, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Tensor:
        """Limit the elements to at least `min` and at most `max`, and return this tensor."""
    def div_(self, other: ArrayLike, *, rounding_mode: str | None = None) -> Tensor:
        """Divide this tensor, round the quotient as `div` does, and return it."""
    def exp_(self) -> Tensor:
        """Replace each element by its exponential, and return this tensor."""
    def mul_(self, other: ArrayLike) -> Tensor:
        """Multiply this tensor, and return it."""
    def neg_(self) -> Tensor:
        """Negate this tensor, and return it."""
    def pow_(self, exponent: ArrayLike) -> Tensor:
        """Raise this tensor to a power, and return it."""
    def sqrt_(self) -> Tensor:
        """Replace each element by its square root, and return this tensor."""
    def sub_(self, other: ArrayLike, *, alpha: Scalar = 1) -> Tensor:
        """Subtract `other`, times the number `alpha`, from this tensor, and return it."""
    def clip(self, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Tensor:
        """Return the elements, limited to at least `min` and at most `max`: see `xgrad.clip`."""
    def moveaxis(self, source: int | tuple[int, ...], destination: int | tuple[int, ...]) -> Tensor:
        """Return this tensor with axes in other places: see `xgrad.moveaxis`."""
    def swapaxes(self, dim0: int, dim1: int) -> Tensor:
        """Return this tensor with two axes exchanged."""
    def clip_(self, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Tensor:
        """Limit the elements to at least `min` and at most `max`, and return this tensor."""
    def divide_(self, other: ArrayLike, *, rounding_mode: str | None = None) -> Tensor:
        """Divide this tensor, round the quotient as `div` does, and return it."""
    def multiply_(self, other: ArrayLike) -> Tensor:
        """Multiply this tensor, and return it."""
    def subtract_(self, other: ArrayLike, *, alpha: Scalar = 1) -> Tensor:
        """Subtract `other`, times the number `alpha`, from this tensor, and return it."""
    def clamp_min(self, min: ArrayLike) -> Tensor:
        """Return the elements, limited to at least `min`."""
    def clamp_max(self, max: ArrayLike) -> Tensor:
        """Return the elements, limited to at most `max`."""
    def erf(self) -> Tensor:
        """Return the error function: see `xgrad.special.erf`."""
    def frac(self) -> Tensor:
        """Return the fractional part of each element, with its sign."""
    def lerp(self, end: Tensor, weight: Tensor | float) -> Tensor:
        """Return this tensor plus `weight` times its difference from `end`."""
    def addcmul(self, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1) -> Tensor:
        """Add the product of two tensors, times a number."""
    def addcdiv(self, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1) -> Tensor:
        """Add the quotient of two tensors, times a number."""
    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1) -> Tensor:
        """Return `beta` times this tensor plus `alpha` times a product of matrices."""
    def baddbmm(
        self, batch1: Tensor, batch2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1
    ) -> Tensor:
        """Return `beta` times this tensor plus `alpha` times products of a batch of matrices."""
    def fmod(self, other: ArrayLike) -> Tensor:
        """Return the remainder of a division, with the sign of this tensor: see `xgrad.fmod`."""
    def nan_to_num(
        self, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
    ) -> Tensor:
        """Return this tensor with numbers for NaNs and infinities: see `xgrad.nan_to_num`."""
    def topk(
        self, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
    ) -> tuple[Tensor, Tensor]:
        """Return the `k` largest elements along an axis and their indices: see `xgrad.topk`."""
    def isclose(
        self, other: ArrayLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
    ) -> Tensor:
        """Return whether elements are equal within a tolerance: see `xgrad.isclose`."""
    def allclose(
        self, other: ArrayLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
    ) -> bool:
        """Return whether all elements are equal within a tolerance: see `xgrad.allclose`."""
    def bincount(self, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
        """Return how often each integer occurs: see `xgrad.bincount`."""
    def cov(self, *, correction: float = 1, fweights: Any = None, aweights: Any = None) -> Tensor:
        """Return the covariance matrix of variables, one a row: see `xgrad.cov`."""
    def corrcoef(self) -> Tensor:
        """Return the matrix of correlation coefficients of variables: see `xgrad.corrcoef`."""
    def split(self, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
        """Return views of parts along an axis, of one length but for the last, or of given ones."""
    def chunk(self, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
        """Return views of up to `chunks` parts along an axis, of one length but for the last."""
    def tensor_split(
        self, indices_or_sections: int | Sequence[int], dim: int = 0
    ) -> tuple[Tensor, ...]:
        """Return views of parts along an axis: nearly equal ones, or split at indices."""
    def narrow(self, dim: int, start: int, length: int) -> Tensor:
        """Return a view of `length` elements along an axis, from `start` on."""
    def unfold(self, dimension: int, size: int, step: int) -> Tensor:
        """Return the windows that slide along an axis, as a new last axis; a copy, not a view."""
    def masked_select(self, mask: Tensor) -> Tensor:
        """Return the elements where `mask` is True, as a vector."""
    def scatter(
        self,
        dim: int,
        index: Tensor,
        src: ArrayLike | None = None,
        *,
        value: ArrayLike | None = None,
    ) -> Tensor:
        """Return a copy with elements of `src`, or one number, at indices along an axis."""
    def scatter_add(self, dim: int, index: Tensor, src: Tensor) -> Tensor:
        """Return a copy with elements of `src` added at indices along an axis."""
    def index_add(self, dim: int, index: Tensor, source: Tensor, *, alpha: Scalar = 1) -> Tensor:
        """Return a copy with slices of `source`, times `alpha`, added at indices along an axis."""
    def index_copy(self, dim: int, index: Tensor, source: Tensor) -> Tensor:
        """Return a copy with slices of `source` at indices along an axis."""
    def index_fill(self, dim: int, index: Tensor, value: ArrayLike) -> Tensor:
        """Return a copy with a number in the slices at indices along an axis."""
    def scatter_(
        self,
        dim: int,
        index: Tensor,
        src: ArrayLike | None = None,
        *,
        value: ArrayLike | None = None,
    ) -> Tensor:
        """Write elements of `src`, or a number, at indices along an axis; return this tensor."""
    def scatter_add_(self, dim: int, index: Tensor, src: Tensor) -> Tensor:
        """Add elements of `src` at indices along an axis, and return this tensor."""
    def index_add_(self, dim: int, index: Tensor, source: Tensor, *, alpha: Scalar = 1) -> Tensor:
        """Add slices of `source`, times `alpha`, at indices along an axis; return this tensor."""
    def index_copy_(self, dim: int, index: Tensor, source: Tensor) -> Tensor:
        """Write slices of `source` at indices along an axis, and return this tensor."""
    def index_fill_(self, dim: int, index: Tensor, value: ArrayLike) -> Tensor:
        """Write a number to the slices at indices along an axis, and return this tensor."""
    def addcmul_(self, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1) -> Tensor:
        """Add the product of two tensors, times a number, to this tensor, and return it."""
    def addcdiv_(self, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1) -> Tensor:
        """Add the quotient of two tensors, times a number, to this tensor, and return it."""
    def addmm_(self, mat1: Tensor, mat2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1) -> Tensor:
        """Give this tensor the value of `addmm`, and return it."""
    def clamp_min_(self, min: ArrayLike) -> Tensor:
        """Limit the elements to at least `min`, and return this tensor."""
    def clamp_max_(self, max: ArrayLike) -> Tensor:
        """Limit the elements to at most `max`, and return this tensor."""
    def fmod_(self, other: ArrayLike) -> Tensor:
        """Give this tensor the value of `fmod`, and return it."""
    def lerp_(self, end: Tensor, weight: Tensor | float) -> Tensor:
        """Add `weight` times the difference from `end` to this tensor, and return it."""
    def nan_to_num_(
        self, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
    ) -> Tensor:
        """Replace NaNs and infinities by numbers, and return this tensor."""
    def fliplr(self) -> Tensor:
        """Return this tensor with its second axis in reverse order."""
    def flipud(self) -> Tensor:
        """Return this tensor with its first axis in reverse order."""
    def rot90(self, k: int = 1, dims: int | Sequence[int] = (0, 1)) -> Tensor:
        """Return this tensor turned `k` times by 90 degrees, from the first axis to the second."""
    def byte(self) -> Tensor:
        """Return this tensor as `xgrad.uint8`."""
    def half(self) -> Tensor:
        """Return this tensor as `xgrad.float16`."""
    def short(self) -> Tensor:
        """Return this tensor as `xgrad.int16`."""
    def bernoulli(self, p: Any = None, *, generator: Any = None) -> Tensor:
        """Return random zeros and ones: one with the probabilities of this tensor, or `p`."""
    def bool(self) -> Tensor:
        """Return this tensor as `xgrad.bool`."""
    def double(self) -> Tensor:
        """Return this tensor as `xgrad.float64`."""
    def float(self) -> Tensor:
        """Return this tensor as `xgrad.float32`."""
    def int(self) -> Tensor:
        """Return this tensor as `xgrad.int32`."""
    def long(self) -> Tensor:
        """Return this tensor as `xgrad.int64`."""
