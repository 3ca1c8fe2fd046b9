"""Rows of linear algebra."""

from __future__ import annotations

import xgrad
from xgrad.parity.row import Op, Sample, a, row
from xgrad.parity.tolerance import SUMS

ROWS: list[Op] = [
    row("matmul", SUMS, xgrad.matmul, "matmul", Sample((a(2, 3), a(3, 4))), Sample((a(3), a(3, key=1))), Sample((a(3), a(3, 2))),
        Sample((a(2, 3), a(3))), Sample((a(4, 2, 3), a(4, 3, 2))), Sample((a(4, 2, 3), a(3, 2))), Sample((a(2, 3), a(4, 3, 2))),
        Sample((a(2, 1, 2, 3), a(3, 3, 2))), Sample((a(3), a(2, 3, 2))), Sample((a(2, 2, 3), a(3))),
        Sample((a(0, 3), a(3, 2))), Sample((a(2, 0), a(0, 2))), Sample((a(2, 3), a(3, 4)), {}, "transposed"), complex=True),
]  # fmt: skip
