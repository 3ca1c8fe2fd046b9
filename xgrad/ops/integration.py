"""Integration of samples."""

from __future__ import annotations

from typing import Any

from xgrad.core.arguments import as_number, as_tensor, front_axis
from xgrad.core.tensor import Tensor
from xgrad.ops import elementwise, manipulation, statistical
from xgrad.ops.declare import slice_axis
from xgrad.ops.matrix_products import as_floating
from xgrad.ops.precision import upcast
from xgrad.support.hints import explained

__all__ = ["trapezoid"]


@upcast
@explained
def trapezoid(y: Tensor, /, *, x: Tensor | None = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    """Return the integral along an axis by the trapezoidal rule.

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
