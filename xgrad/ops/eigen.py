"""Eigenvalues and eigenvectors, and their derivatives.

After M. Giles, "An extended collection of matrix derivative results for forward and reverse mode
algorithmic differentiation" (2008), and C. Boeddeker et al., "On the computation of complex-valued
gradients with application to statistically optimum beamforming" (2017), for `eig`. Eigenvectors are
determined up to a sign, or up to a phase if they are complex. Derivatives are defined for losses
that do not depend on the sign or phase.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from xgrad.backend.device import Device
from xgrad.core.arguments import ArrayLike, as_tensor
from xgrad.core.dtypes import FLOATING, is_complex
from xgrad.core.modes import grad_enabled
from xgrad.core.tensor import Tensor
from xgrad.ops.declare import derivative
from xgrad.ops.matrix_products import adjoint, check_square, identity


class EigResult(NamedTuple):
    """The result of `eig`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class EighResult(NamedTuple):
    """The result of `eigh`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def minus_adjoint(xp: Any, x: Any) -> Any:
    return x - adjoint(xp, x)


def safe_divide(xp: Any, a: Any, b: Any) -> Any:
    """Divide, with 0 / 0 giving 0.

    A vector without a derivative then does not matter if nothing depends on it.
    """
    return a / xp.where((a == 0) & (b == 0), 1, b)


def check_phases(op: str, xp: Any, device: Device, *pairs: tuple[Any, Any]) -> None:
    """Raise RuntimeError if a loss depends on the phases of complex columns.

    Each of `pairs` has columns and their gradients. Corresponding columns of several pairs share a
    phase. As in PyTorch, a dependence within rounding is tolerated.
    """
    slopes = sum(xp.imag(xp.sum(xp.conj(columns) * g, axis=-2)) for columns, g in pairs)
    sizes = sum(xp.sum(xp.abs(g), axis=-2) for _, g in pairs)
    wrong = xp.any(xp.abs(slopes) > 0.01 + 0.01 * sizes)
    # Unwrap tensors and proxies: in a captured step, the recorded call is checked.
    for holder in ("_data", "array"):
        wrong = getattr(wrong, holder, wrong)
    wrong = not device.backend.check_true(~wrong) if device.level else wrong
    if not device.backend.asynchronous and bool(wrong):
        raise RuntimeError(
            f"{op}: expected a loss that does not depend on the phases of the vectors, which are"
            " arbitrary, got one that does: take abs(vectors), or divide each vector by the phase"
            " of one of its elements"
        )


def _eig_rule(g: Any, xp: Any, out: Any, x_device: Device) -> Any:
    (g_values, g_vectors), (values, vectors) = g, out
    check_phases("eig", xp, x_device, (vectors, g_vectors))
    left, diagonal = adjoint(xp, vectors), identity(xp, values)
    along = xp.real(xp.sum(xp.conj(vectors) * g_vectors, axis=-2))  # removed by the normalization
    projected = left @ (g_vectors - vectors * along[..., None, :])
    gaps = xp.conj(values[..., None, :] - values[..., :, None]) + diagonal
    inner = xp.where(diagonal == 1, g_values[..., None, :], safe_divide(xp, projected, gaps))
    return xp.linalg.solve(left, inner @ left)


@derivative(_eig_rule, lowest=FLOATING, holomorphic=False)
def _eig(xp: Any, x: Any, /) -> Any:
    return _complex(xp, xp.linalg.eig, x)


@derivative(None, lowest=FLOATING)
def _eigvals(xp: Any, x: Any, /) -> Any:
    return _complex(xp, lambda x: (xp.linalg.eigvals(x),), x)[0]


def _complex(xp: Any, solve: Callable[[Any], tuple[Any, ...]], x: Any) -> tuple[Any, ...]:
    """Return the results of a solver as complex numbers.

    NumPy's results are real if all eigenvalues are.
    """
    check_square(x)
    dtype = xp.complex64 if x.dtype in (xp.float32, xp.complex64) else xp.complex128
    return tuple([part if is_complex(part.dtype) else xp.astype(part, dtype) for part in solve(x)])


def eig(x: Tensor, /) -> EigResult:
    r"""Return the eigenvalues and eigenvectors of square matrices.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, n); integers count as float32. For symmetric or Hermitian matrices, see
        `eigh`.

    Returns
    -------
    eigenvalues : Tensor
        Of shape (..., n), complex, in no particular order.
    eigenvectors : Tensor
        Of shape (..., n, n), complex: the columns are the vectors, of length 1.

    Raises
    ------
    ValueError
        If the matrices are not square.
    numpy.linalg.LinAlgError
        If the computation does not converge, or an element is infinite or NaN.
    RuntimeError
        In the backward pass, if the loss depends on the phases of the vectors, as in PyTorch; not
        checked on ``cuda``, where the check would synchronize. On ``cuda``, if the cuSOLVER of an
        older CUDA lacks the function.

    Notes
    -----
    .. math:: X V = V \operatorname{diag}(\lambda)

    - Gradient for `x`: :math:`V^{-H} (\operatorname{diag}(\bar \lambda) + F \odot (V^H W)) V^H`,
      where :math:`F_{ij} = 1 / (\overline{\lambda_j} - \overline{\lambda_i})` for :math:`i \ne j`,
      :math:`F_{ii} = 0`, and :math:`W_j = \bar V_j - \operatorname{Re}(V_j^H \bar V_j) V_j` for
      each column

    Where eigenvalues repeat, eigenvectors have no derivative: the gradient is infinite or NaN if
    the loss depends on them. If the loss depends on the eigenvalues alone, the gradient is not
    unique: it depends on the eigenvectors that were found. Where a matrix has fewer than n
    independent eigenvectors, eigenvalues have no derivative either: the gradient is huge, infinite
    or NaN, or the backward pass raises LinAlgError.

    Python array API standard, linear algebra extension: ``eig``.

    Examples
    --------
    >>> import xgrad
    >>> values, vectors = xgrad.linalg.eig(xgrad.asarray([[0.0, -1.0], [1.0, 0.0]]))
    >>> values, xgrad.abs(vectors)
    (Tensor([0.+1.j, 0.-1.j], dtype=complex64), Tensor([[0.70710677, 0.70710677],
            [0.70710677, 0.70710677]]))
    """
    return EigResult(*_eig(x))


def eigvals(x: Tensor, /) -> Tensor:
    r"""Return the eigenvalues of square matrices.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, n); integers count as float32. For symmetric or Hermitian matrices, see
        `eigvalsh`.

    Returns
    -------
    Tensor
        Of shape (..., n), complex, in no particular order.

    Raises
    ------
    ValueError
        If the matrices are not square.
    numpy.linalg.LinAlgError
        If the computation does not converge, or an element is infinite or NaN.
    RuntimeError
        On ``cuda``, if the cuSOLVER of an older CUDA lacks the function.

    Notes
    -----
    .. math:: X V = V \operatorname{diag}(y)

    - Gradient for `x`: :math:`V^{-H} \operatorname{diag}(\bar y) V^H`

    If `x` requires a gradient, the eigenvalues come from `eig`, since the gradient needs its
    eigenvectors. Where eigenvalues repeat, the gradient is as described there.

    Python array API standard, linear algebra extension: ``eigvals``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.linalg.eigvals(xgrad.asarray([[0.0, -1.0], [1.0, 0.0]]))
    Tensor([0.+1.j, 0.-1.j], dtype=complex64)
    """
    x = as_tensor("eigvals", "x", x)
    return eig(x).eigenvalues if x.requires_grad and grad_enabled.get() else _eigvals(x)


def _eigh_rule(g: Any, xp: Any, out: Any, x_device: Device) -> Any:
    (g_values, g_vectors), (values, vectors) = g, out
    if is_complex(vectors.dtype):
        check_phases("eigh", xp, x_device, (vectors, g_vectors))
    diagonal = identity(xp, values)
    gaps = values[..., None, :] - values[..., :, None] + diagonal
    inner = (
        safe_divide(xp, minus_adjoint(xp, adjoint(xp, vectors) @ g_vectors) / 2, gaps)
        + diagonal * g_values[..., None, :]
    )
    return vectors @ inner @ adjoint(xp, vectors)


@derivative(_eigh_rule, lowest=FLOATING, holomorphic=False)
def _eigh(xp: Any, x: Any, /) -> Any:
    check_square(x)
    return tuple(xp.linalg.eigh(x))


def eigh(x: Tensor, /) -> EighResult:
    r"""Return the eigenvalues and eigenvectors of symmetric or Hermitian matrices.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, n); only one triangle is read. Integers count as float32.

    Returns
    -------
    eigenvalues : Tensor
        Of shape (..., n), real, the smallest first.
    eigenvectors : Tensor
        Of shape (..., n, n): unitary matrices, whose columns are the vectors.

    Raises
    ------
    ValueError
        If the matrices are not square.
    numpy.linalg.LinAlgError
        If the computation does not converge.
    RuntimeError
        In the backward pass, if the loss depends on the phases of complex vectors, as with `eig`.

    Notes
    -----
    .. math:: X = V \operatorname{diag}(\lambda) V^H

    - Gradient for `x`: :math:`V (\operatorname{diag}(\bar \lambda) + F \odot \tfrac{1}{2} (V^H
      \bar V - \bar V^H V)) V^H`, where :math:`F_{ij} = 1 / (\lambda_j - \lambda_i)` for
      :math:`i \ne j`, and :math:`F_{ii} = 0`

    The gradient is Hermitian. Where eigenvalues repeat, eigenvectors have no derivative: the
    gradient is infinite or NaN if the loss depends on them. If the loss depends on the eigenvalues
    alone, the gradient stays finite but is not unique: it depends on the eigenvectors that were
    found.

    Python array API standard, linear algebra extension: ``eigh``.

    Examples
    --------
    >>> import xgrad
    >>> values, vectors = xgrad.linalg.eigh(xgrad.asarray([[2.0, 0.0], [0.0, 1.0]]))
    >>> values, xgrad.abs(vectors)
    (Tensor([1., 2.]), Tensor([[0., 1.],
            [1., 0.]]))
    """
    return EighResult(*_eigh(x))


def _eigvalsh_rule(g: Any, xp: Any, x: Any) -> Any:
    _, vectors = xp.linalg.eigh(x)
    return (vectors * g[..., None, :]) @ adjoint(xp, vectors)


@derivative(_eigvalsh_rule, lowest=FLOATING, holomorphic=False)
def eigvalsh(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the eigenvalues of symmetric or Hermitian matrices.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, n); only one triangle is read. Integers count as float32.

    Returns
    -------
    Tensor
        Of shape (..., n), real, the smallest first.

    Raises
    ------
    ValueError
        If the matrices are not square.
    numpy.linalg.LinAlgError
        If the computation does not converge.

    Notes
    -----
    .. math:: X = V \operatorname{diag}(y) V^H

    - Gradient for `x`: :math:`V \operatorname{diag}(\bar y) V^H`

    The gradient is Hermitian. Where eigenvalues repeat, it is finite but not unique. The second
    derivative is infinite or NaN there, unless it does not depend on how the eigenvalues separate.

    Python array API standard, linear algebra extension: ``eigvalsh``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.linalg.eigvalsh(xgrad.asarray([[2.0, 1.0], [1.0, 2.0]]))
    Tensor([1., 3.])
    """
    check_square(x)
    return xp.linalg.eigvalsh(x)
