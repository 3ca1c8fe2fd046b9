"""Matrix functions: the exponential and the square root."""

from __future__ import annotations

import math

import numpy as np

from xgrad import ops
from xgrad.core.tensor import Tensor
from xgrad.ops import linalg
from xgrad.ops.matrix_products import as_square_matrices, identity


def expm(x: Tensor, /) -> Tensor:
    r"""Return the exponentials of matrices.

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

    Notes
    -----
    .. math:: Y = e^X = \sum_k \frac{X^k}{k!}

    - Gradient for `x`: :math:`\int_0^1 (e^{s X})^\top \bar Y (e^{(1 - s) X})^\top ds`, by the
      derivatives of the steps of the computation

    Computed by scaling and squaring with the Padé approximant of degree 8 (G. H. Golub and C. F.
    Van Loan, *Matrix Computations*, 2013, algorithm 9.3.1). The number of squarings depends on
    values, so the function synchronizes with a GPU and cannot be captured. Differentiable to any
    order. Like ``scipy.linalg.expm`` and ``torch.linalg.matrix_exp``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.linalg.expm(xgrad.asarray([[0.0, 1.0], [0.0, 0.0]]))
    Tensor([[1., 1.],
            [0., 1.]])
    """
    xp, x = ops, as_square_matrices("expm", "x", x)
    if not x.size:
        return x
    norm = xp.max(xp.sum(xp.abs(x.detach()), axis=-2), axis=-1)
    large = (norm > 0.5) & xp.isfinite(norm)
    halvings = xp.where(large, xp.ceil(xp.log2(xp.where(large, norm, 1))) + 1, 0)[..., None, None]
    x, unit, degree, factor = x * 2**-halvings, identity(xp, x), 8, 0.5
    power, top, bottom = x, unit + x / 2, unit - x / 2
    for k in range(2, degree + 1):
        factor *= (degree - k + 1) / (k * (2 * degree - k + 1))
        power = x @ power
        top, bottom = top + factor * power, bottom + (-1) ** k * factor * power
    out = linalg.solve(bottom, top)
    for i in range(int(xp.max(halvings))):
        root = xp.where(halvings > i, out, 0)  # finished ones could overflow
        out = xp.where(halvings > i, root @ root, out)
    return out


def sqrtm(x: Tensor, /) -> Tensor:
    r"""Return the principal square roots of matrices.

    The eigenvalues of a principal square root have positive real parts.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, n), with no eigenvalue that is 0 or negative; integers count as float32.

    Returns
    -------
    Tensor
        Same shape as `x`: matrices whose squares are `x`.

    Raises
    ------
    ValueError
        If the matrices are not square.
    numpy.linalg.LinAlgError
        If an eigenvalue is 0 or negative: the root is then not unique, or has no derivative.

    Notes
    -----
    .. math:: Y Y = X

    - Gradient for `x`: :math:`\bar X` with :math:`Y^\top \bar X + \bar X Y^\top = \bar Y`, by the
      derivatives of the steps of the computation

    Computed by the Denman-Beavers iteration in product form, scaled by determinants (N. J. Higham,
    "Functions of Matrices", 2008, equation 6.29). The number of steps depends on values, so the
    function synchronizes with a GPU and cannot be captured. Differentiable to any order. Like
    ``scipy.linalg.sqrtm``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.linalg.sqrtm(xgrad.asarray([[4.0, 1.0], [0.0, 4.0]]))
    Tensor([[2.  , 0.25],
            [0.  , 2.  ]])
    """
    xp, x = ops, as_square_matrices("sqrtm", "x", x)
    if not x.size:
        return x
    unit, rest, distance = identity(xp, x), x, math.inf
    # after one more step, derivatives have converged, too
    converged = 8 * x.shape[-1] * float(np.finfo(x.dtype).eps) ** 0.75
    for _ in range(64):
        last = distance < converged
        try:
            inverse = linalg.inv(rest)
        except np.linalg.LinAlgError:
            break
        if distance > 0.01:  # until the convergence is quadratic
            scale = xp.exp(linalg.slogdet(rest.detach())[1] / -x.shape[-1])[..., None, None]
            x, rest, inverse = x * xp.sqrt(scale), rest * scale, inverse / scale
        x = (x + x @ inverse) / 2
        rest = unit / 2 + (rest + inverse) / 4
        distance = float(xp.max(xp.abs(rest.detach() - unit)))
        if last:
            return x
        if math.isnan(distance):
            break
    raise np.linalg.LinAlgError(
        "sqrtm: expected matrices without eigenvalues that are 0 or negative, found no root of x"
        f" of shape {x.shape}"
    )
