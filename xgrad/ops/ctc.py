"""Connectionist temporal classification: the likelihood of a sequence of labels, in closed form.

A state is a position in the labels with a blank before, between and after them. An alignment stays
in its state, goes to the next one, or skips a blank between two different labels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xgrad.core.arguments import as_int, as_tensor
from xgrad.core.dtypes import FLOATING, int64
from xgrad.core.tensor import Tensor
from xgrad.ops.creation import arange, full_like, zeros
from xgrad.ops.declare import derivative
from xgrad.ops.elementwise import maximum
from xgrad.ops.embedding import check_numbers
from xgrad.ops.indexing import take, take_along_axis
from xgrad.ops.joining import concat, stack
from xgrad.ops.loss_reductions import check_options, reduce_losses
from xgrad.ops.manipulation import broadcast_to, expand_dims, reshape
from xgrad.ops.precision import upcast, widened
from xgrad.ops.searching import where
from xgrad.ops.statistical import cumulative_sum
from xgrad.ops.tensor_conversion import asarray, astype

#: The logarithm of 0: finite, so that no difference of two of them is NaN.
_NEVER = -1e30


def _shifted(xp: Any, x: Any, steps: int) -> Any:
    """Return the values of the states `steps` before each state, or after it if negative."""
    border = xp.full((x.shape[0], abs(steps)), _NEVER, dtype=x.dtype, device=x.device)
    if steps > 0:
        return xp.concat([border, x], axis=1)[:, : x.shape[1]]
    return xp.concat([x, border], axis=1)[:, -steps:]


def _prefixes(xp: Any, scores: Any, skips: Any, lengths: Any) -> list[Any]:
    """Return the log-likelihoods of all alignments up to each time, by their last state.

    The first entry is the one before time 0, and after the end of a sequence nothing changes.
    """
    _, batch, states = scores.shape
    numbers = xp.broadcast_to(xp.arange(states, device=scores.device), (batch, states))
    never = xp.full((batch, states), _NEVER, dtype=scores.dtype, device=scores.device)
    steps = [xp.where(numbers == 0, xp.zeros_like(never), never)]
    for t in range(scores.shape[0]):
        last = steps[-1]
        skipping = xp.where(skips, _shifted(xp, last, 2), never)
        new = xp.logaddexp(xp.logaddexp(last, _shifted(xp, last, 1)), skipping) + scores[t, ...]
        steps.append(xp.where(xp.expand_dims(lengths > t, axis=1), new, last))
    return steps


def _suffixes(xp: Any, scores: Any, skips: Any, lengths: Any, finals: Any) -> list[Any]:
    """Return the log-likelihoods of all alignments after each time, by the state at that time."""
    never = xp.full(finals.shape, _NEVER, dtype=scores.dtype, device=scores.device)
    steps = [xp.where(finals, xp.zeros_like(never), never)]
    for t in range(scores.shape[0] - 1, 0, -1):
        following = steps[-1] + scores[t, ...]
        skipping = _shifted(xp, xp.where(skips, following, never), -2)
        new = xp.logaddexp(xp.logaddexp(following, _shifted(xp, following, -1)), skipping)
        steps.append(xp.where(xp.expand_dims(lengths > t, axis=1), new, steps[-1]))
    return steps[::-1]


def _alignment_rule(
    g: Any, xp: Any, scores: Any, skips: Any, lengths: Any, finals: Any, out: Any, prefixes: Any
) -> Any:
    """Return the probability that an alignment is in each state at each time, times `g`."""
    time = scores.shape[0]
    if not time:
        return xp.zeros_like(scores)
    before = xp.stack((prefixes or _prefixes(xp, scores, skips, lengths))[1:])
    after = xp.stack(_suffixes(xp, scores, skips, lengths, finals))
    times = xp.expand_dims(xp.arange(time, device=scores.device), axis=1)
    here = xp.expand_dims((times < lengths) & ~(out <= _NEVER / 2), axis=2)  # NaN stays NaN
    logs = before + after - xp.expand_dims(out, axis=1)
    logs = xp.where(here, logs, xp.full_like(logs, _NEVER))
    return xp.expand_dims(g, axis=1) * xp.exp(logs)


@derivative(
    _alignment_rule,
    None,
    None,
    None,
    lowest=FLOATING,
    highest=FLOATING,
    residual="prefixes",
    autocast="wide",
    upcast=True,
)
def alignment_likelihood(xp: Any, scores: Any, skips: Any, lengths: Any, finals: Any, /) -> Any:
    r"""Return the log-likelihood of all alignments of each sequence, about -1e30 if there are none.

    `scores` are the log-probabilities of the states, of shape (time, batch, states); `lengths` has
    shape (batch,). `skips` tells which states may follow the state two before them, and `finals`
    in which states an alignment may end, both of shape (batch, states).

    Notes
    -----
    .. math:: y = \ln\left(\sum_\pi e^{\sum_t x_{t, \pi_t}}\right)

    - Gradient for `scores`: :math:`\bar y\, \gamma_{t, s}`, the probability that an alignment
      :math:`\pi` is in state :math:`s` at time :math:`t`
    """
    steps = _prefixes(xp, scores, skips, lengths)
    ends = xp.where(finals, steps[-1], xp.full_like(steps[-1], _NEVER))
    top = xp.max(ends, axis=1, keepdims=True)
    total = xp.log(xp.sum(xp.exp(ends - top), axis=1)) + xp.squeeze(top, axis=1)
    return total, steps


@upcast
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Sequence[int] | Tensor | int,
    target_lengths: Sequence[int] | Tensor | int,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    r"""Return the negative log-likelihood of labels whose places in an input are unknown.

    An alignment gives each time a label or the blank. It belongs to the labels that remain if
    repeated ones are merged, and then blanks removed; the likelihood is the sum over all alignments
    of a target.

    A. Graves, S. Fernández, F. Gomez, J. Schmidhuber, "Connectionist temporal classification:
    labelling unsegmented sequence data with recurrent neural networks", ICML, 2006.

    Parameters
    ----------
    log_probs : Tensor
        Logarithms of probabilities, such as the result of `log_softmax`, of shape (time, batch,
        classes), or (time, classes) without a batch.
    targets : Tensor
        The labels: integers of shape (batch, length), padded with any labels, or of shape
        (length,), all targets concatenated.
    input_lengths : sequence of int, Tensor or int
        The number of times of each sequence.
    target_lengths : sequence of int, Tensor or int
        The number of labels of each target.
    blank : int, default 0
        The class of the blank.
    reduction : {"mean", "sum", "none"}, default "mean"
        The reduction of the losses. The mean divides each loss by the length of its target first.
    zero_infinity : bool, default False
        Whether a loss is 0 instead of infinite if the input is too short for the target. Its
        gradient is 0 in both cases.

    Returns
    -------
    Tensor
        A scalar, or with ``reduction="none"`` of shape (batch,).

    Raises
    ------
    ValueError
        If the shapes do not fit, or an option is out of range.
    TypeError
        If `log_probs` is not floating, or labels or lengths are not integers.
    IndexError
        If a length or a label is out of range; not checked on ``cuda``, where the check would
        synchronize.

    Notes
    -----
    .. math:: y = -\ln\left(\sum_\pi \prod_t p_{t, \pi_t}\right)

    - Gradient for `log_probs`: :math:`-\bar y\, \gamma_{t, c}`, the probability that an alignment
      :math:`\pi` with the labels has class :math:`c` at time :math:`t`

    The gradient is the derivative with respect to `log_probs`. PyTorch returns the derivative with
    respect to the input of `log_softmax`; after the backward pass through `log_softmax`, both are
    the same.

    If `targets` are concatenated and `target_lengths` is a tensor, its values are read, which a
    captured step cannot do.

    Examples
    --------
    >>> import xgrad
    >>> F = xgrad.nn.functional
    >>> logs = F.log_softmax(xgrad.zeros((3, 1, 2)))  # three times, the blank and one label
    >>> loss = F.ctc_loss(logs, xgrad.asarray([[1]]), [3], [1])
    >>> xgrad.round(8 * xgrad.exp(-loss))  # 6 of the 8 alignments: all but 000 and 101
    Tensor(6.)
    """
    op = "ctc_loss"
    check_options(op, blank=blank, reduction=reduction, zero_infinity=zero_infinity)
    (logs,) = widened(as_tensor(op, "log_probs", log_probs))
    targets = as_tensor(op, "targets", targets)
    batched = logs.ndim == 3
    if logs.dtype.kind != "f" or targets.dtype.kind not in "iu":
        raise TypeError(
            f"{op}: expected floating log_probs and targets of integers, got {logs.dtype} and"
            f" {targets.dtype}"
        )
    if logs.ndim not in (2, 3) or targets.ndim not in (1, 2) or (targets.ndim == 2 > logs.ndim):
        raise ValueError(
            f"{op}: expected log_probs of shape (time, batch, classes) or (time, classes), and"
            f" targets of shape (batch, length) or (length,), got {logs.shape} and {targets.shape}"
        )
    logs = logs if batched else expand_dims(logs, axis=1)
    time, batch, classes = logs.shape
    if not 0 <= as_int(op, "blank", blank) < classes:
        raise ValueError(f"{op}: expected blank from 0 to {classes - 1}, got {blank}")
    times = _lengths(op, "input_lengths", input_lengths, logs, time)
    longest = targets.shape[-1]
    counts = _lengths(op, "target_lengths", target_lengths, logs, longest)
    if targets.ndim == 1 and batched:
        labels = _separated(op, targets, counts, target_lengths)
    elif targets.ndim == 1 or targets.shape[0] == batch:  # a target without a batch, or padded
        labels = reshape(targets, (batch, longest))
    else:
        raise ValueError(f"{op}: expected targets of shape ({batch}, length), got {targets.shape}")
    inside = arange(labels.shape[1], device=logs.device) < expand_dims(counts, axis=1)
    labels = where(inside, astype(labels, int64), blank)
    check_numbers(op, "targets", labels, classes)
    losses = -_likelihood(logs, labels, times, counts, blank)
    losses = where(losses >= -_NEVER / 2, 0.0 if zero_infinity else math.inf, losses)
    if reduction == "mean":
        losses = losses / astype(maximum(counts, 1), losses.dtype)
    return reduce_losses(losses if batched else losses[0], reduction)


def _likelihood(logs: Tensor, labels: Tensor, times: Tensor, counts: Tensor, blank: int) -> Tensor:
    """Return the log-likelihood of labels of shape (batch, length)."""
    time, batch, _ = logs.shape
    blanks = full_like(labels, blank)
    states = reshape(stack([blanks, labels], axis=2), (batch, 2 * labels.shape[1]))
    states = (
        concat([states, full_like(states[:, :1], blank)], axis=1)
        if labels.shape[1]
        else (zeros((batch, 1), dtype=int64, device=logs.device) + blank)
    )
    count = states.shape[1]
    numbers, ends = arange(count, device=logs.device), expand_dims(2 * counts, axis=1)
    earlier = concat([full_like(states[:, :2], blank), states], axis=1)[:, :count]
    skips = (states != blank) & (states != earlier)
    finals = (numbers == ends) | (numbers == ends - 1)
    places = broadcast_to(expand_dims(states, axis=0), (time, batch, count))
    scores = maximum(take_along_axis(logs, places, axis=2), _NEVER)
    likelihood: Tensor = alignment_likelihood(scores, skips, times, finals)
    return likelihood


def _lengths(op: str, name: str, lengths: Any, logs: Tensor, highest: int) -> Tensor:
    """Return the lengths of all sequences of a batch as a tensor, after checks."""
    batch = logs.shape[1]
    if isinstance(lengths, (list, tuple)):
        lengths = asarray([as_int(op, name, n) for n in lengths] or [0], device=logs.device)
    elif not hasattr(lengths, "dtype"):
        lengths = asarray(as_int(op, name, lengths), device=logs.device)
    counts = as_tensor(op, name, lengths)
    if counts.dtype.kind not in "iu":
        raise TypeError(f"{op}: expected {name} of integers, got {counts.dtype}")
    if counts.ndim > 1 or counts.size != batch:
        raise ValueError(f"{op}: expected {name} of shape ({batch},), got {counts.shape}")
    counts = astype(reshape(counts, (batch,)), int64, copy=False)
    check_numbers(op, name, counts, highest + 1)
    return counts


def _separated(op: str, targets: Tensor, counts: Tensor, lengths: Any) -> Tensor:
    """Return concatenated targets as rows of one length; `counts` has the `lengths`."""
    values = counts.tolist() if hasattr(lengths, "dtype") else lengths
    values = list(values) if isinstance(values, (list, tuple)) else [values]
    if math.fsum(values) != targets.size:
        raise ValueError(
            f"{op}: expected concatenated targets of shape ({math.fsum(values):.0f},), the sum of"
            f" target_lengths, got {targets.shape}"
        )
    places = arange(max(values, default=0), device=targets.device)
    numbers = expand_dims(cumulative_sum(counts) - counts, axis=1) + places
    if not targets.size:
        return zeros(numbers.shape, dtype=int64, device=targets.device)
    numbers = where(places < expand_dims(counts, axis=1), numbers, 0)
    return reshape(take(targets, reshape(numbers, (-1,)), axis=0), numbers.shape)
