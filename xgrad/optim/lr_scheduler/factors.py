"""Schedules that multiply learning rates by factors."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from xgrad.optim.lr_scheduler.base import LRScheduler, count, fraction, items, number, one_for_each
from xgrad.optim.optimizer import Optimizer
from xgrad.support.hints import shown


class LambdaLR(LRScheduler):
    r"""The initial learning rate times a function of the epoch.

    .. math:: \mathrm{lr}_t = \mathrm{lr}_0\, f(t)

    t is the epoch, and f the `lr_lambda`.

    Parameters
    ----------
    optimizer : Optimizer
        The optimizer whose learning rates are set.
    lr_lambda : callable or list of callable
        A function that returns the factor for an epoch, or one function for each group.
    last_epoch : int, default -1
        The number of the last epoch, to continue with an optimizer that had a schedule.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or is out of range.

    Examples
    --------
    >>> import xgrad
    >>> optimizer = xgrad.optim.SGD(xgrad.nn.Linear(2, 1).parameters(), lr=1.0)
    >>> schedule = xgrad.optim.lr_scheduler.LambdaLR(
    ...     optimizer, lambda epoch: 1 / (1 + epoch)
    ... )
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        self.lr_lambdas = functions("LambdaLR", lr_lambda, optimizer)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the learning rates of epoch `last_epoch`."""
        factors = results("LambdaLR", self.lr_lambdas, self.last_epoch)
        return [lr * factor for lr, factor in zip(self.base_lrs, factors, strict=True)]


class MultiplicativeLR(LRScheduler):
    r"""Learning rates that are multiplied by a function of the epoch in each epoch but the first.

    .. math:: \mathrm{lr}_t = \mathrm{lr}_{t-1}\, f(t), \quad t > 0

    t is the epoch, and f the `lr_lambda`.

    Parameters
    ----------
    optimizer : Optimizer
        The optimizer whose learning rates are set.
    lr_lambda : callable or list of callable
        A function that returns the factor for an epoch from 1 on, or one function for each group.
    last_epoch : int, default -1
        The number of the last epoch, to continue with an optimizer that had a schedule.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or is out of range.

    Examples
    --------
    >>> import xgrad
    >>> optimizer = xgrad.optim.SGD(xgrad.nn.Linear(2, 1).parameters(), lr=1.0)
    >>> schedule = xgrad.optim.lr_scheduler.MultiplicativeLR(
    ...     optimizer, lambda epoch: 1 / epoch
    ... )
    >>> for _ in range(4):
    ...     schedule.step()
    >>> schedule.get_last_lr()  # 1 / 4!
    [0.041666666666666664]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        self.lr_lambdas = functions("MultiplicativeLR", lr_lambda, optimizer)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the learning rates of epoch `last_epoch`."""
        factors = results("MultiplicativeLR", self.lr_lambdas, self.last_epoch)
        return [lr * factor for lr, factor in zip(self._rates(), factors, strict=True)]

    def _first_lr(self) -> list[float]:
        return self._rates()

    def _begin(self) -> None:
        self.last_epoch = 0
        self._set(self.base_lrs)

    def _restart(self) -> None:
        self._reset()
        self._advance()


def functions(name: str, value: Any, optimizer: Optimizer) -> list[Callable[[int], float]]:
    """Return a function for each group of an optimizer, given one for all or one for each."""
    values = one_for_each(name, "lr_lambda", value, optimizer)
    for function in values:
        if not callable(function):
            raise TypeError(f"{name}: expected a function for lr_lambda, got {shown(function)}")
    return values


def results(name: str, lambdas: Iterable[Callable[[int], float]], epoch: int) -> list[float]:
    """Return the factors of an epoch."""
    return [number(name, "a result of lr_lambda", function(epoch)) for function in lambdas]


class Multiplied(LRScheduler):
    """Schedules that multiply all learning rates by a factor in each epoch."""

    def ratio(self, epoch: int) -> float:
        """Return the ratio of an epoch's learning rate to the previous one.

        For epoch 0, it is the ratio to the initial learning rate.
        """
        raise NotImplementedError

    def get_lr(self) -> list[float]:
        """Return the learning rates of epoch `last_epoch`."""
        return [lr * self.ratio(self.last_epoch) for lr in self._rates()]


class StepLR(Multiplied):
    r"""Learning rates that are multiplied by a factor every `step_size` epochs.

    .. math:: \mathrm{lr}_t = \mathrm{lr}_0\, \gamma^{\lfloor t / s \rfloor}

    t is the epoch, and s the `step_size`.

    Parameters
    ----------
    optimizer : Optimizer
        The optimizer whose learning rates are set.
    step_size : int
        The number of epochs.
    gamma : float, default 0.1
        The factor.
    last_epoch : int, default -1
        The number of the last epoch, to continue with an optimizer that had a schedule.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or is out of range.

    Examples
    --------
    >>> import xgrad
    >>> optimizer = xgrad.optim.SGD(xgrad.nn.Linear(2, 1).parameters(), lr=1.0)
    >>> schedule = xgrad.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> for _ in range(5):
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = count("StepLR", "step_size", step_size, 1)
        self.gamma = number("StepLR", "gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def ratio(self, epoch: int) -> float:
        """Return the factor of an epoch."""
        return self.gamma if epoch and epoch % self.step_size == 0 else 1.0


class MultiStepLR(Multiplied):
    r"""Learning rates that are multiplied by a factor at given epochs.

    .. math:: \mathrm{lr}_t = \mathrm{lr}_0\, \gamma^{n_t}

    n is the number of `milestones` up to epoch t.

    Parameters
    ----------
    optimizer : Optimizer
        The optimizer whose learning rates are set.
    milestones : iterable of int
        The epochs; an epoch that is given twice counts twice.
    gamma : float, default 0.1
        The factor.
    last_epoch : int, default -1
        The number of the last epoch, to continue with an optimizer that had a schedule.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or is out of range.

    Examples
    --------
    >>> import xgrad
    >>> optimizer = xgrad.optim.SGD(xgrad.nn.Linear(2, 1).parameters(), lr=1.0)
    >>> schedule = xgrad.optim.lr_scheduler.MultiStepLR(optimizer, [1, 3], gamma=0.5)
    >>> for _ in range(5):
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        epochs = [
            count("MultiStepLR", "milestones", epoch)
            for epoch in items("MultiStepLR", "milestones", milestones)
        ]
        self.milestones = dict(Counter(epochs))  # a plain dict, as `xgrad.load` returns it
        self.gamma = number("MultiStepLR", "gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def ratio(self, epoch: int) -> float:
        """Return the factor of an epoch."""
        return self.gamma ** self.milestones.get(epoch, 0)


class ExponentialLR(Multiplied):
    r"""Learning rates that are multiplied by a factor in each epoch.

    .. math:: \mathrm{lr}_t = \mathrm{lr}_0\, \gamma^t

    t is the epoch.

    Parameters
    ----------
    optimizer : Optimizer
        The optimizer whose learning rates are set.
    gamma : float
        The factor.
    last_epoch : int, default -1
        The number of the last epoch, to continue with an optimizer that had a schedule.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or is out of range.

    Examples
    --------
    >>> import xgrad
    >>> optimizer = xgrad.optim.SGD(xgrad.nn.Linear(2, 1).parameters(), lr=1.0)
    >>> schedule = xgrad.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    >>> for _ in range(3):
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.125]
    """

    continues = True

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = number("ExponentialLR", "gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def ratio(self, epoch: int) -> float:
        """Return the factor of an epoch."""
        return self.gamma if epoch else 1.0


class ConstantLR(Multiplied):
    r"""Learning rates that are multiplied by a factor until epoch `total_iters`.

    .. math:: \mathrm{lr}_t = f\, \mathrm{lr}_0 \text{ if } t < T, \quad \text{else } \mathrm{lr}_0

    t is the epoch, f the `factor`, and T is `total_iters`.

    Parameters
    ----------
    optimizer : Optimizer
        The optimizer whose learning rates are set.
    factor : float, default 1/3
        The factor, above 0 and at most 1.
    total_iters : int, default 5
        The number of epochs.
    last_epoch : int, default -1
        The number of the last epoch, to continue with an optimizer that had a schedule.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or is out of range.

    Examples
    --------
    >>> import xgrad
    >>> optimizer = xgrad.optim.SGD(xgrad.nn.Linear(2, 1).parameters(), lr=1.0)
    >>> schedule = xgrad.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> for _ in range(3):
    ...     print(schedule.get_last_lr())
    ...     schedule.step()
    [0.5]
    [0.5]
    [1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.factor = fraction("ConstantLR", "factor", factor, positive=True)
        self.total_iters = count("ConstantLR", "total_iters", total_iters)
        super().__init__(optimizer, last_epoch)

    def ratio(self, epoch: int) -> float:
        """Return the factor of an epoch."""
        return self.factor if epoch == 0 else 1 / self.factor if epoch == self.total_iters else 1.0


class LinearLR(Multiplied):
    r"""Learning rates times a factor that changes linearly until epoch `total_iters`: a warm-up.

    .. math::

        \mathrm{lr}_t = \mathrm{lr}_0\, \left(a + (b - a) \min\left(\frac{t}{T}, 1\right)\right)

    t is the epoch, a and b are the factors at the start and at the end, and T is `total_iters`.

    Parameters
    ----------
    optimizer : Optimizer
        The optimizer whose learning rates are set.
    start_factor : float, default 1/3
        The factor in epoch 0, above 0 and at most 1.
    end_factor : float, default 1
        The factor from epoch `total_iters` on, from 0 to 1.
    total_iters : int, default 5
        The number of epochs.
    last_epoch : int, default -1
        The number of the last epoch, to continue with an optimizer that had a schedule.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or is out of range.

    Examples
    --------
    >>> import xgrad
    >>> optimizer = xgrad.optim.SGD(xgrad.nn.Linear(2, 1).parameters(), lr=1.0)
    >>> schedule = xgrad.optim.lr_scheduler.LinearLR(
    ...     optimizer, start_factor=0.5, total_iters=2
    ... )
    >>> for _ in range(3):
    ...     print(schedule.get_last_lr())
    ...     schedule.step()
    [0.5]
    [0.75]
    [1.0]
    """

    continues = True

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.start_factor = fraction("LinearLR", "start_factor", start_factor, positive=True)
        self.end_factor = fraction("LinearLR", "end_factor", end_factor)
        self.total_iters = count("LinearLR", "total_iters", total_iters, 1)
        super().__init__(optimizer, last_epoch)

    def ratio(self, epoch: int) -> float:
        """Return the factor of an epoch."""
        if epoch == 0:
            return self.start_factor
        change = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (epoch - 1) * change
        return 1 + change / before if epoch <= self.total_iters else 1.0


class PolynomialLR(Multiplied):
    r"""Learning rates that fall to 0 as a power of the time left until epoch `total_iters`.

    .. math:: \mathrm{lr}_t = \mathrm{lr}_0\, \left(1 - \min\left(\frac{t}{T}, 1\right)\right)^k

    t is the epoch, T is `total_iters`, and k the `power`.

    Parameters
    ----------
    optimizer : Optimizer
        The optimizer whose learning rates are set.
    total_iters : int, default 5
        The number of epochs.
    power : float, default 1
        The power.
    last_epoch : int, default -1
        The number of the last epoch, to continue with an optimizer that had a schedule.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or is out of range.

    Examples
    --------
    >>> import xgrad
    >>> optimizer = xgrad.optim.SGD(xgrad.nn.Linear(2, 1).parameters(), lr=1.0)
    >>> schedule = xgrad.optim.lr_scheduler.PolynomialLR(
    ...     optimizer, total_iters=4, power=2.0
    ... )
    >>> for _ in range(2):
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    continues = True

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters = count("PolynomialLR", "total_iters", total_iters, 1)
        self.power = number("PolynomialLR", "power", power)
        super().__init__(optimizer, last_epoch)

    def ratio(self, epoch: int) -> float:
        """Return the factor of an epoch."""
        if epoch == 0 or epoch > self.total_iters:
            return 1.0
        left = (self.total_iters - epoch) / (self.total_iters - epoch + 1)
        return math.pow(left, self.power)
