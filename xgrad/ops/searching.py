"""The standard's searching and sorting functions."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from xgrad.core.arguments import ArrayLike, as_tensor
from xgrad.core.dtypes import BOOLEAN, FLOATING, INTEGER, SCALARS
from xgrad.core.tensor import Tensor
from xgrad.ops.declare import Axis, call_op, derivative
from xgrad.ops.dtype_functions import as_operand
from xgrad.ops.indexing import as_value, put_along_axis, take
from xgrad.ops.tensor_conversion import astype, check_range
from xgrad.support.hints import shown

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "count_nonzero",
    "nonzero",
    "searchsorted",
    "sort",
    "where",
]


@derivative(None, lowest=INTEGER, highest=FLOATING, native=True)
def argmax(xp: Any, x: ArrayLike, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Return the index of the largest element; the first on ties.

    Parameters
    ----------
    x : Tensor
        Real numbers, not empty; bools count as integers.
    axis : int, optional
        The axis to search along; by default all elements in row order.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        int64, of the shape of `x` without the reduced axis.

    Notes
    -----
    Not differentiable: no gradient flows.

    Python array API standard, searching functions: ``argmax``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.argmax(xgrad.asarray([[1.0, 4.0], [3.0, 2.0]]), axis=1)
    Tensor([1, 0])
    """
    return xp.argmax(x, axis=axis, keepdims=keepdims)


