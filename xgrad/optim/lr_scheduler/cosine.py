"""Cosine schedules."""

from __future__ import annotations

import math

from xgrad.backend.recording import refuse
from xgrad.optim.lr_scheduler.base import LRScheduler, count, number
from xgrad.optim.optimizer import Optimizer


class CosineAnnealingLR(LRScheduler):
    r"""Learning rates that fall along half a cosine in `T_max` epochs, and then rise again [1]_.

    .. math:: \mathrm{lr}_t = \eta + \tfrac{1}{2} (\mathrm{lr}_0 - \eta)\, (1 + \cos(\pi\, t / T))

    t is the epoch, η is `eta_min`, and T is `T_max`.

    Parameters
    ----------
    optimizer : Optimizer
        The optimizer whose learning rates are set.
    T_max : int
        The number of epochs.
    eta_min : float, default 0
        The smallest learning rate.
    last_epoch : int, default -1
        The number of the last epoch, to continue with an optimizer that had a schedule.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or is out of range.

    References
    ----------
    .. [1] I. Loshchilov, F. Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR
       2017, without restarts.

    Examples
    --------
    >>> import xgrad
    >>> optimizer = xgrad.optim.SGD(xgrad.nn.Linear(2, 1).parameters(), lr=1.0)
    >>> schedule = xgrad.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
    >>> for _ in range(10):
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.0]
    """

    continues = True

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = count("CosineAnnealingLR", "T_max", T_max, 1)
        self.eta_min = number("CosineAnnealingLR", "eta_min", eta_min)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the learning rates of epoch `last_epoch`."""
        if self.last_epoch == 0:
            return self._rates()
        now, before = (
            1 + math.cos(math.pi * t / self.T_max) for t in (self.last_epoch, self.last_epoch - 1)
        )
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # `before` is 0
            return [
                lr + (base - self.eta_min) * now / 2
                for lr, base in zip(self._rates(), self.base_lrs, strict=True)
            ]
        return [self.eta_min + (lr - self.eta_min) * now / before for lr in self._rates()]


class CosineAnnealingWarmRestarts(LRScheduler):
    r"""Learning rates that fall along half a cosine and restart, again and again [1]_.

    .. math::

        \mathrm{lr}_t = \eta + \tfrac{1}{2} (\mathrm{lr}_0 - \eta)\, (1 + \cos(\pi\, u / T_i)),
        \quad T_i = T_0\, m^i

    i is the number of restarts until epoch t, u the number of epochs since the last one, η is
    `eta_min`, and m is `T_mult`.

    Parameters
    ----------
    optimizer : Optimizer
        The optimizer whose learning rates are set.
    T_0 : int
        The number of epochs until the first restart.
    T_mult : int, default 1
        The factor by which each restart multiplies this number.
    eta_min : float, default 0
        The smallest learning rate.
    last_epoch : int, default -1
        The number of the last epoch, to continue with an optimizer that had a schedule.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or is out of range.

    References
    ----------
    .. [1] I. Loshchilov, F. Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR
       2017.

    Examples
    --------
    >>> import xgrad
    >>> optimizer = xgrad.optim.SGD(xgrad.nn.Linear(2, 1).parameters(), lr=1.0)
    >>> schedule = xgrad.optim.lr_scheduler.CosineAnnealingWarmRestarts(
    ...     optimizer, T_0=2, T_mult=2
    ... )
    >>> for _ in range(6):
    ...     print(round(schedule.get_last_lr()[0], 2), end=" ")
    ...     schedule.step()
    1.0 0.5 1.0 0.85 0.5 0.15
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        name = "CosineAnnealingWarmRestarts"
        self.T_0, self.T_mult = count(name, "T_0", T_0, 1), count(name, "T_mult", T_mult, 1)
        self.eta_min = number(name, "eta_min", eta_min)
        #: The position within the current period, and its length
        self.T_cur, self.T_i = 0.0, self.T_0
        self._seek(count(name, "last_epoch", last_epoch, -1) + 1)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the learning rates at the current position."""
        factor = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (lr - self.eta_min) * factor for lr in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Set the learning rates of the next epoch, or of a given one.

        An `epoch` with a fraction, such as ``epoch + batch / batches``, sets learning rates within
        an epoch.

        Examples
        --------
        >>> import xgrad
        >>> optimizer = xgrad.optim.SGD(xgrad.nn.Linear(2, 1).parameters(), lr=1.0)
        >>> schedule = xgrad.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
        >>> schedule.step(0.5)
        >>> schedule.get_last_lr()
        [0.8535533905932737]
        """
        if epoch is None:
            super().step()
            return
        refuse("CosineAnnealingWarmRestarts.step counts epochs: call it after the captured step")
        if not 0 <= number("CosineAnnealingWarmRestarts.step", "epoch", epoch) < math.inf:
            raise ValueError(
                "CosineAnnealingWarmRestarts.step: expected a finite epoch of 0 or more, got"
                f" {epoch}"
            )
        self._seek(epoch)
        self.last_epoch = math.floor(epoch)
        self._set(self.get_lr())

    def _advance(self) -> None:
        self.T_cur += 1
        if self.T_cur >= self.T_i:
            self.T_cur, self.T_i = self.T_cur % self.T_i, self.T_i * self.T_mult
        super()._advance()

    def _reset(self) -> None:
        super()._reset()
        self.T_cur, self.T_i = -1.0, self.T_0

    def _seek(self, epoch: float) -> None:
        """Set the position of an epoch."""
        period = self.T_0
        if self.T_mult == 1:
            epoch %= period
        while epoch >= period:
            epoch, period = epoch - period, period * self.T_mult
        self.T_cur, self.T_i = float(epoch), period
