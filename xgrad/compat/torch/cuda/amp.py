"""`torch.cuda.amp`: mixed precision on GPUs."""

from __future__ import annotations

from typing import Any

from xgrad.compat.torch import amp
from xgrad.compat.torch.amp import GradScaler

__all__ = ["GradScaler", "autocast"]


class autocast(amp.autocast):
    """Cast inputs of matrix products to float16 on GPUs."""

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        super().__init__("cuda" if enabled else "cpu", dtype, enabled)
