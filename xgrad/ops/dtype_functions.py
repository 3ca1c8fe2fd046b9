"""The standard's data type functions: limits and kinds of dtypes, promotion and casting."""

import builtins
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from xgrad.core import providers
from xgrad.core.arguments import as_tensor
from xgrad.core.dtypes import (
    COMPLEX,
    FLOATING,
    KINDS,
    SCALAR_KINDS,
    SCALARS,
    as_scalar,
    complex64,
    defaults,
    is_of_kind,
    standard,
)
from xgrad.core.tensor import Tensor

__all__ = ["can_cast", "finfo", "iinfo", "isdtype", "result_type"]


class FloatLimits(NamedTuple):
    """The result of `finfo`; all but `bits` and `dtype` are Python floats."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype


class IntegerLimits(NamedTuple):
    """The result of `iinfo`."""

    bits: int
    max: int
    min: int
    dtype: np.dtype


def _dtype(x: Any) -> np.dtype:
    """Return the dtype that a dtype, the name of a dtype, or an array stands for."""
    return (
        x.dtype if isinstance(x, Tensor) else standard(x.dtype if isinstance(x, np.ndarray) else x)
    )


def finfo(type: Any, /) -> FloatLimits:
    """Return the limits of a floating dtype.

    Parameters
    ----------
    type : dtype or Tensor
        A floating or complex dtype, or a tensor of one; a complex dtype has the limits of its real
        and imaginary parts.

    Returns
    -------
    FloatLimits
        With ``bits``, ``eps``, ``max``, ``min``, ``smallest_normal`` and the real ``dtype``.

    Raises
    ------
    TypeError
        If there is no such dtype, or it is not floating.

    Notes
    -----
    Python array API standard, data type functions: ``finfo``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.finfo(xgrad.float64).eps
    2.220446049250313e-16
    """
    dtype = _dtype(type)
    if dtype.kind not in "fc":
        raise TypeError(f"finfo: expected a floating dtype, got {dtype}: see iinfo")
    limits = np.finfo(dtype)
    eps, largest, smallest, normal = (
        float(x) for x in (limits.eps, limits.max, limits.min, limits.smallest_normal)
    )
    return FloatLimits(int(limits.bits), eps, largest, smallest, normal, np.dtype(limits.dtype))


def iinfo(type: Any, /) -> IntegerLimits:
    """Return the limits of an integer dtype.

    Parameters
    ----------
    type : dtype or Tensor
        An integer dtype, or a tensor of one.

    Returns
    -------
    IntegerLimits
        With ``bits``, ``max``, ``min`` and ``dtype``.

    Raises
    ------
    TypeError
        If there is no such dtype, or it is not an integer dtype.

    Notes
    -----
    Python array API standard, data type functions: ``iinfo``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.iinfo(xgrad.int8).min
    -128
    """
    dtype = _dtype(type)
    if dtype.kind not in "iu":
        raise TypeError(f"iinfo: expected a dtype of integers, got {dtype}")
    limits = np.iinfo(dtype)
    return IntegerLimits(int(limits.bits), int(limits.max), int(limits.min), dtype)


def isdtype(dtype: Any, kind: Any) -> builtins.bool:
    """Return whether a dtype is of a kind.

    Parameters
    ----------
    dtype : dtype
        A dtype of `xgrad` or NumPy, or its name.
    kind : str, dtype or tuple of these
        ``"bool"``, ``"signed integer"``, ``"unsigned integer"``, ``"integral"``, ``"real
        floating"`` (which includes float16), ``"complex floating"``, ``"numeric"``, or a dtype,
        which matches only itself.

    Returns
    -------
    bool
        Whether `dtype` is of that kind, or of any of several kinds.

    Raises
    ------
    TypeError
        If there is no such dtype.
    ValueError
        If there is no such kind.

    Notes
    -----
    Python array API standard, data type functions: ``isdtype``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.isdtype(xgrad.float32, ("integral", "real floating"))
    True
    """
    return is_of_kind("isdtype", standard(dtype), kind)


def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    """Return the dtype that tensors, dtypes and numbers promote to.

    Parameters
    ----------
    *arrays_and_dtypes : Tensor, dtype, bool, int, float or complex
        At least one tensor or dtype.

    Returns
    -------
    dtype
        The dtype that the standard defines for dtypes of one kind. For several kinds, which it
        leaves open, the highest kind decides: int64 and float32 promote to float32, on every
        device. A Python scalar counts only if its kind is higher than all others, and then has the
        default dtype. Complex numbers are as precise as floats beside them.

    Raises
    ------
    TypeError
        If an argument is none of these.
    ValueError
        If all are Python scalars.

    Notes
    -----
    Python array API standard, data type functions: ``result_type``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.result_type(xgrad.int8, xgrad.uint8)
    dtype('int16')
    >>> xgrad.result_type(xgrad.ones(2), 1j)
    dtype('complex64')
    """
    arrays_and_dtypes = tuple([as_scalar(x) for x in arrays_and_dtypes])
    dtypes = [_dtype(x) for x in arrays_and_dtypes if type(x) not in SCALARS]
    if not dtypes:
        raise ValueError(
            "result_type: expected at least one tensor or dtype, got Python scalars only"
        )
    kinds = [KINDS[dtype.kind] for dtype in dtypes]
    highest = max(kinds)
    # Floats count, too: complex numbers are as precise as floats beside them.
    lowest = FLOATING if highest == COMPLEX else highest
    result = reduce(
        np.promote_types,
        [dtype for dtype, kind in zip(dtypes, kinds, strict=True) if kind >= lowest],
    )
    scalar = max(
        [SCALAR_KINDS[type(x)] for x in arrays_and_dtypes if type(x) in SCALARS], default=0
    )
    if scalar <= highest:
        return result
    return np.promote_types(result, complex64) if highest == FLOATING else defaults()[scalar]


def can_cast(from_: Any, to: Any, /) -> builtins.bool:
    """Return whether promotion may turn one dtype into another.

    Parameters
    ----------
    from_ : dtype or Tensor
        The dtype to cast.
    to : dtype
        The target dtype.

    Returns
    -------
    bool
        Whether `to` is the `result_type` of both.

    Raises
    ------
    TypeError
        If there is no such dtype.

    Notes
    -----
    Python array API standard, data type functions: ``can_cast``.

    Examples
    --------
    >>> import xgrad
    >>> (
    ...     xgrad.can_cast(xgrad.float32, xgrad.float64),
    ...     xgrad.can_cast(xgrad.float64, xgrad.float32),
    ... )
    (True, False)
    """
    return result_type(_dtype(from_), to) == standard(to)


def as_operand(op: str, name: str, x: Any, other: Tensor) -> Tensor:
    """Return an argument as a tensor; a scalar gets its `result_type` with the other tensor."""
    if not isinstance(x, (np.generic, *SCALARS)):
        return as_tensor(op, name, x)
    dtype = result_type(other, x)
    try:
        operand: Tensor = providers.module("functions").asarray(x, dtype=dtype, device=other.device)
        return operand
    except OverflowError:
        raise OverflowError(
            f"{op}: expected a number for {name} that {dtype}, the other's dtype, holds, got {x}"
        ) from None
