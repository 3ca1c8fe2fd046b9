"""Losses of numbers: of regression, of two classes, and of distances."""

from __future__ import annotations

import math
from typing import Any

from xgrad.core.arguments import as_tensor
from xgrad.core.dtypes import FLOATING
from xgrad.core.namespace import namespace
from xgrad.core.tensor import Tensor
from xgrad.ops.declare import derivative
from xgrad.ops.elementwise import abs
from xgrad.ops.loss_reductions import check_reduction, reduced
from xgrad.support.docstrings import documented


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
    return reduced(xp, xp.square(input - target), reduction)


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
    check_reduction("mse_loss", reduction)
    input, target = as_tensor("mse_loss", "input", input), as_tensor("mse_loss", "target", target)
    if input.shape != target.shape:
        raise ValueError(f"mse_loss: expected input and target of one shape, got {input.shape} and {target.shape}")
    return _mse(input, target, reduction=reduction)


def _pair(op: str, input: Any, target: Any, reduction: str) -> tuple[Tensor, Tensor]:
    check_reduction(op, reduction)
    input, target = as_tensor(op, "input", input), as_tensor(op, "target", target)
    if input.shape != target.shape:
        raise ValueError(f"{op}: expected input and target of one shape, got {input.shape} and {target.shape}")
    return input, target


@documented()
def l1_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """Return the absolute error.

    input, target : Tensor -- Of one shape.
    reduction : {"mean", "sum", "none"}, default "mean" -- How to reduce the losses.
    returns Tensor -- A scalar, or with ``reduction="none"`` of the shape of the inputs.
    raises ValueError -- If the shapes differ, or `reduction` is none of the above.

    >>> xgrad.nn.functional.l1_loss(xgrad.asarray([1.0, 2.0]), xgrad.asarray([1.0, 4.0]))
    Tensor(1.)
    """
    input, target = _pair("l1_loss", input, target, reduction)
    return reduced(namespace, abs(input - target), reduction)  # type: ignore[no-any-return]


def _huber_rule(g: Any, xp: Any, x: Any, delta: float, scale: float) -> Any:
    return g * (xp.minimum(xp.maximum(x, -delta), delta) * scale)


@derivative(_huber_rule, kind=FLOATING, highest=FLOATING, autocast="wide")
def _huber(xp: Any, x: Any, /, delta: float, scale: float) -> Any:
    """Return half the square up to `delta`, linear beyond, times `scale`."""
    size = xp.abs(x)
    near = xp.minimum(size, delta)
    return near * (size - near / 2) * scale


@documented()
def huber_loss(input: Tensor, target: Tensor, *, delta: float = 1.0, reduction: str = "mean") -> Tensor:
    """Return half the squared error where it is up to `delta`, and ``delta * (error - delta / 2)`` beyond.

    input, target : Tensor -- Of one shape.
    delta : float, default 1 -- The error from which the loss is linear; above 0.
    reduction : {"mean", "sum", "none"}, default "mean" -- How to reduce the losses.
    returns Tensor -- A scalar, or with ``reduction="none"`` of the shape of the inputs.
    raises ValueError -- If the shapes differ, `delta` is not above 0, or `reduction` is none of the above.

    >>> xgrad.nn.functional.huber_loss(xgrad.asarray([0.5, 3.0]), xgrad.zeros(2), reduction="none")
    Tensor([0.125, 2.5  ])
    """
    input, target = _pair("huber_loss", input, target, reduction)
    if not delta > 0:
        raise ValueError(f"huber_loss: expected delta > 0, got {delta}")
    return reduced(namespace, _huber(input - target, delta, 1.0), reduction)  # type: ignore[no-any-return]


@documented()
def smooth_l1_loss(input: Tensor, target: Tensor, *, beta: float = 1.0, reduction: str = "mean") -> Tensor:
    """Return `huber_loss` over `beta`: the absolute error, smooth near 0.

    input, target : Tensor -- Of one shape.
    beta : float, default 1 -- The error from which the loss is linear; 0 for `l1_loss`.
    reduction : {"mean", "sum", "none"}, default "mean" -- How to reduce the losses.
    returns Tensor -- A scalar, or with ``reduction="none"`` of the shape of the inputs.
    raises ValueError -- If the shapes differ, `beta` is negative, or `reduction` is none of the above.

    >>> xgrad.nn.functional.smooth_l1_loss(xgrad.asarray([1.0, 3.0]), xgrad.zeros(2), beta=2.0, reduction="none")
    Tensor([0.25, 2.  ])
    """
    input, target = _pair("smooth_l1_loss", input, target, reduction)
    if not beta >= 0:
        raise ValueError(f"smooth_l1_loss: expected beta >= 0, got {beta}")
    losses = _huber(input - target, beta, 1 / beta) if beta else abs(input - target)
    return reduced(namespace, losses, reduction)  # type: ignore[no-any-return]


@documented()
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Return the cross-entropy between probabilities ``sigmoid(input)`` of one of two classes and a target, in nats.

    input : Tensor -- Logits, of any shape.
    target : Tensor -- Probabilities, of the shape of `input`.
    weight : Tensor, optional -- Of each loss, of a shape that broadcasts to that of `input`.
    pos_weight : Tensor, optional -- Of the positive class, of a shape that broadcasts to that of `input`.
    reduction : {"mean", "sum", "none"}, default "mean" -- How to reduce the losses.
    returns Tensor -- A scalar, or with ``reduction="none"`` of the shape of the inputs.
    raises ValueError -- If the shapes differ, or `reduction` is none of the above.

    >>> logits, target = xgrad.asarray([0.0, 100.0]), xgrad.asarray([1.0, 0.0])
    >>> xgrad.nn.functional.binary_cross_entropy_with_logits(logits, target, reduction="none")
    Tensor([  0.6931472, 100.       ])
    """
    input, target = _pair("binary_cross_entropy_with_logits", input, target, reduction)
    positive = target if pos_weight is None else target * pos_weight
    losses = (1 - target) * namespace.softplus(input) + positive * namespace.softplus(-input)
    return reduced(namespace, losses if weight is None else losses * weight, reduction)  # type: ignore[no-any-return]


@documented()
def kl_div(input: Tensor, target: Tensor, *, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """Return the terms ``target * (log(target) - input)`` of the Kullback-Leibler divergence, or their mean or sum.

    input : Tensor -- Logarithms of probabilities, of any shape.
    target : Tensor -- Probabilities, of the same shape, or their logarithms.
    reduction : {"mean", "sum", "batchmean", "none"}, default "mean" -- How to reduce the terms; "batchmean", the sum
        over the length of the first axis, is the divergence.
    log_target : bool, default False -- Whether `target` has logarithms.
    returns Tensor -- A scalar, or with ``reduction="none"`` of the shape of the inputs.
    raises ValueError -- If the shapes differ, or `reduction` is none of the above.

    >>> xgrad.nn.functional.kl_div(xgrad.asarray([[-1.0, -2.0]]), xgrad.asarray([[0.0, 1.0]]), reduction="batchmean")
    Tensor(2.)
    """
    input, target = _pair("kl_div", input, target, "sum" if reduction == "batchmean" else reduction)
    if log_target:
        losses = namespace.exp(target) * (target - input)
    else:
        losses = -namespace.special.entr(target) - target * input
    if reduction == "batchmean":
        return namespace.sum(losses) / input.shape[0]
    return reduced(namespace, losses, reduction)  # type: ignore[no-any-return]
