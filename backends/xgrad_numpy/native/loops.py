"""NumPy's inner loops as C functions: kernels that call them have NumPy's bits.

The public struct ``PyUFuncObject`` (``numpy/ufuncobject.h``) lists them, one for each combination
of dtypes. A loop is used only if a trial call, made at the first use, gives the bits of the
function.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np


class Loop(ctypes.Structure):
    """``struct loop`` of runtime.h."""

    _fields_ = (("function", ctypes.c_void_p), ("data", ctypes.c_void_p))


class _UFunc(ctypes.Structure):
    """``PyUFuncObject``, up to the dtypes."""

    _fields_ = (
        ("head", ctypes.c_char * object.__basicsize__),
        *[(name, ctypes.c_int) for name in ("nin", "nout", "nargs", "identity")],
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        *[(name, ctypes.c_int) for name in ("ntypes", "reserved")],
        ("name", ctypes.c_char_p),
        ("types", ctypes.POINTER(ctypes.c_byte)),
    )


_KIND = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_LONGEST_DOT = 1 << 13


@cache
def loop_of(function: np.ufunc, dtype: Any) -> Loop | None:
    """Return the loop of a function whose operands and result all have a dtype.

    None if there is none that can be used.
    """
    loop = _loop(function, np.dtype(dtype))
    return loop if loop is not None and _has_bits(loop, function, np.dtype(dtype)) else None


def _loop(function: np.ufunc, dtype: Any) -> Loop | None:
    struct, number = _UFunc.from_address(id(function)), dtype.num
    if (struct.nin, struct.nout, struct.name) != (
        function.nin,
        function.nout,
        function.__name__.encode(),
    ):
        return None
    nargs = function.nin + function.nout
    for i in range(struct.ntypes):
        if all(struct.types[i * nargs + k] == number for k in range(nargs)) and struct.functions[i]:
            return Loop(struct.functions[i], struct.data[i] if struct.data else None)
    return None


def _has_bits(loop: Loop, function: np.ufunc, dtype: Any) -> bool:
    """Return whether a loop computes the same bits as its function."""
    inputs = [np.linspace(0.1, 0.9 + i, 37).astype(dtype) for i in range(function.nin)]
    right, out = function(*inputs), np.empty(37, dtype)
    arrays = [*inputs, out]
    pointers = (ctypes.c_void_p * len(arrays))(*[x.ctypes.data for x in arrays])
    size = ctypes.c_ssize_t(37)
    steps = (ctypes.c_ssize_t * len(arrays))(*[dtype.itemsize] * len(arrays))
    _KIND(loop.function)(pointers, ctypes.addressof(size), steps, loop.data)
    return bool(out.tobytes() == right.tobytes())


@cache
def dot_loop_of(dtype: Any, size: int) -> Loop | None:
    """Return the loop of `numpy.vecdot` for rows of a size; None if there is none to use.

    For long rows there is none, because BLAS shares them out over its threads.
    """
    loop = (
        _loop(np.vecdot, np.dtype(dtype))
        if np.dtype(dtype).kind == "f" and size <= _LONGEST_DOT
        else None
    )
    if loop is None:
        return None
    x, y = np.random.default_rng(0).standard_normal((2, 5, size)).astype(dtype)
    out, right = np.empty(5, x.dtype), np.vecdot(x, y)
    pointers = (ctypes.c_void_p * 3)(x.ctypes.data, y.ctypes.data, out.ctypes.data)
    sizes, row = (ctypes.c_ssize_t * 2)(5, size), size * x.itemsize
    steps = (ctypes.c_ssize_t * 5)(row, row, x.itemsize, x.itemsize, x.itemsize)
    _KIND(loop.function)(pointers, ctypes.addressof(sizes), steps, loop.data)
    return loop if out.tobytes() == right.tobytes() else None
