"""Matrices as products of simpler ones, and the derivatives of these.

After M. Giles, "An extended collection of matrix derivative results for forward and reverse mode algorithmic
differentiation" (2008); S. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra functions with
application in optimum experimental design" (2010), for QR; J. Townsend, "Differentiating the singular value
decomposition" (2016); C. Boeddeker et al., "On the computation of complex-valued gradients with application to
statistically optimum beamforming" (2017), for `eig`. Eigenvectors and singular vectors are determined up to a sign, or
a phase where they are complex: a derivative means something for what does not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from xgrad.backend.device import Device
from xgrad.core.arguments import as_tensor
from xgrad.core.dtypes import FLOATING, is_complex
from xgrad.core.grad_mode import grad_enabled
from xgrad.core.tensor import Tensor
from xgrad.ops.declare import derivative
from xgrad.ops.matrix_products import adjoint, check_matrices, check_square, identity
from xgrad.support.docstrings import documented
from xgrad.support.hints import shown


class EigResult(NamedTuple):
    """The result of `eig`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class EighResult(NamedTuple):
    """What `eigh` returns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """What `qr` returns."""

    Q: Tensor
    R: Tensor


class SVDResult(NamedTuple):
    """What `svd` returns."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def _hermitian(xp: Any, x: Any) -> Any:
    """Return the Hermitian matrix that has the lower triangle of `x`."""
    lower = xp.tril(x) * (1 - identity(xp, x) / 2)
    return lower + adjoint(xp, lower)


def _skew(xp: Any, x: Any) -> Any:
    return x - adjoint(xp, x)


def _safe_divide(xp: Any, a: Any, b: Any) -> Any:
    """Divide, 0 by 0 giving 0: where nothing depends on a vector, it does not matter that it has no derivative."""
    return a / xp.where((a == 0) & (b == 0), 1, b)


def _columns(xp: Any, q: Any, g: Any, count: int) -> tuple[Any, Any]:
    """Return the first columns of a unitary matrix, and their gradient with that of the others in it.

    The others span what the first leave, and turn with them.
    """
    if q.shape[-1] == count:
        return q, g
    return q[..., :count], g[..., :count] - q[..., count:] @ (adjoint(xp, g[..., count:]) @ q[..., :count])


def _check_phases(op: str, xp: Any, device: Device, *pairs: tuple[Any, Any]) -> None:
    """Raise RuntimeError if a loss depends on the phases of complex columns, given these and their gradients.

    Columns that are in proportion to each other, one of each pair, have the same phase. As in PyTorch, a small
    dependence is tolerated: rounding leaves one.
    """
    slopes = sum(xp.imag(xp.sum(xp.conj(columns) * g, axis=-2)) for columns, g in pairs)
    sizes = sum(xp.sum(xp.abs(g), axis=-2) for _, g in pairs)
    wrong = xp.any(xp.abs(slopes) > 0.01 + 0.01 * sizes)
    for holder in ("_data", "array"):  # of a tensor, and of a traced array: of a captured step, one run is checked
        wrong = getattr(wrong, holder, wrong)
    if not device.backend.asynchronous and bool(wrong):
        raise RuntimeError(
            f"{op}: expected a loss that does not depend on the phases of the vectors, which are arbitrary, got one "
            "that does: take abs(vectors), or divide each vector by the phase of one of its elements"
        )


def _cholesky_rule(g: Any, xp: Any, out: Any, upper: bool) -> Any:
    up, g = (out, adjoint(xp, g)) if upper else (adjoint(xp, out), g)
    half = xp.linalg.solve(up, _hermitian(xp, up @ g) / 2)
    return xp.linalg.solve(up, adjoint(xp, half))


@derivative(_cholesky_rule, kind=FLOATING, holomorphic=False)
@documented("linear algebra extension")
def cholesky(xp: Any, x: Any, /, *, upper: bool = False) -> Any:
    """Return the triangular matrices whose product with their adjoints the matrices are.

    x : Tensor
        Positive definite matrices, symmetric or Hermitian, of shape (..., n, n); only one triangle is read. Integers
        count as float32.
    upper : bool, default False
        Whether to return the upper triangular matrices U of ``U.H @ U`` in the place of the lower L of ``L @ L.H``.
    returns Tensor
        Of the shape of `x`, with zeros in the other triangle.
    raises ValueError
        If the matrices are not square.
    raises numpy.linalg.LinAlgError
        If one is not positive definite; on ``cuda`` the result is NaN instead.

    The gradient is Hermitian.

    >>> xgrad.linalg.cholesky(xgrad.asarray([[4.0, 2.0], [2.0, 10.0]]))
    Tensor([[2., 0.],
            [1., 3.]])
    """
    check_square(x)
    return xp.linalg.cholesky(x, upper=upper)


