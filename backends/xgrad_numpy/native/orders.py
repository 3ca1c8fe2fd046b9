"""Orders in which OpenBLAS may add up a matrix product, and which panels.c follows.

They depend on the kernel that OpenBLAS has chosen for the CPU, and on how it divides the product
among its threads. `ways` finds the right one by trial.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from xgrad_numpy.native.products import Product
from xgrad_numpy.native.runtime import Runtime

#: How many products of two numbers OpenBLAS adds up at a time. On one thread, it rounds halves of a
#: number to a multiple of a unit.
_MOST = 448, 384, 320, 256, 512, 192, 128, 640, 768
_UNITS = 16, 8, 4
_OF_A_THREAD = 1 << 18  # products of two numbers per thread of OpenBLAS
_LANES = 8  # columns in a vector of its AVX2 kernel for floats


def orders_of(product: Product, threads: int, runtime: Runtime) -> Iterator[Product]:
    """Yield a product in panels for each order in which OpenBLAS may add up."""
    orders: dict[Any, Product] = {}  # without duplicates
    limits = [most for most in _MOST if most < product.inner]
    # Only in small products, or with large copies, OpenBLAS adds up more than its limit.
    limits.insert(0 if len(limits) < len(_MOST) else len(limits), product.inner)
    for divided in _divided(product, threads, runtime):
        for most in limits:
            for unit in (*_UNITS, 0):
                order = replace(divided, most=most, unit=unit)
                orders.setdefault((order.row_ranges, *depths(order)), order)
    yield from orders.values()


def with_signs(order: Product) -> Iterator[Product]:
    """Yield a product that makes sums of -0 0, as OpenBLAS mostly does, and one that keeps -0."""
    yield order
    yield replace(order, keeps_zeros=True)


def depths(product: Product) -> Iterator[int]:
    """Yield how many products of two numbers are added up at a time, as next_depth of panels.h."""
    left, most, unit = product.inner, product.most, product.unit
    while left:
        half = (left // 2 + unit - 1) // unit * unit if unit else (left + 1) // 2
        depth = most if left >= 2 * most else left if left <= most else half
        yield depth
        left -= depth


def _divided(product: Product, threads: int, runtime: Runtime) -> Iterator[Product]:
    """Yield a product with the ranges of rows and columns that OpenBLAS may give to threads.

    The first one is for pairs.h, if that may apply. OpenBLAS uses fewer threads for fewer products,
    and for fewer columns than the threads have vectors. Of the ways to divide both rows and columns
    it takes the one by which the parts of a thread have the fewest of them.
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
