"""CUDA C++ of Philox4x64-10, the generator of `xgrad.backend.philox`."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Writes the four words of a block.
PHILOX = """
__device__ inline void philox(
    unsigned long long seed, unsigned long long call, unsigned long long block,
    unsigned long long *words
) {
    unsigned long long c0 = block, c1 = 0, c2 = call, c3 = 0, k0 = seed, k1 = 0;
    for (int round = 0; round < 10; ++round) {
        unsigned long long low0 = 0xD2E7470EE14C6C93ULL * c0,
                           high0 = __umul64hi(0xD2E7470EE14C6C93ULL, c0);
        unsigned long long low1 = 0xCA5A826395121157ULL * c2,
                           high1 = __umul64hi(0xCA5A826395121157ULL, c2);
        c0 = high1 ^ c1 ^ k0;
        c1 = low1;
        c2 = high0 ^ c3 ^ k1;
        c3 = low0;
        k0 += 0x9E3779B97F4A7C15ULL;
        k1 += 0xBB67AE8584CAA73BULL;
    }
    words[0] = c0;
    words[1] = c1;
    words[2] = c2;
    words[3] = c3;
}
"""


def counter(cp: Any, word: Any) -> tuple[Any, np.uint64]:
    """Return an address and a value as arguments of a kernel, for a seed or a call number.

    The address is None for a number, and the value 0 for an array.
    """
    if isinstance(word, cp.ndarray):
        return word.astype(np.uint64, copy=False), np.uint64(0)
    return None, np.uint64(word)
