"""Rows of functions that move elements about."""

from __future__ import annotations

import xgrad
from xgrad.parity import pytorch
from xgrad.parity.pytorch import torch
from xgrad.parity.row import Op, Sample, a, row
from xgrad.parity.tolerance import EXACT, SELECTED

ROWS: list[Op] = [
    row("reshape", EXACT, xgrad.reshape, lambda x, shape: torch.reshape(x, shape), Sample((a(2, 3),), {"shape": (3, 2)}),
        Sample((a(2, 3),), {"shape": (-1,)}), Sample((a(),), {"shape": (1, 1)}), Sample((a(0, 3),), {"shape": (3, 0)}),
        Sample((a(2, 3),), {"shape": (6,)}, "transposed"), complex=True),
    row("permute_dims", EXACT, xgrad.permute_dims, lambda x, axes: torch.permute(x, axes), Sample((a(2, 3, 4),), {"axes": (2, 0, 1)}),
        Sample((a(2, 3),), {"axes": (-1, 0)}), Sample((a(),), {"axes": ()}), Sample((a(2, 0),), {"axes": (1, 0)}), complex=True),
    row("matrix_transpose", EXACT, xgrad.matrix_transpose, lambda x: x.mT, Sample((a(2, 3),)), Sample((a(2, 3, 4),)), Sample((a(0, 3),)), complex=True),
    row("expand_dims", EXACT, xgrad.expand_dims, lambda x, axis=0: torch.unsqueeze(x, axis), Sample((a(2, 3),), {"axis": 1}),
        Sample((a(2),), {"axis": -1}), Sample((a(),)), Sample((a(0),), {"axis": 0}), complex=True),
    row("squeeze", EXACT, xgrad.squeeze, lambda x, axis: torch.squeeze(x, axis), Sample((a(2, 1, 3),), {"axis": 1}),
        Sample((a(1, 2, 1),), {"axis": (0, -1)}), Sample((a(1),), {"axis": 0}), complex=True),
    row("broadcast_to", SELECTED, xgrad.broadcast_to, lambda x, shape: torch.broadcast_to(x, shape), Sample((a(3),), {"shape": (2, 3)}),
        Sample((a(2, 1),), {"shape": (2, 4)}), Sample((a(),), {"shape": (2, 2)}), Sample((a(1),), {"shape": (0,)}), complex=True),
    row("flip", EXACT, xgrad.flip, pytorch.flip,
        Sample((a(2, 3),)), Sample((a(2, 3),), {"axis": 0}), Sample((a(2, 3, 2),), {"axis": (0, -1)}), Sample((a(0),)), complex=True),
    row("concat", EXACT, lambda *xs, axis=0: xgrad.concat(xs, axis=axis), lambda *xs, axis=0: torch.cat([x.reshape(-1) for x in xs] if axis is None else xs, axis or 0),
        Sample((a(2, 3), a(1, 3, key=1))), Sample((a(2, 3), a(2, 1), a(2, 0)), {"axis": 1}), Sample((a(2), a(3)), {"axis": -1}),
        Sample((a(2, 2), a(3)), {"axis": None}), Sample((a(2),)), complex=True),
    row("stack", EXACT, lambda *xs, axis=0: xgrad.stack(xs, axis=axis), lambda *xs, axis=0: torch.stack(xs, axis),
        Sample((a(2, 3), a(2, 3, key=1))), Sample((a(2), a(2, key=1), a(2, key=2)), {"axis": -1}), Sample((a(), a(key=1))), Sample((a(0),)), complex=True),
    row("unstack", EXACT, xgrad.unstack, lambda x, axis=0: torch.unbind(x, axis), Sample((a(2, 3),)), Sample((a(2, 3),), {"axis": -1}),
        Sample((a(3),)), complex=True),
]  # fmt: skip
