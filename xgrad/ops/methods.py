"""Operators and methods of tensors that are ops: one table, which `ops` registers on `Tensor`.

A method with the name and the signature of an op is that op: ``Tensor.__mul__ is
xgrad.multiply``. The others are functions of this file. `torch_methods` has the ones with PyTorch's
names; ``core/methods.pyi`` declares all of them for type checkers and editors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from xgrad.backend.device import Device
from xgrad.core.methods import named
from xgrad.core.modes import grad_enabled
from xgrad.core.tensor import Tensor
from xgrad.ops import elementwise, indexing, joining, manipulation, searching, statistical, writing
from xgrad.ops.matrix_products import matmul
from xgrad.ops.tensor_conversion import asarray
from xgrad.ops.tensor_conversion import astype as as_dtype
from xgrad.ops.tensor_conversion import to_device as on_device
from xgrad.support.hints import explained, shown

Axis = int | tuple[int, ...] | None
Method = Callable[..., Any]


def _reflected(name: str, op: Any) -> Method:
    """Return a binary op with its operands exchanged.

    The first operand is a number, for which there is no fast path.
    """

    def method(self: Tensor, other: Any) -> Any:
        return op.function(other, self)

    return named(method, f"__r{name}__")


def _in_place(name: str, op: Any) -> Method:
    """Return a binary op as an operator in place."""

    def method(self: Tensor, other: Any) -> Tensor:
        return writing.update(self, op, other)

    return named(method, f"__i{name}__")


# Operators whose ops are not methods under their own names.


def __getitem__(self: Tensor, key: Any) -> Tensor:
    return indexing.getitem(self, key)


def __setitem__(self: Tensor, key: Any, value: Any) -> None:
    writing.write(self, key, value)


def __iter__(self: Tensor) -> Iterator[Tensor]:
    if self.ndim == 1 or (self._edge is not None and grad_enabled.get() and self.ndim):
        # one gradient for all rows, not one of full size for each
        return iter(joining.unstack(self))
    return (self[i, ...] if self.ndim > 1 else self[i] for i in range(len(self)))


def __eq__(self: Tensor, other: object) -> Tensor:
    return NotImplemented if other is None else elementwise.equal(self, other)


def __ne__(self: Tensor, other: object) -> Tensor:
    return NotImplemented if other is None else elementwise.not_equal(self, other)


def __pos__(self: Tensor) -> Tensor:
    return elementwise.positive(self)


def __invert__(self: Tensor) -> Tensor:
    return elementwise.bitwise_invert(self)


def __lshift__(self: Tensor, other: Any) -> Tensor:
    return elementwise.bitwise_left_shift(self, other)


def __rshift__(self: Tensor, other: Any) -> Tensor:
    return elementwise.bitwise_right_shift(self, other)


def _transpose(self: Tensor) -> Tensor:
    """The transpose of a matrix."""
    if len(self._data.shape) != 2:
        raise ValueError(f"T: expected a matrix, got shape {self.shape}: use .mT or permute_dims")
    return manipulation.matrix_transpose(self)


def _transpose_of_each(self: Tensor) -> Tensor:
    """The transpose of each matrix in the last two axes."""
    return manipulation.matrix_transpose(self)


def to(
    self: Tensor,
    device: Any = None,
    dtype: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
) -> Tensor:
    """Return this tensor on another device, in another dtype, or both; differentiable.

    As in PyTorch, the first argument may be a dtype, or a tensor that has both. `non_blocking` has
    no effect: transfers are in order with the computation. Without `copy`, the result is this
    tensor itself where nothing changes.
    """
    if not (device is None or isinstance(device, (str, Device))):
        device, dtype = _target(device, dtype)
    if type(non_blocking) is not bool or type(copy) is not bool:
        name, value = (
            ("copy", copy) if type(non_blocking) is bool else ("non_blocking", non_blocking)
        )
        raise TypeError(f"to: expected a bool for {name}, got {shown(value)}")
    out = self if device is None else on_device(self, device)
    out = out if dtype is None else as_dtype(out, dtype, copy=False)
    return asarray(self, copy=True) if copy and out is self else out


def _target(target: Any, dtype: Any) -> tuple[Any, Any]:
    """Return the device and the dtype to which `to` moves, given a tensor, an index or a dtype."""
    if isinstance(target, int) and not isinstance(target, bool):
        return f"cuda:{target}", dtype
    if dtype is not None:
        expected = "no dtype beside a tensor" if isinstance(target, Tensor) else "a device"
        raise TypeError(f"to: expected {expected}, got {shown(target)} and dtype {shown(dtype)}")
    return (target.device, target.dtype) if isinstance(target, Tensor) else (None, target)


def to_device(self: Tensor, device: str | Device, /, *, stream: Any = None) -> Tensor:
    """Return this tensor on another device: the standard's name for `to`."""
    if stream is not None:
        raise ValueError(f"to_device: expected stream=None, got {shown(stream)}")
    return self.to(device)


