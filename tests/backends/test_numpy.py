"""Functions of the NumPy backend, compared with NumPy's own functions and with generic rules."""

import itertools
import platform
import subprocess
import sys
import timeit

import array_api_compat.numpy as compat
import numpy as np
import pytest

from xgrad.random import variates
from xgrad_numpy import functions, products, sums

SPECIAL = [0.0, -0.0, 1.0, -1.5, 1e-45, -1e-310, 3e38, np.inf, -np.inf, np.nan]
SHAPES = [(), (0,), (3,), (2000,), (1, 1), (4, 3), (0, 3), (3, 0), (40, 50), (50, 40), (8, 16, 9)]
DTYPES = ["float32", "float64", "float16", "int64", "int8", "uint8", "bool"]


def arrays(shape, dtype, seed=0, values=SPECIAL):
    """Yield the same values in several layouts."""
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        special = (
            np.array(values).astype(dtype)
            if np.dtype(dtype).kind == "f"
            else np.arange(-5, 6).astype(dtype)
        )
    x = rng.choice(special, shape) if shape else np.asarray(special[seed % len(special)])
    yield x
    if x.ndim:
        yield np.asfortranarray(x)
        yield x[::-1][::-1]
        yield np.repeat(x, 2, axis=-1)[..., ::2]
        yield np.ascontiguousarray(x[..., ::-1])[..., ::-1]
        read_only = x.copy()
        read_only.flags.writeable = False
        yield read_only


