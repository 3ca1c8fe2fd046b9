"""The standard's searching and sorting functions."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from xgrad.core.arguments import as_tensor
from xgrad.core.dtypes import BOOLEAN, FLOATING, INTEGER, SCALARS
from xgrad.core.tensor import Tensor
from xgrad.ops.declare import DESCENDING, LAST, SEARCHED, STABLE, along_axes, call_op, derivative, reduction
from xgrad.ops.dtype_functions import as_operand
from xgrad.ops.indexing import as_value, put_along_axis, take
from xgrad.ops.tensor_conversion import astype, check_range
from xgrad.support.docstrings import documented
from xgrad.support.hints import shown

__all__ = ["argmax", "argmin", "argsort", "count_nonzero", "nonzero", "searchsorted", "sort", "where"]

argmax = reduction("argmax", None,
    doc="Return the index of the largest element, the first of those that tie.",
    example="[[1.0, 4.0], [3.0, 2.0]], axis=1 -> [1, 0]", takes="Real numbers, not empty; bools count as integers",
    returns="int64, of the shape of `x` without the reduced axis.", axis=SEARCHED, kind=INTEGER, highest=FLOATING,
    section="searching")  # fmt: skip

argmin = reduction("argmin", None,
    doc="Return the index of the smallest element, the first of those that tie.",
    example="[[1.0, 4.0], [3.0, 2.0]], axis=1 -> [0, 1]", takes="Real numbers, not empty; bools count as integers",
    returns="int64, of the shape of `x` without the reduced axis.", axis=SEARCHED, kind=INTEGER, highest=FLOATING,
    section="searching")  # fmt: skip

count_nonzero = reduction("count_nonzero", None,
    doc="Return the number of elements along axes that are true, or not 0.",
    example="[[0.0, 4.0], [3.0, 2.0]], axis=1 -> [1, 2]", takes="Of any shape and dtype",
    returns="int64, of the shape of `x` without the reduced axes.", section="searching")  # fmt: skip


@derivative(None)
@documented("searching functions")
def nonzero(xp: Any, x: Any, /) -> Any:
    """Return the indices of elements that are true, or not 0; not differentiable.

    x : Tensor -- Of any dtype, with at least one axis.
    returns tuple of Tensor -- For each axis the indices, int64 of shape (n,), in row order. The shape depends on
        values, which synchronizes with a GPU.
    raises ValueError -- If `x` has no axes.

    >>> xgrad.nonzero(xgrad.asarray([0.0, 2.0, 3.0]))
    (Tensor([1, 2]),)
    """
    return xp.nonzero(x)


@derivative(None, None, kind=INTEGER, highest=FLOATING)
def _searchsorted(xp: Any, x1: Any, x2: Any, /, *, side: str) -> Any:
    if x1.dtype != x2.dtype:  # which PyTorch refuses
        dtype = xp.result_type(x1, x2)
        x1, x2 = xp.astype(x1, dtype, copy=False), xp.astype(x2, dtype, copy=False)
    return xp.searchsorted(x1, x2, side=side)


@documented("searching functions")
def searchsorted(
    x1: Tensor, x2: Tensor | float, /, *, side: Literal["left", "right"] = "left", sorter: Tensor | None = None
) -> Tensor:
    """Return the indices at which elements would be inserted to preserve order; not differentiable.

    x1 : Tensor -- Real numbers of shape (n,), in ascending order.
    x2 : Tensor or scalar -- Real numbers, of any shape. A Python scalar promotes nothing, and is a tensor of shape ().
    side : {"left", "right"}, default "left" -- Whether before or after equal elements.
    sorter : Tensor, optional -- Integers of shape (n,) that put `x1` in order, if it is not: what `argsort` returns.
    returns Tensor -- int64, of the shape of `x2`, from 0 to n.
    raises ValueError -- If `x1` has not one axis, or `side` is neither.
    raises TypeError -- If an input is complex.
    raises DeviceError

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
    kind=BOOLEAN,
    broadcasts=True,
)
@documented("searching functions")
def where(xp: Any, condition: Any, x1: Any, x2: Any, /) -> Any:
    """Return elements of the first where the condition holds, else those of the second.

    condition : Tensor -- Bools, of any shape.
    x1, x2 : Tensor or scalar -- Of shapes that broadcast with the condition. At most one may be a Python scalar, which
        promotes nothing.
    returns Tensor -- Of the shape that all three broadcast to.
    raises ValueError -- If the shapes do not broadcast.
    raises TypeError -- If both are scalars, or the condition is not of bools.

    A value that is not chosen gets a gradient of 0, but a NaN on its way there stays: choose a harmless input
    first, then the op.

    >>> x = xgrad.asarray([1.0, -2.0])
    >>> xgrad.where(x > 0, x, 0.0)
    Tensor([1., 0.])
    """
    if type(x1) in SCALARS and type(x2) in SCALARS:
        raise TypeError("expected at least one tensor for x1 and x2: make one with xgrad.asarray")
    if getattr(condition, "dtype", xp.bool) != xp.bool:
        raise TypeError(f"expected bools for condition, got {condition.dtype}: compare, as in condition != 0")
    return xp.where(condition, x1, x2)


def _sort_rule(g: Any, xp: Any, x: Any, axis: int, descending: bool) -> Any:
    """Scatter gradients to the indices of their elements."""
    order = xp.argsort(x, axis=axis, descending=descending)
    return call_op(put_along_axis, xp, g, order, axis=axis % len(x.shape), shape=tuple(x.shape))


sort = along_axes("sort", _sort_rule, LAST, DESCENDING, STABLE,
    doc="Return the elements in order along an axis; of equal ones, the first has the gradient of the first place.",
    example="[3.0, 1.0, 2.0] -> [1., 2., 3.]", returns="Of the shape and dtype of `x`.",
    raises="If there are no axes.", section="sorting", highest=FLOATING, some=True)  # fmt: skip

argsort = along_axes("argsort", None, LAST, DESCENDING, STABLE,
    doc="Return the indices that sort the elements.", example="[3.0, 1.0, 2.0] -> [1, 2, 0]",
    takes="Real numbers; bools count as integers", returns="int64, of the shape of `x`.",
    raises="If there are no axes.", section="sorting", kind=INTEGER, highest=FLOATING, some=True)  # fmt: skip


def masked_fill(x: Tensor, mask: Any, value: Any) -> Tensor:
    """Return `x` with a value where a mask is true, in the dtype of `x`.

    TypeError for a value of a higher kind, and OverflowError for a number that the dtype cannot hold.
    """
    op = "masked_fill"
    value = as_value(op, x, value)
    if isinstance(value, Tensor):
        return where(mask, astype(value, x.dtype, copy=False), x)
    value = value.item() if hasattr(value, "item") else value
    check_range(op, np.asarray(value), x.dtype)
    if x.dtype.kind in "fc" and math.isfinite(abs(value)) and abs(value) > float(np.finfo(x.dtype).max):
        raise OverflowError(f"{op}: expected a number that {x.dtype} holds, got {value}")
    return where(mask, value, x)
