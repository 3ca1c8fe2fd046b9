"""Losses for classes: cross-entropy, negative log-likelihood and the multi-class hinge loss."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xgrad.backend.overridable import overridable
from xgrad.backend.recording import run_array_code
from xgrad.core.arguments import as_int, as_number, as_tensor, is_below, is_not_negative
from xgrad.core.dtypes import FLOATING, int64
from xgrad.core.tensor import Tensor
from xgrad.ops.creation import arange, ones_like
from xgrad.ops.declare import derivative
from xgrad.ops.elementwise import relu
from xgrad.ops.embedding import check_numbers
from xgrad.ops.indexing import take, take_along_axis
from xgrad.ops.loss_reductions import check_options, check_reduction, reduce_losses, reduced
from xgrad.ops.manipulation import expand_dims, reshape, squeeze
from xgrad.ops.precision import upcast, widened
from xgrad.ops.searching import where
from xgrad.ops.softmaxes import log_softmax, softmax
from xgrad.ops.statistical import mean, sum
from xgrad.ops.tensor_conversion import astype


def _one_hot(xp: Any, target: Any, x: Any) -> Any:
    """Return bools along the class axis of `x`, True at the target class."""
    axis, ndim = _class_axis(x), len(x.shape)
    # The range of uint8 may be too short for the classes.
    target = xp.astype(target, xp.int64, copy=False)
    classes = xp.arange(x.shape[axis], dtype=xp.int64, device=x.device)
    if axis == ndim - 1:
        return xp.expand_dims(target, axis=-1) == classes
    return xp.expand_dims(target, axis=axis) == xp.reshape(
        classes, (-1,) + (1,) * (ndim - axis - 1)
    )


def _class_axis(x: Any) -> int:
    return 0 if len(x.shape) == 1 else 1


@overridable
def _cross_entropy_gradient(
    xp: Any, g: Any, input: Any, target: Any, reduction: str, label_smoothing: float, scale: Any
) -> Any:
    """Return the gradient for the input: the probabilities of each row, minus 1 at the target."""
    axis = _class_axis(input)
    wanted = xp.astype(_one_hot(xp, target, input), input.dtype)
    if label_smoothing:
        wanted = wanted * (1 - label_smoothing) + label_smoothing / input.shape[axis]
    if reduction == "mean":
        g = g / math.prod(target.shape)
    elif reduction == "none":
        g = xp.expand_dims(g, axis=axis)
    probabilities = (
        softmax(input, axis=axis) if scale is None else xp.exp(input - scale[0]) / scale[1]
    )
    return (probabilities - wanted) * g


@derivative(
    _cross_entropy_gradient,
    None,
    lowest=FLOATING,
    highest=FLOATING,
    residual="scale",
    autocast="wide",
    upcast=True,
)
def _cross_entropy(
    xp: Any, input: Any, target: Any, *, reduction: str, label_smoothing: float
) -> Any:
    axis = _class_axis(input)
    if not input.shape[axis] and 0 not in target.shape:
        raise IndexError("expected classes, got none")
    top = xp.max(input, axis=axis, keepdims=True)
    x = input - top
    total = xp.sum(xp.exp(x), axis=axis, keepdims=True)
    if len(x.shape) == 2:
        chosen = x[xp.arange(x.shape[0], device=x.device), xp.astype(target, xp.int64, copy=False)]
    else:
        chosen = xp.squeeze(
            xp.take_along_axis(x, xp.expand_dims(target, axis=axis), axis=axis), axis=axis
        )
    logs = xp.log(xp.squeeze(total, axis=axis))
    losses = logs - chosen
    if label_smoothing:
        losses = losses * (1 - label_smoothing) + label_smoothing * (logs - xp.mean(x, axis=axis))
    return reduced(xp, losses, reduction), (top, total)


def _plain(input: Tensor, target: Tensor, reduction: str, label_smoothing: float) -> Tensor | None:
    """Return the cross-entropy of classes, computed by one op; None if some are negative.

    A negative class may be -100, which is ignored.
    """
    raw, shape, placement = target._data, input._data.shape, target._placement
    device, signed = placement.device, placement.kind == "i"
    checked = device.backend.asynchronous or 0 in raw.shape
    last = shape[0 if len(shape) == 1 else 1] - 1
    with device.active():
        # Negative classes would count from the end; unsigned ones may wrap around in int64.
        if signed:
            wrong = not checked and not run_array_code(device, is_not_negative, raw)
        else:
            checked = checked or np.iinfo(target.dtype).max <= last
            wrong = not checked and not run_array_code(device, is_below, raw, last + 1)
    try:
        if not wrong:
            return _cross_entropy(
                input, target, reduction=reduction, label_smoothing=label_smoothing
            )
    except IndexError:
        if checked:
            raise
    if wrong and signed:  # -100, or a class that does not exist
        return None
    with device.active():
        low, high = device.xp.min(raw), device.xp.max(raw)
        got = "others" if device.level else int(low) if low < 0 else int(high)
    raise IndexError(
        f"cross_entropy: expected target from 0 to {last}, got {got}: the input has {last + 1}"
        " classes"
    ) from None


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    r"""Return the cross-entropy between softmax probabilities and targets, in nats.

    The targets are classes or probabilities.

    Parameters
    ----------
    input : Tensor
        Logits, of shape (classes,), (batch, classes) or (batch, classes, ...), floating.
    target : Tensor
        The right classes, counted from 0: integers, of the shape of `input` without its class
        axis. Or probabilities: floating, of the shape of `input`.
    weight : Tensor, optional
        The weight of each class, of shape (classes,), by which the mean is
        weighted, unless targets are probabilities.
    ignore_index : int, optional
        The class of targets to ignore; by default -100, which must be given on ``cuda``.
    reduction : {"mean", "sum", "none"}, default "mean"
        How to reduce the losses of the rows.
    label_smoothing : float, default 0
        The fraction of the target probability, from 0 to 1, that is distributed uniformly over all
        classes.

    Returns
    -------
    Tensor
        A scalar, or with ``reduction="none"`` of the shape of `input` without its class axis.

    Raises
    ------
    ValueError
        If the shapes do not fit, if `reduction` or `label_smoothing` is none of the above, or if
        `ignore_index` is given for probabilities.
    TypeError
        If `target` holds neither integers nor floats.
    IndexError
        If a class does not exist; not checked on ``cuda``, where the check would synchronize.

    Notes
    -----
    .. math:: y = -\sum_c t_c \ln(p_c), \quad p_c = \frac{e^{x_c}}{\sum_k e^{x_k}}

    - Gradient for `input`: :math:`\bar y\, (p_c - t_c)`
    - Gradient for `target`: :math:`-\bar y \ln(p_c)`, if it has probabilities

    The formulas are for a row :math:`x` of `input`, before the reduction; :math:`t` are the target
    probabilities, for a class 1 at it and else 0. A weight :math:`w_c` multiplies :math:`t_c`, and
    smoothing replaces :math:`t_c` by :math:`(1 - \varepsilon)\, t_c + \varepsilon / C`.

    Examples
    --------
    >>> import xgrad
    >>> logits = xgrad.asarray([[0.0, 0.0], [1e4, -1e4]])
    >>> xgrad.nn.functional.cross_entropy(logits, xgrad.asarray([0, 1]), reduction="none")
    Tensor([6.931472e-01, 2.000000e+04])
    """
    op = "cross_entropy"
    check_reduction(op, reduction)
    input, target = as_tensor(op, "input", input), as_tensor(op, "target", target)
    if not 0 <= as_number(op, "label_smoothing", label_smoothing) <= 1:
        raise ValueError(
            f"cross_entropy: expected label_smoothing from 0 to 1, got {label_smoothing}"
        )
    if target._placement.kind == "f":
        return _of_probabilities(input, target, weight, ignore_index, reduction, label_smoothing)
    _check_classes(op, input, target)
    if weight is None and ignore_index in (None, -100):
        unchecked = ignore_index is not None and input.device.backend.asynchronous
        out = None if unchecked else _plain(input, target, reduction, label_smoothing)
        if out is not None:
            return out
    return _of_weights(input, target, weight, ignore_index, reduction, label_smoothing)


@upcast
def _of_weights(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int | None,
    reduction: str,
    label_smoothing: float,
) -> Tensor:
    """Return the cross-entropy of classes, with weights and ignored targets, composed of ops."""
    op = "cross_entropy"
    logs = log_softmax(input, axis=_class_axis(input))
    out = _of_logarithms(op, logs, target, weight, ignore_index, reduction)
    if not label_smoothing:
        return out
    axis = _class_axis(logs)
    ignored, _, weights = _targets(op, logs, target, weight, ignore_index)
    spread = -sum(logs if weight is None else logs * _along(weight, logs, axis), axis=axis)
    spread = where(ignored, 0, spread)
    if reduction != "none":
        spread = sum(spread) / sum(weights) if reduction == "mean" else sum(spread)
    return out * (1 - label_smoothing) + spread * (label_smoothing / input.shape[axis])


def _check_classes(op: str, input: Tensor, target: Tensor) -> None:
    shape, classes = input._data.shape, target._data.shape
    if target._placement.kind not in "iu":
        raise TypeError(
            f"{op}: expected target of integers, got {target.dtype}: use argmax or astype"
        )
    if not shape or classes != (shape[1:] if len(shape) == 1 else shape[:1] + shape[2:]):
        raise ValueError(
            f"{op}: expected input of shape (batch, classes, ...) and target of shape (batch, ...),"
            f" got {input.shape} and {target.shape}"
        )


def _along(weight: Tensor, x: Tensor, axis: int) -> Tensor:
    return reshape(weight, (-1,) + (1,) * (x.ndim - axis - 1))


def _targets(
    op: str, input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return where targets are ignored, their classes, and their weights.

    Classes and weights are 0 where a target is ignored.
    """
    count = input.shape[_class_axis(input)]
    target = astype(target, int64, copy=False)
    ignored = target == (-100 if ignore_index is None else as_int(op, "ignore_index", ignore_index))
    classes = where(ignored, 0, target)
    check_numbers(op, "target", classes, count)
    weights = (
        ones_like(classes, dtype=input.dtype)
        if weight is None
        else _weights(op, weight, classes, count)
    )
    return ignored, classes, where(ignored, 0, weights)


