"""Operators and methods of tensors that are ops: one table, which `ops` registers on `Tensor`.

A method with the name and the signature of an op is that op: ``Tensor.__mul__ is
xgrad.multiply``. The others are functions of this file. `torch_methods` has the ones with PyTorch's
names; ``core/methods.pyi`` declares all of them for type checkers and editors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from xgrad.backend.device import Device
from xgrad.core.grad_mode import grad_enabled
from xgrad.core.tensor import Tensor
from xgrad.ops import elementwise, indexing, joining, manipulation, searching, statistical, writing
from xgrad.ops.matrix_products import matmul
from xgrad.ops.tensor_conversion import astype as as_dtype
from xgrad.ops.tensor_conversion import to_device as on_device
from xgrad.support.hints import shown

Axis = int | tuple[int, ...] | None
Method = Callable[..., Any]


def _reflected(op: Any) -> Method:
    """Return a binary op with its operands exchanged.

    The first operand is a number, for which there is no fast path.
    """
    return lambda self, other: op.function(other, self)


def _in_place(op: Any) -> Method:
    """Return a binary op as an operator in place."""
    return lambda self, other: writing.update(self, op, other)


def _equal(self: Tensor, other: object) -> Any:
    return NotImplemented if other is None else elementwise.equal(self, other)


def _not_equal(self: Tensor, other: object) -> Any:
    return NotImplemented if other is None else elementwise.not_equal(self, other)


def _items(self: Tensor) -> Iterator[Tensor]:
    if self.ndim == 1 or (self._edge is not None and grad_enabled.get() and self.ndim):
        # one gradient for all rows, not one of full size for each
        return iter(joining.unstack(self))
    return (self[i, ...] if self.ndim > 1 else self[i] for i in range(len(self)))


def _transpose(self: Tensor) -> Tensor:
    """The transpose of a matrix."""
    if len(self._data.shape) != 2:
        raise ValueError(f"T: expected a matrix, got shape {self.shape}: use .mT or permute_dims")
    return manipulation.matrix_transpose(self)


def _transpose_of_each(self: Tensor) -> Tensor:
    """The transpose of each matrix in the last two axes."""
    return manipulation.matrix_transpose(self)


def to(self: Tensor, device: str | Device | None = None, *, dtype: Any = None) -> Tensor:
    """Return this tensor on another device, in another dtype, or both; differentiable."""
    if not isinstance(device, (str, Device, type(None))):  # to(float32), as in PyTorch
        device, dtype = None, device
    moved = self if device is None else on_device(self, device)
    return moved if dtype is None else as_dtype(moved, dtype, copy=False)


def to_device(self: Tensor, device: str | Device, /, *, stream: Any = None) -> Tensor:
    """Return this tensor on another device: the standard's name for `to`."""
    if stream is not None:
        raise ValueError(f"to_device: expected stream=None, got {shown(stream)}")
    return to(self, device)


def cpu(self: Tensor) -> Tensor:
    """Return this tensor on the CPU."""
    return to(self, "cpu")


def astype(self: Tensor, dtype: Any) -> Tensor:
    """Return a copy of this tensor in a dtype."""
    return as_dtype(self, dtype)


def squeeze(self: Tensor, axis: Axis = None) -> Tensor:
    """Return this tensor without axes of length 1: all of them, or the given ones."""
    if axis is None:
        axis = tuple([i for i, n in enumerate(self.shape) if n == 1])
    return manipulation.squeeze(self, axis)


def reshape(self: Tensor, *shape: Any) -> Tensor:
    """Return the same elements in another shape, given as numbers or as one tuple."""
    return manipulation.reshape(
        self, shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
    )


# Reductions, whose options also go by position. Without `more`, a call takes the fast path.


def sum(self: Tensor, axis: Axis = None, keepdims: bool = False, **more: Any) -> Tensor:
    """Return the sum over axes, or over all: see `xgrad.sum`."""
    if more:
        return statistical.sum(self, axis=axis, keepdims=keepdims, **more)
    return statistical.sum(self, axis=axis, keepdims=keepdims)


def mean(self: Tensor, axis: Axis = None, keepdims: bool = False, **more: Any) -> Tensor:
    """Return the mean over axes, or over all: see `xgrad.mean`."""
    if more:
        return statistical.mean(self, axis=axis, keepdims=keepdims, **more)
    return statistical.mean(self, axis=axis, keepdims=keepdims)


