"""`torch.linalg`: PyTorch's signatures over `xgrad.linalg`."""

from __future__ import annotations

from typing import Any

from numpy.linalg import LinAlgError

import xgrad
from xgrad import linalg as xlinalg
from xgrad.compat.torch import products, return_types, shapes
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
    "vecdot",
    "vector_norm",
]

matmul, matrix_exp, matrix_power = products.matmul, products.matrix_exp, products.matrix_power
cholesky, slogdet, det, inv = products.cholesky, products.slogdet, products.det, products.inverse


def _cast(x: Any, dtype: Any) -> Any:
    return x if dtype is None else xgrad.astype(x, dtype, copy=False)


@torch_function
def norm(
    A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """Return the norm of vectors or matrices: see `vector_norm` and `matrix_norm`."""
    x = _cast(A, dtype)
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
    return xlinalg.vector_norm(_cast(x, dtype), axis=axis_of(x, dim), keepdims=keepdim, ord=ord)


@torch_function
def matrix_norm(
    A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """Return the norm of matrices: see `xgrad.linalg.matrix_norm`."""
    x, axes = _cast(A, dtype), tuple(dim)
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
    if unitriangular:
        raise NotImplementedError(
            "linalg.solve_triangular: unitriangular= is not available in xgrad.compat.torch"
        )
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


@torch_function
def pinv(
    A: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Any:
    """Return the pseudoinverse: see `xgrad.linalg.pinv`."""
    if atol is not None or hermitian:
        raise NotImplementedError(
            "linalg.pinv: atol= and hermitian= are not available in xgrad.compat.torch: use rtol="
        )
    return xlinalg.pinv(A, rtol=rcond if rtol is None else rtol)


@torch_function
def matrix_rank(
    A: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Any:
    """Return the ranks of matrices: see `xgrad.linalg.matrix_rank`."""
    if tol is not None or atol is not None or hermitian:
        raise NotImplementedError(
            "linalg.matrix_rank: tol=, atol= and hermitian= are not available in"
            " xgrad.compat.torch: use rtol="
        )
    return xlinalg.matrix_rank(A, rtol=rtol)


@torch_function
def lstsq(A: Tensor, B: Tensor, rcond: Any = None, *, driver: str | None = None) -> Any:
    """Return the solution of least squares: see `xgrad.linalg.lstsq`."""
    return return_types.Solution(xlinalg.lstsq(A, B, rcond=rcond).solution)


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
