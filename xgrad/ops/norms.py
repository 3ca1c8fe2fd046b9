"""Norms of vectors and matrices."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, Literal

from xgrad.core.arguments import ArrayLike
from xgrad.core.dtypes import FLOATING
from xgrad.core.tensor import Tensor
from xgrad.ops import decompositions, elementwise, statistical
from xgrad.ops.declare import Axis, count, derivative, restore_axes
from xgrad.ops.matrix_products import as_floating
from xgrad.ops.precision import upcast
from xgrad.support.hints import explained, shown


@upcast
@explained
def matrix_norm(
    x: Tensor, /, *, keepdims: bool = False, ord: float | Literal["fro", "nuc"] = "fro"
) -> Tensor:
    r"""Return norms of matrices.

    Parameters
    ----------
    x : Tensor
        Of shape (..., m, n); integers count as float32.
    keepdims : bool, default False
        Whether the last two axes stay, with length 1.
    ord : {"fro", "nuc", 1, -1, 2, -2, inf, -inf}, default "fro"
        "fro" is the square root of the sum of squares, "nuc" the sum of the singular values, 2 and
        -2 the largest and the smallest singular value. 1 and -1 are the largest and the smallest
        column sum of magnitudes, inf and -inf the largest and the smallest row sum.

    Returns
    -------
    Tensor
        Of shape (...), or (..., 1, 1); real.

    Raises
    ------
    ValueError
        If `x` has fewer than two axes, `ord` is invalid, or a matrix is empty.
    numpy.linalg.LinAlgError
        If `x` holds NaN or infinity and `ord` is "nuc", 2 or -2, on ``cpu``.

    Notes
    -----
    .. math::

        y = \sqrt{\sum_{ij} |x_{ij}|^2} \text{ (fro)}, \quad \sum_k s_k \text{ (nuc)},
        \quad \max_k\, s_k \text{ (2)}, \quad \max_j \sum_i |x_{ij}| \text{ (1)}

    -2 and -1 take the minimum, and inf and -inf the row sums; :math:`s` are the singular values.

    - Gradient for `x`: :math:`\bar y\, X / y` for "fro"; :math:`\bar y\, U V^H` for "nuc", with
      the singular vectors; :math:`\bar y\, u v^H` for 2 and -2, with the vectors of the value
      :math:`y`; :math:`\bar y \operatorname{sign}(x_{ij})` in the column or row whose sum is
      :math:`y`

    Values that tie for the largest or smallest share the gradient. At 0, the gradient of "fro" is
    0. Where singular values repeat or are 0, the gradients of "nuc", 2 and -2 follow `svdvals`.

    Python array API standard, linear algebra extension: ``matrix_norm``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.linalg.matrix_norm(xgrad.asarray([[1.0, 2.0], [-3.0, 4.0]]), ord=1)
    Tensor(6.)
    """
    x = as_floating("matrix_norm", "x", x)
    if x.ndim < 2:
        raise ValueError(f"matrix_norm: expected matrices, of shape (..., m, n), got {x.shape}")
    if ord == "fro":
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord not in ("nuc", 1, -1, 2, -2, math.inf, -math.inf):
        raise ValueError(
            f"matrix_norm: expected ord 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got {shown(ord)}"
        )
    if ord in ("nuc", 2, -2):
        sizes = decompositions.svdvals(x)
    else:
        sizes = statistical.sum(elementwise.abs(x), axis=-2 if ord in (1, -1) else -1)
    if ord == "nuc":
        out = statistical.sum(sizes, axis=-1)
    else:
        out = (statistical.max if float(ord) > 0 else statistical.min)(sizes, axis=-1)
    return out[..., None, None] if keepdims else out


def _vector_norm_rule(g: Any, xp: Any, x: Any, out: Any, axis: Axis, ord: float) -> Any:
    g, out = restore_axes(xp, g, x.shape, axis), restore_axes(xp, out, x.shape, axis)
    if ord == 0:
        return xp.zeros_like(x)
    if ord == 1:
        return g * xp.sign(x)
    some = xp.where(out == 0, 1, out)
    if ord == 2:
        return x * xp.where(out == 0, 0, g / some)
    size = xp.abs(x)
    if math.isinf(ord):
        ties = xp.astype(size == out, g.dtype)
        return g * ties / xp.sum(ties, axis=axis, keepdims=True) * xp.sign(x)
    share = size / some
    if ord > 1:
        return g * xp.sign(x) * share ** (ord - 1)
    # At 0 the power is infinite, and the derivative is defined as 0. A norm of negative order is 0
    # if an element is 0.
    return (
        xp.where(out == 0, 0, g)
        * xp.sign(x)
        * xp.where((size == 0) & ~xp.isnan(out), 1, share) ** (ord - 1)
    )


@derivative(_vector_norm_rule, lowest=FLOATING, holomorphic=False, upcast=True, autocast="wide")
def vector_norm(
    xp: Any, x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2
) -> Any:
    r"""Return norms of vectors.

    Parameters
    ----------
    x : Tensor
        Of any shape; integers count as float32.
    axis : int or tuple of int, optional
        The axes of a vector; by default all.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.
    ord : float, default 2
        The order p. inf and -inf select the largest and the smallest magnitude, 0 counts the
        nonzero elements. A norm of negative order is 0 if an element is 0, and then its derivatives
        are 0, too.

    Returns
    -------
    Tensor
        Of the shape of `x` without the reduced axes; real.

    Raises
    ------
    ValueError
        If `ord` is inf or -inf, and there are no elements.
    TypeError
        If `ord` is not a number.

    Notes
    -----
    .. math:: y = \left(\sum_i |x_i|^p\right)^{1/p}

    - Gradient for `x`: :math:`\bar y \operatorname{sign}(x_i) (|x_i| / y)^{p-1}`, which is
      :math:`\bar y\, x_i / y` for :math:`p = 2`; for inf and -inf
      :math:`\bar y \operatorname{sign}(x_i)` where :math:`|x_i| = y`; for 0 it is 0

    At 0, where norms have a kink, every derivative is 0. The derivative by an element of 0 is also
    0 if the norm has a kink in this element. Values that tie for the largest or smallest share the
    gradient.

    Python array API standard, linear algebra extension: ``vector_norm``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.linalg.vector_norm(xgrad.asarray([[3.0, 4.0], [0.0, 2.0]]), axis=1)
    Tensor([5., 2.])
    """
    if not isinstance(ord, Real):
        raise TypeError(f"expected a number for ord, got {shown(ord)}")
    if isinstance(axis, float):  # NumPy would truncate it
        raise TypeError(f"expected an int or a tuple of ints for axis, got {axis}")
    if math.isinf(ord) and not count(x.shape, axis):
        raise ValueError(f"expected elements to choose from, got none along axis {axis}")
    # 0 if an element is 0, without a warning about the power of 0
    if -math.inf < ord < 0 and 0 not in x.shape:
        size = xp.abs(x)
        zero = size == 0
        total = xp.sum(xp.where(zero, 1, size) ** ord, axis=axis, keepdims=keepdims)
        known = xp.any(zero, axis=axis, keepdims=keepdims) & ~xp.isnan(total)
        return xp.where(known, 0, total ** (1 / ord))
    return xp.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)
