"""Cases of functions that are not in the standard."""

from __future__ import annotations

import numpy as np

import xgrad
from xgrad import linalg
from xgrad.parity import pytorch
from xgrad.parity.cases.linalg import SQUARES, lapack_case, regular
from xgrad.parity.op_case import INF, LAPACK, NAN, OpCase, Sample, a, ints, op_case, sample
from xgrad.parity.pytorch import torch
from xgrad.parity.tolerance import COMPOSED, EXACT, ROUNDED, SELECTED, SUMS

CLOSE = np.array([1.0, 1.0, 1.0, INF, INF, -INF, NAN, NAN, 0.0, 1e-9, 1e4])
TO = np.array([1.000009, 1.00002, INF, INF, -INF, 1.0, NAN, 1.0, 1e-9, 0.0, 1e4 + 0.01])
GRID = np.array([0.5, 1.0, 2.5, 3.0])
MODES = ("edge", "reflect", "symmetric", "wrap")


def _einsum(*operands: xgrad.Tensor, subscripts: str) -> xgrad.Tensor:
    return xgrad.einsum(subscripts, *operands)


def _allclose(x: xgrad.Tensor, y: xgrad.Tensor) -> xgrad.Tensor:
    return xgrad.asarray(xgrad.allclose(x, y), device=x.device)


def _einsum_case(name: str, *samples: Sample) -> OpCase:
    return op_case(
        name,
        SUMS,
        *samples,
        fn=_einsum,
        torch=lambda *operands, subscripts: torch.einsum(subscripts, *operands),
        complex=True,
    )


