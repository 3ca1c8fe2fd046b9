"""The base class of schedules, and checks of their arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

from xgrad.backend.recording import refuse
from xgrad.optim.optimizer import Optimizer
from xgrad.support.hints import shown
from xgrad.support.states import check_state


class LRScheduler:
    """The base class of schedules, in which epochs count the calls of `step`.

    A subclass defines `get_lr`, which returns the learning rates of epoch `last_epoch`. It computes
    them from the initial ones, `base_lrs`, or from the previous ones, ``group["lr"]``, so that
    schedules can be chained.

    Parameters
    ----------
    optimizer : Optimizer
        The optimizer whose learning rates are set.
    last_epoch : int, default -1
        The number of the last epoch, to continue with an optimizer that had a schedule.

    Attributes
    ----------
    base_lrs : list of float
        The learning rate of each group when the first schedule of the optimizer was created.
    last_epoch : int
        The number of the current epoch, from 0.

    Raises
    ------
    TypeError
        If `optimizer` is not an optimizer.
    ValueError
        If `last_epoch` is not -1, and the optimizer has had no schedule.

    Examples
    --------
    >>> import xgrad
    >>> class InverseRoot(xgrad.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [lr / (1 + self.last_epoch) ** 0.5 for lr in self.base_lrs]
    >>> optimizer = xgrad.optim.SGD(xgrad.nn.Linear(2, 1).parameters(), lr=0.5)
    >>> schedule = InverseRoot(optimizer)
    >>> for _ in range(3):
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    #: Whether a schedule that continues from `last_epoch` takes over the current learning rates,
    #: as PyTorch's schedule of the name does. Otherwise it computes those of the next epoch.
    continues: ClassVar[bool] = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        name = type(self).__name__
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{name}: expected an optimizer, got {type(optimizer).__name__}")
        count(name, "last_epoch", last_epoch, -1)
        for group in optimizer.param_groups:
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise ValueError(
                    f"{name}: expected an optimizer that had a schedule, for last_epoch"
                    f" {last_epoch}"
                )
        self.optimizer, self.last_epoch = optimizer, last_epoch
        self.base_lrs: list[float] = [
            float(group["initial_lr"]) for group in optimizer.param_groups
        ]
        self._last_lr: list[float] = []
        self.last_epoch += 1
        self._set(self._first_lr())

    def get_lr(self) -> list[float]:
        """Return the learning rates of epoch `last_epoch`; each subclass defines it."""
        raise NotImplementedError(
            f"{type(self).__name__}: expected a method get_lr, found none: define it"
        )

    def _first_lr(self) -> list[float]:
        """Return the learning rates that the constructor sets."""
        return self._rates() if self.continues and self.last_epoch else self.get_lr()

    def get_last_lr(self) -> list[float]:
        """Return the learning rate of each group, as the schedule last set it."""
        return self._last_lr

    def step(self) -> None:
        """Set the learning rates of the next epoch."""
        refuse(f"{type(self).__name__}.step counts epochs: call it after the captured step")
        self._advance()

    def _advance(self) -> None:
        self.last_epoch += 1
        self._set(self.get_lr())

    def _set(self, rates: Sequence[float]) -> None:
        groups = self.optimizer.param_groups
        if len(rates) != len(groups):
            raise ValueError(
                f"{type(self).__name__}: expected {len(rates)} groups of parameters, as when it was"
                f" made, got {len(groups)}: add groups before"
            )
        for group, lr in zip(groups, rates, strict=True):
            group["lr"] = lr
        self._last_lr = self._rates()

    def _rates(self) -> list[float]:
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def _begin(self) -> None:
        """Set the learning rates of epoch 0 as the constructor does."""
        self._restart()

    def _restart(self) -> None:
        """Set the learning rates of epoch 0."""
        self._reset()
        self._set(self.base_lrs)
        self._advance()

    def _reset(self) -> None:
        """Restart the count of epochs before epoch 0."""
        self.last_epoch = -1

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of everything needed to continue later, except functions."""
        return {
            key: list(value) if isinstance(value, list) else value
            for key, value in vars(self).items()
            if key not in ("optimizer", "lr_lambdas", "scale_fn")
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a result of `state_dict`; raise a ValueError for anything else.

        The learning rates are part of the optimizer's state.
        """
        check_state(f"{type(self).__name__}.load_state_dict", state_dict, self.state_dict())
        vars(self).update({k: list(v) if isinstance(v, list) else v for k, v in state_dict.items()})


def count(name: str, argument: str, value: Any, least: int = 0) -> int:
    """Return a number of epochs; ValueError unless it is an int of `least` or more."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(
            f"{name}: expected an int of {least} or more for {argument}, got {shown(value)}"
        )
    return int(value)


def number(name: str, argument: str, value: Any) -> float:
    """Return a number; ValueError for anything else, such as NaN."""
    if isinstance(value, bool) or not isinstance(value, Real) or value != value:
        raise ValueError(f"{name}: expected a number for {argument}, got {shown(value)}")
    return float(value)


def divisor(name: str, argument: str, value: Any) -> float:
    """Return a number above 0; ValueError for anything else."""
    if not number(name, argument, value) > 0:
        raise ValueError(f"{name}: expected a number above 0 for {argument}, got {shown(value)}")
    return float(value)


def flag(name: str, argument: str, value: Any) -> bool:
    """Return a bool; TypeError for anything else."""
    if not isinstance(value, bool):
        raise TypeError(f"{name}: expected a bool for {argument}, got {shown(value)}")
    return value


def items(name: str, argument: str, value: Any) -> list[Any]:
    """Return the elements of a sequence; TypeError for anything else."""
    if not isinstance(value, Iterable):
        raise TypeError(f"{name}: expected a list for {argument}, got {shown(value)}")
    return list(value)


def check_momentum(name: str, optimizer: Optimizer) -> None:
    """Raise a ValueError unless the optimizer has momentum, or β1."""
    if not {"momentum", "betas"} & optimizer.defaults.keys():
        raise ValueError(
            f"{name}: expected an optimizer with momentum or betas, got"
            f" {type(optimizer).__name__}: set cycle_momentum=False"
        )


def set_momenta(optimizer: Optimizer, momenta: Sequence[float]) -> None:
    """Set the momentum, or β1, of each group."""
    for group, momentum in zip(optimizer.param_groups, momenta, strict=True):
        if "betas" in group:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


def fraction(name: str, argument: str, value: Any, positive: bool = False) -> float:
    """Return a factor; ValueError unless it is from 0 to 1, and above 0 if `positive`."""
    if (
        isinstance(value, bool)
        or not isinstance(value, Real)
        or not 0 <= float(value) <= 1
        or (positive and not value)
    ):
        bounds = "above 0 and at most 1" if positive else "from 0 to 1"
        raise ValueError(f"{name}: expected a number {bounds} for {argument}, got {shown(value)}")
    return float(value)


def one_for_each(name: str, argument: str, value: Any, optimizer: Optimizer) -> list[Any]:
    """Return a value for each group of an optimizer, given one for all or one for each."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{name}: expected an optimizer, got {type(optimizer).__name__}")
    groups = len(optimizer.param_groups)
    values = list(value) if isinstance(value, (list, tuple)) else [value] * groups
    if len(values) != groups:
        raise ValueError(
            f"{name}: expected one {argument}, or one for each of {groups} groups, got"
            f" {len(values)}"
        )
    return values


def numbers(name: str, argument: str, value: Any, optimizer: Optimizer) -> list[float]:
    """Return a number for each group of an optimizer, given one for all or one for each."""
    return [number(name, argument, x) for x in one_for_each(name, argument, value, optimizer)]
