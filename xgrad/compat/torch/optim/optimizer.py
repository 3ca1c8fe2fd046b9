"""Optimizers: PyTorch's signatures over `xgrad.optim`, and a base for optimizers of programs.

The options ``foreach``, ``fused`` and ``capturable`` choose among PyTorch's implementations, and
have no effect.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import xgrad
from xgrad import optim as xoptim
from xgrad.compat.torch.signatures import SIGNATURES, Signature, signature_of
from xgrad.compat.torch.tensor import as_torch

_IMPLEMENTATION = "foreach~=None maximize=False capturable~=False differentiable!=False fused~=None"
_WITHOUT_FUSED = "foreach~=None maximize=False capturable~=False differentiable!=False"


class Optimizer(xoptim.Optimizer):
    """The base class of optimizers.

    A program's own one defines `step`, as in PyTorch, with its state in ``self.state[p]``; or
    `update`, as in xgrad.
    """

    def __init_subclass__(cls, signature: str | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if signature is not None:
            SIGNATURES[cls] = Signature(f"torch.optim.{cls.__name__}", signature)

    @property
    def _signature(self) -> Signature | None:
        """The signature of the constructor, None for a class of a program."""
        return signature_of(type(self))

    def __init__(self, params: Any, *args: Any, **options: Any) -> None:
        self._own_state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        params = _without_names(params)
        signature = self._signature
        if signature is None:
            super().__init__(params, *args, **options)
            return
        _, chosen = signature.bind((params, *args), options)
        chosen = {name: _number(value) for name, value in chosen.items()}
        super().__init__(params, **chosen)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters, which may have further entries."""
        known = self.defaults.keys() | {"params"}
        if not isinstance(param_group, dict):
            super().add_param_group(param_group)
        group = {k: v for k, v in param_group.items() if k in known}
        if "params" in group:
            group["params"] = _without_names(group["params"])
        super().add_param_group(group)
        self.param_groups[-1].update({k: v for k, v in param_group.items() if k not in known})

    @property
    def _has_own_step(self) -> bool:
        """Whether a program defines `step`, and keeps the state itself."""
        return type(self).update is xoptim.Optimizer.update and self._signature is None

    @property
    def state(self) -> Mapping[Any, Any]:
        """The state of each parameter."""
        if self._has_own_step:
            return self._own_state
        return {
            p: {
                name: as_torch(value) if isinstance(value, xgrad.Tensor) else value
                for name, value in state.tensors().items()
            }
            for p, state in self._states().items()
        }

    def step(self, closure: Any = None) -> Any:
        """Update each parameter that has a gradient."""
        return super().step(closure)

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of everything needed to continue later."""
        if not self._has_own_step:
            return as_torch(super().state_dict())  # type: ignore[no-any-return]
        saved = super().state_dict()
        numbers = {p: i for i, p in enumerate(self._all_parameters())}
        saved["state"] = {numbers[p]: dict(state) for p, state in self._own_state.items()}
        return saved

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a `state_dict`."""
        if not self._has_own_step:
            super().load_state_dict(state_dict)
            return
        super().load_state_dict({**state_dict, "state": {}})
        parameters = self._all_parameters()
        self._own_state = defaultdict(dict)
        for number, state in state_dict["state"].items():
            self._own_state[parameters[number]] = dict(state)

    def _all_parameters(self) -> list[Any]:
        return [p for group in self.param_groups for p in group["params"]]


def _without_names(params: Any) -> Any:
    """Return parameters without the names that ``named_parameters()`` gives them."""
    if isinstance(params, (xgrad.Tensor, dict, str)):
        return params
    return [p[1] if isinstance(p, tuple) and len(p) == 2 else p for p in params]


def _number(value: Any) -> Any:
    """Return the value of a learning rate that is a tensor."""
    return value.item() if isinstance(value, xgrad.Tensor) else value


class SGD(
    Optimizer,
    xoptim.SGD,
    signature="params lr=1e-3 momentum=0 dampening=0 weight_decay=0 nesterov=False * maximize=False"
    " foreach~=None differentiable!=False fused~=None",
):
    """`torch.optim.SGD`."""


