"""Softmax and its logarithm, with derivatives in closed form."""

from __future__ import annotations

from typing import Any

from xgrad.backend.overridable import overridable
from xgrad.core.arguments import as_tensor
from xgrad.core.dtypes import FLOATING, standard
from xgrad.core.tensor import Tensor
from xgrad.ops.declare import derivative
from xgrad.ops.elementwise import negative
from xgrad.ops.tensor_conversion import astype
from xgrad.support.hints import explained, shown

Axis = int | tuple[int, ...] | None


def _cast(op: str, x: Any, dtype: Any) -> Any:
    """Return the input in a floating dtype, unchanged for None."""
    if dtype is None:
        return x
    if standard(dtype).kind != "f":
        raise TypeError(f"{op}: expected a floating dtype, got {shown(dtype)}")
    return astype(as_tensor(op, "x", x), dtype, copy=False)


@overridable
def _softmax_gradient(xp: Any, g: Any, out: Any, axis: Axis) -> Any:
    return out * (g - xp.sum(g * out, axis=axis, keepdims=True))


@derivative(_softmax_gradient, lowest=FLOATING, highest=FLOATING, autocast="wide", upcast=True)
def _softmax(xp: Any, x: Any, /, *, axis: Axis) -> Any:
    if 0 in x.shape:
        return x - xp.sum(x, axis=axis, keepdims=True)  # empty; an invalid axis raises
    e = xp.exp(x - xp.max(x, axis=axis, keepdims=True))
    return e / xp.sum(e, axis=axis, keepdims=True)


@explained
def softmax(x: Tensor, /, *, axis: Axis = -1, dtype: Any = None) -> Tensor:
    r"""Return exponentials, scaled to a sum of 1 along axes, without overflow.

    Parameters
    ----------
    x : Tensor
        Of any shape with at least one axis, which may be empty.
    axis : int, tuple of int or None, default -1
        The axes along which the result sums to 1.
    dtype : dtype, optional
        A floating dtype to which `x` is cast before the computation.

    Returns
    -------
    Tensor
        Same shape as `x`.

    Notes
    -----
    .. math:: y_i = \frac{e^{x_i}}{\sum_j e^{x_j}}

    - Gradient for `x`: :math:`y_i \left(\bar y_i - \sum_j \bar y_j\, y_j\right)`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.softmax(xgrad.asarray([1e4, 1e4]))
    Tensor([0.5, 0.5])
    """
    return _softmax(_cast("softmax", x, dtype), axis=axis)


@overridable
def _log_softmax_gradient(xp: Any, g: Any, out: Any, axis: Axis) -> Any:
    return g - xp.exp(out) * xp.sum(g, axis=axis, keepdims=True)


@derivative(_log_softmax_gradient, lowest=FLOATING, highest=FLOATING, autocast="wide", upcast=True)
def _log_softmax(xp: Any, x: Any, /, *, axis: Axis) -> Any:
    if 0 in x.shape:
        return x - xp.sum(x, axis=axis, keepdims=True)  # empty; an invalid axis raises
    top = xp.max(x, axis=axis, keepdims=True)
    x = x - xp.where(xp.isfinite(top), top, 0)  # inf - inf would make everything NaN
    return x - xp.log(xp.sum(xp.exp(x), axis=axis, keepdims=True))


@explained
def log_softmax(x: Tensor, /, *, axis: Axis = -1, dtype: Any = None) -> Tensor:
    r"""Return the logarithm of `softmax`, without overflow or loss of small probabilities.

    Parameters
    ----------
    x : Tensor
        Of any shape with at least one axis, which may be empty.
    axis : int, tuple of int or None, default -1
        The axes along which probabilities sum to 1.
    dtype : dtype, optional
        A floating dtype to which `x` is cast before the computation.

    Returns
    -------
    Tensor
        Same shape as `x`. Infinity gives NaN, and finite elements beside it give minus infinity, as
        in SciPy.

    Notes
    -----
    .. math:: y_i = x_i - \ln\left(\sum_j e^{x_j}\right)

    - Gradient for `x`: :math:`\bar y_i - e^{y_i} \sum_j \bar y_j`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.log_softmax(xgrad.asarray([0.0, 1e4]))
    Tensor([-10000.,      0.])
    """
    return _log_softmax(_cast("log_softmax", x, dtype), axis=axis)


@explained
def softmin(x: Tensor, /, *, axis: Axis = -1, dtype: Any = None) -> Tensor:
    r"""Return the `softmax` of ``-x``: the smallest element has the largest share.

    Parameters
    ----------
    x : Tensor
        Of any shape with at least one axis, which may be empty.
    axis : int, tuple of int or None, default -1
        The axes along which the result sums to 1.
    dtype : dtype, optional
        A floating dtype to which `x` is cast before the computation.

    Returns
    -------
    Tensor
        Same shape as `x`.

    Notes
    -----
    .. math:: y_i = \frac{e^{-x_i}}{\sum_j e^{-x_j}}

    - Gradient for `x`: :math:`y_i \left(\sum_j \bar y_j\, y_j - \bar y_i\right)`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.softmin(xgrad.asarray([1e4, 1e4]))
    Tensor([0.5, 0.5])
    """
    return softmax(negative(_cast("softmin", x, dtype)), axis=axis)
