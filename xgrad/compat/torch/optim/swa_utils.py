"""`torch.optim.swa_utils`: averages of weights."""

from __future__ import annotations

from typing import Any

from xgrad.compat.torch.unavailable import raise_missing
from xgrad.optim.swa_utils import *


def __getattr__(name: str) -> Any:
    raise_missing("torch.optim.swa_utils", name)
