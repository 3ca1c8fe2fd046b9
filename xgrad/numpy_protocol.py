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
from xgrad.core.arguments import as_tensor
from xgrad.core.tensor import Tensor
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
    counterpart = _COUNTERPARTS.get(name, name)
    if callable(counterpart):
        return counterpart
    module, _, short = counterpart.rpartition(".")
    for source in [getattr(namespace, module, None)] if module else [namespace, namespace.special]:
        if short in getattr(source, "__all__", ()) and callable(function := getattr(source, short)):
            return function  # type: ignore[no-any-return]
    raise TypeError(
        f"{name}: xgrad has no counterpart of this function, and a gradient would be lost: compute"
        f" it by functions of xgrad, or give .detach().numpy(), at {user_location()}"
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


# Counterparts composed of several functions of xgrad, or with other defaults; their parameters are
# NumPy's


def _cumulative(name: str) -> Callable[..., Any]:
    def cumulative(a: Any, /, axis: int | None = None, dtype: Any = None) -> Any:
        return getattr(namespace, name)(
            a if axis is not None else namespace.reshape(a, (-1,)), axis=axis or 0, dtype=dtype
        )

    return cumulative


def _divmod(x1: Any, x2: Any, /) -> tuple[Any, Any]:
    return namespace.floor_divide(x1, x2), namespace.remainder(x1, x2)


def _dot(a: Any, b: Any, /) -> Any:
    if not (np.ndim(a) and np.ndim(b)):
        return namespace.multiply(a, b)
    return (
        namespace.matmul(a, b)
        if np.ndim(b) <= 2
        else namespace.tensordot(a, b, axes=((-1,), (-2,)))
    )


def _hstack(tup: Sequence[Any], /) -> Any:
    arrays = [_with_axes("hstack", x, 1) for x in tup]
    return namespace.concat(arrays, axis=0 if arrays[0].ndim == 1 else 1)


def _inner(a: Any, b: Any, /) -> Any:
    if not (np.ndim(a) and np.ndim(b)):
        return namespace.multiply(a, b)
    return namespace.tensordot(a, b, axes=((-1,), (-1,)))


def _norm(x: Any, /, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    if ord is not None and axis is None:
        axis = tuple(range(x.ndim))
    if ord is None or not isinstance(axis, tuple) or len(axis) == 1:
        return namespace.linalg.vector_norm(
            x, axis=axis, keepdims=keepdims, ord=2 if ord is None else ord
        )
    norm = namespace.linalg.matrix_norm(
        namespace.moveaxis(x, axis, (-2, -1)), keepdims=keepdims, ord=ord
    )
    return namespace.moveaxis(norm, (-2, -1), axis) if keepdims else norm


def _split(ary: Any, indices_or_sections: Any, /, axis: int = 0) -> list[Any]:
    length, ends = ary.shape[axis], indices_or_sections
    if isinstance(ends, int):
        if length % ends:
            raise ValueError(
                f"split: expected a length that {ends} divides, got {length}: use array_split"
            )
        ends = range(length // ends, length, length // ends)
    key = (slice(None),) * (axis % ary.ndim)
    return [
        ary[*key, slice(start, stop), ...]
        for start, stop in zip((0, *ends), (*ends, length), strict=True)
    ]


def _trace(a: Any, /, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return namespace.sum(namespace.diagonal(a, offset, axis1, axis2), axis=-1)


def _transpose(a: Any, /, axes: Any = None) -> Any:
    return namespace.permute_dims(a, tuple(range(a.ndim))[::-1] if axes is None else axes)


def _vstack(tup: Sequence[Any], /) -> Any:
    return namespace.concat([_with_axes("vstack", x, 2) for x in tup])


def _where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    return namespace.nonzero(condition) if x is None else namespace.where(condition, x, y)


def _with_axes(name: str, x: Any, count: int) -> Any:
    """Return a tensor with at least so many axes."""
    x = as_tensor(name, "tup", x)
    return namespace.reshape(x, (1,) * (count - x.ndim) + x.shape)


#: Counterparts of functions of NumPy, in `xgrad` unless a module is named; all others have the same
#: name in both.
_COUNTERPARTS: dict[str, str | Callable[..., Any]] = {
    "absolute": "abs",
    "add.accumulate": "cumulative_sum",
    "add.reduce": "sum",
    "amax": "max",
    "amin": "min",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "around": "round",
    "concatenate": "concat",
    "conjugate": "conj",
    "copy": Tensor.clone,
    "cross": "linalg.cross",
    "cumprod": _cumulative("cumulative_prod"),
    "cumsum": _cumulative("cumulative_sum"),
    "divmod": _divmod,
    "dot": _dot,
    "hstack": _hstack,
    "inner": _inner,
    "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "linalg.norm": _norm,
    "logical_and.reduce": "all",
    "logical_or.reduce": "any",
    "maximum.reduce": "max",
    "minimum.reduce": "min",
    "multiply.accumulate": "cumulative_prod",
    "multiply.reduce": "prod",
    "ndim": lambda a, /: a.ndim,
    "outer": lambda a, b, /: namespace.outer(
        namespace.reshape(a, (-1,)), namespace.reshape(b, (-1,))
    ),
    "power": "pow",
    "ravel": Tensor.ravel,
    "right_shift": "bitwise_right_shift",
    "rint": "round",
    "save": "",  # another function in xgrad
    "shape": lambda a, /: a.shape,
    "size": lambda a, axis=None, /: a.size if axis is None else a.shape[axis],
    "split": _split,
    "squeeze": Tensor.squeeze,
    "swapaxes": Tensor.swapaxes,
    "trace": _trace,
    "transpose": _transpose,
    "vdot": lambda a, b, /: namespace.vecdot(
        namespace.reshape(a, (-1,)), namespace.reshape(b, (-1,))
    ),
    "vstack": _vstack,
    "where": _where,
}

#: Options of NumPy that have another name here.
_OPTIONS = {"ddof": "correction", "rcond": "rtol"}
