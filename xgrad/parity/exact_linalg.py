"""Linear algebra in long double, for the reference: LAPACK has no such numbers.

Textbook algorithms (G. H. Golub and C. F. Van Loan, *Matrix Computations*, 2013), for the few small matrices of the op
table: elimination with pivots, Householder's reflections, Jacobi's rotations. All else is NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

EXTENDED = np.dtype(np.longdouble)


class ExactLinalg:
    """The namespace ``xp.linalg``: of NumPy, but for what LAPACK does."""

    def __init__(self, linalg: Any) -> None:
        self._linalg = linalg
        for own in (cholesky, det, eigh, eigvalsh, inv, matrix_rank, pinv, qr, slogdet, solve, svd, svdvals):
            setattr(self, own.__name__, _dispatched(own, getattr(linalg, own.__name__)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._linalg, name)


def _dispatched(own: Callable[..., Any], theirs: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, *rest, **options: (own if x.dtype == EXTENDED else theirs)(x, *rest, **options)


def _stacked(one: Callable[..., Any], *stacks: np.ndarray) -> Any:
    """Apply a function of matrices, which returns one array or a tuple of them, to each matrix of stacks."""
    batch = np.broadcast_shapes(*[x.shape[:-2] for x in stacks])
    stacks = tuple([np.broadcast_to(x, batch + x.shape[-2:]) for x in stacks])
    results = [one(*[x[place] for x in stacks]) for place in np.ndindex(batch)]
    if not results:
        return one(*[np.ones(x.shape[-2:], EXTENDED) for x in stacks])[np.newaxis][:0]
    if isinstance(results[0], tuple):
        return tuple([np.stack(parts).reshape(batch + parts[0].shape) for parts in zip(*results, strict=True)])
    return np.stack(results).reshape(batch + np.shape(results[0]))


def _eliminated(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, Any]:
    """Return the solution of ``a @ x = b``, and the determinant."""
    n, sign = len(a), EXTENDED.type(1)
    rows = np.concatenate([a, b], axis=1)
    for k in range(n):
        pivot = k + int(np.argmax(np.abs(rows[k:, k])))
        if pivot != k:
            rows[[k, pivot]], sign = rows[[pivot, k]], -sign
        if rows[k, k] != 0:
            rows[k + 1 :] -= np.outer(rows[k + 1 :, k] / rows[k, k], rows[k])
    x = rows[:, n:]
    for k in reversed(range(n)):
        x[k] = (x[k] - rows[k, k + 1 : n] @ x[k + 1 :]) / rows[k, k]
    return x, sign * np.prod(np.diagonal(rows[:, :n]))


def solve(x1: np.ndarray, x2: np.ndarray, /) -> Any:
    if x2.ndim == 1:
        return solve(x1, x2[:, None])[..., 0]
    return _stacked(lambda a, b: _eliminated(a, b)[0], x1, x2)


def inv(x: np.ndarray, /) -> Any:
    return solve(x, np.eye(x.shape[-1], dtype=EXTENDED))


def det(x: np.ndarray, /) -> Any:
    return _stacked(lambda a: np.asarray(_eliminated(a, np.zeros((len(a), 0), EXTENDED))[1]), x)


def slogdet(x: np.ndarray, /) -> Any:
    found = det(x)
    return np.sign(found), np.log(np.abs(found))


def cholesky(x: np.ndarray, /, *, upper: bool = False) -> Any:
    def one(a: np.ndarray) -> np.ndarray:
        low = np.zeros_like(a)
        for k in range(len(a)):
            low[k, k] = np.sqrt(a[k, k] - low[k, :k] @ low[k, :k])
            low[k + 1 :, k] = (a[k + 1 :, k] - low[k + 1 :, :k] @ low[k, :k]) / low[k, k]
        return low.T if upper else low

    return _stacked(one, x)


def _reflected(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Q, square, and R."""
    q, r = np.eye(len(a), dtype=EXTENDED), a.copy()
    for k in range(min(a.shape)):
        v = r[k:, k].copy()
        v[0] += np.copysign(np.sqrt(v @ v), v[0])
        length = v @ v
        if length != 0:
            r[k:] -= np.outer(2 * v / length, v @ r[k:])
            q[:, k:] -= np.outer(q[:, k:] @ v, 2 * v / length)
    return q, np.triu(r)


