"""`torch.linalg`: PyTorch's signatures over `xgrad.linalg`."""

from __future__ import annotations

import math
from typing import Any

from numpy.linalg import LinAlgError

import xgrad
from xgrad import linalg as xlinalg
from xgrad.compat.torch import products, return_types, shapes, statistics
from xgrad.compat.torch.promotion import cast
from xgrad.compat.torch.reductions import axis_of
from xgrad.compat.torch.tensor import torch_function
from xgrad.core.tensor import Tensor

__all__ = [
    "LinAlgError",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]

matmul, matrix_exp, matrix_power = products.matmul, products.matrix_exp, products.matrix_power
cholesky, slogdet, det, inv = products.cholesky, products.slogdet, products.det, products.inverse


@torch_function
def norm(
    A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """Return the norm of vectors or matrices: see `vector_norm` and `matrix_norm`."""
    x = cast(A, dtype)
    if dim is None and ord is None:
        return xlinalg.vector_norm(x, keepdims=keepdim)
    if isinstance(dim, (tuple, list)) and len(dim) == 2 and ord is not None:
        return matrix_norm(x, ord, tuple(dim), keepdim)
    if dim is None and x.ndim == 2:
        return matrix_norm(x, ord, (-2, -1), keepdim)
    return vector_norm(x, 2 if ord is None else ord, dim, keepdim)


@torch_function
def vector_norm(
    x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """Return the norm of vectors: see `xgrad.linalg.vector_norm`."""
    return xlinalg.vector_norm(cast(x, dtype), axis=axis_of(x, dim), keepdims=keepdim, ord=ord)


@torch_function
def matrix_norm(
    A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """Return the norm of matrices: see `xgrad.linalg.matrix_norm`."""
    x, axes = cast(A, dtype), tuple(dim)
    moved = xgrad.moveaxis(x, axes, (-2, -1))
    out = xlinalg.matrix_norm(moved, keepdims=keepdim, ord=ord)
    return xgrad.moveaxis(out, (-2, -1), axes) if keepdim else out


@torch_function
def cond(A: Tensor, p: Any = None) -> Any:
    """Return the condition numbers of matrices: see `xgrad.linalg.svdvals`."""
    if p in (None, 2, -2):
        values = xlinalg.svdvals(A)
        ratio = values[..., 0] / values[..., -1]
        return 1 / ratio if p == -2 else ratio
    return matrix_norm(A, p) * matrix_norm(xlinalg.inv(A), p)


@torch_function
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Any:
    """Return the solution of linear equations: see `xgrad.linalg.solve`."""
    # PyTorch takes vectors for a stack of matrices where the standard takes one matrix
    if B.ndim == 1 or tuple(B.shape) == tuple(A.shape[:-1]):
        return xgrad.squeeze(xlinalg.solve(A, xgrad.expand_dims(B, axis=-1)), axis=-1)
    if left:
        return xlinalg.solve(A, B)
    transposed = xlinalg.solve(xgrad.matrix_transpose(A), xgrad.matrix_transpose(B))
    return xgrad.matrix_transpose(transposed)


@torch_function
def solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:
    """Return the solution of triangular equations: see `xgrad.linalg.solve_triangular`."""
    if unitriangular:  # the diagonal counts as ones
        n = A.shape[-1]
        A = xgrad.where(xgrad.eye(n, dtype="bool", device=A.device), 1.0, A)
    if left:
        return xlinalg.solve_triangular(A, B, upper=upper)
    solved = xlinalg.solve_triangular(
        xgrad.matrix_transpose(A), xgrad.matrix_transpose(B), upper=not upper
    )
    return xgrad.matrix_transpose(solved)


@torch_function
def qr(A: Tensor, mode: Any = "reduced") -> Any:
    """Return the factors Q and R: see `xgrad.linalg.qr`."""
    return return_types.QR(*xlinalg.qr(A, mode=mode))


@torch_function
def svd(A: Tensor, full_matrices: bool = True) -> Any:
    """Return U, the singular values, and the adjoint of V: see `xgrad.linalg.svd`."""
    return return_types.SVD(*xlinalg.svd(A, full_matrices=full_matrices))


@torch_function
def svdvals(A: Tensor) -> Any:
    """Return the singular values: see `xgrad.linalg.svdvals`."""
    return xlinalg.svdvals(A)


def _lower(name: str, x: Any, UPLO: str) -> Any:
    if UPLO not in ("L", "U"):
        raise ValueError(f"linalg.{name}: expected UPLO of 'L' or 'U', got {UPLO!r}")
    return x if UPLO == "L" else shapes.adjoint(x)


@torch_function
def eigh(A: Tensor, UPLO: str = "L") -> Any:
    """Return eigenvalues and eigenvectors of Hermitian matrices: see `xgrad.linalg.eigh`."""
    return return_types.Eigen(*xlinalg.eigh(_lower("eigh", A, UPLO)))


@torch_function
def eigvalsh(A: Tensor, UPLO: str = "L") -> Any:
    """Return the eigenvalues of Hermitian matrices: see `xgrad.linalg.eigvalsh`."""
    return xlinalg.eigvalsh(_lower("eigvalsh", A, UPLO))


@torch_function
def eig(A: Tensor) -> Any:
    """Return eigenvalues and eigenvectors: see `xgrad.linalg.eig`."""
    return return_types.Eigen(*xlinalg.eig(A))


@torch_function
def eigvals(A: Tensor) -> Any:
    """Return the eigenvalues: see `xgrad.linalg.eigvals`."""
    return xlinalg.eigvals(A)


def _hermitian(x: Any) -> Any:
    """Return the Hermitian matrices that lower triangles stand for."""
    return xgrad.tril(x) + shapes.adjoint(xgrad.tril(x, k=-1))


def _relative_tolerance(x: Any, atol: Any, rtol: Any) -> Any:
    """Return the tolerance relative to the largest singular value that stands for two tolerances.

    Without an absolute one, the default of xgrad counts.
    """
    if atol is None:
        return rtol
    largest = xlinalg.svdvals(x.detach())[..., :1]
    atol, rtol = (
        xgrad.expand_dims(t, axis=-1) if isinstance(t, xgrad.Tensor) else t for t in (atol, rtol)
    )
    if rtol is None:
        eps = max(x.shape[-2:]) * xgrad.finfo(x.dtype).eps
        atol = xgrad.asarray(atol, dtype=largest.dtype, device=x.device)
        rtol = eps * (atol <= 0)
    safe = xgrad.where(largest > 0, largest, 1.0)
    return xgrad.squeeze(xgrad.maximum(atol / safe, rtol), axis=-1)


@torch_function
def pinv(
    A: Tensor,
    rcond: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
) -> Any:
    """Return the pseudoinverse: see `xgrad.linalg.pinv`."""
    x = _hermitian(A) if hermitian else A
    if not x.size:
        return shapes.adjoint(x)
    return xlinalg.pinv(x, rtol=_relative_tolerance(x, atol, rcond if rtol is None else rtol))


@torch_function
def matrix_rank(
    A: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Any:
    """Return the ranks of matrices: see `xgrad.linalg.matrix_rank`."""
    x = (_hermitian(A) if hermitian else A).detach()
    if not x.size:
        return xgrad.zeros(tuple(x.shape[:-2]), dtype="int64", device=x.device)
    return xlinalg.matrix_rank(x, rtol=_relative_tolerance(x, tol if atol is None else atol, rtol))


@torch_function
def lstsq(A: Tensor, B: Tensor, rcond: Any = None, *, driver: str | None = None) -> Any:
    """Return the solution of least squares, residuals, ranks and singular values.

    See `xgrad.linalg.lstsq`; drivers other than "gelsy" also have residuals.
    """
    vectors = B.ndim == 1 or (B.ndim == A.ndim - 1 and B.shape == A.shape[:-1])
    found = xlinalg.lstsq(A, xgrad.expand_dims(B, axis=-1) if vectors else B, rcond=rcond)
    solution, residuals = found.solution, found.residuals
    if vectors:
        solution = xgrad.squeeze(solution, axis=-1)
    if driver in (None, "gelsy") or A.shape[-2] <= A.shape[-1]:  # PyTorch has none then
        residuals = xgrad.zeros((0,), dtype=residuals.dtype, device=A.device)
    return return_types.Solution(solution, residuals, found.rank, found.singular_values)


@torch_function
def vander(x: Tensor, N: int | None = None) -> Any:
    """Return matrices whose columns are powers of vectors, in ascending order."""
    return statistics.vander(x if x.ndim else xgrad.reshape(x, (1,)), N, increasing=True)


@torch_function
def tensorinv(A: Tensor, ind: int = 2) -> Any:
    """Return the inverse of a tensor as a map between its first `ind` axes and the others."""
    first, last = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    square = xgrad.reshape(A, (math.prod(first), math.prod(last)))
    return xgrad.reshape(xlinalg.inv(square), last + first)


@torch_function
def tensorsolve(A: Tensor, B: Tensor, dims: Any = None) -> Any:
    """Return the solution of equations of a tensor as a map from its last axes to the first."""
    x = A if dims is None else xgrad.moveaxis(A, tuple(dims), tuple(range(-len(dims), 0)))
    shape = tuple(x.shape[B.ndim :])
    n = math.prod(shape)
    solution = xlinalg.solve(xgrad.reshape(x, (n, n)), xgrad.reshape(B, (n, 1)))
    return xgrad.reshape(solution, shape)


@torch_function
def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Any:
    """Return the cross product along an axis: see `xgrad.linalg.cross`."""
    return xlinalg.cross(input, other, axis=dim)


@torch_function
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Any:
    """Return the inner products along an axis: see `xgrad.vecdot`."""
    return xgrad.vecdot(x, y, axis=dim)


@torch_function
def multi_dot(tensors: Any) -> Any:
    """Return the product of several matrices: see `xgrad.matmul`."""
    return products.multiply_all(list(tensors))


@torch_function
def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Return the diagonals of matrices: see `xgrad.linalg.diagonal`."""
    return shapes.diagonal(A, offset, dim1, dim2)
