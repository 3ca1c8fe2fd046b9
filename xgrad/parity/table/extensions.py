"""Rows of functions that the standard lacks."""

from __future__ import annotations

import numpy as np

import xgrad
from xgrad import linalg
from xgrad.parity import pytorch
from xgrad.parity.pytorch import torch
from xgrad.parity.row import INF, NAN, Op, Sample, a, ints, row
from xgrad.parity.table.linalg import SQUARES, regular
from xgrad.parity.tolerance import COMPOSED, EXACT, MATRICES, ROUNDED, SELECTED, SUMS

CLOSE = np.array([1.0, 1.0, 1.0, INF, INF, -INF, NAN, NAN, 0.0, 1e-9, 1e4])
TO = np.array([1.000009, 1.00002, INF, INF, -INF, 1.0, NAN, 1.0, 1e-9, 0.0, 1e4 + 0.01])
GRID = np.array([0.5, 1.0, 2.5, 3.0])
MODES = ("edge", "reflect", "symmetric", "wrap")


def _einsum(*operands: xgrad.Tensor, subscripts: str) -> xgrad.Tensor:
    return xgrad.einsum(subscripts, *operands)


def _allclose(x: xgrad.Tensor, y: xgrad.Tensor) -> xgrad.Tensor:
    return xgrad.asarray(xgrad.allclose(x, y), device=x.device)


def _products(*samples: tuple[str, list[tuple[int, ...]]]) -> list[Sample]:
    return [
        Sample(tuple([a(*shape, key=i) for i, shape in enumerate(shapes)]), {"subscripts": text})
        for text, shapes in samples
    ]


