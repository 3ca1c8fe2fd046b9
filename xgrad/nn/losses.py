"""Losses as modules."""

from __future__ import annotations

from xgrad.core.tensor import Tensor
from xgrad.nn.functional import cross_entropy, mse_loss
from xgrad.nn.module import Module
from xgrad.support.docstrings import documented


@documented()
class CrossEntropyLoss(Module):
    """The cross-entropy between softmax probabilities and classes, in nats: see `functional.cross_entropy`.

    reduction : {"mean", "sum", "none"}, default "mean" -- The reduction of the losses of all rows.
    label_smoothing : float, default 0 -- The share of the target probability that is distributed evenly over all
        classes, from 0 to 1.
    raises ValueError, TypeError, IndexError -- In the call, as `functional.cross_entropy`.

    >>> loss = xgrad.nn.CrossEntropyLoss()
    >>> loss(xgrad.zeros((5, 2)), xgrad.asarray([0, 1, 0, 1, 1]))
    Tensor(0.6931472)
    """

    def __init__(self, reduction: str = "mean", label_smoothing: float = 0.0) -> None:
        super().__init__()
        self.reduction, self.label_smoothing = reduction, label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of logits of shape (batch, classes, ...) for integers of shape (batch, ...)."""
        return cross_entropy(input, target, reduction=self.reduction, label_smoothing=self.label_smoothing)


@documented()
class MSELoss(Module):
    """The squared error: see `functional.mse_loss`.

    reduction : {"mean", "sum", "none"}, default "mean" -- The reduction of the squares.
    raises ValueError -- In the call, if the shapes differ, or `reduction` is unknown.

    >>> xgrad.nn.MSELoss("sum")(xgrad.ones(3), xgrad.zeros(3))
    Tensor(3.)
    """

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of tensors of one shape."""
        return mse_loss(input, target, reduction=self.reduction)
