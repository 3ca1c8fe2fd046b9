"""`torch.compile`, which is `xgrad.capture`."""

from __future__ import annotations

from typing import Any

import xgrad
from xgrad.compat.torch.tensor import as_torch
from xgrad.nn import Module


def compile(model: Any = None, **options: Any) -> Any:
    """Return the captured function, or the module with its forward pass captured.

    `xgrad.capture` is for whole steps, with the backward pass and the optimizer. So the forward
    pass of a module is replayed where no graph is recorded, and runs eagerly in training.
    """
    if model is None:
        return lambda function: compile(function, **options)
    if not isinstance(model, Module):
        return xgrad.capture(model)
    eager = model.forward
    captured = xgrad.capture(eager)

    def forward(*args: Any, **kwargs: Any) -> Any:
        recorded = xgrad.is_grad_enabled() and any(p.requires_grad for p in model.parameters())
        return as_torch((eager if recorded else captured)(*args, **kwargs))

    model.forward = forward  # type: ignore[method-assign]
    return model
