"""A tensor's operators, and the methods that habit demands: all of them functions of its namespace."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xgrad as namespace
    from xgrad.tensor import Tensor
else:
    # Found when they are called: the functions are written in terms of tensors, so to import them is a circle.
    namespace = sys.modules[__name__.partition(".")[0]]

__all__ = ["Operators", "namespace"]

Axis = int | tuple[int, ...] | None


class Operators:
    """The part of `Tensor` that forwards to functions."""

    __slots__ = ()
    __array_ufunc__ = None  # so that `ndarray + tensor` asks the tensor
    __hash__ = object.__hash__

    # fmt: off
    def __getitem__(self: Any, key: Any) -> Tensor: return namespace.ops.getitem(self, key)
    def __add__(self, other: Any) -> Tensor: return namespace.add(self, other)
    def __radd__(self, other: Any) -> Tensor: return namespace.add(other, self)
    def __sub__(self, other: Any) -> Tensor: return namespace.subtract(self, other)
    def __rsub__(self, other: Any) -> Tensor: return namespace.subtract(other, self)
    def __mul__(self, other: Any) -> Tensor: return namespace.multiply(self, other)
    def __rmul__(self, other: Any) -> Tensor: return namespace.multiply(other, self)
    def __truediv__(self, other: Any) -> Tensor: return namespace.divide(self, other)
    def __rtruediv__(self, other: Any) -> Tensor: return namespace.divide(other, self)
    def __pow__(self, other: Any) -> Tensor: return namespace.pow(self, other)
    def __rpow__(self, other: Any) -> Tensor: return namespace.pow(other, self)
    def __matmul__(self, other: Any) -> Tensor: return namespace.matmul(self, other)
    def __rmatmul__(self, other: Any) -> Tensor: return namespace.matmul(other, self)
    def __floordiv__(self, other: Any) -> Tensor: return namespace.floor_divide(self, other)
    def __rfloordiv__(self, other: Any) -> Tensor: return namespace.floor_divide(other, self)
    def __mod__(self, other: Any) -> Tensor: return namespace.remainder(self, other)
    def __rmod__(self, other: Any) -> Tensor: return namespace.remainder(other, self)
    def __and__(self, other: Any) -> Tensor: return namespace.bitwise_and(self, other)
    def __rand__(self, other: Any) -> Tensor: return namespace.bitwise_and(other, self)
    def __or__(self, other: Any) -> Tensor: return namespace.bitwise_or(self, other)
    def __ror__(self, other: Any) -> Tensor: return namespace.bitwise_or(other, self)
    def __xor__(self, other: Any) -> Tensor: return namespace.bitwise_xor(self, other)
    def __rxor__(self, other: Any) -> Tensor: return namespace.bitwise_xor(other, self)
    def __lshift__(self, other: Any) -> Tensor: return namespace.bitwise_left_shift(self, other)
    def __rlshift__(self, other: Any) -> Tensor: return namespace.bitwise_left_shift(other, self)
    def __rshift__(self, other: Any) -> Tensor: return namespace.bitwise_right_shift(self, other)
    def __rrshift__(self, other: Any) -> Tensor: return namespace.bitwise_right_shift(other, self)
    def __eq__(self, other: object) -> Tensor: return NotImplemented if other is None else namespace.equal(self, other)  # type: ignore[override]
    def __ne__(self, other: object) -> Tensor: return NotImplemented if other is None else namespace.not_equal(self, other)  # type: ignore[override]
    def __lt__(self, other: Any) -> Tensor: return namespace.less(self, other)
    def __le__(self, other: Any) -> Tensor: return namespace.less_equal(self, other)
    def __gt__(self, other: Any) -> Tensor: return namespace.greater(self, other)
    def __ge__(self, other: Any) -> Tensor: return namespace.greater_equal(self, other)
    def __neg__(self) -> Tensor: return namespace.negative(self)
    def __pos__(self) -> Tensor: return namespace.positive(self)
    def __abs__(self) -> Tensor: return namespace.abs(self)
    def __invert__(self) -> Tensor: return namespace.bitwise_invert(self)

    # The methods that habit demands: the functions of the same names
    def exp(self) -> Tensor: return namespace.exp(self)
    def log(self) -> Tensor: return namespace.log(self)
    def sqrt(self) -> Tensor: return namespace.sqrt(self)
    def abs(self) -> Tensor: return namespace.abs(self)
    def tanh(self) -> Tensor: return namespace.tanh(self)
    def sigmoid(self) -> Tensor: return namespace.sigmoid(self)
    def relu(self) -> Tensor: return namespace.relu(self)
    def astype(self: Any, dtype: Any) -> Tensor: return namespace.astype(self, dtype)
    def squeeze(self, axis: int | tuple[int, ...]) -> Tensor: return namespace.squeeze(self, axis)
    def sum(self, axis: Axis = None, keepdims: bool = False) -> Tensor: return _reduce(namespace.sum, self, axis, keepdims)
    def mean(self, axis: Axis = None, keepdims: bool = False) -> Tensor: return _reduce(namespace.mean, self, axis, keepdims)
    def prod(self, axis: Axis = None, keepdims: bool = False) -> Tensor: return _reduce(namespace.prod, self, axis, keepdims)
    def max(self, axis: Axis = None, keepdims: bool = False) -> Tensor: return _reduce(namespace.max, self, axis, keepdims)
    def min(self, axis: Axis = None, keepdims: bool = False) -> Tensor: return _reduce(namespace.min, self, axis, keepdims)
    def any(self, axis: Axis = None, keepdims: bool = False) -> Tensor: return _reduce(namespace.any, self, axis, keepdims)
    def all(self, axis: Axis = None, keepdims: bool = False) -> Tensor: return _reduce(namespace.all, self, axis, keepdims)
    def argmax(self, axis: int | None = None, keepdims: bool = False) -> Tensor: return _reduce(namespace.argmax, self, axis, keepdims)
    def argmin(self, axis: int | None = None, keepdims: bool = False) -> Tensor: return _reduce(namespace.argmin, self, axis, keepdims)
    def var(self, axis: Axis = None, correction: float = 0, keepdims: bool = False) -> Tensor: return namespace.var(self, axis=axis, correction=correction, keepdims=keepdims)
    def std(self, axis: Axis = None, correction: float = 0, keepdims: bool = False) -> Tensor: return namespace.std(self, axis=axis, correction=correction, keepdims=keepdims)

    def reshape(self, *shape: Any) -> Tensor:
        """Return the same elements in another shape, given as numbers or as one tuple."""
        return namespace.reshape(self, shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)
    # fmt: on


def _reduce(op: Callable[..., Tensor], x: Any, axis: Axis, keepdims: bool) -> Tensor:
    return op(x, axis=axis, keepdims=keepdims)
