"""Conversion of data to tensors, and of tensors to other dtypes and devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from xgrad.backend.device import Device
from xgrad.backend.devices import current_device, device_of, transfer
from xgrad.backend.recording import active_recorder, cast, copy_of, run_array_code
from xgrad.core.arguments import as_tensor
from xgrad.core.dtypes import (
    KINDS,
    SCALARS,
    as_scalar,
    check_standard,
    defaults,
    is_complex,
    is_standard,
)
from xgrad.core.function import Function
from xgrad.core.tensor import Tensor, from_array
from xgrad.ops.declare import derivative
from xgrad.ops.dtype_functions import result_type
from xgrad.ops.joining import stack
from xgrad.support.hints import shown

__all__ = ["asarray", "astype", "to_device"]


def asarray(
    obj: Any,
    /,
    *,
    dtype: Any = None,
    device: str | Device | None = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    r"""Convert values of any form to a tensor; tensors keep their graph.

    Parameters
    ----------
    obj : scalar, nested sequence, array or Tensor
        The values. Python floats become float32, the default dtype, and ints int64; arrays keep
        their dtype. A sequence may hold tensors of one shape on one device, which are stacked.
    dtype : dtype, optional
        The dtype of the result.
    device : str or Device, optional
        The device of the result; by default the device of `obj`, or the `default_device` for values
        from the host.
    copy : bool, optional
        True always copies, False raises an error instead, and None copies only where necessary.
        Shared memory must not be written to while a graph needs it.
    requires_grad : bool, default False
        Whether the result is a leaf that requires a gradient.

    Returns
    -------
    Tensor
        Same shape as `obj`.

    Raises
    ------
    TypeError
        If `obj` is not numeric, or `dtype` is invalid.
    ValueError
        If `obj` is ragged, or ``copy=False`` and it must be copied.
    OverflowError
        If Python integers are out of the range of the dtype.

    Notes
    -----
    .. math:: y = x

    - Gradient for `obj`: :math:`\bar y`, in the dtype and on the device of each tensor in it

    Python array API standard, creation functions: ``asarray``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.asarray([1.0, 2.0], dtype=xgrad.float64)
    Tensor([1., 2.], dtype=float64)
    """
    if isinstance(obj, (list, tuple)) and (tensors := _tensors(obj)):
        if copy is False:
            raise ValueError("asarray: copy=False, but tensors must be copied to be put together")
        stacked = _stacked(
            obj, result_type(*_leaves(obj)) if dtype is None else dtype, tensors[0].device
        )
        stacked = stacked if device is None else to_device(stacked, device)
        return stacked.detach().requires_grad_() if requires_grad else stacked
    if isinstance(obj, Tensor) and not requires_grad:
        moved = obj if device is None else to_device(obj, device)
        made = astype(moved, moved.dtype if dtype is None else dtype, copy=bool(copy))
        if copy is False and made is not obj:
            raise ValueError("asarray: copy=False, but another dtype or device needs a copy")
        return made
    tensor = from_array(*_to_array(obj, dtype=dtype, device=device, copy=copy))
    return tensor.requires_grad_() if requires_grad else tensor


def _leaves(values: Any, depth: int = 1) -> Iterator[Any]:
    """Yield the leaves of nested sequences.

    Raises ValueError if the sequences are nested deeper than NumPy's arrays, or cyclic.
    """
    if depth > 64:
        raise ValueError(
            "Tensor: expected at most 64 axes, got sequences nested deeper, or one that contains"
            " itself"
        )
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _leaves(value, depth + 1)
        else:
            yield value


def _tensors(values: Sequence[Any]) -> list[Tensor]:
    """Return the tensors in nested sequences.

    Long lists of numbers are recognized by the types of their elements alone.
    """
    kinds = set(map(type, values))
    if any(issubclass(kind, (Tensor, list, tuple)) for kind in kinds):
        return [value for value in _leaves(values) if isinstance(value, Tensor)]
    return []


def _stacked(values: Any, dtype: Any, device: Device) -> Tensor:
    """Return a tensor of nested sequences that contain tensors, all on one device."""
    if not isinstance(values, (list, tuple)):
        return asarray(values, dtype=dtype, device=None if isinstance(values, Tensor) else device)
    parts = [_stacked(value, dtype, device) for value in values]
    if len({part.shape for part in parts}) > 1:
        raise ValueError(
            "Tensor: expected numbers of a regular shape, got shapes"
            f" {[part.shape for part in parts]}"
        )
    return stack(parts) if parts else asarray([], dtype=dtype, device=device)


def _to_array(
    data: Any, *, dtype: Any = None, device: str | Device | None = None, copy: bool | None = None
) -> tuple[Any, Device]:
    """Return the array and the device of values of any form."""
    given_tensor = isinstance(data, Tensor)
    data = data if given_tensor or isinstance(data, np.generic) else as_scalar(data)
    if not given_tensor and (recorder := active_recorder()) is not None:
        leaves = _leaves(data) if isinstance(data, (list, tuple)) else [data]
        arrays = [x for x in leaves if getattr(x, "shape", ())]
        if not arrays:
            return recorder.constant(lambda: _to_array(data, dtype=dtype, device=device, copy=copy))
        recorder.refuse(
            f"a {type(arrays[0]).__name__} becomes a tensor: pass a tensor as an argument"
        )
    host = type(data) in SCALARS or isinstance(data, (list, tuple))
    if given_tensor:
        raw, source = data._data, data.device
    elif not host and (device_of_data := device_of(data)) is not None:
        source = device_of_data
        raw = _host_array(data, data.dtype) if isinstance(data, np.ndarray) else data
        raw = raw if isinstance(raw, source.array_type) else source.as_array(raw)
    else:
        if copy is False and host:
            raise ValueError(f"asarray: copy=False, but a {type(data).__name__} must be copied")
        raw, source, copy = _host_array(data, dtype), Device("cpu"), None if host else copy
    if device is None and not given_tensor and isinstance(raw, np.ndarray):
        device = current_device()
    target = source if device is None else Device(device)
    if dtype is not None:
        dtype = target.backend.numpy_dtype(native_dtype(dtype, target))
    # A cast on the host works for dtypes that the target lacks, and leaves less to transfer.
    first = _cast(raw, dtype, source, host) if isinstance(raw, np.ndarray) else raw
    moved = _cast(transfer(first, source, target), dtype, target, host)
    if copy is False and moved is not raw:
        raise ValueError("asarray: copy=False, but another dtype or device needs a copy")
    if copy and moved is raw:
        with target.active():
            moved = run_array_code(target, copy_of, moved)
    return moved, target


def _cast(x: Any, dtype: np.dtype | None, device: Device, host: bool) -> Any:
    """Return a device's array in a dtype; `host` tells whether it was made of Python numbers."""
    if dtype is None or (wanted := device.backend.dtype(dtype)) == x.dtype:
        return x
    check_cast("asarray", x.dtype, dtype)
    if host:
        check_range("asarray", x, dtype)
    with device.active():
        return run_array_code(device, cast, x, wanted)


