"""Choose how to compute a matrix product with NumPy's bits: by BLAS, or in panels.

The runtime takes over a product if it computes the same bits as NumPy, with the number of threads
that BLAS has now, and as BLAS does on one thread: OpenBLAS adds up in another order for some shapes
if it is called for parts of a product. That is tried with random numbers, once for each shape and
layout in a process. The panels of c/panels.c, which replace BLAS where they are faster, are tried
in the same way.
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from math import inf
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from time import perf_counter, sleep
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from xgrad_numpy.native.orders import orders_of, with_signs
from xgrad_numpy.native.products import Product
from xgrad_numpy.native.runtime import Runtime

_SHARED = 1 << 17  # products of two numbers, from which threads share out a matrix product
_SHARED_BY_VECTOR = 1 << 14  # the same for a product of a matrix and a vector
_NUMBERS = 65521  # random numbers, repeated in larger operands; the count is prime
_DIGESTED = 1 << 16  # bytes of results for one digest
_ROWS = 6  # rows of a product from which panels are tried
_FILLED = 0.75  # minimum fraction of the columns of whole vectors for trying panels
_SPARSE = 0.5  # the same, if BLAS on one thread does not give NumPy's bits
_ROUNDS = 4  # rounds in which both ways are timed, one after the other
_LONG_ENOUGH = 0.02  # no more rounds after one that takes these seconds
_LARGEST = 1 << 32  # maximum products of two numbers with which a product is tried out
_EDGE = 66  # rows and columns at the end of a product, all of which are tried with underflow
_CLEARLY = 1.15  # factor of time, since other load on the machine disturbs the times
_TIMED = 1 << 19  # minimum products of two numbers in a round


class Ways(NamedTuple):
    """The ways to compute a product with NumPy's bits.

    `by_blas` calls BLAS, `in_panels` uses the code of panels.c, and `fastest` is the faster of the
    two. Each is None if its bits differ from NumPy's.
    """

    by_blas: Product | None
    in_panels: Product | None
    fastest: Product | None


NO_WAY = Ways(None, None, None)


def with_bits_of_numpy(
    product: Product, function: Any, arrays: Sequence[Any], runtime: Runtime
) -> Product | None:
    """Return a product in as many pieces as there are useful threads; None if its bits differ.

    The first call for a shape and a layout takes as long as some products.
    """
    return ways_of(product, function, arrays, runtime).fastest


def ways_of(product: Product, function: Any, arrays: Sequence[Any], runtime: Runtime) -> Ways:
    """Return the ways to compute a product with NumPy's bits.

    They are tried out once for a shape and a layout.
    """
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
    """Other threads have kept BLAS at one thread all the time."""


def undisturbed(call: Callable[[], Any], runtime: Runtime) -> bool:
    """Repeat a call of NumPy until no other thread has set BLAS to one thread meanwhile.

    Returns whether that succeeded.
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


def _tried(
    product: Product, function: Any, arrays: Sequence[Any], runtime: Runtime, threads: int
) -> Ways:
    if product.work > _LARGEST:
        return NO_WAY
    before = runtime.take_raised()
    try:
        trial = _Trial(function, arrays, runtime)
        by_blas = in_panels = None
        if trial.passes(product):
            pieces = (replace(product, pieces=pieces) for pieces in _pieces(product, threads))
            by_blas = next(filter(trial.passes, pieces), product)
        if _worth_panels(product, runtime, by_blas):
            in_panels = _in_panels(trial, orders_of(product, threads, runtime))
        return Ways(by_blas, in_panels, _faster(by_blas, in_panels, trial))
    finally:  # exceptions of the trials are not the user's
        runtime.take_raised()
        runtime.functions.note(before)
        runtime.functions.forget_copies()


class _Trial:
    """Memory in which a product is tried out: two operands and a result.

    The operands get one kind of numbers after the other. NumPy's results are kept as digests,
    because each result would need as much memory again.
    """

    def __init__(self, function: Any, arrays: Sequence[Any], runtime: Runtime) -> None:
        self._function, self._runtime = function, runtime
        self._arrays = first, _, _ = [_like(x) for x in arrays]
        self._numbers = np.random.default_rng(0).standard_normal(_NUMBERS).astype(first.dtype)
        self._kind: _Kind | None = None  # kind of numbers in the operands
        self._expected: dict[_Kind, list[bytes]] = {}  # digests of NumPy's results

    def passes(self, candidate: Product) -> bool:
        """Return whether the runtime computes NumPy's bits."""
        kinds = _random_numbers, _underflowing_numbers
        return all(self.agrees(candidate, kind) for kind in kinds)

    def agrees(self, candidate: Product, kind: _Kind) -> bool:
        """Return whether the runtime computes NumPy's bits for numbers of a kind."""
        self.fill(kind)
        out = self._arrays[2]
        if kind not in self._expected:
            if not undisturbed(partial(self._function, *self._arrays), self._runtime):
                raise _Untried
            self._expected[kind] = list(_digests(out))
        out[...] = 0  # or elements that the candidate does not write would pass as its result
        self.multiply(candidate)
        return all(map(operator.eq, _digests(out), self._expected[kind]))

    def fill(self, kind: _Kind) -> None:
        """Fill the operands with numbers of a kind."""
        if self._kind is not kind:
            first, second, _ = self._arrays
            kind(first, second, self._numbers)
            self._kind = kind

    def multiply(self, product: Product) -> None:
        """Compute a product."""
        _multiply(product, self._arrays, self._runtime)


