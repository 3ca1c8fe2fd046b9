"""Reading the `state_dict` of an optimizer: what is checked, and how its arrays are converted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xgrad.core.tensor import Tensor
from xgrad.ops import asarray, astype
from xgrad.optim.flat import State
from xgrad.optim.rules import IMPLEMENTATIONS

#: Entries that PyTorch's cyclic schedules add to groups, and xgrad's keep themselves.
_SCHEDULED = frozenset({"max_lr", "min_lr", "max_momentum", "base_momentum"})
_NUMBERS = frozenset({"step", "mu_product", "eta", "mu"})  # in the state, by PyTorch's names


def read_state_dict(
    optimizer: Any, state_dict: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], dict[Tensor, State]]:
    """Return the groups and the state of each parameter, with copies of arrays.

    Raises an error, as `Optimizer.load_state_dict` says, unless they match the optimizer.
    """
    title = f"{type(optimizer).__name__}.load_state_dict"
    if not isinstance(state_dict, Mapping) or not {"state", "param_groups"} <= state_dict.keys():
        raise TypeError(
            f"{title}: expected a mapping with 'state' and 'param_groups', as state_dict() returns"
        )
    if not isinstance(state_dict["state"], Mapping) or not all(
        isinstance(part, Mapping)
        for part in (*state_dict["param_groups"], *state_dict["state"].values())
    ):
        raise TypeError(
            f"{title}: expected mappings for the groups and for the state of each parameter"
        )
    if not all("params" in group for group in state_dict["param_groups"]):
        raise ValueError(f"{title}: expected 'params' in every group")
    groups = [_own_options(optimizer, group) for group in state_dict["param_groups"]]
    states = state_dict["state"]
    _check_groups(optimizer, title, groups)
    numbers = [number for group in groups for number in group["params"]]
    if unknown := sorted(set(states) - set(numbers)):
        raise ValueError(
            f"{title}: expected state of the parameters {numbers}, got state of {unknown}"
        )
    pairs = zip(numbers, [p for g in optimizer.param_groups for p in g["params"]], strict=True)
    state = {
        p: _loaded_state(optimizer, title, number, p, states[number])
        for number, p in pairs
        if number in states
    }
    return groups, state


def _own_options(optimizer: Any, group: Mapping[str, Any]) -> dict[str, Any]:
    """Return a loaded group without the options that only PyTorch has.

    They select an implementation, are implied by the class, or belong to a schedule.
    """
    implied = {"decoupled_weight_decay": getattr(optimizer, "decoupled", None)}
    return {
        k: v
        for k, v in group.items()
        if k not in IMPLEMENTATIONS | _SCHEDULED and (k not in implied or v is not implied[k])
    }


def _check_groups(optimizer: Any, title: str, groups: list[dict[str, Any]]) -> None:
    """Raise a ValueError unless loaded groups match this optimizer.

    The numbers of parameters and the options must be the same.
    """
    expected, got = ([len(g["params"]) for g in gs] for gs in (optimizer.param_groups, groups))
    if expected != got:
        raise ValueError(
            f"{title}: expected groups with these numbers of parameters: {expected}, got {got}"
        )
    for i, (own, group) in enumerate(zip(optimizer.param_groups, groups, strict=True)):
        if (group.keys() ^ own.keys()) - {"initial_lr"}:  # added by schedules
            raise ValueError(
                f"{title}: expected the options {sorted(optimizer.defaults)} in group {i}, got "
                f"{sorted(group.keys() - {'params'})}: is it from another kind of optimizer?"
            )
        optimizer.check(group)


def _loaded_state(
    optimizer: Any, title: str, number: Any, p: Tensor, values: Mapping[str, Any]
) -> State:
    """Return the loaded state of a parameter, with copies of arrays.

    Raise a ValueError if an array has another shape, or a required value is missing.
    """
    state, shapes = State(p.device, p._data.dtype), optimizer.state_shapes(p)
    for key, value in values.items():
        if value is None:
            continue
        if key in _NUMBERS:  # arrays in PyTorch
            state[key] = value.item() if hasattr(value, "item") else value
        elif not hasattr(value, "shape"):
            state[key] = value
        else:
            value = asarray(value, device=None if isinstance(value, Tensor) else "cpu", copy=True)
            expected = shapes.get(key, p.shape)
            if value.shape != expected:
                raise ValueError(
                    f"{title}: expected {key!r} of parameter {number} of shape {expected}, got"
                    f" {value.shape}"
                )
            state[key] = astype(value.detach().to(p.device), p.dtype)._data
    if state and (missing := (optimizer.required_state | shapes.keys()) - state.keys()):
        raise ValueError(
            f"{title}: expected {sorted(missing)} in the state of parameter {number}, got none"
        )
    return state