def _weights(op: str, weight: Tensor, classes: Tensor, count: int) -> Tensor:
    """Return the weight of each given class."""
    _check_weight(op, weight, count)
    return reshape(take(weight, reshape(classes, (classes.size,)), axis=0), classes.shape)


def _check_weight(op: str, weight: Tensor, count: int) -> None:
    if as_tensor(op, "weight", weight).shape != (count,):
        raise ValueError(f"{op}: expected weight of shape {(count,)}, got {weight.shape}")


@upcast
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Tensor:
    r"""Return the negative log-probability of the right classes.

    Parameters
    ----------
    input : Tensor
        Logarithms of probabilities, of shape (classes,), (batch, classes) or (batch, classes, ...).
    target : Tensor
        The right classes, counted from 0: integers, of the shape of `input` without its class
        axis.
    weight : Tensor, optional
        The weight of each class, of shape (classes,), by which the mean is
        weighted.
    ignore_index : int, optional
        The class of targets to ignore; by default -100.
    reduction : {"mean", "sum", "none"}, default "mean"
        How to reduce the losses of the rows.

    Returns
    -------
    Tensor
        A scalar, or with ``reduction="none"`` of the shape of `target`.

    Raises
    ------
    ValueError
        If the shapes do not fit, or `reduction` is none of the above.
    TypeError
        If `target` does not hold integers.
    IndexError
        If a class does not exist; not checked on ``cuda``, where the check would synchronize.

    Notes
    -----
    .. math:: y = -w_t\, x_t

    - Gradient for `input`: :math:`-\bar y\, w_t\, [c = t]`
    - Gradient for `weight`: :math:`-\bar y\, x_t\, [c = t]`; with the mean, less the share of its
      denominator :math:`\sum w_t`

    The formulas are for a row :math:`x` of `input` and its class :math:`t`, before the reduction.

    Examples
    --------
    >>> import xgrad
    >>> logs = xgrad.asarray([[-1.0, -2.0], [-3.0, -4.0]])
    >>> xgrad.nn.functional.nll_loss(logs, xgrad.asarray([0, 1]))
    Tensor(2.5)
    """
    check_reduction("nll_loss", reduction)
    input, target = widened(
        as_tensor("nll_loss", "input", input), as_tensor("nll_loss", "target", target)
    )
    _check_classes("nll_loss", input, target)
    return _of_logarithms("nll_loss", input, target, weight, ignore_index, reduction)


