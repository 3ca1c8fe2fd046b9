"""Kernels of convolution and pooling on NumPy, compared with the generic rules.

The windows are random: over one to three axes, with all kinds of strides, padding and dilation.
"""

import random

import numpy as np
import pytest

import xgrad
from xgrad import Device
from xgrad.ops import convolution, pooling
from xgrad.ops.windows import Window

CPU = Device("cpu")


def run(op, *inputs, **options):
    """Return the results of the kernel, which must share no memory, and of the generic rule."""
    function = op.function
    result = CPU.backend.kernels[function.name](*inputs, **options)
    assert not any(np.shares_memory(result, x) for x in inputs)
    return result, function.forward(CPU.xp, *inputs, **options)


def window(rng: random.Random, most: int, padding: int) -> Window:
    """Return a random window over one to three axes with at least one position."""
    while True:
        axes = range(rng.choice([1, 2, 2, 2, 3]))
        kernel = tuple([rng.randint(1, most) for _ in axes])
        limits = [min(padding, k // 2) if padding < 4 else padding for k in kernel]
        chosen = Window(
            tuple([rng.randint(1, 7) for _ in axes]),
            kernel,
            tuple([rng.randint(1, 4) for _ in axes]),
            tuple([(rng.randint(0, n), rng.randint(0, n)) for n in limits]),
            tuple([rng.choice([1, 1, 2]) for _ in axes]),
        )
        if min(chosen.out) >= 1:
            return chosen


def layout(x: np.ndarray, rng: random.Random) -> np.ndarray:
    """Return the same values with axes, such as images and channels, in another memory order."""
    i, j = rng.choice([(0, 0), (0, 1), (1, -1)])
    return np.ascontiguousarray(x.swapaxes(i, j)).swapaxes(i, j)


@pytest.mark.parametrize("seed", range(200))
def test_convolutions_are_those_of_the_generic_rules(seed):
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    sliding = window(rng, 5, 4)
    groups = rng.choice([1, 1, 2])
    images = rng.randint(0 if seed % 20 == 0 else 1, 3)
    channels, outputs = groups * rng.randint(1, 3), groups * rng.randint(1, 3)
    x, g = [
        layout(numbers.normal(size=(images, n, *lengths)), rng)
        for n, lengths in ((channels, sliding.size), (outputs, sliding.out))
    ]
    w = numbers.normal(size=(outputs, channels // groups, *sliding.kernel))
    bias = numbers.normal(size=outputs)
    for op, inputs in (
        (convolution.convolution, (x, w, bias)),
        (convolution.convolution, (x, w)),
        (convolution.convolution_input, (g, w)),
        (convolution.convolution_weight, (x, g)),
    ):
        np.testing.assert_allclose(
            *run(op, *inputs, window=sliding, groups=groups), 1e-9, 1e-9, strict=True
        )


@pytest.mark.parametrize("layout", [(0, 1, 2, 3), (2, 1, 0, 3), (3, 2, 1, 0)])
@pytest.mark.parametrize(
    "shape", [(3, 1, 1), (1, 3, 1, 1), (4,), (5, 1), (2, 1, 1, 1), (2, 3, 5, 1)]
)
def test_operand_repeated_along_inner_axes_gives_the_same_bits(monkeypatch, layout, shape):
    monkeypatch.setattr("xgrad_numpy.lowering.SMALL", 40)
    numbers, lengths = np.random.default_rng(0), np.array([2, 3, 5, 4])
    x = numbers.normal(size=lengths[list(layout)]).astype(np.float32).transpose(np.argsort(layout))
    x, y = xgrad.asarray(x), xgrad.asarray(numbers.normal(size=shape).astype(np.float32))

    def step():
        out = (x - y) * y
        out += y
        return out, out < y

    for got, expected in zip(xgrad.capture(step)(), step(), strict=True):
        assert got.numpy().tobytes() == expected.numpy().tobytes()


def test_gradients_of_large_weights_are_added_row_by_row(monkeypatch):
    monkeypatch.setattr("xgrad_numpy.convolution._MANY", 1)
    numbers = np.random.default_rng(0)
    sliding = Window((5, 4), (3, 2), (2, 1), ((1, 1), (0, 1)), (1, 1))
    x, g = numbers.normal(size=(2, 4, 5, 4)), numbers.normal(size=(2, 6, *sliding.out))
    result, expected = run(convolution.convolution_weight, x, g, window=sliding, groups=2)
    np.testing.assert_allclose(result, expected, 1e-9, 1e-9)


@pytest.mark.parametrize("seed", range(200))
def test_maxima_and_their_gradients_are_those_of_the_generic_rules(seed):
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    sliding, dtype = window(rng, 4, 2), rng.choice(["float32", "float64"])
    x = numbers.integers(0, 3, (rng.randint(1, 3), 2, *sliding.size)).astype(dtype)
    g = numbers.integers(1, 9, (*x.shape[:2], *sliding.out)).astype(dtype)
    x.flat[0] = rng.choice([0, np.nan, np.inf])
    g.flat[0] = rng.choice([1, np.inf])
    x, g = layout(x, rng), layout(g, rng)
    np.testing.assert_array_equal(*run(pooling.maximum_pool, x, window=sliding), strict=True)
    np.testing.assert_array_equal(
        *run(pooling.maximum_pool_gradient, g, x, window=sliding), strict=True
    )
