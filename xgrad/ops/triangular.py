"""Solutions of triangular systems, and of systems whose Cholesky factor is known."""

from __future__ import annotations

from typing import Any

from xgrad.declare import derivative, in_rule
from xgrad.dtypes import FLOATING
from xgrad.inputs import as_tensor
from xgrad.operators import namespace
from xgrad.ops.linalg import solve
from xgrad.ops.products import adjoint
from xgrad.tensor import Tensor


def _triangle(xp: Any, x: Any, upper: bool, unitriangular: bool) -> Any:
    """Return matrices with zeros beyond the triangle, and on a diagonal that is not read."""
    return xp.triu(x, k=int(unitriangular)) if upper else xp.tril(x, k=-int(unitriangular))


def _left_rule(g: Any, xp: Any, x1: Any, out: Any, upper: bool, unitriangular: bool) -> Any:
    turned = _right_rule(g, xp, x1, upper, unitriangular)
    return -_triangle(xp, turned @ xp.matrix_transpose(out), upper, unitriangular)


def _right_rule(g: Any, xp: Any, x1: Any, upper: bool, unitriangular: bool) -> Any:
    options = {"upper": not upper, "unitriangular": unitriangular}
    return in_rule(_solve_triangular, xp, xp.matrix_transpose(x1), g, **options)


@derivative(_left_rule, _right_rule, kind=FLOATING)
def _solve_triangular(xp: Any, x1: Any, x2: Any, /, *, upper: bool, unitriangular: bool) -> Any:
    """Solve by elimination, which has nothing to eliminate in an upper triangle and never exchanges its rows."""
    x1 = _triangle(xp, x1, upper, unitriangular)
    if unitriangular:
        x1 = x1 + xp.eye(x1.shape[-1], dtype=x1.dtype, device=getattr(x1, "device", None))
    if upper:
        return in_rule(solve, xp, x1, x2)
    x1, x2 = xp.flip(x1, axis=(-2, -1)), xp.flip(x2, axis=-2)
    return xp.flip(in_rule(solve, xp, x1, x2), axis=-2)


def solve_triangular(x1: Tensor, x2: Tensor, /, *, upper: bool, unitriangular: bool = False) -> Tensor:
    """Return the solutions X of ``x1 @ X = x2`` for triangular matrices.

    Parameters
    ----------
    x1 : Tensor
        Matrices of shape (..., n, n), of which only the triangle is read; integers count as float32.
    x2 : Tensor
        One vector of shape (n,), or matrices of shape (..., n, k), whose first axes broadcast against those of `x1`:
        several vectors are columns.
    upper : bool
        Whether the upper triangle is read, otherwise the lower.
    unitriangular : bool, default False
        Whether the diagonal counts as ones, and is not read.

    Returns
    -------
    Tensor
        Of shape (..., n) for a vector, else (..., n, k).

    Raises
    ------
    ValueError
        If the matrices are not square, or the shapes do not fit.
    numpy.linalg.LinAlgError
        If a number on the diagonal is 0; on ``cuda`` the result is NaN or infinite instead.
    DeviceError
        If the tensors are on several devices.

    Notes
    -----
    Differentiable to any order; the gradient by `x1` has its triangle alone. As ``torch.linalg.solve_triangular``,
    whose ``left=False`` is a transpose of all three, and ``scipy.linalg.solve_triangular``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.linalg.solve_triangular(xgrad.asarray([[2.0, 0.0], [1.0, 4.0]]), xgrad.asarray([2.0, 5.0]), upper=False)
    Tensor([1., 1.])
    """
    x1, x2, vector = _system("solve_triangular", "x1", x1, "x2", x2)
    out = _solve_triangular(x1, x2, upper=bool(upper), unitriangular=bool(unitriangular))
    return out[..., 0] if vector else out


def cholesky_solve(x: Tensor, factor: Tensor, /, *, upper: bool = False) -> Tensor:
    """Return the solutions of ``A @ X = x`` for a positive definite A, given its Cholesky factor.

    Parameters
    ----------
    x : Tensor
        One vector of shape (n,), or matrices of shape (..., n, k), whose first axes broadcast with those of `factor`.
    factor : Tensor
        What `cholesky` returns for A, of shape (..., n, n); integers count as float32.
    upper : bool, default False
        Whether the factor is an upper triangle U with ``A = adjoint(U) @ U``, otherwise a lower one L with
        ``A = L @ adjoint(L)``.

    Returns
    -------
    Tensor
        Of shape (..., n) for a vector, else (..., n, k).

    Raises
    ------
    ValueError
        If the factors are not square, or the shapes do not fit.
    numpy.linalg.LinAlgError
        If a number on a diagonal is 0; on ``cuda`` the result is NaN or infinite instead.
    DeviceError
        If the tensors are on several devices.

    Notes
    -----
    Differentiable to any order: two calls of `solve_triangular`. The order of the arguments is that of
    ``torch.cholesky_solve``; ``scipy.linalg.cho_solve`` has the factor first.

    Examples
    --------
    >>> import xgrad
    >>> a = xgrad.asarray([[4.0, 2.0], [2.0, 5.0]])
    >>> xgrad.linalg.cholesky_solve(xgrad.asarray([6.0, 7.0]), xgrad.linalg.cholesky(a))
    Tensor([1., 1.])
    """
    factor, x, vector = _system("cholesky_solve", "factor", factor, "x", x)
    lower, higher = (adjoint(namespace, factor), factor) if upper else (factor, adjoint(namespace, factor))
    out = solve_triangular(higher, solve_triangular(lower, x, upper=False), upper=True)
    return out[..., 0] if vector else out


def _system(op: str, left: str, matrices: Any, right: str, columns: Any) -> tuple[Tensor, Tensor, bool]:
    """Return the two sides of a system as tensors, a vector on the right as a column, and whether there is one."""
    a, b = as_tensor(op, left, matrices), as_tensor(op, right, columns)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"{op}: expected square matrices, of shape (..., n, n), for {left}, got {a.shape}")
    vector = b.ndim == 1
    if not b.ndim or b.shape[-1 if vector else -2] != a.shape[-1]:
        raise ValueError(
            f"{op}: expected a vector of shape (n,) or matrices of shape (..., n, k) for {right}, got {b.shape} for "
            f"{left} of shape {a.shape}"
        )
    return a, b[:, None] if vector else b, vector