def qr(x: np.ndarray, /, *, mode: str = "reduced") -> Any:
    q, r = _stacked(_reflected, x)
    count = x.shape[-2] if mode == "complete" else min(x.shape[-2:])
    return q[..., :count], r[..., :count, :]


def _rotation(app: Any, aqq: Any, apq: Any) -> tuple[Any, Any]:
    """Return the cosine and the sine that make ``apq`` 0."""
    if apq == 0:
        return EXTENDED.type(1), EXTENDED.type(0)
    tau = (aqq - app) / (2 * apq)
    tangent = np.copysign(1, tau) / (np.abs(tau) + np.hypot(tau, EXTENDED.type(1)))
    cosine = 1 / np.hypot(tangent, EXTENDED.type(1))
    return cosine, tangent * cosine


def _rotated(a: np.ndarray, gram: Callable[[np.ndarray, int, int], Any], both: bool) -> tuple[np.ndarray, np.ndarray]:
    """Turn pairs of columns, and of rows if `both`, until they are orthogonal; return what is left, and the turns."""
    a, turns = a.copy(), np.eye(a.shape[1], dtype=EXTENDED)
    for _ in range(12):  # a handful is enough: convergence is quadratic
        for p in range(a.shape[1]):
            for q in range(p + 1, a.shape[1]):
                c, s = _rotation(gram(a, p, p), gram(a, q, q), gram(a, p, q))
                turn = np.array([[c, s], [-s, c]])
                a[:, [p, q]], turns[:, [p, q]] = a[:, [p, q]] @ turn, turns[:, [p, q]] @ turn
                if both:
                    a[[p, q]] = turn.T @ a[[p, q]]
    return a, turns


def eigh(x: np.ndarray, /) -> Any:
    def one(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        turned, vectors = _rotated((a + a.T) / 2, lambda a, p, q: a[p, q], both=True)
        order = np.argsort(np.diagonal(turned))
        return np.diagonal(turned)[order], vectors[:, order]

    return _stacked(one, x)


def eigvalsh(x: np.ndarray, /) -> Any:
    return eigh(x)[0] if x.size else x[..., 0]


def svd(x: np.ndarray, /, *, full_matrices: bool = True) -> Any:
    def one(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if a.shape[0] < a.shape[1]:
            u, s, vh = one(a.T)
            return vh.T, s, u.T
        turned, v = _rotated(a, lambda a, p, q: a[:, p] @ a[:, q], both=False)
        order = np.argsort(-np.sum(turned * turned, axis=0))
        u, r = _reflected(turned[:, order])
        s = np.diagonal(r).copy()
        u[:, : len(s)] *= np.where(s < 0, -1, 1)
        return u, np.abs(s), v[:, order].T

    u, s, vh = _stacked(one, x)
    return (u, s, vh) if full_matrices else (u[..., : s.shape[-1]], s, vh[..., : s.shape[-1], :])


def svdvals(x: np.ndarray, /) -> Any:
    return svd(x)[1] if x.size else x[..., : min(x.shape[-2:]), 0] if x.shape[-1] else x[..., 0, :]


def matrix_rank(x: np.ndarray, /, *, rtol: Any = None) -> Any:
    s = svdvals(x)
    rtol = max(x.shape[-2:]) * np.finfo(np.float64).eps if rtol is None else np.asarray(rtol)[..., None]
    return np.sum(s > rtol * s[..., :1], axis=-1)


def pinv(x: np.ndarray, /, *, rtol: Any = None) -> Any:
    if not x.size:
        return x.mT
    u, s, vh = svd(x, full_matrices=False)
    rtol = max(x.shape[-2:]) * np.finfo(np.float64).eps if rtol is None else np.asarray(rtol)[..., None]
    keep = s > rtol * s[..., :1]
    return vh.mT @ (np.where(keep, 1 / np.where(keep, s, 1), 0)[..., None] * u.mT)
