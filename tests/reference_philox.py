"""Philox4x64-10 as its paper has it, in Python's integers, and the words that are published for it."""

from __future__ import annotations

Words = tuple[int, ...]

# Of Random123, tests/kat_vectors: a counter, a key, and the four words that they give
VECTORS: list[tuple[Words, Words, Words]] = [
    (
        (0, 0, 0, 0),
        (0, 0),
        (0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B),
    ),
    (
        (2**64 - 1,) * 4,
        (2**64 - 1,) * 2,
        (0x87B092C3013FE90B, 0x438C3C67BE8D0224, 0x9CC7D7C69CD777B6, 0xA09CAEBF594F0BA0),
    ),
    (
        (0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89),
        (0x452821E638D01377, 0xBE5466CF34E90C6C),
        (0xA528F45403E61D95, 0x38C72DBD566E9788, 0xA5A1610E72FD18B5, 0x57BD43B5E52B7FE6),
    ),
]


def block(counter: Words, key: Words) -> Words:
    """Return the four words of a counter under a key."""
    a, b, c, d = counter
    first, second = key
    for _ in range(10):
        high_a, low_a = divmod(0xD2E7470EE14C6C93 * a, 2**64)
        high_c, low_c = divmod(0xCA5A826395121157 * c, 2**64)
        a, b, c, d = high_c ^ b ^ first, low_c, high_a ^ d ^ second, low_a
        first, second = (first + 0x9E3779B97F4A7C15) % 2**64, (second + 0xBB67AE8584CAA73B) % 2**64
    return a, b, c, d


def stream(seed: int, call: int, count: int) -> list[int]:
    """Return the first words of a call of `xgrad.random`."""
    return [word for i in range(-(-count // 4)) for word in block((i, 0, call, 0), (seed, 0))][:count]
