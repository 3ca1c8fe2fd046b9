"""Native kernels of convolution and pooling have the bits of the same functions in NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from helpers import skip_without_compiler
from xgrad.ops.windows import Window
from xgrad_numpy import convolution, pooling
from xgrad_numpy.native import convolution as native_convolution
from xgrad_numpy.native import pooling as native_pooling
from xgrad_numpy.native import runtime as native
from xgrad_numpy.native.ways import NO_WAY

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning"),
    pytest.mark.usefixtures("loaded"),
]
SPECIAL = [0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1e-42, 3e38]


@pytest.fixture(scope="module")
def runtime() -> native.Runtime:
    skip_without_compiler()
    return native.runtime()


@pytest.fixture
def loaded(runtime: native.Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_LOADED", [runtime])
    monkeypatch.setattr(native, "_LOADING", [None])
    monkeypatch.setattr(native_convolution, "_RARE", 0)


@pytest.fixture(params=[1, 3])  # images divide evenly by two threads, not by three
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
    """Check that kernels and NumPy's code return the same bits, in the same order in memory.

    NaNs may differ in their bits.
    """
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
    """Yield the same values in several layouts: as convolution returns them, as given, others."""
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
            np.putmask(
                x,
                rng.random(shape) < 0.1,
                rng.choice(np.array(SPECIAL), x.size).astype(dtype).reshape(shape),
            )
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
def test_maximum_pool_has_the_bits_of_numpy(
    window: Window, images: int, channels: int, dtype: str
) -> None:
    for special in (False, True):
        x = numbers((images, channels, *window.size), dtype, special)
        for each in layouts(x):
            assert_same(pooling.maximum_pool, each, window=window)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("window", POOLS, ids=str)
@pytest.mark.parametrize(("images", "channels"), [(1, 1), (3, 6), (32, 3)])
def test_gradient_of_maximum_pool_has_the_bits_of_numpy(
    window: Window, images: int, channels: int, dtype: str
) -> None:
    x, g = (
        numbers((images, channels, *lengths), dtype, seed=len(lengths))
        for lengths in (window.size, window.out)
    )
    g.flat[:3] = [-0.0, np.inf, 0.0][: g.size]
    for one, other in itertools.zip_longest(layouts(x), list(layouts(g))[::-1]):
        assert_same(pooling.maximum_pool_gradient, other, one, window=window)
    repeated = np.broadcast_to(g[:1, :1, ..., :1], g.shape)
    assert_same(pooling.maximum_pool_gradient, repeated, x, window=window)


@pytest.mark.parametrize("value", SPECIAL)
@pytest.mark.parametrize("window", POOLS, ids=str)
def test_gradient_of_maximum_pool_of_special_values_has_the_bits_of_numpy(
    window: Window, value: float
) -> None:
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


# Convolution


def window(kernel: Any, stride: Any, padding: Any, dilation: Any, size: Any = (11, 9)) -> Window:
    """Return a window over two axes; padding by one number is the same on both sides."""
    pairs = tuple([n if isinstance(n, tuple) else (n, n) for n in padding])
    return Window(size, kernel, stride, pairs, dilation)


CONVOLUTIONS = [
    *[
        window((k, k), (stride, stride), (padding, padding), (1, 1))
        for k, stride, padding in itertools.product([1, 3, 5, 7], [1, 2, 3], [0, 1, 2, 3])
    ],
    *[
        window((2, 3), (i, j), padding, (1, d))
        for i, j, d in [(1, 2, 1), (2, 1, 2), (1, 1, 3)]
        for padding in [((0, 1), (1, 0)), ((1, 0), (3, 2)), (0, 0), ((2, 3), (0, 3))]
    ],
    window((3, 3), (1, 1), (1, 1), (2, 2)),
    window((3, 1), (3, 1), (1, 0), (1, 1)),
    window((1, 3), (1, 4), (0, 8), (1, 1)),
    window((2, 2), (1, 1), (1, 1), (1, 1), (1, 1)),
    window((3, 2), (2, 2), (0, 2), (1, 1), (5, 700)),
    *[
        Window((14,), (k,), (stride,), ((before, after),), (d,))
        for k, stride, before, after, d in [
            (3, 1, 1, 1, 1),
            (4, 2, 0, 3, 2),
            (1, 1, 0, 0, 1),
            (1, 2, 0, 0, 1),
        ]
    ],
]
CHANNELS = [(1, 6), (3, 16), (16, 6), (6, 1), (16, 16)]


def check_convolution(sliding: Window, x: Any, w: Any, bias: Any, g: Any, groups: int = 1) -> None:
    options: dict[str, Any] = {"window": sliding, "groups": groups}
    assert_same(convolution.convolution, x, w, **options)
    assert_same(convolution.convolution, x, w, bias, **options)
    assert_same(convolution.convolution_input, g, w, **options)
    assert_same(convolution.convolution_weight, x, g, **options)


def operands(
    sliding: Window,
    images: int,
    channels: int,
    outputs: int,
    dtype: str,
    groups: int = 1,
    **options: Any,
) -> Any:
    shapes = [
        (images, channels, *sliding.size),
        (outputs, channels // groups, *sliding.kernel),
        (outputs,),
        (images, outputs, *sliding.out),
    ]
    return [numbers(shape, dtype, seed=seed, **options) for seed, shape in enumerate(shapes)]


@pytest.mark.parametrize("sliding", CONVOLUTIONS, ids=str)
def test_convolution_has_the_bits_of_numpy(sliding: Window) -> None:
    number = CONVOLUTIONS.index(sliding)
    for i, (images, dtype) in enumerate(itertools.product([1, 3, 32], ["float32", "float64"])):
        channels, outputs = CHANNELS[(number + i) % len(CHANNELS)]
        x, w, bias, g = operands(sliding, images, channels, outputs, dtype)
        rows_x, rows_g = next(layouts(x)), next(layouts(g))
        check_convolution(sliding, x, w, bias, g)
        check_convolution(sliding, rows_x, w, bias, rows_g)


def test_the_gradient_for_a_weight_keeps_no_other_memory() -> None:
    sliding = window((3, 3), (1, 1), (1, 1), (1, 1), (28, 28))
    x, w, _, g = operands(sliding, 3, 6, 16, "float32")
    gradient = convolution.convolution_weight(x, g, window=sliding, groups=1)
    assert gradient.base is not None
    assert gradient.base.nbytes == w.nbytes


@pytest.mark.parametrize("sliding", CONVOLUTIONS[::5], ids=str)
def test_convolution_of_views_has_the_bits_of_numpy(sliding: Window) -> None:
    x, w, bias, g = operands(sliding, 3, 6, 16, "float32")
    for each in zip(
        layouts(x),
        list(layouts(w))[::-1],
        [bias, np.repeat(bias, 2)[::2]] * 3,
        layouts(g),
        strict=True,
    ):
        check_convolution(sliding, *each)
    check_convolution(sliding, x[::-1], w[::-1, ::-1], bias[::-1], g[::-1])
    check_convolution(sliding, x, w, bias, np.broadcast_to(g[:1, :1, ..., :1], g.shape))


@pytest.mark.parametrize("sliding", CONVOLUTIONS[::5], ids=str)
@pytest.mark.parametrize("groups", [2, 6])
def test_convolution_of_groups_has_the_bits_of_numpy(sliding: Window, groups: int) -> None:
    check_convolution(sliding, *operands(sliding, 3, 6, 12, "float32", groups), groups=groups)


@pytest.mark.parametrize("sliding", CONVOLUTIONS[::7], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_convolution_of_special_values_has_the_bits_of_numpy(sliding: Window, dtype: str) -> None:
    check_convolution(sliding, *operands(sliding, 3, 6, 16, dtype, special=True))
    check_convolution(sliding, *[-np.zeros_like(x) for x in operands(sliding, 3, 6, 16, dtype)])


def test_convolution_with_threads_has_the_bits_of_numpy(threads: int) -> None:
    for sliding in (
        window((5, 5), (1, 1), (2, 2), (1, 1), (28, 28)),
        window((3, 3), (2, 2), (1, 1), (1, 1), (28, 28)),
        window((1, 1), (1, 1), (0, 0), (1, 1), (28, 28)),
    ):
        for channels, outputs in CHANNELS:
            check_convolution(sliding, *operands(sliding, 32, channels, outputs, "float32"))
    assert (
        native_convolution._prepared(
            "scatter", np.empty((9, 16, 3, 7), "f4"), PLANE, 16, (9, 6, 3, 7)
        )
        is not None
    )


PLANE = native_convolution.Plane((3, 3), (1, 1), (1, 1), (1, 1), (9, 7))


@pytest.mark.parametrize("cache", [0, 1 << 12])
def test_convolution_in_small_blocks_has_the_bits_of_numpy(
    cache: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    native_convolution._call.cache_clear()
    monkeypatch.setattr(native_convolution, "_CACHE", cache)
    for sliding in CONVOLUTIONS[4::9]:
        check_convolution(sliding, *operands(sliding, 3, 6, 16, "float32"))
    native_convolution._call.cache_clear()


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_convolution_of_whole_panels_has_the_bits_of_numpy(
    dtype: str, in_place: bool, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Products use panels that are read in place, or BLAS.

    Panels have few outputs and many, and sums that BLAS adds up in parts.
    """
    ways = list[Any]()

    def choose(*args: Any) -> Any:
        ways.append(chosen(*args) if in_place else None)
        return ways[-1]

    chosen = native_convolution._in_place
    native_convolution._call.cache_clear()
    monkeypatch.setattr(native_convolution, "_in_place", choose)
    for kernel, stride, padding, size, channels, outputs in [
        (3, 1, 1, (16, 16), 16, 16),
        (3, 1, 1, (8, 8), 64, 64),
        (3, 2, 1, (16, 16), 6, 13),
        (5, 1, 2, (8, 16), 1, 6),
        (1, 1, 0, (8, 8), 48, 7),
        (1, 2, 0, (8, 8), 16, 32),
        (7, 1, 3, (8, 32), 3, 11),
        (3, 1, 0, (10, 10), 16, 3),
    ]:
        sliding = window((kernel, kernel), (stride, stride), (padding, padding), (1, 1), size)
        x, w, bias, g = operands(sliding, 32, channels, outputs, dtype, special=channels == 6)
        check_convolution(sliding, x, w, bias, g)
        x, w, bias, g = operands(sliding, 8, channels, outputs, dtype, special=channels == 6)
        check_convolution(sliding, next(layouts(x)), w, bias, next(layouts(g)))
    native_convolution._call.cache_clear()
    if native_convolution._panel_lanes(np.dtype(dtype)) < 1 << 62:
        assert any(ways) is in_place


