"""Comparison within tolerances: `isclose`, `allclose`."""

from __future__ import annotations

import numpy as np

from xgrad import ops
from xgrad.backend import DeviceError
from xgrad.core.arguments import as_tensor
from xgrad.core.dtypes import SCALARS, float64
from xgrad.core.tensor import Tensor
from xgrad.ops import dtype_functions, statistical

__all__ = ["allclose", "isclose"]


def isclose(
    x1: Tensor | complex,
    x2: Tensor | complex,
    /,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> Tensor:
    """Return whether elements are equal within a tolerance; not differentiable.

    Parameters
    ----------
    x1, x2 : Tensor or scalar
        Numbers or bools, of shapes that broadcast. At most one may be a Python scalar.
    rtol : float, default 1e-5
        The tolerance relative to the magnitude of `x2`.
    atol : float, default 1e-8
        The absolute tolerance, which is added.
    equal_nan : bool, default False
        Whether NaNs are close to each other.

    Returns
    -------
    Tensor
        Bools, of the shape that the inputs broadcast to: whether ``abs(x1 - x2) <= atol + rtol *
        abs(x2)``. An infinity is close only to itself.

    Raises
    ------
    TypeError
        If both are scalars.
    ValueError
        If the shapes do not broadcast.
    DeviceError
        If the tensors are on several devices.

    Notes
    -----
    Integers are compared as float64. Like ``numpy.isclose``, ``torch.isclose`` and
    ``array_api_extra.isclose``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.isclose(xgrad.asarray([1.0, 2.0]), xgrad.asarray([1.000001, 2.1]))
    Tensor([ True, False])
    """
    tensors = [
        x if isinstance(x, (np.generic, *SCALARS)) else as_tensor("isclose", n, x)
        for n, x in (("x1", x1), ("x2", x2))
    ]
    like = next((x for x in tensors if isinstance(x, Tensor)), None)
    if like is None:
        raise TypeError(
            "isclose: expected at least one tensor for x1 and x2: make one with xgrad.asarray"
        )
    xp, dtype = ops, dtype_functions.result_type(*tensors)
    dtype = dtype if dtype.kind in "fc" else float64
    a, b = [
        (
            xp.astype(x.detach(), dtype)
            if isinstance(x, Tensor)
            else xp.full((), x, dtype=dtype, device=like.device)
        )
        for x in tensors
    ]
    if a.device.root is not b.device.root:
        raise DeviceError(
            f"isclose: expected tensors of one device, got {a.device} and {b.device}: use"
            " .to(device)"
        )
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        raise ValueError(
            f"isclose: expected shapes that broadcast, got {a.shape} and {b.shape}"
        ) from None
    finite = xp.isfinite(b)
    limit = xp.where(finite, b, 0)  # inf - inf would be NaN, with a warning
    near: Tensor = finite & (xp.abs(a - limit) <= atol + rtol * xp.abs(limit)) | (a == b)
    return near | xp.isnan(a) & xp.isnan(b) if equal_nan else near


def allclose(
    x1: Tensor | complex,
    x2: Tensor | complex,
    /,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> bool:
    """Return whether all elements are equal within a tolerance: see `isclose`.

    Parameters
    ----------
    x1, x2 : Tensor or scalar
        Numbers or bools, of shapes that broadcast. At most one may be a Python scalar.
    rtol : float, default 1e-5
        The tolerance relative to the magnitude of `x2`.
    atol : float, default 1e-8
        The absolute tolerance, which is added.
    equal_nan : bool, default False
        Whether NaNs are close to each other.

    Returns
    -------
    bool
        True if there are no elements. The call synchronizes with a GPU; for a tensor of one bool,
        use ``all(isclose(...))``.

    Raises
    ------
    TypeError
        If both are scalars.
    ValueError
        If the shapes do not broadcast.
    DeviceError
        If the tensors are on several devices.

    Notes
    -----
    Like ``numpy.allclose`` and ``torch.allclose``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.allclose(xgrad.asarray([1.0, 2.0]), xgrad.asarray([1.000001, 2.0]))
    True
    """
    return bool(statistical.all(isclose(x1, x2, rtol, atol, equal_nan)))
