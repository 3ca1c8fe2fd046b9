"""Modules that the core needs at some calls and does not import, by what they provide.

They belong to higher layers, or are rarely needed. `xgrad/__init__.py` registers the ones of higher
layers; each is loaded at the first call that needs it.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

_modules: dict[str, str | ModuleType] = {"errors": "xgrad.core.errors"}


def register(**modules: str | ModuleType) -> None:
    """Register modules, or their names, by what they provide: ``dlpack="xgrad.ops.dlpack"``."""
    _modules.update(modules)


def module(name: str) -> ModuleType:
    """Return the module that provides something, and load it at the first call."""
    found = _modules[name]
    if isinstance(found, str):
        found = _modules[name] = import_module(found)
    return found