def check_range(name: str, values: np.ndarray, dtype: np.dtype) -> None:
    """Raise OverflowError for Python integers out of the range of an integer dtype."""
    if values.size and values.dtype.kind in "iu" and dtype.kind in "iu":
        least, most, limits = int(values.min()), int(values.max()), np.iinfo(dtype)
        if least < limits.min or most > limits.max:
            raise OverflowError(
                f"{name}: expected integers that {dtype} holds, got {least} to {most}"
            )


def _host_array(data: Any, dtype: Any) -> np.ndarray:
    """Return values other than backend arrays as a NumPy array.

    Python floats get the default dtype.
    """
    if type(data) is np.ndarray and is_standard(data.dtype):
        return data
    try:
        host = np.asarray(data)
    except (ValueError, TypeError) as error:
        raise type(error)(
            f"Tensor: expected numbers of a regular shape, got {type(data).__name__}: {error}"
        ) from error
    if host.dtype.kind not in "biufc" or hasattr(data, "mask"):
        raise TypeError(
            f"Tensor: expected numbers, got {type(data).__name__} of dtype {host.dtype}"
        )
    if (
        dtype is None
        and host.dtype.kind in "fc"
        and (type(data) in SCALARS or isinstance(data, (list, tuple)))
    ):
        return host.astype(defaults()[KINDS[host.dtype.kind]])
    host = host.astype(host.dtype.newbyteorder("="), copy=False)
    check_standard(host.dtype)
    return host


