"""Determinants, inverses, solutions, ranks and diagonals of matrices."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from xgrad.core.arguments import ArrayLike
from xgrad.core.dtypes import FLOATING, is_complex
from xgrad.core.tensor import Tensor
from xgrad.ops import statistical
from xgrad.ops.declare import call_op, derivative, diagonal_key
from xgrad.ops.indexing import _scatter
from xgrad.ops.matrix_products import adjoint, check_matrices, check_square, conjugate, identity
from xgrad.ops.statistical import exclusive_cumprod


class SlogdetResult(NamedTuple):
    """The result of `slogdet`."""

    sign: Tensor
    logabsdet: Tensor


# Diagonals


def _diagonal_rule(g: Any, xp: Any, x_shape: tuple[int, ...], offset: int) -> Any:
    *batch, rows, columns = x_shape
    key = diagonal_key(x_shape, offset)
    return xp.reshape(call_op(_scatter, xp, g, key=key, shape=(*batch, rows * columns)), x_shape)


@derivative(_diagonal_rule, views=True)
def diagonal(xp: Any, x: ArrayLike, /, *, offset: int = 0) -> Any:
    r"""Return the diagonals of matrices.

    Parameters
    ----------
    x : Tensor
        Of shape (..., m, n), and any dtype.
    offset : int, default 0
        The offset from the main diagonal, above it if positive.

    Returns
    -------
    Tensor
        Of shape (..., k), where k is the length of the diagonal.

    Raises
    ------
    ValueError
        If `x` has fewer than two axes.

    Notes
    -----
    .. math:: y_i = x_{i, i+k}

    - Gradient for `x`: :math:`\bar y_i` at :math:`(i, i + k)`, 0 elsewhere; :math:`k` is the
      ``offset``

    Python array API standard, linear algebra extension: ``diagonal``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.linalg.diagonal(xgrad.asarray([[1.0, 2.0], [3.0, 4.0]]))
    Tensor([1., 4.])
    """
    check_matrices(x)
    return xp.linalg.diagonal(x, offset=offset)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    r"""Return the sums of the diagonals of matrices.

    Parameters
    ----------
    x : Tensor
        Numbers, of shape (..., m, n).
    offset : int, default 0
        The offset from the main diagonal, above it if positive.
    dtype : dtype, optional
        The dtype of the sum and the result; by default the dtype of `x`, but at least int64 for
        integers.

    Returns
    -------
    Tensor
        Of shape (...).

    Raises
    ------
    ValueError
        If `x` has fewer than two axes.

    Notes
    -----
    .. math:: y = \sum_i x_{i, i+k}

    - Gradient for `x`: :math:`\bar y` at :math:`(i, i + k)`, 0 elsewhere; :math:`k` is the
      ``offset``

    Python array API standard, linear algebra extension: ``trace``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.linalg.trace(xgrad.asarray([[1.0, 2.0], [3.0, 4.0]]))
    Tensor(5.)
    """
    return statistical.sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


# Determinants


def _leave_out_products(xp: Any, s: Any) -> tuple[Any, Any]:
    """Return the products of all numbers but one, and of all numbers but two, without division.

    The products of all but two are 0 where the two are the same number.
    """
    before = exclusive_cumprod(xp, s)
    after = xp.flip(exclusive_cumprod(xp, xp.flip(s, axis=-1)), axis=-1)
    ones = xp.ones_like(s[..., None, :] + s[..., :, None])
    # in row i, the numbers after number i
    later = xp.triu(ones * s[..., None, :], k=1) + xp.tril(ones)
    pairs = xp.triu(before[..., :, None] * exclusive_cumprod(xp, later) * after[..., None, :], k=1)
    return before * after, pairs + xp.matrix_transpose(pairs)


def _svd_and_phase(xp: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """Return conj(U), S, conj(Vh), and the determinant of ``U @ Vh`` of shape (..., 1, 1).

    The determinant has an absolute value of 1.
    """
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    phase = xp.linalg.det(u) * xp.linalg.det(vh)
    return conjugate(xp, u), s, conjugate(xp, vh), phase[..., None, None]


def _cofactors_rule(g: Any, xp: Any, x: Any) -> Any:
    u, s, vh, phase = _svd_and_phase(xp, x)
    _, pairs = _leave_out_products(xp, s)
    g = xp.matrix_transpose(u) @ g @ xp.matrix_transpose(vh)
    sums = xp.sum(pairs * xp.linalg.diagonal(g)[..., None, :], axis=-1)
    inner = identity(xp, s) * sums[..., None, :] - xp.matrix_transpose(g) * pairs
    return phase * (u @ inner @ vh)


@derivative(_cofactors_rule)
def _cofactors(xp: Any, x: Any, /) -> Any:
    r"""Return the matrices of cofactors: the derivatives of determinants by each element.

    They are composed of products of all singular values but one.

    Notes
    -----
    .. math:: Y = \operatorname{cof}(X) = \det(X)\, X^{-\top}

    - Gradient for `x`: :math:`\langle \bar Y, Y \rangle X^{-\top} - Y \bar Y^\top X^{-\top}`, in
      a form without inverses, for singular matrices, too
    """
    u, s, vh, phase = _svd_and_phase(xp, x)
    without, _ = _leave_out_products(xp, s)
    return phase * ((u * without[..., None, :]) @ vh)


@derivative(lambda g, xp, x: g[..., None, None] * call_op(_cofactors, xp, x), lowest=FLOATING)
def det(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the determinants of square matrices.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, n); integers count as float32.

    Returns
    -------
    Tensor
        Of shape (...).

    Raises
    ------
    ValueError
        If the matrices are not square.

    Notes
    -----
    .. math:: y = \det(X)

    - Gradient for `x`: :math:`\bar y \operatorname{cof}(X)`, with the matrix of cofactors, which
      is :math:`y X^{-\top}` if :math:`X` is invertible

    The cofactors are computed from a singular value decomposition. The gradient is correct for
    singular matrices of any rank, and so is the second derivative. The third derivative is infinite
    or NaN where singular values repeat.

    Python array API standard, linear algebra extension: ``det``.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.Tensor([[1.0, 2.0], [2.0, 4.0]], requires_grad=True)
    >>> xgrad.linalg.det(x).backward()
    >>> xgrad.round(x.grad)
    Tensor([[ 4., -2.],
            [-2.,  1.]])
    """
    check_square(x)
    return xp.linalg.det(x)


