"""Random bits as a function of a seed, the number of a call and an index: Philox4x64-10 [1]_.

Under the key (seed, 0), the counter (block, 0, call, 0) gives four words of 64 bits. Integers of fewer bits are parts
of words, the low bits first. Every backend gives the same bits.

References
----------
.. [1] J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

import threading

import numpy as np

_thread = threading.local()


def words(seed: int, call: int, count: int) -> np.ndarray:
    """Return the first `count` words of a call, as uint64; calls are counted modulo 2**64."""
    if not hasattr(_thread, "state"):
        # One per thread: a constructor takes longer than a draw. numpy.random is loaded here, at its first use.
        _thread.philox = np.random.Philox(key=0)
        _thread.state = _thread.philox.state
    state = _thread.state["state"]
    state["key"][0] = seed
    state["counter"][:] = _before(call % 2**64)
    _thread.philox.state = _thread.state
    drawn: np.ndarray = _thread.philox.random_raw(count)
    return drawn


def _before(call: int) -> tuple[int, int, int, int]:
    """Return the counter before that of the first block of a call: NumPy increments it first."""
    ones = 2**64 - 1
    return (ones, ones, call - 1, 0) if call else (ones, ones, ones, ones)


def bits(seed: int, call: int, width: int, count: int) -> np.ndarray:
    """Return the first `count` integers of a call, of `width` random bits: 16, 32 or 64, signed."""
    drawn = words(seed, call, -(-count * width // 64))
    return drawn.astype("<u8", copy=False).view(f"<i{width // 8}")[:count]
