"""The one import against the order of the layers: functions of the namespace, as methods of tensors call them.

The functions are written in terms of tensors, so modules below `tensor` look them up when they are called, and take
the type `Tensor` from here for annotations.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xgrad as namespace
    from xgrad.core.tensor import Tensor
else:
    namespace = sys.modules[__name__.partition(".")[0]]

__all__ = ["Tensor", "namespace", "numpy_protocol"]


def numpy_protocol() -> Any:
    """Return the module of NumPy's protocols, which is loaded at its first use."""
    return import_module("xgrad.core.numpy_protocol")
