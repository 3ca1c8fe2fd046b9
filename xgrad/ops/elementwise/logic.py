"""Logic of bools and bits."""

from __future__ import annotations

from typing import Any

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


@elementwise(None, None, kind=BOOLEAN)
def logical_and(xp: Any, x1: Any, x2: Any, /) -> Any:
    """Return whether both bools hold.

    Parameters
    ----------
    x1, x2 : Tensor
        Of any shapes that broadcast, on one device; any dtype. Either may be a Python scalar, which
        promotes nothing.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to.

    Raises
    ------
    DeviceError
        If the tensors are on several devices.
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


@elementwise(None, None, kind=BOOLEAN)
def logical_or(xp: Any, x1: Any, x2: Any, /) -> Any:
    """Return whether one of two bools holds.

    Parameters
    ----------
    x1, x2 : Tensor
        Of any shapes that broadcast, on one device; any dtype. Either may be a Python scalar, which
        promotes nothing.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to.

    Raises
    ------
    DeviceError
        If the tensors are on several devices.
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


@elementwise(None, kind=BOOLEAN)
def logical_not(xp: Any, x: Any, /) -> Any:
    """Return whether a bool does not hold.

    Parameters
    ----------
    x : Tensor
        Of any shape, on one device; any dtype.

    Returns
    -------
    Tensor
        Of the same shape.

    Raises
    ------
    DeviceError
        If the tensors are on several devices.

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


@elementwise(None, None, kind=BOOLEAN)
def logical_xor(xp: Any, x1: Any, x2: Any, /) -> Any:
    """Return whether just one of two bools holds.

    Parameters
    ----------
    x1, x2 : Tensor
        Of any shapes that broadcast, on one device; any dtype. Either may be a Python scalar, which
        promotes nothing.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to.

    Raises
    ------
    DeviceError
        If the tensors are on several devices.
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


@elementwise(None, None, kind=BOOLEAN, highest=INTEGER)
def bitwise_and(xp: Any, x1: Any, x2: Any, /) -> Any:
    """Return the bits, or bools, that both have.

    Parameters
    ----------
    x1, x2 : Tensor
        Of any shapes that broadcast, on one device; integers or bools. Either may be a Python
        scalar, which promotes nothing.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to.

    Raises
    ------
    DeviceError
        If the tensors are on several devices.
    ValueError
        If the shapes do not broadcast.
    TypeError
        If an input is not of integers or bools.

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


@elementwise(None, None, kind=BOOLEAN, highest=INTEGER)
def bitwise_or(xp: Any, x1: Any, x2: Any, /) -> Any:
    """Return the bits, or bools, that one of them has.

    Parameters
    ----------
    x1, x2 : Tensor
        Of any shapes that broadcast, on one device; integers or bools. Either may be a Python
        scalar, which promotes nothing.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to.

    Raises
    ------
    DeviceError
        If the tensors are on several devices.
    ValueError
        If the shapes do not broadcast.
    TypeError
        If an input is not of integers or bools.

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


@elementwise(None, None, kind=BOOLEAN, highest=INTEGER)
def bitwise_xor(xp: Any, x1: Any, x2: Any, /) -> Any:
    """Return the bits, or bools, that just one of them has.

    Parameters
    ----------
    x1, x2 : Tensor
        Of any shapes that broadcast, on one device; integers or bools. Either may be a Python
        scalar, which promotes nothing.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to.

    Raises
    ------
    DeviceError
        If the tensors are on several devices.
    ValueError
        If the shapes do not broadcast.
    TypeError
        If an input is not of integers or bools.

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
def bitwise_left_shift(xp: Any, x1: Any, x2: Any, /) -> Any:
    """Move bits up, by a number that is not negative, and fill in zeros.

    Parameters
    ----------
    x1, x2 : Tensor
        Of any shapes that broadcast, on one device; integers; bools count as such. Either may be a
        Python scalar, which promotes nothing.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to.

    Raises
    ------
    DeviceError
        If the tensors are on several devices.
    ValueError
        If the shapes do not broadcast.
    TypeError
        If an input is not of integers or bools.

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
def bitwise_right_shift(xp: Any, x1: Any, x2: Any, /) -> Any:
    """Move bits down, by a number that is not negative, and fill in the sign.

    Parameters
    ----------
    x1, x2 : Tensor
        Of any shapes that broadcast, on one device; integers; bools count as such. Either may be a
        Python scalar, which promotes nothing.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to.

    Raises
    ------
    DeviceError
        If the tensors are on several devices.
    ValueError
        If the shapes do not broadcast.
    TypeError
        If an input is not of integers or bools.

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


@elementwise(None, kind=BOOLEAN, highest=INTEGER)
def bitwise_invert(xp: Any, x: Any, /) -> Any:
    """Invert every bit, or bool.

    Parameters
    ----------
    x : Tensor
        Of any shape, on one device; integers or bools.

    Returns
    -------
    Tensor
        Of the same shape.

    Raises
    ------
    DeviceError
        If the tensors are on several devices.
    TypeError
        If an input is not of integers or bools.

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