def same(result, expected):
    result, expected = np.asarray(result), np.asarray(expected)
    np.testing.assert_array_equal(result, expected, strict=True)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(result[numbers]), np.signbit(expected[numbers]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_where_and_relu_are_exact(shape, dtype):
    rng = np.random.default_rng(1)
    for x in arrays(shape, dtype):
        condition = rng.random(shape) < 0.5 if shape else np.asarray(True)
        pairs = [(x, 0), (0, x), (x, x[::-1] if x.ndim else x), (x, -0.0), (x, 1), (0, 0)]
        if x.dtype.kind == "f":
            pairs += [(x, -x), (-x, x), (2.5, x), (x, True), (x, x.astype(np.float32))]
        for first, second in pairs:
            same(functions.where(condition, first, second), np.where(condition, first, second))
        same(functions.relu(x), np.maximum(x, 0))
    if shape and shape[0] > 1:
        row = np.ones(shape[-1:], dtype)
        same(functions.where(condition, row, 0), np.where(condition, row, 0))
        same(functions.where(condition[:1], x, 0), np.where(condition[:1], x, 0))


@pytest.mark.parametrize("bits", [32, 64])
def test_uniform_numbers_have_the_bits_of_the_generic_rule(bits):
    drawn = np.random.default_rng(5).integers(
        -(2 ** (bits - 1)), 2 ** (bits - 1), 10_000, f"int{bits}"
    )
    drawn[:4] = 0, -1, np.iinfo(drawn.dtype).min, np.iinfo(drawn.dtype).max
    before = drawn.copy()
    same(
        functions.uniform(drawn, np.dtype(f"float{bits}")),
        variates.uniform(np, drawn, np.dtype(f"float{bits}")),
    )
    same(drawn, before)


WHOLE = [2, 3, 3.0, 4, 5, 8, 17, -2, -2.0, -3, -8, 1 << 24]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.filterwarnings("ignore:(invalid|divide|overflow)")
def test_whole_powers_of_special_values_and_layouts_are_those_of_numpy(shape, dtype):
    for exponent in WHOLE:
        for x in arrays(shape, dtype, abs(int(exponent)), [*SPECIAL, -1e5, 1e-20, -1e-12, -0.7]):
            result = np.asarray(functions.pow(x, exponent))
            expected = np.asarray(np.power(x, exponent))
            assert result.strides == expected.strides
            limits = np.finfo(dtype)
            np.testing.assert_allclose(
                result, expected, 4 * limits.eps, 2 * limits.smallest_subnormal, strict=True
            )
            numbers = ~np.isnan(expected)
            np.testing.assert_array_equal(
                np.signbit(result[numbers]), np.signbit(expected[numbers])
            )
            out = np.empty_like(x)
            if functions.has_own_power(x.dtype, x.size, exponent):
                assert functions.pow(x, exponent, out) is out
                same(out, result)


@pytest.mark.parametrize("exponent", [x for x in WHOLE if abs(x) < 10])
def test_whole_powers_are_within_two_units_in_the_last_place(exponent):
    # from -1 to -2
    x = np.arange(0x3F800000, 0x40000000, 7, dtype=np.int32).view(np.float32) * np.float32(-1)
    expected = x.astype(np.longdouble) ** exponent
    unit = np.ldexp(1.0, np.frexp(expected.astype(np.float64))[1] - 24)
    assert np.abs((functions.pow(x, exponent) - expected) / unit).max() <= 2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("exponent", [3, 3.0, 5, 8, -2, -3])
def test_whole_power_of_negative_numbers_takes_as_long_as_of_positive_ones(exponent, dtype):
    x = np.random.default_rng(4).uniform(0.5, 2, 10_000).astype(dtype)

    def seconds(x):
        return min(timeit.repeat(lambda: functions.pow(x, exponent), number=1, repeat=30))

    assert seconds(-x) < 6 * seconds(x)


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
@pytest.mark.parametrize("axes", [(0, 2, 3), (2, 3), (0,), (0, 3)])
def test_sum_of_products_in_any_layout_is_that_of_numpy(order, axes):
    rng = np.random.default_rng(2)
    x, y = (rng.standard_normal((4, 3, 5, 2)).transpose(order) for _ in range(2))
    for other in (None, x, y, rng.standard_normal(x.shape)):
        expected = np.sum(x if other is None else x * other, axis=axes, keepdims=True)
        np.testing.assert_allclose(
            sums.sum_products(x, other, axes), expected, rtol=1e-12, atol=1e-12
        )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.filterwarnings("ignore:(invalid|divide|overflow|Mean of empty)")
def test_reductions_are_those_of_numpy(shape, dtype):
    axes = [None, *range(-len(shape), len(shape)), tuple(range(len(shape)))]
    axes += [(0,), (-1,), tuple(range(len(shape) - 1))] if shape else []
    values = [x for x in SPECIAL if x != 3e38]  # sums that overflow depend on the order
    for axis, keepdims in itertools.product(axes, (False, True)):
        for x in arrays(shape, dtype, values=values):
            kind = {"axis": axis, "keepdims": keepdims}
            for name in ("sum", "mean"):
                result, expected = getattr(sums, name)(x, **kind), getattr(np, name)(x, **kind)
                assert result.dtype == expected.dtype
                np.testing.assert_array_equal(np.isnan(result), np.isnan(expected), strict=True)
            finite = np.random.default_rng(2).uniform(-2, 2, shape).astype(dtype)
            for name in ("sum", "mean"):
                exact = getattr(np, name)(finite.astype("f8"), **kind)
                if np.dtype(dtype).kind == "f" and x.size:
                    scale = np.finfo(dtype).eps * max(1, np.abs(finite.astype("f8")).sum())
                    np.testing.assert_allclose(
                        getattr(sums, name)(finite, **kind), exact, atol=scale
                    )
            for name in ("max", "min"):
                if x.size:  # which of two zeros is the larger one is not defined
                    result = getattr(functions, name)(x, **kind)
                    expected = getattr(np, name)(x, **kind)
                    np.testing.assert_array_equal(result, expected, strict=True)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bool", "float32"])
def test_sum_takes_dtype_and_widens_integers(dtype):
    x = np.full((300, 2), 1, dtype)
    same(sums.sum(x, axis=0), np.sum(x, axis=0))
    same(sums.sum(x, axis=0, dtype=np.float64), np.sum(x, axis=0, dtype=np.float64))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((4, 3), (3, 5)),
        ((0, 3), (3, 2)),
        ((2, 0), (0, 3)),
        ((3,), (3,)),
        ((3,), (3, 2)),
        ((2, 4, 3), (3, 5)),
        ((2, 1, 4, 3), (3, 5)),
        ((2, 0, 3), (3, 5)),
        ((2, 4, 0), (0, 5)),
        ((2, 4, 3), (3, 0)),
    ],
)
def test_product_is_that_of_numpy(a, b, dtype):
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-9, 9, shape).astype(dtype) for shape in (a, b))
    expected = np.matmul(x, y)
    same(products.matmul(x, y), expected)
    same(products.matmul(np.asfortranarray(x), np.asfortranarray(y)), expected)
    out = np.empty_like(expected)
    if out.ndim:
        assert products.matmul(x, y, out=out) is out
        same(out, expected)
    with pytest.raises(ValueError, match=r"aligned|mismatch"):
        products.matmul(x, np.ones((7, 7), dtype))


