"""Functions of square matrices that are power series of them: the exponential and the square root.

Their derivatives are parts of the same function of larger matrices, at any order:

    f([[A, E], [0, A]]) = [[f(A), D], [0, f(A)]],    where D is the derivative of f at A in the direction E

(N. J. Higham, "Functions of Matrices", 2008, theorem 3.6).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xgrad.declare import derivative, in_rule
from xgrad.dtypes import FLOATING
from xgrad.ops.products import check_square, identity


def _rule(g: Any, xp: Any, x: Any, function: Callable[..., Any]) -> Any:
    """Return the derivative at the transposed matrix in the direction of the gradient, which is scaled to about 1."""
    n = x.shape[-1]
    if 0 in x.shape:
        return g
    largest = xp.max(xp.abs(g), axis=(-2, -1), keepdims=True)
    size = 2 ** xp.floor(xp.log2(xp.where(largest == 0, 1, largest)))  # a constant at second order, too
    x, g = xp.matrix_transpose(x), g / size
    blocks = xp.concat([xp.concat([x, g], axis=-1), xp.concat([xp.zeros_like(x), x], axis=-1)], axis=-2)
    return in_rule(function, xp, blocks)[..., :n, n:] * size


def _norm(xp: Any, x: Any) -> Any:
    """Return the largest sums of magnitudes in a column."""
    return xp.max(xp.sum(xp.abs(x), axis=-2), axis=-1)


def _expm_rule(g: Any, xp: Any, x: Any) -> Any:
    return _rule(g, xp, x, expm)


@derivative(_expm_rule, kind=FLOATING)
def expm(xp: Any, x: Any, /) -> Any:
    """Return the exponentials of matrices, the sums of ``x^k / k!``.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, n); integers count as float32.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Raises
    ------
    ValueError
        If the matrices are not square.

    Notes
    -----
    By scaling and squaring, and the Padé approximant of degree 8 (G. H. Golub and C. F. Van Loan, *Matrix
    Computations*, 2013, algorithm 9.3.1). How often to square depends on values, which makes a GPU wait, and cannot be
    captured. Differentiable to any order; a derivative takes the exponential of matrices twice as long. As
    ``scipy.linalg.expm`` and ``torch.linalg.matrix_exp``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.linalg.expm(xgrad.asarray([[0.0, 1.0], [0.0, 0.0]]))
    Tensor([[1., 1.],
            [0., 1.]])
    """
    check_square(x)
    if 0 in x.shape:
        return x
    norm = _norm(xp, x)
    large = (norm > 0.5) & xp.isfinite(norm)
    halvings = xp.where(large, xp.ceil(xp.log2(xp.where(large, norm, 1))) + 1, 0)[..., None, None]
    x, unit, degree, factor = x * 2**-halvings, identity(xp, x), 8, 0.5
    power, top, bottom = x, unit + x / 2, unit - x / 2
    for k in range(2, degree + 1):
        factor *= (degree - k + 1) / (k * (2 * degree - k + 1))
        power = x @ power
        top, bottom = top + factor * power, bottom + (-1) ** k * factor * power
    out = xp.linalg.solve(bottom, top)
    for i in range(int(xp.max(halvings))):
        root = xp.where(halvings > i, out, 0)  # others could overflow
        out = xp.where(halvings > i, root @ root, out)
    return out


def _sqrtm_rule(g: Any, xp: Any, x: Any) -> Any:
    return _rule(g, xp, x, sqrtm)


@derivative(_sqrtm_rule, kind=FLOATING)
def sqrtm(xp: Any, x: Any, /) -> Any:
    """Return the principal square roots of matrices, whose eigenvalues have positive real parts.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, n), with no eigenvalue that is 0 or negative; integers count as float32.

    Returns
    -------
    Tensor
        Of the shape and dtype of `x`: matrices whose products with themselves are `x`.

    Raises
    ------
    ValueError
        If the matrices are not square.
    numpy.linalg.LinAlgError
        If an eigenvalue is 0 or negative: there the root is not unique, or has no derivative.

    Notes
    -----
    By the iteration of Denman and Beavers in product form, scaled by determinants (N. J. Higham, "Functions of
    Matrices", 2008, equation 6.29). Its length depends on values, which makes a GPU wait, and cannot be captured.
    Differentiable to any order; a derivative takes the root of matrices twice as long. As ``scipy.linalg.sqrtm``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.linalg.sqrtm(xgrad.asarray([[4.0, 1.0], [0.0, 4.0]]))
    Tensor([[2.  , 0.25],
            [0.  , 2.  ]])
    """
    check_square(x)
    if 0 in x.shape:
        return x
    unit, rest, distance = identity(xp, x), x, math.inf
    n, converged = x.shape[-1], 8 * x.shape[-1] * float(xp.finfo(x.dtype).eps) ** 0.75
    for _ in range(64):
        last = distance < converged
        try:
            inverse = xp.linalg.inv(rest)
        except Exception as error:
            if type(error).__name__.lstrip("_") == "LinAlgError":  # NumPy's, or PyTorch's own of that name
                break
            raise
        if distance > 0.01:  # until the convergence is quadratic
            scale = xp.exp(xp.linalg.slogdet(rest)[1] / -n)[..., None, None]
            x, rest, inverse = x * xp.sqrt(scale), rest * scale, inverse / scale
        x = (x + x @ inverse) / 2
        rest = unit / 2 + (rest + inverse) / 4
        distance = float(xp.max(xp.abs(rest - unit)))
        if last:
            return x
        if math.isnan(distance):
            break
    raise np.linalg.LinAlgError("expected matrices without eigenvalues that are 0 or negative, found no square root")
