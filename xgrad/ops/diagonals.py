"""Extraction and construction of diagonals, with NumPy's signatures: `diag`, `diagonal`."""

from __future__ import annotations

from xgrad.core.arguments import as_int, as_tensor, front_axis
from xgrad.core.tensor import Tensor
from xgrad.ops import creation, indexing, linalg, manipulation, tensor_conversion

__all__ = ["diag", "diagonal"]


def diagonal(x: Tensor, /, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    r"""Return the diagonals along two axes.

    Parameters
    ----------
    x : Tensor
        Of any dtype, with two axes or more.
    offset : int, default 0
        The offset from the main diagonal, above it if positive.
    axis1, axis2 : int, default 0 and 1
        The axes of rows and of columns.

    Returns
    -------
    Tensor
        Of the shape of `x` without the two axes, with the diagonals along a new last axis. It is a
        view of `x`: ``xgrad.diagonal(x)[...] = 0`` changes `x`.

    Raises
    ------
    ValueError
        If `x` has fewer than two axes, or `axis1` and `axis2` are the same axis.
    IndexError
        If there is no such axis.
    TypeError
        If an axis or the offset is not an int.

    Notes
    -----
    .. math:: y_i = x_{i, i+k}

    - Gradient for `x`: :math:`\bar y_i` at :math:`(i, i + k)`, 0 elsewhere; :math:`k` is the
      ``offset``

    Differentiable to any order. Like ``numpy.diagonal`` and ``torch.diagonal``, which by default
    take the first two axes; the standard's `linalg.diagonal` takes the last two.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.diagonal(xgrad.asarray([[1.0, 2.0], [3.0, 4.0]]))
    Tensor([1., 4.])
    """
    x = as_tensor("diagonal", "x", x)
    if x.ndim < 2:
        raise ValueError(f"diagonal: expected x with two axes or more, got shape {x.shape}")
    rows = front_axis("diagonal", x, axis1, "axis1")
    columns = front_axis("diagonal", x, axis2, "axis2")
    if rows == columns:
        raise ValueError(
            f"diagonal: expected two different axes, got axis1 {axis1} and axis2 {axis2}"
        )
    last = (x.ndim - 2, x.ndim - 1)
    matrices = x if (rows, columns) == last else manipulation.moveaxis(x, (rows, columns), last)
    return linalg.diagonal(matrices, offset=as_int("diagonal", "offset", offset))


def diag(x: Tensor, /, k: int = 0) -> Tensor:
    r"""Return the diagonal of a matrix, or a matrix with a given diagonal and zeros elsewhere.

    Parameters
    ----------
    x : Tensor
        Of any dtype; a matrix of shape (m, n), or a vector of shape (n,).
    k : int, default 0
        The offset from the main diagonal, above it if positive.

    Returns
    -------
    Tensor
        A vector if `x` is a matrix; if `x` is a vector, a square matrix of length ``n + abs(k)``.

    Raises
    ------
    ValueError
        If `x` has neither one nor two axes.
    TypeError
        If `k` is not an int.

    Notes
    -----
    .. math:: y_i = x_{i, i+k} \text{ of a matrix}, \quad y_{i, i+k} = x_i \text{ of a vector}

    - Gradient for `x`: :math:`\bar y_i` at :math:`(i, i + k)` of a matrix, 0 elsewhere;
      :math:`\bar y_{i, i+k}` at :math:`i` of a vector

    Differentiable to any order. Like ``numpy.diag`` and ``torch.diag``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.diag(xgrad.asarray([1.0, 2.0]))
    Tensor([[1., 0.],
            [0., 2.]])
    >>> xgrad.diag(xgrad.asarray([[1.0, 2.0], [3.0, 4.0]]), k=1)
    Tensor([2.])
    """
    x, k = as_tensor("diag", "x", x), as_int("diag", "k", k)
    if x.ndim == 2:
        return tensor_conversion.asarray(linalg.diagonal(x, offset=k), copy=True)
    if x.ndim != 1:
        raise ValueError(
            f"diag: expected a vector or a matrix, got shape {x.shape}: see linalg.diagonal for"
            " stacks"
        )
    n = x.shape[0] + abs(k)
    start = k if k >= 0 else -k * n
    zeros = creation.zeros(n * n, dtype=x.dtype, device=x.device)
    stop = min(start + x.shape[0] * (n + 1), n * n)  # the standard defines no slices beyond the end
    flat = indexing.setitem(zeros, slice(start, stop, n + 1), x)
    return manipulation.reshape(flat, (n, n))
