"""Random variates computed from random bits, bit-identical on every device.

Uniform floats are computed on the device, from integers that a float represents exactly. The others
are computed on the host, by operations that IEEE 754 rounds correctly (+ - * / and the square
root), each in a separate call, so that no compiler fuses two of them. Logarithm, sine and cosine
differ between libraries, and are computed as series here; on some devices, even the square root
differs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xgrad.backend.device import Device
from xgrad.backend.overridable import overridable

_ROOT, _LOG_2 = math.sqrt(0.5), 0.6931471805599453
_LOG = [2 / (2 * k + 1) for k in range(11)]  # log((1 + t) / (1 - t)) / t, by powers of t**2
_SIN = [(-1) ** k / math.factorial(2 * k + 1) for k in range(9)]  # sin(a) / a, by powers of a**2
_COS = [(-1) ** k / math.factorial(2 * k) for k in range(10)]
_FEW = 32  # up to this many normal numbers, Python's arithmetic is faster than some 90 NumPy calls
_PIECE = 2**13  # normal numbers at a time, so that intermediate arrays stay in the cache


@overridable
def uniform(xp: Any, bits: Any, dtype: Any) -> Any:
    """Return uniform floats over [0, 1): multiples of 2**-24 for int32, or of 2**-53 for int64."""
    digits, spare = (24, 8) if bits.dtype == xp.int32 else (53, 11)
    return xp.astype((bits >> spare) & (2**digits - 1), dtype) * 2.0**-digits


def normal(words: np.ndarray, dtype: Any = np.float64) -> np.ndarray:
    """Return normal numbers, one for each 64-bit word; the number of words is even.

    The numbers are computed by the Box-Muller method [1]_, and rounded from float64. The square of
    a pair's radius is -2 log(u), where u has 53 bits and is above 0 and at most 1, so that no
    number is beyond 8.6.

    .. [1] G. E. P. Box, M. E. Muller, "A note on the generation of random normal deviates", Annals
       of Mathematical Statistics 29, 1958.
    """
    if len(words) <= _FEW:
        few, numbers_of_few = words.tolist(), list[float]()
        for first, second in zip(few[::2], few[1::2], strict=True):
            numbers_of_few += _pair(first, second)
        return np.array(numbers_of_few, dtype)
    numbers = np.empty(len(words))
    for start in range(0, len(words), _PIECE):
        piece = slice(start, start + _PIECE)
        _box_muller(words[piece][0::2], words[piece][1::2], numbers[piece])
    return numbers.astype(dtype, copy=False)


def _box_muller(first: np.ndarray, second: np.ndarray, numbers: np.ndarray) -> None:
    radius = np.sqrt(-2 * _log(((first >> 11) + 1) * 2.0**-53))
    # An angle within 45 degrees of 0; two more bits decide whether to exchange sine and cosine, and
    # whether to take the opposite direction.
    angle = (second.view(np.int64) >> 11) * (math.pi * 2.0**-54)
    squared = angle * angle
    sine, cosine = angle * _series(squared, _SIN), _series(squared, _COS)
    exchanged = (second & 1) == 0
    radius *= 1.0 - (second & 2)
    np.multiply(radius, np.where(exchanged, sine, cosine), out=numbers[0::2])
    np.multiply(radius, np.where(exchanged, cosine, sine), out=numbers[1::2])


def _pair(first: int, second: int) -> tuple[float, float]:
    """Return the two numbers that `_box_muller` computes from two words, bit for bit.

    The series are written out: loops over their coefficients would take as long as everything else.
    """
    mantissa, exponent = math.frexp(((first >> 11) + 1) * 2.0**-53)
    if mantissa < _ROOT:
        mantissa, exponent = 2 * mantissa, exponent - 1
    t = (mantissa - 1) / (mantissa + 1)
    x = t * t
    a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10 = _LOG
    log = ((((a10 * x + a9) * x + a8) * x + a7) * x + a6) * x + a5
    log = ((((log * x + a4) * x + a3) * x + a2) * x + a1) * x + a0
    radius = math.sqrt(-2 * (exponent * _LOG_2 + t * log))
    angle = ((second if second < 2**63 else second - 2**64) >> 11) * (math.pi * 2.0**-54)
    x = angle * angle
    a0, a1, a2, a3, a4, a5, a6, a7, a8 = _SIN
    sine = (((a8 * x + a7) * x + a6) * x + a5) * x + a4
    sine = angle * ((((sine * x + a3) * x + a2) * x + a1) * x + a0)
    a0, a1, a2, a3, a4, a5, a6, a7, a8, a9 = _COS
    cosine = ((((a9 * x + a8) * x + a7) * x + a6) * x + a5) * x + a4
    cosine = (((cosine * x + a3) * x + a2) * x + a1) * x + a0
    radius = -radius if second & 2 else radius
    return (radius * cosine, radius * sine) if second & 1 else (radius * sine, radius * cosine)


def exponential(words: np.ndarray) -> np.ndarray:
    """Return exponential numbers with mean 1, float64, from 0 to 37, one for each 64-bit word."""
    return -_log(((words >> 11) + 1) * 2.0**-53)


def _log(x: np.ndarray) -> np.ndarray:
    """Return the logarithm of floats above 0 and up to 1."""
    mantissa, exponent = np.frexp(x)
    small = mantissa < _ROOT
    mantissa = np.where(small, 2 * mantissa, mantissa)
    t = (mantissa - 1) / (mantissa + 1)
    result: np.ndarray = (exponent - small) * _LOG_2 + t * _series(t * t, _LOG)
    return result


def _series(x: np.ndarray, coefficients: list[float]) -> np.ndarray:
    first, *rest, last = coefficients
    total = x * last
    for coefficient in reversed(rest):
        total += coefficient
        total *= x
    total += first
    return total


def integers(low: int, high: int, words: np.ndarray) -> np.ndarray:
    """Return int64 from `low` to below `high`, each from two 64-bit words.

    A number is the high part of a product with 128 random bits.

    No number is more likely than another by more than 1 in 2**64.
    """
    span = high - low
    upper, lower = words[0::2], words[1::2]
    if span < 2**64:
        product = np.uint64(span) * upper  # modulo 2**64
        carried = _high(upper, span) + (product + _high(lower, span) < product)
    else:
        carried = upper
    numbers: np.ndarray = (carried + np.uint64(low % 2**64)).view(np.int64)
    return numbers


def _high(x: np.ndarray, factor: int) -> np.ndarray:
    """Return the high words of the products of uint64 with an int below 2**64."""
    x1, x0, f1, f0 = x >> 32, x & (2**32 - 1), factor >> 32, factor & (2**32 - 1)
    middle = x1 * f0 + (x0 * f0 >> 32)
    high: np.ndarray = x1 * f1 + (middle >> 32) + ((x0 * f1 + (middle & (2**32 - 1))) >> 32)
    return high


def permutation(words: np.ndarray) -> np.ndarray:
    """Return the integers below the number of words, int64, in random order.

    The words are overwritten: the integers replace their low bits, and the words are sorted. No two
    keys are equal, so that the result does not depend on the sorting algorithm.
    """
    mask = (1 << len(words).bit_length()) - 1
    words &= 2**64 - 1 - mask
    words |= np.arange(len(words), dtype=np.uint64)
    words.sort()
    words &= mask
    return words.view(np.int64)


def drawn_uniform(
    device: Device,
    seed: int,
    call: int,
    width: int,
    count: int,
    kind: np.dtype,
    scale: float,
    low: float,
    shape: tuple[int, ...],
) -> Any:
    """Return the uniform numbers of a generator's call: array code, for `run_array_code`."""
    bits = device.backend.random_bits(seed, call, width, count, device.index)
    numbers = uniform(device.xp, bits, device.backend.dtype(kind))
    if (scale, low) != (1, 0):
        numbers = numbers * scale + low
    return numbers if numbers.shape == shape else device.xp.reshape(numbers, shape)


def drawn_on_host(
    device: Device,
    seed: int,
    call: int,
    make: Callable[[np.ndarray], np.ndarray],
    count: int,
    shape: tuple[int, ...],
) -> Any:
    """Return numbers of a generator's call, made on the host: array code, for `run_array_code`."""
    return device.backend.from_words(make, seed, call, count, shape, device.index)
