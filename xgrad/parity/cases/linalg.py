"""Cases of linear algebra.

Eigenvectors, singular vectors and the columns of Q are unique up to a sign or a phase. Vectors that
complete a basis are unique up to a rotation. The cases compute quantities that are independent of
these choices, with xgrad or PyTorch as the namespace `xp`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import xgrad
from xgrad import linalg
from xgrad.parity import pytorch
from xgrad.parity.op_case import INF, LAPACK, OpCase, Sample, a, op_case, sample
from xgrad.parity.pytorch import torch
from xgrad.parity.tolerance import EXACT, MATRICES, ROUNDED, SUMS


def regular(*shape: int, key: Any = 0) -> Any:
    """Return matrices that are far from singular."""
    return a(*shape, key=key) + 3 * np.eye(shape[-1])


def _adjoint(xp: Any, x: Any) -> Any:
    return xp.conj(x.mT)


def _phase(xp: Any, x: Any) -> Any:
    return x / xp.abs(x)


def _projector(xp: Any, q: Any) -> Any:
    return q @ _adjoint(xp, q)


def _signed(xp: Any, x: Any) -> Any:
    """Return the sign of a determinant, a phase if it is complex, times its logarithm."""
    sign, logabsdet = xp.linalg.slogdet(x)
    return sign * (logabsdet + 2)


def _expanded_det(x: Any) -> Any:
    """Return the determinant of 3 by 3 matrices by expansion.

    Where ``torch.linalg.det`` is 0, its gradient is 0, which is wrong.
    """
    return (x[..., 0, :] * torch.linalg.cross(x[..., 1, :], x[..., 2, :])).sum(-1)


def _eig(xp: Any, x: Any) -> Any:
    """Return the sum of eigenvalues times projectors, which is independent of their order."""
    values, vectors = xp.linalg.eig(x)
    return (vectors * values[..., None, :]) @ _adjoint(xp, vectors)


def _eigvals(xp: Any, x: Any) -> Any:
    """Return sums of powers of the eigenvalues, which have no order."""
    values = xp.linalg.eigvals(x)
    return xp.stack([(values**n).sum(-1) for n in (1, 2, 3)])


def _eigh(xp: Any, x: Any) -> Any:
    values, vectors = xp.linalg.eigh(x + _adjoint(xp, x))
    return values, vectors / _phase(xp, vectors[..., :1, :])


def _qr(xp: Any, x: Any, mode: str = "reduced") -> Any:
    q, r = xp.linalg.qr(x, mode=mode)
    count = min(x.shape[-2:])
    phase = _phase(xp, xp.linalg.diagonal(r))
    rest = [_projector(xp, q[..., count:])] if q.shape[-1] > count else []
    return q[..., :count] * phase[..., None, :], r[..., :count, :] / phase[..., :, None], *rest


def _svd(xp: Any, x: Any, full_matrices: bool = False) -> Any:
    u, s, vh = xp.linalg.svd(x, full_matrices=full_matrices)
    count = min(x.shape[-2:])
    phase = _phase(xp, u[..., 0, :count])
    rest = [_projector(xp, q[..., count:]) for q in (u, _adjoint(xp, vh)) if q.shape[-1] > count]
    return u[..., :count] / phase[..., None, :], s, vh[..., :count, :] * phase[..., :, None], *rest


def _complements(*columns: Any) -> list[Any]:
    """Return the projectors on the complements of columns.

    PyTorch has no derivative of the columns that it adds.
    """
    narrow = [q for q in columns if q.shape[-1] < q.shape[-2]]
    return [torch.eye(q.shape[-2], dtype=q.dtype) - _projector(torch, q) for q in narrow]


def _torch_complete_qr(x: Any) -> Any:
    q, r = _qr(torch, x)
    return q, r, *_complements(q)


def _torch_full_svd(x: Any) -> Any:
    u, s, vh = _svd(torch, x)
    return u, s, vh, *_complements(u, _adjoint(torch, vh))


def lapack_case(name: str, *samples: Sample, **fields: Any) -> OpCase:
    """Return a case of a LAPACK function."""
    fields = {"torch": f"linalg.{name}", "complex": True, **fields}
    return op_case(name, MATRICES, *samples, needs=LAPACK, **fields)


def _both(name: str, function: Callable[..., Any], *samples: Sample, **fields: Any) -> OpCase:
    """Return a case of a function that takes a namespace, xgrad or PyTorch, and a matrix."""
    return lapack_case(
        name,
        *samples,
        **{"fn": partial(function, xgrad), "torch": partial(function, torch), **fields},
    )


SQUARES = [
    sample(regular(3, 3)),
    sample(regular(2, 2, 2)),
    sample(regular(1, 1)),
    sample(np.zeros((0, 0))),
    sample(regular(0, 2, 2)),
    sample(regular(3, 3), layout="transposed"),
]
WIDE = [sample((3, 5)), sample((2, 2, 3)), sample((1, 2))]
RECTANGLES = [
    sample((3, 2)),
    sample((2, 3)),
    sample(regular(3, 3)),
    sample(regular(2, 2, 2)),
    sample((3, 2), layout="transposed"),
]
EMPTY = [sample(np.zeros(shape)) for shape in ((0, 3), (3, 0), (0, 2, 3), (0, 0))]
SINGULAR = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])

CASES: list[OpCase] = [
    # products
    op_case(
        "matmul",
        SUMS,
        sample((2, 3), (3, 4)),
        sample((3,), (3,)),
        sample((3,), (3, 2)),
        sample((2, 3), (3,)),
        sample((4, 2, 3), (4, 3, 2)),
        sample((4, 2, 3), (3, 2)),
        sample((2, 3), (4, 3, 2)),
        sample((2, 1, 2, 3), (3, 3, 2)),
        sample((3,), (2, 3, 2)),
        sample((2, 2, 3), (3,)),
        sample((0, 3), (3, 2)),
        sample((2, 0), (0, 2)),
        sample((2, 3), (3, 4), layout="transposed"),
        complex=True,
    ),
    op_case(
        "tensordot",
        SUMS,
        sample((2, 1, 3), (1, 3, 2)),
        sample((2, 3), (3, 2), axes=1),
        sample((2,), (3,), axes=0),
        sample((2, 3, 2), (2, 1, 3), axes=((1, 2), (2, 0))),
        sample((2, 3), (3, 2), axes=((-1, 0), (0, -1))),
        sample((2, 0), (0, 2), axes=1),
        sample((), (), axes=0),
        sample((2, 3), (3, 4), axes=1, layout="transposed"),
        complex=True,
    ),
    op_case(
        "vecdot",
        SUMS,
        sample((3,), (3,)),
        sample((2, 3), (3,)),
        sample((3, 1), (2, 3, 2), axis=-2),
        sample((2, 0), (2, 0)),
        sample((0, 2), (0, 2)),
        sample((2, 3), (2, 3), layout="transposed"),
        complex=True,
    ),
    op_case(
        "outer",
        ROUNDED,
        sample((2,), (3,)),
        sample((0,), (2,)),
        sample((2,), (2,), layout="reversed"),
        complex=True,
    ),
    op_case(
        "cross",
        SUMS,
        sample((3,), (3,)),
        sample((2, 1, 3), (2, 3)),
        sample((3, 2), (3, 1), axis=-2),
        sample((0, 3), (3,)),
        sample((2, 3), (2, 3), layout="transposed"),
        torch=lambda x1, x2, axis=-1: torch.linalg.cross(
            *torch.broadcast_tensors(x1, x2), dim=axis
        ),
        complex=True,
    ),
    lapack_case(
        "matrix_power",
        *[sample(regular(2, 2), n) for n in (-3, -1, 0, 1, 2, 5)],
        sample(regular(2, 2, 2), 3),
        sample(np.zeros((0, 0)), 2),
        sample(regular(2, 2), 3, layout="transposed"),
        torch=lambda x, n: torch.linalg.matrix_power(x, n) + 0 * x,
    ),
    # diagonals
    op_case(
        "diagonal",
        EXACT,
        *[sample((2, 3), offset=n) for n in (0, 1, -1, 3, -2)],
        sample((2, 3, 2)),
        sample((0, 3)),
        sample((2, 3), offset=1, layout="transposed"),
        fn=linalg.diagonal,
        torch="linalg.diagonal",
        complex=True,
    ),
    op_case(
        "trace",
        SUMS,
        *[sample((2, 3), offset=n) for n in (0, 1, -1, 3)],
        sample((2, 3, 2)),
        sample((0, 0)),
        sample((2, 3), layout="transposed"),
        torch="linalg.trace",
        complex=True,
    ),
    # determinants and inverses
    lapack_case("det", *SQUARES),
    lapack_case(
        "det of singular matrices",
        sample(SINGULAR),
        sample(np.diag([2.0, 0.0, 3.0])),
        sample(np.diag([2.0, 2.0, 2.0])),
        sample(np.stack([SINGULAR, np.eye(3)])),
        sample(np.ones((3, 3))),
        sample(np.zeros((3, 3))),
        sample(SINGULAR * (1 + 2j)),
        sample(np.outer([1, 2, 3], [1, 1j, 2])),
        torch=_expanded_det,
        complex=False,
    ),
    _both("slogdet", lambda xp, x: xp.linalg.slogdet(x)[1], *SQUARES),
    _both("slogdet with its sign", _signed, *SQUARES),
    lapack_case("inv", *SQUARES),
    lapack_case(
        "solve",
        sample(regular(3, 3), (3,)),
        sample(regular(3, 3), (3, 2)),
        sample(regular(2, 3, 3), (3,)),
        sample(regular(2, 1, 2, 2), (3, 2, 2)),
        sample(regular(2, 2), (3, 2, 1)),
        sample(regular(2, 2, 2), (2, 2)),
        sample(regular(2, 2), (2, 0)),
        sample(np.zeros((0, 0)), np.zeros((0, 2))),
        sample(regular(3, 3), (3, 2), layout="transposed"),
        torch=pytorch.solve,
    ),
    lapack_case("pinv", *RECTANGLES, sample((3, 2), rtol=1e-3), *EMPTY),
    _both(
        "pinv of products",
        lambda xp, x, y: xp.linalg.pinv(x @ y, rtol=1e-6),
        sample((3, 1), (1, 3)),
    ),
    op_case(
        "matrix_rank",
        EXACT,
        *RECTANGLES,
        sample(SINGULAR),
        sample((3, 2), rtol=0.9),
        *EMPTY[:3],
        torch="linalg.matrix_rank",
        needs=LAPACK,
        differentiable=False,
        complex=True,
    ),
    # decompositions
    _both(
        "cholesky",
        lambda xp, x, upper=False: xp.linalg.cholesky(_projector(xp, x), upper=upper),
        *WIDE,
        sample((3, 5), upper=True),
        sample((0, 2, 2)),
        sample((2, 3), layout="transposed"),
    ),
    _both("eig", _eig, *SQUARES[:3], SQUARES[-1]),
    _both("eigh", _eigh, *SQUARES[:3], SQUARES[-1]),
    _both("eigvals", _eigvals, *SQUARES),
    _both("eigvalsh", lambda xp, x: xp.linalg.eigvalsh(x + _adjoint(xp, x)), *SQUARES),
    _both("qr", _qr, *RECTANGLES[:2], *SQUARES[1:3], RECTANGLES[-1]),
    _both(
        "qr with all columns",
        partial(_qr, mode="complete"),
        *RECTANGLES[:2],
        torch=_torch_complete_qr,
    ),
    _both("svd", _svd, *RECTANGLES[:2], *SQUARES[1:3], RECTANGLES[-1]),
    _both(
        "svd with all vectors",
        partial(_svd, full_matrices=True),
        *RECTANGLES[:2],
        torch=_torch_full_svd,
    ),
    lapack_case("svdvals", *RECTANGLES, *EMPTY),
    # norms
    lapack_case(
        "matrix_norm",
        *[sample((2, 3), ord=n) for n in ("fro", "nuc", 1, -1, 2, -2, INF, -INF)],
        sample((2, 3, 2), ord="nuc", keepdims=True),
        sample((2, 3, 2), ord=1, keepdims=True),
        sample((0, 3)),
        sample((2, 3), ord=1, layout="transposed"),
        torch="linalg.matrix_norm",
    ),
    op_case(
        "vector_norm",
        SUMS,
        *[sample((2, 3), ord=n, axis=-1) for n in (2, 1, 0, 3, 2.5, 0.5, -1, INF, -INF)],
        sample((2, 3)),
        sample(()),
        sample((2, 3, 2), axis=(0, -1), keepdims=True),
        sample((2, 3), axis=0, ord=3, keepdims=True),
        sample((2, 0), axis=1),
        sample((0, 2), axis=1),
        sample((4,), layout="reversed"),
        torch="linalg.vector_norm",
        complex=True,
    ),
    op_case(
        "matrix_norm at 0",
        SUMS,
        sample(np.zeros((2, 3))),
        torch="linalg.matrix_norm",
        needs=LAPACK,
        no_derivative="the norm has a kink at 0",
    ),
    op_case(
        "vector_norm at 0 and at ties",
        SUMS,
        *[sample(np.array([[0.0, 0.0], [0.0, 2.0]]), ord=n, axis=-1) for n in (2, 1, 3)],
        *[sample(np.array([1.0, -2.0, 2.0, -2.0]), ord=n) for n in (INF, -INF)],
        torch="linalg.vector_norm",
        no_derivative="norms have kinks there",
    ),
]
