"""`torch.func`: transforms of functions, which call them with tensors of this namespace."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import xgrad
from xgrad.compat.torch.tensor import as_torch
from xgrad.compat.torch.unavailable import raise_missing
from xgrad.nn.utils import functional_call as xgrad_functional_call

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "vjp",
    "vmap",
]


def of_tensors(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that gives `func` tensors of this namespace."""

    @wraps(func)
    def call(*args: Any, **options: Any) -> Any:
        return func(*as_torch(args), **as_torch(options))

    return call


def _returning(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **options: as_torch(function(*args, **options))


def grad(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return the gradient of a scalar function: see `xgrad.grad`."""
    return _returning(xgrad.grad(of_tensors(func), argnums, has_aux))


def grad_and_value(
    func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return the gradient and the value of a scalar function: see `xgrad.value_and_grad`."""
    both = xgrad.value_and_grad(of_tensors(func), argnums, has_aux)

    def call(*args: Any, **options: Any) -> Any:
        value, gradient = both(*args, **options)
        return as_torch((gradient, value))

    return call


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Return a result, and the function of vectors times the Jacobian: see `xgrad.vjp`."""
    out, pullback, *aux = xgrad.vjp(of_tensors(func), *primals, has_aux=has_aux)

    def call(*cotangents: Any) -> Any:
        gradients = pullback(cotangents[0] if len(cotangents) == 1 else cotangents)
        return as_torch(tuple(gradients))

    return as_torch((out, call, *aux))


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, has_aux: bool = False) -> Any:
    """Return a result, and the Jacobian times vectors: see `xgrad.jvp`."""
    return as_torch(xgrad.jvp(of_tensors(func), primals, tangents, has_aux=has_aux))


def jacrev(
    func: Callable[..., Any], argnums: Any = 0, *, has_aux: bool = False
) -> Callable[..., Any]:
    """Return the Jacobian of a function in reverse mode: see `xgrad.jacobian`."""
    return _returning(xgrad.jacobian(of_tensors(func), argnums, has_aux=has_aux))


def jacfwd(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return the Jacobian of a function in forward mode: see `xgrad.jacfwd`."""
    return _returning(xgrad.jacfwd(of_tensors(func), argnums, has_aux=has_aux))


def hessian(func: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
    """Return the Hessian of a scalar function: see `xgrad.hessian`."""
    return _returning(xgrad.hessian(of_tensors(func), argnums))


def vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error"
) -> Callable[..., Any]:
    """Return a function mapped over an axis of its arguments: see `xgrad.vmap`."""
    if randomness not in ("error", "same", "different"):
        raise ValueError("vmap: expected randomness of 'error', 'same' or 'different'")
    return _returning(xgrad.vmap(of_tensors(func), in_dims, out_dims))


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: Any = None,
    **options: Any,
) -> Any:
    """Call a module with other parameters: see `xgrad.nn.utils.functional_call`."""
    parameters = parameter_and_buffer_dicts
    if isinstance(parameters, (tuple, list)):
        parameters = {name: x for part in parameters for name, x in part.items()}
    return as_torch(xgrad_functional_call(module, parameters, () if args is None else args, kwargs))


def __getattr__(name: str) -> Any:
    raise_missing("torch.func", name)
