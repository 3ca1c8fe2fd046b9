"""Dtypes by the names of the standard, default dtypes, and kinds of numbers."""

from __future__ import annotations

import builtins
from contextvars import ContextVar
from typing import Any

import numpy as np

from xgrad.support.hints import shown
from xgrad.support.scopes import Scope

bool: np.dtype[np.bool] = np.dtype("bool")
"""Truth values, one byte each."""
int8: np.dtype[np.int8] = np.dtype("int8")
"""Integers from -128 to 127."""
int16: np.dtype[np.int16] = np.dtype("int16")
"""Integers from -32 768 to 32 767."""
int32: np.dtype[np.int32] = np.dtype("int32")
"""Integers from -2 147 483 648 to 2 147 483 647."""
int64: np.dtype[np.int64] = np.dtype("int64")
"""Integers from ``-2**63`` to ``2**63 - 1``: the dtype of Python's ints, and of indices."""
uint8: np.dtype[np.uint8] = np.dtype("uint8")
"""Integers from 0 to 255: the dtype of pixels."""
uint16: np.dtype[np.uint16] = np.dtype("uint16")
"""Integers from 0 to 65 535."""
uint32: np.dtype[np.uint32] = np.dtype("uint32")
"""Integers from 0 to 4 294 967 295."""
uint64: np.dtype[np.uint64] = np.dtype("uint64")
"""Integers from 0 to ``2**64 - 1``."""
float16: np.dtype[np.float16] = np.dtype("float16")
"""Floating-point numbers with 11 bits of precision, up to 65 504: see `xgrad.amp.autocast`."""
float32: np.dtype[np.float32] = np.dtype("float32")
"""Floating-point numbers with 24 bits of precision: the default dtype of floats."""
float64: np.dtype[np.float64] = np.dtype("float64")
"""Floating-point numbers with 53 bits of precision, as Python's floats."""
complex64: np.dtype[np.complex64] = np.dtype("complex64")
"""Complex numbers with two float32."""
complex128: np.dtype[np.complex128] = np.dtype("complex128")
"""Complex numbers with two float64."""

SCALARS = frozenset({builtins.bool, int, float, complex})
KINDS = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
SCALAR_KINDS: dict[type, int] = {builtins.bool: 0, int: 1, float: 2, complex: 3}

BOOLEAN, INTEGER, FLOATING, COMPLEX = 0, 1, 2, 3
NAMES = ("bools", "integers or bools", "real numbers", "numbers")

_SUPPORTED: set[np.dtype] = {
    bool,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    float32,
    float64,
    complex64,
    complex128,
}
#: The dtypes of the standard, and its names of kinds, with NumPy's characters.
STANDARD = tuple(sorted(_SUPPORTED, key=lambda dtype: ("biufc".index(dtype.kind), dtype.itemsize)))
STANDARD_KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}
_SUPPORTED.add(float16)  # not in the standard, but on GPUs

#: The dtype of floats for which none is given.
default_dtype: ContextVar[np.dtype] = ContextVar("xgrad_default_dtype", default=float32)


def as_scalar(x: Any) -> Any:
    """Return a scalar of NumPy, or an int of a subclass, as Python's number; others unchanged."""
    if isinstance(x, np.generic):
        return x.item()
    return int(x) if isinstance(x, int) and type(x) not in SCALARS else x


def get_default_dtype() -> np.dtype:
    """Return the dtype of floats for which none is given: see `set_default_dtype`.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.get_default_dtype()
    dtype('float32')
    """
    return default_dtype.get()


def defaults() -> tuple[np.dtype, ...]:
    """Return the dtypes of Python's bools, ints, floats and complex numbers."""
    dtype = default_dtype.get()
    return bool, int64, dtype, complex64 if dtype is float32 else complex128


class _Setting(Scope[np.dtype]):
    """A scope that is entered before its ``with`` block."""

    def __enter__(self) -> np.dtype:
        return self._value


def set_default_dtype(dtype: Any) -> Scope[np.dtype]:
    """Set the dtype of floats for which none is given: for good, or within a ``with`` block.

    It applies to Python floats, creation functions such as `zeros`, random numbers, parameters of
    layers, and integers that are promoted to floats; the default complex dtype follows. Arrays and
    tensors keep their dtypes, and Python scalars promote none of them. The setting belongs to the
    thread or task that made it.

    Parameters
    ----------
    dtype : dtype
        float32, the initial default, or float64.

    Raises
    ------
    TypeError
        If `dtype` is neither.

    Examples
    --------
    >>> import xgrad
    >>> with xgrad.set_default_dtype(xgrad.float64):
    ...     (
    ...         xgrad.asarray(1.0).dtype,
    ...         xgrad.nn.Linear(1, 1).weight.dtype,
    ...         xgrad.asarray(1j).dtype,
    ...     )
    (dtype('float64'), dtype('float64'), dtype('complex128'))
    >>> xgrad.asarray(1.0).dtype
    dtype('float32')
    """
    new = standard(dtype)
    if new not in (float32, float64):
        raise TypeError(f"set_default_dtype: expected xgrad.float32 or xgrad.float64, got {new}")
    setting = _Setting(default_dtype, float64 if new == float64 else float32)
    Scope.__enter__(setting)
    return setting


def is_complex(dtype: Any) -> builtins.bool:
    """Return whether a dtype of any library is complex."""
    # str of NumPy's takes 2 us
    return dtype.kind == "c" if isinstance(dtype, np.dtype) else "complex" in str(dtype)


def is_of_kind(caller: str, dtype: np.dtype, kind: Any) -> builtins.bool:
    """Return whether a dtype is of a kind of the standard, or of one of several kinds.

    A dtype in the place of a kind stands for itself.
    """
    if isinstance(kind, tuple):
        return any(is_of_kind(caller, dtype, one) for one in kind)
    if isinstance(kind, str):
        if kind not in STANDARD_KINDS:
            raise ValueError(
                f"{caller}: expected a kind of {list(STANDARD_KINDS)}, got {shown(kind)}"
            )
        return dtype.kind in STANDARD_KINDS[kind]
    return dtype == standard(kind)


def is_half(dtype: Any) -> builtins.bool:
    """Return whether a dtype of any library is a float of 16 bits."""
    return dtype == float16 if isinstance(dtype, np.dtype) else "float16" in str(dtype)


def is_standard(dtype: np.dtype) -> builtins.bool:
    """Return whether a dtype of NumPy is supported, and in the byte order of the machine."""
    return dtype in _SUPPORTED


def check_standard(dtype: np.dtype) -> None:
    """Raise TypeError for an unsupported dtype, for example of strings or objects."""
    if not is_standard(dtype):
        raise TypeError(f"dtype: expected one such as xgrad.float32, got {dtype}")


def standard(dtype: Any) -> np.dtype:
    """Return a supported dtype, given as a dtype or by its name; TypeError for others."""
    try:
        converted = np.dtype("object" if dtype is None else dtype)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"dtype: expected one such as xgrad.float32, got {shown(dtype)}") from error
    check_standard(converted)
    return converted
