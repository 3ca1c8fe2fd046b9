"""Differences between neighbours, and derivatives of sampled functions: `diff`, `gradient`."""

from __future__ import annotations

from typing import Any

from xgrad.core.arguments import as_tensor, axis_error, front_axis
from xgrad.core.dtypes import SCALARS
from xgrad.core.tensor import Tensor
from xgrad.ops import joining, manipulation, tensor_conversion
from xgrad.ops.declare import derivative, slice_axis
from xgrad.ops.joining import concat
from xgrad.ops.matrix_products import as_floating
from xgrad.support.hints import explained, shown

__all__ = ["diff", "gradient"]


def _diff_rule(g: Any, xp: Any, x_shape: tuple[int, ...], axis: int, n: int) -> Any:
    """Return the transpose of a difference: the difference of `g` between zeros, times (-1)**n."""
    axis %= len(x_shape)
    before, after = (
        (*g.shape[:axis], k, *g.shape[axis + 1 :]) for k in (n, x_shape[axis] - g.shape[axis])
    )
    like = {"dtype": g.dtype, "device": getattr(g, "device", None)}
    padded = xp.concat([xp.zeros(before, **like), g, xp.zeros(after, **like)], axis=axis)
    return (-1) ** n * xp.diff(padded, axis=axis, n=n)


@derivative(_diff_rule)
def _diff(xp: Any, x: Any, /, *, axis: int, n: int) -> Any:
    count = min(n, x.shape[axis])
    for _ in range(count):
        after, before = x[slice_axis(axis, 1)], x[slice_axis(axis, None, -1)]
        x = after != before if x.dtype == xp.bool else after - before
    return x if count else xp.asarray(x, copy=True)


