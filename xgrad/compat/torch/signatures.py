"""PyTorch's signatures as text, and the calls of xgrad's functions that they stand for.

A signature lists PyTorch's parameters in order, separated by spaces, each with its default after
``=``. ``*`` begins keywords. Beside the name stands what xgrad's function gets:

====================  ==========================================================================
``weight=None``       the argument under the same name
``dim>axis=-1``       the argument under another name, `axis`
``inplace~=False``    nothing: the argument has no effect in xgrad, or the caller handles it
``sparse!=False``     nothing: another value than the default is refused, by its name
====================  ==========================================================================

Parameters without a default before the first with one are passed by position. The deprecated
options ``size_average`` and ``reduce`` of losses become ``reduction``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import xgrad
from xgrad.compat.torch.tensor import as_result
from xgrad.support.hints import shown


class Signature:
    """The parameters of a function or constructor of PyTorch."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.names: list[str] = []  # which may be given by position
        self.inputs: list[str] = []  # passed by position
        self.targets: dict[str, str] = {}  # the names of xgrad's parameters
        self.refused: dict[str, Any] = {}  # the only values of parameters
        self.defaults: dict[str, Any] = {}
        keywords = False
        for part in text.split():
            if part == "*":
                keywords = True
                continue
            head, equals, default = part.partition("=")
            parameter, _, target = head.rstrip("~!").partition(">")
            if not keywords:
                self.names.append(parameter)
            if not equals and not keywords and len(self.inputs) == len(self.names) - 1:
                self.inputs.append(parameter)
            elif head[-1] == "!":
                self.refused[parameter] = ast.literal_eval(default)
            elif head[-1] != "~":
                self.targets[parameter] = target or parameter
            if equals:
                self.defaults[parameter] = ast.literal_eval(default)
        self.known = {*self.names, *self.inputs, *self.targets, *self.refused, *self.defaults}
        self.is_deprecated = "size_average" in self.known
        # xgrad's arguments for a call that gives the inputs alone
        self.options = self._options(self.defaults)

    def bind(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return the positional and keyword arguments for xgrad's function."""
        if not options and len(args) == len(self.inputs):
            return args, self.options
        if len(args) > len(self.names):
            raise TypeError(
                f"{self.name}: expected at most {len(self.names)} positional arguments, got"
                f" {len(args)}"
            )
        given = dict(zip(self.names, args, strict=False))
        for name, value in options.items():
            if name not in self.known:
                raise TypeError(f"{self.name}: unknown argument {name!r}")
            if name in given:
                raise TypeError(f"{self.name}: argument {name!r} is given twice")
            given[name] = value
        values = {**self.defaults, **given}
        if missing := [name for name in (*self.inputs, *self.targets) if name not in values]:
            raise TypeError(f"{self.name}: missing arguments {missing}")
        if self.is_deprecated:
            values["reduction"] = reduction_of(values)
        return [values[name] for name in self.inputs], self._options(values)

    def value(self, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Return one argument of a call, which xgrad's function may not get."""
        if name in options:
            return options[name]
        index = self.names.index(name) if name in self.names else len(args)
        return args[index] if index < len(args) else self.defaults.get(name)

    def _options(self, values: dict[str, Any]) -> dict[str, Any]:
        for name, only in self.refused.items():
            if values[name] is not only and values[name] != only:
                raise NotImplementedError(
                    f"{self.name}: {name}={shown(values[name])} is not available in"
                    f" xgrad.compat.torch, only {name}={only!r}"
                )
        return {target: values[name] for name, target in self.targets.items() if name in values}


#: The signatures of constructors, by class.
SIGNATURES: dict[type, Signature] = {}


def signature_of(kind: type) -> Signature | None:
    """Return the signature of the constructor of a class; None if that is the program's own."""
    return next((SIGNATURES[base] for base in kind.__mro__ if base in SIGNATURES), None)


def reduction_of(values: dict[str, Any]) -> str:
    """Return the reduction that the deprecated options ``size_average`` and ``reduce`` choose."""
    average, reduce = values["size_average"], values["reduce"]
    if average is None and reduce is None:
        return str(values["reduction"])
    if reduce is not None and not reduce:
        return "none"
    return "mean" if average is None or average else "sum"


#: Functions that take integers or bools, with PyTorch's result. xgrad computes others in floats,
#: where PyTorch refuses them, or returns integers.
TAKE_INTEGERS = frozenset("embedding embedding_bag relu sigmoid softsign tanh tanhshrink".split())


def _is_integral(x: Any) -> bool:
    """Return whether an argument is a tensor of integers or bools."""
    return isinstance(x, xgrad.Tensor) and x._placement.dtype.kind in "iub"


def adapted(name: str, text: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with PyTorch's signature that calls one of xgrad."""
    signature = Signature(name, text)
    takes_integers = name.rpartition(".")[2] in TAKE_INTEGERS

    def call(*args: Any, **options: Any) -> Any:
        inputs, chosen = signature.bind(args, options)
        if not takes_integers and inputs and _is_integral(inputs[0]):
            raise NotImplementedError(
                f"{name}: expected a floating dtype, got {inputs[0].dtype}: use .float()"
            )
        return as_result(function(*inputs, **chosen), inputs)

    call.__name__ = call.__qualname__ = name
    return call
