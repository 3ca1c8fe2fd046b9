"""What a step's own code names beside its arguments: numbers and strings that a recording depends on, optimizers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from xgrad.optim.optimizer import Optimizer

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_ABSENT: Any = object()


class Watched:
    """A variable or attribute that is a number or a string. Called, it returns what it is now.

    Parameters
    ----------
    name : str
        How the step's code names it.
    read : callable
        Returns its value.
    """

    __slots__ = ("name", "read")

    def __init__(self, name: str, read: Callable[[], Any]) -> None:
        self.name, self.read = name, read

    def __call__(self) -> Any:
        value = self.read()
        return (type(value), value) if isinstance(value, _PLAIN) else None


def watched(step: Any) -> list[Watched]:
    """Return the variables of a function, and attributes of what it is a method of, that are to be watched."""
    return [w for w in _named(step) if w() is not None]


def optimizers(step: Any, arguments: Iterable[Any]) -> list[Optimizer]:
    """Return the optimizers that a step names, or is given."""
    return [x for x in (*arguments, *(w.read() for w in _named(step))) if isinstance(x, Optimizer)]


def _named(step: Any) -> Iterator[Watched]:
    owner, function = getattr(step, "__self__", None), getattr(step, "__func__", step)
    if not hasattr(function, "__code__"):
        owner, function = step, getattr(type(step), "__call__", None)  # noqa: B004 - the function itself is wanted
    code = getattr(function, "__code__", None)
    if code is None:
        return
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        yield Watched(name, partial(_content, cell))
    variables = function.__globals__
    for name in code.co_names:
        if name in variables:
            yield Watched(name, partial(variables.get, name, _ABSENT))
        if owner is not None and name in getattr(owner, "__dict__", {}):
            yield Watched(f"self.{name}", partial(owner.__dict__.get, name, _ABSENT))


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned to yet
        return _ABSENT
