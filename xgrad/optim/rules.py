"""Parts that several update rules share: checks of options, penalties and running means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from xgrad.support.hints import shown


class Implementation(TypedDict, total=False):
    """PyTorch's choices between implementations of an optimizer, of which xgrad has one."""

    foreach: bool | None
    fused: bool | None
    capturable: bool | None
    differentiable: bool | None


#: What to do without each choice.
_ADVICE = {
    "foreach": "all parameters are updated at once anyway",
    "fused": "xgrad.capture fuses the update of a step",
    "capturable": "xgrad.capture records any optimizer",
    "differentiable": "compute the update of tensors, with xgrad.grad(..., create_graph=True)",
}
IMPLEMENTATIONS = frozenset(_ADVICE)


def check_implementation(name: str, given: Mapping[str, Any]) -> None:
    """Raise a TypeError for an unknown keyword, a ValueError for a choice that is not made."""
    for key, value in given.items():
        if key not in IMPLEMENTATIONS:
            raise TypeError(f"{name}: got an unexpected keyword argument {key!r}")
        if value is not None and value is not False:
            raise ValueError(
                f"{name}: expected {key} to be False or None, got {shown(value)}: leave it out,"
                f" {_ADVICE[key]}"
            )


#: Options that are True or False, by the names that all optimizers share.
_FLAGS = ("maximize", "nesterov", "amsgrad", "centered", "decoupled_weight_decay")


def check_flags(name: str, options: Mapping[str, Any]) -> None:
    """Raise a TypeError unless the flags among the options are bools."""
    for key in _FLAGS:
        if key in options and not isinstance(options[key], bool):
            raise TypeError(
                f"{name}: expected {key} to be True or False, got {shown(options[key])}"
            )


def check_range(name: str, option: str, value: Any, below: float = float("inf")) -> None:
    """Raise a ValueError unless an option is a number from 0 up to `below`, which is excluded."""
    try:
        good = not isinstance(value, str) and 0 <= float(value) < below
    except (TypeError, ValueError):
        good = False
    if not good:
        limit = "" if below == float("inf") else f" below {below:g}"
        raise ValueError(
            f"{name}: expected {option} to be a number of 0 or more{limit}, got {shown(value)}"
        )


def check_ranges(name: str, options: Mapping[str, Any], *keys: str) -> None:
    """Raise a ValueError unless these options are numbers of 0 or more.

    ``betas`` must be two numbers of 0 or more and below 1.
    """
    for key in keys:
        if key != "betas":
            check_range(name, key, options[key])
            continue
        if not isinstance(options[key], (tuple, list)) or len(options[key]) != 2:
            raise ValueError(f"{name}: expected betas to be two numbers, got {shown(options[key])}")
        for i, beta in enumerate(options[key]):
            check_range(name, f"betas[{i}]", beta, below=1.0)


def check_pair(name: str, option: str, value: Any) -> None:
    """Raise a ValueError unless an option is two numbers of 0 or more."""
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise ValueError(f"{name}: expected {option} to be two numbers, got {shown(value)}")
    for i, part in enumerate(value):
        check_range(name, f"{option}[{i}]", part)


def check_number(
    name: str,
    option: str,
    value: Any,
    lowest: float = -float("inf"),
    highest: float = float("inf"),
) -> None:
    """Raise a ValueError unless an option is a number of at least `lowest`, at most `highest`."""
    try:
        good = not isinstance(value, str) and lowest <= float(value) <= highest
    except (TypeError, ValueError):
        good = False
    if not good:
        limits = f" of at least {lowest:g}" if lowest > -float("inf") else ""
        limits += f" of at most {highest:g}" if highest < float("inf") else ""
        raise ValueError(f"{name}: expected {option} to be a number{limits}, got {shown(value)}")


def penalized(p: Any, g: Any, options: Mapping[str, Any]) -> Any:
    """Return the gradient of the objective, with the L2 penalty, and negated with ``maximize``.

    With ``decoupled_weight_decay``, there is no penalty; the parameters shrink in place instead.
    """
    decay = options["weight_decay"]
    if options["maximize"]:
        g = -g
    if decay and options.get("decoupled_weight_decay"):
        p *= 1 - options["lr"] * decay
        return g
    return g + decay * p if decay else g


def average(mean: Any, value: Any, decay: Any) -> None:
    """Update a running mean in place."""
    mean *= decay
    mean += (1 - decay) * value
