"""Combinations of schedules."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from xgrad.optim.lr_scheduler.base import LRScheduler, count, items
from xgrad.optim.lr_scheduler.plateau import ReduceLROnPlateau
from xgrad.optim.optimizer import Optimizer
from xgrad.support.hints import shown
from xgrad.support.states import load_or_restore


class _Combined(LRScheduler):
    """Several schedules of one optimizer."""

    def __init__(self, optimizer: Optimizer, schedulers: Sequence[LRScheduler]) -> None:
        name = type(self).__name__
        self._schedulers = items(name, "schedulers", schedulers)
        if not self._schedulers:
            raise ValueError(f"{name}: expected schedulers, got none")
        for i, scheduler in enumerate(self._schedulers):
            if not isinstance(scheduler, LRScheduler) or isinstance(scheduler, ReduceLROnPlateau):
                raise TypeError(
                    f"{name}: expected schedulers, but not ReduceLROnPlateau, got"
                    f" {type(scheduler).__name__} at {i}"
                )
            if scheduler.optimizer is not optimizer:
                raise ValueError(
                    f"{name}: expected schedulers of one optimizer, got another optimizer at {i}"
                )
        super().__init__(optimizer)

    def _reset(self) -> None:
        super()._reset()
        for scheduler in self._schedulers:
            scheduler._reset()

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of everything needed to continue later, for all schedulers."""
        return super().state_dict() | {
            "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a result of `state_dict`; raise a ValueError for anything else.

        After an error, nothing is loaded.
        """
        schedulers, load_own = self._schedulers, super().load_state_dict

        def load(state: Mapping[str, Any]) -> None:
            load_own(state)
            states, self._schedulers = self._schedulers, schedulers
            for scheduler, part in zip(schedulers, states, strict=True):
                scheduler.load_state_dict(part)

        load_or_restore(
            f"{type(self).__name__}.load_state_dict", load, state_dict, self.state_dict()
        )


class SequentialLR(_Combined):
    r"""Schedules one after the other; each starts with its epoch 0 at a milestone.

    .. math:: \mathrm{lr}_t = \mathrm{lr}^{(k)}_{t - m_k}, \quad m_k \le t < m_{k+1}

    The schedule k starts at epoch :math:`m_k`, the first one at 0.

    Parameters
    ----------
    optimizer : Optimizer
        The optimizer whose learning rates are set.
    schedulers : list of LRScheduler
        The schedules, made for this optimizer.
    milestones : list of int
        The epochs at which the second schedule, the third and so on start.
    last_epoch : int, default -1
        Only -1: `load_state_dict` continues a sequence.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or is out of range.

    Examples
    --------
    >>> import xgrad
    >>> optimizer = xgrad.optim.SGD(xgrad.nn.Linear(2, 1).parameters(), lr=1.0)
    >>> from xgrad.optim import lr_scheduler
    >>> warm_up = lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
    >>> decay = lr_scheduler.ExponentialLR(optimizer, 0.5)
    >>> schedule = lr_scheduler.SequentialLR(optimizer, [warm_up, decay], milestones=[2])
    >>> for _ in range(5):
    ...     print(schedule.get_last_lr()[0], end=" ")
    ...     schedule.step()
    0.5 0.75 1.0 0.5 0.25
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        if last_epoch != -1:
            raise ValueError(
                f"SequentialLR: expected last_epoch to be -1, got {shown(last_epoch)}: continue by"
                " load_state_dict"
            )
        schedulers = items("SequentialLR", "schedulers", schedulers)
        milestones = items("SequentialLR", "milestones", milestones)
        self._milestones = [count("SequentialLR", "milestones", epoch) for epoch in milestones]
        if len(self._milestones) != len(schedulers) - 1:
            raise ValueError(
                "SequentialLR: expected one milestone less than schedulers, got"
                f" {len(self._milestones)} and {len(schedulers)}"
            )
        if self._milestones != sorted(self._milestones):
            raise ValueError(
                f"SequentialLR: expected milestones in ascending order, got {self._milestones}"
            )
        super().__init__(optimizer, schedulers)

    def get_lr(self) -> list[float]:
        """Advance the schedule of epoch `last_epoch`, and return its learning rates."""
        index = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[index]
        if not self.last_epoch:
            scheduler._begin()
        elif self.last_epoch == (0, *self._milestones)[index]:
            scheduler._restart()
        else:
            scheduler._advance()
        return self._rates()


class ChainedScheduler(_Combined):
    """Schedules that are applied one after another in each epoch.

    Parameters
    ----------
    schedulers : list of LRScheduler
        The schedules, made for one optimizer.
    optimizer : Optimizer, optional
        By default the schedules' optimizer.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or is out of range.

    Examples
    --------
    >>> import xgrad
    >>> optimizer = xgrad.optim.SGD(xgrad.nn.Linear(2, 1).parameters(), lr=1.0)
    >>> from xgrad.optim import lr_scheduler
    >>> warm_up = lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> decay = lr_scheduler.ExponentialLR(optimizer, 0.5)
    >>> schedule = lr_scheduler.ChainedScheduler([warm_up, decay])
    >>> for _ in range(4):
    ...     print(schedule.get_last_lr()[0], end=" ")
    ...     schedule.step()
    0.5 0.25 0.25 0.125
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        schedulers = items("ChainedScheduler", "schedulers", schedulers)
        known: Any = getattr(schedulers[0], "optimizer", None) if schedulers else None
        super().__init__(known if optimizer is None else optimizer, schedulers)

    def get_lr(self) -> list[float]:
        """Advance all schedules, and return the learning rates.

        Schedules that were created in epoch 0 are not advanced to it again.
        """
        for scheduler in self._schedulers:
            if self.last_epoch or scheduler.last_epoch < 0:
                scheduler._advance()
        return self._rates()
