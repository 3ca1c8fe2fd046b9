"""Tensors created from shapes, bounds and values."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from xgrad.backend.device import Device
from xgrad.backend.devices import current_device
from xgrad.backend.recording import run_array_code
from xgrad.core import providers
from xgrad.core.arguments import ArrayLike, as_tensor
from xgrad.core.dtypes import FLOATING, INTEGER, KINDS, defaults, get_default_dtype
from xgrad.core.modes import grad_enabled
from xgrad.core.tensor import Tensor, from_array
from xgrad.core.views import unlink
from xgrad.ops.declare import derivative
from xgrad.ops.dtype_functions import result_type
from xgrad.ops.manipulation import broadcast_to, on_one_device, reshape
from xgrad.ops.tensor_conversion import asarray, astype, check_cast, check_range, native_dtype
from xgrad.support.hints import explained, shown

__all__ = [
    "arange",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]

Number = bool | int | float | complex | Tensor


def _call(device: Device, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    return getattr(device.xp, name)(*args, **options)


def _create(
    name: str,
    *args: Any,
    dtype: Any,
    device: str | Device | None,
    requires_grad: bool,
    **options: Any,
) -> Tensor:
    """Call a creation function of a device's namespace, with that device as the current one."""
    target = current_device() if device is None else Device(device)
    options |= {
        "dtype": native_dtype(get_default_dtype() if dtype is None else dtype, target),
        "device": target.native,
    }
    try:
        with target.active():
            raw = run_array_code(target, _call, name, args, options)
    except Exception as error:
        if type(error).__module__ != "builtins":
            providers.module("errors").note_memory(error, target)
            raise
        raise type(error)(f"{name}: {error}") from error
    tensor = from_array(raw, target)
    return tensor.requires_grad_() if requires_grad else tensor


def _lengths(shape: Any) -> tuple[int, ...]:
    """Return a shape as a tuple of ints; it may be one length, and lengths may be 0-d tensors."""
    return tuple(
        [_integer("shape", n) for n in (shape if isinstance(shape, (tuple, list)) else [shape])]
    )


def _integer(name: str, n: Any) -> int:
    try:
        return index(n)
    except TypeError:
        raise TypeError(f"{name}: expected an int, got {shown(n)}") from None