def _multiply(product: Product, arrays: Sequence[np.ndarray], runtime: Runtime) -> None:
    """Compute a product.

    No other Python thread begins a NumPy product while BLAS has one thread for this one.
    """
    functions = runtime.functions if product.most else runtime.alone
    addresses = [ctypes.c_void_p(x.__array_interface__["data"][0]) for x in arrays]
    functions.multiply_alone(ctypes.byref(product.struct()), *addresses)


_Kind: TypeAlias = Callable[[np.ndarray, np.ndarray, np.ndarray], None]


def _random_numbers(first: np.ndarray, second: np.ndarray, numbers: np.ndarray) -> None:
    """Fill operands with random numbers, which repeat."""
    _fill(first, numbers)
    _fill(second, numbers[::-1])


def _underflowing_numbers(first: np.ndarray, second: np.ndarray, numbers: np.ndarray) -> None:
    """Fill operands with numbers whose sums underflow."""
    _random_numbers(first, second, numbers)
    let_underflow(first, second)


def let_underflow(first: np.ndarray, second: np.ndarray) -> None:
    """Change operands so that their product consists of zeros of both signs.

    At its edges, where each kernel of BLAS has its own code, sums underflow to these zeros. Only a
    few numbers underflow, because that takes long.
    """
    tiny = np.sqrt(np.finfo(first.dtype).smallest_subnormal) / 16
    np.copysign(0, first, out=first)
    rows = _edges(first.shape[-2])
    # In all rows the last product of a sum underflows; in some also the last but one, which ends a
    # second partial sum, or the first one, before zeros.
    thirds, odd = rows[rows % 3 == 0], rows[rows % 2 == 1]
    for places in [(..., rows, -1), (..., thirds, -2), (..., odd, 0)]:
        first[places] = np.copysign(tiny, first[places])
    if second.ndim == 1:
        second[[0, -2, -1]] = tiny
        return
    columns = _edges(second.shape[-1])
    for k in {0, second.shape[-2] - 2, second.shape[-2] - 1}:
        second[..., k, columns] = np.copysign(tiny, second[..., k, columns])


def _edges(size: int) -> np.ndarray:
    """Return the indices of the first two and of the last of `size` rows or columns."""
    return np.array(sorted({0, 1, *range(max(0, size - _EDGE), size)}))


def _worth_panels(product: Product, runtime: Runtime, by_blas: Product | None) -> bool:
    """Return whether panels may be faster than `by_blas`, or than NumPy if that is None."""
    lanes = int(runtime.functions[f"panel_lanes_{'double' if product.is_double else 'float'}"]())
    if product.by_vector or product.rows < _ROWS or not lanes:
        return False
    filled = product.columns / (-(-product.columns // lanes) * lanes)
    return filled >= (_FILLED if by_blas else _SPARSE)


def _in_panels(trial: _Trial, orders: Iterable[Product]) -> Product | None:
    """Return the first product that adds up in NumPy's order and gives the same signs of zeros."""
    for order in orders:
        if trial.agrees(order, _random_numbers):
            for product in with_signs(order):
                if trial.agrees(product, _underflowing_numbers):
                    return product
    return None


def _faster(by_blas: Product | None, in_panels: Product | None, trial: _Trial) -> Product | None:
    """Return the product in panels, unless BLAS is clearly faster or is the only way."""
    if by_blas is None or in_panels is None:
        return by_blas or in_panels
    trial.fill(_random_numbers)
    times = {by_blas: inf, in_panels: inf}
    calls = max(1, _TIMED // by_blas.work)
    for _ in range(_ROUNDS):
        for product in times:
            start = perf_counter()
            for _ in range(calls):
                trial.multiply(product)
            times[product] = min(times[product], perf_counter() - start)
        if sum(times.values()) > _LONG_ENOUGH:
            break
    return by_blas if times[by_blas] * _CLEARLY < times[in_panels] else in_panels


def _pieces(product: Product, threads: int) -> Iterator[int]:
    """Yield numbers of pieces to try; for a large matrix, along its longer side first."""
    least = _SHARED_BY_VECTOR if product.by_vector else _SHARED
    if product.stacks * product.count > 1 or product.work < least or threads == 1:
        yield 1
        return
    for size, pieces in sorted(
        [(product.rows, threads), (product.columns, -threads)], reverse=True
    ):
        if size >= 32:
            yield pieces


def _like(x: np.ndarray) -> np.ndarray:
    """Return an array of zeros with the strides of `x`."""
    low, high = np.lib.array_utils.byte_bounds(x)
    start = x.__array_interface__["data"][0] - low
    try:  # the system gets this memory back at once; the C library would keep NumPy's
        memory = mmap(-1, high - low + 64, flags=MAP_PRIVATE | MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"{x.nbytes} bytes: {error}") from None
    return np.ndarray(x.shape, x.dtype, memory, start, x.strides)


def _fill(x: np.ndarray, numbers: np.ndarray) -> None:
    """Fill an array made by `_like` with numbers, which repeat."""
    memory: Any = x.base
    places = np.frombuffer(memory, x.dtype, len(memory) // x.itemsize)
    for i in range(0, places.size, numbers.size):
        places[i : i + numbers.size] = numbers[: places.size - i]


def _digests(x: np.ndarray) -> Iterator[bytes]:
    """Yield digests of the memory of an array made by `_like`, including gaps."""
    memory: Any = x.base
    for i in range(0, len(memory), _DIGESTED):
        yield blake2b(memory[i : i + _DIGESTED]).digest()
