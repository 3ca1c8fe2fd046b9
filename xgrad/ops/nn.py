"""Ops of neural networks with derivatives in closed form, which are faster or more accurate than compositions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xgrad.backend.overridable import overridable
from xgrad.core.arguments import as_tensor
from xgrad.core.dtypes import FLOATING, INTEGER
from xgrad.core.tensor import Tensor
from xgrad.ops.declare import derivative
from xgrad.support.docstrings import documented
from xgrad.support.hints import shown

Axis = int | tuple[int, ...] | None


def _rows(xp: Any, x: Any) -> Any:
    """Return all axes but the last as one."""
    return x if len(x.shape) == 2 else xp.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))


def _linear_weight(g: Any, xp: Any, input: Any, into: Any) -> Any:
    # Transposed: it then lies as (in, out), as optimizers keep weights, with which BLAS is fastest.
    x, g = xp.matrix_transpose(_rows(xp, input)), _rows(xp, g)
    if into is None or into.dtype != x.dtype or into.dtype != g.dtype:
        return xp.matrix_transpose(xp.matmul(x, g))
    xp.matmul(x, g, out=xp.matrix_transpose(into))
    return into


@derivative(lambda g, xp, weight: xp.matmul(g, weight), _linear_weight, lambda g: g, kind=INTEGER, autocast="narrow")
@documented()
def linear(xp: Any, input: Any, weight: Any, bias: Any = None) -> Any:
    """Return ``input @ weight.T + bias``.

    input : Tensor -- Of shape (..., in).
    weight : Tensor -- Of shape (out, in).
    bias : Tensor, optional -- Of shape (out,).
    returns Tensor -- Of shape (..., out).
    raises ValueError -- If the shapes do not fit.

    >>> xgrad.nn.functional.linear(xgrad.ones((2, 3)), xgrad.ones((4, 3))).shape
    (2, 4)
    """
    shape, rows = weight.shape, input.shape
    if len(shape) != 2 or rows[-1:] != shape[1:]:
        raise ValueError("expected input of shape (..., in) and weight of shape (out, in)")
    if bias is not None and bias.shape != shape[:1]:
        raise ValueError("expected weight of shape (out, in) and bias of shape (out,)")
    out = xp.matmul(_rows(xp, input), xp.matrix_transpose(weight))
    if bias is not None and bias.dtype == out.dtype:
        out += bias
    elif bias is not None:
        out = out + bias
    return out if len(rows) == 2 else xp.reshape(out, (*rows[:-1], shape[0]))


@overridable
def _softmax_gradient(xp: Any, g: Any, out: Any, axis: Axis) -> Any:
    return out * (g - xp.sum(g * out, axis=axis, keepdims=True))


@derivative(_softmax_gradient, kind=FLOATING, highest=FLOATING, autocast="wide")
@documented()
def softmax(xp: Any, x: Any, /, *, axis: Axis = -1) -> Any:
    """Return exponentials scaled to a sum of 1 along an axis, without overflow.

    x : Tensor -- Of any shape with at least one axis, which may be empty.
    axis : int, tuple of int or None, default -1 -- The axes along which they sum to 1.
    returns Tensor -- Of the same shape.

    >>> xgrad.nn.functional.softmax(xgrad.asarray([1e4, 1e4]))
    Tensor([0.5, 0.5])
    """
    if 0 in x.shape:
        return x - xp.sum(x, axis=axis, keepdims=True)  # empty; a wrong axis is refused
    e = xp.exp(x - xp.max(x, axis=axis, keepdims=True))
    return e / xp.sum(e, axis=axis, keepdims=True)


@overridable
def _log_softmax_gradient(xp: Any, g: Any, out: Any, axis: Axis) -> Any:
    return g - xp.exp(out) * xp.sum(g, axis=axis, keepdims=True)


@derivative(_log_softmax_gradient, kind=FLOATING, highest=FLOATING, autocast="wide")
@documented()
def log_softmax(xp: Any, x: Any, /, *, axis: Axis = -1) -> Any:
    """Return the logarithm of `softmax`, without overflow or loss of small probabilities.

    x : Tensor -- Of any shape with at least one axis, which may be empty.
    axis : int, tuple of int or None, default -1 -- The axes along which probabilities sum to 1.
    returns Tensor -- Of the same shape. Of infinity it is NaN, and of numbers beside it minus infinity, as in SciPy.

    >>> xgrad.nn.functional.log_softmax(xgrad.asarray([0.0, 1e4]))
    Tensor([-10000.,      0.])
    """
    if 0 in x.shape:
        return x - xp.sum(x, axis=axis, keepdims=True)  # empty; a wrong axis is refused
    top = xp.max(x, axis=axis, keepdims=True)
    x = x - xp.where(xp.isfinite(top), top, 0)  # inf - inf would be NaN, and so would all else
    return x - xp.log(xp.sum(xp.exp(x), axis=axis, keepdims=True))


def _one_hot(xp: Any, target: Any, x: Any) -> Any:
    """Return where along the class axis of `x` the target is."""
    axis, ndim = _class_axis(x), len(x.shape)
    target = xp.astype(target, xp.int64, copy=False)  # the range of uint8 may be too short for the classes
    classes = xp.arange(x.shape[axis], dtype=xp.int64, device=x.device)
    if axis == ndim - 1:
        return xp.expand_dims(target, axis=-1) == classes
    return xp.expand_dims(target, axis=axis) == xp.reshape(classes, (-1,) + (1,) * (ndim - axis - 1))


def _class_axis(x: Any) -> int:
    return 0 if len(x.shape) == 1 else 1


@overridable
def _cross_entropy_gradient(
    xp: Any, g: Any, input: Any, target: Any, reduction: str, label_smoothing: float, scale: Any
) -> Any:
    """The derivative of the loss of one row: its probabilities, less 1 at the target."""
    axis = _class_axis(input)
    wanted = xp.astype(_one_hot(xp, target, input), input.dtype)
    if label_smoothing:
        wanted = wanted * (1 - label_smoothing) + label_smoothing / input.shape[axis]
    if reduction == "mean":
        g = g / math.prod(target.shape)
    elif reduction == "none":
        g = xp.expand_dims(g, axis=axis)
    probabilities = softmax(input, axis=axis) if scale is None else xp.exp(input - scale[0]) / scale[1]
    return (probabilities - wanted) * g


@derivative(_cross_entropy_gradient, None, kind=FLOATING, highest=FLOATING, residual="scale", autocast="wide")
def _cross_entropy(xp: Any, input: Any, target: Any, *, reduction: str, label_smoothing: float) -> Any:
    axis = _class_axis(input)
    if not input.shape[axis] and 0 not in target.shape:
        raise IndexError("expected classes, got none")
    top = xp.max(input, axis=axis, keepdims=True)
    x = input - top
    total = xp.sum(xp.exp(x), axis=axis, keepdims=True)
    if len(x.shape) == 2:
        chosen = x[xp.arange(x.shape[0], device=x.device), xp.astype(target, xp.int64, copy=False)]
    else:
        chosen = xp.squeeze(xp.take_along_axis(x, xp.expand_dims(target, axis=axis), axis=axis), axis=axis)
    logs = xp.log(xp.squeeze(total, axis=axis))
    losses = logs - chosen
    if label_smoothing:
        losses = losses * (1 - label_smoothing) + label_smoothing * (logs - xp.mean(x, axis=axis))
    return _reduce(xp, losses, reduction), (top, total)


def _reduce(xp: Any, losses: Any, reduction: str) -> Any:
    return xp.mean(losses) if reduction == "mean" else xp.sum(losses) if reduction == "sum" else losses


def _check_reduction(name: str, reduction: str) -> None:
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{name}: expected a reduction of 'mean', 'sum' or 'none', got {shown(reduction)}")


@documented()
def cross_entropy(input: Tensor, target: Tensor, *, reduction: str = "mean", label_smoothing: float = 0.0) -> Tensor:
    """Return the cross-entropy between softmax probabilities and classes, in nats.

    input : Tensor -- Logits, of shape (classes,), (batch, classes) or (batch, classes, ...), floating.
    target : Tensor -- The number of the right class, from 0; integers, of the shape of `input` without its class axis.
    reduction : {"mean", "sum", "none"}, default "mean" -- How to reduce the losses of the rows.
    label_smoothing : float, default 0 -- The part of the target probability that is distributed uniformly over all
        classes, from 0 to 1.
    returns Tensor -- A scalar, or with ``reduction="none"`` of the shape of `target`.
    raises ValueError -- If the shapes do not fit, or `reduction` or `label_smoothing` is none of the above.
    raises TypeError -- If `target` is not of integers.
    raises IndexError -- If a class does not exist; not checked on ``cuda``, which would have to synchronize.

    >>> logits = xgrad.asarray([[0.0, 0.0], [1e4, -1e4]])
    >>> xgrad.nn.functional.cross_entropy(logits, xgrad.asarray([0, 1]), reduction="none")
    Tensor([6.931472e-01, 2.000000e+04])
    """
    _check_reduction("cross_entropy", reduction)
    input, target = as_tensor("cross_entropy", "input", input), as_tensor("cross_entropy", "target", target)
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"cross_entropy: expected label_smoothing from 0 to 1, got {label_smoothing}")
    raw, device, shape = target._data, target.device, input._data.shape
    kind = device.backend.numpy_dtype(raw.dtype).kind
    if kind not in "iu":
        raise TypeError(f"cross_entropy: expected target of integers, got {target.dtype}: use argmax or astype")
    if not shape or raw.shape != (shape[1:] if len(shape) == 1 else shape[:1] + shape[2:]):
        raise ValueError(
            "cross_entropy: expected input of shape (batch, classes, ...) and target of shape (batch, ...), got "
            f"{input.shape} and {target.shape}"
        )
    checked, last = device.backend.asynchronous or 0 in raw.shape, shape[0 if len(shape) == 1 else 1] - 1
    with device.active():
        # Negative classes would count from the end; unsigned ones, cast to int64, may wrap around.
        if kind == "i":
            wrong = not checked and device.backend.check_true(device.xp.min(raw) < 0)
        else:
            checked = checked or np.iinfo(device.backend.numpy_dtype(raw.dtype)).max <= last
            wrong = not checked and device.backend.check_true(device.xp.max(raw) > last)
    try:
        if not wrong:
            return _cross_entropy(input, target, reduction=reduction, label_smoothing=label_smoothing)
    except IndexError:
        if checked:
            raise
    with device.active():
        low, high = int(device.xp.min(raw)), int(device.xp.max(raw))
    raise IndexError(
        f"cross_entropy: expected target from 0 to {last}, got {low if low < 0 else high}: the input has {last + 1} "
        "classes"
    ) from None


def _mse_rule(g: Any, xp: Any, a: Any, b: Any, reduction: str) -> Any:
    if reduction == "mean":
        g = g / math.prod(a.shape)
    return (a - b) * (2 * g)


@derivative(
    lambda g, xp, input, target, reduction: _mse_rule(g, xp, input, target, reduction),
    lambda g, xp, input, target, reduction: _mse_rule(g, xp, target, input, reduction),
    kind=FLOATING,
    highest=FLOATING,
    autocast="wide",
)
def _mse(xp: Any, input: Any, target: Any, *, reduction: str) -> Any:
    return _reduce(xp, xp.square(input - target), reduction)


@documented()
def mse_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """Return the squared error.

    input, target : Tensor -- Of one shape. They do not broadcast: (n,) against (n, 1) is a common mistake.
    reduction : {"mean", "sum", "none"}, default "mean" -- How to reduce the squares.
    returns Tensor -- A scalar, or with ``reduction="none"`` of the shape of the inputs.
    raises ValueError -- If the shapes differ, or `reduction` is none of the above.

    >>> xgrad.nn.functional.mse_loss(xgrad.asarray([1.0, 2.0]), xgrad.asarray([1.0, 4.0]))
    Tensor(2.)
    """
    _check_reduction("mse_loss", reduction)
    input, target = as_tensor("mse_loss", "input", input), as_tensor("mse_loss", "target", target)
    if input.shape != target.shape:
        raise ValueError(f"mse_loss: expected input and target of one shape, got {input.shape} and {target.shape}")
    return _mse(input, target, reduction=reduction)
