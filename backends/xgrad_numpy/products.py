"""Matrix products on NumPy, and row sums as products with ones.

NumPy calls BLAS, or `native.eager_products` shares a large product out over threads.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np

BLAS_DTYPES = frozenset(map(np.dtype, ("float32", "float64")))
_ALONE = 1 << 23  # multiplications above which products on one thread try panels
_BY_BLAS = 1 << 18  # multiplications above which BLAS uses several threads
# elements of a matrix from which BLAS uses several threads for a product with a vector
_SHARED_BY_VECTOR = 9216


class Sharing:
    """The size of a matrix product above which native/eager_products.py may compute it.

    `above` is in multiplications. Whether there are `several` threads is known once the runtime of
    native code is loaded.
    """

    def __init__(self) -> None:
        self.above, self._threads = _ALONE, 1

    @property
    def several(self) -> bool:
        """Whether there are several threads."""
        return self._threads > 1

    def follow(self, threads: int) -> bool:
        """Set the size for a number of BLAS threads, and return whether the number changed.

        With one thread, only large products are worth the check.
        """
        changed = threads != self._threads
        self.above, self._threads = _ALONE if threads == 1 else _BY_BLAS, threads
        return changed


sharing = Sharing()


def matmul(x1: Any, x2: Any, /, out: Any = None) -> Any:
    """Return the matrix product.

    Two matrices are multiplied by `dot`, with half the overhead; a stack times one matrix is one
    product of all its rows.
    """
    n = x1.ndim
    if x2.ndim == 2 <= n and x1.dtype in BLAS_DTYPES:
        if n == 2:
            if x1.size * x2.shape[1] <= sharing.above:
                return x1.dot(x2, out)
            product = _eager_products()(np.ndarray.dot, x1, x2, out)
            return x1.dot(x2, out) if product is None else product
        if x1.size and x2.size and out is None:
            return matmul(x1.reshape(-1, x1.shape[-1]), x2).reshape(*x1.shape[:-1], x2.shape[1])
    if n == x2.ndim > 2 and x1.size * x2.shape[-1] > sharing.above and x1.dtype in BLAS_DTYPES:
        product = _eager_products()(np.matmul, x1, x2, out)
        return np.matmul(x1, x2, out=out) if product is None else product
    return np.matmul(x1, x2, out=out)


def multiply_add(x: Any, y: Any, added: Any) -> Any:
    """Return the product of two matrices plus a row.

    Threads that share out the product also add the row.
    """
    if x.size * y.shape[1] > sharing.above and added.dtype == x.dtype and x.dtype in BLAS_DTYPES:
        out = _eager_products()(np.ndarray.dot, x, y, None, added)
        if out is not None:
            return out
    out = x.dot(y) if x.dtype in BLAS_DTYPES else np.matmul(x, y)
    if added.dtype != out.dtype:
        return out + added
    out += added
    return out


@cache
def _eager_products() -> Any:
    """Return the function for large products; it returns None if NumPy should compute one."""
    from xgrad_numpy.native.eager_products import product  # not at the top: it starts a compiler

    return product


def product_with_ones(x: Any) -> Any:
    """Return the sums of the rows of a matrix."""
    column = ones(x.shape[1], x.dtype)
    shared = x.size >= _SHARED_BY_VECTOR and sharing.several
    product = _eager_products()(np.ndarray.dot, x, column, None) if shared else None
    return x.dot(column) if product is None else product


@lru_cache(16)
def ones(n: int, dtype: Any) -> np.ndarray:
    return np.ones(n, dtype)