def test_product_of_two_dtypes_has_the_wider_one():
    x, y = np.ones((2, 3), np.float32), np.ones((3, 2), np.float64)
    same(products.matmul(x, y), np.matmul(x, y))


@pytest.mark.parametrize("shape", SHAPES)
def test_shape_functions_are_those_of_numpy(shape):
    for x in arrays(shape, "float32"):
        same(
            functions.reshape(x, (-1,) if x.size else x.shape),
            np.reshape(x, (-1,) if x.size else x.shape),
        )
        same(functions.astype(x, np.float64), x.astype(np.float64))
        assert (
            functions.astype(x, np.float32, copy=False) is x
            and functions.astype(x, np.float32) is not x
        )
        for axis in (0, -1):
            same(functions.expand_dims(x, axis=axis), np.expand_dims(x, axis))
        same(functions.squeeze(np.expand_dims(x, 0), 0), x)
        if x.ndim > 1:
            same(functions.matrix_transpose(x), np.swapaxes(x, -1, -2))


def test_where_with_condition_other_than_bool_array_is_that_of_numpy():
    x = np.linspace(-1, 1, 2000, dtype=np.float32)
    numbers = np.full(2000, 2)
    same(functions.where(numbers, x, 0), np.where(numbers, x, 0))
    same(functions.where(True, x, 0), np.where(True, x, 0))


