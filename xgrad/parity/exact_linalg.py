"""Linear algebra in long double, for the reference: LAPACK has no such numbers.

Textbook algorithms (G. H. Golub and C. F. Van Loan, *Matrix Computations*, 2013), for the few small matrices of the op
table: elimination with pivots, Householder's reflections, Jacobi's rotations. All else is NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_LONG = frozenset(map(np.dtype, (np.longdouble, np.clongdouble)))
_EPS = float(np.finfo(np.float64).eps)


class ExactLinalg:
    """The namespace ``xp.linalg``: of NumPy, but for what LAPACK does."""

    def __init__(self, linalg: Any) -> None:
        self._linalg = linalg
        for own in (
            cholesky,
            det,
            eig,
            eigh,
            eigvals,
            eigvalsh,
            inv,
            matrix_rank,
            pinv,
            qr,
            slogdet,
            solve,
            svd,
            svdvals,
        ):
            setattr(self, own.__name__, _dispatched(own, getattr(linalg, own.__name__)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._linalg, name)


def _dispatched(own: Callable[..., Any], theirs: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, *rest, **options: (own if x.dtype in _LONG else theirs)(x, *rest, **options)


def _stacked(one: Callable[..., Any], *stacks: np.ndarray) -> Any:
    """Apply a function of matrices, which returns one array or a tuple of them, to each matrix of stacks."""
    batch = np.broadcast_shapes(*[x.shape[:-2] for x in stacks])
    stacks = tuple([np.broadcast_to(x, batch + x.shape[-2:]) for x in stacks])
    found = [one(*[x[position] for x in stacks]) for position in np.ndindex(batch)]
    found = found or [one(*[np.eye(x.shape[-2], x.shape[-1], dtype=x.dtype) for x in stacks])]

    def together(parts: list[np.ndarray]) -> Any:
        return np.stack(parts)[: int(np.prod(batch))].reshape(batch + parts[0].shape)

    if isinstance(found[0], tuple):
        return tuple([together(list(parts)) for parts in zip(*found, strict=True)])
    return together(found)


def _adjoint(x: np.ndarray) -> Any:
    return np.conj(x.mT)


def _eliminated(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the solution of ``a @ x = b``, and the determinant."""
    n, sign = len(a), a.dtype.type(1)
    rows = np.concatenate([a, b.astype(np.result_type(a, b))], axis=1)
    for k in range(n):
        pivot = k + int(np.argmax(np.abs(rows[k:, k])))
        if pivot != k:
            rows[[k, pivot]], sign = rows[[pivot, k]], -sign
        if rows[k, k] != 0:
            rows[k + 1 :] -= np.outer(rows[k + 1 :, k] / rows[k, k], rows[k])
    x = rows[:, n:]
    for k in reversed(range(n)):
        x[k] = (x[k] - rows[k, k + 1 : n] @ x[k + 1 :]) / rows[k, k]
    return x, np.asarray(sign * np.prod(np.diagonal(rows[:, :n])))


def solve(x1: np.ndarray, x2: np.ndarray, /) -> Any:
    if x2.ndim == 1:
        return solve(x1, x2[:, None])[..., 0]
    return _stacked(lambda a, b: _eliminated(a, b)[0], x1, x2)


def inv(x: np.ndarray, /) -> Any:
    return solve(x, np.eye(x.shape[-1], dtype=x.dtype))


def det(x: np.ndarray, /) -> Any:
    return _stacked(lambda a: _eliminated(a, a[:, :0])[1], x)


def slogdet(x: np.ndarray, /) -> Any:
    found = det(x)
    return np.sign(found), np.log(np.abs(found))


def cholesky(x: np.ndarray, /, *, upper: bool = False) -> Any:
    def one(a: np.ndarray) -> np.ndarray:
        low = np.zeros_like(a)
        for k in range(len(a)):
            row = np.conj(low[k, :k])
            low[k, k] = np.sqrt(np.real(a[k, k] - low[k, :k] @ row))
            low[k + 1 :, k] = (a[k + 1 :, k] - low[k + 1 :, :k] @ row) / low[k, k]
        return low

    low = _stacked(one, x)
    return _adjoint(low) if upper else low


