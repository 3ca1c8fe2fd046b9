"""Running maxima, minima and log-sum-exps: `cummax`, `cummin`, `logcumsumexp`.

Along an axis of length n, each takes log2(n) steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from xgrad import ops
from xgrad.core.arguments import as_tensor
from xgrad.core.dtypes import int64
from xgrad.core.tensor import Tensor
from xgrad.ops import elementwise, searching
from xgrad.ops.declare import axis_of_reals
from xgrad.ops.matrix_products import as_floating
from xgrad.support.hints import explained

__all__ = ["cummax", "cummin", "logcumsumexp"]


def _associative_scan(xp: Any, combine: Callable[[Any, Any], Any], x: Any, axis: int) -> Any:
    """Return the running results of an associative operation along an axis."""
    x, step = xp.moveaxis(x, axis, -1), 1
    while step < x.shape[-1]:  # each element combines `step` elements, or all up to it
        x = xp.concat([x[..., :step], combine(x[..., :-step], x[..., step:])], axis=-1)
        step *= 2
    return xp.moveaxis(x, -1, axis)


def _running_extremum(
    name: str, x: Any, axis: int | None, combine: Callable[[Any, Any], Any]
) -> Tensor:
    """Return, for each element, the last element up to it that is the running extremum or NaN."""
    xp, x = ops, as_tensor(name, "x", x)
    axis, known = axis_of_reals(name, x, axis), x.detach()
    shape = tuple([n if a == axis else 1 for a, n in enumerate(x.shape)])
    indices = xp.reshape(xp.arange(x.shape[axis], dtype=int64, device=x.device), shape)
    is_extremum = (known == _associative_scan(xp, combine, known, axis)) | (known != known)
    return xp.take_along_axis(
        x, _associative_scan(xp, xp.maximum, xp.where(is_extremum, indices, 0), axis), axis=axis
    )


def _logaddexp_or_infinity(x1: Any, x2: Any) -> Any:
    """Return logaddexp, with a derivative of 0 where both inputs are minus infinity.

    There, logaddexp has no derivative.
    """
    nothing = elementwise.maximum(x1, x2) == -math.inf
    total = elementwise.logaddexp(searching.where(nothing, 0, x1), searching.where(nothing, 0, x2))
    return searching.where(nothing, -math.inf, total)


@explained
def cummax(x: Tensor, /, *, axis: int | None = None) -> Tensor:
    r"""Return the running maximum along an axis.

    Parameters
    ----------
    x : Tensor
        Real numbers, with at least one axis.
    axis : int, optional
        The axis; optional if `x` has only one.

    Returns
    -------
    Tensor
        Same shape and dtype as `x`; NaN from the first NaN on.

    Raises
    ------
    ValueError
        If `x` has no axes, or several and `axis` is not given.
    IndexError
        If `axis` is out of bounds.
    TypeError
        If `x` is complex.

    Notes
    -----
    .. math:: y_i = \max_{j \le i}\, x_j = x_{k_i}

    - Gradient for `x`: :math:`\bar x_j = \sum_{i:\, k_i = j} \bar y_i`; of equal elements,
      :math:`k_i` is the last up to :math:`i`

    Differentiable to any order. Ties are as in PyTorch; ``torch.cummax`` returns indices, too.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.cummax(xgrad.asarray([1.0, 3.0, 2.0]))
    Tensor([1., 3., 3.])
    """
    return _running_extremum("cummax", x, axis, elementwise.maximum)


@explained
def cummin(x: Tensor, /, *, axis: int | None = None) -> Tensor:
    r"""Return the running minimum along an axis.

    Parameters
    ----------
    x : Tensor
        Real numbers, with at least one axis.
    axis : int, optional
        The axis; optional if `x` has only one.

    Returns
    -------
    Tensor
        Same shape and dtype as `x`; NaN from the first NaN on.

    Raises
    ------
    ValueError
        If `x` has no axes, or several and `axis` is not given.
    IndexError
        If `axis` is out of bounds.
    TypeError
        If `x` is complex.

    Notes
    -----
    .. math:: y_i = \min_{j \le i}\, x_j = x_{k_i}

    - Gradient for `x`: :math:`\bar x_j = \sum_{i:\, k_i = j} \bar y_i`; of equal elements,
      :math:`k_i` is the last up to :math:`i`

    Differentiable to any order. Ties are as in PyTorch; ``torch.cummin`` returns indices, too.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.cummin(xgrad.asarray([2.0, 1.0, 3.0]))
    Tensor([2., 1., 1.])
    """
    return _running_extremum("cummin", x, axis, elementwise.minimum)


@explained
def logcumsumexp(x: Tensor, /, *, axis: int | None = None) -> Tensor:
    r"""Return the logarithm of the running sum of exponentials along an axis, without overflow.

    Parameters
    ----------
    x : Tensor
        Real numbers, with at least one axis; integers count as float32.
    axis : int, optional
        The axis; optional if `x` has only one.

    Returns
    -------
    Tensor
        Same shape as `x`.

    Raises
    ------
    ValueError
        If `x` has no axes, or several and `axis` is not given.
    IndexError
        If `axis` is out of bounds.
    TypeError
        If `x` is complex.

    Notes
    -----
    .. math:: y_i = \ln\left(\sum_{j \le i} e^{x_j}\right)

    - Gradient for `x`: :math:`\bar x_j = \sum_{i \ge j} \bar y_i e^{x_j - y_i}`

    Differentiable to any order; where two minus infinities are added, the derivative is 0. Like
    ``torch.logcumsumexp``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.logcumsumexp(xgrad.asarray([-1e4, 0.0, 0.0]))
    Tensor([-1.000000e+04,  0.000000e+00,  6.931472e-01])
    """
    x = as_floating("logcumsumexp", "x", x)
    out: Tensor = _associative_scan(
        ops, _logaddexp_or_infinity, x, axis_of_reals("logcumsumexp", x, axis)
    )
    return out