def _of_logarithms(
    op: str,
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int | None,
    reduction: str,
) -> Tensor:
    ignored, classes, weights = _targets(op, input, target, weight, ignore_index)
    axis = _class_axis(input)
    chosen = squeeze(take_along_axis(input, expand_dims(classes, axis=axis), axis=axis), axis=axis)
    losses = where(ignored, 0, -chosen * weights)
    if reduction == "none":
        return losses
    return sum(losses) / sum(weights) if reduction == "mean" else sum(losses)


@upcast
def _of_probabilities(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int | None,
    reduction: str,
    label_smoothing: float,
) -> Tensor:
    if ignore_index is not None:
        raise ValueError("cross_entropy: expected no ignore_index for a target of probabilities")
    if not input.ndim or target.shape != input.shape:
        raise ValueError(
            "cross_entropy: expected a target of probabilities of the shape of input, got"
            f" {input.shape} and {target.shape}"
        )
    axis = _class_axis(input)
    count = input.shape[axis]
    if weight is not None:
        _check_weight("cross_entropy", weight, count)
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / count
    terms = log_softmax(input, axis=axis) * target
    losses = -sum(terms if weight is None else terms * _along(weight, input, axis), axis=axis)
    if reduction == "none":
        return losses
    return sum(losses) / losses.size if reduction == "mean" else sum(losses)


