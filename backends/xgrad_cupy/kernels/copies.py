"""Copies of several arrays by one launch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from xgrad_cupy.kernels.raw import THREADS, RawKernels, blocks_for

MAX_ARRAYS = 16  # maximum number of arrays that a kernel copies
_WORD = 8  # bytes


def copy_all(cp: Any, sources: Sequence[Any], targets: Sequence[Any]) -> None:
    """Copy arrays to others of the same dtypes; one kernel copies all arrays of one shape."""
    shapes: dict[tuple[int, ...], list[tuple[Any, Any]]] = {}
    for x, target in zip(sources, targets, strict=True):
        shapes.setdefault(x.shape, []).append((x, target))
    for pairs in shapes.values():
        for i in range(0, len(pairs), MAX_ARRAYS):
            part = pairs[i : i + MAX_ARRAYS]
            _copies(cp, len(part))(*[x for x, _ in part], *[target for _, target in part])


@cache
def _copies(cp: Any, count: int) -> Any:
    names = [", ".join([f"T {side}{i}" for i in range(count)]) for side in "xy"]
    return cp.ElementwiseKernel(
        *names, "; ".join([f"y{i} = x{i}" for i in range(count)]), "xgrad_copies"
    )


class JointCopies:
    """Copies of up to `MAX_ARRAYS` contiguous arrays of one dtype to others, by one launch.

    The kernel copies words of up to 8 bytes, whatever their dtype.
    """

    __name__ = "joint_copies"

    def __init__(self, cp: Any) -> None:
        self._cp = cp

    def __call__(self, sources: Sequence[Any], targets: Sequence[Any]) -> None:
        """Copy each source to the target at its index, of the same size."""
        width = min(sources[0].itemsize, _WORD)
        counts = [x.nbytes // width for x in sources]
        if not any(counts):
            return
        parts = zip(sources, targets, counts, strict=True)
        args = tuple([argument for part in parts for argument in part])
        grid, word = (*blocks_for(max(counts)), len(sources)), np.dtype(f"uint{8 * width}")
        _joint_copies(self._cp, len(sources)).launch("joint_copies", word, grid, (THREADS,), args)


@cache
def _joint_copies(cp: Any, count: int) -> RawKernels:
    parameters = [f"const T *x{i}, T *y{i}, Index n{i}" for i in range(count)]
    cases = [f"case {i}: if (at < n{i}) y{i}[at] = x{i}[at]; break;" for i in range(count)]
    source = f"""
extern "C" __global__ void joint_copies({", ".join(parameters)}) {{
    Index at = (Index)blockIdx.x * blockDim.x + threadIdx.x;
    switch (blockIdx.y) {{ {" ".join(cases)} }}
}}
"""
    return RawKernels(cp, source)