@derivative(lambda g: g, holomorphic=False)  # the engine casts a gradient to the dtype of its input
def _astype(xp: Any, x: Any, /, *, dtype: Any) -> Any:
    return xp.astype(x, dtype)


def astype(
    x: Tensor, dtype: Any, /, *, copy: bool = True, device: str | Device | None = None
) -> Tensor:
    r"""Convert a tensor to another dtype.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    dtype : dtype
        A dtype of `xgrad` or NumPy, or its name.
    copy : bool, default True
        False may return `x` itself where the dtype is the same.
    device : str or Device, optional
        The device of the result; by default the device of `x`.

    Returns
    -------
    Tensor
        Same shape as `x`. No gradient flows through integers and bools.

    Raises
    ------
    TypeError
        If `dtype` is invalid, or complex numbers would become real: use `xgrad.real`.

    Notes
    -----
    .. math:: y = x

    - Gradient for `x`: :math:`\bar y` in the dtype of `x`

    Python array API standard, data type functions: ``astype``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.astype(xgrad.asarray([1.5, -1.5]), xgrad.int64)
    Tensor([ 1, -1])
    """
    x = as_tensor("astype", "x", x)
    if device is not None:
        x = to_device(x, device)
    target = native_dtype(dtype, x.device)
    if target == x._data.dtype and not copy:
        return x
    if x.dtype.kind == "c":
        check_cast("astype", x.dtype, target)
    return _astype(x, dtype=target)


def check_cast(name: str, dtype: Any, target: Any) -> None:
    """Raise TypeError where complex numbers would become real."""
    if is_complex(dtype) and not (is_complex(target) or "bool" in str(target)):
        raise TypeError(
            f"{name}: expected a complex dtype for {dtype}, got {target}: take xgrad.real first"
        )


def native_dtype(dtype: Any, device: Device) -> Any:
    """Convert a dtype to the dtype of a device's library."""
    try:
        native = device.backend.dtype(dtype)
        check_standard(device.backend.numpy_dtype(native))
    except (TypeError, KeyError) as error:
        lacks = f", which {device.backend.library} lacks" if isinstance(error, KeyError) else ""
        raise TypeError(
            f"dtype: expected one such as xgrad.float32, got {shown(dtype)}{lacks}"
        ) from error
    return native


def _move_gradient(g: Any, x_device: Device, device: Device) -> Any:
    """Transfer a gradient to the device of its tensor.

    In a recorded backward pass it is a tensor, else an array.
    """
    return (
        _to_device(g, device=x_device) if isinstance(g, Tensor) else transfer(g, device, x_device)
    )


class _ToDevice(Function):
    """The only op with a result on another device than its input."""

    name, cross_device, holomorphic, own_rule = "to_device", True, False, False

    @staticmethod
    def forward(xp: Any, x: Any, *, device: Device) -> Any:
        return x

    @staticmethod
    def backward(xp: Any, g: Any, x_device: Device, device: Device) -> Any:
        return _move_gradient(g, x_device, device)


_to_device = _ToDevice()


def to_device(x: Tensor, device: str | Device, /) -> Tensor:
    r"""Move a tensor to another device.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    device : str or Device
        The device of the result.

    Returns
    -------
    Tensor
        `x` itself if it is already on the device.

    Raises
    ------
    DeviceError
        If the device is unknown or cannot be used.

    Notes
    -----
    .. math:: y = x

    - Gradient for `x`: :math:`\bar y` on the device of `x`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.to_device(xgrad.ones(2), "cpu").device
    Device('cpu')
    """
    x, target = as_tensor("to_device", "x", x), Device(device)
    return x if x.device.root is target.root else _to_device(x, device=target)
