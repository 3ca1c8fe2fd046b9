"""Solutions of triangular systems, and of systems with a known Cholesky factor."""

from __future__ import annotations

from typing import Any

import numpy as np

from xgrad import ops
from xgrad.core.arguments import as_tensor
from xgrad.core.tensor import Tensor
from xgrad.ops import creation, linalg, manipulation
from xgrad.ops.matrix_products import adjoint, as_square_matrices, identity


def solve_triangular(
    x1: Tensor, x2: Tensor, /, *, upper: bool, unitriangular: bool = False
) -> Tensor:
    r"""Return the solutions X of ``x1 @ X = x2`` for triangular matrices.

    Parameters
    ----------
    x1 : Tensor
        Matrices of shape (..., n, n), of which only the triangle is read; integers count as
        float32.
    x2 : Tensor
        One vector of shape (n,), or matrices of shape (..., n, k), where several vectors are
        columns. The batch axes of `x1` and `x2` broadcast.
    upper : bool
        Whether to read the upper triangle instead of the lower.
    unitriangular : bool, default False
        Whether the diagonal counts as ones and is not read.

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
        If the tensors are on different devices.

    Notes
    -----
    .. math::

        Y = T^{-1} X_2, \quad T = \operatorname{tril}(X_1) \text{ or } \operatorname{triu}(X_1)

    - Gradient for `x1`: :math:`-\operatorname{tril}(T^{-\top} \bar Y Y^\top)` or
      :math:`-\operatorname{triu}(T^{-\top} \bar Y Y^\top)`; 0 on the diagonal if `unitriangular`
    - Gradient for `x2`: :math:`T^{-\top} \bar Y`

    Solved by substitution. Differentiable to any order. Like ``torch.linalg.solve_triangular``,
    whose ``left=False`` transposes all three matrices, and ``scipy.linalg.solve_triangular``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.linalg.solve_triangular(
    ...     xgrad.asarray([[2.0, 0.0], [1.0, 4.0]]), xgrad.asarray([2.0, 5.0]), upper=False
    ... )
    Tensor([1., 1.])
    """
    x1, x2, vector = _system("solve_triangular", "x1", x1, "x2", x2)
    diagonal = int(bool(unitriangular))
    x1 = creation.triu(x1, k=diagonal) if upper else creation.tril(x1, k=-diagonal)
    x1 = x1 + identity(ops, x1) if unitriangular else x1
    if not upper:  # an upper triangle needs no elimination, and its rows keep their order
        x1, x2 = manipulation.flip(x1, axis=(-2, -1)), manipulation.flip(x2, axis=-2)
    try:
        out = linalg.solve(x1, x2)
    except np.linalg.LinAlgError:
        message = (
            f"solve_triangular: expected no 0 on the diagonals of x1, of shape {x1.shape}, got one"
        )
        raise np.linalg.LinAlgError(message) from None
    out = out if upper else manipulation.flip(out, axis=-2)
    return out[..., 0] if vector else out


def cholesky_solve(x: Tensor, factor: Tensor, /, *, upper: bool = False) -> Tensor:
    r"""Return the solutions of ``A @ X = x`` for a positive definite A, given its Cholesky factor.

    Parameters
    ----------
    x : Tensor
        One vector of shape (n,), or matrices of shape (..., n, k). The batch axes of `x` and
        `factor` broadcast.
    factor : Tensor
        The result of `cholesky` for A, of shape (..., n, n); integers count as float32.
    upper : bool, default False
        Whether the factor is an upper triangle U with ``A = adjoint(U) @ U`` instead of a lower
        triangle L with ``A = L @ adjoint(L)``.

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
        If the tensors are on different devices.

    Notes
    -----
    .. math:: Y = (L L^H)^{-1} X

    - Gradient for `x`: :math:`(L L^H)^{-1} \bar Y`
    - Gradient for `factor`: :math:`-\operatorname{tril}((G Y^H + Y G^H) L)`, where :math:`G` is
      the gradient for `x`; for an upper triangle, the conjugate transpose

    Consists of two calls of `solve_triangular`; differentiable to any order. The arguments have the
    same order as in ``torch.cholesky_solve``; ``scipy.linalg.cho_solve`` has the factor first.

    Examples
    --------
    >>> import xgrad
    >>> a = xgrad.asarray([[4.0, 2.0], [2.0, 5.0]])
    >>> xgrad.linalg.cholesky_solve(xgrad.asarray([6.0, 7.0]), xgrad.linalg.cholesky(a))
    Tensor([1., 1.])
    """
    factor, x, vector = _system("cholesky_solve", "factor", factor, "x", x)
    lower, higher = (adjoint(ops, factor), factor) if upper else (factor, adjoint(ops, factor))
    out = solve_triangular(higher, solve_triangular(lower, x, upper=False), upper=True)
    return out[..., 0] if vector else out


def _system(
    op: str, left: str, matrices: Any, right: str, columns: Any
) -> tuple[Tensor, Tensor, bool]:
    """Return the two sides of a system as tensors, and whether the right side is a vector.

    A vector is returned as a column.
    """
    a, b = as_square_matrices(op, left, matrices), as_tensor(op, right, columns)
    vector = b.ndim == 1
    if not b.ndim or b.shape[-1 if vector else -2] != a.shape[-1]:
        raise ValueError(
            f"{op}: expected a vector of shape (n,) or matrices of shape (..., n, k) for {right},"
            f" got {b.shape} for {left} of shape {a.shape}"
        )
    return a, b[:, None] if vector else b, vector
