"""Reductions of losses, and checks of the arguments that losses share."""

from __future__ import annotations

from typing import Any

from xgrad.core.arguments import as_tensor
from xgrad.core.autocast import widened
from xgrad.core.namespace import namespace
from xgrad.core.tensor import Tensor
from xgrad.support.hints import shown


def reduced(xp: Any, losses: Any, reduction: str) -> Any:
    """Return the mean or the sum of losses, or the losses."""
    return xp.mean(losses) if reduction == "mean" else xp.sum(losses) if reduction == "sum" else losses


def reduce_losses(losses: Tensor, reduction: str, weight: Tensor | None = None) -> Tensor:
    """Return the mean or the sum of losses, or the losses, times a weight of each."""
    out: Tensor = reduced(namespace, losses if weight is None else losses * weight, reduction)
    return out


def check_reduction(name: str, reduction: str) -> None:
    """Raise ValueError unless there is a reduction of this name."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{name}: expected a reduction of 'mean', 'sum' or 'none', got {shown(reduction)}")


def loss_inputs(op: str, reduction: str, **inputs: Any) -> list[Tensor]:
    """Return the inputs of a loss as tensors; ValueError unless they have one shape, and the reduction exists."""
    check_reduction(op, reduction)
    tensors = [as_tensor(op, name, x) for name, x in inputs.items()]
    shapes = [x.shape for x in tensors]
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError(f"{op}: expected {_listed(inputs)} of one shape, got {_listed(shapes)}")
    return list(widened(*tensors))


def _listed(items: Any) -> str:
    *first, last = map(str, items)
    return f"{', '.join(first)} and {last}"
