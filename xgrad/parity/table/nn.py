"""Rows of the ops of neural networks."""

from __future__ import annotations

import numpy as np

import xgrad
from xgrad import ops as F
from xgrad.parity.pytorch import torch
from xgrad.parity.row import MASK, Op, Sample, a, ints, row
from xgrad.parity.tolerance import COMPOSED, ROUNDED, SUMS

ROWS: list[Op] = [
    row("linear", SUMS, F.linear, "nn.functional.linear", Sample((a(2, 3), a(4, 3), a(4))), Sample((a(2, 3), a(4, 3))),
        Sample((a(3), a(4, 3), a(4))), Sample((a(2, 2, 3), a(4, 3), a(4))), Sample((a(0, 3), a(4, 3), a(4))),
        Sample((a(2, 3), a(4, 3), a(4)), {}, "transposed")),
    row("softmax", COMPOSED, F.softmax, lambda x, axis=-1: torch.softmax(x, axis), Sample((a(2, 3),)), Sample((a(2, 3),), {"axis": 0}), Sample((a(4),)),
        Sample((np.array([1e4, -1e4, 0.0]),)), Sample((np.array([[1e4, 1e4], [-1e4, -1e4]]),))),
    row("log_softmax", COMPOSED, F.log_softmax, lambda x, axis=-1: torch.log_softmax(x, axis), Sample((a(2, 3),)), Sample((a(2, 3),), {"axis": 0}),
        Sample((a(4),)), Sample((np.array([1e4, -1e4, 0.0]),)), Sample((np.array([[1e4, 1e4], [-1e4, -1e4]]),))),
    row("cross_entropy", COMPOSED, F.cross_entropy, "nn.functional.cross_entropy", Sample((a(4, 3), ints(0, 2, 1, 1))), Sample((a(3), np.array(1))),
        Sample((a(4, 3), ints(0, 2, 1, 1)), {"reduction": "sum"}), Sample((a(4, 3), ints(0, 2, 1, 1)), {"reduction": "none"}),
        Sample((a(2, 3, 2), ints([0, 2], [1, 1]))), Sample((a(4, 3), ints(0, 2, 1, 1)), {"label_smoothing": 0.1}),
        Sample((np.array([[1e4, -1e4], [1e4, -1e4]]), ints(0, 1))), Sample((a(2, 3), ints(0, 2)), {}, "transposed")),
    row("mse_loss", SUMS, F.mse_loss, "nn.functional.mse_loss", Sample((a(2, 3), a(2, 3, key=1))), Sample((a(4), a(4, key=1)), {"reduction": "sum"}),
        Sample((a(4), a(4, key=1)), {"reduction": "none"}), Sample((a(), a(key=1))), Sample((np.array([1e4, -1e4]), np.array([-1e4, 1e4])))),
    row("dropout by a mask", ROUNDED, lambda x, mask: F.nn._dropout(x, xgrad.astype(mask, x.dtype) * 1.25), lambda x, mask: x * mask * 1.25,
        Sample((a(2, 3), MASK)), Sample((a(2, 3), MASK), {}, "transposed"), Sample((a(0, 3), MASK[:0]))),
]  # fmt: skip
