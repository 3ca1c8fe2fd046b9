"""Calls of a module as a function of its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from copy import copy
from functools import partial
from types import CellType, FunctionType, MethodType
from typing import Any, TypeVar

from xgrad.core.tensor import Tensor, from_placement
from xgrad.nn.calls import HasForward
from xgrad.nn.module import Module
from xgrad.nn.parameter import Parameter
from xgrad.nn.state_dict import as_state

R = TypeVar("R")


def functional_call(
    module: HasForward[..., R],
    params: Mapping[str, Any],
    args: Any = (),
    kwargs: Mapping[str, Any] | None = None,
) -> R:
    """Call a module as a function of its parameters and buffers.

    Parameters
    ----------
    module : Module
        The module, which is not changed: a copy is called, which shares everything else with it.
        Several threads may therefore call it at the same time, and values that the module assigns
        to its own attributes are lost.
    params : mapping of str to Tensor or array
        Values by the names of `Module.named_parameters` and `Module.named_buffers`; the module's
        own values are used for all other names. A shared parameter is replaced wherever it is used.
    args : tuple or object
        The positional arguments of the call; an object that is not a tuple is the only argument.
    kwargs : mapping of str to object, optional
        The keyword arguments.

    Returns
    -------
    object
        The result of the module. Gradients flow to `params`.

    Raises
    ------
    ValueError
        If a name is unknown, a shape differs, or the module is nested too deep.
    TypeError
        If a value is not a tensor, or `module` is not a module. Also if an attribute of the module
        is an object that is not copied, but has one of these parameters, or a module with one, as
        an attribute: it would use the old value.

    Notes
    -----
    The signature matches ``torch.func.functional_call``. Detach the values before differentiating
    with respect to them, as in the example: the gradient with respect to a leaf that requires a
    gradient has a graph of its own, which takes time and memory.

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
    state = dict(module._named_state())
    if unknown := [name for name in params if name not in state]:
        raise ValueError(f"functional_call: expected names of {list(state)}, got {unknown}")
    replacements: dict[int, Any] = {}
    for name, value in params.items():
        tensor = as_state("functional_call", name, value)
        if tensor.shape != state[name].shape:
            raise ValueError(
                f"functional_call: expected shape {state[name].shape} for {name!r}, got"
                f" {tensor.shape}"
            )
        cls: type[Tensor] = Tensor
        if isinstance(state[name], Parameter):
            cls = Parameter
        replacements[id(state[name])] = from_placement(
            tensor._data, tensor._placement, tensor._edge, cls
        )
    try:
        call = _replace(module, replacements)
    except RecursionError:
        raise ValueError(
            "functional_call: expected modules and containers that are not nested hundreds deep,"
            " and no list in itself"
        ) from None
    result: R = call(*(args if isinstance(args, tuple) else (args,)), **(kwargs or {}))
    return result


def _replace(value: Any, done: dict[int, Any]) -> Any:
    """Return the value of an attribute with replacements, or the value itself without any.

    Modules, containers and functions are copied. `done` maps the ids of original objects to their
    replacements, and gets the copies too.
    """
    if id(value) in done:
        return done[id(value)]
    if isinstance(value, Module):
        new = done[id(value)] = object.__new__(type(value))  # first: there may be cycles
        vars(new).update({name: _replace(part, done) for name, part in vars(value).items()})
        vars(new)["_buffers"] = set(value._buffers)
        for name in value._buffers:  # even without a replacement: the copy may write to it
            vars(new)[name] = _copied(vars(new)[name])
        return new
    if isinstance(value, MethodType) and isinstance(value.__self__, Module):
        return MethodType(value.__func__, _replace(value.__self__, done))
    if isinstance(value, FunctionType) and value.__closure__:
        return _replace_closure(value, done)
    if isinstance(value, (partial, list, tuple, set, frozenset, dict)):
        parts = _parts(value)
        replaced = [_replace(part, done) for part in parts]
        changed = any(new is not old for new, old in zip(replaced, parts, strict=True))
        return _rebuild(value, replaced) if changed else value
    _check_hidden(value, done)
    return value


def _copied(buffer: Tensor | None) -> Tensor | None:
    """Return a tensor that shares the array until one of the two is written to."""
    return (
        buffer if buffer is None else from_placement(buffer._data, buffer._placement, buffer._edge)
    )


def _parts(container: Any) -> list[Any]:
    if isinstance(container, partial):
        return [container.func, container.args, container.keywords]
    return list(container.values() if isinstance(container, dict) else container)


def _rebuild(container: Any, parts: list[Any]) -> Any:
    """Return a container of the same type with other parts."""
    if isinstance(container, partial):
        return partial(parts[0], *parts[1], **parts[2])
    if isinstance(container, dict):
        new = copy(container)  # keeps the type, such as OrderedDict
        new.update(zip(container, parts, strict=True))
        return new
    return type(container)(*parts) if hasattr(container, "_fields") else type(container)(parts)


def _replace_closure(function: FunctionType, done: dict[int, Any]) -> FunctionType:
    """Return a copy of a function with replacements in its closure, for example of ``self``."""
    closure = function.__closure__ or ()
    cells = tuple([CellType() for _ in closure])
    new = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, cells
    )
    # Before the cells are filled: the function may refer to itself.
    new.__kwdefaults__, done[id(function)] = function.__kwdefaults__, new
    for cell, old in zip(cells, closure, strict=True):
        with suppress(ValueError):  # an empty cell
            cell.cell_contents = _replace(old.cell_contents, done)
    return new


def _check_hidden(value: Any, done: dict[int, Any]) -> None:
    """Raise a TypeError if an object that is not copied has an attribute that was replaced."""
    for name, part in getattr(value, "__dict__", {}).items():
        state = (
            [tensor for _, tensor in part._named_state()] if isinstance(part, Module) else [part]
        )
        if any(isinstance(tensor, Tensor) and id(tensor) in done for tensor in state):
            raise TypeError(
                "functional_call: expected modules and parameters in attributes of modules, lists,"
                f" tuples, sets and dicts, got one in {name!r} of a {type(value).__name__}, which"
                " is not copied: make that a module"
            )