@upcast
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    *,
    reduction: str = "mean",
) -> Tensor:
    r"""Return the hinge loss of classes: the mean of ``max(0, margin - right + other)**p``.

    `right` is the score of the right class, `other` is another score. The right class adds 0.

    Parameters
    ----------
    input : Tensor
        Scores, of shape (batch, classes), or (classes,).
    target : Tensor
        The right classes, counted from 0: integers, of shape (batch,), or ().
    p : {1, 2}, default 1
        The power.
    margin : float, default 1
        The loss is 0 where the right score exceeds the other by this much or more.
    weight : Tensor, optional
        The weight of each class, of shape (classes,).
    reduction : {"mean", "sum", "none"}, default "mean"
        How to reduce the losses of the rows.

    Returns
    -------
    Tensor
        A scalar, or with ``reduction="none"`` of the shape of `target`.

    Raises
    ------
    ValueError
        If the shapes do not fit, or `p` or `reduction` is none of the above.
    TypeError
        If `target` does not hold integers.
    IndexError
        If a class does not exist; not checked on ``cuda``, where the check would synchronize.

    Notes
    -----
    .. math:: y = \frac{w_t}{C} \sum_{c \ne t} \max(0, m - x_t + x_c)^p

    - Gradient for `input`: :math:`\bar x_c = \bar y\, \frac{p\, w_t}{C} \max(0, m - x_t + x_c)^{p -
      1}` for :math:`c \ne t`, and :math:`\bar x_t = -\sum_{c \ne t} \bar x_c`

    The formulas are for a row :math:`x` of `input` and its class :math:`t`, before the reduction;
    :math:`m` is the margin, and :math:`w_t` the weight of the class.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.multi_margin_loss(
    ...     xgrad.asarray([[0.5, 0.0, 2.0]]), xgrad.asarray([0])
    ... )
    Tensor(1.)
    """
    op = "multi_margin_loss"
    check_options(op, reduction=reduction, p=p, margin=margin)
    input, target = widened(as_tensor(op, "input", input), as_tensor(op, "target", target))
    _check_classes(op, input, target)
    if input.ndim > 2:
        raise ValueError(f"{op}: expected input of shape (batch, classes), got {input.shape}")
    count = input.shape[-1]
    target = astype(target, int64, copy=False)
    check_numbers(op, "target", target, count)
    right = expand_dims(target, axis=-1)
    losses = relu(margin - take_along_axis(input, right, axis=-1) + input) ** p
    losses = mean(where(right == arange(count, device=input.device), 0, losses), axis=-1)
    return reduce_losses(
        losses, reduction, None if weight is None else _weights(op, weight, target, count)
    )
