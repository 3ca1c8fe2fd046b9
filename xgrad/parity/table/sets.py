"""Rows of set functions."""

from __future__ import annotations

import numpy as np

import xgrad
from xgrad.parity import pytorch
from xgrad.parity.row import MASK, NAN, Op, Sample, a, ints, row
from xgrad.parity.table.indexing import STRICT_FLAGS
from xgrad.parity.table.statistical import TIE
from xgrad.parity.tolerance import EXACT

REPEATED = np.array([[3.0, 1.0, 3.0], [-2.0, 1.0, 3.0]])
SAMPLES = (
    Sample((a(2, 3),)),
    Sample((REPEATED,)),
    Sample((ints([3, 1], [3, 3]),)),
    Sample((MASK,)),
    Sample((a(),)),
    Sample((a(0, 3),)),
    Sample((np.array([NAN, 1.0, NAN]),)),
)

ROWS: list[Op] = [
    row("isin", EXACT, xgrad.isin, "isin", Sample((ints([3, 1], [2, 3]), ints(3, 5))), Sample((ints(1, 2, 4), ints([2], [3])), {"invert": True}), Sample((ints(1, 2), 2)),
        Sample((2, ints(1, 2))), Sample((ints(3, 1), ints())), Sample((ints(), ints(1))), Sample((ints(1), ints(1)[0])), differentiable=False),
    row("isin of floats", EXACT, xgrad.isin, "isin", Sample((REPEATED, np.array([3.0, NAN]))), Sample((a(2, 3), 0.5)), Sample((np.array([NAN, -0.0]), np.array([NAN, 0.0])), {"invert": True}),
        differentiable=False, not_on={"strict": "its isin takes integers alone"}),
    row("unique_values", EXACT, xgrad.unique_values, lambda x: pytorch.unique_all(x)[0], Sample((a(5),)), Sample((a(2, 3),)), Sample((a(),)), Sample((a(0),)),
        Sample((a(2, 3),), {}, "transposed"), not_on=STRICT_FLAGS),
    row("unique_values of repeated ones", EXACT, xgrad.unique_values, lambda x: pytorch.unique_all(x)[0], Sample((REPEATED,)), not_on=STRICT_FLAGS, no_derivative=TIE),
    row("unique_all", EXACT, xgrad.unique_all, pytorch.unique_all, *SAMPLES, differentiable=False, not_on=STRICT_FLAGS),
    row("unique_counts", EXACT, xgrad.unique_counts, lambda x: pytorch.unique_all(x)[::3], *SAMPLES, differentiable=False, not_on=STRICT_FLAGS),
    row("unique_inverse", EXACT, xgrad.unique_inverse, lambda x: pytorch.unique_all(x)[::2], *SAMPLES, differentiable=False, not_on=STRICT_FLAGS),
]  # fmt: skip
