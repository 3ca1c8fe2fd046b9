"""A module as a function of its parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from copy import copy
from functools import partial
from types import CellType, FunctionType, MethodType
from typing import Any

from xgrad.core.tensor import Tensor, from_placement
from xgrad.nn.module import Module
from xgrad.nn.parameter import Parameter
from xgrad.ops import asarray


def functional_call(
    module: Module, params: Mapping[str, Any], args: Any = (), kwargs: Mapping[str, Any] | None = None
) -> Any:
    """Call a module with other values for its parameters and buffers, as a function of them.

    Parameters
    ----------
    module : Module
        Which is left as it is: a copy is called, that shares all else with it. So this may be done in several threads,
        and what the module assigns to its own attributes meanwhile is lost.
    params : mapping of str to Tensor or array
        By the names of `Module.named_parameters` and `Module.named_buffers`; what is left out keeps its value. One that
        is shared between modules is so here, too.
    args : tuple or object
        The positional arguments of the call; what is no tuple is the only one.
    kwargs : mapping of str to object, optional
        The others.

    Returns
    -------
    object
        What the module returns. Gradients flow to `params`.

    Raises
    ------
    ValueError
        If the module has nothing of a name, or that has another shape, or if it is nested too deep.
    TypeError
        If a value is no tensor, or `module` none; or if an attribute of the module is an object, but no module, that
        holds one of these parameters, or a module that does: it would go on using the old value.

    Notes
    -----
    The signature is that of ``torch.func.functional_call``. The values to differentiate by are best detached, as here:
    the gradient by a leaf that requires one has itself a graph, which takes time and memory.

    Examples
    --------
    >>> import xgrad
    >>> from xgrad import nn
    >>> net = nn.MLP([2, 3, 1])
    >>> params = {name: p.detach() for name, p in net.named_parameters()}
    >>> def loss(params, x):
    ...     return (nn.utils.functional_call(net, params, x) ** 2).mean()
    >>> gradient = xgrad.grad(loss)(params, xgrad.ones((5, 2)))
    >>> {name: g.shape for name, g in gradient.items()}
    {'0.weight': (3, 2), '0.bias': (3,), '2.weight': (1, 3), '2.bias': (1,)}
    """
    if not isinstance(module, Module):
        raise TypeError(f"functional_call: expected a module, got {type(module).__name__}")
    own = dict(module._named_state())
    if unknown := [name for name in params if name not in own]:
        raise ValueError(f"functional_call: expected names of {list(own)}, got {unknown}")
    replaced: dict[int, Any] = {}
    for name, value in params.items():
        try:
            tensor = value if isinstance(value, Tensor) else asarray(value)
        except TypeError as error:
            raise TypeError(f"functional_call: expected a tensor for {name!r}: {error}") from error
        if tensor.shape != own[name].shape:
            raise ValueError(f"functional_call: expected shape {own[name].shape} for {name!r}, got {tensor.shape}")
        cls = Parameter if isinstance(own[name], Parameter) else Tensor
        replaced[id(own[name])] = from_placement(tensor._data, tensor._placement, tensor._edge, cls)
    try:
        call = _replace(module, replaced)
    except RecursionError:
        raise ValueError(
            "functional_call: expected modules and containers that are not nested hundreds deep, and no list in itself"
        ) from None
    return call(*(args if isinstance(args, tuple) else (args,)), **(kwargs or {}))


def _replace(value: Any, done: dict[int, Any]) -> Any:
    """Return a copy of a module, or of what holds one, with that in it which `done` has by its id; else the value."""
    if id(value) in done:
        return done[id(value)]
    if isinstance(value, Module):
        new = done[id(value)] = object.__new__(type(value))  # first, for there may be circles
        vars(new).update({name: _replace(part, done) for name, part in vars(value).items()})
        vars(new)["_buffers"] = set(value._buffers)
        return new
    if isinstance(value, MethodType) and isinstance(value.__self__, Module):
        return MethodType(value.__func__, _replace(value.__self__, done))
    if isinstance(value, partial):
        parts = [_replace(part, done) for part in (value.func, value.args, value.keywords)]
        return (
            partial(parts[0], *parts[1], **parts[2])
            if _changed(parts, (value.func, value.args, value.keywords))
            else value
        )
    if isinstance(value, (list, tuple, set, frozenset)):
        parts = [_replace(part, done) for part in value]
        if not _changed(parts, value):
            return value
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        parts = [_replace(part, done) for part in value.values()]
        if not _changed(parts, value.values()):
            return value
        same = copy(value)  # of its own type, such as an OrderedDict
        same.update(zip(value, parts, strict=True))
        return same
    if isinstance(value, FunctionType) and value.__closure__:
        return _with_other_cells(value, done)
    _check_hidden(value, done)
    return value


def _with_other_cells(function: FunctionType, done: dict[int, Any]) -> FunctionType:
    """Return a function that sees other values for what it uses of where it was defined, such as ``self``."""
    before = function.__closure__ or ()
    cells = tuple([CellType() for _ in before])
    new = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, cells)
    new.__kwdefaults__, done[id(function)] = function.__kwdefaults__, new  # first, for it may use itself
    for cell, old in zip(cells, before, strict=True):
        with suppress(ValueError):  # of an empty one
            cell.cell_contents = _replace(old.cell_contents, done)
    return new


def _check_hidden(value: Any, done: dict[int, Any]) -> None:
    """Refuse what holds a parameter that was replaced, and is not copied: it would go on using the old value."""
    for name, part in getattr(value, "__dict__", {}).items():
        state = [tensor for _, tensor in part._named_state()] if isinstance(part, Module) else [part]
        if any(id(tensor) in done for tensor in state):
            raise TypeError(
                "functional_call: expected modules and parameters in attributes of modules, lists, tuples, sets and "
                f"dicts, got one in {name!r} of a {type(value).__name__}, which is not copied: make that a module"
            )


def _changed(parts: Iterable[Any], before: Iterable[Any]) -> bool:
    return any(a is not b for a, b in zip(parts, before, strict=True))
