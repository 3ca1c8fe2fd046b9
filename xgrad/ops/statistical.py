"""Reductions: the standard's statistical functions, running sums and products, `all` and `any`."""

from __future__ import annotations

import math
from typing import Any

from xgrad.core.arguments import ArrayLike
from xgrad.core.dtypes import BOOLEAN, FLOATING, INTEGER, is_complex
from xgrad.ops.declare import (
    Axis,
    broadcast_back,
    count,
    derivative,
    normalize_axes,
    restore_axes,
    slice_axis,
)

__all__ = [
    "all",
    "any",
    "cumulative_prod",
    "cumulative_sum",
    "logsumexp",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]


@derivative(
    lambda g, xp, x_shape, axis: broadcast_back(xp, g, x_shape, axis),
    lowest=INTEGER,
    native=True,
    autocast="wide",
)
def sum(
    xp: Any, x: ArrayLike, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False
) -> Any:
    r"""Return the sum along axes; 0 for no elements.

    Parameters
    ----------
    x : Tensor
        Numbers; bools count as integers.
    axis : int or tuple of int, optional
        The axes to reduce; by default all.
    dtype : dtype, optional
        The dtype of the computation and the result; by default the dtype of `x`, but at least int64
        for integers.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of the shape of `x` without the reduced axes.

    Notes
    -----
    .. math:: y = \sum_i x_i

    - Gradient for `x`: :math:`\bar y`

    Differentiable to any order.

    Python array API standard, statistical functions: ``sum``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.sum(xgrad.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    Tensor([4., 6.])
    """
    return xp.sum(x, axis=axis, dtype=dtype, keepdims=keepdims)


