"""Losses for regression, for binary classification, and for distributions."""

from __future__ import annotations

import math
from typing import Any

from xgrad.backend.recording import check_true
from xgrad.core.arguments import as_tensor
from xgrad.core.dtypes import FLOATING
from xgrad.core.tensor import Tensor
from xgrad.ops import creation, elementwise, entropy, searching, statistical
from xgrad.ops.declare import derivative
from xgrad.ops.elementwise import abs
from xgrad.ops.loss_reductions import (
    check_options,
    check_reduction,
    loss_inputs,
    reduce_losses,
    reduced,
)
from xgrad.ops.precision import upcast


def _mse_rule(g: Any, xp: Any, a: Any, b: Any, reduction: str) -> Any:
    if reduction == "mean":
        g = g / math.prod(a.shape)
    return (a - b) * (2 * g)


@derivative(
    lambda g, xp, input, target, reduction: _mse_rule(g, xp, input, target, reduction),
    lambda g, xp, input, target, reduction: _mse_rule(g, xp, target, input, reduction),
    lowest=FLOATING,
    highest=FLOATING,
    autocast="wide",
    upcast=True,
)
def _mse(xp: Any, input: Any, target: Any, *, reduction: str) -> Any:
    return reduced(xp, xp.square(input - target), reduction)


def mse_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    r"""Return the squared error.

    Parameters
    ----------
    input, target : Tensor
        Of one shape. They do not broadcast: (n,) against (n, 1) is a common mistake.
    reduction : {"mean", "sum", "none"}, default "mean"
        How to reduce the squares.

    Returns
    -------
    Tensor
        A scalar; with ``reduction="none"``, a tensor of the shape of the inputs.

    Raises
    ------
    ValueError
        If the shapes differ, or `reduction` is invalid.

    Notes
    -----
    .. math:: y = (x - t)^2

    - Gradient for `input`: :math:`2\, \bar y\, (x - t)`
    - Gradient for `target`: :math:`2\, \bar y\, (t - x)`

    The formulas are for elements :math:`x` of `input` and :math:`t` of `target`, before the
    reduction.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.mse_loss(xgrad.asarray([1.0, 2.0]), xgrad.asarray([1.0, 4.0]))
    Tensor(2.)
    """
    check_reduction("mse_loss", reduction)  # not by `loss_inputs`, which is several times slower
    input, target = as_tensor("mse_loss", "input", input), as_tensor("mse_loss", "target", target)
    if input.shape != target.shape:
        raise ValueError(
            f"mse_loss: expected input and target of one shape, got {input.shape} and"
            f" {target.shape}"
        )
    return _mse(input, target, reduction=reduction)


@upcast
def l1_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    r"""Return the absolute error.

    Parameters
    ----------
    input, target : Tensor
        Of one shape.
    reduction : {"mean", "sum", "none"}, default "mean"
        How to reduce the losses.

    Returns
    -------
    Tensor
        A scalar; with ``reduction="none"``, a tensor of the shape of the inputs.

    Raises
    ------
    ValueError
        If the shapes differ, or `reduction` is invalid.

    Notes
    -----
    .. math:: y = |x - t|

    - Gradient for `input`: :math:`\bar y\, \operatorname{sign}(x - t)`
    - Gradient for `target`: :math:`-\bar y\, \operatorname{sign}(x - t)`

    The formulas are for elements :math:`x` of `input` and :math:`t` of `target`, before the
    reduction.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.l1_loss(xgrad.asarray([1.0, 2.0]), xgrad.asarray([1.0, 4.0]))
    Tensor(1.)
    """
    input, target = loss_inputs("l1_loss", reduction, input=input, target=target)
    return reduce_losses(abs(input - target), reduction)


def _huber_rule(g: Any, xp: Any, x: Any, delta: float, scale: float) -> Any:
    return g * (xp.minimum(xp.maximum(x, -delta), delta) * scale)


@derivative(_huber_rule, lowest=FLOATING, highest=FLOATING, autocast="wide")
def _huber(xp: Any, x: Any, /, delta: float, scale: float) -> Any:
    """Return half the square up to `delta` and a linear function beyond, times `scale`."""
    size = xp.abs(x)
    near = xp.minimum(size, delta)
    return near * (size - near / 2) * scale


