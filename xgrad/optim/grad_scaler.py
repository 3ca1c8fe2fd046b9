"""Loss scaling, for gradients in float16."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, TypeVar

from xgrad.backend.device import Device
from xgrad.core.dtypes import float16, float32, int32
from xgrad.core.modes import no_grad
from xgrad.core.tensor import Tensor
from xgrad.nn.utils.gradients import Gradients
from xgrad.ops import all, full, isfinite, logical_not, logical_or, where, zeros
from xgrad.optim.flat import State, Update
from xgrad.optim.optimizer import Optimizer
from xgrad.support import trees
from xgrad.support.hints import shown
from xgrad.support.states import check_state

T = TypeVar("T")


class GradScaler:
    """Loss scaling: the loss times a factor, by which the gradients are divided before a step [1]_.

    If a gradient is not finite, the step leaves parameters and moments unchanged, and `update`
    decreases the factor; after `growth_interval` finite steps, `update` increases it. `scale`,
    `unscale_`, `step` and `update` do not wait for the device, and a captured step replays them.
    Therefore the step counts of optimizers, for example in Adam's bias correction, include skipped
    steps, unlike in PyTorch. LBFGS cannot be scaled.

    Parameters
    ----------
    device : str or Device, optional
        The device of the losses and parameters; by default the device of the first loss that is
        scaled, or of the first gradient that is divided.
    init_scale : float, default 65536
        The initial factor.
    growth_factor : float, default 2
        The number by which an increase multiplies the factor.
    backoff_factor : float, default 0.5
        The number by which a decrease multiplies the factor.
    growth_interval : int, default 2000
        The number of finite steps before an increase.
    enabled : bool, default True
        Whether to scale; if not, `step` only calls the optimizer's `step`, and the other methods do
        nothing.

    Raises
    ------
    ValueError
        If a number is out of range.

    References
    ----------
    .. [1] P. Micikevicius et al., "Mixed precision training", ICLR 2018, section 3.2.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.Tensor([1.0], requires_grad=True)
    >>> optimizer, scaler = xgrad.optim.SGD([x], lr=0.25), xgrad.amp.GradScaler()
    >>> scaler.scale((x * x).sum()).backward()
    >>> x.grad
    Tensor([131072.])
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> x
    Tensor([0.5], requires_grad=True)
    """

    def __init__(
        self,
        device: str | Device | None = None,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if not init_scale > 0 or not growth_factor > 1 or not 0 < backoff_factor < 1:
            raise ValueError(
                "GradScaler: expected init_scale above 0, growth_factor above 1 and backoff_factor"
                f" between 0 and 1, got {shown(init_scale)}, {shown(growth_factor)} and"
                f" {shown(backoff_factor)}"
            )
        if not isinstance(growth_interval, int) or growth_interval < 1:
            raise ValueError(
                "GradScaler: expected an int above 0 for growth_interval, got"
                f" {shown(growth_interval)}"
            )
        self._growth_factor, self._backoff_factor = float(growth_factor), float(backoff_factor)
        self._growth_interval = growth_interval
        self._scale = full((), init_scale, dtype=float32, device=device)
        self._growth_tracker = zeros((), dtype=int32, device=device)
        self._enabled = enabled
        self._moves = device is None  # until the first use
        # By the id of an optimizer: whether one of its gradients is not finite
        self._found: dict[int, Tensor] = {}
        self._stepped: set[int] = set()

    def is_enabled(self) -> bool:
        """Return whether losses are scaled."""
        return self._enabled

    def get_scale(self) -> float:
        """Wait for the device, and return the factor; 1 if not enabled."""
        return float(self._scale) if self._enabled else 1.0

    def scale(self, outputs: T) -> T:
        """Return `outputs`, a loss or all losses in a container, multiplied by the factor."""
        if not self._enabled:
            return outputs
        losses = [x for _, x in trees.leaves(outputs)]
        self._move_to(next((x.device for x in losses if isinstance(x, Tensor)), None))
        scaled: T = trees.rebuild(outputs, [x * self._scale for x in losses])
        return scaled

    @no_grad()
    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of `optimizer` by the factor, before clipping.

        Without this call, `step` does it.
        """
        if not self._enabled:
            return
        if id(optimizer) in self._found:
            raise RuntimeError(
                "GradScaler.unscale_: expected one call before update(), got two for this optimizer"
            )
        gradients = Gradients(
            "GradScaler.unscale_", [p for group in optimizer.param_groups for p in group["params"]]
        )
        if not gradients.arrays:
            raise RuntimeError(
                "GradScaler.unscale_: expected gradients, got none: call backward() before"
            )
        if any(array.dtype == float16 for array in gradients.arrays):
            raise TypeError(
                "GradScaler.unscale_: expected parameters of float32, got float16: use autocast()"
                " instead"
            )
        self._move_to(gradients.arrays[0].device)
        gradients.scale(1 / self._scale)
        found = [logical_not(all(isfinite(array))) for array in gradients.arrays]
        self._found[id(optimizer)] = functools.reduce(logical_or, found)

    def step(self, optimizer: Optimizer) -> None:
        """Take a step of `optimizer`, which has no effect if a gradient is not finite."""
        if not self._enabled:
            optimizer.step()
            return
        if id(optimizer) in self._stepped:
            raise RuntimeError(
                "GradScaler.step: expected one call before update(), got two for this optimizer"
            )
        if id(optimizer) not in self._found:
            self.unscale_(optimizer)
        optimizer.apply_update(_unless(self._found[id(optimizer)]._data, optimizer.update))
        self._stepped.add(id(optimizer))

    @no_grad()
    def update(self) -> None:
        """Set the factor for the next step."""
        if not self._enabled:
            return
        if not self._found:
            raise RuntimeError(
                "GradScaler.update: expected a call of step() or unscale_() before, got none"
            )
        found = functools.reduce(logical_or, self._found.values())
        steps = where(found, 0, self._growth_tracker + 1)
        grows, grown = steps == self._growth_interval, self._scale * self._growth_factor
        scale = where(logical_not(grows), self._scale, where(isfinite(grown), grown, self._scale))
        self._scale[...] = where(found, self._scale * self._backoff_factor, scale)
        self._growth_tracker[...] = where(grows, 0, steps)
        self._found.clear()
        self._stepped.clear()

    def _move_to(self, device: Device | None) -> None:
        """Move the state to the device of the first use, unless the user has chosen a device."""
        # within `vmap`, tensors have a device that lasts as long as the call
        if self._moves and device is not None and not device.level:
            self._moves = False
            self._scale, self._growth_tracker = [
                x.to(device) for x in (self._scale, self._growth_tracker)
            ]

    def state_dict(self) -> dict[str, Any]:
        """Return the factor and the options, as in PyTorch; an empty dict if not enabled."""
        if not self._enabled:
            return {}
        options = ("growth_factor", "backoff_factor", "growth_interval")
        state = {"scale": self.get_scale(), **{key: getattr(self, f"_{key}") for key in options}}
        return state | {"_growth_tracker": int(self._growth_tracker)}

    @no_grad()
    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a result of `state_dict`; raise a ValueError for anything else."""
        if not self._enabled:
            return
        check_state("GradScaler.load_state_dict", state_dict, self.state_dict())
        self._scale[...] = state_dict["scale"]
        self._growth_tracker[...] = state_dict["_growth_tracker"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]


def _unless(skip: Any, update: Update) -> Update:
    """Return an update rule that changes neither parameters nor state arrays if `skip` is true."""

    @functools.wraps(update)
    def unless(xp: Any, p: Any, g: Any, state: State, options: Mapping[str, Any]) -> Any:
        before = {key: xp.asarray(state[key], copy=True) for key in state if state.is_array(key)}
        old = xp.asarray(p, copy=True)
        g = xp.where(skip, xp.zeros_like(g), g)  # a first state has no value to restore
        new = update(xp, p, g, state, options)
        for key, value in before.items():
            state[key] = xp.where(skip, value, state[key])
        return xp.where(skip, old, new)

    return unless