class Adam(
    Optimizer,
    xoptim.Adam,
    signature="params lr=1e-3 betas=(0.9,0.999) eps=1e-8 weight_decay=0 amsgrad=False *"
    f" {_IMPLEMENTATION} decoupled_weight_decay!=False",
):
    """`torch.optim.Adam`."""


class AdamW(
    Optimizer,
    xoptim.AdamW,
    signature="params lr=1e-3 betas=(0.9,0.999) eps=1e-8 weight_decay=1e-2 amsgrad=False *"
    f" {_IMPLEMENTATION}",
):
    """`torch.optim.AdamW`."""


class Adagrad(
    Optimizer,
    xoptim.Adagrad,
    signature="params lr=1e-2 lr_decay=0 weight_decay=0 initial_accumulator_value=0 eps=1e-10"
    " foreach~=None * maximize=False differentiable!=False fused~=None",
):
    """`torch.optim.Adagrad`."""


class Adadelta(
    Optimizer,
    xoptim.Adadelta,
    signature="params lr=1.0 rho=0.9 eps=1e-6 weight_decay=0 foreach~=None * capturable~=False"
    " maximize=False differentiable!=False",
):
    """`torch.optim.Adadelta`."""


class Adamax(
    Optimizer,
    xoptim.Adamax,
    signature="params lr=2e-3 betas=(0.9,0.999) eps=1e-8 weight_decay=0 foreach~=None *"
    " maximize=False differentiable!=False capturable~=False",
):
    """`torch.optim.Adamax`."""


class NAdam(
    Optimizer,
    xoptim.NAdam,
    signature="params lr=2e-3 betas=(0.9,0.999) eps=1e-8 weight_decay=0 momentum_decay=4e-3"
    f" decoupled_weight_decay=False * {_WITHOUT_FUSED}",
):
    """`torch.optim.NAdam`."""


class RAdam(
    Optimizer,
    xoptim.RAdam,
    signature="params lr=1e-3 betas=(0.9,0.999) eps=1e-8 weight_decay=0"
    f" decoupled_weight_decay=False * {_WITHOUT_FUSED}",
):
    """`torch.optim.RAdam`."""


class RMSprop(
    Optimizer,
    xoptim.RMSprop,
    signature="params lr=1e-2 alpha=0.99 eps=1e-8 weight_decay=0 momentum=0 centered=False"
    " capturable~=False foreach~=None maximize=False differentiable!=False",
):
    """`torch.optim.RMSprop`."""


class LBFGS(
    Optimizer,
    xoptim.LBFGS,
    signature="params lr=1 max_iter=20 max_eval=None tolerance_grad=1e-7 tolerance_change=1e-9"
    " history_size=100 line_search_fn=None",
):
    """`torch.optim.LBFGS`."""


class Muon(
    Optimizer,
    xoptim.Muon,
    signature="params lr=1e-3 weight_decay=0.1 momentum=0.95 nesterov=True"
    " ns_coefficients=(3.4445,-4.775,2.0315) eps=1e-7 ns_steps=5 adjust_lr_fn=None",
):
    """`torch.optim.Muon`."""


class ASGD(
    Optimizer,
    xoptim.ASGD,
    signature="params lr=1e-2 lambd=1e-4 alpha=0.75 t0=1e6 weight_decay=0 foreach~=None"
    " maximize=False differentiable!=False capturable~=False",
):
    """`torch.optim.ASGD`."""


class Rprop(
    Optimizer,
    xoptim.Rprop,
    signature="params lr=1e-2 etas=(0.5,1.2) step_sizes=(1e-6,50) * capturable~=False foreach~=None"
    " maximize=False differentiable!=False",
):
    """`torch.optim.Rprop`."""


class Adafactor(
    Optimizer,
    xoptim.Adafactor,
    signature="params lr=1e-2 beta2_decay=-0.8 eps=(None,1e-3) d=1.0 weight_decay=0.0 *"
    " foreach~=None maximize=False",
):
    """`torch.optim.Adafactor`."""