@upcast
def huber_loss(
    input: Tensor, target: Tensor, *, delta: float = 1.0, reduction: str = "mean"
) -> Tensor:
    r"""Return half the squared error up to `delta`, and ``delta * (error - delta / 2)`` beyond.

    Parameters
    ----------
    input, target : Tensor
        Of one shape.
    delta : float, default 1
        The error beyond which the loss is linear; above 0.
    reduction : {"mean", "sum", "none"}, default "mean"
        How to reduce the losses.

    Returns
    -------
    Tensor
        A scalar; with ``reduction="none"``, a tensor of the shape of the inputs.

    Raises
    ------
    ValueError
        If the shapes differ, `delta` is not above 0, or `reduction` is invalid.

    Notes
    -----
    .. math::

        y = \begin{cases}
            r^2 / 2 & \text{if } |r| \le \delta \\
            \delta\, (|r| - \delta / 2) & \text{otherwise}
        \end{cases}
        \qquad r = x - t

    - Gradient for `input`: :math:`\bar y\, \max(\min(r, \delta), -\delta)`
    - Gradient for `target`: :math:`-\bar y\, \max(\min(r, \delta), -\delta)`

    The formulas are for elements :math:`x` of `input` and :math:`t` of `target`, before the
    reduction.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.huber_loss(
    ...     xgrad.asarray([0.5, 3.0]), xgrad.zeros(2), reduction="none"
    ... )
    Tensor([0.125, 2.5  ])
    """
    check_options("huber_loss", delta=delta)
    input, target = loss_inputs("huber_loss", reduction, input=input, target=target)
    return reduce_losses(_huber(input - target, delta, 1.0), reduction)


@upcast
def smooth_l1_loss(
    input: Tensor, target: Tensor, *, beta: float = 1.0, reduction: str = "mean"
) -> Tensor:
    r"""Return `huber_loss` divided by `beta`: the absolute error, smoothed near 0.

    Parameters
    ----------
    input, target : Tensor
        Of one shape.
    beta : float, default 1
        The error beyond which the loss is linear; 0 gives `l1_loss`.
    reduction : {"mean", "sum", "none"}, default "mean"
        How to reduce the losses.

    Returns
    -------
    Tensor
        A scalar; with ``reduction="none"``, a tensor of the shape of the inputs.

    Raises
    ------
    ValueError
        If the shapes differ, `beta` is negative, or `reduction` is invalid.

    Notes
    -----
    .. math::

        y = \begin{cases}
            r^2 / (2 \beta) & \text{if } |r| \le \beta \\
            |r| - \beta / 2 & \text{otherwise}
        \end{cases}
        \qquad r = x - t

    - Gradient for `input`: :math:`\bar y\, \max(\min(r / \beta, 1), -1)`
    - Gradient for `target`: :math:`-\bar y\, \max(\min(r / \beta, 1), -1)`

    The formulas are for elements :math:`x` of `input` and :math:`t` of `target`, before the
    reduction.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.smooth_l1_loss(
    ...     xgrad.asarray([1.0, 3.0]), xgrad.zeros(2), beta=2.0, reduction="none"
    ... )
    Tensor([0.25, 2.  ])
    """
    check_options("smooth_l1_loss", beta=beta)
    input, target = loss_inputs("smooth_l1_loss", reduction, input=input, target=target)
    losses = _huber(input - target, beta, 1 / beta) if beta else abs(input - target)
    return reduce_losses(losses, reduction)


def _bce_rule(g: Any, xp: Any, input: Any, target: Any) -> Any:
    return g * ((input - target) / xp.maximum(input * (1 - input), 1e-12))


def _logarithms(xp: Any, x: Any) -> tuple[Any, Any]:
    """Return the logarithms of x and 1 - x, limited to at least -100.

    The logarithm of 0 is not computed, so that NumPy does not warn.
    """
    zero, one = x == 0, x == 1
    log = xp.maximum(xp.log(xp.where(zero, 1, x)), -100)
    return xp.where(zero, -100, log), xp.where(one, -100, xp.log1p(xp.where(one, 0, -x)))


def _bce_target_rule(g: Any, xp: Any, input: Any) -> Any:
    log, log_complement = _logarithms(xp, input)
    return g * (log_complement - log)


@derivative(_bce_rule, _bce_target_rule, lowest=FLOATING, highest=FLOATING, autocast="wide")
def _bce(xp: Any, input: Any, target: Any, /) -> Any:
    log, log_complement = _logarithms(xp, input)
    return (target - 1) * log_complement - target * log


@upcast
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, *, reduction: str = "mean"
) -> Tensor:
    r"""Return the binary cross-entropy between probabilities and a target, in nats.

    Both are probabilities of one of two classes. Logarithms are limited to at least -100, and the
    derivative is finite, as in PyTorch. `binary_cross_entropy_with_logits` is more accurate.

    Parameters
    ----------
    input : Tensor
        Probabilities, of any shape.
    target : Tensor
        Probabilities, of the shape of `input`.
    weight : Tensor, optional
        The weight of each loss, of a shape that broadcasts to the shape of `input`.
    reduction : {"mean", "sum", "none"}, default "mean"
        How to reduce the losses.

    Returns
    -------
    Tensor
        A scalar; with ``reduction="none"``, a tensor of the shape of the inputs.

    Raises
    ------
    ValueError
        If the shapes differ, `reduction` is invalid, or `input` is not from 0 to 1. The range is
        not checked on ``cuda``, where the check would have to synchronize.

    Notes
    -----
    .. math:: y = -t \ln(x) - (1 - t) \ln(1 - x)

    - Gradient for `input`: :math:`\bar y\, \frac{x - t}{x (1 - x)}`
    - Gradient for `target`: :math:`\bar y\, (\ln(1 - x) - \ln(x))`

    The formulas are for elements :math:`x` of `input` and :math:`t` of `target`, before the
    reduction.

    Examples
    --------
    >>> import xgrad
    >>> probabilities, target = xgrad.asarray([0.5, 0.0]), xgrad.asarray([1.0, 1.0])
    >>> xgrad.nn.functional.binary_cross_entropy(probabilities, target, reduction="none")
    Tensor([  0.6931472, 100.       ])
    """
    input, target = loss_inputs("binary_cross_entropy", reduction, input=input, target=target)
    backend, inside = input.device.backend, statistical.all((input >= 0) & (input <= 1))
    if not backend.asynchronous and not check_true(inside.device, inside._data):
        raise ValueError(
            "binary_cross_entropy: expected input from 0 to 1, got others: for logits, use "
            "binary_cross_entropy_with_logits"
        )
    return reduce_losses(_bce(input, target), reduction, weight)