def _slogdet_rule(g: Any, xp: Any, x: Any, out: Any) -> Any:
    (turn, change), (sign, _) = g, out
    if is_complex(sign.dtype):
        turn = xp.conj(sign) * turn
        change = change + (turn - xp.conj(turn)) / 2
    return change[..., None, None] * adjoint(xp, xp.linalg.inv(x))


@derivative(_slogdet_rule, lowest=FLOATING, holomorphic=False)
def _slogdet(xp: Any, x: Any, /) -> Any:
    check_square(x)
    return tuple(xp.linalg.slogdet(x))


def slogdet(x: Tensor, /) -> SlogdetResult:
    r"""Return the signs of determinants, and the logarithms of their absolute values.

    The determinants themselves may be too large for a float.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, n); integers count as float32.

    Returns
    -------
    sign : Tensor
        Of shape (...): 1, -1, or 0 for a singular matrix; for complex matrices a number of
        absolute value 1, or 0.
    logabsdet : Tensor
        Of shape (...), real; -inf for a singular matrix.

    Raises
    ------
    ValueError
        If the matrices are not square.

    Notes
    -----
    .. math:: s = \frac{\det(X)}{|\det(X)|}, \quad l = \ln(|\det(X)|)

    - Gradient for `x`: :math:`\bar l X^{-\top}`; for complex matrices
      :math:`(\bar l + i \operatorname{Im}(\bar s / s)) X^{-H}`, while a real sign is constant

    A singular matrix has no derivative: the backward pass raises an error, or on ``cuda`` returns
    an infinite or NaN gradient.

    Python array API standard, linear algebra extension: ``slogdet``.

    Examples
    --------
    >>> import xgrad
    >>> sign, logabsdet = xgrad.linalg.slogdet(xgrad.asarray([[0.0, 1.0], [1.0, 0.0]]))
    >>> sign, logabsdet
    (Tensor(-1.), Tensor(0.))
    """
    return SlogdetResult(*_slogdet(x))


