"""Random bits as a function of a seed, a call number and an index: Philox4x64-10 [1]_.

Under the key (seed, 0), the counter (block, 0, call, 0) gives four words of 64 bits. Integers of
fewer bits are parts of words, low bits first. Every backend gives the same bits.

References
----------
.. [1] J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1,
   2, 3", SC 2011.
"""

from __future__ import annotations

import threading

import numpy as np

_thread = threading.local()
#: A state of NumPy's generator without its counter and key: the words of the last block are used
#: up.
_NO_BUFFER = {
    "bit_generator": "Philox",
    "buffer": (0, 0, 0, 0),
    "buffer_pos": 4,
    "has_uint32": 0,
    "uinteger": 0,
}
_WORD, _INTEGERS = np.dtype("<u8"), {width: np.dtype(f"<i{width // 8}") for width in (16, 32, 64)}


def words(seed: int, call: int, count: int) -> np.ndarray:
    """Return the first `count` words of a call, as uint64; call numbers are modulo 2**64."""
    try:
        generator = _thread.philox
    except AttributeError:
        # One per thread, since a constructor takes longer than a draw. numpy.random is loaded here,
        # at its first use.
        generator = _thread.philox = np.random.Philox(key=0)
    generator.state = {**_NO_BUFFER, "state": {"counter": _before(call % 2**64), "key": (seed, 0)}}
    drawn: np.ndarray = generator.random_raw(count)
    return drawn


def _before(call: int) -> tuple[int, int, int, int]:
    """Return the counter before a call's first block: NumPy increments it first."""
    ones = 2**64 - 1
    return (ones, ones, call - 1, 0) if call else (ones, ones, ones, ones)


def bits(seed: int, call: int, width: int, count: int) -> np.ndarray:
    """Return the first `count` signed integers of a call, of `width` random bits: 16, 32 or 64."""
    drawn = words(seed, call, -(-count * width // 64))
    return drawn.astype(_WORD, copy=False).view(_INTEGERS[width])[:count]
