"""Functions that make tensors out of nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xgrad.device import Device
from xgrad.devices import current_device
from xgrad.dtypes import float32, int64
from xgrad.ops.conversion import asarray
from xgrad.ops.manipulation import broadcast_to
from xgrad.ops.storage import native_dtype
from xgrad.tensor import Tensor, wrap

_BY_SHAPE = """{summary}.

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

Raises
------
TypeError
    If there is no such dtype, or gradients are wanted of one that is not floating.
DeviceError
    If the device is unknown or cannot be used.

Notes
-----
Python array API standard, creation functions: ``{name}``.

Examples
--------
>>> import xgrad
>>> xgrad.{name}((1, 2)){show}
"""

_LIKE = """{summary}, in the shape of another tensor.

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
    Of the shape of `x`, without its history.

Raises
------
TypeError
    If there is no such dtype, or gradients are wanted of one that is not floating.
DeviceError
    If the device is unknown or cannot be used.

Notes
-----
Python array API standard, creation functions: ``{name}``.

Examples
--------
>>> import xgrad
>>> xgrad.{name}(xgrad.eye(1, 2)){show}
"""


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


def _by_shape(name: str, summary: str, show: str) -> Callable[..., Tensor]:
    """Declare a creation function that is given a shape."""

    def create(
        shape: int | tuple[int, ...],
        *,
        dtype: Any = None,
        device: str | Device | None = None,
        requires_grad: bool = False,
    ) -> Tensor:
        return _make(name, shape, dtype=dtype, device=device, requires_grad=requires_grad)

    return _named(create, name, _BY_SHAPE.format(name=name, summary=summary, show=show))


def _like(create: Callable[..., Tensor], summary: str, show: str) -> Callable[..., Tensor]:
    """Declare the creation function that takes the shape of a tensor."""

    def like(
        x: Tensor, /, *, dtype: Any = None, device: str | Device | None = None, requires_grad: bool = False
    ) -> Tensor:
        dtype = x.dtype if dtype is None else dtype
        return create(x.shape, dtype=dtype, device=device or x.device, requires_grad=requires_grad)

    name = create.__name__ + "_like"
    return _named(like, name, _LIKE.format(name=name, summary=summary, show=show))


def _named(function: Any, name: str, doc: str) -> Callable[..., Tensor]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function  # type: ignore[no-any-return]


zeros = _by_shape("zeros", "Return zeros", "\nTensor([[0., 0.]])")
ones = _by_shape("ones", "Return ones", "\nTensor([[1., 1.]])")
empty = _by_shape("empty", "Return whatever the memory holds", ".shape\n(1, 2)")
zeros_like = _like(zeros, "Return zeros", "\nTensor([[0., 0.]])")
ones_like = _like(ones, "Return ones", "\nTensor([[1., 1.]])")
empty_like = _like(empty, "Return whatever the memory holds", ".shape\n(1, 2)")


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
    dtype = x.dtype if dtype is None else dtype
    return full(x.shape, fill_value, dtype=dtype, device=device or x.device, requires_grad=requires_grad)


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
