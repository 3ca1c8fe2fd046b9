"""Rows of reductions and cumulative functions."""

from __future__ import annotations

import numpy as np

import xgrad
from xgrad.parity import pytorch
from xgrad.parity.pytorch import torch
from xgrad.parity.row import MASK, Op, Sample, a, reduction, row
from xgrad.parity.tolerance import COMPOSED, EXACT, PRODUCTS, SUMS

TIE = "a tie has no derivative"

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
        Sample((np.array([2.0, 0.0, 3.0, 0.0]),)), Sample((np.array([[0.0, 2.0], [3.0, 0.0], [4.0, 0.0]]),), {"axis": 0}), complex=True),
    reduction("var", SUMS, pytorch.reduction("var"), empty=False),
    row("var with a correction", SUMS, xgrad.var, pytorch.reduction("var"), Sample((a(2, 3),), {"axis": 1, "correction": 1}),
        Sample((a(5),), {"correction": 1.5})),
    row("std", SUMS, xgrad.std, pytorch.reduction("std"), Sample((a(2, 3),)), Sample((a(2, 3),), {"axis": 1}),
        Sample((a(2, 3),), {"axis": 0, "keepdims": True, "correction": 1}), Sample((a(2, 3, 2),), {"axis": (0, 2)}),
        Sample((a(2, 3),), {"axis": 1}, "transposed")),
    reduction("logsumexp", COMPOSED, pytorch.reduction("logsumexp"), empty=False),
    row("cumulative_sum", SUMS, xgrad.cumulative_sum, pytorch.cumulative_sum, Sample((a(4),)), Sample((a(2, 3),), {"axis": 0}),
        Sample((a(2, 3),), {"axis": -1, "include_initial": True}), Sample((a(4),), {"include_initial": True}),
        Sample((a(0),)), Sample((a(2, 3),), {"axis": 1}, "transposed"), complex=True),
    # without a derivative
    *[row(name, EXACT, getattr(xgrad, name), lambda x, axis=None, keepdims=False, name=name: getattr(torch, name)(x, dim=axis, keepdim=keepdims),
           Sample((a(2, 3),)), Sample((a(2, 3),), {"axis": 0}), Sample((a(2, 3),), {"axis": -1, "keepdims": True}), differentiable=False)
      for name in ("argmax", "argmin")],
    *[row(name, EXACT, getattr(xgrad, name), lambda x, axis=None, keepdims=False, name=name: getattr(torch, name)(x, dim=pytorch.axes(x, axis), keepdim=keepdims),
           Sample((MASK,)), Sample((MASK,), {"axis": 0}), Sample((MASK,), {"axis": (0, 1), "keepdims": True}), differentiable=False)
      for name in ("any", "all")],
]  # fmt: skip
