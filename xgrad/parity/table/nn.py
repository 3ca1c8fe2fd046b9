"""Rows of the ops of neural networks."""

from __future__ import annotations

import math

import numpy as np

from xgrad import ops as F
from xgrad.backend import philox
from xgrad.ops import dropout
from xgrad.parity.pytorch import torch
from xgrad.parity.row import Op, Sample, a, ints, row
from xgrad.parity.tolerance import COMPOSED, ROUNDED, SUMS


def _mask(shape: tuple[int, ...], p: float) -> np.ndarray:
    """Return what the dropout below multiplies by, by a formula of its own."""
    fractions = (philox.bits(3, 7, 16, math.prod(shape)) + 2.0**15) / 2**16
    return np.where(fractions < p, 0.0, 1 / (1 - p)).reshape(shape)


ROWS: list[Op] = [
    row("linear", SUMS, F.linear, "nn.functional.linear", Sample((a(2, 3), a(4, 3), a(4))), Sample((a(2, 3), a(4, 3))),
        Sample((a(3), a(4, 3), a(4))), Sample((a(2, 2, 3), a(4, 3), a(4))), Sample((a(0, 3), a(4, 3), a(4))),
        Sample((a(2, 3), a(4, 3), a(4)), {}, "transposed")),
    row("softmax", COMPOSED, F.softmax, lambda x, axis=-1: torch.softmax(x, axis), Sample((a(2, 3),)), Sample((a(2, 3),), {"axis": 0}), Sample((a(4),)),
        Sample((np.array([1e4, -1e4, 0.0]),)), Sample((np.array([[1e4, 1e4], [-1e4, -1e4]]),)), Sample((a(2, 0),)), Sample((a(0, 3),), {"axis": 0})),
    row("log_softmax", COMPOSED, F.log_softmax, lambda x, axis=-1: torch.log_softmax(x, axis), Sample((a(2, 3),)), Sample((a(2, 3),), {"axis": 0}),
        Sample((a(4),)), Sample((np.array([1e4, -1e4, 0.0]),)), Sample((np.array([[1e4, 1e4], [-1e4, -1e4]]),)), Sample((a(2, 0),)), Sample((a(0, 3),), {"axis": 0})),
    row("cross_entropy", COMPOSED, F.cross_entropy, "nn.functional.cross_entropy", Sample((a(4, 3), ints(0, 2, 1, 1))), Sample((a(3), np.array(1))),
        Sample((a(4, 3), ints(0, 2, 1, 1)), {"reduction": "sum"}), Sample((a(4, 3), ints(0, 2, 1, 1)), {"reduction": "none"}),
        Sample((a(2, 3, 2), ints([0, 2], [1, 1]))), Sample((a(4, 3), ints(0, 2, 1, 1)), {"label_smoothing": 0.1}),
        Sample((np.array([[1e4, -1e4], [1e4, -1e4]]), ints(0, 1))), Sample((a(2, 3), ints(0, 2)), {}, "transposed")),
    row("mse_loss", SUMS, F.mse_loss, "nn.functional.mse_loss", Sample((a(2, 3), a(2, 3, key=1))), Sample((a(4), a(4, key=1)), {"reduction": "sum"}),
        Sample((a(4), a(4, key=1)), {"reduction": "none"}), Sample((a(), a(key=1))), Sample((np.array([1e4, -1e4]), np.array([-1e4, 1e4])))),
    row("dropout of a seed", ROUNDED, lambda x: dropout._dropout(x, seed=3, call=7, device=x.device, p=0.2), lambda x: x * torch.tensor(_mask(x.shape, 0.2)),
        Sample((a(2, 3),)), Sample((a(5, 7),), {}, "transposed"), Sample((a(2, 4, 2),), {}, "reversed"), Sample((a(0, 3),)), Sample((a(),))),
]  # fmt: skip
