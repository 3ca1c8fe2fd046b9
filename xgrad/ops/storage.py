"""Ops that change what elements are stored as, or where."""

from __future__ import annotations

from typing import Any

from xgrad.backend.device import Device
from xgrad.backend.devices import transfer
from xgrad.core.arguments import as_tensor
from xgrad.core.dtypes import check_standard, is_complex
from xgrad.core.function import Function
from xgrad.core.tensor import Tensor
from xgrad.ops.declare import derivative
from xgrad.support.hints import shown


@derivative(lambda g: g, holomorphic=False)  # the engine gives a gradient the dtype of its input
def _astype(xp: Any, x: Any, /, *, dtype: Any) -> Any:
    return xp.astype(x, dtype)


def astype(x: Tensor, dtype: Any, /, *, copy: bool = True, device: str | Device | None = None) -> Tensor:
    """Return the elements in another dtype.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    dtype : dtype
        One of `xgrad`'s, NumPy's, or its name.
    copy : bool, default True
        False may return `x` itself where the dtype is the same.
    device : str or Device, optional
        Where to put the result; by default where `x` is.

    Returns
    -------
    Tensor
        Of the same shape. The gradient comes back in the dtype of `x`; none goes through integers and bools.

    Raises
    ------
    TypeError
        If there is no such dtype, or it would take the imaginary part away: use `xgrad.real`.

    Notes
    -----
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
        raise TypeError(f"{name}: expected a complex dtype for {dtype}, got {target}: take xgrad.real first")


def native_dtype(dtype: Any, device: Device) -> Any:
    """Return the dtype that a user names as that of a device's library."""
    try:
        native = device.backend.dtype(dtype)
        check_standard(device.backend.numpy_dtype(native))
    except (TypeError, KeyError) as error:
        lacks = f", which {device.backend.library} lacks" if isinstance(error, KeyError) else ""
        raise TypeError(f"dtype: expected one such as xgrad.float32, got {shown(dtype)}{lacks}") from error
    return native


def _bring_back(g: Any, x_device: Device, device: Device) -> Any:
    """Send a gradient to where its tensor was; outside a recorded pass it is an array, not a tensor."""
    return _to_device(g, device=x_device) if isinstance(g, Tensor) else transfer(g, device, x_device)


class _ToDevice(Function):
    """The one op whose result is on another device than its input."""

    name, crosses, holomorphic = "to_device", True, False

    @staticmethod
    def forward(xp: Any, x: Any, *, device: Device) -> Any:
        return x

    @staticmethod
    def backward(xp: Any, g: Any, x_device: Device, device: Device) -> Any:
        return _bring_back(g, x_device, device)


_to_device = _ToDevice()


def to_device(x: Tensor, device: str | Device, /) -> Tensor:
    """Return a tensor on another device; gradients come back to where it was.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    device : str or Device
        Where to.

    Returns
    -------
    Tensor
        `x` itself where it is there already.

    Raises
    ------
    DeviceError
        If the device is unknown or cannot be used.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.to_device(xgrad.ones(2), "cpu").device
    Device('cpu')
    """
    x, target = as_tensor("to_device", "x", x), Device(device)
    return x if x.device is target else _to_device(x, device=target)
