"""The one-cycle schedule."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xgrad.optim.lr_scheduler.base import (
    LRScheduler,
    check_momentum,
    count,
    divisor,
    flag,
    fraction,
    numbers,
    set_momenta,
)
from xgrad.optim.optimizer import Optimizer
from xgrad.support.hints import shown


class OneCycleLR(LRScheduler):
    r"""Learning rates that rise to a maximum and fall to almost 0 [1]_.

    Meanwhile, the momentum falls and rises. Call `step` after each step of the optimizer,
    `total_steps` times at most.

    .. math::

        \mathrm{lr}_t = a + (b - a) \begin{cases}
        \tfrac{1}{2} (1 - \cos(\pi\, u)) & \text{(cos)} \\
        u & \text{(linear)}
        \end{cases}

    In the rise and in each fall, the learning rate goes from a to b, and u from 0 to 1.

    Parameters
    ----------
    optimizer : Optimizer
        The optimizer whose learning rates are set.
    max_lr : float or list of float
        The largest learning rate, or one for each group.
    total_steps : int, optional
        The number of steps; by default ``epochs * steps_per_epoch``.
    epochs, steps_per_epoch : int, optional
        The number of epochs, and the number of steps in each.
    pct_start : float, default 0.3
        The fraction of the steps in which the learning rate rises.
    anneal_strategy : {"cos", "linear"}, default "cos"
        The shape of the rise and the fall.
    cycle_momentum : bool, default True
        Whether to change the momentum, or β1, as well.
    base_momentum, max_momentum : float or list of float
        The bounds of the momentum, by default 0.85 and 0.95.
    div_factor : float, default 25
        The learning rate starts at ``max_lr / div_factor``.
    final_div_factor : float, default 1e4
        The learning rate ends at the initial one divided by this.
    three_phase : bool, default False
        Whether to fall to the initial learning rate as fast as it rose, and then on to the end.
    last_epoch : int, default -1
        The number of the last epoch, to continue with an optimizer that had a schedule.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or is out of range.

    References
    ----------
    .. [1] L. N. Smith, N. Topin, "Super-convergence: very fast training of neural networks using
       large learning rates", 2019.

    Examples
    --------
    >>> import xgrad
    >>> optimizer = xgrad.optim.Adam(xgrad.nn.Linear(2, 1).parameters())
    >>> schedule = xgrad.optim.lr_scheduler.OneCycleLR(
    ...     optimizer, max_lr=0.5, total_steps=10
    ... )
    >>> for _ in range(2):
    ...     schedule.step()
    >>> schedule.get_last_lr(), optimizer.param_groups[0]["betas"]
    ([0.5], (0.85, 0.999))
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.85,
        max_momentum: float | Sequence[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        numbers_of_steps = {
            "total_steps": total_steps,
            "epochs": epochs,
            "steps_per_epoch": steps_per_epoch,
        }
        given = {
            name: count("OneCycleLR", name, n, 1)
            for name, n in numbers_of_steps.items()
            if n is not None
        }
        if total_steps is None:
            if len(given) < 2:
                raise ValueError(
                    "OneCycleLR: expected total_steps, or epochs and steps_per_epoch, got neither"
                )
            total_steps = given["epochs"] * given["steps_per_epoch"]
        self.total_steps = total_steps
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                "OneCycleLR: expected anneal_strategy 'cos' or 'linear', got"
                f" {shown(anneal_strategy)}"
            )
        rise = fraction("OneCycleLR", "pct_start", pct_start) * total_steps
        self.anneal_strategy = anneal_strategy
        highs = numbers("OneCycleLR", "max_lr", max_lr, optimizer)
        low_momenta = numbers("OneCycleLR", "base_momentum", base_momentum, optimizer)
        high_momenta = numbers("OneCycleLR", "max_momentum", max_momentum, optimizer)
        starts = [high / divisor("OneCycleLR", "div_factor", div_factor) for high in highs]
        ends = [
            start / divisor("OneCycleLR", "final_div_factor", final_div_factor) for start in starts
        ]
        flag("OneCycleLR", "three_phase", three_phase)
        #: The ends of the phases. For each group, `rates` and `momenta` have the values at the
        #: start and at these ends.
        self.phases = (
            [rise - 1, 2 * rise - 2, total_steps - 1.0]
            if three_phase
            else [rise - 1, total_steps - 1.0]
        )
        middle = [starts] if three_phase else []
        self.rates = [list(turns) for turns in zip(starts, highs, *middle, ends, strict=True)]
        self.momenta = [
            [high, low, *([high] * len(middle)), high]
            for low, high in zip(low_momenta, high_momenta, strict=True)
        ]
        self.cycle_momentum = flag("OneCycleLR", "cycle_momentum", cycle_momentum)
        if cycle_momentum:
            check_momentum("OneCycleLR", optimizer)
        if last_epoch == -1:
            for group, start in zip(optimizer.param_groups, starts, strict=True):
                group["initial_lr"] = start
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the learning rates of step `last_epoch`, and set the momenta."""
        if self.last_epoch > self.total_steps:
            raise ValueError(
                f"OneCycleLR.step: expected at most total_steps, {self.total_steps}, calls, got"
                " more"
            )
        phase = min(sum(self.last_epoch > end for end in self.phases), len(self.phases) - 1)
        start, end = (0.0, *self.phases)[phase : phase + 2]
        part = (self.last_epoch - start) / (end - start)
        if self.anneal_strategy == "cos":
            part = (1 - math.cos(math.pi * part)) / 2
        if self.cycle_momentum:
            momenta = [
                turns[phase] + (turns[phase + 1] - turns[phase]) * part for turns in self.momenta
            ]
            set_momenta(self.optimizer, momenta)
        return [turns[phase] + (turns[phase + 1] - turns[phase]) * part for turns in self.rates]