def _eig_rule(g: Any, xp: Any, out: Any, x_device: Device) -> Any:
    (g_values, g_vectors), (values, vectors) = g, out
    _check_phases("eig", xp, x_device, (vectors, g_vectors))
    left, diagonal = adjoint(xp, vectors), identity(xp, values)
    lengthened = xp.real(xp.sum(xp.conj(vectors) * g_vectors, axis=-2))  # what length 1 excludes
    turned = left @ (g_vectors - vectors * lengthened[..., None, :])
    gaps = xp.conj(values[..., None, :] - values[..., :, None]) + diagonal
    inner = xp.where(diagonal == 1, g_values[..., None, :], _safe_divide(xp, turned, gaps))
    return xp.linalg.solve(left, inner @ left)


@derivative(_eig_rule, kind=FLOATING, holomorphic=False)
def _eig(xp: Any, x: Any, /) -> Any:
    return _complex(xp, xp.linalg.eig, x)


@derivative(None, kind=FLOATING)
def _eigvals(xp: Any, x: Any, /) -> Any:
    return _complex(xp, lambda x: (xp.linalg.eigvals(x),), x)[0]


def _complex(xp: Any, solve: Callable[[Any], tuple[Any, ...]], x: Any) -> tuple[Any, ...]:
    """Return what a solver finds as complex numbers: NumPy's are real where all eigenvalues are."""
    check_square(x)
    dtype = xp.complex64 if x.dtype in (xp.float32, xp.complex64) else xp.complex128
    return tuple([part if is_complex(part.dtype) else xp.astype(part, dtype) for part in solve(x)])


@documented("linear algebra extension")
def eig(x: Tensor, /) -> EigResult:
    """Return the eigenvalues and eigenvectors of square matrices.

    x : Tensor
        Of shape (..., n, n); integers count as float32. For symmetric or Hermitian matrices, see `eigh`.
    returns eigenvalues : Tensor
        Of shape (..., n), complex, in no particular order.
    returns eigenvectors : Tensor
        Of shape (..., n, n), complex: the columns are the vectors, of length 1.
    raises ValueError
        If the matrices are not square.
    raises numpy.linalg.LinAlgError
        If the computation does not converge, or an element is infinite or NaN.
    raises RuntimeError
        In the backward pass, if the loss depends on the phases of the vectors, as in PyTorch; ``cuda`` does not wait
        to find out. On ``cuda``, if the cuSOLVER of an older CUDA lacks the function.

    Where eigenvalues repeat, eigenvectors have no derivative: the gradient is infinite or NaN as soon as something
    depends on them. That of the eigenvalues alone is then one of several, by the vectors that were found. Where a
    matrix has fewer than n independent vectors, neither has a derivative: the gradient is huge, infinite or NaN, or the
    backward pass raises LinAlgError.

    >>> values, vectors = xgrad.linalg.eig(xgrad.asarray([[0.0, -1.0], [1.0, 0.0]]))
    >>> values, xgrad.abs(vectors)
    (Tensor([0.+1.j, 0.-1.j], dtype=complex64), Tensor([[0.7..., 0.7...],
            [0.7..., 0.7...]]))
    """
    return EigResult(*_eig(x))


@documented("linear algebra extension")
def eigvals(x: Tensor, /) -> Tensor:
    """Return the eigenvalues of square matrices.

    x : Tensor
        Of shape (..., n, n); integers count as float32. For symmetric or Hermitian matrices, see `eigvalsh`.
    returns Tensor
        Of shape (..., n), complex, in no particular order.
    raises ValueError
        If the matrices are not square.
    raises numpy.linalg.LinAlgError
        If the computation does not converge, or an element is infinite or NaN.
    raises RuntimeError
        On ``cuda``, if the cuSOLVER of an older CUDA lacks the function.

    Where a gradient is wanted, these are the eigenvalues of `eig`, with whose vectors it is computed; where eigenvalues
    repeat, it is as there.

    >>> xgrad.linalg.eigvals(xgrad.asarray([[0.0, -1.0], [1.0, 0.0]]))
    Tensor([0.+1.j, 0.-1.j], dtype=complex64)
    """
    x = as_tensor("eigvals", "x", x)
    return eig(x).eigenvalues if x.requires_grad and grad_enabled.get() else _eigvals(x)


def _eigh_rule(g: Any, xp: Any, out: Any, x_device: Device) -> Any:
    (g_values, g_vectors), (values, vectors) = g, out
    if is_complex(vectors.dtype):
        _check_phases("eigh", xp, x_device, (vectors, g_vectors))
    diagonal = identity(xp, values)
    gaps = values[..., None, :] - values[..., :, None] + diagonal
    inner = _safe_divide(xp, _skew(xp, adjoint(xp, vectors) @ g_vectors) / 2, gaps) + diagonal * g_values[..., None, :]
    return vectors @ inner @ adjoint(xp, vectors)


