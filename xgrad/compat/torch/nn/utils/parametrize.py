"""`torch.nn.utils.parametrize`: parameters as functions of other ones."""

from __future__ import annotations

from typing import Any

from xgrad.compat.torch.unavailable import raise_missing
from xgrad.nn.utils.parametrize import (
    ParametrizationList,
    cached,
    is_parametrized,
    register_parametrization,
    remove_parametrizations,
)

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
]


def __getattr__(name: str) -> Any:
    raise_missing("torch.nn.utils.parametrize", name)
