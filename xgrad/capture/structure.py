"""The structure of arguments: their containers, and what in them is no tensor."""

from __future__ import annotations

from collections import deque
from copy import copy
from typing import Any

from xgrad.core.tensor import Tensor


def structure_of(arguments: Any) -> tuple[Any, list[Any]]:
    """Return the containers of arguments, to be compared with those of others, and what is in them."""
    contents: list[Any] = []
    return _containers(arguments, contents), contents


def _containers(x: Any, contents: list[Any]) -> Any:
    if isinstance(x, dict):
        return type(x), *[(key, _containers(part, contents)) for key, part in x.items()]
    if isinstance(x, (list, tuple)):
        return type(x), *[_containers(part, contents) for part in x]
    contents.append(x)
    return Tensor if isinstance(x, Tensor) else Other(x)


class Other:
    """An argument that is no tensor: equal to those that a step cannot tell from it."""

    __slots__ = ("value",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any) -> None:
        self.value = copy(value) if isinstance(value, (set, bytearray, deque)) else value

    def __eq__(self, other: object) -> bool:
        if type(other) is not Other or type(other.value) is not type(self.value):
            return False
        one, two = self.value, other.value
        if one is two or isinstance(one, (float, complex)):
            return one is two or repr(one) == repr(two)
        if any(isinstance(part, Tensor) for part in getattr(one, "__dict__", {}).values()):
            return False  # equal objects may hold other tensors
        try:
            return bool(one == two)
        except Exception:
            return False
