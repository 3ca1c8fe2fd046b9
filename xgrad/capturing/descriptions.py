"""What things are that are no tensors, and what is in them: equal if a step cannot tell them apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from xgrad.nn.module import Module
from xgrad.optim.optimizer import Optimizer
from xgrad.random import Generator
from xgrad.tensor import Tensor


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


_MOST = 256  # things in a variable, and in what is in it: of more none is looked at
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
OPAQUE = (Tensor, Optimizer, Generator, type, FunctionType, BuiltinFunctionType, MethodType, np.ndarray, np.generic)


def contents(value: Any, names: Sequence[str]) -> Any:
    """Return what is equal of a list, a dict or an object if a step cannot tell apart what is in it; None of others.

    Of an object those attributes are looked at that the step's code names, of a module of Python's numbers and text.
    """
    try:
        return _inside(value, names, iter(range(_MOST)))
    except StopIteration:
        return None


def _inside(value: Any, names: Sequence[str], room: Iterator[int]) -> Any:
    kind = type(value)
    if kind is list or kind is tuple:
        parts: Any = enumerate(value)
    elif kind is dict:
        parts = value.items()
    elif isinstance(value, (*OPAQUE, *_PLAIN)) or not hasattr(value, "__dict__") or is_ours(value):
        return None
    else:
        own, followed = vars(value), {"training"} if isinstance(value, Module) else ()
        parts = [(name, own[name]) for name in names if name in own and name not in followed]
        if kind is ModuleType:
            parts = [(name, part) for name, part in parts if isinstance(part, _PLAIN)]
    found: list[Any] = [kind]
    for key, part in parts:
        next(room)
        inside = _inside(part, names, room)
        whole = inside is not None and type(part) in (list, tuple, dict)
        found.append((described(key), inside) if whole else (described(key), described(part), inside))
    return tuple(found)


def is_ours(value: Any) -> bool:
    """Return whether something is of a library that a recording follows by itself."""
    if isinstance(value, Module):  # of which a step may read any attribute
        return False
    name = value.__name__ if isinstance(value, ModuleType) else type(value).__module__
    return str(name).partition(".")[0] in ("xgrad", "numpy")
