"""Elementwise comparisons, and tests for NaN and infinities."""

from __future__ import annotations

from typing import Any

from xgrad.core.arguments import ArrayLike
from xgrad.core.dtypes import BOOLEAN, FLOATING
from xgrad.ops.declare import elementwise

__all__ = [
    "equal",
    "greater",
    "greater_equal",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "not_equal",
]


@elementwise(None, None, lowest=BOOLEAN)
def equal(xp: Any, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """Return whether elements are equal.

    Parameters
    ----------
    x1, x2 : Tensor
        Of any dtype and of shapes that broadcast, on one device. Either may be a Python scalar,
        which does not promote the other.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to.

    Raises
    ------
    DeviceError
        If the tensors are on different devices.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Not differentiable: no gradient flows.

    Python array API standard, elementwise functions: ``equal``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.equal(xgrad.asarray([1.0, 2.0]), 2.0)
    Tensor([False,  True])
    """
    return xp.equal(x1, x2)


@elementwise(None, None, lowest=BOOLEAN)
def not_equal(xp: Any, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """Return whether elements differ.

    Parameters
    ----------
    x1, x2 : Tensor
        Of any dtype and of shapes that broadcast, on one device. Either may be a Python scalar,
        which does not promote the other.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to.

    Raises
    ------
    DeviceError
        If the tensors are on different devices.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Not differentiable: no gradient flows.

    Python array API standard, elementwise functions: ``not_equal``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.not_equal(xgrad.asarray([1.0, 2.0]), 2.0)
    Tensor([ True, False])
    """
    return xp.not_equal(x1, x2)


@elementwise(None, None, highest=FLOATING)
def less(xp: Any, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """Return whether `x1` is less than `x2`.

    Parameters
    ----------
    x1, x2 : Tensor
        Real numbers, of shapes that broadcast, on one device; bools count as integers. Either may
        be a Python scalar, which does not promote the other.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to.

    Raises
    ------
    DeviceError
        If the tensors are on different devices.
    ValueError
        If the shapes do not broadcast.
    TypeError
        If an input is complex.

    Notes
    -----
    Not differentiable: no gradient flows.

    Python array API standard, elementwise functions: ``less``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.less(xgrad.asarray([1.0, 2.0]), 2.0)
    Tensor([ True, False])
    """
    return xp.less(x1, x2)


@elementwise(None, None, highest=FLOATING)
def less_equal(xp: Any, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """Return whether `x1` is less than or equal to `x2`.

    Parameters
    ----------
    x1, x2 : Tensor
        Real numbers, of shapes that broadcast, on one device; bools count as integers. Either may
        be a Python scalar, which does not promote the other.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to.

    Raises
    ------
    DeviceError
        If the tensors are on different devices.
    ValueError
        If the shapes do not broadcast.
    TypeError
        If an input is complex.

    Notes
    -----
    Not differentiable: no gradient flows.

    Python array API standard, elementwise functions: ``less_equal``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.less_equal(xgrad.asarray([1.0, 3.0]), 2.0)
    Tensor([ True, False])
    """
    return xp.less_equal(x1, x2)


@elementwise(None, None, highest=FLOATING)
def greater(xp: Any, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """Return whether `x1` is greater than `x2`.

    Parameters
    ----------
    x1, x2 : Tensor
        Real numbers, of shapes that broadcast, on one device; bools count as integers. Either may
        be a Python scalar, which does not promote the other.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to.

    Raises
    ------
    DeviceError
        If the tensors are on different devices.
    ValueError
        If the shapes do not broadcast.
    TypeError
        If an input is complex.

    Notes
    -----
    Not differentiable: no gradient flows.

    Python array API standard, elementwise functions: ``greater``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.greater(xgrad.asarray([1.0, 3.0]), 2.0)
    Tensor([False,  True])
    """
    return xp.greater(x1, x2)


@elementwise(None, None, highest=FLOATING)
def greater_equal(xp: Any, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """Return whether `x1` is greater than or equal to `x2`.

    Parameters
    ----------
    x1, x2 : Tensor
        Real numbers, of shapes that broadcast, on one device; bools count as integers. Either may
        be a Python scalar, which does not promote the other.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to.

    Raises
    ------
    DeviceError
        If the tensors are on different devices.
    ValueError
        If the shapes do not broadcast.
    TypeError
        If an input is complex.

    Notes
    -----
    Not differentiable: no gradient flows.

    Python array API standard, elementwise functions: ``greater_equal``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.greater_equal(xgrad.asarray([1.0, 2.0]), 2.0)
    Tensor([False,  True])
    """
    return xp.greater_equal(x1, x2)


@elementwise(None)
def isnan(xp: Any, x: ArrayLike, /) -> Any:
    """Return whether each element is NaN.

    Parameters
    ----------
    x : Tensor
        Numbers, of any shape; bools count as integers.

    Returns
    -------
    Tensor
        Same shape as `x`.

    Notes
    -----
    Not differentiable: no gradient flows.

    Python array API standard, elementwise functions: ``isnan``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.isnan(xgrad.asarray([1.0, float('nan')]))
    Tensor([False,  True])
    """
    return xp.isnan(x)


@elementwise(None)
def isinf(xp: Any, x: ArrayLike, /) -> Any:
    """Return whether each element is infinite.

    Parameters
    ----------
    x : Tensor
        Numbers, of any shape; bools count as integers.

    Returns
    -------
    Tensor
        Same shape as `x`.

    Notes
    -----
    Not differentiable: no gradient flows.

    Python array API standard, elementwise functions: ``isinf``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.isinf(xgrad.asarray([1.0, float('-inf')]))
    Tensor([False,  True])
    """
    return xp.isinf(x)


@elementwise(None)
def isfinite(xp: Any, x: ArrayLike, /) -> Any:
    """Return whether each element is a finite number.

    Parameters
    ----------
    x : Tensor
        Numbers, of any shape; bools count as integers.

    Returns
    -------
    Tensor
        Same shape as `x`.

    Notes
    -----
    Not differentiable: no gradient flows.

    Python array API standard, elementwise functions: ``isfinite``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.isfinite(xgrad.asarray([1.0, float('nan')]))
    Tensor([ True, False])
    """
    return xp.isfinite(x)