@derivative(_eigh_rule, kind=FLOATING, holomorphic=False)
def _eigh(xp: Any, x: Any, /) -> Any:
    check_square(x)
    return tuple(xp.linalg.eigh(x))


@documented("linear algebra extension")
def eigh(x: Tensor, /) -> EighResult:
    """Return the eigenvalues and eigenvectors of symmetric or Hermitian matrices.

    x : Tensor
        Of shape (..., n, n); only one triangle is read. Integers count as float32.
    returns eigenvalues : Tensor
        Of shape (..., n), real, the smallest first.
    returns eigenvectors : Tensor
        Of shape (..., n, n): unitary matrices, whose columns are the vectors.
    raises ValueError
        If the matrices are not square.
    raises numpy.linalg.LinAlgError
        If the computation does not converge.
    raises RuntimeError
        In the backward pass, if the loss depends on the phases of complex vectors, as with `eig`.

    The gradient is Hermitian. Where eigenvalues repeat, eigenvectors have no derivative: the gradient is infinite or
    NaN as soon as something depends on them. That of the eigenvalues alone stays finite; it is then one of several,
    by the vectors that were found.

    >>> values, vectors = xgrad.linalg.eigh(xgrad.asarray([[2.0, 0.0], [0.0, 1.0]]))
    >>> values, xgrad.abs(vectors)
    (Tensor([1., 2.]), Tensor([[0., 1.],
            [1., 0.]]))
    """
    return EighResult(*_eigh(x))


def _eigvalsh_rule(g: Any, xp: Any, x: Any) -> Any:
    _, vectors = xp.linalg.eigh(x)
    return (vectors * g[..., None, :]) @ adjoint(xp, vectors)


@derivative(_eigvalsh_rule, kind=FLOATING, holomorphic=False)
@documented("linear algebra extension")
def eigvalsh(xp: Any, x: Any, /) -> Any:
    """Return the eigenvalues of symmetric or Hermitian matrices.

    x : Tensor
        Of shape (..., n, n); only one triangle is read. Integers count as float32.
    returns Tensor
        Of shape (..., n), real, the smallest first.
    raises ValueError
        If the matrices are not square.
    raises numpy.linalg.LinAlgError
        If the computation does not converge.

    The gradient is Hermitian, and finite where eigenvalues repeat too; it is then one of several. The second
    derivative is infinite or NaN there, unless it does not depend on how they part.

    >>> xgrad.linalg.eigvalsh(xgrad.asarray([[2.0, 1.0], [1.0, 2.0]]))
    Tensor([1., 3.])
    """
    check_square(x)
    return xp.linalg.eigvalsh(x)


def _qr_rule(g: Any, xp: Any, out: Any) -> Any:
    (gq, gr), (q, r) = g, out
    rows, columns = q.shape[-2], r.shape[-1]
    count, rest = min(rows, columns), None
    q, gq = _columns(xp, q, gq, count)
    r, gr = r[..., :count, :], gr[..., :count, :]
    if columns > rows:  # those to the right are R = Q.H @ X
        rest = q @ gr[..., rows:]
        gq = gq + q @ (r[..., rows:] @ adjoint(xp, gr[..., rows:]))
        r, gr = r[..., :rows], gr[..., :rows]
    inner = r @ adjoint(xp, gr) - adjoint(xp, gq) @ q
    gq = gq + q @ _hermitian(xp, inner)
    gx = adjoint(xp, xp.linalg.solve(r, adjoint(xp, gq)))
    return gx if rest is None else xp.concat([gx, rest], axis=-1)


@derivative(_qr_rule, kind=FLOATING, holomorphic=False)
def _qr(xp: Any, x: Any, /, *, mode: str) -> Any:
    if mode not in ("reduced", "complete"):
        raise ValueError(f"expected mode 'reduced' or 'complete', got {shown(mode)}")
    check_matrices(x)
    return tuple(xp.linalg.qr(x, mode=mode))


