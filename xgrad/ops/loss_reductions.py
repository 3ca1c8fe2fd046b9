"""Reductions of losses."""

from __future__ import annotations

from typing import Any

from xgrad.support.hints import shown


def reduced(xp: Any, losses: Any, reduction: str) -> Any:
    """Return the mean or the sum of losses, or the losses."""
    return xp.mean(losses) if reduction == "mean" else xp.sum(losses) if reduction == "sum" else losses


def check_reduction(name: str, reduction: str) -> None:
    """Raise ValueError unless there is a reduction of this name."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{name}: expected a reduction of 'mean', 'sum' or 'none', got {shown(reduction)}")
