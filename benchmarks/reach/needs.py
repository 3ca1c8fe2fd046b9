"""Functions of the namespace and methods of arrays that a call path uses.

They are recorded during a call.
"""

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


def called_by_others(depth: int) -> bool:
    """Return whether the caller, a number of frames up, is code of another project."""
    return str(sys._getframe(depth + 1).f_globals.get("__name__", "")).startswith(OTHERS)


@contextmanager
def recorded() -> Iterator[set[str]]:
    """Collect the functions that other projects use, by their names in the standard.

    Rarely supported methods are collected, too.
    """
    used: set[str] = set()
    modules = {"": xgrad} | {
        f"{name}.": getattr(xgrad, name) for name in MODULES if hasattr(xgrad, name)
    }
    methods = {name: getattr(xgrad.Tensor, name) for name in METHODS if hasattr(xgrad.Tensor, name)}

    def recording(prefix: str) -> type[ModuleType]:
        class Recording(ModuleType):
            def __getattribute__(self, name: str) -> Any:
                value = super().__getattribute__(name)
                if callable(value) and not name.startswith("_") and called_by_others(1):
                    used.add(prefix + name)
                return value

        return Recording

    def recorded_method(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            if called_by_others(1):
                used.add(METHODS[name])
            return method(*args)

        return call

    classes = {prefix: module.__class__ for prefix, module in modules.items()}
    try:
        for prefix, module in modules.items():
            module.__class__ = recording(prefix)
        for name, method in methods.items():
            setattr(xgrad.Tensor, name, recorded_method(name, method))
        yield used
    finally:
        for prefix, module in modules.items():
            module.__class__ = classes[prefix]
        for name, method in methods.items():
            setattr(xgrad.Tensor, name, method)
