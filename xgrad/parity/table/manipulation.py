"""Rows of manipulation functions, and of the transpose."""

from __future__ import annotations

import xgrad
from xgrad.parity import pytorch
from xgrad.parity.pytorch import torch
from xgrad.parity.row import Op, Sample, a, ints, row
from xgrad.parity.table.indexing import STRICT_FLAGS
from xgrad.parity.tolerance import EXACT, SELECTED, SUMS

ROWS: list[Op] = [
    row("reshape", EXACT, xgrad.reshape, lambda x, shape: torch.reshape(x, shape), Sample((a(2, 3),), {"shape": (3, 2)}),
        Sample((a(2, 3),), {"shape": (-1,)}), Sample((a(),), {"shape": (1, 1)}), Sample((a(0, 3),), {"shape": (3, 0)}),
        Sample((a(2, 3),), {"shape": (6,)}, "transposed"), complex=True),
    row("reshape into a copy", EXACT, lambda x: xgrad.reshape(x, (3, 2), copy=True), lambda x: torch.reshape(x, (3, 2)), Sample((a(2, 3),)),
        Sample((a(2, 3),), {}, "transposed"), complex=True),
    row("permute_dims", EXACT, xgrad.permute_dims, lambda x, axes: torch.permute(x, axes), Sample((a(2, 3, 4),), {"axes": (2, 0, 1)}),
        Sample((a(2, 3),), {"axes": (-1, 0)}), Sample((a(2, 3, 4),), {"axes": (-1, 0, -2)}), Sample((a(),), {"axes": ()}), Sample((a(2, 0),), {"axes": (1, 0)}), complex=True),
    row("matrix_transpose", EXACT, xgrad.matrix_transpose, lambda x: x.mT, Sample((a(2, 3),)), Sample((a(2, 3, 4),)), Sample((a(0, 3),)), complex=True),
    row("expand_dims", EXACT, xgrad.expand_dims, pytorch.expand_dims, Sample((a(2, 3),), {"axis": 1}), Sample((a(2, 3),), {"axis": (0, -2)}), Sample((a(2, 3),), {"axis": (-5, 4, 1)}), Sample((a(2, 3),), {"axis": ()}),
        Sample((a(2),), {"axis": -1}), Sample((a(),), {"axis": 0}), Sample((a(0),), {"axis": 0}), complex=True),
    row("squeeze", EXACT, xgrad.squeeze, lambda x, axis: torch.squeeze(x, axis), Sample((a(2, 1, 3),), {"axis": 1}),
        Sample((a(1, 2, 1),), {"axis": (0, -1)}), Sample((a(1),), {"axis": 0}), complex=True),
    row("broadcast_to", SELECTED, xgrad.broadcast_to, lambda x, shape: torch.broadcast_to(x, shape), Sample((a(3),), {"shape": (2, 3)}),
        Sample((a(2, 1),), {"shape": (2, 4)}), Sample((a(),), {"shape": (2, 2)}), Sample((a(1),), {"shape": (0,)}), complex=True),
    row("broadcast_arrays", SELECTED, lambda *xs: xgrad.broadcast_arrays(*xs), lambda *xs: torch.broadcast_tensors(*xs), Sample((a(3), a(2, 1))),
        Sample((a(), a(2, 3), a(3))), Sample((a(2),)), Sample((a(0, 3), a(1))), complex=True),
    row("moveaxis", EXACT, lambda x, source, destination: xgrad.moveaxis(x, source, destination), lambda x, source, destination: torch.movedim(x, source, destination),
        Sample((a(2, 3, 4),), {"source": 0, "destination": -1}), Sample((a(2, 3, 4),), {"source": (0, -1), "destination": (1, 0)}),
        Sample((a(2, 3, 1, 2),), {"source": (3, 0), "destination": (-4, 2)}), Sample((a(2, 0),), {"source": 1, "destination": 0}), complex=True),
    row("roll", EXACT, xgrad.roll, pytorch.roll, Sample((a(4),), {"shift": 1}), Sample((a(2, 3),), {"shift": -2}), Sample((a(2, 3),), {"shift": 4, "axis": 1}),
        Sample((a(2, 3, 2),), {"shift": (1, -1), "axis": (0, -2)}), Sample((a(3, 3),), {"shift": 2, "axis": (0, 1)}), Sample((a(3, 3),), {"shift": (1, 1), "axis": (0, 0)}), Sample((a(),), {"shift": 1}),
        Sample((a(0, 3),), {"shift": 1, "axis": 0}), Sample((a(2, 3),), {"shift": 1}, "transposed"), complex=True),
    row("repeat", SUMS, lambda x, repeats, axis=None: xgrad.repeat(x, repeats, axis=axis), lambda x, repeats, axis=None: torch.repeat_interleave(x, repeats, axis if x.ndim else None),
        Sample((a(3),), {"repeats": 2}), Sample((a(2, 3),), {"repeats": 2}), Sample((a(2, 3, 2),), {"repeats": 3, "axis": -2}), Sample((a(2, 3),), {"repeats": 0, "axis": 0}),
        Sample((a(),), {"repeats": 3}), Sample((a(),), {"repeats": 3, "axis": 0}), Sample((a(0, 3),), {"repeats": 2, "axis": 0}), Sample((a(2, 3),), {"repeats": 2, "axis": 1}, "transposed"), complex=True),
    row("repeat by an array", SUMS, lambda x, repeats, axis=None: xgrad.repeat(x, repeats, axis=axis), lambda x, repeats, axis=None: torch.repeat_interleave(x, repeats, axis),
        Sample((a(3), ints(2, 0, 3))), Sample((a(2, 2), ints(1, 0, 3, 2))), Sample((a(2, 3, 2), ints(2, 1, 0)), {"axis": 1}), Sample((a(2, 3), ints(2)), {"axis": -1}),
        Sample((a(0, 3), ints()), {"axis": 0}), not_on=STRICT_FLAGS, complex=True),
    row("tile", SUMS, lambda x, repetitions: xgrad.tile(x, repetitions), lambda x, repetitions: torch.tile(x, repetitions), Sample((a(3),), {"repetitions": (2,)}),
        Sample((a(2, 3),), {"repetitions": (3,)}), Sample((a(2, 3),), {"repetitions": (2, 1, 2)}), Sample((a(2, 3),), {"repetitions": (1, 0)}), Sample((a(2),), {"repetitions": ()}),
        Sample((a(),), {"repetitions": (2, 2)}), Sample((a(0, 3),), {"repetitions": (2, 2)}), Sample((a(2, 3),), {"repetitions": (2, 2)}, "transposed"), complex=True),
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
