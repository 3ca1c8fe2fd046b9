"""Rows of statistical functions."""

from __future__ import annotations

import numpy as np

import xgrad
from xgrad.parity import pytorch
from xgrad.parity.pytorch import torch
from xgrad.parity.row import Op, Sample, a, reduction, row
from xgrad.parity.tolerance import COMPOSED, EXACT, PRODUCTS, SUMS

TIE = "a tie has no derivative"
ZEROS = np.array([1 + 2j, 0, 3 - 1j, 0, 2j])

ROWS: list[Op] = [
    # reductions
    reduction("sum", SUMS, pytorch.reduction("sum"), complex=True),
    reduction("mean", SUMS, pytorch.reduction("mean"), empty=False, complex=True),
    reduction("max", EXACT, pytorch.extremum("amax"), empty=False),
    reduction("min", EXACT, pytorch.extremum("amin"), empty=False),
    row("max with ties", EXACT, xgrad.max, pytorch.extremum("amax"), Sample((np.array([1.0, 3.0, 3.0]),)),
        Sample((np.array([[1.0, 1.0], [2.0, 1.0]]),), {"axis": 1}), no_derivative=TIE),
    reduction("prod", PRODUCTS, pytorch.prod, complex=True),
    row("prod through zeros", PRODUCTS, xgrad.prod, pytorch.prod, Sample((np.array([2.0, 0.0, 3.0, 4.0]),)),
        Sample((np.array([2.0, 0.0, 3.0, 0.0]),)), Sample((np.array([[0.0, 2.0], [3.0, 0.0], [4.0, 0.0]]),), {"axis": 0}),
        Sample((np.array([[[0.0, 2.0], [3.0, 4.0]], [[0.0, 0.0], [4.0, 0.0]]]),), {"axis": (0, 2), "keepdims": True}), Sample((ZEROS,))),
    reduction("var", SUMS, pytorch.reduction("var"), empty=False),
    row("var with a correction", SUMS, xgrad.var, pytorch.reduction("var"), Sample((a(2, 3),), {"axis": 1, "correction": 1}),
        Sample((a(5),), {"correction": 1.5})),
    row("std", SUMS, xgrad.std, pytorch.reduction("std"), Sample((a(2, 3),)), Sample((a(2, 3),), {"axis": 1}),
        Sample((a(2, 3),), {"axis": 0, "keepdims": True, "correction": 1}), Sample((a(2, 3, 2),), {"axis": (0, 2)}),
        Sample((a(2, 3),), {"axis": 1}, "transposed")),
    row("std of equal numbers", SUMS, xgrad.std, pytorch.reduction("std"), Sample((np.array([[2.0, 2.0], [1.0, 3.0]]),), {"axis": 1}), Sample((np.zeros(3),)),
        no_derivative="it has a kink at 0"),
    reduction("logsumexp", COMPOSED, pytorch.reduction("logsumexp"), empty=False, complex=True),
    row("logsumexp of nothing", COMPOSED, xgrad.logsumexp, pytorch.reduction("logsumexp"), Sample((a(0, 3),), {"axis": 0}), Sample((a(0),)), no_derivative="it is infinite"),
    row("sum in another dtype", SUMS, lambda x, **options: xgrad.astype(xgrad.sum(x, dtype=xgrad.float64, **options), x.dtype),
        lambda x, axis: torch.sum(x.double(), axis).to(x.dtype), Sample((a(2, 3),), {"axis": 1})),
    row("cumulative_sum", SUMS, xgrad.cumulative_sum, pytorch.cumulative_sum, Sample((a(4),)), Sample((a(2, 3),), {"axis": 0}),
        Sample((a(2, 3),), {"axis": -1, "include_initial": True}), Sample((a(4),), {"include_initial": True}),
        Sample((a(0),)), Sample((a(2, 3),), {"axis": 1}, "transposed"), complex=True),
    row("cumulative_prod", PRODUCTS, xgrad.cumulative_prod, pytorch.cumulative_prod, *[Sample((a(n),)) for n in (1, 2, 5, 7, 8, 9, 16, 17)], Sample((a(3, 2),), {"axis": 0}),
        Sample((a(2, 3, 2),), {"axis": -2}), Sample((a(2, 3),), {"axis": -1, "include_initial": True}), Sample((a(4),), {"include_initial": True}),
        Sample((a(0),)), Sample((a(2, 0),), {"axis": 1, "include_initial": True}), Sample((a(1, 2),), {"axis": 0}), Sample((a(2, 3),), {"axis": 1}, "transposed"),
        Sample((a(4),), {}, "reversed"), complex=True),
    row("cumulative_prod through zeros", PRODUCTS, xgrad.cumulative_prod, pytorch.cumulative_prod, Sample((np.array([2.0, 0.0, 3.0, 4.0]),)),
        Sample((np.array([2.0, 0.0, 3.0, 0.0, 5.0]),)), Sample((np.zeros(4),)), Sample((np.array([[0.0, 2.0, -1.0], [3.0, 0.0, 0.0]]),), {"axis": 1}),
        Sample((ZEROS,))),
]  # fmt: skip
