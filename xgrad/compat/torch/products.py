"""Products of matrices and vectors under PyTorch's names in ``torch`` itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import xgrad
from xgrad import linalg as xlinalg
from xgrad.compat.torch.return_types import QR, SignAndLogarithm, SVDWithV
from xgrad.compat.torch.tensor import torch_function
from xgrad.core.tensor import Tensor


def _of_axes(name: str, x: Any, ndim: int) -> Any:
    if not isinstance(x, xgrad.Tensor) or x.ndim != ndim:
        got = tuple(x.shape) if isinstance(x, xgrad.Tensor) else type(x).__name__
        raise RuntimeError(f"{name}: expected a tensor with {ndim} axes, got {got}")
    return x


def _of_one_dtype(name: str, *tensors: Any) -> None:
    dtypes = {x.dtype for x in tensors}
    if len(dtypes) > 1:
        raise RuntimeError(f"{name}: expected one dtype, got {sorted(map(str, dtypes))}")


@torch_function
def matmul(input: Tensor, other: Tensor) -> Any:
    """Return the matrix product: see `xgrad.matmul`."""
    if not (isinstance(input, xgrad.Tensor) and isinstance(other, xgrad.Tensor)):
        raise TypeError("matmul: expected two tensors")
    _of_one_dtype("matmul", input, other)
    return xgrad.matmul(input, other)


@torch_function
def mm(input: Tensor, mat2: Tensor) -> Any:
    """Return the product of two matrices: see `xgrad.matmul`."""
    return matmul(_of_axes("mm", input, 2), _of_axes("mm", mat2, 2))


@torch_function
def bmm(input: Tensor, mat2: Tensor) -> Any:
    """Return the products of two stacks of matrices: see `xgrad.matmul`."""
    if _of_axes("bmm", input, 3).shape[0] != _of_axes("bmm", mat2, 3).shape[0]:
        raise RuntimeError(
            f"bmm: expected as many matrices, got shapes {tuple(input.shape)} and"
            f" {tuple(mat2.shape)}"
        )
    return matmul(input, mat2)


@torch_function
def mv(input: Tensor, vec: Tensor) -> Any:
    """Return the product of a matrix and a vector: see `xgrad.matmul`."""
    return matmul(_of_axes("mv", input, 2), _of_axes("mv", vec, 1))


@torch_function
def dot(input: Tensor, tensor: Tensor) -> Any:
    """Return the inner product of two vectors: see `xgrad.matmul`."""
    return matmul(_of_axes("dot", input, 1), _of_axes("dot", tensor, 1))


@torch_function
def vdot(input: Tensor, other: Tensor) -> Any:
    """Return the inner product with the conjugate of the first vector: see `xgrad.vecdot`."""
    return xgrad.vecdot(_of_axes("vdot", input, 1), _of_axes("vdot", other, 1))


@torch_function
def inner(input: Tensor, other: Tensor) -> Any:
    """Return the sums of products along the last axes: see `xgrad.tensordot`."""
    if not (input.ndim and other.ndim):
        return input * other
    return xgrad.tensordot(input, other, axes=((-1,), (-1,)))


@torch_function
def outer(input: Tensor, vec2: Tensor) -> Any:
    """Return the products of all pairs of elements of two vectors."""
    rows = xgrad.expand_dims(_of_axes("outer", input, 1), axis=1)
    return rows * xgrad.expand_dims(_of_axes("outer", vec2, 1), axis=0)


def _scaled_sum(input: Any, product: Any, beta: Any, alpha: Any) -> Any:
    if product.dtype.kind in "iub":  # PyTorch truncates the factors
        beta, alpha = int(beta), int(alpha)
    if product.dtype.kind == "b":
        beta, alpha = int(bool(beta)), int(bool(alpha))
        product = product if alpha else xgrad.zeros_like(product)
        return xgrad.logical_or(input, product) if beta else product
    product = product if alpha == 1 else alpha * product
    if beta == 0:  # NaNs of the input do not count
        return xgrad.broadcast_to(product, tuple(product.shape)) + xgrad.zeros_like(product)
    return (input if beta == 1 else beta * input) + product


@torch_function
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return ``beta * input + alpha * (mat1 @ mat2)``."""
    return _scaled_sum(input, mm(mat1, mat2), beta, alpha)


@torch_function
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return ``beta * input + alpha * (mat @ vec)``."""
    return _scaled_sum(input, mv(mat, vec), beta, alpha)


@torch_function
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return ``beta * input + alpha * outer(vec1, vec2)``."""
    return _scaled_sum(input, outer(vec1, vec2), beta, alpha)


@torch_function
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return ``beta * input + alpha * (batch1 @ batch2)`` of stacks of matrices."""
    return _scaled_sum(input, bmm(batch1, batch2), beta, alpha)


def _summed(x: Any) -> Any:
    return xgrad.sum(x, axis=0, dtype=x.dtype)


@torch_function
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return ``beta * input + alpha * (batch1 @ batch2).sum(0)``."""
    return _scaled_sum(input, _summed(bmm(batch1, batch2)), beta, alpha)


