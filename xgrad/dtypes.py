"""Data types: the standard's names, the defaults, and what happens where kinds are mixed."""

from __future__ import annotations

import builtins
from collections.abc import Collection
from typing import Any

import numpy as np

from xgrad.device import Device

bool = np.dtype("bool")
int8, int16, int32, int64 = (np.dtype(f"int{n}") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (np.dtype(f"uint{n}") for n in (8, 16, 32, 64))
float32, float64 = np.dtype("float32"), np.dtype("float64")
complex64, complex128 = np.dtype("complex64"), np.dtype("complex128")

SCALARS = frozenset({builtins.bool, int, float, complex})
KINDS = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
SCALAR_KINDS = {builtins.bool: 0, int: 1, float: 2, complex: 3}
DEFAULTS = (bool, int64, float32, complex64)

BOOLEAN, INTEGER, FLOATING, COMPLEX = range(4)

_STANDARD = {bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64, complex64, complex128}
_STANDARD.add(np.dtype("float16"))  # which the standard does not have, but GPUs do


def is_complex(dtype: Any) -> builtins.bool:
    """Return whether a dtype, of any library, is one of complex numbers: all of them call those so."""
    return "complex" in str(dtype)


def check_standard(dtype: np.dtype) -> None:
    """Raise TypeError of what is no dtype of ours, such as NumPy's strings and objects."""
    if dtype not in _STANDARD:
        raise TypeError(f"dtype: expected one such as xgrad.float32, got {dtype}")


def standard(dtype: Any) -> np.dtype:
    """Return the dtype that is meant by one, or by its name; TypeError if there is none of ours."""
    try:
        found = np.dtype("object" if dtype is None else dtype)
    except TypeError as error:
        raise TypeError(f"dtype: expected one such as xgrad.float32, got {dtype!r}") from error
    check_standard(found)
    return found


def promote(raws: list[Any], device: Device, lowest: int, exempt: Collection[int] = ()) -> list[Any]:
    """Give arrays of different kinds one kind, where the standard leaves the result undefined.

    Bools become integers, integers floats, and reals complex, as soon as another operand is, or where the
    op starts at the kind `lowest`. The dtype is that of the operand of the highest kind, or the default one
    (float32) where that is a Python scalar: so float32 stays float32 on every device. But floats that become
    complex keep their precision. Those at `exempt`, such as indices and conditions, take no part.
    """
    kinds: list[int] = []
    target: Any = None
    highest = lowest
    for i, raw in enumerate(raws):
        if raw is None or i in exempt:
            kinds.append(-1)
            continue
        dtype = None if type(raw) in SCALARS else device.backend.numpy_dtype(raw.dtype)
        kind = SCALAR_KINDS[type(raw)] if dtype is None else KINDS[dtype.kind]
        kinds.append(-1 if dtype is None else kind)
        if kind > highest or (kind == highest and target is None):
            target, highest = dtype, kind
    raws = [int(raw) if type(raw) is builtins.bool and highest else raw for raw in raws]
    if min((k for k in kinds if k >= 0), default=highest) == highest:
        return raws
    backend, cast = device.backend, device.backend.dtype(DEFAULTS[highest] if target is None else target)
    for i, (raw, kind) in enumerate(zip(raws, kinds, strict=True)):
        if 0 <= kind < highest:
            same = kind == FLOATING and np.result_type(backend.numpy_dtype(raw.dtype), complex64)
            with device.active():
                raws[i] = device.xp.astype(raw, backend.dtype(same) if same else cast)
    return raws
