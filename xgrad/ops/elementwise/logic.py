"""Logical and bitwise operations."""

from __future__ import annotations

from typing import Any

from xgrad.core.arguments import ArrayLike
from xgrad.core.dtypes import BOOLEAN, INTEGER
from xgrad.ops.declare import elementwise

__all__ = [
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
]


@elementwise(None, None, lowest=BOOLEAN)
def logical_and(xp: Any, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """Return the logical AND: whether both elements are true.

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

    Python array API standard, elementwise functions: ``logical_and``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.logical_and(xgrad.asarray([True, True]), xgrad.asarray([True, False]))
    Tensor([ True, False])
    """
    return xp.logical_and(x1, x2)


@elementwise(None, None, lowest=BOOLEAN)
def logical_or(xp: Any, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """Return the logical OR: whether at least one element is true.

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

    Python array API standard, elementwise functions: ``logical_or``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.logical_or(xgrad.asarray([True, False]), xgrad.asarray([False, False]))
    Tensor([ True, False])
    """
    return xp.logical_or(x1, x2)


@elementwise(None, lowest=BOOLEAN)
def logical_not(xp: Any, x: ArrayLike, /) -> Any:
    """Return the logical NOT: whether each element is false.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.

    Returns
    -------
    Tensor
        Same shape as `x`.

    Notes
    -----
    Not differentiable: no gradient flows.

    Python array API standard, elementwise functions: ``logical_not``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.logical_not(xgrad.asarray([True, False]))
    Tensor([False,  True])
    """
    return xp.logical_not(x)


@elementwise(None, None, lowest=BOOLEAN)
def logical_xor(xp: Any, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """Return the logical XOR: whether exactly one element is true.

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

    Python array API standard, elementwise functions: ``logical_xor``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.logical_xor(xgrad.asarray([True, True]), xgrad.asarray([True, False]))
    Tensor([False,  True])
    """
    return xp.logical_xor(x1, x2)


@elementwise(None, None, lowest=BOOLEAN, highest=INTEGER)
def bitwise_and(xp: Any, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """Return the bitwise AND; for bools, the logical AND.

    Parameters
    ----------
    x1, x2 : Tensor
        Integers or bools, of shapes that broadcast, on one device. Either may be a Python scalar,
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
    TypeError
        If the dtype of an input is neither integer nor bool.

    Notes
    -----
    Not differentiable: no gradient flows.

    Python array API standard, elementwise functions: ``bitwise_and``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.bitwise_and(xgrad.asarray([6, 5]), 3)
    Tensor([2, 1])
    """
    return xp.bitwise_and(x1, x2)


@elementwise(None, None, lowest=BOOLEAN, highest=INTEGER)
def bitwise_or(xp: Any, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """Return the bitwise OR; for bools, the logical OR.

    Parameters
    ----------
    x1, x2 : Tensor
        Integers or bools, of shapes that broadcast, on one device. Either may be a Python scalar,
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
    TypeError
        If the dtype of an input is neither integer nor bool.

    Notes
    -----
    Not differentiable: no gradient flows.

    Python array API standard, elementwise functions: ``bitwise_or``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.bitwise_or(xgrad.asarray([6, 5]), 3)
    Tensor([7, 7])
    """
    return xp.bitwise_or(x1, x2)


@elementwise(None, None, lowest=BOOLEAN, highest=INTEGER)
def bitwise_xor(xp: Any, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """Return the bitwise XOR; for bools, the logical XOR.

    Parameters
    ----------
    x1, x2 : Tensor
        Integers or bools, of shapes that broadcast, on one device. Either may be a Python scalar,
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
    TypeError
        If the dtype of an input is neither integer nor bool.

    Notes
    -----
    Not differentiable: no gradient flows.

    Python array API standard, elementwise functions: ``bitwise_xor``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.bitwise_xor(xgrad.asarray([6, 5]), 3)
    Tensor([5, 6])
    """
    return xp.bitwise_xor(x1, x2)


@elementwise(None, None, highest=INTEGER)
def bitwise_left_shift(xp: Any, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """Shift bits left by a number that is not negative, and fill with zeros.

    Parameters
    ----------
    x1, x2 : Tensor
        Integers, of shapes that broadcast, on one device; bools count as integers. Either may be a
        Python scalar, which does not promote the other.

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
        If the dtype of an input is neither integer nor bool.

    Notes
    -----
    Not differentiable: no gradient flows.

    Python array API standard, elementwise functions: ``bitwise_left_shift``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.bitwise_left_shift(xgrad.asarray([6, -5]), 1)
    Tensor([ 12, -10])
    """
    return xp.bitwise_left_shift(x1, x2)


@elementwise(None, None, highest=INTEGER)
def bitwise_right_shift(xp: Any, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """Shift bits right by a number that is not negative, and keep the sign.

    Parameters
    ----------
    x1, x2 : Tensor
        Integers, of shapes that broadcast, on one device; bools count as integers. Either may be a
        Python scalar, which does not promote the other.

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
        If the dtype of an input is neither integer nor bool.

    Notes
    -----
    Not differentiable: no gradient flows.

    Python array API standard, elementwise functions: ``bitwise_right_shift``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.bitwise_right_shift(xgrad.asarray([6, -5]), 1)
    Tensor([ 3, -3])
    """
    return xp.bitwise_right_shift(x1, x2)


@elementwise(None, lowest=BOOLEAN, highest=INTEGER)
def bitwise_invert(xp: Any, x: ArrayLike, /) -> Any:
    """Invert every bit; for bools, return the logical NOT.

    Parameters
    ----------
    x : Tensor
        Integers or bools, of any shape.

    Returns
    -------
    Tensor
        Same shape as `x`.

    Raises
    ------
    TypeError
        If the dtype of an input is neither integer nor bool.

    Notes
    -----
    Not differentiable: no gradient flows.

    Python array API standard, elementwise functions: ``bitwise_invert``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.bitwise_invert(xgrad.asarray([6, 5]))
    Tensor([-7, -6])
    """
    return xp.bitwise_invert(x)
