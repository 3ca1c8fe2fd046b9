"""Matrix products of eager mode, in panels or shared out over the threads of the pool, with the bits of NumPy.

On a machine with other load, a product on several threads of BLAS waits for the slowest: it can take ten times as long
as on one. The pool does not wait for threads that come late. And after each of its products a thread of BLAS looks for
the next one in a loop, for some 30 ms, in which it is in the way of the pool: so once the pool is loaded, all that BLAS
would multiply on several threads is done here.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from xgrad_numpy.functions import sharing
from xgrad_numpy.native.kernels import warn_of
from xgrad_numpy.native.products import ProductStruct, layout_of, with_bits_of_numpy
from xgrad_numpy.native.runtime import Runtime, loaded_runtime

_WARM = 8  # products of a shape and a layout after which they are shared out, since that is tried out first
_MOST = 1 << 12  # shapes and layouts that are remembered

#: The number of products so far, or what the runtime is called with, None if NumPy computes them.
_KNOWN: dict[Any, int | ProductStruct | None] = {}


def product(function: Any, x1: np.ndarray, x2: np.ndarray, out: np.ndarray | None) -> np.ndarray | None:
    """Return a product by `function`, of matrices, of stacks of one shape, or of a matrix and a vector.

    None if NumPy is to compute it.
    """
    runtime = loaded_runtime()
    if runtime is None:
        return None
    threads = runtime.functions.threads()
    sharing.follow(threads)
    if x2.ndim > 1 and x1.size * x2.shape[-1] <= sharing.above:
        return None
    result = None if out is None else (out.shape, out.strides, out.dtype)
    key = x1.shape, x1.strides, x2.shape, x2.strides, x1.dtype, x2.dtype, result, threads
    found = _KNOWN.get(key, 0)
    if type(found) is int:
        found = _found(key, function, (x1, x2, out), runtime, found + 1)
    if not isinstance(found, ProductStruct):
        return None
    if out is None:
        out = _empty(x1, x2)
    elif np.may_share_memory(out, x1) or np.may_share_memory(out, x2) or not out.flags.writeable:
        return None
    addresses = [x.__array_interface__["data"][0] for x in (x1, x2, out)]
    if addresses[0] == addresses[1] or (x1.ndim > 2 and np.may_share_memory(x1, x2)):
        return None  # a matrix may meet its own transpose
    if any(address % x1.itemsize for address in addresses):
        return None
    runtime.functions.multiply_alone(ctypes.byref(found), *map(ctypes.c_void_p, addresses))
    warn_of(runtime.take_raised())
    return out


def _empty(x1: np.ndarray, x2: np.ndarray) -> np.ndarray:
    """Return memory for a product: of matrices, of stacks of them, or of a matrix and a vector."""
    return np.empty(x1.shape[:-1] + (x2.shape[-1:] if x2.ndim > 1 else ()), x1.dtype)


def _found(key: Any, function: Any, arrays: tuple[Any, ...], runtime: Runtime, count: int) -> Any:
    """Note a product, and return what is known of those like it."""
    if len(_KNOWN) >= _MOST:
        _KNOWN.clear()
    _KNOWN[key] = count
    if count >= _WARM:
        x1, x2, out = arrays
        out = _empty(x1, x2) if out is None else out
        layout = layout_of(function, (x1, x2, out))
        known = layout and with_bits_of_numpy(layout, function, (x1, x2, out), runtime)
        _KNOWN[key] = known.struct() if known and (known.most or runtime.functions.threads() > 1) else None
    return _KNOWN[key]
