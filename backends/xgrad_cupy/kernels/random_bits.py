"""Random bits, uniform numbers and dropout, with the bits of the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from xgrad.ops.dropout import dropout_scale
from xgrad_cupy.kernels.elementwise import Elementwise, compiled
from xgrad_cupy.kernels.philox import PHILOX, counter
from xgrad_cupy.kernels.raw import RawKernels, blocks_for

_THREADS = 128  # of a block

# Seed and call number are read from memory if their addresses are not null. In `dropout` a thread
# makes the bits of 16 elements, 16 bits each; the threads then read and write neighbouring
# elements, so that access is coalesced.
_SOURCE = (
    PHILOX
    + """
extern "C" __global__ void bits(
    const unsigned long long *seed_at, unsigned long long seed, const unsigned long long *call_at,
    unsigned long long call, unsigned long long *words, Index count
) {
    long long block = blockIdx.x * 128LL + threadIdx.x;
    if (seed_at) seed = *seed_at;
    if (call_at) call = *call_at;
    if (block < count) philox(seed, call, block, words + 4 * block);
}

extern "C" __global__ void dropout(
    const unsigned long long *seed_at, unsigned long long seed, const unsigned long long *call_at,
    unsigned long long call, const T *x, T *out, T *mask, int threshold, double scale,
    Index size
) {
    __shared__ unsigned long long words[4 * 128];
    if (seed_at) seed = *seed_at;
    if (call_at) call = *call_at;
    philox(seed, call, blockIdx.x * 128LL + threadIdx.x, words + 4 * threadIdx.x);
    __syncthreads();
    for (int k = threadIdx.x; k < 16 * 128; k += 128) {
        long long element = blockIdx.x * 2048LL + k;
        if (element >= size) break;
        short bits = (short)(unsigned short)(words[k / 4] >> (16 * (k % 4)));
        T factor = bits >= threshold ? (T)scale : (T)0;
        mask[element] = factor;
        out[element] = x[element] * factor;
    }
}
"""
)

_UNIFORM = {
    "uniform_float32": Elementwise(
        "int32 bits",
        "float32 out",
        # times 2**-24
        "out = (float)((bits >> 8) & 0xFFFFFF) * 5.9604644775390625e-8f",
    ),
    "uniform_float64": Elementwise(
        "int64 bits",
        "float64 out",
        "out = (double)((bits >> 11) & 0x1FFFFFFFFFFFFFLL) * 1.1102230246251565404e-16",
    ),
}


class RandomBits:
    """Kernels for CuPy, the module `cp`."""

    def __init__(self, cp: Any) -> None:
        self._cp, self._kernels = cp, RawKernels(cp, _SOURCE)
        self._uniform = compiled(cp, _UNIFORM)

    def bits(self, seed: Any, call: Any, width: int, count: int) -> Any:
        """Return the integers of `Backend.random_bits`, on the current device."""
        blocks = -(-count * width // 256)
        words = self._cp.empty(4 * blocks, np.uint64)
        if blocks:
            self._launch("bits", np.dtype("float32"), blocks, seed, call, words, blocks)
        return words.view(f"int{width}")[:count]

    def uniform(self, bits: Any, dtype: Any) -> Any:
        """Return the floats made from integers of 32 or 64 random bits: see `variates.uniform`."""
        return self._uniform[f"uniform_float{8 * bits.dtype.itemsize}"](bits).astype(
            dtype, copy=False
        )

    def dropout(self, x: Any, *, seed: Any, call: Any, device: Any, p: float) -> tuple[Any, Any]:
        """Return `x` times a mask, and the mask, on the current device."""
        threshold, scale = dropout_scale(p)
        out, mask = (self._cp.empty(x.shape, x.dtype) for _ in range(2))
        if x.size:
            args = self._cp.ascontiguousarray(x), out, mask, np.int32(threshold), np.float64(scale)
            self._launch("dropout", x.dtype, -(-x.size // 16), seed, call, *args, x.size)
        return out, mask

    def _launch(
        self, name: str, dtype: Any, threads: int, seed: Any, call: Any, *args: Any
    ) -> None:
        """Run a kernel on the seed and the call number, then the other arguments."""
        counters = *counter(self._cp, seed), *counter(self._cp, call)
        grid = blocks_for(threads, _THREADS)
        self._kernels.launch(name, dtype, grid, (_THREADS,), (*counters, *args))