@torch_function
def einsum(equation: str, *operands: Any) -> Any:
    """Return the sum of products that an equation describes: see `xgrad.einsum`."""
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    return xgrad.einsum(equation, *operands)


@torch_function
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Any:
    """Return the sums of products along axes of two tensors: see `xgrad.tensordot`."""
    axes: Any = dims if isinstance(dims, int) else tuple(tuple(axis) for axis in dims)
    return xgrad.tensordot(a, b, axes=axes)


@torch_function
def kron(input: Tensor, other: Tensor) -> Any:
    """Return the Kronecker product: see `xgrad.kron`."""
    return xgrad.kron(input, other)


@torch_function
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Any:
    """Return the cross product along an axis, by default the first of length 3."""
    if dim is None:
        dim = next(i for i, n in enumerate(input.shape) if n == 3)
    return xlinalg.cross(input, other, axis=dim)


@torch_function
def trace(input: Tensor) -> Any:
    """Return the sum of the diagonal of a matrix: see `xgrad.linalg.trace`."""
    x = _of_axes("trace", input, 2)
    return xlinalg.trace(xgrad.astype(x, xgrad.int64) if x.dtype.kind in "bui" else x)


@torch_function
def det(input: Tensor) -> Any:
    """Return the determinants of matrices: see `xgrad.linalg.det`."""
    return xlinalg.det(input)


@torch_function
def slogdet(input: Tensor) -> Any:
    """Return the signs and logarithms of determinants: see `xgrad.linalg.slogdet`."""
    return SignAndLogarithm(*xlinalg.slogdet(input))


@torch_function
def logdet(input: Tensor) -> Any:
    """Return the logarithms of determinants, NaN if negative: see `xgrad.linalg.slogdet`."""
    sign, logarithm = xlinalg.slogdet(input)
    if sign.dtype.kind == "c":
        return xgrad.log(sign) + logarithm
    return xgrad.where(sign < 0, xgrad.nan, logarithm)


@torch_function
def inverse(input: Tensor) -> Any:
    """Return the inverses of matrices: see `xgrad.linalg.inv`."""
    return xlinalg.inv(input)


@torch_function
def pinverse(input: Tensor, rcond: float = 1e-15) -> Any:
    """Return the pseudoinverses of matrices: see `xgrad.linalg.pinv`."""
    return xlinalg.pinv(input, rtol=rcond)


@torch_function
def matrix_power(input: Tensor, n: int) -> Any:
    """Return powers of matrices: see `xgrad.linalg.matrix_power`."""
    return xlinalg.matrix_power(input, n)


@torch_function
def matrix_exp(input: Tensor) -> Any:
    """Return exponentials of matrices: see `xgrad.linalg.expm`."""
    return xlinalg.expm(input)


@torch_function
def cholesky(input: Tensor, upper: bool = False) -> Any:
    """Return the Cholesky factors of matrices: see `xgrad.linalg.cholesky`."""
    return xlinalg.cholesky(input, upper=upper)


@torch_function
def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Any:
    """Return solutions of equations, given Cholesky factors: see `xgrad.linalg.cholesky_solve`."""
    return xlinalg.cholesky_solve(B, L, upper=upper)


@torch_function
def cholesky_inverse(L: Tensor, upper: bool = False) -> Any:
    """Return inverses of matrices of their Cholesky factors: see `xgrad.linalg.cholesky_solve`."""
    identity = xgrad.eye(L.shape[-1], dtype=L.dtype, device=L.device)
    return xlinalg.cholesky_solve(identity, L, upper=upper)


@torch_function
def qr(input: Tensor, some: bool = True) -> Any:
    """Return the factors Q and R of matrices: see `xgrad.linalg.qr`."""
    return QR(*xlinalg.qr(input, mode="reduced" if some else "complete"))


@torch_function
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    """Return U, the singular values, and V: see `xgrad.linalg.svd`."""
    if not compute_uv:
        raise NotImplementedError("svd: compute_uv=False: use torch.linalg.svdvals")
    u, s, vh = xlinalg.svd(input, full_matrices=not some)
    v = xgrad.matrix_transpose(vh)
    return SVDWithV(u, s, xgrad.conj(v) if v.dtype.kind == "c" else v)


@torch_function
def chain_matmul(*matrices: Tensor) -> Any:
    """Return the product of several matrices: see `xgrad.matmul`."""
    return multiply_all(matrices)


def multiply_all(matrices: Sequence[Any]) -> Any:
    """Return the product of matrices from the left."""
    product = matrices[0]
    for matrix in matrices[1:]:
        product = matmul(product, matrix)
    return product


FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        addbmm, addmm, addmv, addr, baddbmm, bmm, chain_matmul, cholesky, cholesky_inverse,
        cholesky_solve, cross, det, dot, einsum, inner, inverse, kron, logdet, matmul, matrix_exp,
        matrix_power, mm, mv, outer, pinverse, qr, slogdet, svd, tensordot, trace, vdot,
    )
}  # fmt: skip
FUNCTIONS["ger"] = outer
