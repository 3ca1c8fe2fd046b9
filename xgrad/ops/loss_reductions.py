"""Reductions of losses, and checks of the arguments that losses share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xgrad import ops
from xgrad.core.arguments import as_int, as_number, as_tensor
from xgrad.core.tensor import Tensor
from xgrad.ops.precision import widened
from xgrad.support.hints import shown


def reduced(xp: Any, losses: Any, reduction: str) -> Any:
    """Return the mean or the sum of losses, or the losses themselves."""
    return (
        xp.mean(losses) if reduction == "mean" else xp.sum(losses) if reduction == "sum" else losses
    )


def reduce_losses(losses: Tensor, reduction: str, weight: Tensor | None = None) -> Tensor:
    """Return the mean or the sum of weighted losses, or the weighted losses themselves."""
    out: Tensor = reduced(ops, losses if weight is None else losses * weight, reduction)
    return out


def check_reduction(name: str, reduction: str, *others: str) -> None:
    """Raise ValueError unless there is a reduction of this name."""
    if not isinstance(reduction, str) or reduction not in ("mean", "sum", "none", *others):
        known = ", ".join(map(repr, (*others, "mean", "sum")))
        raise ValueError(
            f"{name}: expected a reduction of {known} or 'none', got {shown(reduction)}"
        )


#: Valid ranges of the losses' numeric options, by option, or by loss and option. All other numeric
#: options must not be NaN.
_RANGES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "beta": (">= 0", lambda x: x >= 0),
    "delta": ("> 0", lambda x: x > 0),
    "eps": (">= 0", lambda x: x >= 0),
    "label_smoothing": ("from 0 to 1", lambda x: 0 <= x <= 1),
    "multi_margin_loss p": ("of 1 or 2", lambda x: x in (1, 2)),
    "triplet_margin_loss margin": ("> 0", lambda x: x > 0),
    "triplet_margin_with_distance_loss margin": ("> 0", lambda x: x > 0),
}
_FLAGS = ("full", "log_input", "log_target", "swap", "zero_infinity")


def check_options(op: str, title: str = "", /, **options: Any) -> None:
    """Raise TypeError or ValueError for an option of a wrong type or value.

    `title` is the name of the loss in errors.
    """
    title = title or op
    for name, value in options.items():
        if name == "reduction":
            check_reduction(title, value, *(["batchmean"] if op == "kl_div" else []))
        elif name in ("blank", "ignore_index"):
            as_int(title, name, -100 if value is None else value)
        elif name in _FLAGS:
            if not isinstance(value, (bool, np.bool_)):
                raise TypeError(f"{title}: expected a bool for {name}, got {shown(value)}")
        else:
            as_number(title, name, value)
            text, holds = (
                _RANGES.get(name)
                or _RANGES.get(f"{op} {name}")
                or ("other than NaN", lambda x: x == x)
            )
            if not holds(value):
                raise ValueError(f"{title}: expected {name} {text}, got {value}")


def loss_inputs(op: str, reduction: str, **inputs: Any) -> list[Tensor]:
    """Return the inputs of a loss as tensors.

    Raises ValueError unless the inputs have one shape and the reduction exists.
    """
    check_reduction(op, reduction)
    tensors = [as_tensor(op, name, x) for name, x in inputs.items()]
    shapes = [x.shape for x in tensors]
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError(f"{op}: expected {_listed(inputs)} of one shape, got {_listed(shapes)}")
    return list(widened(*tensors))


def _listed(items: Any) -> str:
    *first, last = map(str, items)
    return f"{', '.join(first)} and {last}"
