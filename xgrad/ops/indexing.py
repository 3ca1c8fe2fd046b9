"""Indexing: reads and writes of parts of a tensor by key, by index, or along an axis."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from xgrad.backend import DeviceError
from xgrad.backend.device import Device, batching
from xgrad.backend.recording import active_recorder, cast, copy_of, run_array_code
from xgrad.core import providers
from xgrad.core.arguments import ArrayLike, as_tensor
from xgrad.core.dtypes import KINDS, NAMES, SCALAR_KINDS, SCALARS, as_scalar
from xgrad.core.function import Function
from xgrad.core.tensor import Tensor
from xgrad.core.views import link
from xgrad.ops import manipulation
from xgrad.ops.declare import call_op, derivative
from xgrad.ops.dtype_functions import as_operand

__all__ = ["take", "take_along_axis"]

_BOUNDS = frozenset({int, type(None)})  # types of slice bounds that need no conversion
_PLAIN = _BOUNDS | {type(...)}  # types of key parts that need no conversion
_NUMBERS = (np.number, np.bool_, *SCALARS)


def _native_key(key: Any, device: Device) -> Any:
    """Return a key with arrays of the device instead of tensors, NumPy arrays and sequences."""
    if isinstance(key, tuple):
        return tuple(
            [part if type(part) in _PLAIN else _native_key_part(part, device) for part in key]
        )
    return key if type(key) in _PLAIN else _native_key_part(key, device)


def _native_key_part(key: Any, device: Device) -> Any:
    if isinstance(key, slice):
        if type(key.start) in _BOUNDS and type(key.stop) in _BOUNDS and type(key.step) in _BOUNDS:
            return key
        return slice(*[_slice_bound(part) for part in (key.start, key.stop, key.step)])
    if isinstance(key, (np.integer, np.bool_, int)):
        return as_scalar(key)
    if isinstance(key, (list, tuple, range)):
        numbers = providers.module("functions").asarray(
            list(key), device=None if any(isinstance(part, Tensor) for part in key) else device
        )
        key = numbers if numbers.size else providers.module("functions").astype(numbers, np.int64)
    if isinstance(key, Tensor):
        if key.device is not device and device.level > key.device.level:
            key = device.lift(key)  # type: ignore[attr-defined]
        if key.device is not device:
            raise DeviceError(
                f"indexing: expected a key on {device}, where the tensor is, got one on"
                f" {key.device}: move it with .to(device)"
            )
        return _indices(key._data, device)
    # Copy: the user may change the array before the backward pass.
    if (
        isinstance(key, np.ndarray)
        and (recorder := active_recorder()) is not None
        and not recorder.knows(key)
    ):
        recorder.refuse("an array of NumPy is used as an index: pass a tensor as an argument")
    if isinstance(key, device.array_type):
        key = run_array_code(device, copy_of, key)
    elif isinstance(key, np.ndarray):
        key = device.backend.from_host(np.array(key), device.index)
    return _indices(key, device) if isinstance(key, device.array_type) else key


def _indices(key: Any, device: Device) -> Any:
    """Return an index array as bools or int64.

    PyTorch takes uint8 for bools, and refuses other integers.
    """
    dtype = device.backend.numpy_dtype(key.dtype)
    if dtype.kind not in "biu":
        raise IndexError(f"indexing: expected integers or bools, got an array of {dtype}")
    if dtype in (np.bool_, np.int64):
        return key
    return run_array_code(device, cast, key, device.backend.dtype(np.int64))


def _lifted(x: Tensor, key: Any, value: Any = None) -> Tensor:
    """Return `x` as a tensor of a `vmap` if the key or the value belongs to one.

    It is the same for the whole batch.
    """
    for part in (*(key if type(key) is tuple else (key,)), value):
        if isinstance(part, Tensor) and part.device.level > x.device.level:
            x = part.device.lift(x)  # type: ignore[attr-defined]
    return x


def _slice_bound(part: Any) -> int | None:
    if part is not None and not hasattr(part, "__index__"):
        raise TypeError(f"indexing: expected ints or None in a slice, got {type(part).__name__}")
    return None if part is None else operator.index(part)


def _native_device(x: Any) -> Any:
    """Return the device of an array, or None.

    NumPy scalars, which serve as 0-d arrays, have no device before NumPy 2.1.
    """
    return getattr(x, "device", None)


def _getitem_rule(g: Any, xp: Any, x_shape: tuple[int, ...], key: Any) -> Any:
    return call_op(_scatter, xp, g, key=key, shape=x_shape)


@derivative(_getitem_rule)
def _getitem(xp: Any, x: Any, /, *, key: Any) -> Any:
    return x[key]


getitem_function: Function = _getitem.function  # type: ignore[attr-defined]
_BASIC = _PLAIN | {slice}  # types of key parts that select a view


def getitem(x: Tensor, key: Any) -> Tensor:
    r"""Return ``x[key]``.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    key : int, slice, None, Ellipsis, integer or bool array or sequence, or a tuple of these
        As in NumPy. Integer arrays may repeat an index: the gradients add up. With a bool array,
        the shape of the result depends on its values, which synchronizes with a GPU.

    Returns
    -------
    Tensor
        Of the shape that the key selects.

    Raises
    ------
    IndexError
        If an index is out of bounds; on ``cuda``, indices in arrays wrap around instead.
    DeviceError
        If an array in the key is on another device.

    Notes
    -----
    .. math:: y_i = x_{k_i}

    - Gradient for `x`: :math:`\bar x_j = \sum_{i:\, k_i = j} \bar y_i`; the key selects :math:`k_i`
      for element :math:`i` of the result

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> x[[0, 0, 2]].sum().backward()
    >>> x.grad
    Tensor([2., 0., 1.])
    """
    x = as_tensor("getitem", "x", x)
    if batching.get() is not None:
        x = _lifted(x, key)
    raw = _native_key(key, x.device)
    made = _getitem(x, key=raw)
    kind = type(raw)
    if kind in _BASIC if kind is not tuple else _BASIC.issuperset(map(type, raw)):
        if made._data.shape or (... in raw if kind is tuple else raw is ...):
            link(x, made, getitem_function, {"key": raw})
        else:
            as_element(x, made)
    return made


def as_element(x: Tensor, made: Tensor) -> None:
    """Make an element of `x` a value of its own, not a view.

    NumPy's elements are values; elements in other libraries may be views.
    """
    made._view = None
    device = made._placement.device
    if getattr(made._data, "base", made) is not None and device.backend.shares_memory(
        x._data, made._data
    ):
        with device.active():
            made._data = run_array_code(device, copy_of, made._data)


@derivative(lambda g, key: g[key])
def _scatter(xp: Any, x: Any, /, *, key: Any, shape: tuple[int, ...]) -> Any:
    zeros = xp.zeros(shape, dtype=x.dtype, device=_native_device(x))
    return xp.index_add(zeros, key, x)


def scatter(x: Tensor, key: Any, shape: tuple[int, ...]) -> Tensor:
    r"""Return zeros with `x` added at a key: the derivative of `getitem`, and vice versa.

    Parameters
    ----------
    x : Tensor
        Of the shape that `key` selects.
    key : as in `getitem`
        The elements to add to; repeated indices add up.
    shape : tuple of int
        The shape of the result.

    Returns
    -------
    Tensor
        Of the given shape, and of the dtype of `x`.

    Notes
    -----
    .. math:: y_j = \sum_{i:\, k_i = j} x_i

    - Gradient for `x`: :math:`\bar y_{k_i}`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.ops.scatter(xgrad.ones(3), [0, 0, 2], (3,))
    Tensor([2., 0., 1.])
    """
    x = _lifted(x, key)
    return _scatter(x, key=_native_key(key, x.device), shape=shape)


def _zero_assigned(g: Any, xp: Any, key: Any) -> Any:
    """Return a gradient with zeros at a key."""
    return call_op(_setitem, xp, g, 0, key=key)


def _assigned_gradient(g: Any, xp: Any, key: Any) -> Any:
    """Return the gradient of the assigned value.

    Where an index repeats, only the value that stayed gets a gradient.
    """
    selected = g[key]
    parts = key if isinstance(key, tuple) else (key,)
    if not any("int" in str(getattr(part, "dtype", "")) for part in parts):
        return selected
    numbers = xp.reshape(
        xp.arange(math.prod(selected.shape), dtype=xp.int64, device=_native_device(g)),
        selected.shape,
    )
    unassigned = xp.full(g.shape, -1, dtype=xp.int64, device=_native_device(g))
    return xp.where(
        call_op(_setitem, xp, unassigned, numbers, key=key)[key] == numbers, selected, 0
    )


def _assign_to_copy(xp: Any, x: Any, value: Any, key: Any) -> Any:
    """Return a copy of an array with a value assigned at a key."""
    return assign_to(xp, xp.asarray(x, copy=True), value, key)


def assign_to(xp: Any, x: Any, value: Any, key: Any) -> Any:
    """Assign to an array, and return it."""
    if isinstance(value, (bool, int, float, complex)):
        x[key] = value
        return x
    if value.shape and len(value.shape) > len(x[key].shape):
        raise ValueError(f"expected a value that broadcasts to shape {tuple(x[key].shape)}")
    x[key] = value if value.dtype == x.dtype else xp.astype(value, x.dtype, copy=False)
    return x


@derivative(_zero_assigned, _assigned_gradient)
def _setitem(xp: Any, x: Any, value: Any, /, *, key: Any) -> Any:
    return _assign_to_copy(xp, x, value, key)


def setitem(x: Tensor, key: Any, value: Any) -> Tensor:
    r"""Return a copy of `x` in which ``x[key]`` is `value`, as after ``x[key] = value``.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    key : as in `getitem`
        The elements to replace. Where an index repeats, one of its values stays (on ``cpu``, the
        last), and only that value gets a gradient. To add them up instead, see `index_add`.
    value : Tensor, array or scalar
        Of a shape that broadcasts to the selected elements, and of no higher kind than `x`. It is
        cast to the dtype of `x`.

    Returns
    -------
    Tensor
        Of the shape and dtype of `x`.

    Raises
    ------
    ValueError
        If the value does not broadcast to the selected elements.
    TypeError
        If the value is of a higher kind than `x`, such as floats for integers.
    IndexError
        If an index is out of bounds.

    Notes
    -----
    .. math:: y_j = v_i \text{ if } j = k_i, \quad \text{else } x_j

    - Gradient for `x`: :math:`0` at the key, else :math:`\bar y_j`
    - Gradient for `value`: :math:`\bar y_{k_i}`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.ops.setitem(xgrad.zeros(3), slice(1, None), xgrad.ones(2))
    Tensor([0., 1., 1.])
    """
    x, raw, value = assignment_operands(x, key, value)
    made: Tensor = (_setitem if x.is_leaf or not _selects_all(raw, x) else _assign_all)(
        x, value, key=raw
    )
    return made


def assignment_operands(x: Any, key: Any, value: Any) -> tuple[Tensor, Any, Any]:
    """Return the operands of an assignment in the form that kernels take.

    The key has arrays in place of tensors.
    """
    x = as_tensor("setitem", "x", x)
    if batching.get() is not None:
        x = _lifted(x, key, value)
    return x, _native_key(key, x.device), as_value("setitem", x, value)


def as_value(op: str, x: Tensor, value: Any) -> Any:
    """Return a value for elements of `x` as a scalar or a tensor.

    Raise TypeError if it is of a higher kind than `x`.
    """
    if not isinstance(value, _NUMBERS):
        value = as_tensor(op, "value", value)
        kind = KINDS[value._placement.kind]
    else:
        value = value if hasattr(value, "dtype") else as_scalar(value)
        kind = KINDS[value.dtype.kind] if hasattr(value, "dtype") else SCALAR_KINDS[type(value)]
    if kind > KINDS[x._placement.kind]:
        got = getattr(value, "dtype", type(value).__name__)
        raise TypeError(
            f"{op}: expected {NAMES[KINDS[x.dtype.kind]]} for x of {x.dtype}, got {got}: cast first"
        )
    return int(value) if type(value) is bool and x.dtype.kind != "b" else value


class _AssignAll(Function):
    """Assignment to every element: the former elements get no gradient, as 0 * NaN would be NaN.

    The result has a graph nevertheless, since whether a mask is full depends on its values.
    """

    name, replaces, own_rule = "setitem", True, False

    @staticmethod
    def forward(xp: Any, x: Any, value: Any, *, key: Any) -> Any:
        return _assign_to_copy(xp, x, value, key)

    @staticmethod
    def backward(xp: Any, g: Any, key: Any) -> Any:
        return None, g[key]


_assign_all = _AssignAll()


def _all_true(device: Device, mask: Any) -> bool:
    return device.backend.check_true(device.xp.all(mask))


def _selects_all(key: Any, x: Tensor) -> bool:
    """Return whether a key selects every element."""
    if isinstance(key, (slice, tuple, type(Ellipsis))):
        parts = key if isinstance(key, tuple) else (key,)
        return all(
            part is Ellipsis or (type(part) is slice and part == slice(None)) for part in parts
        )
    mask = hasattr(key, "dtype") and x.device.backend.numpy_dtype(key.dtype).kind == "b"
    return mask and run_array_code(x.device, _all_true, key)


def index_add(x: Tensor, key: Any, value: Any) -> Tensor:
    r"""Return `x` with `value` added at a key.

    Values at repeated indices add up, unlike in ``x[key] += value``.

    Parameters
    ----------
    x : Tensor
        Numbers, of any shape.
    key : as in `getitem`
        The elements to add to.
    value : Tensor, array or scalar
        Of a shape that broadcasts to the selected elements.

    Returns
    -------
    Tensor
        Of the shape of `x`, and of the dtype that both promote to.

    Raises
    ------
    ValueError
        If the value does not broadcast to the selected elements.
    IndexError
        If an index is out of bounds.

    Notes
    -----
    .. math:: y_j = x_j + \sum_{i:\, k_i = j} v_i

    - Gradient for `x`: :math:`\bar y`
    - Gradient for `value`: :math:`\bar y_{k_i}`

    Differentiable to any order. On a GPU, floats are added in no fixed order.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.ops.index_add(xgrad.zeros(3), [0, 0, 2], 1.0)
    Tensor([2., 0., 1.])
    """
    x = _lifted(as_tensor("index_add", "x", x), key, value)
    key, value = _native_key(key, x.device), as_operand("index_add", "value", value, x)
    value = (
        x.device.lift(value)  # type: ignore[attr-defined]
        if value.device.level < x.device.level
        else value
    )
    return x + _scatter(
        manipulation.broadcast_to(value, _getitem(x.detach(), key=key).shape),
        key=key,
        shape=x.shape,
    )


def _as_int64(xp: Any, indices: Any) -> Any:
    """Return integer indices as int64: PyTorch takes no others, and shorter ones may overflow."""
    if not xp.isdtype(indices.dtype, "integral"):
        raise IndexError(f"expected indices of integers, got {indices.dtype}")
    return xp.astype(indices, xp.int64, copy=False)


@derivative(lambda g, xp, indices, axis: xp.take(g, indices, axis=axis), None)
def _scatter_add(xp: Any, x: Any, indices: Any, /, *, axis: int, shape: tuple[int, ...]) -> Any:
    r"""Return zeros with slices added at indices along an axis: the derivative of `take`.

    Notes
    -----
    .. math:: y_j = \sum_{i:\, k_i = j} x_i

    - Gradient for `x`: :math:`\bar y_{k_i}`; :math:`k` are the ``indices``
    """
    zeros = xp.zeros(shape, dtype=x.dtype, device=_native_device(x))
    return xp.index_add(zeros, (*(slice(None),) * axis, _as_int64(xp, indices)), x)


def _take_rule(g: Any, xp: Any, x_shape: tuple[int, ...], indices: Any, axis: int | None) -> Any:
    return call_op(
        _scatter_add, xp, g, indices, axis=0 if axis is None else axis % len(x_shape), shape=x_shape
    )


@derivative(_take_rule, None)
def take(xp: Any, x: ArrayLike, indices: ArrayLike, /, *, axis: int | None = None) -> Any:
    r"""Return the slices of `x` at given indices along an axis.

    Parameters
    ----------
    x : Tensor
        Of any dtype, with at least one axis.
    indices : Tensor
        Integers, of shape (n,); the gradients of repeated indices add up.
    axis : int, optional
        The axis to take along; it may be omitted if `x` has only one axis.

    Returns
    -------
    Tensor
        Of the shape of `x`, with length n along `axis`.

    Raises
    ------
    IndexError
        If an index is out of bounds; on ``cuda`` it wraps around instead.
    ValueError
        If `axis` is omitted and `x` does not have one axis.
    DeviceError
        If `x` and `indices` are on different devices.

    Notes
    -----
    .. math:: y_i = x_{k_i}

    - Gradient for `x`: :math:`\bar x_j = \sum_{i:\, k_i = j} \bar y_i`; :math:`k` are the
      ``indices``

    Python array API standard, indexing functions: ``take``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.take(xgrad.asarray([1.0, 2.0, 3.0]), xgrad.asarray([2, 0]))
    Tensor([3., 1.])
    """
    if axis is None and len(x.shape) != 1:
        raise ValueError(f"expected an axis for {len(x.shape)} axes")
    return xp.take(x, _as_int64(xp, indices), axis=0 if axis is None else axis)


@derivative(lambda g, xp, indices, axis: xp.take_along_axis(g, indices, axis=axis), None)
def put_along_axis(xp: Any, x: Any, indices: Any, /, *, axis: int, shape: tuple[int, ...]) -> Any:
    r"""Return zeros with elements added at indices along an axis.

    This is the derivative of `take_along_axis`.

    Notes
    -----
    .. math:: y_{rj} = \sum_{i:\, k_{ri} = j} x_{ri}

    - Gradient for `x`: :math:`\bar y_{r, k_{ri}}`; :math:`k` are the ``indices``, :math:`r` stands
      for the indices along the other axes
    """
    key = [
        xp.reshape(
            xp.arange(n, dtype=xp.int64, device=_native_device(x)),
            (1,) * a + (n,) + (1,) * (len(shape) - 1 - a),
        )
        for a, n in enumerate(shape)
    ]
    key[axis] = _as_int64(xp, indices)
    return xp.index_add(xp.zeros(shape, dtype=x.dtype, device=_native_device(x)), tuple(key), x)


def _take_along_axis_rule(
    g: Any, xp: Any, x_shape: tuple[int, ...], indices: Any, axis: int
) -> Any:
    return call_op(put_along_axis, xp, g, indices, axis=axis % len(x_shape), shape=x_shape)


@derivative(_take_along_axis_rule, None)
def take_along_axis(xp: Any, x: ArrayLike, indices: ArrayLike, /, *, axis: int = -1) -> Any:
    r"""Return elements of `x` at indices along an axis, which may differ along the other axes.

    Parameters
    ----------
    x : Tensor
        Of any dtype, with at least one axis.
    indices : Tensor
        Integers, with as many axes as `x`; all axes but `axis` broadcast.
    axis : int, default -1
        The axis to take along.

    Returns
    -------
    Tensor
        Of the broadcast shape, with the length of `indices` along `axis`.

    Raises
    ------
    IndexError
        If an index is out of bounds; on ``cuda`` it wraps around instead.
    DeviceError
        If `x` and `indices` are on different devices.

    Notes
    -----
    .. math:: y_{ri} = x_{r, k_{ri}}

    - Gradient for `x`: :math:`\bar x_{rj} = \sum_{i:\, k_{ri} = j} \bar y_{ri}`; :math:`k` are the
      ``indices``, and :math:`r` stands for the indices along the other axes

    Python array API standard, indexing functions: ``take_along_axis``.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> xgrad.take_along_axis(x, xgrad.asarray([[1], [0]]), axis=1)
    Tensor([[2.],
            [3.]])
    """
    return xp.take_along_axis(x, _as_int64(xp, indices), axis=axis)
