"""Arguments of the native kernels of pooling and convolution: the structs of windows.h."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from xgrad_numpy.native.runtime import loaded_runtime, tables_of

#: C types as they appear in the names of functions.
TYPES = {np.dtype("float32"): "float", np.dtype("float64"): "double"}


class WindowStruct(ctypes.Structure):
    """``struct window``."""

    _fields_ = tuple([(name, ctypes.c_int64) for name in ("kernel", "stride", "dilation", "out")])


class StepsStruct(ctypes.Structure):
    """``struct steps``."""

    _fields_ = tuple([(name, ctypes.c_int64) for name in ("row", "channel", "image")])


def steps(strides: tuple[int, ...], item: int) -> StepsStruct:
    """Return the steps of an array, in elements of `item` bytes."""
    return StepsStruct(*[stride // item for stride in strides[:3]])


def function(name: str, dtype: Any) -> Any:
    """Return a function of the runtime for a dtype; the runtime must be loaded."""
    runtime: Any = loaded_runtime()
    return getattr(runtime.functions, f"{name}_{TYPES[dtype]}")  # which keeps it, unlike [...]


def table(*arrays: Any) -> Any:
    """Return arrays as an argument of the runtime."""
    objects, _ = tables_of(len(arrays))
    return objects(*arrays)


def with_adjacent_columns(x: Any) -> Any:
    """Return an array, or a copy of it, that C can read.

    It is aligned, and the elements of a row are adjacent.
    """
    item = x.itemsize
    if x.flags.aligned and x.strides[3] == item and not any(stride % item for stride in x.strides):
        return x
    return x.copy("C")


def contiguous(x: Any) -> Any:
    """Return an array, or a copy of it, that is contiguous and aligned."""
    return x if x.flags.c_contiguous and x.flags.aligned else x.copy("C")
