"""Parts that several update rules share: checks of options, penalties and running means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xgrad.support.hints import shown


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
