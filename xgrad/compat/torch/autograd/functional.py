"""`torch.autograd.functional`: derivatives of functions, without a graph unless `create_graph`."""

from __future__ import annotations

from typing import Any

import xgrad
from xgrad.compat.torch.func import of_tensors
from xgrad.compat.torch.tensor import as_torch
from xgrad.compat.torch.unavailable import raise_missing

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def jacobian(
    func: Any,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Return the Jacobian of a function of one tensor or several: see `xgrad.jacobian`."""
    _check_strict("jacobian", strict)
    args, argnums = _arguments(inputs)
    transform: Any = xgrad.jacfwd if strategy == "forward-mode" else xgrad.jacobian
    return _result(transform(of_tensors(func), argnums)(*args), create_graph)


def hessian(
    func: Any,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Return the Hessian of a scalar function: see `xgrad.hessian`."""
    _check_strict("hessian", strict)
    args, argnums = _arguments(inputs)
    transform: Any = xgrad.hessian
    return _result(transform(of_tensors(func), argnums)(*args), create_graph)


def vjp(
    func: Any, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> Any:
    """Return the result of a function, and a vector times its Jacobian: see `xgrad.vjp`."""
    _check_strict("vjp", strict)
    args, argnums = _arguments(inputs)
    out, pullback = xgrad.vjp(of_tensors(func), *args)
    if v is None:
        _check_scalar("vjp", "the result", out)
        v = xgrad.ones_like(out)
    found = pullback(v)
    return _result((out, found[0] if argnums == 0 else tuple(found)), create_graph)


def jvp(
    func: Any, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> Any:
    """Return the result of a function, and its Jacobian times a vector: see `xgrad.jvp`."""
    _check_strict("jvp", strict)
    args, _ = _arguments(inputs)
    return _result(xgrad.jvp(of_tensors(func), args, _tangents("jvp", args, v)), create_graph)


def hvp(
    func: Any, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> Any:
    """Return the result of a scalar function, and its Hessian times a vector: see `xgrad.hvp`."""
    _check_strict("hvp", strict)
    args, argnums = _arguments(inputs)
    called = of_tensors(func)
    found = xgrad.hvp(called, args, _tangents("hvp", args, v))
    return _result((called(*args), found[0] if argnums == 0 else tuple(found)), create_graph)


def vhp(
    func: Any, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> Any:
    """Return the result of a scalar function, and a vector times its Hessian: equal to `hvp`."""
    return hvp(func, inputs, v, create_graph, strict)


def _arguments(inputs: Any) -> tuple[tuple[Any, ...], Any]:
    """Return the arguments of a function, and their indices: 0 for a tensor alone."""
    if isinstance(inputs, xgrad.Tensor):
        return (inputs,), 0
    args = tuple(inputs)
    return args, tuple(range(len(args)))


def _tangents(name: str, args: tuple[Any, ...], v: Any) -> tuple[Any, ...]:
    """Return a tangent for each argument; without `v`, 1 for an argument of one element."""
    if v is not None:
        return (v,) if isinstance(v, xgrad.Tensor) else tuple(v)
    if len(args) > 1:
        raise RuntimeError(f"{name}: expected v, one tensor for each of {len(args)} inputs")
    _check_scalar(name, "the input", args[0])
    return (xgrad.ones_like(args[0]),)


def _check_scalar(name: str, role: str, x: Any) -> None:
    """Raise RuntimeError for a tensor of several elements, which needs a vector `v`."""
    if not isinstance(x, xgrad.Tensor) or int(x.size) != 1:
        raise RuntimeError(f"{name}: expected v, unless {role} is a tensor of one element")


def _check_strict(name: str, strict: bool) -> None:
    if strict:
        raise NotImplementedError(f"{name}: strict=True is not available in xgrad.compat.torch")


def _result(value: Any, create_graph: bool) -> Any:
    """Return results as tensors of this namespace, without history unless `create_graph`."""
    return as_torch(value if create_graph else _detached(value))


def _detached(value: Any) -> Any:
    if isinstance(value, xgrad.Tensor):
        return value.detach()
    return type(value)([_detached(part) for part in value])


def __getattr__(name: str) -> Any:
    raise_missing("torch.autograd.functional", name)
