"""The namespace `xgrad` for methods of tensors: the one import against the order of the layers.

The functions of the namespace are written in terms of tensors, so modules below `tensor` look them
up at each call, and import the type `Tensor` from here for annotations.
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
    "errors",
    "namespace",
]


def errors() -> Any:
    """Return the module that explains errors, loaded at the first one."""
    return import_module("xgrad.core.errors")