@explained
def diff(
    x: Tensor,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    r"""Return the n-th differences between neighbours along an axis.

    Parameters
    ----------
    x : Tensor
        With at least one axis. For bools, the difference is whether they differ.
    axis : int, default -1
        The axis to take differences along.
    n : int, default 1
        The order of differences; 0 returns the elements of `x`, without `prepend` and `append`.
    prepend, append : Tensor, optional
        Elements to put before and after `x`, of its shape except along `axis`. They get gradients,
        too.

    Returns
    -------
    Tensor
        Of the shape of `x`, shorter by `n` along `axis`; empty if there are too few elements.

    Raises
    ------
    ValueError
        If `n` is negative, or the shapes do not agree.
    IndexError
        If there is no such axis.
    DeviceError
        If the tensors are on several devices.

    Notes
    -----
    .. math:: y_i = x_{i+1} - x_i

    This is repeated ``n`` times, with ``prepend`` and ``append`` as parts of `x`.

    - Gradient for `x`: :math:`\bar y_{i-1} - \bar y_i`, where elements outside of :math:`\bar y`
      count as 0

    Differentiable to any order.

    Python array API standard, utility functions: ``diff``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.diff(xgrad.asarray([1.0, 4.0, 9.0]), prepend=xgrad.asarray([0.0]))
    Tensor([1., 3., 5.])
    """
    x = as_tensor("diff", "x", x)
    front = front_axis("diff", x, axis)
    if n < 0:
        raise ValueError(f"diff: expected n to be at least 0, got {n}")
    parts = [part for part in (prepend, x, append) if part is not None] if n else [x]
    return _diff(x if len(parts) == 1 else concat(parts, axis=axis), axis=front, n=n)


@explained
def gradient(
    x: Tensor,
    /,
    *spacing: float | Tensor,
    axis: int | tuple[int, ...] | None = None,
    edge_order: int = 1,
) -> Tensor | tuple[Tensor, ...]:
    r"""Return the derivatives along axes of a function sampled at the points of a grid.

    Inner points use central differences of second order, the two ends use one-sided differences.

    Parameters
    ----------
    x : Tensor
        The values of the function, at least ``edge_order + 1`` along each axis; integers count as
        float32.
    *spacing : float or Tensor
        The distance between points, by default 1: one number for all axes, or for each axis a
        number or the coordinates of its points as a vector.
    axis : int or tuple of int, optional
        The axes; by default all.
    edge_order : {1, 2}, default 1
        The order of the differences at the ends.

    Returns
    -------
    Tensor or tuple of Tensor
        One derivative for each axis, of the shape of `x`; not in a tuple if there is one axis.

    Raises
    ------
    ValueError
        If there are too few points, the coordinates do not fit, or `edge_order` is none of the
        above.
    TypeError
        If there are not as many spacings as axes, or an axis is not an int.
    IndexError
        If there is no such axis.

    Notes
    -----
    .. math::

        y_i = \frac{h_i s_{i-1} + h_{i-1} s_i}{h_{i-1} + h_i},
        \quad s_i = \frac{x_{i+1} - x_i}{h_i}

    :math:`h_i` is the distance of the points :math:`i` and :math:`i + 1`. For equal distances,
    :math:`y_i = (x_{i+1} - x_{i-1}) / (2 h)`. At the ends, :math:`y` is the next :math:`s`, or with
    an ``edge_order`` of 2 the line through the next two.

    - Gradient for `x`: :math:`\bar s_{i-1} / h_{i-1} - \bar s_i / h_i` with
      :math:`\bar s_i = w_i \bar y_i + (1 - w_{i+1}) \bar y_{i+1}` and
      :math:`w_i = h_{i-1} / (h_{i-1} + h_i)`, away from the ends
    - Gradient for `spacing`: :math:`-\frac{1}{h} \sum_i \bar y_i y_i`; coordinates get their
      gradients through each :math:`h_i`

    Differentiable to any order, in the values and the spacings. Like ``numpy.gradient``;
    ``torch.gradient`` always returns a tuple.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.gradient(xgrad.asarray([1.0, 2.0, 4.0, 7.0]))
    Tensor([1. , 1.5, 2.5, 3. ])
    >>> xgrad.gradient(xgrad.asarray([0.0, 1.0, 9.0]), xgrad.asarray([0.0, 1.0, 3.0]))
    Tensor([1., 2., 4.])
    """
    x = as_floating("gradient", "x", x)
    if axis is not None and (error := axis_error("gradient", "axis", axis, x.shape)):
        raise error
    axes = [
        a % x.ndim
        for a in (
            range(x.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
        )
    ]
    if edge_order not in (1, 2):
        raise ValueError(f"gradient: expected an edge_order of 1 or 2, got {shown(edge_order)}")
    spacings = [
        s if type(s) in SCALARS else tensor_conversion.asarray(s, device=x.device)
        for s in spacing or (1.0,)
    ]
    if len(spacings) == 1 and not getattr(spacings[0], "shape", ()):
        spacings *= len(axes)
    if len(spacings) != len(axes):
        raise TypeError(
            f"gradient: expected one spacing, or one for each of {len(axes)} axes, got"
            f" {len(spacings)}"
        )
    out = tuple([_gradient_along(x, a, h, edge_order) for a, h in zip(axes, spacings, strict=True)])
    return out[0] if len(out) == 1 else out


def _gradient_along(x: Tensor, axis: int, spacing: Any, edge_order: int) -> Tensor:
    n = x.shape[axis]
    if n <= edge_order:
        raise ValueError(
            f"gradient: expected {edge_order + 1} or more points along axis {axis} for edge_order"
            f" {edge_order}, got shape {x.shape}"
        )
    first, last = slice_axis(axis, 0, 1), slice_axis(axis, -1)
    if getattr(spacing, "shape", ()):
        if spacing.shape != (n,):
            raise ValueError(
                f"gradient: expected coordinates of shape ({n},) along axis {axis}, got"
                f" {spacing.shape}"
            )
        steps = manipulation.reshape(
            diff(spacing), tuple([n - 1 if a == axis else 1 for a in range(x.ndim)])
        )
        before, after = steps[slice_axis(axis, None, -1)], steps[slice_axis(axis, 1)]
        share = before / (before + after)  # the weight of the slope after a point
        slopes = diff(x, axis=axis) / steps
        inner = (
            slopes[slice_axis(axis, None, -1)] * (1 - share) + slopes[slice_axis(axis, 1)] * share
        )
        shares: Any = share[first], 1 - share[last]
    else:
        slopes = diff(x, axis=axis) / spacing
        inner = (x[slice_axis(axis, 2)] - x[slice_axis(axis, None, -2)]) / (2 * spacing)
        shares = 0.5, 0.5
    ends = slopes[first], slopes[last]
    if edge_order == 2:
        inside = slopes[slice_axis(axis, 1, 2)], slopes[slice_axis(axis, -2, -1)]
        ends = (
            ends[0] + (ends[0] - inside[0]) * shares[0],
            ends[1] + (ends[1] - inside[1]) * shares[1],
        )
    return joining.concat([ends[0], inner, ends[1]], axis=axis)
