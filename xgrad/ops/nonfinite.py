"""NaNs and infinities: replacing them, and reductions that ignore NaNs."""

from __future__ import annotations

import math
from typing import Any

from xgrad.core.arguments import as_number, as_tensor, axis_error
from xgrad.core.dtypes import FLOATING
from xgrad.core.tensor import Tensor
from xgrad.ops import elementwise, searching, statistical
from xgrad.ops.declare import Axis, derivative
from xgrad.ops.matrix_products import as_floating
from xgrad.ops.precision import upcast
from xgrad.support.hints import explained

__all__ = ["nan_to_num", "nanmean", "nansum"]


@derivative(lambda g, xp, x: xp.where(xp.isfinite(x), g, 0), lowest=FLOATING, highest=FLOATING)
def _nan_to_num(xp: Any, x: Any, /, *, nan: float, posinf: Any, neginf: Any) -> Any:
    limits = xp.finfo(x.dtype)
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    infinite = xp.where(x > 0, xp.full_like(x, high), xp.full_like(x, low))
    return xp.where(xp.isnan(x), xp.full_like(x, nan), xp.where(xp.isinf(x), infinite, x))


@explained
def nan_to_num(
    x: Tensor,
    /,
    *,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Tensor:
    r"""Replace NaNs and infinities by numbers; they get no gradient.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype. Of complex numbers, real and imaginary parts are replaced;
        integers and bools are returned as they are.
    nan : float, default 0
        The number for NaNs.
    posinf, neginf : float, optional
        The numbers for the infinities; by default the largest and the least number of the dtype.

    Returns
    -------
    Tensor
        Same shape and dtype as `x`.

    Raises
    ------
    TypeError
        If a replacement is not a number.

    Notes
    -----
    .. math:: y = x \text{ if } |x| < \infty, \quad \text{else a number}

    - Gradient for `x`: :math:`\bar y\, [|x| < \infty]`

    Differentiable to any order. Like ``numpy.nan_to_num`` and ``torch.nan_to_num``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nan_to_num(xgrad.asarray([1.0, xgrad.nan, xgrad.inf]), posinf=9.0)
    Tensor([1., 0., 9.])
    """
    x, op = as_tensor("nan_to_num", "x", x), "nan_to_num"
    options = {
        "nan": as_number(op, "nan", nan),
        "posinf": None if posinf is None else as_number(op, "posinf", posinf),
        "neginf": None if neginf is None else as_number(op, "neginf", neginf),
    }
    if x.dtype.kind == "c":
        parts = [_nan_to_num(part(x), **options) for part in (elementwise.real, elementwise.imag)]
        return parts[0] + 1j * parts[1]
    return _nan_to_num(x, **options) if x.dtype.kind == "f" else elementwise.positive(x)


@explained
def nansum(x: Tensor, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    r"""Return the sum along axes, in which NaNs count as 0.

    Parameters
    ----------
    x : Tensor
        Numbers; bools count as integers.
    axis : int or tuple of int, optional
        The axes to reduce; by default all.
    dtype : dtype, optional
        The dtype of the computation and the result: see `sum`.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of the shape of `x` without the reduced axes; 0 where all elements are NaN.

    Notes
    -----
    .. math:: y = \sum_{i:\, x_i \ne \mathrm{NaN}} x_i

    - Gradient for `x`: :math:`\bar y`, and 0 for a NaN

    Differentiable to any order. Like ``numpy.nansum`` and ``torch.nansum``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nansum(xgrad.asarray([1.0, xgrad.nan, 3.0]))
    Tensor(4.)
    """
    x = as_tensor("nansum", "x", x)
    _check_axis("nansum", x, axis)
    some = searching.where(elementwise.isnan(x), 0, x) if x.dtype.kind in "fc" else x
    return statistical.sum(some, axis=axis, dtype=dtype, keepdims=keepdims)


@upcast
@explained
def nanmean(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    r"""Return the mean along axes of the elements that are not NaN.

    Parameters
    ----------
    x : Tensor
        Integers and bools count as float32.
    axis : int or tuple of int, optional
        The axes to reduce; by default all.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of the shape of `x` without the reduced axes; NaN where all elements are NaN.

    Notes
    -----
    .. math:: y = \frac{1}{n} \sum_{i:\, x_i \ne \mathrm{NaN}} x_i

    - Gradient for `x`: :math:`\bar y / n`, and 0 for a NaN; :math:`n` is the number of the others

    Differentiable to any order. Like ``numpy.nanmean``, without its warning, and
    ``torch.nanmean``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nanmean(xgrad.asarray([1.0, xgrad.nan, 3.0]))
    Tensor(2.)
    """
    x = as_floating("nanmean", "x", x)
    _check_axis("nanmean", x, axis)
    known = statistical.sum(~elementwise.isnan(x), axis=axis, keepdims=keepdims, dtype=x.dtype)
    known = searching.where(known == 0, math.nan, known)  # 0 / 0 would warn
    return nansum(x, axis=axis, keepdims=keepdims) / known


def _check_axis(op: str, x: Tensor, axis: Any) -> None:
    """Raise an error that names the function, not the sum of which it consists."""
    if axis is not None and (error := axis_error(op, "axis", axis, x.shape)) is not None:
        raise error
