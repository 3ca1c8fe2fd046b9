"""Rows of what changes dtypes."""

from __future__ import annotations

import xgrad
from xgrad.parity.pytorch import torch
from xgrad.parity.row import Op, Sample, a, row
from xgrad.parity.tolerance import EXACT

ROWS: list[Op] = [
    row("astype", EXACT, lambda x: xgrad.astype(x, xgrad.float64), lambda x: x.to(torch.float64), Sample((a(2, 3),)), Sample((a(),)), Sample((a(0),))),
]  # fmt: skip
