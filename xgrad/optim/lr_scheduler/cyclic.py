"""The cyclic schedule."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xgrad.optim.lr_scheduler.base import (
    LRScheduler,
    check_momentum,
    divisor,
    flag,
    number,
    numbers,
    set_momenta,
)
from xgrad.optim.optimizer import Optimizer
from xgrad.support.hints import shown

_MODES = ("triangular", "triangular2", "exp_range")


class CyclicLR(LRScheduler):
    r"""Learning rates that rise and fall linearly between two bounds, again and again [1]_.

    Meanwhile, the momentum falls and rises. Call `step` after each step of the optimizer.

    .. math::

        \mathrm{lr}_t = a + (b - a)\, z_t\, \begin{cases}
        u / n & \text{in a rise of } n \text{ steps} \\
        1 - u / n & \text{in a fall of } n \text{ steps}
        \end{cases}

    u counts the steps since the last turn, a and b are `base_lr` and `max_lr`, and the `mode` says
    how the height of cycle c, from 1, is scaled:

    ==============  ==============================
    mode            :math:`z_t`
    ==============  ==============================
    "triangular"    :math:`1`
    "triangular2"   :math:`2^{1 - c}`
    "exp_range"     :math:`\gamma^t`
    ==============  ==============================

    Parameters
    ----------
    optimizer : Optimizer
        The optimizer whose learning rates are set.
    base_lr, max_lr : float or list of float
        The bounds of the learning rate, or one for each group.
    step_size_up : float, default 2000
        The number of steps in which the learning rate rises.
    step_size_down : float, optional
        The number of steps in which it falls; by default `step_size_up`.
    mode : {"triangular", "triangular2", "exp_range"}, default "triangular"
        The heights of the cycles: see above.
    gamma : float, default 1
        The factor of mode "exp_range".
    scale_fn : callable, optional
        A function that returns the factor of the height, in place of `mode`.
    scale_mode : {"cycle", "iterations"}, default "cycle"
        Whether the argument of `scale_fn` is the number of the cycle, from 1, or of steps.
    cycle_momentum : bool, default True
        Whether to change the momentum, or β1, as well.
    base_momentum, max_momentum : float or list of float
        The bounds of the momentum, by default 0.8 and 0.9.
    last_epoch : int, default -1
        The number of the last step, to continue with an optimizer that had a schedule.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or is out of range.

    References
    ----------
    .. [1] L. N. Smith, "Cyclical learning rates for training neural networks", WACV 2017.

    Examples
    --------
    >>> import xgrad
    >>> optimizer = xgrad.optim.SGD(xgrad.nn.Linear(2, 1).parameters(), momentum=0.9)
    >>> schedule = xgrad.optim.lr_scheduler.CyclicLR(
    ...     optimizer, base_lr=0.0, max_lr=1.0, step_size_up=2, mode="triangular2"
    ... )
    >>> for _ in range(9):
    ...     print(schedule.get_last_lr()[0], end=" ")
    ...     schedule.step()
    0.0 0.5 1.0 0.5 0.0 0.25 0.5 0.25 0.0
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | Sequence[float],
        max_lr: float | Sequence[float],
        step_size_up: float = 2000,
        step_size_down: float | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[int], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.8,
        max_momentum: float | Sequence[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        name = "CyclicLR"
        self.min_lrs = numbers(name, "base_lr", base_lr, optimizer)
        self.max_lrs = numbers(name, "max_lr", max_lr, optimizer)
        up = divisor(name, "step_size_up", step_size_up)
        self.total_size = up + (
            up if step_size_down is None else divisor(name, "step_size_down", step_size_down)
        )
        self.step_ratio = up / self.total_size
        if mode not in _MODES and scale_fn is None:
            raise ValueError(f"{name}: expected mode to be one of {_MODES}, got {shown(mode)}")
        if scale_fn is not None and not callable(scale_fn):
            raise TypeError(f"{name}: expected a function for scale_fn, got {shown(scale_fn)}")
        if scale_mode not in ("cycle", "iterations"):
            raise ValueError(
                f"{name}: expected scale_mode 'cycle' or 'iterations', got {shown(scale_mode)}"
            )
        self.mode, self.gamma = mode, number(name, "gamma", gamma)
        self.scale_fn, self.scale_mode = scale_fn, scale_mode
        self.base_momentums = numbers(name, "base_momentum", base_momentum, optimizer)
        self.max_momentums = numbers(name, "max_momentum", max_momentum, optimizer)
        self.cycle_momentum = flag(name, "cycle_momentum", cycle_momentum)
        if cycle_momentum:
            check_momentum(name, optimizer)
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, self.min_lrs, strict=True):
                group["lr"] = lr
        super().__init__(optimizer, last_epoch)
        self.base_lrs = list(self.min_lrs)  # not the initial ones, as in PyTorch

    def get_lr(self) -> list[float]:
        """Return the learning rates of step `last_epoch`, and set the momenta."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        part = 1 + self.last_epoch / self.total_size - cycle
        rising = part <= self.step_ratio
        height = part / self.step_ratio if rising else (1 - part) / (1 - self.step_ratio)
        height *= self._scale(cycle)
        if self.cycle_momentum:
            bounds = zip(self.base_momentums, self.max_momentums, strict=True)
            set_momenta(self.optimizer, [high - (high - low) * height for low, high in bounds])
        pairs = zip(self.min_lrs, self.max_lrs, strict=True)
        return [low + (high - low) * height for low, high in pairs]

    def _scale(self, cycle: int) -> float:
        """Return the factor of the height of a cycle."""
        if self.scale_fn is not None:
            argument = cycle if self.scale_mode == "cycle" else self.last_epoch
            return number("CyclicLR", "a result of scale_fn", self.scale_fn(argument))
        if self.mode == "exp_range":
            return float(self.gamma**self.last_epoch)
        return 0.5 ** (cycle - 1) if self.mode == "triangular2" else 1.0
