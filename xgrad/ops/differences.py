"""Derivatives of sampled functions by finite differences: `gradient`."""

from __future__ import annotations

from typing import Any

from xgrad.core.arguments import as_int
from xgrad.core.dtypes import SCALARS
from xgrad.core.namespace import namespace
from xgrad.core.tensor import Tensor
from xgrad.ops.axes import cut
from xgrad.ops.products import as_floating
from xgrad.support.hints import shown


def gradient(
    x: Tensor,
    /,
    *spacing: float | Tensor,
    axis: int | tuple[int, ...] | None = None,
    edge_order: int = 1,
) -> Tensor | tuple[Tensor, ...]:
    """Return derivatives along axes of a function that is given at the points of a grid.

    Central differences of second order between points, one-sided ones at the two ends.

    Parameters
    ----------
    x : Tensor
        The values, with at least ``edge_order + 1`` of them along each axis; integers count as float32.
    *spacing : float or Tensor
        The distance of points, by default 1: one number for all axes; or for each axis a number, or the coordinates
        of the points as a vector.
    axis : int or tuple of int, optional
        Along what; by default along each axis.
    edge_order : {1, 2}, default 1
        The order of the differences at the ends.

    Returns
    -------
    Tensor or tuple of Tensor
        For each axis one of the shape of `x`; without a tuple where there is one axis.

    Raises
    ------
    ValueError
        If there are not enough points, coordinates do not fit, or `edge_order` is none of the above.
    TypeError
        If there are not as many spacings as axes, or an axis is no int.
    IndexError
        If there is no such axis.

    Notes
    -----
    Differentiable to any order, in the values and the spacings. As ``numpy.gradient``; ``torch.gradient`` always
    returns a tuple.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.gradient(xgrad.asarray([1.0, 2.0, 4.0, 7.0]))
    Tensor([1. , 1.5, 2.5, 3. ])
    >>> xgrad.gradient(xgrad.asarray([0.0, 1.0, 9.0]), xgrad.asarray([0.0, 1.0, 3.0]))
    Tensor([1., 2., 4.])
    """
    x = as_floating("gradient", x)
    given_axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = [as_int("gradient", "axis", a) for a in given_axes]
    if any(not -x.ndim <= a < x.ndim for a in axes):
        raise IndexError(f"gradient: axis {axis} is out of bounds for shape {x.shape}")
    if len({a % x.ndim for a in axes}) != len(axes):
        raise ValueError(f"gradient: expected different axes, got {axis}")
    if edge_order not in (1, 2):
        raise ValueError(f"gradient: expected an edge_order of 1 or 2, got {shown(edge_order)}")
    given = [s if type(s) in SCALARS else namespace.asarray(s, device=x.device) for s in spacing or (1.0,)]
    if len(given) == 1 and not getattr(given[0], "shape", ()):
        given *= len(axes)
    if len(given) != len(axes):
        raise TypeError(f"gradient: expected one spacing, or one for each of {len(axes)} axes, got {len(given)}")
    out = tuple([_along(x, a % x.ndim, h, edge_order) for a, h in zip(axes, given, strict=True)])
    return out[0] if len(out) == 1 else out


def _along(x: Tensor, axis: int, spacing: Any, edge_order: int) -> Tensor:
    n = x.shape[axis]
    if n <= edge_order:
        raise ValueError(
            f"gradient: expected {edge_order + 1} or more points along axis {axis} for edge_order {edge_order}, got "
            f"shape {x.shape}"
        )
    first, last = cut(axis, 0, 1), cut(axis, -1)
    if getattr(spacing, "shape", ()):
        if spacing.shape != (n,):
            raise ValueError(f"gradient: expected coordinates of shape ({n},) along axis {axis}, got {spacing.shape}")
        steps = namespace.reshape(namespace.diff(spacing), tuple([n - 1 if a == axis else 1 for a in range(x.ndim)]))
        before, after = steps[cut(axis, None, -1)], steps[cut(axis, 1)]
        share = before / (before + after)  # of the slope after a point in the slope there
        slopes = namespace.diff(x, axis=axis) / steps
        inner = slopes[cut(axis, None, -1)] * (1 - share) + slopes[cut(axis, 1)] * share
        shares: Any = share[first], 1 - share[last]
    else:
        slopes = namespace.diff(x, axis=axis) / spacing
        inner = (x[cut(axis, 2)] - x[cut(axis, None, -2)]) / (2 * spacing)
        shares = 0.5, 0.5
    ends = slopes[first], slopes[last]
    if edge_order == 2:
        inside = slopes[cut(axis, 1, 2)], slopes[cut(axis, -2, -1)]
        ends = ends[0] + (ends[0] - inside[0]) * shares[0], ends[1] + (ends[1] - inside[1]) * shares[1]
    return namespace.concat([ends[0], inner, ends[1]], axis=axis)
