"""Rows of searching functions."""

from __future__ import annotations

import numpy as np

import xgrad
from xgrad.parity import pytorch
from xgrad.parity.pytorch import torch
from xgrad.parity.row import MASK, NAN, Op, Sample, a, ints, row
from xgrad.parity.table.indexing import STRICT_FLAGS
from xgrad.parity.tolerance import EXACT, SELECTED

SORTED = np.array([-1.0, 0.5, 0.5, 2.0])

ROWS: list[Op] = [
    row("where", SELECTED, lambda x, y, c: xgrad.where(c, x, y), lambda x, y, c: torch.where(c, x, y),
        Sample((a(2, 3), a(2, 3, key=1), MASK)), Sample((a(3), a(2, 1), MASK)), Sample((a(), a(2, 3), MASK)),
        Sample((a(2, 3), 0.5, MASK)), Sample((1.5, a(2, 3), MASK)), Sample((a(0, 3), a(3), MASK[:0])), complex=True),
    # without a derivative
    *[row(name, EXACT, getattr(xgrad, name), lambda x, axis=None, keepdims=False, name=name: getattr(torch, name)(x, dim=axis, keepdim=keepdims),
           Sample((a(2, 3),)), Sample((a(2, 3),), {"axis": 0}), Sample((a(2, 3),), {"axis": -1, "keepdims": True}),
           Sample((np.array([[1.0, 1.0], [0.0, 0.0]]),), {"axis": 1}), Sample((np.array([1.0, NAN, 3.0]),)), differentiable=False)
      for name in ("argmax", "argmin")],
    row("count_nonzero", EXACT, xgrad.count_nonzero, pytorch.count_nonzero, Sample((a(2, 3),)), Sample((MASK,), {"axis": 0}),
        Sample((MASK,), {"axis": -1, "keepdims": True}), Sample((ints([0, 2], [0, 0]),), {"axis": (0, 1), "keepdims": True}), Sample((a(),)), Sample((a(0, 3),), {"axis": 0}),
        differentiable=False),
    row("nonzero", EXACT, xgrad.nonzero, lambda x: torch.nonzero(x, as_tuple=True), Sample((MASK,)), Sample((ints(0, 3, 0, -1),)),
        Sample((np.array([[0.0, -0.0, NAN]]),)), Sample((a(0, 3),)), differentiable=False, not_on=STRICT_FLAGS),
    row("searchsorted", EXACT, xgrad.searchsorted, pytorch.searchsorted, Sample((SORTED, np.array([0.5, -2.0, 3.0]))),
        Sample((SORTED, np.array([[0.5, 1.0], [2.0, -1.0]])), {"side": "right"}), Sample((SORTED[::-1].copy(), a(3)), {"sorter": ints(3, 2, 1, 0)}),
        Sample((ints(1, 2, 4), ints(2, 3))), Sample((ints(1, 2, 4), np.array([1.5, 2.0]))), Sample((SORTED, a())), Sample((SORTED, 0.5)), Sample((ints(1, 2, 4), 2), {"side": "right"}), Sample((a(0), a(2))), differentiable=False),
]  # fmt: skip
