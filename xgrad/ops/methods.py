"""Operators and methods of tensors that are ops: one table, which `ops` registers on `Tensor`.

A method with the name and the signature of an op is that op: ``Tensor.__mul__ is xgrad.multiply``,
with its documentation. The others are functions of this file, whose docstrings have their own
parameters and name the op: they are written out here, as `help` and editors show them.
`torch_methods` has the ones with PyTorch's names; ``core/methods.pyi`` declares all of them for
type checkers and editors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Never

from xgrad.backend.device import Device
from xgrad.core.arguments import ArrayLike
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


def __setitem__(self: Tensor, key: Any, value: ArrayLike) -> None:
    writing.write(self, key, value)


def __iter__(self: Tensor) -> Iterator[Tensor]:
    if self.ndim == 1 or (self._edge is not None and grad_enabled.get() and self.ndim):
        # one gradient for all rows, not one of full size for each
        return iter(joining.unstack(self))
    return (self[i, ...] if self.ndim > 1 else self[i] for i in range(len(self)))


def __eq__(self: Tensor, other: object) -> Tensor:
    return NotImplemented if other is None else elementwise.equal(self, other)  # type: ignore[arg-type]


def __ne__(self: Tensor, other: object) -> Tensor:
    return NotImplemented if other is None else elementwise.not_equal(self, other)  # type: ignore[arg-type]


def __pos__(self: Tensor) -> Tensor:
    return elementwise.positive(self)


def __invert__(self: Tensor) -> Tensor:
    return elementwise.bitwise_invert(self)


def __lshift__(self: Tensor, other: ArrayLike) -> Tensor:
    return elementwise.bitwise_left_shift(self, other)


def __rshift__(self: Tensor, other: ArrayLike) -> Tensor:
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

    Parameters
    ----------
    device : str, Device, int, dtype or Tensor, optional
        The device, by name or as the number of a GPU; a dtype; or a tensor with both.
    dtype : dtype, optional
        The dtype of the result.
    non_blocking : bool, default False
        Accepted, and without effect.
    copy : bool, default False
        Whether the result is a copy also where nothing changes.

    Returns
    -------
    Tensor
        Of the same shape.

    Raises
    ------
    TypeError
        If the device is none, or a dtype is given beside a tensor.
    DeviceError
        If the device is unknown or cannot be used.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.asarray([1, 2])
    >>> x.to(xgrad.float32), x.to("cpu") is x
    (Tensor([1., 2.]), True)
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
    """Return this tensor on another device: the standard's name for `to`.

    Parameters
    ----------
    device : str or Device
        The device.
    stream : None
        Streams of devices are not supported.
    """
    if stream is not None:
        raise ValueError(f"to_device: expected stream=None, got {shown(stream)}")
    return self.to(device)


def cpu(self: Tensor) -> Tensor:
    """Return this tensor on the CPU."""
    return self.to("cpu")


def astype(self: Tensor, dtype: Any) -> Tensor:
    """Return a copy of this tensor in a dtype.

    Parameters
    ----------
    dtype : dtype or str
        The dtype, such as `xgrad.float64` or ``"float64"``.

    Returns
    -------
    Tensor
        A copy, also if the dtype is the same; differentiable between floating dtypes.
    """
    return as_dtype(self, dtype)


@explained
def squeeze(self: Tensor, axis: Axis = None) -> Tensor:
    """Return this tensor without axes of length 1: all of them, or the given ones.

    Parameters
    ----------
    axis : int or tuple of int, optional
        The axes to leave out, each of length 1; by default all of length 1.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.ones((1, 3, 1))
    >>> x.squeeze().shape, x.squeeze(0).shape
    ((3,), (3, 1))
    """
    if axis is None:
        axis = tuple([i for i, n in enumerate(self.shape) if n == 1])
    return manipulation.squeeze(self, axis)


def reshape(self: Tensor, *shape: int | Sequence[int]) -> Tensor:
    """Return the same elements in another shape, given as numbers or as one tuple.

    Parameters
    ----------
    *shape : int or tuple of int
        The lengths of the axes; one may be -1, which stands for the length that fits.

    Returns
    -------
    Tensor
        A view of this tensor if the order of its elements allows it: see `xgrad.reshape`.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.arange(6)
    >>> x.reshape(2, 3).shape, x.reshape((3, -1)).shape
    ((2, 3), (3, 2))
    """
    sizes: Any = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
    return manipulation.reshape(self, sizes)


# Reductions, whose options also go by position. Without further options, a call takes the fast
# path; the op explains options that it does not have, as `dim` is.


def sum(
    self: Tensor,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    dtype: Any = None,
    **unknown: Never,
) -> Tensor:
    """Return the sum over axes, or over all: see `xgrad.sum`.

    Parameters
    ----------
    axis : int or tuple of int, optional
        The axes to reduce; by default all.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.
    dtype : dtype, optional
        The dtype of the computation and the result.

    Returns
    -------
    Tensor
        Of the shape of this tensor without the reduced axes.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> x.sum(), x.sum(0), x.sum(axis=-1, keepdims=True)
    (Tensor(10.), Tensor([4., 6.]), Tensor([[3.],
            [7.]]))
    """
    if dtype is not None or unknown:
        return statistical.sum(self, axis=axis, keepdims=keepdims, dtype=dtype, **unknown)
    return statistical.sum(self, axis=axis, keepdims=keepdims)


def mean(self: Tensor, axis: Axis = None, keepdims: bool = False, **unknown: Never) -> Tensor:
    """Return the mean over axes, or over all: see `xgrad.mean`.

    Parameters
    ----------
    axis : int or tuple of int, optional
        The axes to reduce; by default all.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of the shape of this tensor without the reduced axes.
    """
    if unknown:
        return statistical.mean(self, axis=axis, keepdims=keepdims, **unknown)
    return statistical.mean(self, axis=axis, keepdims=keepdims)


def prod(
    self: Tensor,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    dtype: Any = None,
    **unknown: Never,
) -> Tensor:
    """Return the product over axes, or over all: see `xgrad.prod`.

    Parameters
    ----------
    axis : int or tuple of int, optional
        The axes to reduce; by default all.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.
    dtype : dtype, optional
        The dtype of the computation and the result.

    Returns
    -------
    Tensor
        Of the shape of this tensor without the reduced axes.
    """
    if dtype is not None or unknown:
        return statistical.prod(self, axis=axis, keepdims=keepdims, dtype=dtype, **unknown)
    return statistical.prod(self, axis=axis, keepdims=keepdims)


def max(self: Tensor, axis: Axis = None, keepdims: bool = False, **unknown: Never) -> Tensor:
    """Return the maximum over axes, or over all: see `xgrad.max`.

    Parameters
    ----------
    axis : int or tuple of int, optional
        The axes to reduce; by default all.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of the shape of this tensor without the reduced axes.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.asarray([[1.0, 5.0], [3.0, 4.0]])
    >>> x.max(), x.max(axis=0), x.argmax(axis=0)
    (Tensor(5.), Tensor([3., 5.]), Tensor([1, 0]))
    """
    if unknown:
        return statistical.max(self, axis=axis, keepdims=keepdims, **unknown)
    return statistical.max(self, axis=axis, keepdims=keepdims)


def min(self: Tensor, axis: Axis = None, keepdims: bool = False, **unknown: Never) -> Tensor:
    """Return the minimum over axes, or over all: see `xgrad.min`.

    Parameters
    ----------
    axis : int or tuple of int, optional
        The axes to reduce; by default all.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of the shape of this tensor without the reduced axes.
    """
    if unknown:
        return statistical.min(self, axis=axis, keepdims=keepdims, **unknown)
    return statistical.min(self, axis=axis, keepdims=keepdims)


def any(self: Tensor, axis: Axis = None, keepdims: bool = False, **unknown: Never) -> Tensor:
    """Return whether any element over axes, or of all, is nonzero: see `xgrad.any`.

    Parameters
    ----------
    axis : int or tuple of int, optional
        The axes to reduce; by default all.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of bools, of the shape of this tensor without the reduced axes.
    """
    if unknown:
        return statistical.any(self, axis=axis, keepdims=keepdims, **unknown)
    return statistical.any(self, axis=axis, keepdims=keepdims)


def all(self: Tensor, axis: Axis = None, keepdims: bool = False, **unknown: Never) -> Tensor:
    """Return whether all elements over axes, or all, are nonzero: see `xgrad.all`.

    Parameters
    ----------
    axis : int or tuple of int, optional
        The axes to reduce; by default all.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of bools, of the shape of this tensor without the reduced axes.
    """
    if unknown:
        return statistical.all(self, axis=axis, keepdims=keepdims, **unknown)
    return statistical.all(self, axis=axis, keepdims=keepdims)


def argmax(
    self: Tensor, axis: int | None = None, keepdims: bool = False, **unknown: Never
) -> Tensor:
    """Return the index of the maximum along an axis, or of all: see `xgrad.argmax`.

    Parameters
    ----------
    axis : int, optional
        The axis to search; by default all elements, in row order.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of int64; the first index of equal elements.
    """
    if unknown:
        return searching.argmax(self, axis=axis, keepdims=keepdims, **unknown)
    return searching.argmax(self, axis=axis, keepdims=keepdims)


def argmin(
    self: Tensor, axis: int | None = None, keepdims: bool = False, **unknown: Never
) -> Tensor:
    """Return the index of the minimum along an axis, or of all: see `xgrad.argmin`.

    Parameters
    ----------
    axis : int, optional
        The axis to search; by default all elements, in row order.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of int64; the first index of equal elements.
    """
    if unknown:
        return searching.argmin(self, axis=axis, keepdims=keepdims, **unknown)
    return searching.argmin(self, axis=axis, keepdims=keepdims)


def var(
    self: Tensor, axis: Axis = None, correction: float = 0, keepdims: bool = False, **unknown: Never
) -> Tensor:
    """Return the variance over axes, or over all: see `xgrad.var`.

    Parameters
    ----------
    axis : int or tuple of int, optional
        The axes to reduce; by default all.
    correction : float, default 0
        What is subtracted from the number of elements in the divisor; 1 is PyTorch's default.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of the shape of this tensor without the reduced axes.
    """
    if unknown:
        return statistical.var(self, axis=axis, correction=correction, keepdims=keepdims, **unknown)
    return statistical.var(self, axis=axis, correction=correction, keepdims=keepdims)


def std(
    self: Tensor, axis: Axis = None, correction: float = 0, keepdims: bool = False, **unknown: Never
) -> Tensor:
    """Return the standard deviation over axes, or over all: see `xgrad.std`.

    Parameters
    ----------
    axis : int or tuple of int, optional
        The axes to reduce; by default all.
    correction : float, default 0
        What is subtracted from the number of elements in the divisor; 1 is PyTorch's default.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of the shape of this tensor without the reduced axes.
    """
    if unknown:
        return statistical.std(self, axis=axis, correction=correction, keepdims=keepdims, **unknown)
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
