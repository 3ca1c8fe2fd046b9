"""What a step's own code names beside its arguments: a recording holds only as long as those are the same things."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

from xgrad.capturing.descriptions import OPAQUE, contents, described, is_ours
from xgrad.nn.module import Module, edits
from xgrad.optim.optimizer import Optimizer

_LOAD_GLOBAL = dis.opmap["LOAD_GLOBAL"]
_OF_VARIABLES = _LOAD_GLOBAL, dis.opmap["LOAD_NAME"], dis.opmap["STORE_GLOBAL"]
ABSENT: Any = object()  # what stands for a variable that is not there


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


class Inside:
    """What is in a variable. Called, it returns a description of that.

    Parameters
    ----------
    variable : Watched
        The variable.
    names : sequence of str
        Of attributes that the step's code may read.
    """

    __slots__ = ("name", "names", "read")

    def __init__(self, variable: Watched, names: Sequence[str]) -> None:
        self.name, self.read, self.names = variable.name, variable.read, names

    def __call__(self) -> Any:
        return contents(self.read(), self.names)


def watched(step: Any) -> tuple[list[Watched | Inside], Sequence[str]]:
    """Return the variables of a function, and attributes of what it is a method of, that are to be watched.

    Also the names that its code has for attributes of whatever else it is given.
    """
    owner, function = getattr(step, "__self__", None), getattr(step, "__func__", step)
    if not hasattr(function, "__code__"):
        owner, function = step, getattr(type(step), "__call__", None)  # noqa: B004 - the function itself is wanted
    seen: dict[Any, CodeType] = {}
    variables = list(_watched(function, owner, seen))
    names = sorted(set[str]().union(*map(_names, seen.values())))
    holding = [
        v for v in variables if (inside := contents(v.read(), names)) and (inside[1:] or inside[0] in (list, dict))
    ]
    return [*variables, *(Inside(variable, names) for variable in holding)], names


def _names(code: CodeType) -> set[str]:
    return {*code.co_names}.union(*(_names(part) for part in code.co_consts if isinstance(part, CodeType)))


def _watched(function: Any, owner: Any, seen: dict[Any, CodeType]) -> Iterator[Watched]:
    """Return what a function, perhaps a method, names, and what functions of the user's that it may call do."""
    code = getattr(function, "__code__", None)
    if code is None or (id(owner), code) in seen:
        return
    seen[id(owner), code] = code
    names = _names(code)
    for variable in _named(function, code, getattr(owner, "__dict__", {})):
        if variable.name == "self.training" and isinstance(owner, Module):  # which is asked where it is read
            continue
        yield variable
        for reached, whose in _reached(variable.read(), names):
            yield from _watched(reached, whose, seen)
    for method in _methods(owner, names):
        yield from _watched(method, owner, seen)


def _reached(value: Any, names: set[str]) -> Iterator[tuple[FunctionType, Any]]:
    """Return the functions of the user's that code may call which names a thing, and of what they are methods."""
    if isinstance(value, FunctionType):
        if not _is_installed(value):
            yield value, None
    elif isinstance(value, Module):
        for module in value.modules():
            yield from ((method, module) for method in _methods(module, {"forward", *names}))
    elif isinstance(value, MethodType):
        yield from ((method, value.__self__) for method in _methods(value.__self__, {value.__name__}))
    elif not isinstance(value, OPAQUE) and hasattr(value, "__dict__") and not is_ours(value):
        yield from ((method, value) for method in _methods(value, {"__call__", *names}))


def _methods(owner: Any, names: set[str]) -> Iterator[FunctionType]:
    for name in sorted(names) if owner is not None else ():
        method = getattr(type(owner), name, None)
        method = method.fget if isinstance(method, property) else method
        if isinstance(method, FunctionType) and not _is_installed(method):
            yield method


def begins(variables: Iterable[Watched | Inside], arguments: Iterable[Any]) -> bool:
    """Return whether an optimizer that a step names has not yet taken a step: the first is unlike all others."""
    return any(isinstance(x, Optimizer) and not x.laid() for x in (*arguments, *(w.read() for w in variables)))


def _is_installed(function: FunctionType) -> bool:
    """Return whether a function is of a library, and so taken to stay as it is."""
    root, path = str(function.__module__).partition(".")[0], function.__code__.co_filename
    return root == "xgrad" or root in sys.stdlib_module_names or "site-packages" in path or "dist-packages" in path


def _named(function: Any, code: CodeType, attributes: dict[str, Any]) -> Iterator[Watched]:
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        yield Watched(name, partial(_content, cell), cell)
    variables = function.__globals__
    for name in sorted(_globals(code)):
        if name in variables:
            yield Watched(name, partial(variables.get, name, ABSENT), variables, name)
    for name in sorted(_names(code)) if attributes else ():
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