@documented("linear algebra extension")
def qr(x: Tensor, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """Return matrices as products of a unitary and an upper triangular one.

    x : Tensor
        Of shape (..., m, n); integers count as float32.
    mode : {"reduced", "complete"}, default "reduced"
        Whether Q has k = min(m, n) columns, or k = m.
    returns Q : Tensor
        Of shape (..., m, k), with orthonormal columns.
    returns R : Tensor
        Of shape (..., k, n), upper triangular; each element of its diagonal is real, of either sign.
    raises ValueError
        If `x` has fewer than two axes, or there is no such mode.

    There is a derivative where the first min(m, n) columns of `x` are independent. Elsewhere the backward pass raises
    an error, or the gradient is infinite or NaN. The columns that "complete" adds are determined up to a rotation, and
    have a derivative for what does not depend on it.

    >>> q, r = xgrad.linalg.qr(xgrad.asarray([[3.0, 1.0], [4.0, 2.0]]))
    >>> xgrad.abs(r)
    Tensor([[5. , 2.2],
            [0. , 0.4...]])
    """
    return QRResult(*_qr(x, mode=mode))


def _svd_rule(g: Any, xp: Any, out: Any, x_device: Device) -> Any:
    (gu, gs, gvh), (u, s, vh) = g, out
    u, gu = _columns(xp, u, gu, s.shape[-1])
    v, gv = _columns(xp, adjoint(xp, vh), adjoint(xp, gvh), s.shape[-1])
    if is_complex(u.dtype):
        _check_phases("svd", xp, x_device, (u, gu), (v, gv))
    by_u, by_v = adjoint(xp, u) @ gu, adjoint(xp, v) @ gv
    column, row, diagonal = s[..., :, None], s[..., None, :], identity(xp, s)
    gaps = (row - column) * (row + column) + diagonal
    turned = _skew(xp, by_u)
    inner = (
        diagonal * gs[..., None, :]
        + _safe_divide(xp, turned, gaps) * row
        + column * _safe_divide(xp, _skew(xp, by_v), gaps)
    )
    if is_complex(u.dtype):  # phases, which a loss may depend on through U and Vh together
        inner = inner + _safe_divide(xp, diagonal * turned / 2, row)
    left = u @ inner
    if u.shape[-2] > s.shape[-1]:
        left = left + _safe_divide(xp, gu - u @ by_u, row)
    gx = left @ adjoint(xp, v)
    return gx if v.shape[-2] == s.shape[-1] else gx + u @ adjoint(xp, _safe_divide(xp, gv - v @ by_v, row))


@derivative(_svd_rule, kind=FLOATING, holomorphic=False)
def _svd(xp: Any, x: Any, /, *, full_matrices: bool) -> Any:
    check_matrices(x)
    return tuple(xp.linalg.svd(x, full_matrices=full_matrices))


@documented("linear algebra extension")
def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """Return the singular value decomposition ``U @ diag(S) @ Vh``.

    x : Tensor
        Of shape (..., m, n); integers count as float32.
    full_matrices : bool, default True
        Whether U and Vh are square; otherwise they have as many columns, and rows, as there are singular values.
    returns U : Tensor
        Of shape (..., m, m), or (..., m, k), with orthonormal columns.
    returns S : Tensor
        The singular values, of shape (..., k) with k = min(m, n), real, the largest first.
    returns Vh : Tensor
        Of shape (..., n, n), or (..., k, n), with orthonormal rows.
    raises ValueError
        If `x` has fewer than two axes.
    raises numpy.linalg.LinAlgError
        If `x` holds NaN or infinity, on ``cpu``, or the computation does not converge.
    raises RuntimeError
        In the backward pass, if the loss depends on the phases of complex vectors, as with `eig`, which a vector of U
        and the one of V beside it share.

    Where singular values repeat, and where one is 0, singular vectors have no derivative: the gradient is infinite or
    NaN as soon as something depends on them. That of the singular values alone stays finite, as with `svdvals`. The
    columns that `full_matrices` adds are determined up to a rotation, and have a derivative for what does not depend
    on it.

    >>> u, s, vh = xgrad.linalg.svd(xgrad.asarray([[0.0, 2.0], [3.0, 0.0], [0.0, 0.0]]))
    >>> u.shape, s, vh.shape
    ((3, 3), Tensor([3., 2.]), (2, 2))
    """
    return SVDResult(*_svd(x, full_matrices=full_matrices))


def _svdvals_rule(g: Any, xp: Any, x: Any) -> Any:
    u, _, vh = xp.linalg.svd(x, full_matrices=False)
    return (u * g[..., None, :]) @ vh


@derivative(_svdvals_rule, kind=FLOATING, holomorphic=False)
@documented("linear algebra extension")
def svdvals(xp: Any, x: Any, /) -> Any:
    """Return the singular values.

    x : Tensor
        Of shape (..., m, n); integers count as float32.
    returns Tensor
        Of shape (..., min(m, n)), real, the largest first.
    raises ValueError
        If `x` has fewer than two axes.
    raises numpy.linalg.LinAlgError
        If `x` holds NaN or infinity, on ``cpu``, or the computation does not converge.

    Where singular values repeat, and where one is 0, the gradient is finite, and one of several, by the vectors that
    were found. The second derivative is infinite or NaN there, unless it does not depend on how they part.

    >>> xgrad.linalg.svdvals(xgrad.asarray([[0.0, 2.0], [3.0, 0.0]]))
    Tensor([3., 2.])
    """
    check_matrices(x)
    return xp.linalg.svdvals(x)
