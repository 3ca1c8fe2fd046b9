"""The standard's set functions: membership, and the unique values of a tensor.

Unique values are in ascending order. One op finds the first index of each value; the values are
taken at these indices, which gives them a gradient. If no gradient is required, the values are
found without indices, which is faster. NaNs differ from one another. The shapes of the results
depend on values, which synchronizes with a GPU.
"""

from typing import Any, NamedTuple

import numpy as np

from xgrad.core.arguments import as_tensor
from xgrad.core.dtypes import FLOATING, INTEGER, SCALARS
from xgrad.core.tensor import Tensor
from xgrad.ops import elementwise
from xgrad.ops.declare import derivative
from xgrad.ops.dtype_functions import as_operand
from xgrad.ops.indexing import take
from xgrad.ops.manipulation import reshape

__all__ = ["isin", "unique_all", "unique_counts", "unique_inverse", "unique_values"]


class UniqueAllResult(NamedTuple):
    """The result of `unique_all`."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCountsResult(NamedTuple):
    """The result of `unique_counts`."""

    values: Tensor
    counts: Tensor


class UniqueInverseResult(NamedTuple):
    """The result of `unique_inverse`."""

    values: Tensor
    inverse_indices: Tensor


@derivative(None)
def _unique_all(xp: Any, x: Any, /) -> Any:
    return xp.unique_all(x)


@derivative(None)
def _unique_counts(xp: Any, x: Any, /) -> Any:
    return xp.unique_counts(x)


@derivative(None)
def _unique_values(xp: Any, x: Any, /) -> Any:
    return xp.unique_values(x)


@derivative(None, None, lowest=INTEGER, highest=FLOATING)
def _isin(xp: Any, x1: Any, x2: Any, /) -> Any:
    return xp.isin(x1, x2)


def isin(x1: Tensor | float, x2: Tensor | float, /, *, invert: bool = False) -> Tensor:
    """Return whether each element of `x1` is an element of `x2`; not differentiable.

    Parameters
    ----------
    x1, x2 : Tensor or scalar
        The elements to look for, and the elements to search: real numbers, of any shapes, on one
        device; bools count as integers. At most one may be a Python scalar, which does not promote
        the other.
    invert : bool, default False
        Whether to negate the result.

    Returns
    -------
    Tensor
        Bools, of the shape of `x1`; False for NaN.

    Raises
    ------
    TypeError
        If an input is complex.
    OverflowError
        If an int is out of the range of the other's dtype.
    DeviceError
        If the tensors are on different devices.

    Notes
    -----
    Python array API standard, set functions: ``isin``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.isin(xgrad.asarray([[1, 2], [3, 4]]), xgrad.asarray([2, 3, 5]))
    Tensor([[False,  True],
            [ True, False]])
    """
    if isinstance(x1, (np.generic, *SCALARS)):
        x2 = as_tensor("isin", "x2", x2)
        x1 = as_operand("isin", "x1", x1, x2)
    x1 = as_tensor("isin", "x1", x1)
    members = _isin(x1, as_operand("isin", "x2", x2, x1))
    # array-api-strict's isin ignores invert
    return elementwise.logical_not(members) if invert else members


def _needs_first_indices(x: Tensor) -> bool:
    """Return whether unique values need their first indices: for a gradient, or if complex.

    PyTorch cannot sort complex values itself.
    """
    return x.requires_grad or x.dtype.kind == "c"


def unique_all(x: Tensor, /) -> UniqueAllResult:
    r"""Return the unique values, their first indices, the inverse indices, and their counts.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.

    Returns
    -------
    values : Tensor
        Of shape (n,) and of the dtype of `x`.
    indices : Tensor
        int64 of shape (n,): the first index of each value in the flattened `x`.
    inverse_indices : Tensor
        int64 of the shape of `x`: the index of each element's value.
    counts : Tensor
        int64 of shape (n,).

    Notes
    -----
    .. math:: y_i = x_{k_i}

    - Gradient for `x`: :math:`\bar y_i` at :math:`k_i`, the first element with value :math:`i`; 0
      elsewhere

    Python array API standard, set functions: ``unique_all``.

    Examples
    --------
    >>> import xgrad
    >>> unique = xgrad.unique_all(xgrad.asarray([3.0, 1.0, 3.0]))
    >>> unique.values, unique.indices
    (Tensor([1., 3.]), Tensor([1, 0]))
    >>> unique.inverse_indices, unique.counts
    (Tensor([1, 0, 1]), Tensor([1, 2]))
    """
    x = as_tensor("unique_all", "x", x)
    indices, *rest = _unique_all(x)[1:]
    return UniqueAllResult(take(reshape(x, (-1,)), indices), indices, *rest)


def unique_counts(x: Tensor, /) -> UniqueCountsResult:
    r"""Return the unique values and their counts.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.

    Returns
    -------
    values : Tensor
        Of shape (n,) and of the dtype of `x`.
    counts : Tensor
        int64 of shape (n,).

    Notes
    -----
    .. math:: y_i = x_{k_i}

    - Gradient for `x`: :math:`\bar y_i` at :math:`k_i`, the first element with value :math:`i`; 0
      elsewhere

    Python array API standard, set functions: ``unique_counts``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.unique_counts(xgrad.asarray([3.0, 1.0, 3.0])).counts
    Tensor([1, 2])
    """
    x = as_tensor("unique_counts", "x", x)
    if not _needs_first_indices(x):
        return UniqueCountsResult(*_unique_counts(x))
    result = unique_all(x)
    return UniqueCountsResult(result.values, result.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverseResult:
    r"""Return the unique values and the index of each element's value.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.

    Returns
    -------
    values : Tensor
        Of shape (n,) and of the dtype of `x`.
    inverse_indices : Tensor
        int64 of the shape of `x`: the index of each element's value.

    Notes
    -----
    .. math:: y_i = x_{k_i}

    - Gradient for `x`: :math:`\bar y_i` at :math:`k_i`, the first element with value :math:`i`; 0
      elsewhere

    Python array API standard, set functions: ``unique_inverse``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.unique_inverse(xgrad.asarray([3.0, 1.0, 3.0])).inverse_indices
    Tensor([1, 0, 1])
    """
    result = unique_all(x)
    return UniqueInverseResult(result.values, result.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    r"""Return the unique values.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.

    Returns
    -------
    Tensor
        Of shape (n,) and of the dtype of `x`.

    Notes
    -----
    .. math:: y_i = x_{k_i}

    - Gradient for `x`: :math:`\bar y_i` at :math:`k_i`, the first element with value :math:`i`; 0
      elsewhere

    Python array API standard, set functions: ``unique_values``.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.Tensor([3.0, 1.0, 3.0], requires_grad=True)
    >>> xgrad.unique_values(x).sum().backward()
    >>> x.grad
    Tensor([1., 1., 0.])
    """
    x = as_tensor("unique_values", "x", x)
    return unique_all(x).values if _needs_first_indices(x) else _unique_values(x)
