"""Modules above the core that it needs at some calls, by what they provide.

The core imports no module of a layer above it. `xgrad/__init__.py` registers such modules here, and
each is loaded at the first call that needs it.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

_modules: dict[str, str] = {}


def register(**modules: str) -> None:
    """Register modules by what they provide, such as ``dlpack="xgrad.ops.dlpack"``."""
    _modules.update(modules)


def module(name: str) -> ModuleType:
    """Return the module that provides something, and load it at the first call."""
    return import_module(_modules[name])
