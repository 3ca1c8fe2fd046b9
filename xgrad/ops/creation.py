"""Functions that make tensors out of nothing, or out of values that the user has in another form."""

from __future__ import annotations

from typing import Any

import numpy as np

from xgrad.device import Device
from xgrad.devices import current_device, device_of, transfer
from xgrad.dtypes import SCALARS, check_standard, complex64, float32, int64
from xgrad.ops.shape import astype, broadcast_to, native_dtype, to_device
from xgrad.tensor import Tensor, wrap


def asarray(
    obj: Any,
    /,
    *,
    dtype: Any = None,
    device: str | Device | None = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor of values given in any form; of a tensor, with its history.

    Parameters
    ----------
    obj : scalar, nested sequence, array or Tensor
        The values. Python floats become float32, ints int64; arrays keep their dtype.
    dtype : dtype, optional
        The dtype of the result.
    device : str or Device, optional
        By default that of `obj`, or the `default_device` for values from the host.
    copy : bool, optional
        True copies; False refuses to; None copies where it must. An array whose memory is shared must not be
        written to while a graph needs it.
    requires_grad : bool, default False
        Whether gradients are wanted of the result, as a leaf.

    Returns
    -------
    Tensor
        Of the shape of `obj`.

    Raises
    ------
    TypeError
        If `obj` is not numeric, or the dtype is none.
    ValueError
        If `obj` is ragged, or ``copy=False`` and it must be copied.

    Notes
    -----
    Python array API standard, creation functions: ``asarray``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.asarray([1.0, 2.0], dtype=xgrad.float64)
    Tensor([1., 2.], dtype=float64)
    """
    if isinstance(obj, Tensor) and obj.requires_grad and not requires_grad:
        if copy is False and not (device in (None, obj.device) and dtype in (None, obj.dtype)):
            raise ValueError("asarray: copy=False, but another dtype or device needs a copy")
        moved = obj if device is None else to_device(obj, device)
        return (
            moved
            if dtype is None and not copy
            else astype(moved, moved.dtype if dtype is None else dtype, copy=bool(copy))
        )
    tensor = wrap(*_to_raw(obj, dtype=dtype, device=device, copy=copy))
    return tensor.requires_grad_() if requires_grad else tensor


def _make(
    name: str, *args: Any, dtype: Any, device: str | Device | None, requires_grad: bool, **options: Any
) -> Tensor:
    """Call the creation function of a device's namespace, with the device as the current one."""
    place = current_device() if device is None else Device(device)
    options |= {"dtype": native_dtype(float32 if dtype is None else dtype, place), "device": place.native}
    function = getattr(place.xp, name)
    with place.active():
        raw = function(*args, **options)
    tensor = wrap(raw, place)
    return tensor.requires_grad_() if requires_grad else tensor


def zeros(
    shape: int | tuple[int, ...],
    *,
    dtype: Any = None,
    device: str | Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return zeros.

    Parameters
    ----------
    shape : int or tuple of int
        The shape.
    dtype : dtype, optional
        By default float32.
    device : str or Device, optional
        By default the `default_device`.
    requires_grad : bool, default False
        Whether gradients are wanted of it.

    Returns
    -------
    Tensor
        Of the given shape.

    Notes
    -----
    Python array API standard, creation functions: ``zeros``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.zeros(2)
    Tensor([0., 0.])
    """
    return _make("zeros", shape, dtype=dtype, device=device, requires_grad=requires_grad)


def ones(
    shape: int | tuple[int, ...],
    *,
    dtype: Any = None,
    device: str | Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return ones.

    Parameters
    ----------
    shape : int or tuple of int
        The shape.
    dtype : dtype, optional
        By default float32.
    device : str or Device, optional
        By default the `default_device`.
    requires_grad : bool, default False
        Whether gradients are wanted of it.

    Returns
    -------
    Tensor
        Of the given shape.

    Notes
    -----
    Python array API standard, creation functions: ``ones``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.ones((1, 2))
    Tensor([[1., 1.]])
    """
    return _make("ones", shape, dtype=dtype, device=device, requires_grad=requires_grad)


def empty(
    shape: int | tuple[int, ...],
    *,
    dtype: Any = None,
    device: str | Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor whose values are whatever the memory holds.

    Parameters
    ----------
    shape : int or tuple of int
        The shape.
    dtype : dtype, optional
        By default float32.
    device : str or Device, optional
        By default the `default_device`.
    requires_grad : bool, default False
        Whether gradients are wanted of it.

    Returns
    -------
    Tensor
        Of the given shape.

    Notes
    -----
    Python array API standard, creation functions: ``empty``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.empty((2, 3)).shape
    (2, 3)
    """
    return _make("empty", shape, dtype=dtype, device=device, requires_grad=requires_grad)


def full(
    shape: int | tuple[int, ...],
    fill_value: Any,
    *,
    dtype: Any = None,
    device: str | Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return one value, repeated.

    Parameters
    ----------
    shape : int or tuple of int
        The shape.
    fill_value : scalar or 0-d Tensor
        The value.
    dtype : dtype, optional
        By default that of the value: float32 for a float, int64 for an int.
    device : str or Device, optional
        By default the `default_device`.
    requires_grad : bool, default False
        Whether gradients are wanted of it.

    Returns
    -------
    Tensor
        Of the given shape.

    Notes
    -----
    Python array API standard, creation functions: ``full``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.full(2, 7)
    Tensor([7, 7])
    """
    if isinstance(fill_value, Tensor):  # which may have a history
        filled = broadcast_to(
            asarray(fill_value, dtype=dtype, device=device), (shape,) if isinstance(shape, int) else shape
        )
        return filled.detach().requires_grad_() if requires_grad else filled
    fill_value = fill_value.item() if isinstance(fill_value, np.generic) else fill_value
    dtype = asarray(fill_value).dtype if dtype is None else dtype
    return _make("full", shape, fill_value, dtype=dtype, device=device, requires_grad=requires_grad)


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: Any = None,
    device: str | Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return evenly spaced numbers from `start` up to `stop`, which is left out.

    Parameters
    ----------
    start : int or float
        Where to start; with no `stop`, where to stop, starting at 0.
    stop : int or float, optional
        Where to stop.
    step : int or float, default 1
        The distance between two numbers.
    dtype : dtype, optional
        By default int64 if all three are ints, else float32.
    device : str or Device, optional
        By default the `default_device`.
    requires_grad : bool, default False
        Whether gradients are wanted of it.

    Returns
    -------
    Tensor
        Of shape (n,).

    Notes
    -----
    Python array API standard, creation functions: ``arange``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.arange(1, 7, 2)
    Tensor([1, 3, 5])
    """
    if stop is None:
        start, stop = 0, start
    start, stop, step = (n.item() if isinstance(n, np.generic) else n for n in (start, stop, step))
    if dtype is None:
        dtype = int64 if all(isinstance(n, int) for n in (start, stop, step)) else float32
    return _make("arange", start, stop, step, dtype=dtype, device=device, requires_grad=requires_grad)


def linspace(
    start: float,
    stop: float,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: str | Device | None = None,
    requires_grad: bool = False,
    endpoint: bool = True,
) -> Tensor:
    """Return `num` evenly spaced numbers from `start` to `stop`.

    Parameters
    ----------
    start, stop : float
        The ends.
    num : int
        How many numbers.
    dtype : dtype, optional
        By default float32.
    device : str or Device, optional
        By default the `default_device`.
    requires_grad : bool, default False
        Whether gradients are wanted of it.

    Returns
    -------
    Tensor
        Of shape (num,).

    Notes
    -----
    Python array API standard, creation functions: ``linspace``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.linspace(0.0, 1.0, 3)
    Tensor([0. , 0.5, 1. ])
    """
    return _make(
        "linspace",
        start,
        stop,
        num,
        dtype=dtype,
        device=device,
        requires_grad=requires_grad,
        endpoint=endpoint,
    )


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: Any = None,
    device: str | Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return ones on a diagonal and zeros elsewhere.

    Parameters
    ----------
    n_rows : int
        The number of rows.
    n_cols : int, optional
        The number of columns, by default that of rows.
    k : int, default 0
        Which diagonal: above the main one if positive.
    dtype : dtype, optional
        By default float32.
    device : str or Device, optional
        By default the `default_device`.
    requires_grad : bool, default False
        Whether gradients are wanted of it.

    Returns
    -------
    Tensor
        Of shape (n_rows, n_cols).

    Notes
    -----
    Python array API standard, creation functions: ``eye``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.eye(2)
    Tensor([[1., 0.],
            [0., 1.]])
    """
    return _make("eye", n_rows, n_cols, dtype=dtype, device=device, requires_grad=requires_grad, k=k)


def zeros_like(
    x: Tensor, /, *, dtype: Any = None, device: str | Device | None = None, requires_grad: bool = False
) -> Tensor:
    """Return zeros of the shape of another tensor.

    Parameters
    ----------
    x : Tensor
        Whose shape, dtype and device to take.
    dtype : dtype, optional
        By default that of `x`.
    device : str or Device, optional
        By default that of `x`.
    requires_grad : bool, default False
        Whether gradients are wanted of it.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Notes
    -----
    Python array API standard, creation functions: ``zeros_like``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.zeros_like(xgrad.ones(2))
    Tensor([0., 0.])
    """
    return zeros(x.shape, dtype=dtype or x.dtype, device=device or x.device, requires_grad=requires_grad)


def ones_like(
    x: Tensor, /, *, dtype: Any = None, device: str | Device | None = None, requires_grad: bool = False
) -> Tensor:
    """Return ones of the shape of another tensor.

    Parameters
    ----------
    x : Tensor
        Whose shape, dtype and device to take.
    dtype : dtype, optional
        By default that of `x`.
    device : str or Device, optional
        By default that of `x`.
    requires_grad : bool, default False
        Whether gradients are wanted of it.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Notes
    -----
    Python array API standard, creation functions: ``ones_like``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.ones_like(xgrad.zeros(2))
    Tensor([1., 1.])
    """
    return ones(x.shape, dtype=dtype or x.dtype, device=device or x.device, requires_grad=requires_grad)


def empty_like(
    x: Tensor, /, *, dtype: Any = None, device: str | Device | None = None, requires_grad: bool = False
) -> Tensor:
    """Return whatever the memory holds, of the shape of another tensor.

    Parameters
    ----------
    x : Tensor
        Whose shape, dtype and device to take.
    dtype : dtype, optional
        By default that of `x`.
    device : str or Device, optional
        By default that of `x`.
    requires_grad : bool, default False
        Whether gradients are wanted of it.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Notes
    -----
    Python array API standard, creation functions: ``empty_like``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.empty_like(xgrad.ones(2)).shape
    (2,)
    """
    return empty(x.shape, dtype=dtype or x.dtype, device=device or x.device, requires_grad=requires_grad)


def full_like(
    x: Tensor,
    /,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: str | Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return one value, repeated, in the shape of another tensor.

    Parameters
    ----------
    x : Tensor
        Whose shape, dtype and device to take.
    fill_value : scalar or 0-d Tensor
        The value.
    dtype : dtype, optional
        By default that of `x`.
    device : str or Device, optional
        By default that of `x`.
    requires_grad : bool, default False
        Whether gradients are wanted of it.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Notes
    -----
    Python array API standard, creation functions: ``full_like``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.full_like(xgrad.zeros(2), 7)
    Tensor([7., 7.])
    """
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device or x.device, requires_grad=requires_grad)


def _to_raw(
    data: Any, *, dtype: Any = None, device: str | Device | None = None, copy: bool | None = None
) -> tuple[Any, Device]:
    """Return the array and the device for the values that a user gives in any form."""
    host = type(data) in SCALARS or isinstance(data, (list, tuple))
    if isinstance(data, Tensor):
        raw, source = data._data, data.device
    elif not host and (found := device_of(data)) is not None:
        raw, source = (_host_array(data, data.dtype), found) if isinstance(data, np.ndarray) else (data, found)
    else:
        if copy is False:
            raise ValueError(f"asarray: copy=False, but a {type(data).__name__} must be copied")
        raw, source, copy = _host_array(data, dtype), Device("cpu"), None
    if device is None and isinstance(raw, np.ndarray) and not isinstance(data, Tensor):
        device = current_device()
    target = source if device is None else Device(device)
    moved = transfer(raw, source, target)
    dtype = moved.dtype if dtype is None else native_dtype(dtype, target)
    if copy is False and (moved is not raw or dtype != moved.dtype):
        raise ValueError("asarray: copy=False, but another dtype or device needs a copy")
    with target.active():
        if dtype != moved.dtype:
            return target.xp.astype(moved, dtype), target
        return (target.xp.asarray(moved, copy=True) if copy and moved is raw else moved), target


def _host_array(data: Any, dtype: Any) -> np.ndarray:
    """Return values that no library of ours holds as a NumPy array, Python's floats in the default dtype."""
    try:
        host = np.asarray(data)
    except (ValueError, TypeError) as error:
        raise type(error)(f"Tensor: expected numbers of a regular shape, got {type(data).__name__}: {error}") from error
    if host.dtype.kind not in "biufc" or hasattr(data, "mask"):
        raise TypeError(f"Tensor: expected numbers, got {type(data).__name__} of dtype {host.dtype}")
    if dtype is None and host.dtype.kind in "fc" and (type(data) in SCALARS or isinstance(data, (list, tuple))):
        return host.astype(complex64 if host.dtype.kind == "c" else float32)
    host = host.astype(host.dtype.newbyteorder("="), copy=False)
    check_standard(host.dtype)
    return host