@derivative(None, lowest=INTEGER, highest=FLOATING, native=True)
def argmin(xp: Any, x: ArrayLike, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Return the index of the smallest element; the first on ties.

    Parameters
    ----------
    x : Tensor
        Real numbers, not empty; bools count as integers.
    axis : int, optional
        The axis to search along; by default all elements in row order.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        int64, of the shape of `x` without the reduced axis.

    Notes
    -----
    Not differentiable: no gradient flows.

    Python array API standard, searching functions: ``argmin``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.argmin(xgrad.asarray([[1.0, 4.0], [3.0, 2.0]]), axis=1)
    Tensor([0, 1])
    """
    return xp.argmin(x, axis=axis, keepdims=keepdims)


@derivative(None, lowest=BOOLEAN, native=True)
def count_nonzero(xp: Any, x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return the number of elements along axes that are true or nonzero.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    axis : int or tuple of int, optional
        The axes to reduce; by default all.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        int64, of the shape of `x` without the reduced axes.

    Notes
    -----
    Not differentiable: no gradient flows.

    Python array API standard, searching functions: ``count_nonzero``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.count_nonzero(xgrad.asarray([[0.0, 4.0], [3.0, 2.0]]), axis=1)
    Tensor([1, 2])
    """
    return xp.count_nonzero(x, axis=axis, keepdims=keepdims)


@derivative(None)
def nonzero(xp: Any, x: ArrayLike, /) -> Any:
    """Return the indices of elements that are true or nonzero; not differentiable.

    Parameters
    ----------
    x : Tensor
        Of any dtype, with at least one axis.

    Returns
    -------
    tuple of Tensor
        The indices along each axis: int64, of shape (n,), in row order. The shape depends on
        values, which synchronizes with a GPU.

    Raises
    ------
    ValueError
        If `x` has no axes.

    Notes
    -----
    Python array API standard, searching functions: ``nonzero``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nonzero(xgrad.asarray([0.0, 2.0, 3.0]))
    (Tensor([1, 2]),)
    """
    return xp.nonzero(x)


@derivative(None, None, lowest=INTEGER, highest=FLOATING)
def _searchsorted(xp: Any, x1: Any, x2: Any, /, *, side: str) -> Any:
    if x1.dtype != x2.dtype:  # PyTorch refuses different dtypes
        dtype = xp.result_type(x1, x2)
        x1, x2 = xp.astype(x1, dtype, copy=False), xp.astype(x2, dtype, copy=False)
    return xp.searchsorted(x1, x2, side=side)


def searchsorted(
    x1: Tensor,
    x2: Tensor | float,
    /,
    *,
    side: Literal["left", "right"] = "left",
    sorter: Tensor | None = None,
) -> Tensor:
    """Return the indices at which elements would be inserted to preserve order; not differentiable.

    Parameters
    ----------
    x1 : Tensor
        Real numbers of shape (n,), in ascending order.
    x2 : Tensor or scalar
        Real numbers, of any shape. A Python scalar counts as a tensor of shape (), and does not
        promote `x1`.
    side : {"left", "right"}, default "left"
        Whether to insert before or after equal elements.
    sorter : Tensor, optional
        Indices of shape (n,) that sort `x1`, if it is not sorted: the result of `argsort`.

    Returns
    -------
    Tensor
        int64, of the shape of `x2`, from 0 to n.

    Raises
    ------
    ValueError
        If `x1` does not have one axis, or `side` is neither.
    TypeError
        If an input is complex.
    DeviceError
        If the tensors are on different devices.

    Notes
    -----
    Python array API standard, searching functions: ``searchsorted``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.searchsorted(xgrad.asarray([1.0, 2.0, 4.0]), xgrad.asarray([2.0, 3.0]))
    Tensor([1, 2])
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: expected side 'left' or 'right', got {shown(side)}")
    x1 = as_tensor("searchsorted", "x1", x1)
    x2 = as_operand("searchsorted", "x2", x2, x1)
    if x1.ndim != 1:
        raise ValueError(f"searchsorted: expected x1 with one axis, got shape {x1.shape}")
    if sorter is not None:
        x1 = take(x1, sorter)
    return _searchsorted(x1, x2, side=side)


@derivative(
    None,
    lambda g, xp, condition: xp.where(condition, g, 0),
    lambda g, xp, condition: xp.where(condition, 0, g),
    lowest=BOOLEAN,
    broadcasts=True,
)
def where(xp: Any, condition: ArrayLike, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    r"""Return the elements of `x1` where the condition is true, else the elements of `x2`.

    Parameters
    ----------
    condition : Tensor
        Bools, of any shape.
    x1, x2 : Tensor or scalar
        Of shapes that broadcast with the condition. At most one may be a Python scalar, which does
        not promote the other.

    Returns
    -------
    Tensor
        Of the shape that all three broadcast to.

    Raises
    ------
    ValueError
        If the shapes do not broadcast.
    TypeError
        If `x1` and `x2` are both scalars, or the condition is not bools.

    Notes
    -----
    .. math:: y = x_1 \text{ if } \mathit{condition}, \quad \text{else } x_2

    - Gradient for `x1`: :math:`\bar y` where the condition is true, else 0
    - Gradient for `x2`: :math:`0` where the condition is true, else :math:`\bar y`

    An element that is not chosen gets a gradient of 0, but the derivative of the op that computed
    it may turn this 0 into NaN. To avoid this, use `where` to choose a harmless input of that op as
    well.

    Python array API standard, searching functions: ``where``.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.asarray([1.0, -2.0])
    >>> xgrad.where(x > 0, x, 0.0)
    Tensor([1., 0.])
    """
    if type(x1) in SCALARS and type(x2) in SCALARS:
        raise TypeError("expected at least one tensor for x1 and x2: make one with xgrad.asarray")
    if getattr(condition, "dtype", xp.bool) != xp.bool:
        raise TypeError(
            f"expected bools for condition, got {condition.dtype}: compare, as in condition != 0"
        )
    return xp.where(condition, x1, x2)


def _sort_rule(g: Any, xp: Any, x: Any, axis: int, descending: bool) -> Any:
    """Scatter gradients to the indices of their elements."""
    order = xp.argsort(x, axis=axis, descending=descending)
    return call_op(put_along_axis, xp, g, order, axis=axis % len(x.shape), shape=tuple(x.shape))


@derivative(_sort_rule, lowest=BOOLEAN, highest=FLOATING)
def sort(
    xp: Any, x: ArrayLike, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Any:
    r"""Sort the elements along an axis.

    The first of equal elements gets the gradient of their first position.

    Parameters
    ----------
    x : Tensor
        Real numbers or bools.
    axis : int, default -1
        The axis to sort along.
    descending : bool, default False
        Whether the largest element comes first.
    stable : bool, default True
        Whether equal elements keep their order.

    Returns
    -------
    Tensor
        Same shape and dtype as `x`.

    Raises
    ------
    ValueError
        If `x` has no axes.

    Notes
    -----
    .. math:: y_j = x_{k_j}

    - Gradient for `x`: :math:`\bar x_{k_j} = \bar y_j`; :math:`k` is the result of `argsort`

    Differentiable to any order.

    Python array API standard, sorting functions: ``sort``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.sort(xgrad.asarray([3.0, 1.0, 2.0]))
    Tensor([1., 2., 3.])
    """
    if not x.shape:
        raise ValueError("expected x with at least one axis")
    return xp.sort(x, axis=axis, descending=descending, stable=stable)


@derivative(None, lowest=INTEGER, highest=FLOATING)
def argsort(
    xp: Any, x: ArrayLike, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Any:
    """Return the indices that sort the elements.

    Parameters
    ----------
    x : Tensor
        Real numbers; bools count as integers.
    axis : int, default -1
        The axis to sort along.
    descending : bool, default False
        Whether the largest element comes first.
    stable : bool, default True
        Whether equal elements keep their order.

    Returns
    -------
    Tensor
        int64, of the shape of `x`.

    Raises
    ------
    ValueError
        If `x` has no axes.

    Notes
    -----
    Not differentiable: no gradient flows.

    Python array API standard, sorting functions: ``argsort``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.argsort(xgrad.asarray([3.0, 1.0, 2.0]))
    Tensor([1, 2, 0])
    """
    if not x.shape:
        raise ValueError("expected x with at least one axis")
    return xp.argsort(x, axis=axis, descending=descending, stable=stable)


def masked_fill(x: Tensor, mask: Any, value: Any) -> Tensor:
    """Return `x` with a value where a mask is true, in the dtype of `x`.

    Raises TypeError for a value of a higher kind, and OverflowError for a number that the dtype
    cannot hold.
    """
    op = "masked_fill"
    value = as_value(op, x, value)
    if isinstance(value, Tensor):
        return where(mask, astype(value, x.dtype, copy=False), x)
    value = value.item() if hasattr(value, "item") else value
    check_range(op, np.asarray(value), x.dtype)
    if (
        x.dtype.kind in "fc"
        and math.isfinite(abs(value))
        and abs(value) > float(np.finfo(x.dtype).max)
    ):
        raise OverflowError(f"{op}: expected a number that {x.dtype} holds, got {value}")
    return where(mask, value, x)
