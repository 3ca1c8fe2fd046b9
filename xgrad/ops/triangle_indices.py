"""Indices of the triangles of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xgrad.backend.device import Device
from xgrad.core.arguments import as_int
from xgrad.core.dtypes import int64
from xgrad.core.tensor import Tensor
from xgrad.ops.tensor_conversion import asarray
from xgrad.support.hints import explained

__all__ = ["tril_indices", "triu_indices"]


@explained
def tril_indices(
    n: int, /, *, k: int = 0, m: int | None = None, device: str | Device | None = None
) -> tuple[Tensor, Tensor]:
    """Return the indices of the lower triangle of a matrix, as a key for it.

    Parameters
    ----------
    n : int
        The number of rows.
    k : int, default 0
        The diagonal above which there are no elements: 0 for the main one, negative below it.
    m : int, optional
        The number of columns; by default `n`.
    device : str or Device, optional
        By default the `default_device`.

    Returns
    -------
    tuple of Tensor
        The row and the column of each element, in row order: int64.

    Raises
    ------
    ValueError
        If a number of rows or columns is negative.

    Notes
    -----
    Like ``numpy.tril_indices``; ``torch.tril_indices`` takes the number of columns second, and
    returns one tensor.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.tril_indices(2)
    (Tensor([0, 1, 1]), Tensor([0, 0, 1]))
    """
    return _indices("tril_indices", np.tril_indices, n, k, m, device)


@explained
def triu_indices(
    n: int, /, *, k: int = 0, m: int | None = None, device: str | Device | None = None
) -> tuple[Tensor, Tensor]:
    """Return the indices of the upper triangle of a matrix, as a key for it.

    Parameters
    ----------
    n : int
        The number of rows.
    k : int, default 0
        The diagonal below which there are no elements: 0 for the main one, positive above it.
    m : int, optional
        The number of columns; by default `n`.
    device : str or Device, optional
        By default the `default_device`.

    Returns
    -------
    tuple of Tensor
        The row and the column of each element, in row order: int64.

    Raises
    ------
    ValueError
        If a number of rows or columns is negative.

    Notes
    -----
    Like ``numpy.triu_indices``; ``torch.triu_indices`` takes the number of columns second, and
    returns one tensor.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> x[xgrad.triu_indices(2)]
    Tensor([1., 2., 4.])
    """
    return _indices("triu_indices", np.triu_indices, n, k, m, device)


def _indices(
    op: str, of_numpy: Callable[..., Any], n: int, k: int, m: int | None, device: Any
) -> tuple[Tensor, Tensor]:
    rows, columns = as_int(op, "n", n), as_int(op, "m", n if m is None else m)
    if rows < 0 or columns < 0:
        raise ValueError(f"{op}: expected n and m of 0 or more, got {rows} and {columns}")
    first, second = [
        asarray(indices.tolist(), dtype=int64, device=device)
        for indices in of_numpy(rows, as_int(op, "k", k), columns)
    ]
    return first, second