# Inverses


@derivative(
    lambda g, xp, out: -(xp.matrix_transpose(out) @ g @ xp.matrix_transpose(out)), lowest=FLOATING
)
def inv(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the inverses of square matrices.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, n); integers count as float32.

    Returns
    -------
    Tensor
        Same shape as `x`.

    Raises
    ------
    ValueError
        If the matrices are not square.
    numpy.linalg.LinAlgError
        If a matrix is singular; on ``cuda`` the result is NaN or infinite instead.

    Notes
    -----
    .. math:: Y = X^{-1}

    - Gradient for `x`: :math:`-Y^\top \bar Y Y^\top`

    To solve a linear system, `solve` is faster and more accurate.

    Python array API standard, linear algebra extension: ``inv``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.linalg.inv(xgrad.asarray([[2.0, 0.0], [0.0, 4.0]]))
    Tensor([[0.5 , 0.  ],
            [0.  , 0.25]])
    """
    check_square(x)
    return xp.linalg.inv(x)


def _solve_right(g: Any, xp: Any, x1: Any, x2_shape: tuple[int, ...]) -> Any:
    vector = len(x2_shape) == 1
    out = call_op(solve, xp, xp.matrix_transpose(x1), g[..., None] if vector else g)
    return out[..., 0] if vector else out


def _solve_left(g: Any, xp: Any, x1: Any, x2_shape: tuple[int, ...], out: Any) -> Any:
    if len(x2_shape) == 1:
        g, out = g[..., None], out[..., None]
    adjoint_solution = call_op(solve, xp, xp.matrix_transpose(x1), g)
    if len(x1.shape) == 2 < len(out.shape):  # sums the gradients of a batch without computing each
        summed = (*range(len(out.shape) - 2), len(out.shape) - 1)
        return -xp.tensordot(adjoint_solution, out, axes=(summed, summed))
    return -(adjoint_solution @ xp.matrix_transpose(out))


@derivative(_solve_left, _solve_right, lowest=FLOATING)
def solve(xp: Any, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    r"""Return the solutions X of ``x1 @ X = x2``.

    Parameters
    ----------
    x1 : Tensor
        Matrices of shape (..., n, n); integers count as float32.
    x2 : Tensor
        One vector of shape (n,), or matrices of shape (..., n, k), where several vectors are
        columns. The batch axes of `x1` and `x2` broadcast.

    Returns
    -------
    Tensor
        Of shape (..., n) for a vector, else (..., n, k).

    Raises
    ------
    ValueError
        If the matrices are not square, or the shapes do not fit.
    numpy.linalg.LinAlgError
        If a matrix is singular; on ``cuda`` the result is NaN or infinite instead.
    DeviceError
        If the tensors are on different devices.

    Notes
    -----
    .. math:: Y = X_1^{-1} X_2

    - Gradient for `x1`: :math:`-X_1^{-\top} \bar Y Y^\top`
    - Gradient for `x2`: :math:`X_1^{-\top} \bar Y`

    Python array API standard, linear algebra extension: ``solve``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.linalg.solve(
    ...     xgrad.asarray([[2.0, 0.0], [0.0, 4.0]]), xgrad.asarray([1.0, 1.0])
    ... )
    Tensor([0.5 , 0.25])
    """
    check_square(x1)
    batches, vector = [tuple(x.shape[:-2]) for x in (x1, x2)], len(x2.shape) == 1
    if not x2.shape or x2.shape[-1 if vector else -2] != x1.shape[-1]:
        raise ValueError("expected a vector of shape (n,) or matrices of shape (..., n, k) for x2")
    if batches[0] == batches[1]:
        return xp.linalg.solve(x1, x2)
    if len(x1.shape) == 2 and not vector:  # one matrix, factored once: all vectors become columns
        columns = xp.moveaxis(x2, -2, 0)
        out = xp.linalg.solve(x1, xp.reshape(columns, (x1.shape[-1], math.prod(columns.shape[1:]))))
        return xp.moveaxis(xp.reshape(out, columns.shape), 0, -2)
    # CuPy does not broadcast. CuPy and PyTorch take matrices for vectors if x2 has one axis less
    # than x1.
    x2, shape = x2[:, None] if vector else x2, np.broadcast_shapes(*batches)
    x1, x2 = [xp.broadcast_to(x, (*shape, *x.shape[-2:])) for x in (x1, x2)]
    out = xp.linalg.solve(x1, x2)
    return out[..., 0] if vector else out


def _pinv_rule(g: Any, xp: Any, x: Any, out: Any) -> Any:
    up, back = adjoint(xp, g), adjoint(xp, out)
    if x.shape[-2] >= x.shape[-1]:  # in an order that avoids large intermediate matrices
        narrow, wide = up @ (out @ back), back @ (out @ up)
        return narrow - x @ (out @ narrow) + wide - wide @ (out @ x) - back @ (g @ back)
    narrow, wide = (up @ out) @ back, (back @ out) @ up
    return narrow - (x @ out) @ narrow + wide - (wide @ out) @ x - (back @ g) @ back


@derivative(_pinv_rule, None, lowest=FLOATING, holomorphic=False)
def _pinv(xp: Any, x: Any, rtol: Any = None, /) -> Any:
    check_matrices(x)
    return xp.linalg.pinv(x, rtol=rtol)


def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    r"""Return the Moore-Penrose pseudo-inverses.

    Parameters
    ----------
    x : Tensor
        Of shape (..., m, n); integers count as float32.
    rtol : float or Tensor, optional
        Singular values up to this fraction of the largest count as 0: one number, or one for each
        matrix; by default max(m, n) times the machine epsilon of the dtype.

    Returns
    -------
    Tensor
        Of shape (..., n, m).

    Raises
    ------
    ValueError
        If `x` has fewer than two axes.
    numpy.linalg.LinAlgError
        If `x` holds NaN or infinity, on ``cpu``, or the computation does not converge.

    Notes
    -----
    .. math:: Y = X^+

    - Gradient for `x`: :math:`-Y^H \bar Y Y^H + (I - X Y) \bar Y^H Y Y^H + Y^H Y \bar Y^H (I - Y
      X)`

    The derivative is along changes that preserve the rank (G. H. Golub and V. Pereyra, "The
    differentiation of pseudo-inverses and nonlinear least squares problems whose variables
    separate", 1973); where the rank changes, the pseudo-inverse is discontinuous.

    Python array API standard, linear algebra extension: ``pinv``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.linalg.pinv(xgrad.asarray([[2.0, 0.0], [0.0, 0.0], [0.0, 0.0]]))
    Tensor([[0.5, 0. , 0. ],
            [0. , 0. , 0. ]])
    """
    return _pinv(x, rtol)


@derivative(None, None, lowest=FLOATING)
def _matrix_rank(xp: Any, x: Any, rtol: Any = None, /) -> Any:
    check_matrices(x)
    if 0 in x.shape[-2:]:
        return xp.zeros(x.shape[:-2], dtype=xp.int64, device=getattr(x, "device", None))
    return xp.linalg.matrix_rank(x, rtol=rtol)


def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """Return the ranks of matrices; not differentiable.

    Parameters
    ----------
    x : Tensor
        Of shape (..., m, n); integers count as float32.
    rtol : float or Tensor, optional
        Singular values up to this fraction of the largest count as 0: one number, or one for each
        matrix; by default max(m, n) times the machine epsilon of the dtype.

    Returns
    -------
    Tensor
        int64, of shape (...).

    Raises
    ------
    ValueError
        If `x` has fewer than two axes.
    numpy.linalg.LinAlgError
        If `x` holds NaN or infinity, on ``cpu``.

    Notes
    -----
    Python array API standard, linear algebra extension: ``matrix_rank``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.linalg.matrix_rank(xgrad.asarray([[1.0, 2.0], [2.0, 4.0]]))
    Tensor(1)
    """
    return _matrix_rank(x, rtol)
