"""Integration and interpolation of samples."""

from __future__ import annotations

from typing import Any

from xgrad.core.arguments import as_number, as_tensor, front_axis
from xgrad.core.tensor import Tensor
from xgrad.ops import elementwise, indexing, manipulation, searching, statistical
from xgrad.ops.declare import slice_axis
from xgrad.ops.matrix_products import as_floating
from xgrad.ops.precision import upcast
from xgrad.support.hints import explained

__all__ = ["interp", "trapezoid"]


@upcast
@explained
def trapezoid(y: Tensor, /, *, x: Tensor | None = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    r"""Return the integral along an axis by the trapezoidal rule.

    Parameters
    ----------
    y : Tensor
        The samples, with at least one axis; integers count as float32.
    x : Tensor, optional
        The points of the samples: of the shape of `y`, or of shape (n,) for n samples along `axis`.
    dx : float, default 1
        The distance of the points, if `x` is not given.
    axis : int, default -1
        The axis to integrate along.

    Returns
    -------
    Tensor
        Of the shape of `y` without the axis.

    Raises
    ------
    ValueError
        If the shape of `x` does not fit, or `y` has no axes.
    IndexError
        If `axis` is out of bounds.

    Notes
    -----
    .. math:: z = \sum_i h_i \frac{y_i + y_{i+1}}{2}, \quad h_i = x_{i+1} - x_i

    Outside of the samples, :math:`h` and :math:`m_i = (y_i + y_{i+1}) / 2` count as 0.

    - Gradient for `y`: :math:`\bar z (h_{i-1} + h_i) / 2`
    - Gradient for `x`: :math:`\bar z (m_{i-1} - m_i)`

    Differentiable to any order, in `x`, too. Like ``numpy.trapezoid`` and ``torch.trapezoid``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.trapezoid(xgrad.asarray([1.0, 2.0, 3.0]))
    Tensor(4.)
    >>> xgrad.trapezoid(xgrad.asarray([1.0, 2.0]), x=xgrad.asarray([0.0, 4.0]))
    Tensor(6.)
    """
    y = as_floating("trapezoid", "y", y)
    axis = front_axis("trapezoid", y, axis, of="y")
    n = y.shape[axis]
    after, before = slice_axis(axis, min(n, 1)), slice_axis(axis, None, max(n - 1, 0))
    means = (y[after] + y[before]) / 2
    if x is None:
        return elementwise.multiply(
            statistical.sum(means, axis=axis), as_number("trapezoid", "dx", dx)
        )
    points = as_tensor("trapezoid", "x", x)
    if points.shape == (n,):
        shape = [1] * y.ndim
        shape[axis] = n
        points = manipulation.reshape(points, tuple(shape))
    elif points.shape != y.shape:
        raise ValueError(f"trapezoid: expected x of shape {y.shape} or {(n,)}, got {points.shape}")
    steps: Any = points[after] - points[before]
    return statistical.sum(means * steps, axis=axis)


@upcast
@explained
def interp(
    x: Tensor,
    xp: Tensor,
    fp: Tensor,
    /,
    *,
    left: float | None = None,
    right: float | None = None,
) -> Tensor:
    r"""Interpolate a function of one variable linearly between points.

    Parameters
    ----------
    x : Tensor
        Real numbers of any shape, at which to evaluate; integers count as float32.
    xp : Tensor
        The points, of shape (n,), in ascending order.
    fp : Tensor
        The values at the points, of shape (n,).
    left, right : float, optional
        The values below the first point and above the last; by default its own.

    Returns
    -------
    Tensor
        Of the shape of `x`; NaN where `x` is NaN.

    Raises
    ------
    ValueError
        If the shapes do not fit, or there are no points. That points ascend is not checked.
    TypeError
        If an input is complex.

    Notes
    -----
    .. math:: y = (1 - t) f_k + t f_{k+1}, \quad t = \frac{x - p_k}{p_{k+1} - p_k}

    :math:`p` and :math:`f` are ``xp`` and ``fp``, and :math:`x` is between :math:`p_k` and
    :math:`p_{k+1}`, with the slope :math:`s = (f_{k+1} - f_k) / (p_{k+1} - p_k)` there. Outside of
    the points, :math:`y` is constant.

    - Gradient for `x`: :math:`\bar y\, s`
    - Gradient for `xp`: :math:`-\bar y\, s (1 - t)` at :math:`p_k` and :math:`-\bar y\, s t` at
      :math:`p_{k+1}`
    - Gradient for `fp`: :math:`\bar y (1 - t)` at :math:`f_k` and :math:`\bar y\, t` at
      :math:`f_{k+1}`

    Differentiable to any order, in the points, too. Like ``numpy.interp``.

    Examples
    --------
    >>> import xgrad
    >>> points, values = xgrad.asarray([0.0, 1.0, 3.0]), xgrad.asarray([0.0, 2.0, 4.0])
    >>> xgrad.interp(xgrad.asarray([0.5, 2.0, 9.0]), points, values)
    Tensor([1., 3., 4.])
    """
    names = ("x", "xp", "fp")
    x, xp, fp = [as_floating("interp", n, a) for n, a in zip(names, (x, xp, fp), strict=True)]
    for name, array in zip(names, (x, xp, fp), strict=True):
        if array.dtype.kind == "c":
            raise TypeError(f"interp: expected real numbers for {name}, got {array.dtype}")
    if xp.ndim != 1 or xp.shape != fp.shape or not xp.shape[0]:
        raise ValueError(
            "interp: expected xp and fp of one shape (n,), with n of 1 or more, got"
            f" {xp.shape} and {fp.shape}"
        )
    sides = [
        fp[i] if value is None else as_number("interp", name, value)
        for name, value, i in (("left", left, 0), ("right", right, -1))
    ]
    last = max(xp.shape[0] - 2, 0)  # the last interval
    below = searching.searchsorted(xp, x, side="right") - 1
    start = elementwise.clip(below, 0, last)
    end = elementwise.minimum(start + 1, xp.shape[0] - 1)
    flat = manipulation.reshape(start, (-1,)), manipulation.reshape(end, (-1,))
    x0, x1 = [manipulation.reshape(indexing.take(xp, i), x.shape) for i in flat]
    f0, f1 = [manipulation.reshape(indexing.take(fp, i), x.shape) for i in flat]
    # outside of the points, the quotient is replaced before it is computed
    inside = (x >= x0) & (x < x1)
    share = searching.where(inside, x - x0, 0) / searching.where(inside, x1 - x0, 1)
    # an infinite value leaves the point before it and values equal to it as they are
    infinite = ~(elementwise.isfinite(f0) & elementwise.isfinite(f1))
    constant = infinite & ((share == 0) | (f0 == f1))
    change = searching.where(constant, 0, f1) - searching.where(constant, 0, f0)
    out = searching.where(x >= x1, f1, f0 + change * share)
    out = searching.where(x < xp[0], sides[0], searching.where(x > xp[-1], sides[1], out))
    return searching.where(elementwise.isnan(x), x, out)
