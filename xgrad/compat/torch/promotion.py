"""PyTorch's promotion: the dtype of an operation on operands of several dtypes.

The kinds of dtypes are bools, integers, floats and complex numbers. Tensors with axes decide,
unless tensors without axes are of a higher kind; Python numbers decide only if they are of a higher
kind than all tensors. xgrad's own rule differs for tensors without axes, which promote there as
others do. Operands are cast to the common dtype before a function of xgrad gets them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np

import xgrad
from xgrad.core.dtypes import KINDS, SCALAR_KINDS, defaults

#: Unsigned dtypes that PyTorch promotes with no other integers.
_LIMITED = {np.dtype(f"uint{n}") for n in (16, 32, 64)}


@lru_cache(1 << 10)
def promote_types(type1: np.dtype, type2: np.dtype) -> np.dtype:
    """Return the smallest dtype that both dtypes promote to."""
    if type1 == type2:
        return type1
    low, high = sorted((type1, type2), key=lambda dtype: KINDS[dtype.kind])
    kinds = KINDS[low.kind], KINDS[high.kind]
    if kinds == (1, 1) and {low, high} & _LIMITED:
        raise TypeError(f"promote_types: PyTorch has no common dtype of {type1} and {type2}")
    if kinds[1] > 1 and kinds[0] < 2:
        return high
    return np.result_type(low, high)


def _combined(higher: np.dtype | None, lower: np.dtype | None) -> np.dtype | None:
    """Return the dtype of two groups of operands, of which the first comes first."""
    if higher is None or lower is None:
        return lower if higher is None else higher
    kinds = KINDS[higher.kind], KINDS[lower.kind]
    if kinds[0] >= kinds[1]:
        return higher if kinds[0] else promote_types(higher, lower)
    if kinds == (2, 3):
        return np.dtype("complex64" if higher.itemsize < 8 else "complex128")
    return promote_types(higher, lower)


@lru_cache(1 << 12)
def _result(groups: tuple[tuple[np.dtype, ...], ...]) -> np.dtype | None:
    combined = None
    for group in groups:
        dtype = None
        for one in group:
            dtype = one if dtype is None else promote_types(dtype, one)
        combined = _combined(combined, dtype)
    return combined


def is_number(x: Any) -> bool:
    """Return whether an operand is a number of Python or NumPy, which promotes as one."""
    return isinstance(x, (bool, int, float, complex, np.number, np.bool_))


def result_type(*operands: Any) -> np.dtype:
    """Return the dtype of an operation on tensors and numbers."""
    with_axes: list[np.dtype] = []
    without_axes: list[np.dtype] = []
    numbers: list[np.dtype] = []
    for x in operands:
        if isinstance(x, xgrad.Tensor):
            (with_axes if x._data.shape else without_axes).append(x.dtype)
        elif is_number(x):
            numbers.append(defaults()[_kind(x)])
        else:
            raise TypeError(f"expected tensors and numbers, got {type(x).__name__}")
    dtype = _result((tuple(with_axes), tuple(without_axes), tuple(numbers)))
    if dtype is None:
        raise TypeError("expected at least one operand")
    return dtype


def _kind(x: Any) -> int:
    return KINDS[x.dtype.kind] if isinstance(x, np.generic) else SCALAR_KINDS[_base(type(x))]


def _base(kind: type) -> type:
    """Return the type of Python's numbers that a type is, or is derived from."""
    return next(base for base in (bool, int, float, complex) if issubclass(kind, base))


def as_operands(*operands: Any) -> list[Any]:
    """Return the operands of an elementwise function, the tensors among them in one dtype.

    Numbers stay as they are, unless there is no tensor: then they become tensors.
    """
    first: Any = None
    for x in operands:
        if isinstance(x, xgrad.Tensor):
            if first is None:
                first = x._placement.dtype
            elif x._placement.dtype is not first:
                break
    else:
        if first is not None:
            return [_plain(x) for x in operands]
    dtype = result_type(*operands)
    return [
        xgrad.astype(x, dtype, copy=False)
        if isinstance(x, xgrad.Tensor)
        else xgrad.asarray(x, dtype=dtype)
        if first is None
        else _plain(x)
        for x in operands
    ]


def _plain(x: Any) -> Any:
    """Return a number of NumPy, or of a subclass of Python's types, as Python's."""
    if isinstance(x, np.generic):
        return x.item()
    if isinstance(x, xgrad.Tensor) or type(x) in SCALAR_KINDS or not is_number(x):
        return x
    return _base(type(x))(x)


def cast(x: Any, dtype: Any) -> Any:
    """Return a tensor in a dtype; None leaves it as it is.

    As a real number, a complex one counts by its real part, with a warning, as in PyTorch.
    """
    if dtype is None:
        return x
    kind = np.dtype(dtype).kind
    if x.dtype.kind == "c" and kind == "b":
        return xgrad.not_equal(x, 0)
    if x.dtype.kind == "c" and kind != "c":
        warnings.warn(
            f"imaginary parts are lost in a conversion from {x.dtype} to {np.dtype(dtype)}: take"
            " x.real or x.abs()",
            UserWarning,
            stacklevel=4,
        )
        x = xgrad.real(x)
    return xgrad.astype(x, dtype, copy=False)


def in_common_dtype(tensors: Iterable[Any]) -> list[Any]:
    """Return tensors in their common dtype."""
    tensors = list(tensors)
    if len({x._placement.dtype for x in tensors}) < 2:
        return tensors
    dtype = result_type(*tensors)
    return [xgrad.astype(x, dtype, copy=False) for x in tensors]
