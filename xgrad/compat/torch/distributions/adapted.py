"""Objects of xgrad whose attributes and results are tensors of this namespace."""

from __future__ import annotations

from typing import Any

from xgrad.compat.torch.tensor import as_torch, torch_function


class Adapted:
    """A base class, before one of xgrad, whose public attributes and methods it adapts."""

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if name.startswith("_"):
            return value
        return torch_function(value) if callable(value) else as_torch(value)
