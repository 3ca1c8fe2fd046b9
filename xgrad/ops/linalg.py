"""Matrix products."""

from __future__ import annotations

from typing import Any

from xgrad.declare import derivative
from xgrad.dtypes import INTEGER


def _as_matrices(g: Any, xp: Any, x1: Any, x2: Any, vectors: tuple[bool, bool]) -> tuple[Any, Any, Any]:
    """Give vectors the axis of length 1 that they have in a product: a row on the left, a column on the right."""
    if vectors[1]:
        g, x2 = xp.expand_dims(g, axis=-1), x2 if x2 is None else xp.expand_dims(x2, axis=-1)
    if vectors[0]:
        g, x1 = xp.expand_dims(g, axis=-2), x1 if x1 is None else xp.expand_dims(x1, axis=-2)
    return g, x1, x2


def product(xp: Any, a: Any, b: Any, into: Any) -> Any:
    """Return the product of two matrices, written transposed into the array that is to hold it, if there is one."""
    if into is None or into.dtype != a.dtype or into.dtype != b.dtype:
        return xp.matmul(a, b)
    xp.matmul(xp.matrix_transpose(b), xp.matrix_transpose(a), out=xp.matrix_transpose(into))
    return into


def _matmul_left(g: Any, xp: Any, x1_shape: tuple[int, ...], x2: Any, into: Any) -> Any:
    if len(x1_shape) == len(x2.shape) == 2:
        return product(xp, g, xp.matrix_transpose(x2), into)
    vector = len(x1_shape) == 1
    g, _, x2 = _as_matrices(g, xp, None, x2, (vector, len(x2.shape) == 1))
    out = xp.matmul(g, xp.matrix_transpose(x2))
    return xp.squeeze(out, axis=-2) if vector else out


def _matmul_right(g: Any, xp: Any, x1: Any, x2_shape: tuple[int, ...], into: Any) -> Any:
    if len(x1.shape) == len(x2_shape) == 2:
        return product(xp, xp.matrix_transpose(x1), g, into)
    vector = len(x2_shape) == 1
    g, x1, _ = _as_matrices(g, xp, x1, None, (len(x1.shape) == 1, vector))
    out = xp.matmul(xp.matrix_transpose(x1), g)
    return xp.squeeze(out, axis=-1) if vector else out


@derivative(_matmul_left, _matmul_right, kind=INTEGER)
def matmul(xp: Any, x1: Any, x2: Any, /) -> Any:
    """Return the matrix product.

    Parameters
    ----------
    x1 : Tensor
        Of shape (..., m, k), or (k,).
    x2 : Tensor
        Of shape (..., k, n), or (k,). The axes in front broadcast.

    Returns
    -------
    Tensor
        Of shape (..., m, n), without the axis that a one-dimensional input does not have.

    Raises
    ------
    ValueError
        If the shapes do not fit.
    DeviceError
        If the tensors are on several devices.

    Notes
    -----
    Python array API standard, linear algebra functions: ``matmul``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.matmul(xgrad.asarray([[1.0, 2.0], [3.0, 4.0]]), xgrad.asarray([1.0, 1.0]))
    Tensor([3., 7.])
    """
    return xp.matmul(x1, x2)
