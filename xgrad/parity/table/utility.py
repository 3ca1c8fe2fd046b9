"""Rows of utility functions."""

from __future__ import annotations

import xgrad
from xgrad.parity import pytorch
from xgrad.parity.pytorch import torch
from xgrad.parity.row import MASK, Op, Sample, a, row
from xgrad.parity.tolerance import EXACT, SUMS


def _diff_with_ends(x: xgrad.Tensor, prepend: xgrad.Tensor, append: xgrad.Tensor, **options: int) -> xgrad.Tensor:
    return xgrad.diff(x, prepend=prepend, append=append, **options)


ROWS: list[Op] = [
    row("diff", SUMS, xgrad.diff, lambda x, axis=-1, n=1: torch.diff(x, dim=axis, n=n), Sample((a(5),)), Sample((a(3, 2),), {"axis": 0}),
        Sample((a(2, 5),), {"n": 3}), Sample((a(4, 2, 2),), {"axis": -3, "n": 2}), Sample((a(3),), {"n": 0}), Sample((a(3),), {"n": 3}), Sample((a(2, 3),), {"n": 5}),
        Sample((a(1),)), Sample((a(0, 3),), {"axis": 0}), Sample((a(2, 3),), {"axis": 1}, "transposed"), complex=True),
    row("diff with ends", SUMS, _diff_with_ends, lambda x, prepend, append, axis=-1, n=1: torch.diff(x, dim=axis, n=n, prepend=prepend, append=append),
        Sample((a(3), a(1), a(2))), Sample((a(2, 3), a(1, 3), a(2, 3, key=1)), {"axis": 0, "n": 2}), complex=True),
    # without a derivative
    *[row(name, EXACT, getattr(xgrad, name), lambda x, axis=None, keepdims=False, name=name: getattr(torch, name)(x, dim=pytorch.axes(x, axis), keepdim=keepdims),
           Sample((MASK,)), Sample((MASK,), {"axis": 0}), Sample((MASK,), {"axis": (0, 1), "keepdims": True}), differentiable=False)
      for name in ("any", "all")],
]  # fmt: skip
