"""A schedule that follows a metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xgrad.backend.recording import refuse
from xgrad.optim.lr_scheduler.base import LRScheduler, count, number, numbers
from xgrad.optim.optimizer import Optimizer
from xgrad.support.hints import shown


class ReduceLROnPlateau(LRScheduler):
    r"""Learning rates that are multiplied by a factor when a metric has stopped improving.

    .. math:: \mathrm{lr} \gets \max(f\, \mathrm{lr}, m)

    f is the `factor`, and m is `min_lr`.

    Parameters
    ----------
    optimizer : Optimizer
        The optimizer whose learning rates are set.
    mode : {"min", "max"}, default "min"
        Whether the metric should fall or rise.
    factor : float, default 0.1
        The factor, below 1.
    patience : int, default 10
        The number of epochs without improvement to tolerate.
    threshold : float, default 1e-4
        The smallest improvement that counts.
    threshold_mode : {"rel", "abs"}, default "rel"
        Whether the threshold is relative to the best value.
    cooldown : int, default 0
        The number of epochs after a reduction in which epochs without improvement are not
        counted.
    min_lr : float or list of float, default 0
        The smallest learning rate, or one for each group.
    eps : float, default 1e-8
        Reductions of a learning rate by at most this are skipped.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or is out of range.

    Examples
    --------
    >>> import xgrad
    >>> optimizer = xgrad.optim.SGD(xgrad.nn.Linear(2, 1).parameters(), lr=1.0)
    >>> schedule = xgrad.optim.lr_scheduler.ReduceLROnPlateau(
    ...     optimizer, factor=0.5, patience=1
    ... )
    >>> for loss in (3.0, 2.0, 2.0, 2.0):
    ...     schedule.step(loss)
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0.0,
        eps: float = 1e-8,
    ) -> None:
        name = "ReduceLROnPlateau"
        if not number(name, "factor", factor) < 1:
            raise ValueError(f"{name}: expected a factor below 1, got {shown(factor)}")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(
                f"{name}: expected mode 'min' or 'max' and threshold_mode 'rel' or 'abs', got"
                f" {shown(mode)} and {shown(threshold_mode)}"
            )
        self.mode, self.factor, self.threshold_mode = mode, factor, threshold_mode
        self.threshold, self.eps = number(name, "threshold", threshold), number(name, "eps", eps)
        self.patience = count(name, "patience", patience)
        self.cooldown = count(name, "cooldown", cooldown)
        self.min_lrs = numbers(name, "min_lr", min_lr, optimizer)
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = 0
        self.cooldown_counter = 0
        super().__init__(optimizer)

    def get_lr(self) -> list[float]:
        """Return the current learning rates, which the constructor does not change."""
        return self._rates()

    def step(self, metrics: Any) -> None:  # type: ignore[override]
        """Compare a metric with the best one so far, and reduce the learning rates on a plateau.

        `metrics` is a number or a tensor.
        """
        refuse("ReduceLROnPlateau.step reads a metric: call it after the captured step")
        try:
            value = float(metrics)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"ReduceLROnPlateau.step: expected a number for metrics, got {shown(metrics)}"
            ) from error
        self.last_epoch += 1
        if self._improves(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
            reduced = [
                max(lr * self.factor, least)
                for lr, least in zip(self._rates(), self.min_lrs, strict=True)
            ]
            pairs = zip(self._rates(), reduced, strict=True)
            self._set([new if old - new > self.eps else old for old, new in pairs])
        self._last_lr = self._rates()

    def _improves(self, value: float) -> bool:
        sign = -1 if self.mode == "min" else 1
        relative = self.threshold_mode == "rel"
        bound = (
            self.best * (1 + sign * self.threshold)
            if relative
            else self.best + sign * self.threshold
        )
        return sign * value > sign * bound
