"""What a call path asks of xgrad's namespace and of its arrays, as seen while it runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import xgrad

OTHERS = ("scipy", "sklearn", "array_api_compat", "array_api_extra")
MODULES = ("linalg", "fft", "special")
METHODS = {
    "__setitem__": "x[k] = v",
    "__iadd__": "+=",
    "__isub__": "-=",
    "__imul__": "*=",
    "__itruediv__": "/=",
    "__len__": "len",
    "__iter__": "iteration",
    "__bool__": "bool",
    "__int__": "int",
    "__float__": "float",
    "__index__": "index",
    "__array__": "NumPy conversion",
}


def asked_by_others(depth: int) -> bool:
    """Return whether the caller, so many frames up, is code that is not ours."""
    return str(sys._getframe(depth + 1).f_globals.get("__name__", "")).startswith(OTHERS)


@contextmanager
def recorded() -> Iterator[set[str]]:
    """Collect what others ask for: functions by their names in the standard, and uses of arrays that not all have."""
    found: set[str] = set()
    modules = {"": xgrad} | {f"{name}.": getattr(xgrad, name) for name in MODULES if hasattr(xgrad, name)}
    methods = {name: getattr(xgrad.Tensor, name) for name in METHODS if hasattr(xgrad.Tensor, name)}

    def listening(prefix: str) -> type[ModuleType]:
        class Listening(ModuleType):
            def __getattribute__(self, name: str) -> Any:
                value = super().__getattribute__(name)
                if callable(value) and not name.startswith("_") and asked_by_others(1):
                    found.add(prefix + name)
                return value

        return Listening

    def noted(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            if asked_by_others(1):
                found.add(METHODS[name])
            return method(*args)

        return call

    classes = {prefix: module.__class__ for prefix, module in modules.items()}
    try:
        for prefix, module in modules.items():
            module.__class__ = listening(prefix)
        for name, method in methods.items():
            setattr(xgrad.Tensor, name, noted(name, method))
        yield found
    finally:
        for prefix, module in modules.items():
            module.__class__ = classes[prefix]
        for name, method in methods.items():
            setattr(xgrad.Tensor, name, method)
