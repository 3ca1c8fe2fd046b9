"""`torch.autograd`: gradients of tensors, and derivatives of functions in `functional`."""

from __future__ import annotations

from typing import Any

import xgrad
from xgrad import testing
from xgrad.compat.torch.autograd import function, functional
from xgrad.compat.torch.autograd.function import Function, Variable
from xgrad.compat.torch.func import of_tensors
from xgrad.compat.torch.modes import inference_mode, set_grad_enabled
from xgrad.compat.torch.tensor import as_torch
from xgrad.compat.torch.unavailable import raise_missing
from xgrad.core.modes import enable_grad, no_grad
from xgrad.diagnostics.anomalies import detect_anomaly

__all__ = [
    "Function",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "function",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """Return the gradients of outputs with respect to inputs: see `xgrad.autograd.grad`."""
    if is_grads_batched:
        raise NotImplementedError(
            "torch.autograd.grad: is_grads_batched= is not available in xgrad.compat.torch: use"
            " torch.func.vmap"
        )
    found = xgrad.autograd.grad(
        outputs,
        inputs,
        grad_outputs,
        create_graph=create_graph,
        retain_graph=retain_graph,
        allow_unused=bool(allow_unused) or materialize_grads,
    )
    if materialize_grads:
        like = [inputs] if isinstance(inputs, xgrad.Tensor) else list(inputs)
        found = tuple(
            [xgrad.zeros_like(x) if g is None else g for g, x in zip(found, like, strict=True)]
        )
    return as_torch(found)


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
) -> None:
    """Add the gradients to the ``.grad`` of the leaves: see `xgrad.autograd.backward`."""
    keep = create_graph if retain_graph is None else retain_graph
    xgrad.autograd.backward(tensors, grad_tensors, retain_graph=keep, create_graph=create_graph)


class set_detect_anomaly(detect_anomaly):
    """Detect anomalies in a ``with`` block: see `xgrad.autograd.detect_anomaly`."""


def gradcheck(func: Any, inputs: Any, **options: Any) -> bool:
    """Compare the derivatives of a function with differences: see `xgrad.testing.gradcheck`."""
    return testing.gradcheck(of_tensors(func), inputs, **options)


def gradgradcheck(func: Any, inputs: Any, grad_outputs: Any = None, **options: Any) -> bool:
    """Compare second derivatives with differences: see `xgrad.testing.gradgradcheck`."""
    return testing.gradgradcheck(of_tensors(func), inputs, grad_outputs, **options)


def __getattr__(name: str) -> Any:
    raise_missing("torch.autograd", name)
