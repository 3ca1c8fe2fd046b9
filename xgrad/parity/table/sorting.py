"""Rows of sorting functions."""

from __future__ import annotations

import numpy as np

import xgrad
from xgrad.parity import pytorch
from xgrad.parity.row import NAN, Op, Sample, a, ints, row
from xgrad.parity.table.statistical import TIE
from xgrad.parity.tolerance import EXACT

TIES = np.array([[1.0, 0.0, 1.0, -0.0], [2.0, 2.0, 2.0, 1.0]])

ROWS: list[Op] = [
    row("sort", EXACT, xgrad.sort, pytorch.sort, Sample((a(5),)), Sample((a(2, 3),), {"axis": 0}), Sample((a(2, 3, 4),), {"axis": -2, "descending": True}),
        Sample((a(2, 3),), {"stable": False}), Sample((a(0),)), Sample((a(1, 3),), {"axis": 0, "descending": True}), Sample((a(3, 4),), {}, "transposed"),
        Sample((a(4),), {"descending": True}, "reversed")),
    row("sort with ties", EXACT, xgrad.sort, pytorch.sort, Sample((TIES,)), Sample((TIES,), {"descending": True}), Sample((TIES,), {"axis": 0}), no_derivative=TIE),
    row("sort with NaN", EXACT, xgrad.sort, pytorch.sort, Sample((np.array([1.0, NAN, -1.0, 3.0]),)), no_derivative="NaN has none"),
    row("argsort", EXACT, xgrad.argsort, pytorch.argsort, Sample((a(5),)), Sample((a(2, 3),), {"axis": 0}), Sample((a(2, 3, 4),), {"axis": -2, "descending": True}),
        Sample((TIES,)), Sample((TIES,), {"descending": True}), Sample((ints(3, 1, 3, 2),)), Sample((a(0),)), Sample((a(3, 4),), {}, "transposed"), differentiable=False),
]  # fmt: skip