CASES: list[OpCase] = [
    _einsum_case(
        "einsum",
        *[
            sample(*shapes, subscripts=subscripts)
            for subscripts, *shapes in (
                ("ij,jk->ik", (2, 3), (3, 4)),
                ("ij,jk", (2, 3), (3, 4)),
                ("bij,bjk->bik", (2, 3, 2), (2, 2, 3)),
                ("bi,bi->b", (2, 3), (2, 3)),
                ("i,j->ji", (2,), (3,)),
                ("ij,ij", (2, 3), (2, 3)),
                ("ijk,jil->kl", (2, 3, 2), (3, 2, 4)),
                ("ij,k->i", (2, 3), (2,)),
                (",ij->ij", (), (2, 2)),
                ("bhqd,bhkd->bhqk", (2, 2, 3, 2), (2, 2, 3, 2)),
                ("...ij,...jk->...ik", (3, 2, 3), (2, 1, 3, 2)),
                ("i...,i...->...", (2, 3), (2, 1)),
                ("ij,jk->ik", (2, 1), (3, 2)),
                ("ij,jk->ik", (2, 0), (0, 2)),
                ("ij,jk->ik", (0, 2), (2, 3)),
            )
        ],
        sample((2, 3), (3, 4), subscripts="ij,jk->ki", layout="transposed"),
    ),
    _einsum_case(
        "einsum of one operand",
        *[
            sample(shape, subscripts=subscripts)
            for subscripts, shape in (
                ("ii", (3, 3)),
                ("ii->i", (3, 3)),
                ("iji->ji", (2, 3, 2)),
                ("iii->i", (2, 2, 2)),
                ("ij->", (2, 3)),
                ("ba", (2, 3)),
                ("ij->ji", (2, 3)),
                ("i...->...", (2, 3, 2)),
                ("", ()),
            )
        ],
    ),
    _einsum_case(
        "einsum of several operands",
        *[
            sample(*shapes, subscripts=subscripts)
            for subscripts, *shapes in (
                ("i,ij,j->", (2,), (2, 3), (3,)),
                ("ij,jk,kl->il", (2, 3), (3, 2), (2, 3)),
                ("bi,bj,bk->bijk", (2, 2), (2, 2), (2, 3)),
                ("i,i,i->i", (3,), (3,), (3,)),
                ("ia,ja,ka,la->ijkl", (2, 2), (2, 2), (1, 2), (2, 2)),
                ("ab,bc,cd,de,ea->", (2, 2), (2, 3), (3, 2), (2, 2), (2, 2)),
                ("...i,ij,...j->...", (2, 3), (3, 2), (2, 2)),
            )
        ],
    ),
    # padding
    op_case(
        "pad",
        EXACT,
        *[sample((2, 3), pad_width=widths) for widths in (1, (2, 0), ((1, 2), (0, 3)), 0)],
        sample((2, 3), pad_width=1, constant_values=2.5),
        sample((), pad_width=2),
        sample((0, 2), pad_width=1),
        sample((2, 3, 2), pad_width=((1, 0), (0, 0), (0, 1))),
        sample((2, 3), pad_width=(1, 2), layout="transposed"),
        torch=pytorch.pad,
        complex=True,
    ),
    op_case(
        "pad with elements",
        SELECTED,
        *[sample((2, 3), pad_width=((1, 2), (2, 0)), mode=mode) for mode in MODES],
        *[sample((3, 1), pad_width=((7, 5), (2, 3)), mode=mode) for mode in MODES],
        sample((0, 2), pad_width=((0, 0), (1, 1)), mode="wrap"),
        sample((2, 3), pad_width=(1, 2), mode="edge", layout="transposed"),
        torch=pytorch.pad,
        complex=True,
    ),
    op_case(
        "one_hot",
        EXACT,
        sample(ints(0, 2, 1), 3),
        sample(ints([0, 2], [1, 1]), 4, axis=0),
        sample(ints(), 2),
        sample(np.array(1), 2),
        fn=lambda x, n, axis=-1: xgrad.one_hot(x, n, dtype=xgrad.int64, axis=axis),
        torch=lambda x, n, axis=-1: torch.movedim(torch.nn.functional.one_hot(x, n), -1, axis),
        differentiable=False,
    ),
    # diagonals and products
    op_case(
        "diagonal of any axes",
        EXACT,
        sample((2, 3, 4)),
        sample((2, 3, 4), offset=1, axis1=2, axis2=0),
        sample((3, 3), offset=-1, axis1=-2, axis2=-1),
        sample((0, 2)),
        torch=lambda x, offset=0, axis1=0, axis2=1: torch.diagonal(x, offset, axis1, axis2),
        complex=True,
    ),
    op_case(
        "diag",
        EXACT,
        *[sample(a(*shape), k=k) for shape in ((3,), (2, 3)) for k in (0, 1, -2)],
        sample((0,)),
        sample((0,), k=2),
        sample((1,), k=-1),
        torch=lambda x, k=0: torch.diag(x, k),
        complex=True,
    ),
    op_case(
        "kron",
        ROUNDED,
        sample((2,), (3,)),
        sample((2, 2), (1, 3)),
        sample((2,), (2, 3)),
        sample((2, 1, 2), (3,)),
        sample((), (2,)),
        sample((0, 2), (2, 2)),
        sample((2, 3), (2, 2), layout="transposed"),
        complex=True,
    ),
    # comparison
    op_case(
        "isclose",
        EXACT,
        sample(CLOSE, TO),
        sample(CLOSE, TO, equal_nan=True),
        sample(CLOSE, TO, rtol=0.1, atol=0.0),
        sample((2, 1), (3,)),
        sample(ints(1, 5, 7), ints(1, 5, 8)),
        sample((0,), (0,)),
        differentiable=False,
    ),
    op_case(
        "allclose",
        EXACT,
        sample(CLOSE[:2], TO[:2]),
        sample((2, 3), a(2, 3)),
        sample((0,), (0,)),
        fn=_allclose,
        torch=lambda x, y: torch.tensor(torch.allclose(x, y)),
        differentiable=False,
    ),
    # selection
    op_case(
        "topk",
        EXACT,
        sample((5,), k=2),
        sample((2, 3), k=3, axis=1, largest=False),
        sample((4, 3), k=1, axis=-2),
        sample((3,), k=0),
        sample((0, 3), k=2),
        sample((3, 4), k=2, axis=0, layout="transposed"),
        fn=lambda x, **options: xgrad.topk(x, **options)[0],
        torch=lambda x, k, axis=-1, largest=True: torch.topk(x, k, axis, largest)[0],
    ),
    op_case(
        "topk indices",
        EXACT,
        sample((5,), k=2),
        sample((2, 3), k=3, axis=1, largest=False),
        sample(ints(3, 1, 2), k=2),
        fn=lambda x, **options: xgrad.topk(x, **options)[1],
        torch=lambda x, k, axis=-1, largest=True: torch.topk(x, k, axis, largest)[1],
        differentiable=False,
    ),
    op_case(
        "partition",
        EXACT,
        sample((5,), kth=2),
        sample((3, 2), kth=(0, -1), axis=0),
        sample((2, 3), kth=1, layout="transposed"),
        fn=lambda x, kth, axis=-1: xgrad.partition(x, kth, axis=axis),
        torch=lambda x, kth, axis=-1: torch.sort(x, axis)[0],
    ),
    # scans
    *[
        op_case(
            name,
            SELECTED,
            *[sample((n,)) for n in (0, 1, 2, 5, 8)],
            sample((3, 4), axis=0),
            sample((2, 3, 2), axis=-2),
            sample((2, 0), axis=1),
            sample((4, 3), axis=0, layout="transposed"),
            sample((5,), layout="reversed"),
            torch=lambda x, axis=None, name=name: getattr(torch, name)(x, axis or 0)[0],
        )
        for name in ("cummax", "cummin")
    ],
    *[
        op_case(
            f"{name} with ties and NaN",
            SELECTED,
            sample(np.array([1.0, 1.0, 0.0, 1.0, 2.0, 2.0])),
            sample(np.array([1.0, NAN, 3.0, NAN, INF])),
            sample(np.array([[0.0, -0.0], [INF, -INF]]), axis=1),
            torch=lambda x, axis=None, name=name: getattr(torch, name)(x, axis or 0)[0],
            no_derivative="a tie has no derivative",
        )
        for name in ("cummax", "cummin")
    ],
    op_case(
        "logcumsumexp",
        COMPOSED,
        *[sample((n,)) for n in (1, 2, 5, 8)],
        sample((3, 4), axis=0),
        sample((2, 3, 2), axis=-2),
        sample((2, 0), axis=1),
        sample(np.array([-90.0, 0.0, 90.0, 100.0, 0.0])),
        sample((4, 3), axis=0, layout="transposed"),
        torch=lambda x, axis=None: torch.logcumsumexp(x, axis or 0),
    ),
    # differences
    op_case(
        "gradient",
        SUMS,
        sample((5,)),
        sample((2,)),
        sample((3,), edge_order=2),
        sample((3, 4)),
        sample((3, 4), 0.5, axis=1, edge_order=2),
        sample((3, 4, 3), axis=(0, -1)),
        sample((3, 4), axis=0, layout="transposed"),
        sample((3, 0), axis=0),
        torch=lambda x, h=1.0, axis=None, edge_order=1: torch.gradient(
            x, spacing=h, dim=axis, edge_order=edge_order
        ),
        complex=True,
    ),
    op_case(
        "gradient on a grid",
        COMPOSED,
        sample((4,), GRID),
        sample((4, 2), GRID, axis=0, edge_order=2),
        sample((2, 4), GRID, axis=-1),
        torch=lambda x, grid, axis=None, edge_order=1: torch.gradient(
            x, spacing=(grid,), dim=axis, edge_order=edge_order
        ),
    ),
    # linear algebra
    lapack_case(
        "solve_triangular",
        *[
            sample(regular(3, 3), (3, 2), upper=upper, unitriangular=unit)
            for upper in (True, False)
            for unit in (True, False)
        ],
        sample(regular(3, 3), (3,), upper=False),
        sample(regular(2, 1, 2, 2), (3, 2, 2), upper=True),
        sample(regular(2, 2), (3, 2, 1), upper=False),
        sample(regular(2, 2, 2), (2,), upper=True),
        sample(regular(2, 2), (2, 0), upper=True),
        sample(np.zeros((0, 0)), np.zeros((0, 2)), upper=False),
        sample(regular(3, 3), (3, 2), upper=False, layout="transposed"),
        torch=pytorch.solve_triangular,
    ),
    lapack_case(
        "cholesky_solve",
        *[sample((3, 2), regular(3, 3), upper=upper) for upper in (True, False)],
        sample((3,), regular(3, 3)),
        sample((2, 2, 1), regular(2, 2)),
        sample((3, 2), regular(3, 3), layout="transposed"),
        torch=pytorch.cholesky_solve,
    ),
    lapack_case(
        "lstsq",
        sample((4, 2), (4,)),
        sample((3, 2), (3, 2)),
        sample((2, 3, 2), (3, 2)),
        sample((3, 2), (3, 2), layout="transposed"),
        fn=lambda x, y: linalg.lstsq(x, y)[:2],
        torch=pytorch.lstsq,
    ),
    lapack_case(
        "lstsq without residuals",
        sample(regular(3, 3), (3, 1)),
        sample((2, 3), (2,)),
        sample((0, 2), (0, 1)),
        fn=lambda x, y: linalg.lstsq(x, y)[0],
        torch=lambda x, y: pytorch.lstsq(x, y)[0],
    ),
    op_case(
        "lstsq rank",
        EXACT,
        sample((4, 2), (4,)),
        sample(np.ones((3, 2)), (3, 1)),
        fn=lambda x, y: linalg.lstsq(x, y)[2],
        torch=lambda x, y: torch.linalg.matrix_rank(x),
        needs=LAPACK,
        differentiable=False,
    ),
    lapack_case(
        "expm",
        *SQUARES,
        sample(a(3, 3, key=1) / 8),
        sample(np.stack([a(2, 2) / 64, 3 * a(2, 2, key=1)])),
        sample(np.zeros((2, 2))),
        torch="linalg.matrix_exp",
    ),
    lapack_case(
        "sqrtm", *SQUARES, sample(np.diag([0.5, 2.0, 30.0]) + np.triu(a(3, 3))), torch=pytorch.sqrtm
    ),
]
