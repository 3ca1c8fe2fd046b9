"""Rows of creation functions: those that make something of a tensor."""

from __future__ import annotations

import xgrad
from xgrad.parity.pytorch import torch
from xgrad.parity.row import Op, Sample, a, row
from xgrad.parity.tolerance import EXACT, SELECTED

TRIANGLES = [Sample((a(3, 3),)), Sample((a(2, 4),), {"k": 1}), Sample((a(4, 2),), {"k": -1}), Sample((a(2, 2, 3),), {"k": -5}), Sample((a(0, 2),)),
             Sample((a(3, 2),), {}, "transposed")]  # fmt: skip

ROWS: list[Op] = [
    row("tril", EXACT, xgrad.tril, lambda x, k=0: torch.tril(x, k), *TRIANGLES, complex=True),
    row("triu", EXACT, xgrad.triu, lambda x, k=0: torch.triu(x, k), *TRIANGLES, complex=True),
    row("meshgrid", SELECTED, lambda *xs, indexing="xy": tuple(xgrad.meshgrid(*xs, indexing=indexing)), lambda *xs, indexing="xy": torch.meshgrid(*xs, indexing=indexing),
        Sample((a(2), a(3))), Sample((a(2), a(3)), {"indexing": "ij"}), Sample((a(2), a(1), a(3))), Sample((a(0), a(2))), Sample((a(2),)), complex=True),
]  # fmt: skip