def cpu(self: Tensor) -> Tensor:
    """Return this tensor on the CPU."""
    return self.to("cpu")


def astype(self: Tensor, dtype: Any) -> Tensor:
    """Return a copy of this tensor in a dtype."""
    return as_dtype(self, dtype)


@explained
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
    if more:
        return statistical.prod(self, axis=axis, keepdims=keepdims, **more)
    return statistical.prod(self, axis=axis, keepdims=keepdims)


def max(self: Tensor, axis: Axis = None, keepdims: bool = False, **more: Any) -> Tensor:
    """Return the maximum over axes, or over all: see `xgrad.max`."""
    if more:
        return statistical.max(self, axis=axis, keepdims=keepdims, **more)
    return statistical.max(self, axis=axis, keepdims=keepdims)


def min(self: Tensor, axis: Axis = None, keepdims: bool = False, **more: Any) -> Tensor:
    """Return the minimum over axes, or over all: see `xgrad.min`."""
    if more:
        return statistical.min(self, axis=axis, keepdims=keepdims, **more)
    return statistical.min(self, axis=axis, keepdims=keepdims)


def any(self: Tensor, axis: Axis = None, keepdims: bool = False, **more: Any) -> Tensor:
    """Return whether any element over axes, or of all, is nonzero: see `xgrad.any`."""
    if more:
        return statistical.any(self, axis=axis, keepdims=keepdims, **more)
    return statistical.any(self, axis=axis, keepdims=keepdims)


def all(self: Tensor, axis: Axis = None, keepdims: bool = False, **more: Any) -> Tensor:
    """Return whether all elements over axes, or all, are nonzero: see `xgrad.all`."""
    if more:
        return statistical.all(self, axis=axis, keepdims=keepdims, **more)
    return statistical.all(self, axis=axis, keepdims=keepdims)


def argmax(self: Tensor, axis: int | None = None, keepdims: bool = False, **more: Any) -> Tensor:
    """Return the index of the maximum along an axis, or of all: see `xgrad.argmax`."""
    if more:
        return searching.argmax(self, axis=axis, keepdims=keepdims, **more)
    return searching.argmax(self, axis=axis, keepdims=keepdims)


def argmin(self: Tensor, axis: int | None = None, keepdims: bool = False, **more: Any) -> Tensor:
    """Return the index of the minimum along an axis, or of all: see `xgrad.argmin`."""
    if more:
        return searching.argmin(self, axis=axis, keepdims=keepdims, **more)
    return searching.argmin(self, axis=axis, keepdims=keepdims)


def var(
    self: Tensor, axis: Axis = None, correction: float = 0, keepdims: bool = False, **more: Any
) -> Tensor:
    """Return the variance over axes, or over all: see `xgrad.var`."""
    if more:
        return statistical.var(self, axis=axis, correction=correction, keepdims=keepdims, **more)
    return statistical.var(self, axis=axis, correction=correction, keepdims=keepdims)


def std(
    self: Tensor, axis: Axis = None, correction: float = 0, keepdims: bool = False, **more: Any
) -> Tensor:
    """Return the standard deviation over axes, or over all: see `xgrad.std`."""
    if more:
        return statistical.std(self, axis=axis, correction=correction, keepdims=keepdims, **more)
    return statistical.std(self, axis=axis, correction=correction, keepdims=keepdims)


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
    **{f"__r{name}__": _reflected(name, op) for name, op in _OPERATORS.items()},
    **{f"__i{name}__": _in_place(name, op) for name, op in _OPERATORS.items()},
    "__lshift__": __lshift__,
    "__rshift__": __rshift__,
    "__eq__": __eq__,
    "__ne__": __ne__,
    "__lt__": elementwise.less,
    "__le__": elementwise.less_equal,
    "__gt__": elementwise.greater,
    "__ge__": elementwise.greater_equal,
    "__neg__": elementwise.negative,
    "__pos__": __pos__,
    "__abs__": elementwise.abs,
    "__invert__": __invert__,
    "__getitem__": __getitem__,
    "__setitem__": __setitem__,
    "__iter__": __iter__,
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