@derivative(
    lambda g, xp, x_shape, axis: broadcast_back(xp, g / count(x_shape, axis), x_shape, axis),
    lowest=FLOATING,
    upcast=True,
    native=True,
)
def mean(xp: Any, x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    r"""Return the mean along axes.

    Parameters
    ----------
    x : Tensor
        Integers and bools count as float32.
    axis : int or tuple of int, optional
        The axes to reduce; by default all.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of the shape of `x` without the reduced axes.

    Notes
    -----
    .. math:: y = \frac{1}{n} \sum_{i=1}^n x_i

    - Gradient for `x`: :math:`\bar y / n`

    Differentiable to any order.

    Python array API standard, statistical functions: ``mean``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.mean(xgrad.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    Tensor([2., 3.])
    """
    return xp.mean(x, axis=axis, keepdims=keepdims)


def _extremum_rule(g: Any, xp: Any, x: Any, out: Any, axis: Axis) -> Any:
    """Distribute the gradient of an extremum evenly among the elements that equal it."""
    ties = xp.astype(x == restore_axes(xp, out, x.shape, axis), g.dtype)
    share = restore_axes(xp, g, x.shape, axis) / xp.sum(ties, axis=axis, keepdims=True)
    return share * ties


@derivative(_extremum_rule, lowest=BOOLEAN, highest=FLOATING, native=True)
def max(xp: Any, x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    r"""Return the largest element along axes; tied elements share the gradient equally.

    Parameters
    ----------
    x : Tensor
        Real numbers or bools.
    axis : int or tuple of int, optional
        The axes to reduce; by default all.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of the shape of `x` without the reduced axes.

    Raises
    ------
    ValueError
        If there are no elements to reduce.

    Notes
    -----
    .. math:: y = \max_i\, x_i

    - Gradient for `x`: :math:`\bar y / k` for the :math:`k` elements equal to :math:`y`, else 0

    Differentiable to any order.

    Python array API standard, statistical functions: ``max``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.max(xgrad.asarray([[1.0, 4.0], [3.0, 2.0]]), axis=0)
    Tensor([3., 4.])
    """
    return xp.max(x, axis=axis, keepdims=keepdims)


@derivative(_extremum_rule, lowest=BOOLEAN, highest=FLOATING, native=True)
def min(xp: Any, x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    r"""Return the smallest element along axes; tied elements share the gradient equally.

    Parameters
    ----------
    x : Tensor
        Real numbers or bools.
    axis : int or tuple of int, optional
        The axes to reduce; by default all.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of the shape of `x` without the reduced axes.

    Raises
    ------
    ValueError
        If there are no elements to reduce.

    Notes
    -----
    .. math:: y = \min_i\, x_i

    - Gradient for `x`: :math:`\bar y / k` for the :math:`k` elements equal to :math:`y`, else 0

    Differentiable to any order.

    Python array API standard, statistical functions: ``min``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.min(xgrad.asarray([[1.0, 4.0], [3.0, 2.0]]), axis=0)
    Tensor([1., 2.])
    """
    return xp.min(x, axis=axis, keepdims=keepdims)


def exclusive_cumprod(xp: Any, x: Any) -> Any:
    """Return, for each element of the last axis, the product of the elements before it."""
    return xp.cumulative_prod(x, axis=-1, include_initial=True)[..., :-1]


def _prod_rule(g: Any, xp: Any, x: Any, axis: Axis) -> Any:
    """Return the gradient: `g` times the product of all other elements.

    It is the product of the elements before, times the product of the elements after.
    """
    shape, axes = tuple(x.shape), normalize_axes(len(x.shape), axis)
    kept = tuple(a for a in range(len(shape)) if a not in axes)
    rows = xp.reshape(
        xp.permute_dims(x, kept + axes), (*(shape[a] for a in kept), count(shape, axis))
    )
    others = exclusive_cumprod(xp, rows) * xp.flip(
        exclusive_cumprod(xp, xp.flip(rows, axis=-1)), axis=-1
    )
    others = xp.reshape(others, tuple(shape[a] for a in kept + axes))
    inverse = tuple((kept + axes).index(a) for a in range(len(shape)))
    return restore_axes(xp, g, shape, axis) * xp.permute_dims(others, inverse)


@derivative(_prod_rule, lowest=INTEGER, upcast=True, native=True, autocast="wide")
def prod(
    xp: Any, x: ArrayLike, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False
) -> Any:
    r"""Return the product along axes; 1 for no elements.

    Parameters
    ----------
    x : Tensor
        Numbers; bools count as integers.
    axis : int or tuple of int, optional
        The axes to reduce; by default all.
    dtype : dtype, optional
        The dtype of the computation and the result; by default the dtype of `x`, but at least int64
        for integers.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of the shape of `x` without the reduced axes.

    Notes
    -----
    .. math:: y = \prod_i x_i

    - Gradient for `x`: :math:`\bar y \prod_{j \ne i} x_j`

    The derivatives are exact at zeros too, at any order.

    Python array API standard, statistical functions: ``prod``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.prod(xgrad.asarray([2.0, 0.0, 5.0]))
    Tensor(0.)
    """
    return xp.prod(x, axis=axis, dtype=dtype, keepdims=keepdims)


def _deviation(xp: Any, x: Any, axis: Axis, correction: float) -> Any:
    """Return the distance from the mean divided by the degrees of freedom; NaN if none."""
    degrees = count(x.shape, axis) - correction
    return (x - xp.mean(x, axis=axis, keepdims=True)) * (1 / degrees if degrees > 0 else math.nan)


@derivative(
    lambda g, xp, x, axis, correction: (
        restore_axes(xp, g, x.shape, axis) * (2 * _deviation(xp, x, axis, correction))
    ),
    lowest=FLOATING,
    upcast=True,
    native=True,
)
def var(
    xp: Any, x: ArrayLike, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False
) -> Any:
    r"""Return the variance along axes.

    Parameters
    ----------
    x : Tensor
        Integers and bools count as float32.
    axis : int or tuple of int, optional
        The axes to reduce; by default all.
    correction : float, default 0
        Subtracted from the number of elements: 1 for the unbiased variance, PyTorch's default.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of the shape of `x` without the reduced axes.

    Notes
    -----
    .. math::

        y = \frac{1}{n - c} \sum_{i=1}^n (x_i - m)^2,
        \quad m = \frac{1}{n} \sum_{i=1}^n x_i

    - Gradient for `x`: :math:`2 \bar y (x_i - m) / (n - c)`; :math:`c` is the ``correction``

    Differentiable to any order.

    Python array API standard, statistical functions: ``var``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.var(xgrad.asarray([1.0, 3.0]), correction=1)
    Tensor(2.)
    """
    return xp.var(x, axis=axis, correction=correction, keepdims=keepdims)


def _std_rule(g: Any, xp: Any, x: Any, out: Any, axis: Axis, correction: float) -> Any:
    some = xp.where(out == 0, 0, g / xp.where(out == 0, 1, out))
    return restore_axes(xp, some, x.shape, axis) * _deviation(xp, x, axis, correction)


@derivative(_std_rule, lowest=FLOATING, upcast=True, native=True)
def std(
    xp: Any, x: ArrayLike, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False
) -> Any:
    r"""Return the standard deviation along axes.

    Where it is 0, and has a kink, its derivative is 0, too.

    Parameters
    ----------
    x : Tensor
        Integers and bools count as float32.
    axis : int or tuple of int, optional
        The axes to reduce; by default all.
    correction : float, default 0
        Subtracted from the number of elements: 1 for the unbiased variance, PyTorch's default.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of the shape of `x` without the reduced axes.

    Notes
    -----
    .. math::

        y = \sqrt{\frac{1}{n - c} \sum_{i=1}^n (x_i - m)^2},
        \quad m = \frac{1}{n} \sum_{i=1}^n x_i

    - Gradient for `x`: :math:`\bar y (x_i - m) / ((n - c) y)`, and 0 where :math:`y = 0`;
      :math:`c` is the ``correction``

    Differentiable to any order.

    Python array API standard, statistical functions: ``std``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.std(xgrad.asarray([1.0, 3.0]))
    Tensor(1.)
    """
    return xp.std(x, axis=axis, correction=correction, keepdims=keepdims)


def _logsumexp_rule(g: Any, xp: Any, x: Any, out: Any, axis: Axis) -> Any:
    return restore_axes(xp, g, x.shape, axis) * xp.exp(x - restore_axes(xp, out, x.shape, axis))


@derivative(_logsumexp_rule, lowest=FLOATING, upcast=True)
def logsumexp(xp: Any, x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    r"""Return the logarithm of the sum of exponentials along axes, without overflow.

    Parameters
    ----------
    x : Tensor
        Integers count as float32.
    axis : int or tuple of int, optional
        The axes to reduce; by default all.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of the shape of `x` without the reduced axes; minus infinity for no elements. For complex
        numbers, the result is the principal value.

    Notes
    -----
    .. math:: y = \ln\left(\sum_i e^{x_i}\right)

    - Gradient for `x`: :math:`\bar y e^{x_i - y}`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.logsumexp(xgrad.asarray([1e4, 1e4]))
    Tensor(10000.693)
    """
    if 0 in x.shape:
        return xp.full_like(xp.sum(x, axis=axis, keepdims=keepdims), -math.inf)
    top = xp.max(xp.real(x) if is_complex(x.dtype) else x, axis=axis, keepdims=True)
    top = xp.where(xp.isfinite(top), top, 0)  # inf - inf would be NaN
    total = xp.log(xp.sum(xp.exp(x - top), axis=axis, keepdims=True)) + top
    return total if keepdims else xp.squeeze(total, axis=normalize_axes(len(x.shape), axis))


def _cumulative_sum_rule(
    g: Any, xp: Any, x_shape: tuple[int, ...], axis: int | None, include_initial: bool
) -> Any:
    axis = (axis or 0) % len(x_shape)
    g = g[slice_axis(axis, 1)] if include_initial else g
    return xp.flip(xp.cumulative_sum(xp.flip(g, axis=axis), axis=axis), axis=axis)


@derivative(_cumulative_sum_rule, lowest=INTEGER, upcast=True, autocast="wide")
def cumulative_sum(
    xp: Any,
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    include_initial: bool = False,
) -> Any:
    r"""Return the running sum along an axis.

    Parameters
    ----------
    x : Tensor
        Numbers; bools count as integers.
    axis : int, optional
        The axis; optional if `x` has only one.
    dtype : dtype, optional
        The dtype of the computation and the result; by default the dtype of `x`, but at least int64
        for integers.
    include_initial : bool, default False
        Whether the result starts with 0, the sum of no elements, and is longer by 1.

    Returns
    -------
    Tensor
        Of the shape of `x`, or longer by one along `axis`.

    Raises
    ------
    ValueError
        If `x` has no axes, or several and `axis` is not given.

    Notes
    -----
    .. math:: y_i = \sum_{j \le i} x_j

    - Gradient for `x`: :math:`\sum_{j \ge i} \bar y_j`

    Differentiable to any order.

    Python array API standard, statistical functions: ``cumulative_sum``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.cumulative_sum(xgrad.asarray([1.0, 2.0, 3.0]))
    Tensor([1., 3., 6.])
    """
    if not x.shape:
        raise ValueError("expected x with at least one axis")
    return xp.cumulative_sum(x, axis=axis, dtype=dtype, include_initial=include_initial)


def _reverse_linear_scan(xp: Any, g: Any, x: Any) -> Any:
    """Return s with ``s[i] = g[i] + x[i + 1] * s[i + 1]`` along the last axis.

    Computed by doubling, in log2(n) steps. There is no division, so zeros do no harm, and products
    are differentiable.
    """
    n, step, factors = x.shape[-1], 1, x
    while step < n:  # factors[i] carries s[i + step] to s[i]
        factors = x[..., 1:] if step == 1 else factors[..., : n - step] * factors[..., step // 2 :]
        g = xp.concat([g[..., :-step] + factors * g[..., step:], g[..., -step:]], axis=-1)
        step *= 2
    return g


def _cumulative_prod_rule(g: Any, xp: Any, x: Any, axis: int | None, include_initial: bool) -> Any:
    """Return the gradient by each element.

    It is the product of the elements before it, times a scan of `g` and the elements after it.
    """
    axis = (axis or 0) % len(x.shape)
    g = g[slice_axis(axis, 1)] if include_initial else g
    g, x = xp.moveaxis(g, axis, -1), xp.moveaxis(x, axis, -1)
    return xp.moveaxis(exclusive_cumprod(xp, x) * _reverse_linear_scan(xp, g, x), -1, axis)


@derivative(_cumulative_prod_rule, lowest=INTEGER, upcast=True, autocast="wide")
def cumulative_prod(
    xp: Any,
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    include_initial: bool = False,
) -> Any:
    r"""Return the running product along an axis.

    Parameters
    ----------
    x : Tensor
        Numbers; bools count as integers.
    axis : int, optional
        The axis; optional if `x` has only one.
    dtype : dtype, optional
        The dtype of the computation and the result; by default the dtype of `x`, but at least int64
        for integers.
    include_initial : bool, default False
        Whether the result starts with 1, the product of no elements, and is longer by 1.

    Returns
    -------
    Tensor
        Of the shape of `x`, or longer by one along `axis`.

    Raises
    ------
    ValueError
        If `x` has no axes, or several and `axis` is not given.

    Notes
    -----
    .. math:: y_i = \prod_{j \le i} x_j

    - Gradient for `x`: :math:`\sum_{j \ge i} \bar y_j \prod_{k \le j, k \ne i} x_k`

    The derivatives are exact at zeros too, at any order.

    Python array API standard, statistical functions: ``cumulative_prod``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.cumulative_prod(xgrad.asarray([1.0, 2.0, 3.0]))
    Tensor([1., 2., 6.])
    """
    if not x.shape:
        raise ValueError("expected x with at least one axis")
    return xp.cumulative_prod(x, axis=axis, dtype=dtype, include_initial=include_initial)


@derivative(None, lowest=BOOLEAN, native=True)
def any(xp: Any, x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return whether any element along axes is true or nonzero.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    axis : int or tuple of int, optional
        The axes to reduce; by default all.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Bools, of the shape of `x` without the reduced axes.

    Notes
    -----
    Not differentiable: no gradient flows.

    Python array API standard, utility functions: ``any``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.any(xgrad.asarray([False, True]))
    Tensor(True)
    """
    return xp.any(x, axis=axis, keepdims=keepdims)


@derivative(None, lowest=BOOLEAN, native=True)
def all(xp: Any, x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return whether all elements along axes are true or nonzero.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    axis : int or tuple of int, optional
        The axes to reduce; by default all.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Bools, of the shape of `x` without the reduced axes.

    Notes
    -----
    Not differentiable: no gradient flows.

    Python array API standard, utility functions: ``all``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.all(xgrad.asarray([False, True]))
    Tensor(False)
    """
    return xp.all(x, axis=axis, keepdims=keepdims)
