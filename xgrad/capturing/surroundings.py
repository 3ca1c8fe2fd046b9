"""What a step's own code names beside its arguments: a recording holds only as long as those are the same things."""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from xgrad.nn.module import edits
from xgrad.optim.optimizer import Optimizer

_LOAD_GLOBAL = dis.opmap["LOAD_GLOBAL"]
_OF_VARIABLES = _LOAD_GLOBAL, dis.opmap["LOAD_NAME"], dis.opmap["STORE_GLOBAL"]
ABSENT: Any = object()  # what stands for a variable that is not there


class Same:
    """What is equal only to itself, whatever it is."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is Same and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def described(value: Any) -> Any:
    """Return what is equal for things that are no tensors if a step cannot tell them apart: 0.0 is not -0.0, nor 0."""
    if isinstance(value, (float, complex, np.generic)):
        return type(value), repr(value)
    if type(value) is set:
        return set, frozenset(value)
    own: Any = type(value).__hash__
    try:
        told_apart = own is not object.__hash__ and hash(value) is not None
    except TypeError:  # of a list, or of what holds one
        told_apart = False
    return (type(value), value) if told_apart else Same(value)


class Modules:
    """Modules that a step calls. Called, it returns whether they have the attributes that they had.

    Parameters
    ----------
    modules : sequence of (Module, dict)
        The modules, with their attributes.

    Attributes
    ----------
    edits : int
        As of which edit of modules they had them.
    """

    def __init__(self, modules: Sequence[tuple[Any, dict[str, Any]]]) -> None:
        self._modules, self.edits = modules, edits.number

    def __call__(self) -> bool:
        for module, attributes in self._modules:
            now = vars(module)
            if now.keys() != attributes.keys():
                return False
            for name, value in attributes.items():
                if name != "training" and now[name] is not value and described(now[name]) != described(value):
                    return False
        self.edits = edits.number
        return True


class Watched:
    """A variable or attribute. Called, it returns a description of what it is now.

    Parameters
    ----------
    name : str
        How the step's code names it.
    read : callable
        Returns its value.
    holder : cell or dict
        Where it is.
    key : str or None
        Where in a dict.
    """

    __slots__ = ("holder", "key", "name", "read")

    def __init__(self, name: str, read: Callable[[], Any], holder: Any, key: str | None = None) -> None:
        self.name, self.read, self.holder, self.key = name, read, holder, key

    def __call__(self) -> Any:
        return described(self.read())


def watched(step: Any) -> list[Watched]:
    """Return the variables of a function, and attributes of what it is a method of, that are to be watched."""
    owner, function = getattr(step, "__self__", None), getattr(step, "__func__", step)
    if not hasattr(function, "__code__"):
        owner, function = step, getattr(type(step), "__call__", None)  # noqa: B004 - the function itself is wanted
    return list(_watched(function, getattr(owner, "__dict__", {}), set()))


def _watched(function: Any, attributes: dict[str, Any], seen: set[int]) -> Iterator[Watched]:
    """Return what a function names, and what functions of the user's that it names do."""
    code = getattr(function, "__code__", None)
    if code is None or id(code) in seen:
        return
    seen.add(id(code))
    for variable in _named(function, code, attributes):
        yield variable
        value = variable.read()
        if isinstance(value, FunctionType) and not value.__module__.partition(".")[0].startswith("xgrad"):
            yield from _watched(value, {}, seen)


def begins(variables: Iterable[Watched], arguments: Iterable[Any]) -> bool:
    """Return whether an optimizer that a step names has not yet taken a step: the first is unlike all others."""
    return any(isinstance(x, Optimizer) and not x.laid() for x in (*arguments, *(w.read() for w in variables)))


def _named(function: Any, code: CodeType, attributes: dict[str, Any]) -> Iterator[Watched]:
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        yield Watched(name, partial(_content, cell), cell)
    variables = function.__globals__
    for name in sorted(_globals(code)):
        if name in variables:
            yield Watched(name, partial(variables.get, name, ABSENT), variables, name)
    for name in code.co_names:
        if name in attributes:
            yield Watched(f"self.{name}", partial(attributes.get, name, ABSENT), attributes, name)


def _globals(code: CodeType) -> set[str]:
    """Return the global variables that some code names, with the code in it, such as that of comprehensions."""
    names = set()
    operations, arguments = code.co_code[::2], code.co_code[1::2]
    for operation in _OF_VARIABLES:
        i = operations.find(operation)
        while i >= 0:
            number, shift = arguments[i], 8
            while operations[i - shift // 8] == dis.EXTENDED_ARG:  # the bits above, one instruction for eight
                number |= arguments[i - shift // 8] << shift
                shift += 8
            names.add(code.co_names[number >> 1 if operation == _LOAD_GLOBAL else number])  # whose last bit is a flag
            i = operations.find(operation, i + 1)
    return names.union(*(_globals(part) for part in code.co_consts if isinstance(part, CodeType)))


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned to yet
        return ABSENT
