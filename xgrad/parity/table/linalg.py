"""Rows of linear algebra.

Eigenvectors, singular vectors and the columns of Q are determined up to a sign, or a phase, and those that span what is
left of a space up to a rotation: the rows are of what does not depend on it. `p` is xgrad or PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import xgrad
from xgrad import linalg
from xgrad.parity import pytorch
from xgrad.parity.pytorch import torch
from xgrad.parity.row import INF, Op, Sample, a, row
from xgrad.parity.tolerance import EXACT, MATRICES, ROUNDED, SUMS


def regular(*shape: int, key: Any = 0) -> Any:
    """Return matrices that are far from singular."""
    return a(*shape, key=key) + 3 * np.eye(shape[-1])


def _adjoint(p: Any, x: Any) -> Any:
    return p.conj(x.mT)


def _phase(p: Any, x: Any) -> Any:
    return x / p.abs(x)


def _projector(p: Any, q: Any) -> Any:
    return q @ _adjoint(p, q)


def _cholesky(p: Any) -> Callable[..., Any]:
    return lambda x, upper=False: p.linalg.cholesky(_projector(p, x), upper=upper)


def _eig(p: Any) -> Callable[..., Any]:
    """Weigh the projectors on the vectors, which do not depend on their order."""

    def call(x: Any) -> Any:
        values, vectors = p.linalg.eig(x)
        return (vectors * values[..., None, :]) @ _adjoint(p, vectors)

    return call


def _eigvals(p: Any) -> Callable[..., Any]:
    """Sum powers, as eigenvalues have no order."""

    def call(x: Any) -> Any:
        values = p.linalg.eigvals(x)
        return p.stack([(values**n).sum(-1) for n in (1, 2, 3)])

    return call


def _eigh(p: Any) -> Callable[..., Any]:
    def call(x: Any) -> Any:
        values, vectors = p.linalg.eigh(x + _adjoint(p, x))
        return values, vectors / _phase(p, vectors[..., :1, :])

    return call


def _eigvalsh(p: Any) -> Callable[..., Any]:
    return lambda x: p.linalg.eigvalsh(x + _adjoint(p, x))


def _qr(p: Any, mode: str = "reduced") -> Callable[..., Any]:
    def call(x: Any) -> Any:
        q, r = p.linalg.qr(x, mode=mode)
        count = min(x.shape[-2:])
        phase = _phase(p, p.linalg.diagonal(r))
        rest = [_projector(p, q[..., count:])] if q.shape[-1] > count else []
        return q[..., :count] * phase[..., None, :], r[..., :count, :] / phase[..., :, None], *rest

    return call


def _svd(p: Any, full_matrices: bool = False) -> Callable[..., Any]:
    def call(x: Any) -> Any:
        u, s, vh = p.linalg.svd(x, full_matrices=full_matrices)
        count = min(x.shape[-2:])
        phase = _phase(p, u[..., 0, :count])
        rest = [_projector(p, q[..., count:]) for q in (u, _adjoint(p, vh)) if q.shape[-1] > count]
        return u[..., :count] / phase[..., None, :], s, vh[..., :count, :] * phase[..., :, None], *rest

    return call


def _signed(p: Any) -> Callable[..., Any]:
    """Weigh the sign of a determinant, a phase where it is complex, by the logarithm."""

    def call(x: Any) -> Any:
        sign, logabsdet = p.linalg.slogdet(x)
        return sign * (logabsdet + 2)

    return call


def _completed(unique: Callable[..., Any], columns: Callable[..., list[Any]]) -> Callable[..., Any]:
    """Add the projectors on what the columns leave: PyTorch does not differentiate, or ignores, those that it adds."""

    def call(x: Any) -> Any:
        found = unique(x)
        narrow = [q for q in columns(*found) if q.shape[-1] < q.shape[-2]]
        return *found, *[torch.eye(q.shape[-2], dtype=q.dtype) - _projector(torch, q) for q in narrow]

    return call


def _either(name: str, form: Callable[[Any], Callable[..., Any]], *samples: Sample) -> Op:
    return row(name, MATRICES, form(xgrad), form(torch), *samples, complex=True)


SQUARES = [Sample((regular(3, 3),)), Sample((regular(2, 2, 2),)), Sample((regular(1, 1),)), Sample((np.zeros((0, 0)),)),
    Sample((regular(0, 2, 2),)), Sample((regular(3, 3),), {}, "transposed")]  # fmt: skip
WIDE = [Sample((a(3, 5),)), Sample((a(2, 2, 3),)), Sample((a(1, 2),))]
RECTANGLES = [Sample((a(3, 2),)), Sample((a(2, 3),)), Sample((regular(3, 3),)), Sample((regular(2, 2, 2),)), Sample((a(3, 2),), {}, "transposed")]  # fmt: skip
EMPTY = [Sample((np.zeros(shape),)) for shape in ((0, 3), (3, 0), (0, 2, 3), (0, 0))]
SINGULAR = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])

ROWS: list[Op] = [
    # products
    row("matmul", SUMS, xgrad.matmul, "matmul", Sample((a(2, 3), a(3, 4))), Sample((a(3), a(3, key=1))), Sample((a(3), a(3, 2))),
        Sample((a(2, 3), a(3))), Sample((a(4, 2, 3), a(4, 3, 2))), Sample((a(4, 2, 3), a(3, 2))), Sample((a(2, 3), a(4, 3, 2))),
        Sample((a(2, 1, 2, 3), a(3, 3, 2))), Sample((a(3), a(2, 3, 2))), Sample((a(2, 2, 3), a(3))),
        Sample((a(0, 3), a(3, 2))), Sample((a(2, 0), a(0, 2))), Sample((a(2, 3), a(3, 4)), {}, "transposed"), complex=True),
    row("tensordot", SUMS, xgrad.tensordot, pytorch.tensordot, Sample((a(2, 1, 3), a(1, 3, 2))), Sample((a(2, 3), a(3, 2)), {"axes": 1}),
        Sample((a(2), a(3)), {"axes": 0}), Sample((a(2, 3, 2), a(2, 1, 3)), {"axes": ((1, 2), (2, 0))}), Sample((a(2, 3), a(3, 2)), {"axes": ((-1, 0), (0, -1))}),
        Sample((a(2, 0), a(0, 2)), {"axes": 1}), Sample((a(), a()), {"axes": 0}), Sample((a(2, 3), a(3, 4)), {"axes": 1}, "transposed"), complex=True),
    row("vecdot", SUMS, xgrad.vecdot, pytorch.vecdot, Sample((a(3), a(3, key=1))), Sample((a(2, 3), a(3))), Sample((a(3, 1), a(2, 3, 2)), {"axis": -2}),
        Sample((a(2, 0), a(2, 0))), Sample((a(0, 2), a(0, 2))), Sample((a(2, 3), a(2, 3, key=1)), {}, "transposed"), complex=True),
    row("outer", ROUNDED, linalg.outer, "outer", Sample((a(2), a(3))), Sample((a(0), a(2))), Sample((a(2), a(2)), {}, "reversed"), complex=True),
    row("cross", SUMS, linalg.cross, pytorch.cross, Sample((a(3), a(3, key=1))), Sample((a(2, 1, 3), a(2, 3))), Sample((a(3, 2), a(3, 1)), {"axis": -2}),
        Sample((a(0, 3), a(3))), Sample((a(2, 3), a(2, 3, key=1)), {}, "transposed"), complex=True),
    row("matrix_power", MATRICES, linalg.matrix_power, pytorch.matrix_power, *[Sample((regular(2, 2), n)) for n in (-3, -1, 0, 1, 2, 5)],
        Sample((regular(2, 2, 2), 3)), Sample((np.zeros((0, 0)), 2)), Sample((regular(2, 2), 3), {}, "transposed"), complex=True),
    # diagonals
    row("diagonal", EXACT, linalg.diagonal, "linalg.diagonal", *[Sample((a(2, 3),), {"offset": n}) for n in (0, 1, -1, 3, -2)],
        Sample((a(2, 3, 2),)), Sample((a(0, 3),)), Sample((a(2, 3),), {"offset": 1}, "transposed"), complex=True),
    row("trace", SUMS, linalg.trace, lambda x, offset=0: torch.linalg.diagonal(x, offset=offset).sum(-1), *[Sample((a(2, 3),), {"offset": n}) for n in (0, 1, -1, 3)],
        Sample((a(2, 3, 2),)), Sample((a(0, 0),)), Sample((a(2, 3),), {}, "transposed"), complex=True),
    # determinants and inverses
    row("det", MATRICES, linalg.det, "linalg.det", *SQUARES, complex=True),
    row("det of singular matrices", MATRICES, linalg.det, pytorch.det3, Sample((SINGULAR,)), Sample((np.diag([2.0, 0.0, 3.0]),)), Sample((np.diag([2.0, 2.0, 2.0]),)),
        Sample((np.stack([SINGULAR, np.eye(3)]),)), Sample((np.ones((3, 3)),)), Sample((np.zeros((3, 3)),)), Sample((SINGULAR * (1 + 2j),)), Sample((np.outer([1, 2, 3], [1, 1j, 2]),))),
    row("slogdet", MATRICES, lambda x: linalg.slogdet(x)[1], lambda x: torch.linalg.slogdet(x)[1], *SQUARES, complex=True),
    _either("slogdet with its sign", _signed, *SQUARES),
    row("inv", MATRICES, linalg.inv, "linalg.inv", *SQUARES, complex=True),
    row("solve", MATRICES, linalg.solve, pytorch.solve, Sample((regular(3, 3), a(3))), Sample((regular(3, 3), a(3, 2))), Sample((regular(2, 3, 3), a(3))),
        Sample((regular(2, 1, 2, 2), a(3, 2, 2))), Sample((regular(2, 2), a(3, 2, 1))), Sample((regular(2, 2, 2), a(2, 2))),
        Sample((regular(2, 2), a(2, 0))), Sample((np.zeros((0, 0)), np.zeros((0, 2)))), Sample((regular(3, 3), a(3, 2)), {}, "transposed"), complex=True),
    row("pinv", MATRICES, linalg.pinv, "linalg.pinv", *RECTANGLES, Sample((a(3, 2),), {"rtol": 1e-3}), *EMPTY, complex=True),
    row("pinv of products", MATRICES, lambda x, y: linalg.pinv(x @ y, rtol=1e-6), lambda x, y: torch.linalg.pinv(x @ y, rtol=1e-6), Sample((a(3, 1), a(1, 3))), complex=True),
    row("matrix_rank", EXACT, linalg.matrix_rank, "linalg.matrix_rank", *RECTANGLES, Sample((SINGULAR,)), Sample((a(3, 2),), {"rtol": 0.9}), *EMPTY[:3], differentiable=False, complex=True),
    # decompositions
    _either("cholesky", _cholesky, *WIDE, Sample((a(3, 5),), {"upper": True}), Sample((a(0, 2, 2),)), Sample((a(2, 3),), {}, "transposed")),
    _either("eig", _eig, *SQUARES[:3], SQUARES[-1]),
    _either("eigh", _eigh, *SQUARES[:3], SQUARES[-1]),
    _either("eigvals", _eigvals, *SQUARES),
    _either("eigvalsh", _eigvalsh, *SQUARES),
    _either("qr", _qr, *RECTANGLES[:2], *SQUARES[1:3], RECTANGLES[-1]),
    row("qr with all columns", MATRICES, _qr(xgrad, "complete"), _completed(_qr(torch), lambda q, r: [q]), *RECTANGLES[:2], complex=True),
    _either("svd", _svd, *RECTANGLES[:2], *SQUARES[1:3], RECTANGLES[-1]),
    row("svd with all vectors", MATRICES, _svd(xgrad, True), _completed(_svd(torch), lambda u, s, vh: [u, _adjoint(torch, vh)]), *RECTANGLES[:2], complex=True),
    row("svdvals", MATRICES, linalg.svdvals, "linalg.svdvals", *RECTANGLES, *EMPTY, complex=True),
    # norms
    row("matrix_norm", MATRICES, linalg.matrix_norm, pytorch.matrix_norm, *[Sample((a(2, 3),), {"ord": n}) for n in ("fro", "nuc", 1, -1, 2, -2, INF, -INF)],
        Sample((a(2, 3, 2),), {"ord": "nuc", "keepdims": True}), Sample((a(2, 3, 2),), {"ord": 1, "keepdims": True}), Sample((a(0, 3),)),
        Sample((a(2, 3),), {"ord": 1}, "transposed"), complex=True),
    row("vector_norm", SUMS, linalg.vector_norm, pytorch.vector_norm, *[Sample((a(2, 3),), {"ord": n, "axis": -1}) for n in (2, 1, 0, 3, 2.5, 0.5, -1, INF, -INF)],
        Sample((a(2, 3),)), Sample((a(),)), Sample((a(2, 3, 2),), {"axis": (0, -1), "keepdims": True}), Sample((a(2, 3),), {"axis": 0, "ord": 3, "keepdims": True}),
        Sample((a(2, 0),), {"axis": 1}), Sample((a(0, 2),), {"axis": 1}), Sample((a(4),), {}, "reversed"), complex=True),
    row("matrix_norm at 0", SUMS, linalg.matrix_norm, pytorch.matrix_norm, Sample((np.zeros((2, 3)),)), no_derivative="the norm has a kink at 0"),
    row("vector_norm at 0 and at ties", SUMS, linalg.vector_norm, pytorch.vector_norm,
        *[Sample((np.array([[0.0, 0.0], [0.0, 2.0]]),), {"ord": n, "axis": -1}) for n in (2, 1, 3)],
        *[Sample((np.array([1.0, -2.0, 2.0, -2.0]),), {"ord": n}) for n in (INF, -INF)], no_derivative="norms have kinks there"),
]  # fmt: skip
