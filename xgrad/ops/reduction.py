"""Ops that reduce axes: sums, means, extrema, products, variances, and running sums."""

from __future__ import annotations

import math
from typing import Any

from xgrad.declare import derivative
from xgrad.dtypes import FLOATING, INTEGER

Axis = int | tuple[int, ...] | None


def _axes(ndim: int, axis: Axis) -> tuple[int, ...]:
    """Return the axes that are reduced, counted from the front."""
    if axis is None:
        return tuple(range(ndim))
    return tuple(sorted(a % ndim for a in (axis if isinstance(axis, tuple) else (axis,)))) if ndim else ()


def _count(shape: tuple[int, ...], axis: Axis) -> int:
    return math.prod(shape[a] for a in _axes(len(shape), axis))


def _keepdims(xp: Any, reduced: Any, shape: tuple[int, ...], axis: Axis) -> Any:
    """Give a reduced array its axes back, with length 1, so that it broadcasts against what it came from."""
    axes = _axes(len(shape), axis)
    return xp.reshape(reduced, tuple(1 if a in axes else n for a, n in enumerate(shape)))


def _spread(xp: Any, g: Any, shape: tuple[int, ...], axis: Axis) -> Any:
    return xp.broadcast_to(_keepdims(xp, g, shape, axis), shape)