def _reflected(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Q, square, and R, whose diagonal is not negative."""
    q, r, count = np.eye(len(a), dtype=a.dtype), a.copy(), min(a.shape)
    for k in range(count):
        v = r[k:, k].copy()
        v[0] += np.sqrt(np.real(np.vdot(v, v))) * (np.sign(v[0]) or 1)
        length = np.real(np.vdot(v, v))
        if length != 0:
            r[k:] -= np.outer(2 * v / length, np.conj(v) @ r[k:])
            q[:, k:] -= np.outer(q[:, k:] @ v, 2 * np.conj(v) / length)
    phases = np.sign(np.diagonal(r))
    phases = np.where(phases == 0, 1, phases)
    q[:, :count] *= phases
    r[:count] *= np.conj(phases)[:, None]
    return q, np.triu(r)


def qr(x: np.ndarray, /, *, mode: str = "reduced") -> Any:
    q, r = _stacked(_reflected, x)
    count = x.shape[-2] if mode == "complete" else min(x.shape[-2:])
    return q[..., :count], r[..., :count, :]


def _turn(app: Any, aqq: Any, apq: Any) -> np.ndarray:
    """Return the unitary matrix that makes a Hermitian one of 2 by 2 diagonal."""
    if apq == 0:
        return np.eye(2, dtype=np.asarray(apq).dtype)
    size = np.abs(apq)
    tau = np.real(aqq - app) / (2 * size)
    tangent = np.copysign(1, tau) / (np.abs(tau) + np.sqrt(1 + tau * tau))
    cosine = 1 / np.sqrt(1 + tangent * tangent)
    sine, phase = tangent * cosine, np.conj(apq) / size
    return np.array([[cosine, sine], [-sine * phase, cosine * phase]])


def _turned(a: np.ndarray, gram: Callable[[np.ndarray, int, int], Any], both: bool) -> tuple[np.ndarray, np.ndarray]:
    """Turn pairs of columns, and of rows if `both`, until they are orthogonal; return what is left, and the turns."""
    a, turns = a.copy(), np.eye(a.shape[1], dtype=a.dtype)
    for _ in range(12):  # a handful is enough: convergence is quadratic
        for p in range(a.shape[1]):
            for q in range(p + 1, a.shape[1]):
                turn = _turn(gram(a, p, p), gram(a, q, q), gram(a, p, q))
                a[:, [p, q]], turns[:, [p, q]] = a[:, [p, q]] @ turn, turns[:, [p, q]] @ turn
                if both:
                    a[[p, q]] = _adjoint(turn) @ a[[p, q]]
    return a, turns


def eig(x: np.ndarray, /) -> Any:
    """Refine LAPACK's pairs by Newton's method."""

    def one(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rough = np.linalg.eig(a.astype(np.complex128))
        values, vectors = (part.astype(np.clongdouble) for part in rough)
        for k in range(len(a)):
            for _ in range(3):
                v = vectors[:, k : k + 1]
                bordered = np.block([[a - values[k] * np.eye(len(a)), -v], [_adjoint(v), np.zeros((1, 1))]])
                residual = np.concatenate([values[k] * v - a @ v, np.zeros((1, 1))])
                change = _eliminated(bordered, residual)[0]
                values[k] += change[-1, 0]
                vectors[:, k] = (v + change[:-1])[:, 0]
                vectors[:, k] /= np.sqrt(np.real(np.vdot(vectors[:, k], vectors[:, k])))
        return values, vectors

    return _stacked(one, x)


def eigvals(x: np.ndarray, /) -> Any:
    return eig(x)[0]


def eigh(x: np.ndarray, /) -> Any:
    def one(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        left, vectors = _turned((a + _adjoint(a)) / 2, lambda a, p, q: a[p, q], both=True)
        values = np.real(np.diagonal(left))
        order = np.argsort(values)
        return values[order], vectors[:, order]

    return _stacked(one, x)


def eigvalsh(x: np.ndarray, /) -> Any:
    return eigh(x)[0]


def svd(x: np.ndarray, /, *, full_matrices: bool = True) -> Any:
    def one(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if a.shape[0] < a.shape[1]:
            u, s, vh = one(_adjoint(a))
            return _adjoint(vh), s, _adjoint(u)
        left, v = _turned(a, lambda a, p, q: np.vdot(a[:, p], a[:, q]), both=False)
        order = np.argsort(-np.sum(np.abs(left) ** 2, axis=0))
        u, r = _reflected(left[:, order])
        return u, np.real(np.diagonal(r)), _adjoint(v[:, order])

    u, s, vh = _stacked(one, x)
    return (u, s, vh) if full_matrices else (u[..., : s.shape[-1]], s, vh[..., : s.shape[-1], :])


def svdvals(x: np.ndarray, /) -> Any:
    return svd(x)[1]


def _above(x: np.ndarray, s: np.ndarray, rtol: Any) -> Any:
    rtol = max(x.shape[-2:]) * _EPS if rtol is None else np.asarray(rtol)[..., None]
    return s > rtol * s[..., :1]


def matrix_rank(x: np.ndarray, /, *, rtol: Any = None) -> Any:
    s = svdvals(x)
    return np.sum(_above(x, s, rtol), axis=-1)


def pinv(x: np.ndarray, /, *, rtol: Any = None) -> Any:
    u, s, vh = svd(x, full_matrices=False)
    keep = _above(x, s, rtol)
    inverse = np.where(keep, 1 / np.where(keep, s, 1), 0)
    return _adjoint(vh) @ (inverse[..., None] * _adjoint(u))