ROWS: list[Op] = [
    row("einsum", SUMS, _einsum, lambda *operands, subscripts: torch.einsum(subscripts, *operands),
        *_products(("ij,jk->ik", [(2, 3), (3, 4)]), ("ij,jk", [(2, 3), (3, 4)]), ("bij,bjk->bik", [(2, 3, 2), (2, 2, 3)]), ("bi,bi->b", [(2, 3), (2, 3)]), ("i,j->ji", [(2,), (3,)]),
            ("ij,ij", [(2, 3), (2, 3)]), ("ijk,jil->kl", [(2, 3, 2), (3, 2, 4)]), ("ij,k->i", [(2, 3), (2,)]), (",ij->ij", [(), (2, 2)]), ("bhqd,bhkd->bhqk", [(2, 2, 3, 2), (2, 2, 3, 2)]),
            ("...ij,...jk->...ik", [(3, 2, 3), (2, 1, 3, 2)]), ("i...,i...->...", [(2, 3), (2, 1)]), ("ij,jk->ik", [(2, 1), (3, 2)]), ("ij,jk->ik", [(2, 0), (0, 2)]), ("ij,jk->ik", [(0, 2), (2, 3)])),
        Sample((a(2, 3), a(3, 4)), {"subscripts": "ij,jk->ki"}, "transposed"), complex=True),
    row("einsum of one operand", SUMS, _einsum, lambda *operands, subscripts: torch.einsum(subscripts, *operands),
        *_products(("ii", [(3, 3)]), ("ii->i", [(3, 3)]), ("iji->ji", [(2, 3, 2)]), ("iii->i", [(2, 2, 2)]), ("ij->", [(2, 3)]), ("ba", [(2, 3)]), ("ij->ji", [(2, 3)]), ("i...->...", [(2, 3, 2)]), ("", [()])),
        complex=True),
    row("einsum of several operands", SUMS, _einsum, lambda *operands, subscripts: torch.einsum(subscripts, *operands),
        *_products(("i,ij,j->", [(2,), (2, 3), (3,)]), ("ij,jk,kl->il", [(2, 3), (3, 2), (2, 3)]), ("bi,bj,bk->bijk", [(2, 2), (2, 2), (2, 3)]), ("i,i,i->i", [(3,), (3,), (3,)]),
            ("ia,ja,ka,la->ijkl", [(2, 2), (2, 2), (1, 2), (2, 2)]), ("ab,bc,cd,de,ea->", [(2, 2), (2, 3), (3, 2), (2, 2), (2, 2)]), ("...i,ij,...j->...", [(2, 3), (3, 2), (2, 2)])),
        complex=True),
    # padding
    row("pad", EXACT, xgrad.pad, pytorch.pad, *[Sample((a(2, 3),), {"pad_width": widths}) for widths in (1, (2, 0), ((1, 2), (0, 3)), 0)], Sample((a(2, 3),), {"pad_width": 1, "constant_values": 2.5}),
        Sample((a(),), {"pad_width": 2}), Sample((a(0, 2),), {"pad_width": 1}), Sample((a(2, 3, 2),), {"pad_width": ((1, 0), (0, 0), (0, 1))}),
        Sample((a(2, 3),), {"pad_width": (1, 2)}, "transposed"), complex=True),
    row("pad with elements", SELECTED, xgrad.pad, pytorch.pad, *[Sample((a(2, 3),), {"pad_width": ((1, 2), (2, 0)), "mode": mode}) for mode in MODES],
        *[Sample((a(3, 1),), {"pad_width": ((7, 5), (2, 3)), "mode": mode}) for mode in MODES], Sample((a(0, 2),), {"pad_width": ((0, 0), (1, 1)), "mode": "wrap"}),
        Sample((a(2, 3),), {"pad_width": (1, 2), "mode": "edge"}, "transposed"), complex=True),
    row("one_hot", EXACT, lambda x, n, axis=-1: xgrad.one_hot(x, n, dtype=xgrad.int64, axis=axis), lambda x, n, axis=-1: torch.movedim(torch.nn.functional.one_hot(x, n), -1, axis),
        Sample((ints(0, 2, 1), 3)), Sample((ints([0, 2], [1, 1]), 4), {"axis": 0}), Sample((ints(), 2)), Sample((np.array(1), 2)),
        differentiable=False),
    # diagonals and products
    row("diagonal of any axes", EXACT, xgrad.diagonal, lambda x, offset=0, axis1=0, axis2=1: torch.diagonal(x, offset, axis1, axis2), Sample((a(2, 3, 4),)), Sample((a(2, 3, 4),), {"offset": 1, "axis1": 2, "axis2": 0}),
        Sample((a(3, 3),), {"offset": -1, "axis1": -2, "axis2": -1}), Sample((a(0, 2),)), complex=True),
    row("diag", EXACT, xgrad.diag, lambda x, k=0: torch.diag(x, k), *[Sample((a(*shape),), {"k": k}) for shape in ((3,), (2, 3)) for k in (0, 1, -2)], Sample((a(0),)), Sample((a(0),), {"k": 2}),
        Sample((a(1),), {"k": -1}), complex=True),
    row("kron", ROUNDED, xgrad.kron, "kron", Sample((a(2), a(3))), Sample((a(2, 2), a(1, 3))), Sample((a(2), a(2, 3))), Sample((a(2, 1, 2), a(3))), Sample((a(), a(2))), Sample((a(0, 2), a(2, 2))),
        Sample((a(2, 3), a(2, 2)), {}, "transposed"), complex=True),
    # comparison
    row("isclose", EXACT, xgrad.isclose, "isclose", Sample((CLOSE, TO)), Sample((CLOSE, TO), {"equal_nan": True}), Sample((CLOSE, TO), {"rtol": 0.1, "atol": 0.0}), Sample((a(2, 1), a(3))),
        Sample((ints(1, 5, 7), ints(1, 5, 8))), Sample((a(0), a(0))), differentiable=False),
    row("allclose", EXACT, _allclose, lambda x, y: torch.tensor(torch.allclose(x, y)), Sample((CLOSE[:2], TO[:2])), Sample((a(2, 3), a(2, 3))), Sample((a(0), a(0))), differentiable=False),
    # selection
    row("topk", EXACT, lambda x, **options: xgrad.topk(x, **options)[0], lambda x, k, axis=-1, largest=True: torch.topk(x, k, axis, largest)[0], Sample((a(5),), {"k": 2}),
        Sample((a(2, 3),), {"k": 3, "axis": 1, "largest": False}), Sample((a(4, 3),), {"k": 1, "axis": -2}), Sample((a(3),), {"k": 0}), Sample((a(0, 3),), {"k": 2}), Sample((a(3, 4),), {"k": 2, "axis": 0}, "transposed")),
    row("topk indices", EXACT, lambda x, **options: xgrad.topk(x, **options)[1], lambda x, k, axis=-1, largest=True: torch.topk(x, k, axis, largest)[1], Sample((a(5),), {"k": 2}),
        Sample((a(2, 3),), {"k": 3, "axis": 1, "largest": False}), Sample((ints(3, 1, 2),), {"k": 2}), differentiable=False),
    row("partition", EXACT, lambda x, kth, axis=-1: xgrad.partition(x, kth, axis=axis), lambda x, kth, axis=-1: torch.sort(x, axis)[0], Sample((a(5),), {"kth": 2}), Sample((a(3, 2),), {"kth": (0, -1), "axis": 0}),
        Sample((a(2, 3),), {"kth": 1}, "transposed")),
    # scans
    *[row(name, SELECTED, getattr(xgrad, name), lambda x, axis=None, name=name: getattr(torch, name)(x, axis or 0)[0], *[Sample((a(n),)) for n in (0, 1, 2, 5, 8)], Sample((a(3, 4),), {"axis": 0}),
          Sample((a(2, 3, 2),), {"axis": -2}), Sample((a(2, 0),), {"axis": 1}), Sample((a(4, 3),), {"axis": 0}, "transposed"), Sample((a(5),), {}, "reversed")) for name in ("cummax", "cummin")],
    *[row(f"{name} with ties and NaN", SELECTED, getattr(xgrad, name), lambda x, axis=None, name=name: getattr(torch, name)(x, axis or 0)[0], Sample((np.array([1.0, 1.0, 0.0, 1.0, 2.0, 2.0]),)), Sample((np.array([1.0, NAN, 3.0, NAN, INF]),)),
          Sample((np.array([[0.0, -0.0], [INF, -INF]]),), {"axis": 1}), no_derivative="a tie has no derivative") for name in ("cummax", "cummin")],
    row("logcumsumexp", COMPOSED, xgrad.logcumsumexp, lambda x, axis=None: torch.logcumsumexp(x, axis or 0), *[Sample((a(n),)) for n in (1, 2, 5, 8)], Sample((a(3, 4),), {"axis": 0}),
        Sample((a(2, 3, 2),), {"axis": -2}), Sample((a(2, 0),), {"axis": 1}), Sample((np.array([-90.0, 0.0, 90.0, 100.0, 0.0]),)), Sample((a(4, 3),), {"axis": 0}, "transposed")),
    # differences
    row("gradient", SUMS, xgrad.gradient, lambda x, h=1.0, axis=None, edge_order=1: torch.gradient(x, spacing=h, dim=axis, edge_order=edge_order), Sample((a(5),)), Sample((a(2),)), Sample((a(3),), {"edge_order": 2}),
        Sample((a(3, 4),)), Sample((a(3, 4), 0.5), {"axis": 1, "edge_order": 2}), Sample((a(3, 4, 3),), {"axis": (0, -1)}), Sample((a(3, 4),), {"axis": 0}, "transposed"), Sample((a(3, 0),), {"axis": 0}), complex=True),
    row("gradient on a grid", COMPOSED, xgrad.gradient, lambda x, grid, axis=None, edge_order=1: torch.gradient(x, spacing=(grid,), dim=axis, edge_order=edge_order), Sample((a(4), GRID)), Sample((a(4, 2), GRID), {"axis": 0, "edge_order": 2}),
        Sample((a(2, 4), GRID), {"axis": -1})),
    # linear algebra
    row("solve_triangular", MATRICES, linalg.solve_triangular, pytorch.solve_triangular, *[Sample((regular(3, 3), a(3, 2)), {"upper": upper, "unitriangular": unit}) for upper in (True, False) for unit in (True, False)],
        Sample((regular(3, 3), a(3)), {"upper": False}), Sample((regular(2, 1, 2, 2), a(3, 2, 2)), {"upper": True}), Sample((regular(2, 2), a(3, 2, 1)), {"upper": False}), Sample((regular(2, 2, 2), a(2)), {"upper": True}),
        Sample((regular(2, 2), a(2, 0)), {"upper": True}), Sample((np.zeros((0, 0)), np.zeros((0, 2))), {"upper": False}), Sample((regular(3, 3), a(3, 2)), {"upper": False}, "transposed"), complex=True),
    row("cholesky_solve", MATRICES, linalg.cholesky_solve, pytorch.cholesky_solve, *[Sample((a(3, 2), regular(3, 3)), {"upper": upper}) for upper in (True, False)],
        Sample((a(3), regular(3, 3))), Sample((a(2, 2, 1), regular(2, 2))), Sample((a(3, 2), regular(3, 3)), {}, "transposed"), complex=True),
    row("lstsq", MATRICES, lambda x, y: linalg.lstsq(x, y)[:2], pytorch.lstsq, Sample((a(4, 2), a(4, key=1))), Sample((a(3, 2), a(3, 2, key=1))), Sample((a(2, 3, 2), a(3, 2, key=1))),
        Sample((a(3, 2), a(3, 2, key=1)), {}, "transposed"), complex=True),
    row("lstsq without residuals", MATRICES, lambda x, y: linalg.lstsq(x, y)[0], lambda x, y: pytorch.lstsq(x, y)[0], Sample((regular(3, 3), a(3, 1))), Sample((a(2, 3), a(2))), Sample((a(0, 2), a(0, 1))), complex=True),
    row("lstsq rank", EXACT, lambda x, y: linalg.lstsq(x, y)[2], lambda x, y: torch.linalg.matrix_rank(x), Sample((a(4, 2), a(4))), Sample((np.ones((3, 2)), a(3, 1))), differentiable=False),
    row("expm", MATRICES, linalg.expm, "linalg.matrix_exp", *SQUARES, Sample((a(3, 3, key=1) / 8,)), Sample((np.stack([a(2, 2) / 64, 3 * a(2, 2, key=1)]),)), Sample((np.zeros((2, 2)),)), complex=True),
    row("sqrtm", MATRICES, linalg.sqrtm, pytorch.sqrtm, *SQUARES, Sample((np.diag([0.5, 2.0, 30.0]) + np.triu(a(3, 3)),)), complex=True),
]  # fmt: skip
