"""The functions of the namespace for methods of tensors: the one import against the order of the
layers.

The functions are written in terms of tensors, so modules below `tensor` look them up at each call,
and import the type `Tensor` from here for annotations.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xgrad as namespace
    import xgrad.core.arguments  # noqa: F401 -- type checkers then know ``namespace.core``
    from xgrad.core.tensor import Tensor
else:
    namespace = sys.modules[__name__.partition(".")[0]]

__all__ = [
    "Tensor",
    "dlpack",
    "errors",
    "namespace",
    "namespace_of",
    "numpy_protocol",
    "recomputation",
]


def errors() -> Any:
    """Return the module that explains errors, loaded at the first one."""
    return import_module("xgrad.core.errors")


def numpy_protocol() -> Any:
    """Return the module of NumPy's protocols, loaded at its first use."""
    return import_module("xgrad.core.numpy_protocol")


def dlpack() -> Any:
    """Return the module of the exchange by DLPack, loaded at its first use."""
    return import_module("xgrad.ops.dlpack")


def recomputation() -> Any:
    """Return the module of recomputation, loaded at its first use."""
    return import_module("xgrad.transforms.recomputation")


def namespace_of(version: str | None) -> Any:
    """Return the namespace for a version of the standard, by default the newest."""
    return namespace if version in (None, "2025.12") else import_module("xgrad.standard_2024_12")
