"""Native kernels of convolution and pooling: the bits of the NumPy code of the same functions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from xgrad.ops.windows import Window
from xgrad_numpy import pooling
from xgrad_numpy.native import library
from xgrad_numpy.native import pooling as native_pooling
from xgrad_numpy.native import runtime as native

pytestmark = [pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning"), pytest.mark.usefixtures("loaded")]
SPECIAL = [0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1e-42, 3e38]


@pytest.fixture(scope="module")
def runtime() -> native.Runtime:
    try:
        return native.runtime()
    except library.Unavailable as error:
        pytest.skip(f"needs a compiler of C: {error}")


@pytest.fixture
def loaded(runtime: native.Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_LOADED", [runtime])
    monkeypatch.setattr(native, "_LOADING", [None])


@pytest.fixture(params=[1, 2, 3])
def threads(request: pytest.FixtureRequest, runtime: native.Runtime) -> Iterator[int]:
    """Set the number of threads, of BLAS and of the pool."""
    if not runtime.has_products:
        pytest.skip("needs a BLAS with a number of threads")
    blas, _ = native._find_blas()  # type: ignore[misc]
    before = blas[-2]()
    blas[-1](request.param)
    yield request.param
    blas[-1](before)


def assert_same(function: Callable[..., Any], *inputs: Any, **options: Any) -> None:
    """Check that kernels and NumPy's code return the same bits, but for those of NaNs, in the same order in memory."""
    result = function(*inputs, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "_LOADED", [])
        expected = function(*inputs, **options)
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    assert _order(result) == _order(expected)
    assert _bits(result) == _bits(expected)


def _order(x: np.ndarray) -> list[tuple[int, int]]:
    return [(n, stride) for n, stride in zip(x.shape, x.strides, strict=True) if n > 1]


def _bits(x: np.ndarray) -> bytes:
    return np.where(np.isnan(x), np.full_like(x, np.nan), x).tobytes()


def layouts(x: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the same values in several layouts: as convolution's results, as given, others, and read-only."""
    rows = np.ascontiguousarray(np.moveaxis(x, 2, 0).swapaxes(1, 2))
    yield np.moveaxis(rows.swapaxes(1, 2), 0, 2)
    yield x.copy()
    yield np.repeat(x, 2, -1)[..., ::2]
    yield np.ascontiguousarray(x[::-1, :, ::-1])[::-1, :, ::-1]
    yield np.asfortranarray(x)
    unaligned: np.ndarray = np.ndarray(x.shape, x.dtype, np.zeros(x.nbytes + 1, np.uint8), 1)
    unaligned[...] = x
    unaligned.flags.writeable = False
    yield unaligned


def numbers(shape: tuple[int, ...], dtype: str, special: bool = False, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape).round(1).astype(dtype)  # with ties
    if special:
        with np.errstate(all="ignore"):
            np.putmask(x, rng.random(shape) < 0.1, rng.choice(np.array(SPECIAL), x.size).astype(dtype).reshape(shape))
    return x


# Pooling

POOLS = [
    Window(size, kernel, stride, padding, dilation)
    for size, kernel, stride, padding, dilation in [
        ((8, 8), (2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1)),
        ((9, 7), (2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1)),
        ((9, 7), (2, 2), (2, 2), ((1, 0), (0, 1)), (1, 1)),
        ((28, 28), (2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1)),
        ((9, 8), (3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1)),
        ((9, 8), (3, 2), (1, 1), ((1, 1), (0, 1)), (1, 1)),
        ((9, 8), (1, 2), (3, 2), ((0, 0), (0, 0)), (1, 1)),
        ((9, 8), (2, 1), (2, 3), ((0, 0), (0, 0)), (1, 1)),
        ((9, 8), (1, 1), (2, 2), ((0, 0), (0, 0)), (1, 1)),
        ((12, 11), (3, 2), (1, 3), ((1, 0), (1, 1)), (2, 2)),
        ((6, 1200), (3, 3), (1, 1), ((0, 0), (0, 0)), (1, 2)),
        ((6, 1600), (2, 3), (2, 2), ((0, 0), (0, 0)), (1, 300)),
        ((13,), (2,), (2,), ((0, 0),), (1,)),
        ((40,), (5,), (3,), ((2, 1),), (2,)),
    ]
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("window", POOLS, ids=str)
@pytest.mark.parametrize(("images", "channels"), [(1, 1), (3, 6), (32, 3)])
def test_maximum_pool_has_the_bits_of_numpy(window: Window, images: int, channels: int, dtype: str) -> None:
    for special in (False, True):
        x = numbers((images, channels, *window.size), dtype, special)
        for each in layouts(x):
            assert_same(pooling.maximum_pool, each, window=window)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("window", POOLS, ids=str)
@pytest.mark.parametrize(("images", "channels"), [(1, 1), (3, 6), (32, 3)])
def test_gradient_of_maximum_pool_has_the_bits_of_numpy(window: Window, images: int, channels: int, dtype: str) -> None:
    x, g = (numbers((images, channels, *lengths), dtype, seed=len(lengths)) for lengths in (window.size, window.out))
    g.flat[:3] = [-0.0, np.inf, 0.0][: g.size]
    for one, other in itertools.zip_longest(layouts(x), list(layouts(g))[::-1]):
        assert_same(pooling.maximum_pool_gradient, other, one, window=window)
    repeated = np.broadcast_to(g[:1, :1, ..., :1], g.shape)
    assert_same(pooling.maximum_pool_gradient, repeated, x, window=window)


@pytest.mark.parametrize("value", SPECIAL)
@pytest.mark.parametrize("window", POOLS, ids=str)
def test_gradient_of_maximum_pool_of_special_values_has_the_bits_of_numpy(window: Window, value: float) -> None:
    x, g = (numbers((2, 3, *lengths), "float32") for lengths in (window.size, window.out))
    for upstream in (g, np.zeros_like(g), -np.zeros_like(g)):
        for count in (1, x.size):
            x.flat[:count] = value
            assert_same(pooling.maximum_pool_gradient, upstream, x, window=window)


@pytest.mark.usefixtures("threads")
def test_pooling_with_threads_has_the_bits_of_numpy() -> None:
    for window in POOLS[3:6]:
        x, g = (numbers((32, 16, *lengths), "float32") for lengths in (window.size, window.out))
        for each in layouts(x):
            assert_same(pooling.maximum_pool, each, window=window)
            assert_same(pooling.maximum_pool_gradient, g, each, window=window)


def test_gradient_of_maximum_pool_of_an_array_that_is_its_own_gradient() -> None:
    x = numbers((2, 3, 5, 4), "float32")
    window = Window((5, 4), (3, 1), (1, 1), ((1, 1), (0, 0)), (1, 1))
    assert_same(pooling.maximum_pool_gradient, x, x, window=window)


def test_no_kernels_where_the_maximum_of_numpy_has_no_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    assert native_pooling.supports(POOLS[0], np.dtype("float32"))
    monkeypatch.setattr(native_pooling, "chooses_first", lambda function, dtype: None)
    assert not native_pooling.supports(POOLS[0], np.dtype("float32"))


def test_no_kernels_of_other_dtypes_and_without_a_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not native_pooling.supports(POOLS[0], np.dtype("float16"))
    monkeypatch.setattr(native, "_LOADED", [])
    monkeypatch.setattr(native, "_LOADING", [])
    monkeypatch.setenv("XGRAD_NATIVE", "0")
    assert not native_pooling.supports(POOLS[0], np.dtype("float32"))
    assert not native._LOADING
