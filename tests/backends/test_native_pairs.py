"""Products with two sums for some numbers have the bits of OpenBLAS's kernel of floats for AVX2.

See c/pairs.h.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import skip_without_compiler
from xgrad_numpy import executor
from xgrad_numpy.native import orders, products, rule_programs, ways
from xgrad_numpy.native.runtime import Runtime, runtime

#: Rows, inner lengths and columns: all numbers of groups and blocks, whole and partial, also with
#: one sum after another.
SHAPES = [
    (6, 16, 32),
    (7, 9, 33),
    (8, 300, 512),
    (9, 9, 33),
    (10, 300, 512),
    (11, 40, 40),
    (12, 512, 784),
    (20, 40, 700),
    (22, 300, 512),
    (32, 128, 128),
    (32, 128, 512),
    (33, 77, 640),
    (45, 150, 1000),
    (48, 100, 48),
    (50, 330, 50),
    (64, 784, 256),
    (65, 70, 77),
    (96, 50, 96),
    (100, 33, 350),
    (130, 700, 72),
    (150, 640, 16),
    (300, 64, 333),
    (333, 100, 72),
    (400, 40, 401),
    (517, 20, 1000),
    (1000, 300, 24),
    (1024, 20, 1024),
    (200, 2, 3000),
    (1200, 130, 1060),
]


@pytest.fixture(params=[1, 2, 3, 4, 6])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = xgrad.get_num_threads()
    xgrad.set_num_threads(request.param)
    yield request.param
    xgrad.set_num_threads(before)


@pytest.fixture
def native() -> Runtime:
    skip_without_compiler()
    found = runtime()
    if not found.functions.panels_have_pairs():
        pytest.skip("needs a CPU with AVX2 and without AVX-512")
    return found


def paired_orders(
    product: products.Product, threads: int, native: Runtime
) -> list[products.Product]:
    """Return the orders with pairs that are tried for a product."""
    return [order for order in orders.orders_of(product, threads, native) if order.row_ranges]


def operands(rows: int, inner: int, columns: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(rows)
    first = rng.standard_normal((rows, inner), "f4")
    second = rng.standard_normal((inner, columns), "f4")
    return first, second, np.empty((rows, columns), "f4")


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_pairs_are_those_of_openblas(
    shape: tuple[int, int, int], threads: int, native: Runtime
) -> None:
    first, second, out = operands(*shape)
    product = products.layout_of(np.ndarray.dot, (first, second, out))
    assert product is not None
    trial = ways._Trial(np.ndarray.dot, (first, second, out), native)
    assert any(
        trial.agrees(order, ways._random_numbers)
        for order in paired_orders(product, threads, native)
    )


def test_some_numbers_have_one_sum_and_some_have_two(native: Runtime) -> None:
    """Small numbers at odd positions show how many sums a result has.

    They are lost where they are added to the numbers at even positions, pairs of which cancel.
    """
    rows, inner, columns, small = 24, 16, 48, 2.0**-30
    first = np.tile(np.array([1, small, -1, small], "f4"), (rows, inner // 4))
    second, out = np.ones((inner, columns), "f4"), np.empty((rows, columns), "f4")
    product = products.layout_of(np.ndarray.dot, (first, second, out))
    assert product is not None
    for order in paired_orders(product, 1, native)[:1]:
        ways._multiply(order, (first, second, out), native)
    expected = np.full_like(out, small)
    for group in (0, 12):  # a block of six vectors: an even number
        expected[group : group + 6, :8] = expected[group : group + 6, -8:] = 8 * small
    assert np.array_equal(out, expected)


def test_no_other_thread_runs_python_while_a_trial_leaves_blas_one_thread() -> None:
    """A product of NumPy that began meanwhile would have the bits of one thread."""
    skip_without_compiler()
    native, counts, ended = runtime(), [0], threading.Event()
    first, second, out = operands(1000, 1000, 1000)
    product = products.layout_of(np.ndarray.dot, (first, second, out))
    if product is None or not native.has_products:
        pytest.skip("needs OpenBLAS")

    def count() -> None:
        while not ended.wait(5e-4):
            counts[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    try:
        during = list[int]()
        for _ in range(5):
            before = counts[0]
            ways._multiply(product, (first, second, out), native)
            during.append(counts[0] - before)
    finally:
        ended.set()
        thread.join()
    # it may run just before and after; else for all of some twenty milliseconds
    assert min(during) <= 3


def test_threads_that_compile_try_no_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product that NumPy begins during a trial would have the bits of one thread."""
    skip_without_compiler()
    if not runtime().has_products:
        pytest.skip("needs OpenBLAS")
    tried: list[threading.Thread] = []
    make = ways._tried
    monkeypatch.setattr(ways, "_KNOWN", {})
    monkeypatch.setattr(
        ways, "_tried", lambda *args: tried.append(threading.current_thread()) or make(*args)
    )
    x, weight, _ = map(xgrad.asarray, operands(64, 900, 256))
    step = xgrad.capture(lambda: xgrad.tanh(x @ weight) * 2.0 + 1.0)
    expected = step().numpy()
    with np.errstate(all="raise"):  # the numbers of trials are not the user's
        for _ in range(executor.WARM + 2):
            assert np.array_equal(step().numpy(), expected)
        (program,) = step._programs.values()
        while (compilation := program.executor._compilation) is not None:
            compilation.wait()
            assert np.array_equal(step().numpy(), expected)
    assert program.executor.run == program.executor._run_kernels
    of_step = len(tried)
    made = threading.Event()
    compiled = rule_programs.RuleRecording.compiled
    monkeypatch.setattr(
        rule_programs.RuleRecording, "compiled", lambda *args: (compiled(*args), made.set())[0]
    )
    query = xgrad.asarray(
        np.random.default_rng(0).standard_normal((2, 4, 48, 44)).astype(np.float32)
    )
    for _ in range(rule_programs._WARM + 2):
        xgrad.nn.functional.scaled_dot_product_attention(query, query, query)
    assert made.wait(60)
    assert 0 < of_step < len(tried) and set(tried) == {threading.current_thread()}