@explained
def zeros(
    shape: int | tuple[int, ...],
    *,
    dtype: Any = None,
    device: str | Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor of zeros.

    Parameters
    ----------
    shape : int or tuple of int
        The length of each axis.
    dtype : dtype, optional
        By default float32, the default dtype.
    device : str or Device, optional
        By default the `default_device`.
    requires_grad : bool, default False
        Whether the result is a leaf that requires a gradient.

    Returns
    -------
    Tensor
        Of the given shape.

    Raises
    ------
    TypeError
        If there is no such dtype, or `requires_grad` is set for one that is not floating.
    DeviceError
        If the device is unknown or cannot be used.

    Notes
    -----
    Python array API standard, creation functions: ``zeros``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.zeros((1, 2))
    Tensor([[0., 0.]])
    """
    return _create(
        "zeros", _lengths(shape), dtype=dtype, device=device, requires_grad=requires_grad
    )


@explained
def ones(
    shape: int | tuple[int, ...],
    *,
    dtype: Any = None,
    device: str | Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor of ones.

    Parameters
    ----------
    shape : int or tuple of int
        The length of each axis.
    dtype : dtype, optional
        By default float32, the default dtype.
    device : str or Device, optional
        By default the `default_device`.
    requires_grad : bool, default False
        Whether the result is a leaf that requires a gradient.

    Returns
    -------
    Tensor
        Of the given shape.

    Raises
    ------
    TypeError
        If there is no such dtype, or `requires_grad` is set for one that is not floating.
    DeviceError
        If the device is unknown or cannot be used.

    Notes
    -----
    Python array API standard, creation functions: ``ones``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.ones((1, 2))
    Tensor([[1., 1.]])
    """
    return _create("ones", _lengths(shape), dtype=dtype, device=device, requires_grad=requires_grad)


@explained
def empty(
    shape: int | tuple[int, ...],
    *,
    dtype: Any = None,
    device: str | Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor of uninitialized memory.

    Parameters
    ----------
    shape : int or tuple of int
        The length of each axis.
    dtype : dtype, optional
        By default float32, the default dtype.
    device : str or Device, optional
        By default the `default_device`.
    requires_grad : bool, default False
        Whether the result is a leaf that requires a gradient.

    Returns
    -------
    Tensor
        Of the given shape.

    Raises
    ------
    TypeError
        If there is no such dtype, or `requires_grad` is set for one that is not floating.
    DeviceError
        If the device is unknown or cannot be used.

    Notes
    -----
    Python array API standard, creation functions: ``empty``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.empty((1, 2)).shape
    (1, 2)
    """
    return _create(
        "empty", _lengths(shape), dtype=dtype, device=device, requires_grad=requires_grad
    )


@explained
def full(
    shape: int | tuple[int, ...],
    fill_value: Number,
    *,
    dtype: Any = None,
    device: str | Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    r"""Return a tensor filled with one value.

    Parameters
    ----------
    shape : int or tuple of int
        The length of each axis.
    fill_value : scalar or 0-d Tensor
        The value.
    dtype : dtype, optional
        By default the dtype of the value: float32 for a float, int64 for an int.
    device : str or Device, optional
        By default the device of `fill_value` if it is a tensor, else the `default_device`.
    requires_grad : bool, default False
        Whether the result is a leaf that requires a gradient.

    Returns
    -------
    Tensor
        Of the given shape.

    Raises
    ------
    TypeError
        If there is no such dtype, or `requires_grad` is set for one that is not floating.
    DeviceError
        If the device is unknown or cannot be used.

    Notes
    -----
    .. math:: y_i = v

    - Gradient for `fill_value`: :math:`\sum_i \bar y_i`

    Python array API standard, creation functions: ``full``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.full(2, 7)
    Tensor([7, 7])
    """
    if isinstance(fill_value, Tensor):
        if fill_value.ndim:
            raise ValueError(
                f"full: expected a number or a 0-d tensor, got shape {fill_value.shape}: see"
                " broadcast_to"
            )
        value = asarray(fill_value, dtype=dtype, device=device, copy=True)
        filled: Tensor = unlink(broadcast_to(value, _lengths(shape)))
        return filled.detach().requires_grad_() if requires_grad else filled
    fill_value = fill_value.item() if isinstance(fill_value, np.generic) else fill_value
    # the dtype of 0, since a large float would overflow in the default dtype
    inexact = isinstance(fill_value, (float, complex))
    value_dtype = asarray(type(fill_value)(0) if inexact else fill_value).dtype
    dtype = value_dtype if dtype is None else dtype
    check_cast("full", value_dtype, dtype)
    if isinstance(fill_value, int):  # NumPy before 2.1 would truncate it
        target = current_device() if device is None else Device(device)
        check_range(
            "full", np.asarray(fill_value), target.backend.numpy_dtype(native_dtype(dtype, target))
        )
    return _create(
        "full", _lengths(shape), fill_value, dtype=dtype, device=device, requires_grad=requires_grad
    )


@explained
def zeros_like(
    x: Tensor,
    /,
    *,
    dtype: Any = None,
    device: str | Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor of zeros with the shape of another tensor.

    Parameters
    ----------
    x : Tensor
        The tensor that gives the shape, and the default dtype and device.
    dtype : dtype, optional
        By default the dtype of `x`.
    device : str or Device, optional
        By default the device of `x`.
    requires_grad : bool, default False
        Whether the result is a leaf that requires a gradient.

    Returns
    -------
    Tensor
        Of the shape of `x`, without its history.

    Raises
    ------
    TypeError
        If there is no such dtype, or `requires_grad` is set for one that is not floating.
    DeviceError
        If the device is unknown or cannot be used.

    Notes
    -----
    Python array API standard, creation functions: ``zeros_like``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.zeros_like(xgrad.eye(1, 2))
    Tensor([[0., 0.]])
    """
    like = _like_options("zeros_like", x, dtype, device)
    return zeros(**like, requires_grad=requires_grad)


@explained
def ones_like(
    x: Tensor,
    /,
    *,
    dtype: Any = None,
    device: str | Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor of ones with the shape of another tensor.

    Parameters
    ----------
    x : Tensor
        The tensor that gives the shape, and the default dtype and device.
    dtype : dtype, optional
        By default the dtype of `x`.
    device : str or Device, optional
        By default the device of `x`.
    requires_grad : bool, default False
        Whether the result is a leaf that requires a gradient.

    Returns
    -------
    Tensor
        Of the shape of `x`, without its history.

    Raises
    ------
    TypeError
        If there is no such dtype, or `requires_grad` is set for one that is not floating.
    DeviceError
        If the device is unknown or cannot be used.

    Notes
    -----
    Python array API standard, creation functions: ``ones_like``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.ones_like(xgrad.eye(1, 2))
    Tensor([[1., 1.]])
    """
    like = _like_options("ones_like", x, dtype, device)
    return ones(**like, requires_grad=requires_grad)


@explained
def empty_like(
    x: Tensor,
    /,
    *,
    dtype: Any = None,
    device: str | Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor of uninitialized memory with the shape of another tensor.

    Parameters
    ----------
    x : Tensor
        The tensor that gives the shape, and the default dtype and device.
    dtype : dtype, optional
        By default the dtype of `x`.
    device : str or Device, optional
        By default the device of `x`.
    requires_grad : bool, default False
        Whether the result is a leaf that requires a gradient.

    Returns
    -------
    Tensor
        Of the shape of `x`, without its history.

    Raises
    ------
    TypeError
        If there is no such dtype, or `requires_grad` is set for one that is not floating.
    DeviceError
        If the device is unknown or cannot be used.

    Notes
    -----
    Python array API standard, creation functions: ``empty_like``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.empty_like(xgrad.eye(1, 2)).shape
    (1, 2)
    """
    like = _like_options("empty_like", x, dtype, device)
    return empty(**like, requires_grad=requires_grad)


@explained
def full_like(
    x: Tensor,
    /,
    fill_value: Number,
    *,
    dtype: Any = None,
    device: str | Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    r"""Return a tensor filled with one value, with the shape of another tensor.

    Parameters
    ----------
    x : Tensor
        The tensor that gives the shape, and the default dtype and device.
    fill_value : scalar or 0-d Tensor
        The value.
    dtype : dtype, optional
        By default the dtype of `x`.
    device : str or Device, optional
        By default the device of `x`.
    requires_grad : bool, default False
        Whether the result is a leaf that requires a gradient.

    Returns
    -------
    Tensor
        Of the shape of `x`, without its history.

    Raises
    ------
    TypeError
        If there is no such dtype, or `requires_grad` is set for one that is not floating.
    DeviceError
        If the device is unknown or cannot be used.

    Notes
    -----
    .. math:: y_i = v

    - Gradient for `fill_value`: :math:`\sum_i \bar y_i`

    Python array API standard, creation functions: ``full_like``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.full_like(xgrad.zeros(2), 7)
    Tensor([7., 7.])
    """
    like = _like_options("full_like", x, dtype, device)
    return full(fill_value=fill_value, **like, requires_grad=requires_grad)


def _like_options(op: str, x: Any, dtype: Any, device: str | Device | None) -> dict[str, Any]:
    """Return the shape of a tensor, and its dtype and device unless others are given."""
    x = as_tensor(op, "x", x)
    device = x.device if device is None else device
    return {"shape": x.shape, "dtype": x.dtype if dtype is None else dtype, "device": device}


@explained
def arange(
    start: int | float | Tensor,
    /,
    stop: int | float | Tensor | None = None,
    step: int | float | Tensor = 1,
    *,
    dtype: Any = None,
    device: str | Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    r"""Return evenly spaced numbers from `start` up to `stop`, which is excluded.

    Parameters
    ----------
    start : int, float or 0-d Tensor
        The first number; without `stop`, the end of a range that starts at 0.
    stop : int, float or 0-d Tensor, optional
        The end of the range.
    step : int, float or 0-d Tensor, default 1
        The distance between neighbouring numbers.
    dtype : dtype, optional
        By default the `result_type` of the arguments.
    device : str or Device, optional
        By default the device of a tensor among the arguments, else the `default_device`.
    requires_grad : bool, default False
        Whether the result is a leaf that requires a gradient.

    Returns
    -------
    Tensor
        Of shape (n,).

    Raises
    ------
    TypeError
        If there is no such dtype, or `requires_grad` is set for one that is not floating.
    DeviceError
        If the device is unknown or cannot be used.

    Notes
    -----
    .. math:: y_i = a + i h

    - Gradient for `start`: :math:`\sum_i \bar y_i`
    - Gradient for `step`: :math:`\sum_i i\, \bar y_i`. ``stop`` decides only the length.

    Differentiable in the arguments that are tensors.

    Python array API standard, creation functions: ``arange``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.arange(1, 7, 2)
    Tensor([1, 3, 5])
    """
    if stop is None:
        start, stop = 0, start
    numbers, dtype, device, recorded = _parse_bounds((start, stop, step), dtype, device)
    made = _create("arange", *numbers, dtype=dtype, device=device, requires_grad=requires_grad)
    if not recorded or requires_grad:
        return made
    count = _create("arange", made.size, dtype=dtype, device=device, requires_grad=False)
    return astype(start + step * count, dtype, copy=False)


@explained
def linspace(
    start: int | float | complex | Tensor,
    stop: int | float | complex | Tensor,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: str | Device | None = None,
    endpoint: bool = True,
    requires_grad: bool = False,
) -> Tensor:
    r"""Return `num` evenly spaced numbers from `start` to `stop`.

    Parameters
    ----------
    start, stop : number or 0-d Tensor
        The ends of the range.
    num : int
        The number of elements.
    endpoint : bool, default True
        Whether `stop` is one of the numbers.
    dtype : dtype, optional
        By default the dtype that `result_type` gives for the bounds, at least floating.
    device : str or Device, optional
        By default the device of a tensor among the arguments, else the `default_device`.
    requires_grad : bool, default False
        Whether the result is a leaf that requires a gradient.

    Returns
    -------
    Tensor
        Of shape (num,).

    Raises
    ------
    TypeError
        If there is no such dtype, or `requires_grad` is set for one that is not floating.
    ValueError
        If `num` is negative.
    DeviceError
        If the device is unknown or cannot be used.

    Notes
    -----
    .. math:: y_i = (1 - t_i)\, a + t_i\, b, \quad t_i = \frac{i}{n - 1}

    - Gradient for `start`: :math:`\sum_i (1 - t_i) \bar y_i`
    - Gradient for `stop`: :math:`\sum_i t_i \bar y_i`. Without ``endpoint``, :math:`t_i = i / n`

    Differentiable in the arguments that are tensors.

    Python array API standard, creation functions: ``linspace``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.linspace(0.0, 1.0, 3)
    Tensor([0. , 0.5, 1. ])
    """
    num = _integer("num", num)
    if num < 0:
        raise ValueError(f"linspace: expected a non-negative num, got {num}")
    numbers, dtype, device, recorded = _parse_bounds((start, stop), dtype, device, lowest=FLOATING)
    if not recorded or requires_grad:
        options = {"endpoint": endpoint, "requires_grad": requires_grad}
        return _create("linspace", *numbers, num, dtype=dtype, device=device, **options)
    part = _create(
        "linspace", 0, 1, num, dtype=dtype, device=device, endpoint=endpoint, requires_grad=False
    )
    return astype(start * (1 - part) + stop * part, dtype, copy=False)


def _parse_bounds(
    bounds: Sequence[Number], dtype: Any, device: str | Device | None, lowest: int = INTEGER
) -> tuple[list[Any], Any, str | Device | None, bool]:
    """Return the bounds as numbers, the dtype and device of the range, and whether to record it."""
    tensors = [x for x in bounds if isinstance(x, Tensor)]
    if any(x.ndim for x in tensors):
        raise ValueError(
            f"expected numbers and 0-d tensors as bounds, got shapes {[x.shape for x in tensors]}"
        )
    if dtype is None:
        dtype = result_type("bool", *bounds)
        dtype = defaults()[lowest] if KINDS[dtype.kind] < lowest else dtype
    numbers = [_python_number(x) for x in bounds]
    device = tensors[0].device if tensors and device is None else device
    return numbers, dtype, device, grad_enabled.get() and any(x.requires_grad for x in tensors)


def _python_number(x: Any) -> Any:
    x = x.detach() if isinstance(x, Tensor) else x
    return x.item() if isinstance(x, (Tensor, np.generic)) else x


@explained
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
        The number of columns; by default `n_rows`.
    k : int, default 0
        The offset from the main diagonal, above it if positive.
    dtype : dtype, optional
        By default float32, the default dtype.
    device : str or Device, optional
        By default the `default_device`.
    requires_grad : bool, default False
        Whether the result is a leaf that requires a gradient.

    Returns
    -------
    Tensor
        Of shape (n_rows, n_cols).

    Raises
    ------
    TypeError
        If there is no such dtype, or `requires_grad` is set for one that is not floating.
    DeviceError
        If the device is unknown or cannot be used.

    Notes
    -----
    Python array API standard, creation functions: ``eye``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.eye(1, 2)
    Tensor([[1., 0.]])
    """
    return _create(
        "eye", n_rows, n_cols, dtype=dtype, device=device, requires_grad=requires_grad, k=k
    )


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    r"""Return the coordinates of the points of a grid, one tensor for each axis.

    Parameters
    ----------
    *arrays : Tensor
        The coordinates along each axis, of shape (n,).
    indexing : {"xy", "ij"}, default "xy"
        Whether the first two axes are swapped (``"xy"``, as for images) or not (``"ij"``, as for
        matrices).

    Returns
    -------
    tuple of Tensor
        One for each array, of its dtype, all of shape (n1, n2, n3, ...) with ``"ij"``, or
        (n2, n1, n3, ...) with ``"xy"``.

    Raises
    ------
    ValueError
        If an array does not have exactly one axis, or `indexing` is neither of these.
    DeviceError
        If the arrays are on several devices.

    Notes
    -----
    .. math:: y_{ij \dots} = x_i

    - Gradient for `arrays`: :math:`\sum_{j \dots} \bar y_{ij \dots}`, over all axes but its own

    Differentiable to any order.

    Python array API standard, creation functions: ``meshgrid``.

    Examples
    --------
    >>> import xgrad
    >>> x, y = xgrad.meshgrid(xgrad.asarray([1, 2]), xgrad.asarray([3, 4, 5]))
    >>> x
    Tensor([[1, 2],
            [1, 2],
            [1, 2]])
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: expected an indexing of 'xy' or 'ij', got {shown(indexing)}")
    tensors = on_one_device("meshgrid", "arrays", arrays)
    if any(x.ndim != 1 for x in tensors):
        raise ValueError(
            f"meshgrid: expected arrays with one axis, got shapes {[x.shape for x in tensors]}"
        )
    axes = list(range(len(tensors)))
    if indexing == "xy":
        axes[:2] = axes[1::-1]
    shape = tuple([tensors[axis].size for axis in axes])
    copies = [asarray(x, copy=True) for x in tensors]
    grids = [
        reshape(x, tuple([-1 if axis == i else 1 for axis in axes])) for i, x in enumerate(copies)
    ]
    return tuple([unlink(broadcast_to(x, shape)) for x in grids])


def _check_matrices(x: Any) -> None:
    if len(x.shape) < 2:
        raise ValueError(f"expected matrices, got {len(x.shape)} axes")


@derivative(lambda g, xp, k: xp.tril(g, k=k))
def tril(xp: Any, x: ArrayLike, /, *, k: int = 0) -> Any:
    r"""Return the lower triangle of matrices, with zeros elsewhere.

    Parameters
    ----------
    x : Tensor
        Of shape (..., m, n) and any dtype.
    k : int, default 0
        The last diagonal of the triangle, above the main one if positive.

    Returns
    -------
    Tensor
        Of the same shape and dtype.

    Raises
    ------
    ValueError
        If `x` has fewer than two axes.

    Notes
    -----
    .. math:: y_{ij} = x_{ij} \text{ if } j \le i + k, \quad \text{else } 0

    - Gradient for `x`: :math:`\bar y_{ij}` if :math:`j \le i + k`, else 0

    Differentiable to any order.

    Python array API standard, creation functions: ``tril``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.tril(xgrad.ones((2, 2)))
    Tensor([[1., 0.],
            [1., 1.]])
    """
    _check_matrices(x)
    return xp.tril(x, k=k)


@derivative(lambda g, xp, k: xp.triu(g, k=k))
def triu(xp: Any, x: ArrayLike, /, *, k: int = 0) -> Any:
    r"""Return the upper triangle of matrices, with zeros elsewhere.

    Parameters
    ----------
    x : Tensor
        Of shape (..., m, n) and any dtype.
    k : int, default 0
        The last diagonal of the triangle, above the main one if positive.

    Returns
    -------
    Tensor
        Of the same shape and dtype.

    Raises
    ------
    ValueError
        If `x` has fewer than two axes.

    Notes
    -----
    .. math:: y_{ij} = x_{ij} \text{ if } j \ge i + k, \quad \text{else } 0

    - Gradient for `x`: :math:`\bar y_{ij}` if :math:`j \ge i + k`, else 0

    Differentiable to any order.

    Python array API standard, creation functions: ``triu``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.triu(xgrad.ones((2, 2)))
    Tensor([[1., 1.],
            [0., 1.]])
    """
    _check_matrices(x)
    return xp.triu(x, k=k)
