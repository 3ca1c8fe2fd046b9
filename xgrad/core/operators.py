"""Operators and common methods of tensors, each a function of the namespace."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from xgrad.core import providers
from xgrad.core.fast_paths import binary_fast_path, unary_fast_path
from xgrad.core.namespace import namespace
from xgrad.core.precision import WIDE

if TYPE_CHECKING:
    from xgrad.core.namespace import Tensor


def _one(name: str) -> Callable[[Any], Tensor]:
    """Return a unary op as a method, without a call around it."""
    return unary_fast_path(name, lambda: getattr(namespace, name).function, autocast=name in WIDE)


def _two(name: str) -> Callable[[Any, Any], Tensor]:
    """Return a binary op as a method, without a call around it."""
    casts = name == "matmul" or name in WIDE
    return binary_fast_path(name, lambda: getattr(namespace, name).function, autocast=casts)


def _reflected(name: str) -> Callable[[Any, Any], Tensor]:
    """Return a binary op with its operands exchanged.

    The first operand is a number, for which there is no fast path.
    """
    return lambda self, other: getattr(namespace, name).function(other, self)


def _in_place(name: str) -> Callable[[Any, Any], Tensor]:
    """Return a binary op as an operator in place."""
    return lambda self, other: namespace.ops.writing.update(self, getattr(namespace, name), other)


Axis = int | tuple[int, ...] | None


class Operators:
    """Operators and methods that forward to functions."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Answer a ufunc of NumPy, such as ``np.exp(tensor)`` and ``ndarray + tensor``."""
        return providers.module("numpy_protocol").call_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        """Answer another function of NumPy, such as ``np.sum(tensor)``."""
        return providers.module("numpy_protocol").call_function(function, args, options)

    def __getitem__(self: Any, key: Any) -> Tensor:
        return namespace.ops.getitem(self, key)

    def __setitem__(self: Any, key: Any, value: Any) -> None:
        namespace.ops.writing.write(self, key, value)

    __add__ = _two("add")
    __radd__ = _reflected("add")
    __sub__ = _two("subtract")
    __rsub__ = _reflected("subtract")
    __mul__ = _two("multiply")
    __rmul__ = _reflected("multiply")
    __truediv__ = _two("divide")
    __rtruediv__ = _reflected("divide")
    __pow__ = _two("pow")
    __rpow__ = _reflected("pow")
    __matmul__ = _two("matmul")

    def __rmatmul__(self, other: Any) -> Tensor:
        return namespace.matmul(other, self)

    def __floordiv__(self, other: Any) -> Tensor:
        return namespace.floor_divide(self, other)

    def __rfloordiv__(self, other: Any) -> Tensor:
        return namespace.floor_divide(other, self)

    __mod__ = _two("remainder")

    def __rmod__(self, other: Any) -> Tensor:
        return namespace.remainder(other, self)

    def __and__(self, other: Any) -> Tensor:
        return namespace.bitwise_and(self, other)

    def __rand__(self, other: Any) -> Tensor:
        return namespace.bitwise_and(other, self)

    def __or__(self, other: Any) -> Tensor:
        return namespace.bitwise_or(self, other)

    def __ror__(self, other: Any) -> Tensor:
        return namespace.bitwise_or(other, self)

    def __xor__(self, other: Any) -> Tensor:
        return namespace.bitwise_xor(self, other)

    def __rxor__(self, other: Any) -> Tensor:
        return namespace.bitwise_xor(other, self)

    def __lshift__(self, other: Any) -> Tensor:
        return namespace.bitwise_left_shift(self, other)

    def __rlshift__(self, other: Any) -> Tensor:
        return namespace.bitwise_left_shift(other, self)

    def __rshift__(self, other: Any) -> Tensor:
        return namespace.bitwise_right_shift(self, other)

    def __rrshift__(self, other: Any) -> Tensor:
        return namespace.bitwise_right_shift(other, self)

    def __eq__(self, other: object) -> Tensor:  # type: ignore[override]
        return NotImplemented if other is None else namespace.equal(self, other)

    def __ne__(self, other: object) -> Tensor:  # type: ignore[override]
        return NotImplemented if other is None else namespace.not_equal(self, other)

    __lt__ = _two("less")
    __le__ = _two("less_equal")
    __gt__ = _two("greater")
    __ge__ = _two("greater_equal")
    __neg__ = _one("negative")

    def __pos__(self) -> Tensor:
        return namespace.positive(self)

    __abs__ = _one("abs")

    def __invert__(self) -> Tensor:
        return namespace.bitwise_invert(self)

    __iadd__ = _in_place("add")
    __isub__ = _in_place("subtract")
    __imul__ = _in_place("multiply")
    __itruediv__ = _in_place("divide")
    __ipow__ = _in_place("pow")
    __imatmul__ = _in_place("matmul")
    __iand__ = _in_place("bitwise_and")
    __ior__ = _in_place("bitwise_or")
    __ixor__ = _in_place("bitwise_xor")
    __ilshift__ = _in_place("bitwise_left_shift")
    __irshift__ = _in_place("bitwise_right_shift")
    __ifloordiv__ = _in_place("floor_divide")
    __imod__ = _in_place("remainder")

    # Functions of the same names
    exp = _one("exp")
    log = _one("log")
    sqrt = _one("sqrt")
    abs = _one("abs")
    tanh = _one("tanh")
    conj = _one("conj")
    sigmoid = _one("sigmoid")
    relu = _one("relu")

    def astype(self: Any, dtype: Any) -> Tensor:
        return namespace.astype(self, dtype)

    def squeeze(self: Any, axis: Axis = None) -> Tensor:
        return namespace.squeeze(
            self, tuple([i for i, n in enumerate(self.shape) if n == 1]) if axis is None else axis
        )

    # ... with other options
    def sum(self, axis: Axis = None, keepdims: bool = False, **more: Any) -> Tensor:
        return (partial(namespace.sum, **more) if more else namespace.sum)(
            self, axis=axis, keepdims=keepdims
        )

    def mean(self, axis: Axis = None, keepdims: bool = False, **more: Any) -> Tensor:
        return (partial(namespace.mean, **more) if more else namespace.mean)(
            self, axis=axis, keepdims=keepdims
        )

    def prod(self, axis: Axis = None, keepdims: bool = False, **more: Any) -> Tensor:
        return (partial(namespace.prod, **more) if more else namespace.prod)(
            self, axis=axis, keepdims=keepdims
        )

    def max(self, axis: Axis = None, keepdims: bool = False, **more: Any) -> Tensor:
        return (partial(namespace.max, **more) if more else namespace.max)(
            self, axis=axis, keepdims=keepdims
        )

    def min(self, axis: Axis = None, keepdims: bool = False, **more: Any) -> Tensor:
        return (partial(namespace.min, **more) if more else namespace.min)(
            self, axis=axis, keepdims=keepdims
        )

    def any(self, axis: Axis = None, keepdims: bool = False, **more: Any) -> Tensor:
        return (partial(namespace.any, **more) if more else namespace.any)(
            self, axis=axis, keepdims=keepdims
        )

    def all(self, axis: Axis = None, keepdims: bool = False, **more: Any) -> Tensor:
        return (partial(namespace.all, **more) if more else namespace.all)(
            self, axis=axis, keepdims=keepdims
        )

    def argmax(self, axis: int | None = None, keepdims: bool = False, **more: Any) -> Tensor:
        return (partial(namespace.argmax, **more) if more else namespace.argmax)(
            self, axis=axis, keepdims=keepdims
        )

    def argmin(self, axis: int | None = None, keepdims: bool = False, **more: Any) -> Tensor:
        return (partial(namespace.argmin, **more) if more else namespace.argmin)(
            self, axis=axis, keepdims=keepdims
        )

    def var(
        self, axis: Axis = None, correction: float = 0, keepdims: bool = False, **more: Any
    ) -> Tensor:
        return (partial(namespace.var, **more) if more else namespace.var)(
            self, axis=axis, correction=correction, keepdims=keepdims
        )

    def std(
        self, axis: Axis = None, correction: float = 0, keepdims: bool = False, **more: Any
    ) -> Tensor:
        return (partial(namespace.std, **more) if more else namespace.std)(
            self, axis=axis, correction=correction, keepdims=keepdims
        )

    def reshape(self, *shape: Any) -> Tensor:
        """Return the same elements in another shape, given as numbers or as one tuple."""
        return namespace.reshape(
            self, shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        )
