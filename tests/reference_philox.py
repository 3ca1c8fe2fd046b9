"""NumPy's Philox4x64-10, and published test vectors, as references for random bits."""

from __future__ import annotations

import numpy as np

# From Random123, tests/kat_vectors: counter, key, four words
VECTORS = [
    (0, 0, [0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B]),
    (
        2**256 - 1,
        2**128 - 1,
        [0x87B092C3013FE90B, 0x438C3C67BE8D0224, 0x9CC7D7C69CD777B6, 0xA09CAEBF594F0BA0],
    ),
    (
        0x082EFA98EC4E6C89A4093822299F31D013198A2E03707344243F6A8885A308D3,
        0xBE5466CF34E90C6C452821E638D01377,
        [0xA528F45403E61D95, 0x38C72DBD566E9788, 0xA5A1610E72FD18B5, 0x57BD43B5E52B7FE6],
    ),
]


def words(counter: int, key: int, count: int) -> list[int]:
    """Return the first words from a counter on; NumPy increments it before each block."""
    return np.random.Philox(counter=(counter - 1) % 2**256, key=key).random_raw(count).tolist()


def stream(seed: int, call: int, count: int) -> list[int]:
    """Return the first words of a call of `xgrad.random`."""
    return words(call << 128, seed, count)
