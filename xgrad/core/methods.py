"""The base of `Tensor` with its operators and other methods that are ops.

`xgrad.ops` defines them when it is loaded: ops are written in terms of tensors, so the core cannot
import them. For type checkers and editors, ``methods.pyi`` declares them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


class Methods:
    """Operators and methods that are ops."""

    __slots__ = ()
    __hash__ = object.__hash__  # by identity, though `==` compares elements


def named(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Give a function the name of the method that it is, by which bound methods are pickled."""
    method.__name__ = method.__qualname__ = name
    return method


def define_methods(kind: type, methods: Mapping[str, Any]) -> None:
    """Give a class methods, by their names."""
    for name, method in methods.items():
        setattr(kind, name, method)
