"""Compiled elementwise rules and products of several threads, in eager mode on large arrays.

They have the bits of the generic rules and of NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xgrad
import xgrad_numpy
from helpers import skip_without_compiler, wait_for
from xgrad import nn
from xgrad.backend.device import Device
from xgrad.backend.overridable import OVERRIDABLE
from xgrad_numpy import functions
from xgrad_numpy import products as namespace_products
from xgrad_numpy.native import eager_products, rule_kernels, ways
from xgrad_numpy.native import runtime as loading
from xgrad_numpy.native.runtime import loaded_runtime, runtime

RULES = {
    "gelu_tanh_values": 1,
    "gelu_values": 1,
    "probability_below": 1,
    "relu": 1,
    "relu_gradient": 2,
}
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-42, 1e30, -1e30]


@pytest.fixture(autouse=True)
def compiler() -> None:
    skip_without_compiler()
    runtime()
    wait_for(loaded_runtime)


def bits(x: Any) -> Any:
    """Return bytes, layout and dtype of one or several arrays; all NaNs have the same bits."""
    if isinstance(x, tuple):
        return list(map(bits, x))
    return np.where(np.isnan(x), np.full_like(x, np.nan), x).tobytes(), x.shape, x.strides, x.dtype


def test_all_compiled_rules_are_tested() -> None:
    assert RULES.keys() == xgrad_numpy._COMPILED | {"relu"}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", RULES)
@pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")
def test_compiled_rules_have_the_bits_of_the_rules(name: str, dtype: str) -> None:
    """Around the borders of blocks, and for special values that meet each other."""
    rule, xp, rng = OVERRIDABLE[name].generic, Device("cpu").xp, np.random.default_rng(0)
    for shape in [
        (1 << 14,),
        ((1 << 14) + 1,),
        (129, 130),
        (3, (1 << 14) - 1),
        (3 << 14,),
        (7, 100, 94),
    ]:
        arrays = [(rng.standard_normal(shape) * 3).astype(dtype) for _ in range(RULES[name])]
        arrays = [x.transpose(1, 2, 0) if x.ndim == 3 else x for x in arrays]
        for i, x in enumerate(arrays):
            flat = (x.transpose(2, 0, 1) if x.ndim == 3 else x).reshape(-1)
            flat[:512] = np.resize(np.repeat(SPECIAL, 8**i), 512)
            flat[-3:] = np.nan
        before = [x.copy("K") for x in arrays]
        compiled = wait_for(lambda arrays=arrays: rule_kernels.find(name, arrays))
        got, right = compiled(arrays), rule(xp, *arrays)
        assert bits(got) == bits(right)
        assert [bits(x) for x in arrays] == [bits(x) for x in before]
        assert bits(xp.kernels[name](*arrays)) == bits(right)


def test_other_layouts_dtypes_and_shapes_take_the_rule() -> None:
    x = np.ones((256, 256), np.float32)
    for other in (
        x.T[:200],
        x[::2],
        x[::-1],
        np.broadcast_to(x[0], x.shape),
        x.astype(np.float16),
        x.astype(np.int64),
    ):
        assert rule_kernels.find("probability_below", [np.asarray(other)]) is None
    assert rule_kernels.find("relu_gradient", [x, x[:1]]) is None
    assert rule_kernels.find("relu_gradient", [x, x.astype(np.float64)]) is None


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (1, 2, 0, 3), (2, 0, 1, 3), (3, 2, 1, 0)])
def test_relu_has_the_layout_that_it_has_without_native_kernels(
    order: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    arrays = [
        rng.standard_normal(shape).astype(np.float32).transpose(order)
        for shape in ((8, 12, 30, 40), (16,) * 4)
    ]
    wait_for(lambda: rule_kernels.find("relu", arrays[:1]))
    results = [bits(functions.relu(x)) for x in arrays]
    monkeypatch.setattr(rule_kernels, "find", lambda *_: None)
    functions._compiled_rule.cache_clear()
    assert results == [bits(functions.relu(x)) for x in arrays]
    functions._compiled_rule.cache_clear()


def test_an_array_may_be_several_arguments() -> None:
    x = np.linspace(-3, 3, 1 << 15, dtype=np.float32)
    compiled = wait_for(lambda: rule_kernels.find("relu_gradient", [x, x]))
    assert bits(compiled([x, x])) == bits(
        OVERRIDABLE["relu_gradient"].generic(Device("cpu").xp, x, x)
    )


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("place", [0, -1])  # of the calling thread, and of the other one
def test_exceptions_are_warned_of(threads: int, place: int) -> None:
    before = xgrad.get_num_threads()
    xgrad.set_num_threads(threads)
    try:
        x = np.zeros(1 << 18, np.float32)
        x[place] = -np.inf
        compiled = wait_for(lambda: rule_kernels.find("gelu_values", [x]))
        with (
            np.errstate(all="raise", under="ignore"),
            pytest.raises(FloatingPointError, match="invalid"),
        ):
            compiled([x])
    finally:
        xgrad.set_num_threads(before)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_captured_steps_have_the_bits_of_eager_ones(approximate: str) -> None:
    x = xgrad.asarray(
        np.random.default_rng(0).standard_normal((64, 300)).astype(np.float32), requires_grad=True
    )

    def step(x: xgrad.Tensor) -> tuple[xgrad.Tensor, ...]:
        y = nn.functional.gelu(x, approximate=approximate)
        return y, xgrad.autograd.grad(y.sum(), [x])[0]

    captured = xgrad.capture(step)
    for _ in range(3):
        for one, other in zip(step(x), captured(x), strict=True):
            assert bits(one.detach().numpy()) == bits(other.detach().numpy())


# Products

LAYOUTS = {
    "whole": lambda x: x.copy(),
    "transposed": lambda x: np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2),
    "part": lambda x: np.concatenate([x, x], -1)[..., : x.shape[-1]],
    "every other": lambda x: np.repeat(x, 2, -1)[..., ::2],
    "reversed": lambda x: np.ascontiguousarray(x[::-1])[::-1],
}


@pytest.fixture
def two_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(namespace_products.sharing, "above", 1 << 18)
    before = xgrad.get_num_threads()
    xgrad.set_num_threads(2)
    yield
    xgrad.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("shapes", "least"),
    [
        (((304, 70), (70, 200)), 4),
        (
            ((40, 500), (500, 130)),
            0,
        ),  # OpenBLAS adds up so many in another order on two threads, as panels can
        (((3, 5, 64, 50), (3, 5, 50, 64)), 4),
    ],
)
def test_shared_products_have_the_bits_of_numpy(shapes: Any, least: int, dtype: str) -> None:
    rng, xp, shared = np.random.default_rng(0), Device("cpu").xp, 0
    x, y = (rng.standard_normal(shape).astype(dtype) for shape in shapes)
    right = np.matmul(x, y) if x.ndim > 2 else x.dot(y)
    for one in LAYOUTS.values():
        for other in LAYOUTS.values():
            a, b = one(x), other(y)
            expected = np.matmul(a, b) if x.ndim > 2 else a.dot(b)
            for _ in range(eager_products._WARM + 2):
                assert xp.matmul(a, b).tobytes() == expected.tobytes()
            out = np.empty_like(expected)
            assert xp.matmul(a, b, out=out) is out and out.tobytes() == expected.tobytes()
            function = np.matmul if x.ndim > 2 else np.ndarray.dot
            shared += eager_products.product(function, a, b, None) is not None
    assert right.shape == expected.shape and shared >= least
    assert xgrad.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "shape", [(256, 128, 70), (300, 40, 33), (48, 300, 128), (9000, 3, 16), (64, 64, 1)]
)
def test_row_that_is_added_to_a_shared_product_has_the_bits_of_numpy(
    shape: tuple[int, int, int], dtype: str
) -> None:
    rows, inner, columns = shape
    rng = np.random.default_rng(0)
    multiply_add = Device("cpu").xp.kernels["multiply_add"]
    shared = 0
    x, y = (rng.standard_normal(n).astype(dtype) for n in ((rows, inner), (columns, inner)))
    row = rng.standard_normal((columns, 2)).astype(dtype)
    row[0] = np.inf, -0.0
    for added in (row[:, 0].copy(), row[:, 1].copy(), row[:, 0], row[::-1, 1]):
        expected = x.dot(y.T) + added
        for _ in range(eager_products._WARM + 2):
            assert multiply_add(x, y.T, added).tobytes() == expected.tobytes()
        shared += eager_products.product(np.ndarray.dot, x, y.T, None, added) is not None
    assert shared == (2 if columns > 1 and rows * inner * columns > 1 << 18 else 0)
    overflowing = np.full((rows, inner), np.finfo(dtype).max / inner / 2, dtype)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow"):
        multiply_add(
            overflowing, np.ones((columns, inner), dtype).T, np.full(columns, np.finfo(dtype).max)
        )


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(128, 100), (40, 8, 64), (9216, 1), (12, 1000), (700, 33)])
def test_shared_sums_have_the_bits_of_numpy(shape: tuple[int, ...], dtype: str) -> None:
    xp, shared = Device("cpu").xp, 0
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    x[..., 0, 0] = np.inf
    rows = x.reshape(-1, x.shape[-1])
    for axis, matrix in ((-1, rows), (tuple(range(x.ndim - 1)), rows.T)):
        ones = np.ones(matrix.shape[1], dtype)
        expected = matrix.dot(ones)
        if matrix is rows:
            expected = expected.reshape(x.shape[:-1])
        for _ in range(eager_products._WARM + 2):
            assert xp.sum(x, axis=axis).tobytes() == expected.tobytes()
        shared += eager_products.product(np.ndarray.dot, matrix, ones, None) is not None
    assert shared or min(rows.shape) < 16


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "shapes", [((256, 256), (256, 256)), ((8, 64, 96), (8, 96, 64)), ((700, 33), (33,))]
)
def test_trials_of_products_leave_no_exception(shapes: Any, dtype: str) -> None:
    x, y = (np.random.default_rng(0).standard_normal(shape).astype(dtype) for shape in shapes)
    function: Any = np.matmul if x.ndim > 2 else np.ndarray.dot
    eager_products._KNOWN.clear()
    ways._KNOWN.clear()
    with np.errstate(all="raise"):
        for _ in range(eager_products._WARM + 2):
            shared = eager_products.product(function, x, y, None)
    assert shared is not None


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_zeros_of_shared_products_that_underflow_have_the_signs_of_numpy(dtype: str) -> None:
    rng, shared = np.random.default_rng(0), 0
    scale = np.sqrt(np.finfo(dtype).smallest_subnormal) / 30
    for _ in range(30):
        m, k, n = rng.integers(30, 400), rng.integers(3, 60), rng.integers(60, 300)
        x, y = (rng.standard_normal(shape) * scale for shape in ((m, k), (k, n)))
        x, y = x.astype(dtype), y.astype(dtype)
        layouts = list(LAYOUTS.values())[:3]
        a, b = layouts[rng.integers(3)](x), layouts[rng.integers(3)](y)
        expected = a.dot(b)
        for _ in range(eager_products._WARM + 1):
            out = eager_products.product(np.ndarray.dot, a, b, None)
        if out is not None:
            shared += 1
            assert out.tobytes() == expected.tobytes(), (m, k, n, a.strides, b.strides)
    assert shared


def test_the_threshold_follows_the_threads() -> None:
    sharing = namespace_products.Sharing()
    thresholds = []
    for threads in (1, 2, 1):
        sharing.follow(threads)
        thresholds.append(sharing.above)
    assert thresholds[0] == thresholds[2] > thresholds[1]


@pytest.mark.usefixtures("two_threads")
def test_products_that_share_memory_and_errors_are_those_of_numpy() -> None:
    x = np.random.default_rng(0).standard_normal((200, 200)).astype(np.float32)
    xp = Device("cpu").xp
    square = x.dot(x.T)
    for _ in range(eager_products._WARM + 2):
        assert xp.matmul(x, x.T).tobytes() == square.tobytes()
        with pytest.raises(ValueError, match="shapes"):
            xp.matmul(x, x[:150])
        with pytest.raises(ValueError, match=r"output array|read-only"):
            xp.matmul(x, x, out=np.empty((200, 199), np.float32))
    large, y = np.zeros((400, 200), np.float32), x.copy()
    for _ in range(eager_products._WARM + 2):
        xp.matmul(x, y, out=large[:200])
        with pytest.raises(ValueError, match=r"output array|mismatch|shape"):
            xp.matmul(x, y, out=large[:100])
        with pytest.raises((ValueError, TypeError)):
            xp.matmul(x, y, out=np.zeros((200, 200), np.int32))
    assert not large[200:].any()
    frozen = np.empty_like(square)
    frozen.flags.writeable = False
    for _ in range(eager_products._WARM + 2):
        with pytest.raises(ValueError, match=r"output array|read-only"):
            xp.matmul(x, x.copy(), out=frozen)


@pytest.mark.usefixtures("two_threads")
def test_stacks_with_permuted_axes_have_the_layout_of_numpy() -> None:
    x, y = (
        np.random.default_rng(i).standard_normal((4, 8, 128, 128)).astype(np.float32)
        for i in (0, 1)
    )
    for a, b in (
        (x, y),
        (x.swapaxes(0, 1), y.swapaxes(0, 1)),
        (x.mT, y.swapaxes(1, 2).copy().swapaxes(1, 2)),
    ):
        expected = np.matmul(a, b)
        for _ in range(eager_products._WARM + 2):
            assert bits(Device("cpu").xp.matmul(a, b)) == bits(expected)


def test_without_native_kernels_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XGRAD_NATIVE", "0")
    monkeypatch.setattr(loading, "_LOADING", [])
    monkeypatch.setattr(loading, "_LOADED", [])
    x = np.ones((300, 300), np.float32)
    assert loaded_runtime() is None and rule_kernels.find("probability_below", [x]) is None
    assert eager_products.product(np.ndarray.dot, x, x.copy(), None) is None
