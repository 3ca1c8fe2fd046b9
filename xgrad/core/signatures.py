"""Parameters of rules, read from their code objects, and signatures made at their first use."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from inspect import Signature
from typing import Any

#: Names of positional parameters, names of other parameters, defaults, and whether the last
#: positional is ``*name``.
Parameters = tuple[tuple[str, ...], tuple[str, ...], dict[str, Any], bool]


def parameters(function: Callable[..., Any]) -> Parameters:
    """Return the parameters of a function, from its `__signature__` if it has one."""
    if not inspect.isfunction(function) or vars(function):
        each = inspect.signature(function).parameters.values()
        positional = tuple([p.name for p in each if p.kind <= p.VAR_POSITIONAL])
        keywords = tuple([p.name for p in each if p.kind > p.VAR_POSITIONAL])
        defaults = {p.name: p.default for p in each if p.default is not p.empty}
        return positional, keywords, defaults, any(p.kind == p.VAR_POSITIONAL for p in each)
    code, last = function.__code__, function.__defaults__ or ()
    names = code.co_varnames
    count = code.co_argcount
    end = code.co_argcount + code.co_kwonlyargcount
    variadic = bool(code.co_flags & inspect.CO_VARARGS)
    rest = bool(code.co_flags & inspect.CO_VARKEYWORDS)
    defaults = dict(zip(names[count - len(last) : count], last, strict=True)) | (
        function.__kwdefaults__ or {}
    )
    first, more = end + variadic, names[end + variadic :][:rest]
    return names[:count] + names[end:first], names[count:end] + more, defaults, variadic


class LazySignature(Signature):
    """A ``__signature__``, made at its first use from the function's attribute `signature`."""

    __slots__ = ("_function",)
    return_annotation: Any = Signature.empty

    def __init__(self, function: Any) -> None:
        self._function = function

    @property
    def parameters(self) -> Any:
        """The parameters by name."""
        return self._function.signature.parameters

    def replace(self, **changes: Any) -> Any:
        """Return the signature with other parameters or another return annotation."""
        return self._function.signature.replace(**changes)

    __replace__ = replace  # of `copy.replace`

    def __reduce__(self) -> Any:
        return self._function.signature.__reduce__()


def public_signature(forward: Callable[..., Any], defaults: Mapping[str, Any]) -> Signature:
    """Return the signature of a forward rule without `xp` and without annotations.

    Where `defaults` has a parameter, that default replaces the one of `forward`.
    """
    public = list(inspect.signature(forward).parameters.values())[1:]
    return Signature(
        [p.replace(default=defaults.get(p.name, p.default), annotation=p.empty) for p in public]
    )