def prod(self: Tensor, axis: Axis = None, keepdims: bool = False, **more: Any) -> Tensor:
    """Return the product over axes, or over all: see `xgrad.prod`."""
    return statistical.prod(self, axis=axis, keepdims=keepdims, **more)


def max(self: Tensor, axis: Axis = None, keepdims: bool = False, **more: Any) -> Tensor:
    """Return the maximum over axes, or over all: see `xgrad.max`."""
    return statistical.max(self, axis=axis, keepdims=keepdims, **more)


def min(self: Tensor, axis: Axis = None, keepdims: bool = False, **more: Any) -> Tensor:
    """Return the minimum over axes, or over all: see `xgrad.min`."""
    return statistical.min(self, axis=axis, keepdims=keepdims, **more)


def any(self: Tensor, axis: Axis = None, keepdims: bool = False, **more: Any) -> Tensor:
    """Return whether any element over axes, or of all, is nonzero: see `xgrad.any`."""
    return statistical.any(self, axis=axis, keepdims=keepdims, **more)


def all(self: Tensor, axis: Axis = None, keepdims: bool = False, **more: Any) -> Tensor:
    """Return whether all elements over axes, or all, are nonzero: see `xgrad.all`."""
    return statistical.all(self, axis=axis, keepdims=keepdims, **more)


def argmax(self: Tensor, axis: int | None = None, keepdims: bool = False, **more: Any) -> Tensor:
    """Return the index of the maximum along an axis, or of all: see `xgrad.argmax`."""
    return searching.argmax(self, axis=axis, keepdims=keepdims, **more)


def argmin(self: Tensor, axis: int | None = None, keepdims: bool = False, **more: Any) -> Tensor:
    """Return the index of the minimum along an axis, or of all: see `xgrad.argmin`."""
    return searching.argmin(self, axis=axis, keepdims=keepdims, **more)


def var(
    self: Tensor, axis: Axis = None, correction: float = 0, keepdims: bool = False, **more: Any
) -> Tensor:
    """Return the variance over axes, or over all: see `xgrad.var`."""
    return statistical.var(self, axis=axis, correction=correction, keepdims=keepdims, **more)


def std(
    self: Tensor, axis: Axis = None, correction: float = 0, keepdims: bool = False, **more: Any
) -> Tensor:
    """Return the standard deviation over axes, or over all: see `xgrad.std`."""
    return statistical.std(self, axis=axis, correction=correction, keepdims=keepdims, **more)


#: Ops of two operands by the names of their operators, which also have a reflected form and one in
#: place: ``__add__``, ``__radd__``, ``__iadd__``.
_OPERATORS = {
    "add": elementwise.add,
    "sub": elementwise.subtract,
    "mul": elementwise.multiply,
    "truediv": elementwise.divide,
    "floordiv": elementwise.floor_divide,
    "mod": elementwise.remainder,
    "pow": elementwise.pow,
    "matmul": matmul,
    "and": elementwise.bitwise_and,
    "or": elementwise.bitwise_or,
    "xor": elementwise.bitwise_xor,
    "lshift": elementwise.bitwise_left_shift,
    "rshift": elementwise.bitwise_right_shift,
}

METHODS: dict[str, Any] = {
    **{f"__{name}__": op for name, op in _OPERATORS.items()},
    **{f"__r{name}__": _reflected(op) for name, op in _OPERATORS.items()},
    **{f"__i{name}__": _in_place(op) for name, op in _OPERATORS.items()},
    "__eq__": _equal,
    "__ne__": _not_equal,
    "__lt__": elementwise.less,
    "__le__": elementwise.less_equal,
    "__gt__": elementwise.greater,
    "__ge__": elementwise.greater_equal,
    "__neg__": elementwise.negative,
    "__pos__": elementwise.positive,
    "__abs__": elementwise.abs,
    "__invert__": elementwise.bitwise_invert,
    "__getitem__": indexing.getitem,
    "__setitem__": writing.write,
    "__iter__": _items,
    "T": property(_transpose),
    "mT": property(_transpose_of_each),
    **{
        op.__name__: op
        for op in (
            elementwise.abs,
            elementwise.conj,
            elementwise.exp,
            elementwise.log,
            elementwise.relu,
            elementwise.sigmoid,
            elementwise.sqrt,
            elementwise.tanh,
        )
    },
    **{
        method.__name__: method
        for method in (
            all, any, argmax, argmin, astype, cpu, max, mean, min, prod, reshape, squeeze, std,
            sum, to, to_device, var,
        )
    },
}  # fmt: skip
