"""`torch.autograd`: gradients of tensors, and derivatives of functions in `functional`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import xgrad
from xgrad.compat.torch.functions import Function, Variable
from xgrad.compat.torch.tensor import as_torch
from xgrad.core.modes import enable_grad, no_grad
from xgrad.diagnostics.anomalies import detect_anomaly

__all__ = [
    "Function",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "functional",
    "grad",
    "no_grad",
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


def _of_inputs(func: Any) -> Any:
    """Return a function that gives `func` tensors of this namespace."""

    def call(*args: Any) -> Any:
        return func(*as_torch(args))

    return call


def _argnums(args: Any, single: bool) -> Any:
    return 0 if single else tuple(range(len(args)))


def _jacobian(
    func: Any, inputs: Any, create_graph: bool = False, strict: bool = False, **options: Any
) -> Any:
    """Return the Jacobian of a function of one tensor or several: see `xgrad.jacobian`."""
    single = isinstance(inputs, xgrad.Tensor)
    args = (inputs,) if single else tuple(inputs)
    found = xgrad.jacobian(_of_inputs(func), argnums=0 if single else tuple(range(len(args))))(
        *args
    )
    return as_torch(found if create_graph else _detached(found))


def _hessian(
    func: Any, inputs: Any, create_graph: bool = False, strict: bool = False, **options: Any
) -> Any:
    """Return the Hessian of a scalar function: see `xgrad.hessian`."""
    single = isinstance(inputs, xgrad.Tensor)
    args = (inputs,) if single else tuple(inputs)
    found = xgrad.hessian(_of_inputs(func), _argnums(args, single))(*args)
    return as_torch(found if create_graph else _detached(found))


def _detached(value: Any) -> Any:
    if isinstance(value, xgrad.Tensor):
        return value.detach()
    return type(value)([_detached(part) for part in value])


def _vjp(func: Any, inputs: Any, v: Any = None, create_graph: bool = False) -> Any:
    """Return the result of a function, and a vector times its Jacobian: see `xgrad.vjp`."""
    single = isinstance(inputs, xgrad.Tensor)
    args = (inputs,) if single else tuple(inputs)
    out, pullback = xgrad.vjp(_of_inputs(func), *args)
    found = pullback(xgrad.ones_like(out) if v is None else v)
    return as_torch((out, found[0] if single else tuple(found)))


def _jvp(func: Any, inputs: Any, v: Any = None, create_graph: bool = False) -> Any:
    """Return the result of a function, and its Jacobian times a vector: see `xgrad.jvp`."""
    single = isinstance(inputs, xgrad.Tensor)
    args = (inputs,) if single else tuple(inputs)
    tangents = (xgrad.ones_like(args[0]),) if v is None else (v,) if single else tuple(v)
    return as_torch(xgrad.jvp(_of_inputs(func), args, tangents))


def _hvp(func: Any, inputs: Any, v: Any = None, create_graph: bool = False) -> Any:
    """Return the result of a scalar function, and its Hessian times a vector: see `xgrad.hvp`."""
    single = isinstance(inputs, xgrad.Tensor)
    args = (inputs,) if single else tuple(inputs)
    tangents = (xgrad.ones_like(args[0]),) if v is None else (v,) if single else tuple(v)
    found = xgrad.hvp(_of_inputs(func), args, tangents)
    return as_torch((func(*args), found[0] if single else tuple(found)))


functional = SimpleNamespace(jacobian=_jacobian, hessian=_hessian, vjp=_vjp, jvp=_jvp, hvp=_hvp)
