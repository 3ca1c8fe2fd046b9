"""Least-squares solutions of linear systems: `lstsq`."""

from __future__ import annotations

from typing import NamedTuple

from xgrad.core.arguments import as_tensor
from xgrad.core.tensor import Tensor
from xgrad.ops import decompositions, elementwise, linalg, statistical
from xgrad.ops.matrix_products import as_floating


class LstsqResult(NamedTuple):
    """The result of `lstsq`."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def lstsq(x1: Tensor, x2: Tensor, /, *, rcond: float | None = None) -> LstsqResult:
    r"""Return the least-squares solutions X of ``x1 @ X = x2`` that have the least norm.

    Parameters
    ----------
    x1 : Tensor
        Matrices of shape (..., m, n); integers count as float32.
    x2 : Tensor
        One vector of shape (m,), or matrices of shape (..., m, k). The batch axes of `x1` and `x2`
        broadcast.
    rcond : float, optional
        Singular values up to this fraction of the largest count as 0; by default max(m, n) times
        the machine epsilon of the dtype.

    Returns
    -------
    solution : Tensor
        Of shape (..., n) for a vector, else (..., n, k).
    residuals : Tensor
        The squared norms of the columns of ``x1 @ X - x2``: real, of shape (...) for a vector, else
        (..., k).
    rank : Tensor
        The ranks of the matrices, int64, of shape (...); not differentiable.
    singular_values : Tensor
        The singular values of the matrices, of shape (..., min(m, n)).

    Raises
    ------
    ValueError
        If the shapes do not fit.
    numpy.linalg.LinAlgError
        If `x1` holds NaN or infinity, on ``cpu``.
    DeviceError
        If the tensors are on different devices.

    Notes
    -----
    .. math::

        Y = X_1^+ X_2,
        \quad R = X_1 Y - X_2, \quad r_k = \lVert R_k \rVert^2

    With :math:`P = X_1^+`, and :math:`\bar Y` and :math:`\bar r` the gradients of ``solution`` and
    ``residuals``; the gradient of ``singular_values`` is added as in `svdvals`.

    - Gradient for `x1`: :math:`-P^H \bar Y Y^H - R \bar Y^H P P^H + P^H Y \bar Y^H (I - P X_1) +
      2 R \operatorname{diag}(\bar r) Y^H`
    - Gradient for `x2`: :math:`P^H \bar Y - 2 R \operatorname{diag}(\bar r)`

    Differentiable to any order, through `pinv`, along changes that preserve the rank. Like
    ``numpy.linalg.lstsq`` and ``torch.linalg.lstsq``, but residuals are always returned; they are 0
    up to rounding where there is an exact solution.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.asarray([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> solution, residuals, rank, _ = xgrad.linalg.lstsq(x, xgrad.asarray([1.0, 3.0, 5.0]))
    >>> xgrad.round(solution), rank
    (Tensor([1., 2.]), Tensor(2))
    """
    x1, x2 = as_floating("lstsq", "x1", x1), as_tensor("lstsq", "x2", x2)
    vector = x2.ndim == 1
    if x1.ndim < 2 or not x2.ndim or x2.shape[-1 if vector else -2] != x1.shape[-2]:
        raise ValueError(
            "lstsq: expected matrices of shape (..., m, n) for x1, and a vector of shape (m,) or"
            f" matrices of shape (..., m, k) for x2, got {x1.shape} and {x2.shape}"
        )
    x2 = x2[:, None] if vector else x2
    solution = linalg.pinv(x1, rtol=rcond) @ x2
    residuals = statistical.sum(elementwise.square(elementwise.abs(x1 @ solution - x2)), axis=-2)
    if vector:
        solution, residuals = solution[..., 0], residuals[..., 0]
    return LstsqResult(
        solution,
        residuals,
        linalg.matrix_rank(x1, rtol=rcond),
        decompositions.svdvals(x1),
    )
