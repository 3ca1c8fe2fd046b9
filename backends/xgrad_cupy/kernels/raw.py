"""Raw CUDA kernels: compiled by CuPy at their first launch, for the dtype of their elements."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from xgrad_cupy.kernels.c_types import C_TYPES

#: Dtypes of elements that kernels support.
FLOATS = frozenset(map(np.dtype, ("float32", "float64")))
THREADS = 256  # in a block
_INT_SIZES = 1 << 30  # indices up to twice as large still fit into int32


class RawKernels:
    """The kernels of one source, for CuPy, the module `cp`.

    The source names the type of elements `T`, the type of sizes and indices `Index`, and, where
    there are classes, their type `Class`.
    """

    def __init__(self, cp: Any, source: str, options: tuple[str, ...] = ()) -> None:
        self._cp, self._source, self._options = cp, source, options
        self._kernel: Callable[..., Any] = cache(self._compiled)

    def _compiled(self, name: str, **dtypes: str) -> Any:
        types = "".join([f"typedef {C_TYPES[dtype]} {name};\n" for name, dtype in dtypes.items()])
        return self._cp.RawKernel(types + self._source, name, self._options)

    def launch(
        self,
        name: str,
        dtype: Any,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        args: tuple[Any, ...],
        *,
        largest: int = 0,
        **more: Any,
    ) -> None:
        """Launch a kernel for elements of a dtype.

        Arguments are arrays, None for a null pointer, NumPy's scalars, and sizes as ints, of the
        type `Index`. That is int64 if a size, or `largest`, the number of elements of the largest
        array, is not well within the range of int32, in which divisions are faster: the last
        threads of a grid, and loops after their last element, compute larger indices. `more` are
        other dtypes by the names of their types.
        """
        sizes = [abs(x) for x in args if type(x) is int]
        index = np.int32 if max(largest, *sizes, 0) < _INT_SIZES else np.int64
        types = {each: other.name for each, other in more.items()}
        kernel = self._kernel(name, T=dtype.name, Index=index.__name__, **types)
        kernel(grid, block, tuple([index(x) if type(x) is int else x for x in args]))


def extent_of(x: Any) -> int:
    """Return the number of elements that an array spans in memory, with gaps."""
    steps = [(n - 1) * abs(stride) for n, stride in zip(x.shape, x.strides, strict=True)]
    return 1 + int(sum(steps)) // int(x.itemsize)


def blocks_for(count: int, threads: int = THREADS) -> tuple[int, ...]:
    """Return a grid of blocks with a thread for each of `count` elements."""
    return (-(-count // threads),)
