"""Choose how to compute a matrix product with NumPy's bits: by BLAS, or in panels.

A product is taken over if the runtime computes the same bits as NumPy with the number of threads that BLAS has now,
and as BLAS on one thread: OpenBLAS adds up in another order for some shapes if it is called for parts of a product.
That is tried with random numbers, once for each shape and layout in a process. So are the panels of c/panels.c, which
multiply in place of BLAS where they are faster.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import inf
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from time import perf_counter, sleep
from typing import Any, NamedTuple

import numpy as np

from xgrad_numpy.native.orders import orders_of
from xgrad_numpy.native.products import Product
from xgrad_numpy.native.runtime import Runtime

_SHARED = 1 << 17  # products of two numbers from which threads share out a matrix product
_SHARED_BY_VECTOR = 1 << 14  # ... and one of a matrix and a vector
_NUMBERS = 65521  # random numbers of which larger operands are made: a prime number
_COMPARED = 1 << 18  # bytes of results that are compared at once
_ROWS = 6  # of a product from which panels are tried
_FILLED = 0.75  # the part of the columns of all panels from which they are
_SPARSE = 0.5  # ... if BLAS on one thread has not the bits of NumPy
_ROUNDS = 4  # in which both ways are timed, one after the other
_LONG_ENOUGH = 0.02  # seconds of a round after which there is none
_LARGEST = 1 << 32  # products of two numbers up to which a product is tried out
_EDGE = 66  # rows and columns at the end of a product that are all tried with numbers that underflow
_CLEARLY = 1.15  # how much faster: other load of the machine disturbs the times
_TIMED = 1 << 19  # products of two numbers in a round, at least


class Ways(NamedTuple):
    """The ways to compute a product with NumPy's bits.

    `by_blas` calls BLAS, `in_panels` uses the code of panels.c, and `fastest` is the faster of the two. Each is None if
    its bits differ from NumPy's.
    """

    by_blas: Product | None
    in_panels: Product | None
    fastest: Product | None


NO_WAY = Ways(None, None, None)


def with_bits_of_numpy(product: Product, function: Any, arrays: Sequence[Any], runtime: Runtime) -> Product | None:
    """Return a product in as many pieces as threads are useful, None if NumPy's bits differ.

    The first call for a shape and a layout takes as long as some products.
    """
    return ways_of(product, function, arrays, runtime).fastest


def ways_of(product: Product, function: Any, arrays: Sequence[Any], runtime: Runtime) -> Ways:
    """Return the ways to compute a product with NumPy's bits; tried out once for a shape and a layout."""
    if not runtime.has_products:
        return NO_WAY
    threads = int(runtime.functions.threads())
    key = product, function, threads
    if key not in _KNOWN:
        with suppress(_Untried), np.errstate(all="ignore"):  # the numbers are not the user's
            _KNOWN[key] = _tried(product, function, arrays, runtime, threads)
    return _KNOWN.get(key, NO_WAY)


_KNOWN: dict[Any, Ways] = {}


class _Untried(Exception):
    """Other threads have left BLAS one thread all the time."""


def undisturbed(call: Callable[[], Any], runtime: Runtime) -> bool:
    """Make a call of NumPy, again and again until no other thread has left BLAS one thread meanwhile.

    Return whether that succeeded.
    """
    begun = runtime.functions.products_begun
    begun.restype = ctypes.c_int64
    for _ in range(20):
        number = begun()
        call()
        if number >= 0 and begun() == number:
            return True
        sleep(1e-3)
    return False


def _tried(product: Product, function: Any, arrays: Sequence[Any], runtime: Runtime, threads: int) -> Ways:
    if product.work > _LARGEST:
        return NO_WAY
    before = runtime.take_raised()
    try:
        trial = _random_trial(function, arrays, runtime)
        edges: list[_Trial] = []  # made for what has passed the first

        def passes(candidate: Product) -> bool:
            if not _agrees(candidate, trial, runtime):
                return False
            if not edges:
                edges.append(_underflowing_trial(function, arrays, runtime))
            return _agrees(candidate, edges[0], runtime)

        by_blas = in_panels = None
        if passes(product):
            pieces = (replace(product, pieces=pieces) for pieces in _pieces(product, threads))
            by_blas = next(filter(passes, pieces), product)
        if _worth_panels(product, runtime, by_blas):
            in_panels = next(filter(passes, orders_of(product, threads, runtime)), None)
        return Ways(by_blas, in_panels, _faster(by_blas, in_panels, trial, runtime))
    finally:  # the user's numbers have not raised the exceptions of the trials
        runtime.take_raised()
        runtime.functions.note(before)


class _Trial(NamedTuple):
    """The operands of a product, and its result by NumPy."""

    first: np.ndarray
    second: np.ndarray
    expected: np.ndarray

    @classmethod
    def of(cls, function: Any, first: np.ndarray, second: np.ndarray, out: Any, runtime: Runtime) -> _Trial:
        """Return the trial of two operands, with a result in memory like `out`."""
        expected = _like(out, None)
        if not undisturbed(partial(function, first, second, expected), runtime):
            raise _Untried
        return cls(first, second, expected)


