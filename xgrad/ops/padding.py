"""Padding: `pad`."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from xgrad.core import dtypes
from xgrad.core.arguments import as_tensor
from xgrad.core.dtypes import KINDS, NAMES, SCALAR_KINDS
from xgrad.core.tensor import Tensor
from xgrad.ops import creation, elementwise, indexing, tensor_conversion
from xgrad.support.hints import shown

__all__ = ["pad"]

#: One number, a pair (before, after) for all axes, or a pair for each axis.
Widths = int | tuple[int, int] | tuple[tuple[int, int], ...]

_MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


def pad(
    x: Tensor,
    /,
    pad_width: Widths,
    mode: Literal["constant", "edge", "reflect", "symmetric", "wrap"] = "constant",
    *,
    constant_values: complex = 0,
) -> Tensor:
    r"""Pad a tensor with elements before and after each axis.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    pad_width : int, pair of int, or sequence of pairs of int
        The number of elements to add: one number for both ends of all axes; a pair
        ``(before, after)`` for all axes; or a pair for each axis, from the first on.
    mode : {"constant", "edge", "reflect", "symmetric", "wrap"}, default "constant"
        The added elements: a constant; the element at the edge; the elements in reverse order,
        without ("reflect") or with ("symmetric") the edge; or the elements of the other end
        ("wrap"). They repeat where there are too few.
    constant_values : scalar, default 0
        The constant, of no higher kind than the dtype of `x`.

    Returns
    -------
    Tensor
        Of the dtype of `x`, longer by ``before + after`` along each axis.

    Raises
    ------
    ValueError
        If `pad_width` does not fit the shape or is negative, `mode` is invalid, or an axis is empty
        for a mode other than "constant".
    TypeError
        If widths are not integers, or the constant is not a scalar or is of a higher kind than `x`.

    Notes
    -----
    .. math:: y_i = x_{k_i}, \quad \text{or the constant where } i \text{ is outside}

    - Gradient for `x`: :math:`\bar x_j = \sum_{i:\, k_i = j} \bar y_i`: the inner part of
      :math:`\bar y`, plus the gradients of the copies that the other modes than "constant" add

    Differentiable to any order. Like ``numpy.pad`` and ``array_api_extra.pad``.
    ``torch.nn.functional.pad`` takes its widths from the last axis on, as one flat tuple.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.pad(xgrad.asarray([1.0, 2.0]), (1, 2))
    Tensor([0., 1., 2., 0., 0.])
    >>> xgrad.pad(xgrad.asarray([[1, 2, 3]]), ((0, 1), (2, 0)), mode="reflect")
    Tensor([[3, 2, 1, 2, 3],
            [3, 2, 1, 2, 3]])
    """
    x = as_tensor("pad", "x", x)
    widths = _widths(pad_width, x.shape)
    if mode not in _MODES:
        raise ValueError(
            f"pad: expected a mode of {', '.join(map(repr, _MODES))}, got {shown(mode)}"
        )
    if mode == "constant":
        return _with_constant(x, widths, constant_values)
    if constant_values != 0:
        raise ValueError(
            f"pad: expected constant_values with mode 'constant' alone, got them with {mode!r}"
        )
    for axis, (before, after) in enumerate(widths):
        if (before, after) != (0, 0):
            if not x.shape[axis]:
                raise ValueError(
                    f"pad: expected elements to repeat along axis {axis}, got shape {x.shape}"
                )
            x = indexing.take(x, _indices(x, axis, before, after, mode), axis=axis)
    return x if any(map(any, widths)) else tensor_conversion.asarray(x, copy=True)


def _widths(pad_width: Any, shape: tuple[int, ...]) -> list[tuple[int, int]]:
    try:
        widths = np.asarray(pad_width)
        pairs = np.broadcast_to(widths, (len(shape), 2)).tolist()
    except ValueError:
        raise ValueError(
            "pad: expected an int, a pair (before, after), or such a pair for each axis for"
            f" pad_width, got {pad_width!r} for shape {shape}"
        ) from None
    if widths.dtype.kind not in "iu" and widths.size:
        raise TypeError(f"pad: expected ints for pad_width, got {shown(pad_width)}")
    if widths.size and widths.min() < 0:
        raise ValueError(
            f"pad: expected no negative pad_width, got {shown(pad_width)}: slice the tensor"
        )
    return [(before, after) for before, after in pairs]


def _with_constant(x: Tensor, widths: list[tuple[int, int]], value: Any) -> Tensor:
    value = value.item() if isinstance(value, np.generic) else value
    if type(value) in (bool, int) and value in (0, 1):
        value = bool(value) if x.dtype.kind == "b" else int(value)
    if (kind := SCALAR_KINDS.get(type(value))) is None:
        raise TypeError(f"pad: expected a number for constant_values, got {shown(value)}")
    if kind > KINDS[x.dtype.kind]:
        raise TypeError(
            f"pad: expected constant_values of {NAMES[KINDS[x.dtype.kind]]} for {x.dtype}, got"
            f" {shown(value)}"
        )
    shape = tuple([before + n + after for n, (before, after) in zip(x.shape, widths, strict=True)])
    inner = tuple(
        [slice(before, before + n) for n, (before, _) in zip(x.shape, widths, strict=True)]
    )
    return indexing.setitem(creation.full(shape, value, dtype=x.dtype, device=x.device), inner, x)


def _indices(x: Tensor, axis: int, before: int, after: int, mode: str) -> Tensor:
    """Return the index in `x` of each element of the result along an axis."""
    n = x.shape[axis]
    indices = creation.arange(-before, n + after, dtype=dtypes.int64, device=x.device)
    if mode == "edge":
        return elementwise.clip(indices, 0, n - 1)
    if mode == "wrap" or n == 1:
        return indices % n
    edges = 0 if mode == "reflect" else 1  # extra copies of each edge in a period
    indices = indices % (2 * (n - 1 + edges))
    return elementwise.minimum(indices, 2 * (n - 1) + edges - indices)
