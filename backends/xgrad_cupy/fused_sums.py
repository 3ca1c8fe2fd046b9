"""Fused kernels that also sum a result over its leading axes.

The gradient of a bias is such a sum, of a gradient that a group of elementwise calls computes:
`with_sums` makes the two one launch. The sums have the order of `xgrad_cupy.kernels.sums`, and so
the bits of a separate sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from xgrad.capture.fusion import Access, is_contiguous, reshaped_strides
from xgrad.capture.program import Call
from xgrad_cupy.calls import Uses, columns_of_sum
from xgrad_cupy.fused_programs import FusedKernel
from xgrad_cupy.kernels.c_types import C_TYPES
from xgrad_cupy.kernels.elementwise import EXACT
from xgrad_cupy.kernels.raw import RawKernels
from xgrad_cupy.kernels.sums import column_chunks, column_sums_source, join_chunks


def with_sums(cp: Any, calls: Sequence[Call], sum: Callable[..., Any], uses: Uses) -> list[Call]:
    """Return calls in which fused kernels also make the sums of their results."""
    result: list[Call | None] = list(calls)
    makers = {
        x: i
        for i, call in enumerate(calls)
        if isinstance(call.function, FusedKernel)
        for x in call.results
    }
    for i, call in enumerate(calls):
        view = columns_of_sum(call) if call.function is sum else None
        if view is None:
            continue
        summed = call.reads[0]
        value = uses.origin(summed)
        at = makers.get(value, i)
        maker = result[at]
        if maker is None or not isinstance(maker.function, FusedKernel):
            continue
        # views of parts of the value have other sums
        if value.nbytes != summed.nbytes or not (is_contiguous(value) and is_contiguous(summed)):
            continue
        if uses.written(value, at, i):
            continue
        target = call.options.get("out")
        if target is not None and uses.between(target, at, i):
            continue
        indices = _indices(maker.function, view)
        if indices is None:
            continue
        function = SummingKernel(
            cp, maker.function, maker.results.index(value), view, indices, call
        )
        outs = call.results if target is None else ()
        arguments = maker.args if target is None else (*maker.args, target)
        writes = maker.writes if target is None else (*maker.writes, target)
        results = *maker.results, *outs
        result[at] = Call(function, arguments, {}, writes, results, single=False, line=maker.line)
        result[i] = None
    return [x for x in result if x is not None]


class SummingKernel:
    """The kernel of a group, which also sums one of its results over the leading axes."""

    def __init__(
        self,
        cp: Any,
        fused: FusedKernel,
        summed: int,
        view: tuple[int, int, int],
        indices: list[str],
        call: Call,
    ) -> None:
        self._cp, self._fused, self._view = cp, fused, view
        self._shape = None if "out" in call.options else call.results[0].shape
        self.__name__ = f"{fused.__name__}_and_sum"
        source = fused.source
        self._dtype = fused.results[summed].dtype
        parameters, loads = [], []
        for i, access in enumerate(source.loads):
            kind = C_TYPES[str(access.value.dtype)]
            parameters.append(f"const {kind} *from_x{i}")
            loads.append(f"const {kind} x{i} = from_x{i}[{indices[i]}];")
        parameters += [f"const {C_TYPES[str(x.dtype)]} *n{i}" for i, x in enumerate(source.numbers)]
        parameters += [f"{C_TYPES[str(x.dtype)]} s{i}" for i, x in enumerate(source.scalars)]
        stored = [*fused.results, *[x.value for x in fused.writes]]
        for i, value in enumerate(stored):
            kind = C_TYPES[str(value.dtype)]
            parameters.append(f"{kind} *to_y{i}")
            loads.append(f"{kind} &y{i} = to_y{i}[at];")
        add = "\n".join([*loads, source.code, f"sums[0] += y{summed};"])
        text = column_sums_source("".join([f"{x}, " for x in parameters]), add, self.__name__)
        self._kernels = RawKernels(cp, f"{source.preamble}\n{text}", EXACT)

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        """Launch the kernel, and return the results of the group, and the sums if they are new."""
        cp, fused, view = self._cp, self._fused, self._view
        count = len(fused.accesses)
        fused.check(arrays[:count])
        out = arrays[count] if len(arrays) > count else None
        results = [cp.empty(x.shape, x.dtype) for x in fused.results]
        inputs, writes = arrays[: fused.inputs], arrays[fused.inputs : count]
        tiles, chunk, chunks = column_chunks(view)
        sums = out if out is not None else cp.empty(self._shape, self._dtype)
        partial = sums if chunks == 1 else cp.empty((1, chunks, view[1]), self._dtype)
        args = (*inputs, *fused.scalars, *results, *writes, partial, *view, chunk)
        self._kernels.launch(
            self.__name__, self._dtype, (tiles, chunks), (32, 8), args, largest=math.prod(view)
        )
        if chunks > 1:
            join_chunks(cp, partial, sums.reshape(1, view[1]))
        return (*results, sums) if out is None else tuple(results)


def _indices(fused: FusedKernel, view: tuple[int, int, int]) -> list[str] | None:
    """Return the index expression of each array that a group reads.

    None if an array is not read by element, column or row, or is not written by element.
    """
    indices = [_index(x, fused.shape, view) for x in fused.source.loads]
    written = [_index(x, fused.shape, view) for x in fused.writes]
    if None in indices or any(x != "at" for x in written):
        return None
    return [x for x in indices if x is not None]


def _index(access: Access, shape: tuple[int, ...], view: tuple[int, int, int]) -> str | None:
    """Return the index of an element of an access: "at", "group", "line" or "0"; else None."""
    size = int(access.value.dtype.itemsize)
    strides = reshaped_strides(shape, access.strides, view[:2])
    names = {(view[1] * size, size): "at", (0, size): "group", (size, 0): "line", (0, 0): "0"}
    return None if strides is None else names.get((strides[0], strides[1]))