@derivative(lambda g, xp, x_shape, axis: _spread(xp, g, x_shape, axis), kind=INTEGER)
def sum(xp: Any, x: Any, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Return the sum along axes.

    Parameters
    ----------
    x : Tensor
        Numbers; bools count as integers.
    axis : int or tuple of int, optional
        What to reduce; by default all.
    dtype : dtype, optional
        The dtype to sum in and to return; by default that of `x`, and at least int64 for integers.
    keepdims : bool, default False
        Whether reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of the shape of `x` without the reduced axes; 0 where there is nothing to sum.

    Notes
    -----
    Python array API standard, statistical functions: ``sum``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.sum(xgrad.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    Tensor([4., 6.])
    """
    return xp.sum(x, axis=axis, dtype=dtype, keepdims=keepdims)


@derivative(lambda g, xp, x_shape, axis: _spread(xp, g / _count(x_shape, axis), x_shape, axis), kind=FLOATING)
def mean(xp: Any, x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return the mean along axes.

    Parameters
    ----------
    x : Tensor
        Integers and bools count as float32.
    axis : int or tuple of int, optional
        What to reduce; by default all.
    keepdims : bool, default False
        Whether reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of the shape of `x` without the reduced axes.

    Notes
    -----
    Python array API standard, statistical functions: ``mean``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.mean(xgrad.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    Tensor([2., 3.])
    """
    return xp.mean(x, axis=axis, keepdims=keepdims)


def _shared(g: Any, xp: Any, x: Any, out: Any, axis: Axis) -> Any:
    """Give the gradient of an extremum to the elements that equal it, in equal parts."""
    ties = xp.astype(x == _keepdims(xp, out, x.shape, axis), g.dtype)
    share = _keepdims(xp, g, x.shape, axis) / xp.sum(ties, axis=axis, keepdims=True)
    return share * ties


@derivative(_shared)
def max(xp: Any, x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return the largest element along axes; those that tie share the gradient equally.

    Parameters
    ----------
    x : Tensor
        Real numbers; not empty along the reduced axes.
    axis : int or tuple of int, optional
        What to reduce; by default all.
    keepdims : bool, default False
        Whether reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of the shape of `x` without the reduced axes, and of its dtype.

    Raises
    ------
    ValueError
        If there is nothing to choose from.

    Notes
    -----
    Python array API standard, statistical functions: ``max``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.max(xgrad.asarray([[1.0, 4.0], [3.0, 2.0]]), axis=0)
    Tensor([3., 4.])
    """
    return xp.max(x, axis=axis, keepdims=keepdims)


@derivative(_shared)
def min(xp: Any, x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return the smallest element along axes; those that tie share the gradient equally.

    Parameters
    ----------
    x : Tensor
        Real numbers; not empty along the reduced axes.
    axis : int or tuple of int, optional
        What to reduce; by default all.
    keepdims : bool, default False
        Whether reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of the shape of `x` without the reduced axes, and of its dtype.

    Raises
    ------
    ValueError
        If there is nothing to choose from.

    Notes
    -----
    Python array API standard, statistical functions: ``min``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.min(xgrad.asarray([[1.0, 4.0], [3.0, 2.0]]), axis=0)
    Tensor([1., 2.])
    """
    return xp.min(x, axis=axis, keepdims=keepdims)


def _products_before(xp: Any, x: Any) -> Any:
    """Return for each element of the last axis the product of those before it.

    Doubling, in log2(n) multiplications: no division, so zeros do no harm, and differentiable like any product.
    """
    n = x.shape[-1]
    if n == 0:
        return x
    x = xp.concat([xp.ones_like(x[..., :1]), x[..., :-1]], axis=-1)
    step = 1
    while step < n:
        x = xp.concat([x[..., :step], x[..., step:] * x[..., :-step]], axis=-1)
        step *= 2
    return x


def _prod_rule(g: Any, xp: Any, x: Any, axis: Axis) -> Any:
    """The derivative by an element is the product of all the others: of those before and of those behind."""
    shape, axes = tuple(x.shape), _axes(len(x.shape), axis)
    kept = tuple(a for a in range(len(shape)) if a not in axes)
    rows = xp.reshape(xp.permute_dims(x, kept + axes), (*(shape[a] for a in kept), _count(shape, axis)))
    others = _products_before(xp, rows) * xp.flip(_products_before(xp, xp.flip(rows, axis=-1)), axis=-1)
    others = xp.reshape(others, tuple(shape[a] for a in kept + axes))
    inverse = tuple((kept + axes).index(a) for a in range(len(shape)))
    return _keepdims(xp, g, shape, axis) * xp.permute_dims(others, inverse)


@derivative(_prod_rule, kind=INTEGER)
def prod(xp: Any, x: Any, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Return the product along axes.

    Parameters
    ----------
    x : Tensor
        Numbers; bools count as integers.
    axis : int or tuple of int, optional
        What to reduce; by default all.
    dtype : dtype, optional
        The dtype to multiply in and to return; by default that of `x`, and at least int64 for integers.
    keepdims : bool, default False
        Whether reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of the shape of `x` without the reduced axes; 1 where there is nothing to multiply.

    Notes
    -----
    The derivatives are exact at zeros too, at any order. Python array API standard, statistical functions:
    ``prod``.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.Tensor([2.0, 0.0, 5.0], requires_grad=True)
    >>> xgrad.prod(x).backward()
    >>> x.grad
    Tensor([ 0., 10.,  0.])
    """
    return xp.prod(x, axis=axis, dtype=dtype, keepdims=keepdims)


def _deviation(xp: Any, x: Any, axis: Axis, correction: float) -> Any:
    """Return the distance from the mean over the degrees of freedom, NaN where there are none."""
    degrees = _count(x.shape, axis) - correction
    return (x - xp.mean(x, axis=axis, keepdims=True)) * (1 / degrees if degrees > 0 else math.nan)


def _var_rule(g: Any, xp: Any, x: Any, axis: Axis, correction: float) -> Any:
    return _keepdims(xp, g, x.shape, axis) * (2 * _deviation(xp, x, axis, correction))


def _std_rule(g: Any, xp: Any, x: Any, out: Any, axis: Axis, correction: float) -> Any:
    return _keepdims(xp, g / out, x.shape, axis) * _deviation(xp, x, axis, correction)


@derivative(_var_rule, kind=FLOATING)
def var(xp: Any, x: Any, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """Return the variance along axes.

    Parameters
    ----------
    x : Tensor
        Integers count as float32.
    axis : int or tuple of int, optional
        What to reduce; by default all.
    correction : float, default 0
        What to take off the number of elements: 1 for the unbiased estimate, which is PyTorch's default.
    keepdims : bool, default False
        Whether reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of the shape of `x` without the reduced axes.

    Notes
    -----
    Python array API standard, statistical functions: ``var``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.var(xgrad.asarray([1.0, 3.0]), correction=1)
    Tensor(2.)
    """
    return xp.var(x, axis=axis, correction=correction, keepdims=keepdims)


@derivative(_std_rule, kind=FLOATING)
def std(xp: Any, x: Any, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """Return the standard deviation along axes; where it is 0 it has no derivative, and gives NaN.

    Parameters
    ----------
    x : Tensor
        Integers count as float32.
    axis : int or tuple of int, optional
        What to reduce; by default all.
    correction : float, default 0
        What to take off the number of elements: 1 for the unbiased variance, which is PyTorch's default.
    keepdims : bool, default False
        Whether reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of the shape of `x` without the reduced axes.

    Notes
    -----
    Python array API standard, statistical functions: ``std``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.std(xgrad.asarray([1.0, 3.0]))
    Tensor(1.)
    """
    return xp.std(x, axis=axis, correction=correction, keepdims=keepdims)


def _logsumexp_rule(g: Any, xp: Any, x: Any, out: Any, axis: Axis) -> Any:
    return _keepdims(xp, g, x.shape, axis) * xp.exp(x - _keepdims(xp, out, x.shape, axis))


@derivative(_logsumexp_rule, kind=FLOATING, highest=FLOATING)
def logsumexp(xp: Any, x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return the logarithm of the sum of exponentials along axes, without overflow.

    Parameters
    ----------
    x : Tensor
        Integers count as float32; not empty along the reduced axes.
    axis : int or tuple of int, optional
        What to reduce; by default all.
    keepdims : bool, default False
        Whether reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of the shape of `x` without the reduced axes.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.logsumexp(xgrad.asarray([1e4, 1e4]))
    Tensor(10000.693)
    """
    top = xp.max(x, axis=axis, keepdims=True)
    top = xp.where(xp.isfinite(top), top, 0)  # inf - inf would be NaN
    total = xp.log(xp.sum(xp.exp(x - top), axis=axis, keepdims=True)) + top
    return total if keepdims else xp.squeeze(total, axis=_axes(len(x.shape), axis))


def _cumulative_sum_rule(g: Any, xp: Any, x_shape: tuple[int, ...], axis: int | None, include_initial: bool) -> Any:
    axis = 0 if axis is None else axis % len(x_shape)
    if include_initial:
        g = g[(slice(None),) * axis + (slice(1, None), ...)]
    return xp.flip(xp.cumulative_sum(xp.flip(g, axis=axis), axis=axis), axis=axis)


@derivative(_cumulative_sum_rule, kind=INTEGER)
def cumulative_sum(
    xp: Any, x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    """Return the running sum along an axis.

    Parameters
    ----------
    x : Tensor
        Numbers, with at least one axis.
    axis : int, optional
        Along what to sum; it may be left out where there is just one.
    dtype : dtype, optional
        The dtype to sum in and to return; by default that of `x`, and at least int64 for integers.
    include_initial : bool, default False
        Whether the result starts with a 0, and so is longer by one.

    Returns
    -------
    Tensor
        Of the shape of `x`, or longer by one along `axis`.

    Raises
    ------
    ValueError
        If there are several axes and none is named.

    Notes
    -----
    Python array API standard, statistical functions: ``cumulative_sum``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.cumulative_sum(xgrad.asarray([1.0, 2.0, 3.0]))
    Tensor([1., 3., 6.])
    """
    return xp.cumulative_sum(x, axis=axis, dtype=dtype, include_initial=include_initial)


@derivative(None)
def argmax(xp: Any, x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Return where the largest element is, the first of those that tie; not differentiable.

    Parameters
    ----------
    x : Tensor
        Real numbers, not empty.
    axis : int, optional
        Along what to search; by default through all elements in row order.
    keepdims : bool, default False
        Whether the reduced axis stays, with length 1.

    Returns
    -------
    Tensor
        int64, of the shape of `x` without the reduced axis.

    Notes
    -----
    Python array API standard, searching functions: ``argmax``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.argmax(xgrad.asarray([[1.0, 4.0], [3.0, 2.0]]), axis=1)
    Tensor([1, 0])
    """
    return xp.argmax(x, axis=axis, keepdims=keepdims)


@derivative(None)
def argmin(xp: Any, x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Return where the smallest element is, the first of those that tie; not differentiable.

    Parameters
    ----------
    x : Tensor
        Real numbers, not empty.
    axis : int, optional
        Along what to search; by default through all elements in row order.
    keepdims : bool, default False
        Whether the reduced axis stays, with length 1.

    Returns
    -------
    Tensor
        int64, of the shape of `x` without the reduced axis.

    Notes
    -----
    Python array API standard, searching functions: ``argmin``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.argmin(xgrad.asarray([[1.0, 4.0], [3.0, 2.0]]), axis=1)
    Tensor([0, 1])
    """
    return xp.argmin(x, axis=axis, keepdims=keepdims)


@derivative(None)
def any(xp: Any, x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return whether some element along axes is true, or not 0; not differentiable.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    axis : int or tuple of int, optional
        What to reduce; by default all.
    keepdims : bool, default False
        Whether reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Bools, of the shape of `x` without the reduced axes.

    Notes
    -----
    Python array API standard, utility functions: ``any``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.any(xgrad.asarray([False, True]))
    Tensor(True)
    """
    return xp.any(x, axis=axis, keepdims=keepdims)


@derivative(None)
def all(xp: Any, x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return whether all elements along axes are true, or not 0; not differentiable.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    axis : int or tuple of int, optional
        What to reduce; by default all.
    keepdims : bool, default False
        Whether reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Bools, of the shape of `x` without the reduced axes.

    Notes
    -----
    Python array API standard, utility functions: ``all``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.all(xgrad.asarray([False, True]))
    Tensor(False)
    """
    return xp.all(x, axis=axis, keepdims=keepdims)
