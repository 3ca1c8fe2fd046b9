"""Losses of sequences of labels."""

from __future__ import annotations

from xgrad.nn.functional import ctc_loss
from xgrad.nn.losses import _Loss


class CTCLoss(_Loss):
    """The negative log-likelihood of labels whose places in an input are unknown.

    See `functional.ctc_loss`.

    Parameters
    ----------
    blank : int, default 0
        The class of the blank.
    reduction : {"mean", "sum", "none"}, default "mean"
        The reduction of the losses. The mean divides each loss by the length of its target first.
    zero_infinity : bool, default False
        Whether a loss is 0 instead of infinite if the input is too short for the target.

    Raises
    ------
    TypeError, ValueError
        If an option has the wrong type or is out of range.
    ValueError, TypeError, IndexError
        In the call, as for `functional.ctc_loss`.

    Examples
    --------
    >>> import xgrad
    >>> # time, batch, classes
    >>> logs = xgrad.nn.functional.log_softmax(xgrad.zeros((5, 2, 4)))
    >>> targets = xgrad.asarray([[1, 3, 2], [2, 2, 0]])  # padded
    >>> xgrad.nn.CTCLoss()(logs, targets, [5, 4], [3, 2])
    Tensor(1.5838127)
    """

    function = staticmethod(ctc_loss)

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(blank=blank, reduction=reduction, zero_infinity=zero_infinity)
