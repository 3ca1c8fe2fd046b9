"""Matrix products of a captured step as calls of BLAS, which the threads of the pool share out.

A product is taken over if the runtime computes the same bits as NumPy with the number of threads that BLAS has now,
and as BLAS on one thread: OpenBLAS adds up in another order for some shapes if it is called for parts of a product.
That is tried with random numbers, once for each shape and layout in a process. So are the panels of c/panels.c, which
multiply in place of BLAS where they are faster.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from time import perf_counter, sleep
from typing import Any, NamedTuple

import numpy as np

from xgrad_numpy.codegen import Instruction, is_planned
from xgrad_numpy.native.places import Bounds, is_within, places_of
from xgrad_numpy.native.runtime import Runtime

_SHARED = 1 << 17  # products of two numbers from which threads share out a matrix product
_SHARED_BY_VECTOR = 1 << 14  # ... and one of a matrix and a vector
_FLOATS = (np.dtype("float32"), np.dtype("float64"))
_FUNCTIONS: tuple[Any, ...] = (np.ndarray.dot, np.matmul)
#: How many products of two numbers OpenBLAS adds up at a time, and of what it rounds halves of them to a multiple on
#: one thread, which depend on the CPU.
_MOST = 448, 384, 320, 256, 512, 192, 128, 640, 768
_UNITS = 16, 8, 4
_NUMBERS = 65521  # random numbers of which larger operands are made: a prime number
_ROWS = 6  # of a product from which panels are tried
_FILLED = 0.75  # the part of the columns of all panels from which they are
_SPARSE = 0.5  # ... if BLAS on one thread has not the bits of NumPy
_OF_A_THREAD = 1 << 18  # products of two numbers from which OpenBLAS takes a thread
_LANES = 8  # columns in a vector of OpenBLAS's kernel of floats for AVX2
_ROUNDS = 4  # in which both ways are timed, one after the other
_LONG_ENOUGH = 0.02  # seconds of a round after which there is none
_LARGEST = 1 << 34  # products of two numbers up to which a product is tried out
_EDGE = 66  # rows and columns at the end of a product that are all tried with numbers that underflow
_CLEARLY = 1.15  # how much faster: other load of the machine disturbs the times
_TIMED = 1 << 19  # products of two numbers in a round, at least


#: The members of ``struct product`` of products.c in their order, of 8 and of 4 bytes.
_LONG = """rows columns inner stacks count first_leap second_leap out_leap first_step second_step out_step
first_stride second_stride out_stride most unit
all_rows all_columns row_ranges column_ranges""".split()
_SHORT = "first_transposed second_transposed is_double by_vector pieces".split()


class ProductStruct(ctypes.Structure):
    """``struct product`` of products.c."""

    _fields_ = [(name, ctypes.c_int64) for name in _LONG] + [(name, ctypes.c_int32) for name in _SHORT]


@dataclass(frozen=True)
class Product:
    """The shape and the layout of a product, or of a stack of them: see ``struct product`` in products.c."""

    rows: int
    columns: int
    inner: int
    stacks: int
    count: int
    first_leap: int
    second_leap: int
    out_leap: int
    first_step: int
    second_step: int
    out_step: int
    first_stride: int
    second_stride: int
    out_stride: int
    first_transposed: bool
    second_transposed: bool
    is_double: bool
    by_vector: bool = False
    pieces: int = 1
    most: int = 0
    unit: int = 0
    all_rows: int = 0
    all_columns: int = 0
    row_ranges: int = 0
    column_ranges: int = 0

    @property
    def work(self) -> int:
        """The number of products of two numbers."""
        return self.rows * self.columns * self.inner * self.stacks * self.count

    @property
    def may_be_square(self) -> bool:
        """Whether the operands may be a matrix and its transpose, in one memory, which NumPy multiplies otherwise."""
        same = self.rows == self.columns and self.first_stride == self.second_stride
        return same and self.first_transposed != self.second_transposed

    def initializer(self) -> str:
        """Return the initializer of C."""
        return "{" + ", ".join([str(int(getattr(self, name))) for name in (*_LONG, *_SHORT)]) + "}"

    def struct(self) -> ProductStruct:
        """Return the struct of C."""
        return ProductStruct(*[int(getattr(self, name)) for name in (*_LONG, *_SHORT)])


def product_of(x: Instruction, buffers: Bounds) -> Product | None:
    """Return the instruction of a product, None if it is none that BLAS computes at once.

    Of two inputs, or of an input and a parameter, which may share memory in a later call, NumPy may compute the
    product in another way. What is in `buffers`, or what the run itself makes, shares memory with neither.
    """
    if x.function not in _FUNCTIONS or not is_planned(x) or x.options or len(x.operands) != 3:
        return None
    places = places_of(x.operands)
    if places is None or (places[2].moves and not places[2].is_new):
        return None
    given = [not place.is_new and not is_within(place.bounds, buffers) for place in places[:2]]
    may_meet = all(given) and any(place.moves for place in places[:2])
    if may_meet and all(place.moves for place in places[:2]):
        return None
    product = layout_of(x.function, [place.array for place in places])
    return None if product and may_meet and product.may_be_square else product


def layout_of(function: Any, arrays: Sequence[Any]) -> Product | None:
    """Return the shape and the layout of a product, given two operands and the result, of which only these matter.

    None for products of vectors, of a matrix and its own transpose, and of empty matrices, which are left to NumPy.
    """
    if not all(isinstance(array, np.ndarray) and array.flags.aligned for array in arrays):
        return None
    first, second, out = arrays
    if first.dtype not in _FLOATS or not first.dtype == second.dtype == out.dtype:
        return None
    double = bool(first.dtype == _FLOATS[1])
    if (first.ndim, second.ndim, out.ndim) == (2, 1, 1) and function is np.ndarray.dot:
        return _by_vector(first, second, out, double)
    if not 2 <= first.ndim == second.ndim == out.ndim or (first.ndim > 2 and function is not np.matmul):
        return None
    one, other, result, steps = _matrix(first), _matrix(second), _matrix(out), _steps(arrays)
    if one is None or other is None or result is None or steps is None or result[1]:
        return None
    rows, inner, columns = first.shape[-2], first.shape[-1], second.shape[-1]
    if min(rows, inner, columns) < 2 or 0 in out.shape:
        return None
    if second.shape[-2] != inner or out.shape[-2:] != (rows, columns):
        return None
    if first.__array_interface__["data"] == second.__array_interface__["data"]:
        return None
    if first.ndim > 2 and np.may_share_memory(first, second):  # some matrix may meet its own transpose
        return None
    strides = one[0], other[0], result[0]
    return Product(rows, columns, inner, *steps, *strides, one[1], other[1], double)


def _by_vector(first: np.ndarray, second: np.ndarray, out: np.ndarray, double: bool) -> Product | None:
    """Return the product of a matrix and a vector."""
    layout, item = _matrix(first), first.itemsize
    if layout is None or min(first.shape) < 2 or out.strides[0] != item:
        return None
    if second.shape[0] != first.shape[1] or out.shape[0] != first.shape[0]:
        return None
    if second.strides[0] % item or second.strides[0] < item:
        return None
    rows, inner = first.shape
    stride, transposed = layout
    steps = (0,) * 6
    strides = stride, second.strides[0] // item, 1
    return Product(rows, 1, inner, 1, 1, *steps, *strides, transposed, False, double, by_vector=True)


def _matrix(x: np.ndarray) -> tuple[int, bool] | None:
    """Return the stride from row to row in memory, in elements, and whether the matrix is transposed, or None."""
    (rows, columns), (down, right), item = x.shape[-2:], x.strides[-2:], x.itemsize
    if right == item and down % item == 0 and down >= columns * item:
        return down // item, False
    if down == item and right % item == 0 and right >= rows * item:
        return right // item, True
    return None


def _steps(arrays: Sequence[np.ndarray]) -> tuple[int, int, int, int, int, int, int, int] | None:
    """Return the numbers of stacks and of matrices in each, and the bytes from one to the next, None for more axes."""
    shape = arrays[2].shape[:-2]
    if any(array.shape[:-2] != shape for array in arrays):
        return None
    axes: list[list[int]] = []  # lengths, and strides of the three arrays
    for axis in (axis for axis, n in enumerate(shape) if n > 1):
        strides = [array.strides[axis] for array in arrays]
        if axes and axes[-1][1:] == [stride * shape[axis] for stride in strides]:
            axes[-1] = [axes[-1][0] * shape[axis], *strides]
        else:
            axes.append([shape[axis], *strides])
    if len(axes) > 2:
        return None
    (stacks, *leaps), (count, *steps) = [*[[1, 0, 0, 0]] * (2 - len(axes)), *axes]
    return stacks, count, leaps[0], leaps[1], leaps[2], steps[0], steps[1], steps[2]


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
        with suppress(_Untried):
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
            in_panels = next(filter(passes, in_panels_of(product, threads, runtime)), None)
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
        with np.errstate(all="ignore"):
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
    signs = np.sign(first)
    first[...] = np.copysign(0, first)
    rows = {0, 1, *range(max(0, first.shape[-2] - _EDGE), first.shape[-2])}
    for i in rows:
        for k in (-1, *([0] if i % 2 else [])):  # the last product alone, or the first one before zeros, too
            first[..., i, k] = tiny * signs[..., i, k]
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
    return out.tobytes() == trial.expected.tobytes()


def _multiply(product: Product, trial: _Trial, out: np.ndarray, runtime: Runtime) -> None:
    addresses = [ctypes.c_void_p(x.__array_interface__["data"][0]) for x in (*trial[:2], out)]
    runtime.functions.multiply_alone(ctypes.byref(product.struct()), *addresses)


def _worth_panels(product: Product, runtime: Runtime, by_blas: Product | None) -> bool:
    """Return whether panels may be faster than `by_blas`, or, if that is None, than NumPy."""
    width = int(runtime.functions[f"panel_columns_{'double' if product.is_double else 'float'}"]())
    if product.by_vector or product.rows < _ROWS or not width:
        return False
    return product.columns / (-(-product.columns // width) * width) >= (_FILLED if by_blas else _SPARSE)


def in_panels_of(product: Product, threads: int, runtime: Runtime) -> Iterator[Product]:
    """Yield a product in panels, for each order in which OpenBLAS may add up."""
    orders: dict[Any, Product] = {}  # that differ
    for divided in _divided(product, threads, runtime):
        for most in (product.inner, *[most for most in _MOST if most < product.inner]):
            for unit in (*_UNITS, 0):
                order = replace(divided, most=most, unit=unit)
                orders.setdefault((order.row_ranges, *depths(order)), order)
    yield from orders.values()


def depths(product: Product) -> Iterator[int]:
    """Yield how many products of two numbers are added up at a time: see next_depth of panels.h."""
    left, most, unit = product.inner, product.most, product.unit
    while left:
        half = (left // 2 + unit - 1) // unit * unit if unit else (left + 1) // 2
        depth = most if left >= 2 * most else left if left <= most else half
        yield depth
        left -= depth


def _divided(product: Product, threads: int, runtime: Runtime) -> Iterator[Product]:
    """Yield a product with the ranges of rows and columns that OpenBLAS may give to threads, if pairs.h may apply.

    It takes fewer threads for fewer products, and for fewer columns than they have vectors. Of the ways to divide both
    rows and columns it takes that by which the parts of a thread have the fewest.
    """
    rows, columns = product.rows, product.columns
    if not product.is_double and runtime.functions.panels_have_pairs():
        threads = max(1, min(threads, rows * columns * product.inner // _OF_A_THREAD))
        of_columns = threads
        while of_columns > 1 and columns < of_columns * _LANES:
            of_columns //= 2
        of_rows = max(1, min(-(-rows // (_LANES * of_columns)), threads // of_columns))
        used = of_rows * of_columns
        divisors = [n for n in range(of_columns, 0, -1) if of_columns % n == 0]
        of_columns = min(divisors, key=lambda n: rows * n + columns * (used // n))
        divided = replace(product, all_rows=rows, all_columns=columns)
        yield replace(divided, row_ranges=used, column_ranges=of_columns)
    yield product


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
    out: np.ndarray = np.ndarray(x.shape, x.dtype, np.zeros(high - low + 64, np.uint8), start, x.strides)
    if rng is not None:
        numbers = rng.standard_normal(min(x.size, _NUMBERS), np.float64).astype(x.dtype)
        out[...] = np.resize(numbers, x.shape)
    return out
