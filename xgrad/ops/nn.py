"""Ops of neural networks, with derivatives in closed form.

They are faster or more accurate than compositions of other ops.
"""

from __future__ import annotations

import math
from typing import Any

from xgrad.backend.overridable import overridable
from xgrad.core.dtypes import FLOATING, INTEGER
from xgrad.ops.declare import derivative

Axis = int | tuple[int, ...] | None


def _rows(xp: Any, x: Any) -> Any:
    """Flatten all axes but the last into one."""
    return x if len(x.shape) == 2 else xp.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))


def _linear_weight(g: Any, xp: Any, input: Any, into: Any) -> Any:
    # Computed transposed, so that its memory is laid out as (in, out): optimizers keep weights like
    # this, because BLAS is fastest with it.
    x, g = (input, g) if len(input.shape) == 2 else (_rows(xp, input), _rows(xp, g))
    x = xp.matrix_transpose(x)
    if into is None or into.dtype != x.dtype or into.dtype != g.dtype:
        return xp.matrix_transpose(xp.matmul(x, g))
    xp.matmul(x, g, out=xp.matrix_transpose(into))
    return into


def _linear_bias(g: Any, xp: Any) -> Any:
    return xp.sum(g, axis=tuple(range(len(g.shape) - 1)))


@overridable
def _multiply_add(xp: Any, x: Any, y: Any, added: Any) -> Any:
    """Return ``x @ y + added``."""
    out = xp.matmul(x, y)
    if added.dtype != out.dtype:
        return out + added
    out += added
    return out


@derivative(
    lambda g, xp, weight: xp.matmul(g, weight),
    _linear_weight,
    _linear_bias,
    lowest=INTEGER,
    autocast="narrow",
)
def linear(xp: Any, input: Any, weight: Any, bias: Any = None) -> Any:
    """Return ``input @ weight.T + bias``.

    Parameters
    ----------
    input : Tensor
        Of shape (..., in).
    weight : Tensor
        Of shape (out, in).
    bias : Tensor, optional
        Of shape (out,).

    Returns
    -------
    Tensor
        Of shape (..., out).

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.linear(xgrad.ones((2, 3)), xgrad.ones((4, 3))).shape
    (2, 4)
    """
    shape, rows = weight.shape, input.shape
    if len(shape) != 2 or rows[-1:] != shape[1:]:
        raise ValueError("expected input of shape (..., in) and weight of shape (out, in)")
    if bias is not None and bias.shape != shape[:1]:
        raise ValueError("expected weight of shape (out, in) and bias of shape (out,)")
    x, y = _rows(xp, input), xp.matrix_transpose(weight)
    out = xp.matmul(x, y) if bias is None else _multiply_add(xp, x, y, bias)
    return out if len(rows) == 2 else xp.reshape(out, (*rows[:-1], shape[0]))


@overridable
def _softmax_gradient(xp: Any, g: Any, out: Any, axis: Axis) -> Any:
    return out * (g - xp.sum(g * out, axis=axis, keepdims=True))


@derivative(_softmax_gradient, lowest=FLOATING, highest=FLOATING, autocast="wide", upcast=True)
def softmax(xp: Any, x: Any, /, *, axis: Axis = -1) -> Any:
    """Return exponentials, scaled to a sum of 1 along axes, without overflow.

    Parameters
    ----------
    x : Tensor
        Of any shape with at least one axis, which may be empty.
    axis : int, tuple of int or None, default -1
        The axes along which the result sums to 1.

    Returns
    -------
    Tensor
        Same shape as `x`.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.softmax(xgrad.asarray([1e4, 1e4]))
    Tensor([0.5, 0.5])
    """
    if 0 in x.shape:
        return x - xp.sum(x, axis=axis, keepdims=True)  # empty; an invalid axis raises
    e = xp.exp(x - xp.max(x, axis=axis, keepdims=True))
    return e / xp.sum(e, axis=axis, keepdims=True)


@overridable
def _log_softmax_gradient(xp: Any, g: Any, out: Any, axis: Axis) -> Any:
    return g - xp.exp(out) * xp.sum(g, axis=axis, keepdims=True)


@derivative(_log_softmax_gradient, lowest=FLOATING, highest=FLOATING, autocast="wide", upcast=True)
def log_softmax(xp: Any, x: Any, /, *, axis: Axis = -1) -> Any:
    """Return the logarithm of `softmax`, without overflow or loss of small probabilities.

    Parameters
    ----------
    x : Tensor
        Of any shape with at least one axis, which may be empty.
    axis : int, tuple of int or None, default -1
        The axes along which probabilities sum to 1.

    Returns
    -------
    Tensor
        Same shape as `x`. Infinity gives NaN, and finite elements beside it give minus infinity, as
        in SciPy.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.log_softmax(xgrad.asarray([0.0, 1e4]))
    Tensor([-10000.,      0.])
    """
    if 0 in x.shape:
        return x - xp.sum(x, axis=axis, keepdims=True)  # empty; an invalid axis raises
    top = xp.max(x, axis=axis, keepdims=True)
    x = x - xp.where(xp.isfinite(top), top, 0)  # inf - inf would make everything NaN
    return x - xp.log(xp.sum(xp.exp(x), axis=axis, keepdims=True))
