"""Cholesky, QR and singular value decompositions, and their derivatives.

After M. Giles, "An extended collection of matrix derivative results for forward and reverse mode
algorithmic differentiation" (2008); S. Walter and L. Lehmann, "Algorithmic differentiation of
linear algebra functions with application in optimum experimental design" (2010), for QR; J.
Townsend, "Differentiating the singular value decomposition" (2016). Singular vectors are determined
up to a sign, or up to a phase if they are complex. Derivatives are defined for losses that do not
depend on the sign or phase.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from xgrad.backend.device import Device
from xgrad.core.arguments import ArrayLike
from xgrad.core.dtypes import FLOATING, is_complex
from xgrad.core.tensor import Tensor
from xgrad.ops.declare import derivative
from xgrad.ops.eigen import check_phases, minus_adjoint, safe_divide
from xgrad.ops.matrix_products import adjoint, check_matrices, check_square, identity
from xgrad.support.hints import shown


class QRResult(NamedTuple):
    """The result of `qr`."""

    Q: Tensor
    R: Tensor


class SVDResult(NamedTuple):
    """The result of `svd`."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def _hermitian(xp: Any, x: Any) -> Any:
    """Return the Hermitian matrix with the lower triangle of `x`."""
    lower = xp.tril(x) * (1 - identity(xp, x) / 2)
    return lower + adjoint(xp, lower)


def _leading_columns(xp: Any, q: Any, g: Any, count: int) -> tuple[Any, Any]:
    """Return the first columns of a unitary matrix, and their total gradient.

    It includes the gradient of the other columns, which span the orthogonal complement and rotate
    with the first ones.
    """
    if q.shape[-1] == count:
        return q, g
    return q[..., :count], g[..., :count] - q[..., count:] @ (
        adjoint(xp, g[..., count:]) @ q[..., :count]
    )


def _cholesky_rule(g: Any, xp: Any, out: Any, upper: bool) -> Any:
    up, g = (out, adjoint(xp, g)) if upper else (adjoint(xp, out), g)
    half = xp.linalg.solve(up, _hermitian(xp, up @ g) / 2)
    return xp.linalg.solve(up, adjoint(xp, half))


@derivative(_cholesky_rule, lowest=FLOATING, holomorphic=False)
def cholesky(xp: Any, x: ArrayLike, /, *, upper: bool = False) -> Any:
    r"""Return the triangular Cholesky factors of matrices.

    Parameters
    ----------
    x : Tensor
        Positive definite matrices, symmetric or Hermitian, of shape (..., n, n); only one triangle
        is read. Integers count as float32.
    upper : bool, default False
        Whether to return upper triangular matrices U, with ``x = U.H @ U``, instead of lower
        triangular L, with ``x = L @ L.H``.

    Returns
    -------
    Tensor
        Of the shape of `x`, with zeros in the other triangle.

    Raises
    ------
    ValueError
        If the matrices are not square.
    numpy.linalg.LinAlgError
        If a matrix is not positive definite; on ``cuda`` the result is NaN instead.

    Notes
    -----
    .. math:: X = L L^H

    - Gradient for `x`: :math:`\tfrac{1}{2} L^{-H} \operatorname{herm}(L^H \bar L) L^{-1}`, with
      the Hermitian matrix :math:`\operatorname{herm}(A)` that has the lower triangle of :math:`A`;
      for `upper`, :math:`L = U^H`

    The gradient is Hermitian.

    Python array API standard, linear algebra extension: ``cholesky``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.linalg.cholesky(xgrad.asarray([[4.0, 2.0], [2.0, 10.0]]))
    Tensor([[2., 0.],
            [1., 3.]])
    """
    check_square(x)
    return xp.linalg.cholesky(x, upper=upper)


def _qr_rule(g: Any, xp: Any, out: Any) -> Any:
    (gq, gr), (q, r) = g, out
    rows, columns = q.shape[-2], r.shape[-1]
    count, rest = min(rows, columns), None
    q, gq = _leading_columns(xp, q, gq, count)
    r, gr = r[..., :count, :], gr[..., :count, :]
    if columns > rows:  # the columns of R to the right of the square part are Q.H @ X
        rest = q @ gr[..., rows:]
        gq = gq + q @ (r[..., rows:] @ adjoint(xp, gr[..., rows:]))
        r, gr = r[..., :rows], gr[..., :rows]
    inner = r @ adjoint(xp, gr) - adjoint(xp, gq) @ q
    gq = gq + q @ _hermitian(xp, inner)
    gx = adjoint(xp, xp.linalg.solve(r, adjoint(xp, gq)))
    return gx if rest is None else xp.concat([gx, rest], axis=-1)