def test_convolution_is_left_to_numpy_if_products_differ_or_memory_is_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = np.empty((9, 6, 3, 7), "f4")
    for name, value in [("ways_of", lambda *_: NO_WAY), ("_MOST", 10)]:
        native_convolution._call.cache_clear()
        assert native_convolution._prepared("correlate", x, PLANE, 16, x.shape) is not None
        native_convolution._call.cache_clear()
        with monkeypatch.context() as patch:
            patch.setattr(native_convolution, name, value)
            assert native_convolution._prepared("correlate", x, PLANE, 16, x.shape) is None
            assert native_convolution._prepared("weight_gradient", x, PLANE, 16, x.shape) is None
    native_convolution._call.cache_clear()


def test_convolution_of_a_new_shape_is_left_to_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    native_convolution._calls.cache_clear()
    monkeypatch.setattr(native_convolution, "_RARE", 2)
    x = np.empty((9, 6, 3, 7), "f4")
    calls = [native_convolution._prepared("correlate", x, PLANE, 16, x.shape) for _ in range(4)]
    assert [call is not None for call in calls] == [False, False, True, True]


@pytest.mark.parametrize("cache", [1 << 10, 1 << 20])
def test_scatter_of_parts_of_the_images_has_the_bits_of_numpy(
    cache: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    native_convolution._call.cache_clear()
    monkeypatch.setattr(native_convolution, "_CACHE", cache)
    for sliding, images in itertools.product(CONVOLUTIONS[4::9], [2, 8, 30]):
        check_convolution(sliding, *operands(sliding, images, 3, 16, "float32"))
    native_convolution._call.cache_clear()


def test_convolution_warns_of_invalid_products() -> None:
    sliding = window((3, 3), (1, 1), (1, 1), (1, 1))
    x, w, bias, g = operands(sliding, 3, 6, 16, "float32")
    x[0, 0, 3, 3], w[...] = np.inf, 0
    for calls in (
        lambda: convolution.convolution(x, w, bias, window=sliding, groups=1),
        lambda: convolution.convolution_weight(x, 0 * g, window=sliding, groups=1),
    ):
        with np.errstate(invalid="raise"), pytest.raises(FloatingPointError):
            calls()
        with np.errstate(invalid="ignore"):
            calls()


def test_concurrent_convolutions_have_the_bits_of_numpy() -> None:
    sliding = window((3, 3), (1, 1), (1, 1), (1, 1), (28, 28))
    x, w, bias, g = operands(sliding, 32, 6, 16, "float32")
    calls = [
        (convolution.convolution, (x, w, bias)), (convolution.convolution_weight, (x, g)),
        (convolution.convolution_input, (g, w)),
    ]  # fmt: skip
    expected = [_bits(function(*inputs, window=sliding, groups=1)) for function, inputs in calls]

    def repeat(number: int) -> list[bytes]:
        function, inputs = calls[number % 3]
        return [_bits(function(*inputs, window=sliding, groups=1)) for _ in range(5)]

    with ThreadPoolExecutor(6) as executor:
        for number, results in enumerate(executor.map(repeat, range(6))):
            assert set(results) == {expected[number % 3]}


def test_no_kernels_of_other_dtypes_and_without_a_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not native_pooling.supports(POOLS[0], np.dtype("float16"))
    monkeypatch.setattr(native, "_LOADED", [])
    monkeypatch.setattr(native, "_LOADING", [])
    monkeypatch.setenv("XGRAD_NATIVE", "0")
    assert not native_pooling.supports(POOLS[0], np.dtype("float32"))
    assert (
        native_convolution._prepared(
            "correlate", np.empty((9, 6, 3, 7), "f4"), PLANE, 16, (9, 6, 3, 7)
        )
        is None
    )
    assert not native._LOADING
