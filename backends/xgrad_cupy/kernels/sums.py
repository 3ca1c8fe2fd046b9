"""Sums over all axes but one group of adjacent axes, in two stages: all multiprocessors work.

CuPy gives each element of a result to one block. A sum over the 8192 rows of a matrix with 768
columns is then made by 24 blocks, where a GPU has more than a hundred multiprocessors.

An array is seen as (outer, groups, inner), and summed over all but the groups. The first stage sums
chunks of equal size, the second one adds the sums of chunks. The number of chunks depends on the
shape alone, so results are the same on all GPUs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import Any

from xgrad_cupy.kernels import rows
from xgrad_cupy.kernels.raw import FLOATS, THREADS, RawKernels

_TILE, _LINES = 32, 8  # columns of a block, and threads for each column
_BLOCKS = 512  # of the first stage, if there are elements enough
_ONE_STAGE = 512  # rows: fewer are summed by one launch
_ROWS, _ELEMENTS = 64, 2048  # the least in a chunk: rows of columns, elements of a group

_COLUMNS = """
// A block has 32 columns, with 8 threads for each, and a chunk of the rows.
extern "C" __global__ void {name}(
    {parameters}T *out, Index outer, Index groups, Index inner, Index chunk
) {{
    __shared__ T parts[{count}][8][33];  // 33: without conflicts of banks
    Index group = (Index)blockIdx.x * 32 + threadIdx.x, first = blockIdx.y * chunk;
    Index last = first + chunk < outer ? first + chunk : outer;
    T sums[{count}] = {{}};
    if (group < groups) {{
        for (Index line = first + threadIdx.y; line < last; line += 8) {{
            Index at = line * groups + group;
            {add}
        }}
    }}
    for (int k = 0; k < {count}; ++k) parts[k][threadIdx.y][threadIdx.x] = sums[k];
    __syncthreads();
    if (threadIdx.y > 0 || group >= groups) return;
    for (int k = 0; k < {count}; ++k) {{
        T sum = 0;
        for (int line = 0; line < 8; ++line) sum += parts[k][line][threadIdx.x];
        out[((Index)k * gridDim.y + blockIdx.y) * groups + group] = sum;
    }}
}}
"""

_GROUPS = """
// A block has a chunk of the elements of one group.
extern "C" __global__ void group_sums(
    {parameters}T *out, Index outer, Index groups, Index inner, Index chunk
) {{
    Index group = blockIdx.x, first = blockIdx.y * chunk, count = outer * inner;
    Index last = first + chunk < count ? first + chunk : count;
    T sums[{count}] = {{}};
    for (Index k = first + threadIdx.x; k < last; k += blockDim.x) {{
        Index at = (k / inner * groups + group) * inner + k % inner;
        {add}
    }}
    for (int k = 0; k < {count}; ++k) {{
        T sum = reduce<Total>(sums[k]);
        if (threadIdx.x == 0) out[((Index)k * gridDim.y + blockIdx.y) * groups + group] = sum;
    }}
}}
"""


def column_sums_source(parameters: str, add: str, name: str, count: int = 1) -> str:
    """Return the source of a kernel that sums terms over rows.

    `parameters` are its first parameters, each followed by a comma, and `add` are the statements
    that add the terms of the element at index `at`, in row `line` and column `group`, to `sums`.
    """
    return _COLUMNS.format(parameters=parameters, add=add, name=name, count=count)


class Sums:
    """Sums of several terms over all axes but the groups, by one or two launches.

    Parameters
    ----------
    cp : module
        CuPy.
    parameters : str
        The parameters of the kernels in CUDA C++, each followed by a comma.
    terms : sequence of str
        Expressions of the parameters, and of `at`, the index of an element.
    """

    def __init__(self, cp: Any, parameters: str, terms: Sequence[str]) -> None:
        add = " ".join([f"sums[{k}] += {term};" for k, term in enumerate(terms)])
        self._cp, self._count = cp, len(terms)
        columns = column_sums_source(parameters, add, "column_sums", len(terms))
        groups = _GROUPS.format(parameters=parameters, add=add, count=len(terms))
        self._kernels = RawKernels(cp, rows.SOURCE + columns + groups)

    def __call__(
        self,
        arguments: tuple[Any, ...],
        dtype: Any,
        view: tuple[int, int, int],
        out: Any = None,
    ) -> Any:
        """Return the sums, of shape (terms, groups), of arrays seen as (outer, groups, inner).

        They are written to the contiguous array `out`, if given.
        """
        partial = self.partial(arguments, dtype, view, out)
        terms, chunks, groups = partial.shape
        if chunks == 1:
            return partial[:, 0]
        out = self._cp.empty((terms, groups), dtype) if out is None else out
        join_chunks(self._cp, partial, out)
        return out

    def partial(
        self,
        arguments: tuple[Any, ...],
        dtype: Any,
        view: tuple[int, int, int],
        out: Any = None,
    ) -> Any:
        """Return the sums of chunks, of shape (terms, chunks, groups).

        If there is one chunk, they are in the array `out`, if given.
        """
        outer, groups, inner = view
        if inner == 1:
            name, block = "column_sums", (_TILE, _LINES)
            tiles, chunk, chunks = column_chunks(view)
        else:
            name, block, tiles = "group_sums", (THREADS, 1), groups
            chunk, chunks = chunks_of(outer * inner, tiles, _ELEMENTS)
        shape = self._count, chunks, groups
        sums = self._cp.empty(shape, dtype) if out is None or chunks > 1 else out.reshape(shape)
        arguments = *arguments, sums, *view, chunk
        self._kernels.launch(
            name, dtype, (tiles, chunks), block, arguments, largest=math.prod(view)
        )
        return sums


@cache
def _joins(cp: Any) -> RawKernels:
    add = "sums[0] += x[at];"
    return RawKernels(cp, column_sums_source("const T *x, ", add, "join_chunks"))


def join_chunks(cp: Any, partial: Any, out: Any) -> None:
    """Write the sums of the sums of chunks, of shape (terms, chunks, groups), to an array.

    The sums of chunks are rows, and all rows of a term are one chunk.
    """
    terms, chunks, groups = partial.shape
    args = partial, out, terms * chunks, groups, 1, chunks
    grid = -(-groups // _TILE), terms
    _joins(cp).launch("join_chunks", out.dtype, grid, (_TILE, _LINES), args, largest=partial.size)


def column_chunks(view: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return the number of tiles of columns, and the size and the number of chunks of rows."""
    tiles = -(-view[1] // _TILE)
    if view[0] < _ONE_STAGE:
        return tiles, view[0], 1
    return tiles, *chunks_of(view[0], tiles, _ROWS)


def chunks_of(length: int, tiles: int, least: int) -> tuple[int, int]:
    """Return the size and the number of chunks of a length.

    There are as many as fill a GPU, together with the tiles beside them, but none has fewer than
    `least` elements.
    """
    chunks = max(1, min(-(-_BLOCKS // tiles), length // least))
    chunk = max(1, -(-length // chunks))
    return chunk, max(1, -(-length // chunk))


def view_of(shape: tuple[int, ...], axes: Collection[int]) -> tuple[int, int, int] | None:
    """Return a shape as (outer, groups, inner), where the axes are outer and inner ones.

    None if other axes lie between them. Axes of length 1 belong anywhere.

    >>> view_of((2, 3, 4, 5), (0, 2, 3)), view_of((2, 3, 4), (1,)), view_of((2, 3, 4), (0, 1))
    ((2, 3, 20), None, (6, 4, 1))
    """
    kept = [i for i, n in enumerate(shape) if i not in axes and n != 1]
    if not kept:
        return None
    first, last = kept[0], kept[-1] + 1
    if any(i in axes and shape[i] != 1 for i in range(first, last)):
        return None
    return math.prod(shape[:first]), math.prod(shape[first:last]), math.prod(shape[last:])


def sum_of(cp: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the standard's `sum`, with `function`, CuPy's, for rows and for other dtypes."""
    sums = Sums(cp, "const T *x, ", ["x[at]"])

    def sum(
        x: Any,
        /,
        *,
        axis: int | tuple[int, ...] | None = None,
        dtype: Any = None,
        keepdims: bool = False,
        out: Any = None,
    ) -> Any:
        own = axis is not None and dtype is None and x.dtype in FLOATS and x.flags.c_contiguous
        view = None
        if own and x.size:
            given = axis if isinstance(axis, tuple) else (axis,)
            axes = {i % x.ndim for i in given if -x.ndim <= i < x.ndim}
            if len(axes) == len(given):  # CuPy refuses others
                view = view_of(x.shape, axes)
        # CuPy sums adjacent elements by CUB
        if view is None or view[0] == 1:
            options = {} if out is None else {"out": out}
            return function(x, axis=axis, dtype=dtype, keepdims=keepdims, **options)
        shape = [n for i, n in enumerate(x.shape) if i not in axes]
        if keepdims:
            shape = [1 if i in axes else n for i, n in enumerate(x.shape)]
        if out is not None:
            sums((x,), x.dtype, view, out.reshape(1, view[1]))
            return out
        return sums((x,), x.dtype, view).reshape(shape)

    return sum
