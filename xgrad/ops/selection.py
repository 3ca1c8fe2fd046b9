"""The largest and smallest elements along an axis: `topk`, `partition`."""

from __future__ import annotations

from typing import NamedTuple

from xgrad.core.arguments import as_int, as_tensor
from xgrad.core.tensor import Tensor
from xgrad.ops import indexing, searching
from xgrad.ops.declare import axis_of_reals, slice_axis
from xgrad.support.hints import explained

__all__ = ["partition", "topk"]


class TopKResult(NamedTuple):
    """The result of `topk`."""

    values: Tensor
    indices: Tensor


@explained
def topk(x: Tensor, /, k: int, *, axis: int = -1, largest: bool = True) -> TopKResult:
    r"""Return the `k` largest elements along an axis, in order, and their indices.

    Parameters
    ----------
    x : Tensor
        Real numbers, with at least one axis.
    k : int
        The number of elements, up to the length of the axis.
    axis : int, default -1
        The axis to choose along.
    largest : bool, default True
        True selects the largest elements, in descending order; False the smallest, in ascending
        order.

    Returns
    -------
    values : Tensor
        Of the shape and dtype of `x`, with length `k` along the axis.
    indices : Tensor
        int64, of the same shape. Of equal elements, the first comes first.

    Raises
    ------
    ValueError
        If `k` is negative or greater than the length of the axis, or `x` has no axes.
    IndexError
        If `axis` is out of bounds.
    TypeError
        If `x` is complex, or another argument is not an int.

    Notes
    -----
    .. math:: y_j = x_{k_j}

    - Gradient for `x`: :math:`\bar x_{k_j} = \bar y_j`, 0 elsewhere; :math:`k` are the ``indices``
      of the result

    Differentiable to any order. All elements are sorted. Like ``torch.topk``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.topk(xgrad.asarray([1.0, 4.0, 3.0]), 2)
    TopKResult(values=Tensor([4., 3.]), indices=Tensor([1, 2]))
    """
    x = as_tensor("topk", "x", x)
    axis = axis_of_reals("topk", x, axis)
    k = as_int("topk", "k", k)
    if not 0 <= k <= x.shape[axis]:
        raise ValueError(
            f"topk: expected k from 0 to {x.shape[axis]} along axis {axis} of shape {x.shape},"
            f" got {k}"
        )
    order = searching.argsort(x, axis=axis, descending=largest)
    indices = order[slice_axis(axis, None, k)]
    return TopKResult(indexing.take_along_axis(x, indices, axis=axis), indices)


@explained
def partition(x: Tensor, kth: int | tuple[int, ...], /, axis: int = -1) -> Tensor:
    r"""Return the elements along an axis, with the `kth` in its sorted position.

    No element before it is larger, and none after it is smaller.

    Parameters
    ----------
    x : Tensor
        Real numbers, with at least one axis.
    kth : int or tuple of int
        The indices at which the elements are the same as in a sorted tensor; negative ones count
        from the end.
    axis : int, default -1
        The axis to partition along.

    Returns
    -------
    Tensor
        Same shape and dtype as `x`.

    Raises
    ------
    ValueError
        If an index is out of bounds, or `x` has no axes.
    IndexError
        If `axis` is out of bounds.
    TypeError
        If `x` is complex, or another argument is not an int.

    Notes
    -----
    .. math:: y_j = x_{k_j}

    - Gradient for `x`: :math:`\bar x_{k_j} = \bar y_j`

    Differentiable to any order. All elements are sorted, which is one of the orders that
    ``numpy.partition`` may return.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.partition(xgrad.asarray([3.0, 1.0, 2.0]), 1)[:2]
    Tensor([1., 2.])
    """
    x = as_tensor("partition", "x", x)
    axis = axis_of_reals("partition", x, axis)
    n = x.shape[axis]
    for index in [
        as_int("partition", "kth", index) for index in (kth if isinstance(kth, tuple) else (kth,))
    ]:
        if not -n <= index < n:
            raise ValueError(
                f"partition: expected kth from {-n} to {n - 1} along axis {axis} of shape"
                f" {x.shape}, got {index}"
            )
    return searching.sort(x, axis=axis)
