"""Matrix products of eager mode, in panels or shared out over the threads of the pool, with the
bits of NumPy.

On a machine with other load, a product on several threads of BLAS waits for the slowest: it can
take ten times as long as on one. The pool does not wait for threads that come late. And after each
of its products a thread of BLAS looks for the next one in a loop, for some 30 ms, in which it is in
the way of the pool: so once the pool is loaded, all that BLAS would multiply on several threads is
done here.
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

# products of a shape and a layout after which they are shared out, since that is tried out first
_WARM = 8
_MOST = 1 << 12  # shapes and layouts that are remembered

#: The number of products so far, or how the runtime computes them, None if NumPy does.
_KNOWN: dict[Any, int | _Shared | None] = {}
_OBJECTS, _ = tables_of(3)
_WITH_ROW, _ = tables_of(4)
_CHANGED = -2  # of products.c: the number of threads is another one


class _Shared:
    """Products of a shape and a layout that the runtime computes, for a number of threads."""

    __slots__ = ("_functions", "_struct", "reference", "threads")

    def __init__(self, struct: ProductStruct, threads: int, runtime: Runtime) -> None:
        self._struct = struct
        # While BLAS has one thread, no other thread of Python runs: a product of NumPy that it
        # began would have other bits.
        self._functions = runtime.functions if struct.most else runtime.alone
        self.reference, self.threads = ctypes.byref(struct), threads

    def __call__(
        self, x1: np.ndarray, x2: np.ndarray, out: np.ndarray, row: np.ndarray | None
    ) -> int:
        """Write the product, plus a row, to memory.

        Return the exceptions of arithmetic, or a negative number and leave `out`.
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
    """Return a product by `function`, of matrices, of stacks of one shape, or of a matrix and a
    vector.

    To a product of matrices in new memory, a `row` of its dtype is added. None if NumPy is to
    compute it.
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
    """Return memory for a product: of matrices, of stacks of them, or of a matrix and a vector."""
    return np.empty(x1.shape[:-1] + (x2.shape[-1:] if x2.ndim > 1 else ()), x1.dtype)


def _note(key: Any, function: Any, arrays: tuple[Any, ...]) -> None:
    """Note a product that NumPy computes. From the number of `_WARM` on, products like it are
    known.
    """
    runtime = loaded_runtime()
    if runtime is None:
        return
    x1, x2, out = arrays
    threads = runtime.functions.threads()
    if sharing.follow(threads) or len(_KNOWN) >= _MOST:
        _KNOWN.clear()  # for another number of threads, bits of NumPy may be others
    count = _KNOWN.get(key, 0)
    if not isinstance(count, int) or (x2.ndim > 1 and x1.size * x2.shape[-1] <= sharing.above):
        return
    _KNOWN[key] = count + 1
    if count + 1 >= _WARM:
        if out is None and x1.ndim > 2 and function(x1, x2).strides != _empty(x1, x2).strides:
            _KNOWN[key] = None  # of stacks whose axes are permuted, NumPy's results are, too
            return
        out = _empty(x1, x2) if out is None else out
        layout = layout_of(function, (x1, x2, out))
        known = layout and with_bits_of_numpy(layout, function, (x1, x2, out), runtime)
        shared = known and (known.most or threads > 1)
        _KNOWN[key] = _Shared(known.struct(), threads, runtime) if known and shared else None
