"""NumPy's functions on tensors, by ``__array_ufunc__`` and ``__array_function__``.

The module is loaded at the first call. Each function is computed by its counterpart in xgrad. Where
a function, an option or ``out=`` has no counterpart, NumPy computes it on the values of the
tensors, or, if one of them requires a gradient, TypeError names what is missing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from inspect import Parameter
from typing import Any

import numpy as np

import xgrad as namespace
from xgrad.core.tensor import Tensor
from xgrad.numpy_counterparts import COUNTERPARTS, INSTEAD
from xgrad.support.hints import NAMES
from xgrad.support.trees import leaves, rebuild
from xgrad.support.user_code import user_location


def call_ufunc(
    ufunc: np.ufunc, method: str, args: Sequence[Any], options: Mapping[str, Any]
) -> Any:
    """Call a ufunc of NumPy or SciPy on tensors: see `Tensor.__array_ufunc__`."""
    name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"

    def differentiable() -> Any:
        if "out" in options:
            raise TypeError(
                f"{name}: expected no out=, since an array of NumPy has no gradient: for array +="
                " tensor write array = array + tensor, or array += tensor.detach().numpy()"
            )
        counterpart = _find(ufunc.__name__ if method == "outer" else name)
        inputs = args
        named = options
        if method == "outer":
            a, b = args
            inputs = (namespace.reshape(a, (*a.shape, *[1] * np.ndim(b))) if np.ndim(a) else a, b)
        elif method in ("reduce", "accumulate"):
            named = {"axis": 0, **options}
        return counterpart(*inputs, **_checked(name, named, counterpart))

    return _with_fallback(differentiable, getattr(ufunc, method), args, options)


def call_function(
    function: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any]
) -> Any:
    """Call another function of NumPy on tensors: see `Tensor.__array_function__`."""
    name = f"{function.__module__}.{function.__name__}".removeprefix("numpy.")

    def differentiable() -> Any:
        counterpart = _find(name)
        inputs, named = _translated(function, counterpart, args, options)
        return counterpart(*inputs, **_checked(name, named, counterpart))

    return _with_fallback(differentiable, function, args, options)


def _with_fallback(
    differentiable: Callable[[], Any],
    function: Callable[..., Any],
    args: Sequence[Any],
    options: Mapping[str, Any],
) -> Any:
    """Return xgrad's result, or after a TypeError NumPy's if no gradient would be lost."""
    try:
        return differentiable()
    except TypeError:
        tree = (list(args), dict(options))
        values = [x for _, x in leaves(tree)]
        if any(isinstance(x, Tensor) and x.requires_grad for x in values):
            raise
    args, options = rebuild(tree, [np.asarray(x) if isinstance(x, Tensor) else x for x in values])
    return function(*args, **options)


def _find(name: str) -> Callable[..., Any]:
    """Return xgrad's counterpart of a function of NumPy or a ufunc of SciPy; TypeError without."""
    counterpart = COUNTERPARTS.get(name, name)
    if callable(counterpart):
        return counterpart
    module, _, short = counterpart.rpartition(".")
    for source in [getattr(namespace, module, None)] if module else [namespace, namespace.special]:
        if short in getattr(source, "__all__", ()) and callable(function := getattr(source, short)):
            return function  # type: ignore[no-any-return]
    instead = INSTEAD.get(name) or NAMES["xgrad"].get(name)
    raise TypeError(
        f"{name}: xgrad has no counterpart of this function, and a gradient would be lost:"
        f" {f'write {instead}' if instead else 'compute it by functions of xgrad'}, or give"
        f" .detach().numpy(), at {user_location()}"
    )


def _translated(
    function: Callable[..., Any],
    counterpart: Callable[..., Any],
    args: Sequence[Any],
    options: Mapping[str, Any],
) -> tuple[Sequence[Any], dict[str, Any]]:
    """Return arguments for a counterpart.

    They are the inputs in their order, and the options that differ from NumPy's defaults.
    """
    parameters = _parameters(counterpart)
    try:
        of_numpy = _parameters(function)
    except ValueError:  # of functions in C, before NumPy 2.4
        of_numpy = parameters
    if any(p.kind == p.VAR_POSITIONAL for p in of_numpy.values()):
        inputs, named, rest = args, {}, dict(options)
    else:
        positional = dict(
            zip(
                of_numpy,
                [n for n, p in parameters.items() if p.kind < p.VAR_POSITIONAL],
                strict=False,
            )
        )
        rest = {**dict(zip(of_numpy, args, strict=False)), **options}
        named = {positional[n]: rest.pop(n) for n in positional if n in rest}
        inputs = [
            named.pop(n) for n in list(named) if parameters[n].kind == Parameter.POSITIONAL_ONLY
        ]
    for n, value in rest.items():
        default = of_numpy[n].default if n in of_numpy else Parameter.empty
        if value is not default and (type(value) is not type(default) or value != default):
            named[_OPTIONS.get(n, n)] = value
    return inputs, named


@cache
def _parameters(function: Callable[..., Any]) -> Mapping[str, Parameter]:
    return inspect.signature(function).parameters


def _checked(
    name: str, options: Mapping[str, Any], counterpart: Callable[..., Any]
) -> Mapping[str, Any]:
    """Return options that a counterpart has; TypeError for another."""
    for option in options:
        if option not in _parameters(counterpart):
            raise TypeError(
                f"{name}: xgrad has no counterpart of NumPy's option {option}=, and a gradient"
                f" would be lost: leave it out, or give .detach().numpy(), at {user_location()}"
            )
    return options


#: Options of NumPy that have another name here.
_OPTIONS = {"ddof": "correction", "rcond": "rtol"}