@upcast
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    r"""Return the binary cross-entropy between ``sigmoid(input)`` and a target, in nats.

    Both are probabilities of one of two classes.

    Parameters
    ----------
    input : Tensor
        Logits, of any shape.
    target : Tensor
        Probabilities, of the shape of `input`.
    weight : Tensor, optional
        The weight of each loss, of a shape that broadcasts to the shape of `input`.
    pos_weight : Tensor, optional
        The weight of the positive class, of a shape that broadcasts to the shape of `input`.
    reduction : {"mean", "sum", "none"}, default "mean"
        How to reduce the losses.

    Returns
    -------
    Tensor
        A scalar; with ``reduction="none"``, a tensor of the shape of the inputs.

    Raises
    ------
    ValueError
        If the shapes differ, or `reduction` is invalid.

    Notes
    -----
    .. math:: y = -p\, t \ln(\sigma(x)) - (1 - t) \ln(1 - \sigma(x))

    - Gradient for `input`: :math:`\bar y \left((1 - t)\, \sigma(x) - p\, t\, (1 -
      \sigma(x))\right)`
    - Gradient for `target`: :math:`\bar y \left(\ln(1 - \sigma(x)) - p \ln(\sigma(x))\right)`

    The formulas are for elements :math:`x` of `input` and :math:`t` of `target`, before the
    reduction; :math:`p` is `pos_weight`, or 1.

    Examples
    --------
    >>> import xgrad
    >>> logits, target = xgrad.asarray([0.0, 100.0]), xgrad.asarray([1.0, 0.0])
    >>> xgrad.nn.functional.binary_cross_entropy_with_logits(
    ...     logits, target, reduction="none"
    ... )
    Tensor([  0.6931472, 100.       ])
    """
    input, target = loss_inputs(
        "binary_cross_entropy_with_logits", reduction, input=input, target=target
    )
    positive = target if pos_weight is None else target * pos_weight
    losses = (1 - target) * elementwise.softplus(input) + positive * elementwise.softplus(-input)
    return reduce_losses(losses, reduction, weight)


@upcast
def kl_div(
    input: Tensor, target: Tensor, *, reduction: str = "mean", log_target: bool = False
) -> Tensor:
    r"""Return the Kullback-Leibler divergence: terms ``target * (log(target) - input)``.

    The terms are returned as they are, or as their mean or sum.

    Parameters
    ----------
    input : Tensor
        Logarithms of probabilities, of any shape.
    target : Tensor
        Probabilities of the same shape, or their logarithms. A negative probability makes its term
        NaN.
    reduction : {"mean", "sum", "batchmean", "none"}, default "mean"
        How to reduce the terms; "batchmean", the sum divided by the length of the first axis, is
        the divergence.
    log_target : bool, default False
        Whether `target` holds logarithms.

    Returns
    -------
    Tensor
        A scalar; with ``reduction="none"``, a tensor of the shape of the inputs.

    Raises
    ------
    ValueError
        If the shapes differ, or `reduction` is invalid.

    Notes
    -----
    .. math:: y = t\, (\ln(t) - x)

    - Gradient for `input`: :math:`-\bar y\, t`
    - Gradient for `target`: :math:`\bar y\, (\ln(t) + 1 - x)`; with `log_target`, where
      :math:`y = e^t (t - x)`, :math:`\bar y\, e^t (t - x + 1)`

    The formulas are for elements :math:`x` of `input` and :math:`t` of `target`, before the
    reduction.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.kl_div(
    ...     xgrad.asarray([[-1.0, -2.0]]),
    ...     xgrad.asarray([[0.0, 1.0]]),
    ...     reduction="batchmean",
    ... )
    Tensor(2.)
    """
    check_options("kl_div", reduction=reduction, log_target=log_target)
    input, target = loss_inputs("kl_div", "none", input=input, target=target)
    if log_target:
        losses = elementwise.exp(target) * (target - input)
    else:
        losses = -entropy.entr(target) - target * input
        losses = losses + searching.where(target < 0, math.nan, creation.zeros_like(losses))
    if reduction == "batchmean":
        return statistical.sum(losses) / input.shape[0]
    return reduce_losses(losses, reduction)