def test_sum_caches_no_large_arrays():
    wide = np.broadcast_to(np.float32(1), (5000, 1000))
    assert sums.sum(wide, axis=0)[0] == 5000
    before = products.ones.cache_info().currsize
    for n in (1 << 17, (1 << 18) + 5):
        assert sums.sum(np.ones((n, 1), np.float32), axis=0)[0] == n
    assert products.ones.cache_info().currsize <= before + 1  # of a block


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(40000, 3), (1 << 16, 2, 2), (100_003, 1)])
def test_sum_of_many_rows_is_accurate(dtype, shape):
    x = np.random.default_rng(0).random(shape, dtype)
    axes = tuple(range(len(shape) - 1))
    for axis, keepdims in itertools.product(
        (axes, 0) if len(shape) == 2 else (axes,), (False, True)
    ):
        expected = np.sum(x, axis=axis, keepdims=keepdims, dtype=np.longdouble)
        result = sums.sum(x, axis=axis, keepdims=keepdims)
        assert (result.dtype, result.shape) == (x.dtype, expected.shape)
        np.testing.assert_allclose(result, expected.astype("f8"), rtol=6 * np.finfo(dtype).eps)
        if axis == axes:
            mean = sums.mean(x, axis=axis, keepdims=keepdims)
            np.testing.assert_allclose(
                mean, expected / (x.size // x.shape[-1]), rtol=6 * np.finfo(dtype).eps
            )


@pytest.mark.parametrize("include_initial", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis"), [((300_000,), None), ((200_000, 2), 0), ((2, 70_000), -1), ((3, 4), 1)]
)
def test_running_sum_of_many_numbers_is_accurate(shape, axis, include_initial):
    x = np.random.default_rng(0).random(shape, np.float32)
    options = {"axis": axis, "include_initial": include_initial}
    expected = compat.cumulative_sum(x.astype(np.float64), **options)
    for array in (x, np.asfortranarray(x), np.ascontiguousarray(x[..., ::-1])[..., ::-1]):
        result = sums.cumulative_sum(array, **options)
        assert (result.dtype, result.shape) == (x.dtype, expected.shape)
        np.testing.assert_allclose(result, expected, rtol=1e-5 if axis != 0 else 1e-4)


def test_sums_of_float16_are_those_of_float32():
    x = np.random.default_rng(0).uniform(50, 100, (3000, 4)).astype(np.float16)
    for axis in (None, 0, 1, (0, 1)):
        scaled = x / np.float16(256)
        result = sums.sum(scaled, axis=axis)
        assert result.dtype == np.float16
        np.testing.assert_array_equal(
            result, np.sum(scaled.astype(np.float64), axis=axis).astype(np.float16)
        )
    assert sums.sum(x, axis=0, dtype=np.float32).dtype == np.float32
    assert sums.sum(x, axis=0, dtype=np.float64).dtype == np.float64
    for shape in ((2,), (2, 3)):
        ones = np.ones((5000, *shape[1:]), np.float16)
        out = functions.index_add(np.zeros(shape, np.float16), (np.zeros(5000, np.int64),), ones)
        np.testing.assert_array_equal(
            out, np.outer([5000, 0], np.ones(shape[1:])).reshape(shape), strict=False
        )


@pytest.mark.parametrize("dtype", DTYPES[:-1])
@pytest.mark.parametrize("shape", [(7,), (3000,), (40, 50), (3, 700, 2)])
@pytest.mark.parametrize("descending", [False, True])
def test_sort_and_argsort_are_stable(shape, dtype, descending):
    rng = np.random.default_rng(2)
    plain, ties = rng.normal(size=shape).astype(dtype), rng.integers(-3, 3, shape).astype(dtype)
    zeros, odd = np.where(rng.random(shape) < 0.5, ties, -ties), ties.copy()
    if np.dtype(dtype).kind == "f":
        odd.flat[:6] = [np.nan, -np.nan, np.inf, -np.inf, np.nan, -0.0]
    for x in (plain, ties, zeros, odd, ties[::-1]):
        for axis in range(-x.ndim, x.ndim):
            order = compat.argsort(x, axis=axis, descending=descending)
            same(functions.argsort(x, axis=axis, descending=descending), order)
            same(
                functions.sort(x, axis=axis, descending=descending),
                compat.sort(x, axis=axis, descending=descending),
            )


@pytest.mark.parametrize("dtype", DTYPES[:5])
@pytest.mark.parametrize("bounds", [(-1, 1), (1, -1), (None, 0), (-2, None), (None, None)])
def test_clip_is_that_of_the_standard(bounds, dtype):
    low, high = bounds
    for n in (3, 2000):
        x = (np.random.default_rng(3).normal(size=n) * 3).astype(dtype)
        expected = x if low is None else np.maximum(x, low)
        same(functions.clip(x, low, high), expected if high is None else np.minimum(expected, high))


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc sets the threshold")
def test_memory_of_large_arrays_is_used_again_without_page_faults():
    """In a new process, for the threshold depends on what was freed before."""
    code = """
import resource, xgrad
faults = []
for _ in range(8):
    x = xgrad.ones((1000, 1000)) + 1
    y = x * x
    del x, y
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
print(faults[-1] - faults[3])
"""
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert int(out) < 1000  # pages of one array


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex64"])
@pytest.mark.parametrize(
    ("shape", "index"),
    [
        ((5, 3), (7,)),
        ((5,), (7,)),
        ((5, 2, 3), (4, 2)),
        ((5, 3), ()),
        ((5, 3), (0,)),
        ((5, 0), (7,)),
        ((0, 3), (0,)),
    ],
)
def test_index_add_is_that_of_numpy_for_repeated_rows(shape, index, dtype):
    rng = np.random.default_rng(0)
    rows = rng.integers(-5, 5, index) if index != (0,) else np.zeros(0, np.int64)
    values = rng.integers(-9, 9, (*index, *shape[1:])).astype(dtype)
    if values.size and dtype != "int64":
        values.flat[0], values.flat[-1] = np.nan, np.inf
    for x in (np.ones(shape, dtype), np.asfortranarray(np.ones(shape, dtype))):
        for part in (values, values[..., :1], values[0:1]) if values.ndim > 1 else (values,):
            expected = np.ones(shape, dtype)
            np.add.at(expected, rows, part)
            result = x.copy("K")
            assert functions.index_add(result, (np.asarray(rows),), part) is result
            np.testing.assert_array_equal(result, expected)
    if shape[0]:
        with pytest.raises(IndexError):
            functions.index_add(
                np.ones(shape, dtype), np.asarray([5]), np.ones((1, *shape[1:]), dtype)
            )