def _random_trial(function: Any, arrays: Sequence[Any], runtime: Runtime) -> _Trial:
    rng = np.random.default_rng(0)
    return _Trial.of(function, _like(arrays[0], rng), _like(arrays[1], rng), arrays[2], runtime)


def _underflowing_trial(function: Any, arrays: Sequence[Any], runtime: Runtime) -> _Trial:
    """Return a product of zeros of both signs, with results at the edges that underflow to zeros of both signs.

    There each kernel of BLAS has its own code. Few numbers underflow, which takes a hundred times as long as others.
    """
    rng = np.random.default_rng(1)
    first, second = (_like(x, rng) for x in arrays[:2])
    tiny = np.sqrt(np.finfo(first.dtype).smallest_subnormal) / 16
    np.copysign(0, first, out=first)
    rows = {0, 1, *range(max(0, first.shape[-2] - _EDGE), first.shape[-2])}
    for i in rows:
        for k in (-1, *([0] if i % 2 else [])):  # the last product alone, or the first one before zeros, too
            first[..., i, k] = np.copysign(tiny, first[..., i, k])
    if second.ndim == 1:
        second[[0, -1]] = tiny
    else:
        for j in {0, 1, *range(max(0, second.shape[-1] - _EDGE), second.shape[-1])}:
            for k in (0, -1):
                second[..., k, j] = tiny * np.sign(second[..., k, j])
    return _Trial.of(function, first, second, arrays[2], runtime)


def _agrees(candidate: Product, trial: _Trial, runtime: Runtime) -> bool:
    """Return whether the runtime computes the bits of NumPy."""
    out = _like(trial.expected, None)
    _multiply(candidate, trial, out, runtime)
    one, other = map(_memory, (out, trial.expected))
    parts = [slice(i, i + _COMPARED) for i in range(0, one.size, _COMPARED)]
    return all(np.array_equal(one[part], other[part]) for part in parts)


def _multiply(product: Product, trial: _Trial, out: np.ndarray, runtime: Runtime) -> None:
    """Compute a product. No other thread of Python begins one of NumPy while BLAS has one thread for it."""
    functions = runtime.functions if product.most else runtime.alone
    addresses = [ctypes.c_void_p(x.__array_interface__["data"][0]) for x in (*trial[:2], out)]
    functions.multiply_alone(ctypes.byref(product.struct()), *addresses)


def _worth_panels(product: Product, runtime: Runtime, by_blas: Product | None) -> bool:
    """Return whether panels may be faster than `by_blas`, or, if that is None, than NumPy."""
    width = int(runtime.functions[f"panel_columns_{'double' if product.is_double else 'float'}"]())
    if product.by_vector or product.rows < _ROWS or not width:
        return False
    return product.columns / (-(-product.columns // width) * width) >= (_FILLED if by_blas else _SPARSE)


def _faster(by_blas: Product | None, in_panels: Product | None, trial: _Trial, runtime: Runtime) -> Product | None:
    """Return the product in panels, unless that by BLAS is clearly faster, or it is the only one."""
    if by_blas is None or in_panels is None:
        return by_blas or in_panels
    out, times = _like(trial.expected, None), {by_blas: inf, in_panels: inf}
    calls = max(1, _TIMED // by_blas.work)
    for _ in range(_ROUNDS):
        for product in times:
            start = perf_counter()
            for _ in range(calls):
                _multiply(product, trial, out, runtime)
            times[product] = min(times[product], perf_counter() - start)
        if sum(times.values()) > _LONG_ENOUGH:
            break
    return by_blas if times[by_blas] * _CLEARLY < times[in_panels] else in_panels


def _pieces(product: Product, threads: int) -> Iterator[int]:
    """Yield numbers of pieces to try: the longer side of a large matrix first."""
    least = _SHARED_BY_VECTOR if product.by_vector else _SHARED
    if product.stacks * product.count > 1 or product.work < least or threads == 1:
        yield 1
        return
    for size, pieces in sorted([(product.rows, threads), (product.columns, -threads)], reverse=True):
        if size >= 32:
            yield pieces


def _like(x: np.ndarray, rng: np.random.Generator | None) -> np.ndarray:
    """Return an array with the strides of another one, with random numbers, or zeros."""
    low, high = np.lib.array_utils.byte_bounds(x)
    start = x.__array_interface__["data"][0] - low
    try:  # the system takes this memory back at once; the C library keeps what NumPy frees
        memory = mmap(-1, high - low + 64, flags=MAP_PRIVATE | MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"{x.nbytes} bytes: {error}") from None
    if rng is not None:
        places = np.frombuffer(memory, x.dtype, (high - low) // x.itemsize)
        numbers = rng.standard_normal(min(places.size, _NUMBERS), np.float64).astype(x.dtype)
        for i in range(0, places.size, _NUMBERS):
            places[i : i + _NUMBERS] = numbers[: places.size - i]
    return np.ndarray(x.shape, x.dtype, memory, start, x.strides)


def _memory(x: np.ndarray) -> np.ndarray:
    """Return the bytes of an array that `_like` has made."""
    memory: Any = x.base
    return np.frombuffer(memory, np.uint8)
