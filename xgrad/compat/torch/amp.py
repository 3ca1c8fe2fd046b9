"""`torch.amp`: mixed precision, with `xgrad.amp`."""

from __future__ import annotations

from typing import Any

import xgrad
from xgrad.amp import GradScaler as XgradGradScaler
from xgrad.amp import autocast as xgrad_autocast
from xgrad.compat.torch.tensor import as_torch
from xgrad.compat.torch.unavailable import raise_missing

__all__ = ["GradScaler", "autocast"]


class autocast(xgrad_autocast):
    """Cast inputs of matrix products to float16 in a block: see `xgrad.amp.autocast`."""

    def __init__(
        self,
        device_type: Any,
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        super().__init__(device_type, xgrad.float16 if dtype is None else dtype, enabled)


class GradScaler(XgradGradScaler):
    """Scale losses, so that gradients in float16 do not vanish: see `xgrad.amp.GradScaler`."""

    def scale(self, outputs: Any) -> Any:
        """Return a loss, or losses in containers, multiplied by the scale."""
        return as_torch(super().scale(outputs))


def __getattr__(name: str) -> Any:
    raise_missing("torch.amp", name)
