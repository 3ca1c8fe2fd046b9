"""The namespace for array API standard 2024.12 and earlier: lists in place of 2025.12's tuples.

``x.__array_namespace__(api_version="2024.12")`` returns it. All other functions are the same as in
`xgrad`.
"""

from __future__ import annotations

from typing import Any

import xgrad
from xgrad.backend.device import Device
from xgrad.namespace_info import Info as _Info

__array_api_version__ = "2024.12"
__all__ = xgrad.__all__


class Info(_Info):
    """The result of `__array_namespace_info__`."""

    def devices(self) -> list[Device]:  # type: ignore[override]
        """See `xgrad.devices`."""
        return list(super().devices())


def __array_namespace_info__() -> Info:
    """See `xgrad.__array_namespace_info__`."""
    return Info()


def broadcast_arrays(*arrays: Any) -> list[xgrad.Tensor]:
    """See `xgrad.broadcast_arrays`."""
    return list(xgrad.broadcast_arrays(*arrays))


def meshgrid(*arrays: Any, indexing: str = "xy") -> list[xgrad.Tensor]:
    """See `xgrad.meshgrid`."""
    return list(xgrad.meshgrid(*arrays, indexing=indexing))


def __getattr__(name: str) -> Any:
    return getattr(xgrad, name)


def __dir__() -> list[str]:
    return dir(xgrad)