@derivative(_qr_rule, lowest=FLOATING, holomorphic=False)
def _qr(xp: Any, x: Any, /, *, mode: str) -> Any:
    if mode not in ("reduced", "complete"):
        raise ValueError(f"expected mode 'reduced' or 'complete', got {shown(mode)}")
    check_matrices(x)
    return tuple(xp.linalg.qr(x, mode=mode))


def qr(x: Tensor, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    r"""Return the QR decomposition of matrices into a unitary and an upper triangular matrix.

    Parameters
    ----------
    x : Tensor
        Of shape (..., m, n); integers count as float32.
    mode : {"reduced", "complete"}, default "reduced"
        Whether Q has k = min(m, n) columns, or k = m.

    Returns
    -------
    Q : Tensor
        Of shape (..., m, k), with orthonormal columns.
    R : Tensor
        Of shape (..., k, n), upper triangular; the elements of its diagonal are real, of either
        sign.

    Raises
    ------
    ValueError
        If `x` has fewer than two axes, or there is no such mode.

    Notes
    -----
    .. math:: X = Q R

    - Gradient for `x`: :math:`(\bar Q + Q \operatorname{herm}(R \bar R^H - \bar Q^H Q)) R^{-H}`
      for :math:`m \ge n`, with the Hermitian matrix :math:`\operatorname{herm}(A)` that has the
      lower triangle of :math:`A`

    For :math:`m < n`, that is the gradient of the first :math:`m` columns of :math:`X`, with
    :math:`R` of these columns, and :math:`\bar Q + X_2 \bar R_2^H` in place of :math:`\bar Q`. The
    other columns :math:`X_2 = Q R_2` get :math:`Q \bar R_2`.

    The derivative exists where the first min(m, n) columns of `x` are independent. Elsewhere, the
    backward pass raises an error, or the gradient is infinite or NaN. The columns that "complete"
    adds are determined up to a rotation. They have a derivative for losses that do not depend on
    the rotation.

    Python array API standard, linear algebra extension: ``qr``.

    Examples
    --------
    >>> import xgrad
    >>> q, r = xgrad.linalg.qr(xgrad.asarray([[3.0, 1.0], [4.0, 2.0]]))
    >>> xgrad.abs(r)
    Tensor([[5. , 2.2],
            [0. , 0.4]])
    """
    return QRResult(*_qr(x, mode=mode))


def _svd_rule(g: Any, xp: Any, out: Any, x_device: Device) -> Any:
    (gu, gs, gvh), (u, s, vh) = g, out
    u, gu = _leading_columns(xp, u, gu, s.shape[-1])
    v, gv = _leading_columns(xp, adjoint(xp, vh), adjoint(xp, gvh), s.shape[-1])
    if is_complex(u.dtype):
        check_phases("svd", xp, x_device, (u, gu), (v, gv))
    by_u, by_v = adjoint(xp, u) @ gu, adjoint(xp, v) @ gv
    column, row, diagonal = s[..., :, None], s[..., None, :], identity(xp, s)
    gaps = (row - column) * (row + column) + diagonal
    rotation = minus_adjoint(xp, by_u)
    inner = (
        diagonal * gs[..., None, :]
        + safe_divide(xp, rotation, gaps) * row
        + column * safe_divide(xp, minus_adjoint(xp, by_v), gaps)
    )
    if is_complex(u.dtype):  # a loss may depend on the phases through U and Vh together
        inner = inner + safe_divide(xp, diagonal * rotation / 2, row)
    left = u @ inner
    if u.shape[-2] > s.shape[-1]:
        left = left + safe_divide(xp, gu - u @ by_u, row)
    gx = left @ adjoint(xp, v)
    return (
        gx
        if v.shape[-2] == s.shape[-1]
        else gx + u @ adjoint(xp, safe_divide(xp, gv - v @ by_v, row))
    )


@derivative(_svd_rule, lowest=FLOATING, holomorphic=False)
def _svd(xp: Any, x: Any, /, *, full_matrices: bool) -> Any:
    check_matrices(x)
    return tuple(xp.linalg.svd(x, full_matrices=full_matrices))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    r"""Return the singular value decomposition ``U @ diag(S) @ Vh``.

    Parameters
    ----------
    x : Tensor
        Of shape (..., m, n); integers count as float32.
    full_matrices : bool, default True
        Whether U and Vh are square. If False, U has as many columns, and Vh as many rows, as there
        are singular values.

    Returns
    -------
    U : Tensor
        Of shape (..., m, m), or (..., m, k), with orthonormal columns.
    S : Tensor
        The singular values, of shape (..., k) with k = min(m, n), real, the largest first.
    Vh : Tensor
        Of shape (..., n, n), or (..., k, n), with orthonormal rows.

    Raises
    ------
    ValueError
        If `x` has fewer than two axes.
    numpy.linalg.LinAlgError
        If `x` holds NaN or infinity, on ``cpu``, or the computation does not converge.
    RuntimeError
        In the backward pass, if the loss depends on the phases of complex vectors, as with `eig`.
        Corresponding vectors of U and V share a phase.

    Notes
    -----
    .. math:: X = U S V^H

    With :math:`F_{ij} = 1 / (s_j^2 - s_i^2)` for :math:`i \ne j`, :math:`F_{ii} = 0`, and
    :math:`\operatorname{skew}(A) = A - A^H`, all for the first :math:`k` columns of :math:`U` and
    :math:`V`:

    - Gradient for `x`: :math:`U D V^H + (I - U U^H) \bar U S^{-1} V^H + U S^{-1} \bar V^H (I - V
      V^H)`, where :math:`D = \bar S + (F \odot \operatorname{skew}(U^H \bar U)) S + S (F \odot
      \operatorname{skew}(V^H \bar V))`; for complex numbers,
      :math:`\tfrac{1}{2} \operatorname{skew}(U^H \bar U) S^{-1}` is added on the diagonal of
      :math:`D`

    Where singular values repeat, and where one is 0, singular vectors have no derivative: the
    gradient is infinite or NaN if the loss depends on them. If the loss depends on the singular
    values alone, the gradient stays finite, as with `svdvals`. The columns that `full_matrices`
    adds are determined up to a rotation. They have a derivative for losses that do not depend on
    the rotation.

    Python array API standard, linear algebra extension: ``svd``.

    Examples
    --------
    >>> import xgrad
    >>> u, s, vh = xgrad.linalg.svd(xgrad.asarray([[0.0, 2.0], [3.0, 0.0], [0.0, 0.0]]))
    >>> u.shape, s, vh.shape
    ((3, 3), Tensor([3., 2.]), (2, 2))
    """
    return SVDResult(*_svd(x, full_matrices=full_matrices))


def _svdvals_rule(g: Any, xp: Any, x: Any) -> Any:
    u, _, vh = xp.linalg.svd(x, full_matrices=False)
    return (u * g[..., None, :]) @ vh


@derivative(_svdvals_rule, lowest=FLOATING, holomorphic=False)
def svdvals(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the singular values of matrices.

    Parameters
    ----------
    x : Tensor
        Of shape (..., m, n); integers count as float32.

    Returns
    -------
    Tensor
        Of shape (..., min(m, n)), real, the largest first.

    Raises
    ------
    ValueError
        If `x` has fewer than two axes.
    numpy.linalg.LinAlgError
        If `x` holds NaN or infinity, on ``cpu``, or the computation does not converge.

    Notes
    -----
    .. math:: X = U \operatorname{diag}(y) V^H

    - Gradient for `x`: :math:`U \operatorname{diag}(\bar y) V^H`

    Where singular values repeat, and where one is 0, the gradient is finite but not unique: it
    depends on the singular vectors that were found. The second derivative is infinite or NaN there,
    unless it does not depend on how the singular values separate.

    Python array API standard, linear algebra extension: ``svdvals``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.linalg.svdvals(xgrad.asarray([[0.0, 2.0], [3.0, 0.0]]))
    Tensor([3., 2.])
    """
    check_matrices(x)
    return xp.linalg.svdvals(x)
