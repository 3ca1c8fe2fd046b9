"""Matrix products of eager mode, in panels or shared out over the pool's threads.

They have NumPy's bits. On a machine with other load, a product on several BLAS threads waits for
the slowest: it can take ten times as long as on one thread. The pool does not wait for threads that
come late. After each product a BLAS thread also polls for the next one for some 30 ms, and slows
down the pool. So once the pool is loaded, it computes all products that BLAS would multiply on
several threads.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from xgrad_numpy.native.kernels import warn_of
from xgrad_numpy.native.products import ProductStruct, layout_of
from xgrad_numpy.native.runtime import Runtime, loaded_runtime, tables_of
from xgrad_numpy.native.ways import with_bits_of_numpy
from xgrad_numpy.products import sharing

# number of products of a shape and layout after which they are tried out, and shared out
_WARM = 8
_MOST = 1 << 12  # maximum number of shapes and layouts that are remembered

#: The number of products so far, or how the runtime computes them; None if NumPy does.
_KNOWN: dict[Any, int | _Shared | None] = {}
_OBJECTS, _ = tables_of(3)
_WITH_ROW, _ = tables_of(4)
_CHANGED = -2  # of products.c: the number of threads has changed


class _Shared:
    """Products of one shape and layout that the runtime computes, for a number of threads."""

    __slots__ = ("_functions", "_struct", "reference", "threads")

    def __init__(self, struct: ProductStruct, threads: int, runtime: Runtime) -> None:
        self._struct = struct
        # While BLAS has one thread, no other Python thread may run: a NumPy product that it began
        # would have other bits.
        self._functions = runtime.functions if struct.most else runtime.alone
        self.reference, self.threads = ctypes.byref(struct), threads

    def __call__(
        self, x1: np.ndarray, x2: np.ndarray, out: np.ndarray, row: np.ndarray | None
    ) -> int:
        """Write the product, plus a row, to memory.

        Returns the arithmetic exceptions, or a negative number if `out` is unchanged.
        """
        functions = self._functions
        if row is None:
            raised: int = functions.multiply_arrays(
                self.reference, self.threads, _OBJECTS(x1, x2, out)
            )
        else:
            raised = functions.multiply_arrays_and_add(
                self.reference, self.threads, _WITH_ROW(x1, x2, out, row)
            )
        return raised


def product(
    function: Any,
    x1: np.ndarray,
    x2: np.ndarray,
    out: np.ndarray | None,
    row: np.ndarray | None = None,
) -> np.ndarray | None:
    """Return a product by `function`: of matrices, of stacks, or of a matrix and a vector.

    Stacks have one shape. A `row` of the same dtype is added to a product of matrices in new
    memory. None if NumPy should compute the product.
    """
    layout = None if out is None else (out.shape, out.strides, out.dtype)
    key = x1.shape, x1.strides, x2.shape, x2.strides, x1.dtype, x2.dtype, layout
    found = _KNOWN.get(key, 0)
    if not isinstance(found, _Shared):
        _note(key, function, (x1, x2, out))
        return None
    if out is None:
        out = _empty(x1, x2)
    elif np.may_share_memory(out, x1) or np.may_share_memory(out, x2) or not out.flags.writeable:
        return None
    if x1.ndim > 2 and np.may_share_memory(x1, x2):
        return None  # a matrix may meet its own transpose
    raised = found(x1, x2, out, row)
    if raised == _CHANGED:
        _note(key, function, (x1, x2, out))
    if raised < 0:
        return None
    warn_of(raised)
    return out


def _empty(x1: np.ndarray, x2: np.ndarray) -> np.ndarray:
    """Return memory for a product of matrices, of stacks, or of a matrix and a vector."""
    return np.empty(x1.shape[:-1] + (x2.shape[-1:] if x2.ndim > 1 else ()), x1.dtype)


def _note(key: Any, function: Any, arrays: tuple[Any, ...]) -> None:
    """Count a product that NumPy computes.

    At the number `_WARM`, find out how to compute products like it.
    """
    runtime = loaded_runtime()
    if runtime is None:
        return
    x1, x2, out = arrays
    threads = runtime.functions.threads()
    if sharing.follow(threads) or len(_KNOWN) >= _MOST:
        _KNOWN.clear()  # NumPy's bits may differ for another number of threads
    count = _KNOWN.get(key, 0)
    if not isinstance(count, int) or (x2.ndim > 1 and x1.size * x2.shape[-1] <= sharing.above):
        return
    _KNOWN[key] = count + 1
    if count + 1 >= _WARM:
        if out is None and x1.ndim > 2 and function(x1, x2).strides != _empty(x1, x2).strides:
            _KNOWN[key] = None  # NumPy permutes the result's axes like the operands'
            return
        out = _empty(x1, x2) if out is None else out
        layout = layout_of(function, (x1, x2, out))
        known = layout and with_bits_of_numpy(layout, function, (x1, x2, out), runtime)
        shared = known and (known.most or threads > 1)
        _KNOWN[key] = _Shared(known.struct(), threads, runtime) if known and shared else None
