"""Activations: accuracy far from 0, options and errors.

Values are compared with closed forms, limits, SciPy and PyTorch. The table of modules has the usual
values.
"""

from __future__ import annotations

import numpy as np
import pytest

import xgrad
from helpers import check_error, host, on
from xgrad import nn

F = nn.functional
NAMES = (
    "celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu log_softmax logsigmoid mish"
    " relu relu6 selu sigmoid silu softmax softplus softshrink softsign tanh tanhshrink"
).split()


@pytest.mark.parametrize("name", NAMES)
def test_large_numbers_have_finite_values_and_gradients(name, device):
    x = xgrad.asarray(
        [-1e12, -200.0, -90.0, 90.0, 200.0, 1e12],
        dtype=xgrad.float32,
        device=device,
        requires_grad=True,
    )
    y = getattr(F, name)(x)
    (gradient,) = xgrad.autograd.grad((y * 1).sum(), x, create_graph=True)
    assert np.isfinite(host(y)).all() and np.isfinite(host(gradient)).all()
    if gradient.requires_grad:
        (second,) = xgrad.autograd.grad(gradient.sum(), x, allow_unused=True)
        assert second is None or np.isfinite(host(second)).all()


@pytest.mark.parametrize("dtype", [xgrad.float32, xgrad.float64])
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_has_the_slope_of_its_limits_to_the_second_order(approximate, dtype, device):
    x = xgrad.asarray([-1e4, -50, 0, 50, 1e4], dtype=dtype, device=device, requires_grad=True)
    for create_graph in (False, True):
        (gradient,) = xgrad.autograd.grad(
            F.gelu(x, approximate).sum(), x, create_graph=create_graph
        )
        assert gradient.tolist() == [0, 0, 0.5, 1, 1]
    (second,) = xgrad.autograd.grad(gradient.sum(), x)
    assert second.tolist() == pytest.approx([0, 0, (2 / np.pi) ** 0.5, 0, 0], rel=1e-6)


@pytest.mark.parametrize("dtype", [xgrad.float16, xgrad.float32, xgrad.float64])
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_of_an_infinity_is_no_invalid_value(approximate, dtype):
    x = xgrad.asarray([np.inf], dtype=dtype, requires_grad=True)
    with xgrad.no_grad(), np.errstate(invalid="raise"):
        assert F.gelu(x, approximate).tolist() == [np.inf]
    for create_graph in (False, True):
        (gradient,) = xgrad.autograd.grad(
            F.gelu(x, approximate).sum(), x, create_graph=create_graph
        )
        assert gradient.tolist() == [1]


@pytest.mark.filterwarnings("ignore:overflow")  # of the square
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_of_large_float16_has_the_slope_of_its_limits(approximate):
    x = xgrad.asarray([-3e4, -300, 300, 3e4], dtype=xgrad.float16, requires_grad=True)
    (gradient,) = xgrad.autograd.grad(F.gelu(x, approximate).sum(), x)
    assert gradient.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("dtype", "numbers"), [(xgrad.int64, [-2, 0, 3]), (xgrad.uint8, [0, 1, 3])]
)
@pytest.mark.parametrize("name", sorted({*NAMES} - {"relu"}))  # which is exact of integers
def test_integers_count_as_float32(name, dtype, numbers):
    y = getattr(F, name)(xgrad.asarray(numbers, dtype=dtype))
    assert y.dtype == xgrad.float32
    assert y.tolist() == pytest.approx(
        getattr(F, name)(xgrad.asarray(numbers, dtype=xgrad.float32)).tolist()
    )


@pytest.mark.parametrize("dtype", [xgrad.float32, xgrad.float64])
def test_probability_of_gelu_is_exact_where_it_is_small(dtype, device):
    scipy = pytest.importorskip("scipy.special", reason="needs scipy")
    x = np.linspace(-12, 12, 2001).astype(dtype)
    y = host(F.gelu(on(device, x)))
    expected = x * scipy.ndtr(x.astype(np.float64))
    units = np.finfo(dtype).eps * (4 + x.astype(np.float64) ** 2)
    assert (abs(y - expected) <= units * abs(expected) + np.finfo(dtype).tiny).all()


@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (2, 3, 4, 5), (0, 3)])
def test_prelu_has_weights_for_channels(shape, torch):
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    for count in {1, *shape[1:2]}:
        weight = np.linspace(0.1, 0.9, count, dtype=np.float32)
        expected = torch.nn.functional.prelu(torch.tensor(x), torch.tensor(weight)).numpy()
        np.testing.assert_allclose(
            host(F.prelu(xgrad.asarray(x), xgrad.asarray(weight))), expected, 1e-6
        )


def test_representations_have_the_options():
    assert [
        repr(module)
        for module in (nn.ReLU(), nn.GELU("tanh"), nn.Threshold(0.5, 2.0), nn.Softmax(axis=0))
    ] == [
        "ReLU()",
        "GELU(approximate='tanh')",
        "Threshold(threshold=0.5, value=2.0)",
        "Softmax(axis=0)",
    ]
    module = nn.LeakyReLU()
    module.negative_slope = 0.5
    assert module(xgrad.asarray([-2.0])).tolist() == [-1]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (
            "F.gelu(xp.ones(2), 'exact')",
            "ValueError: gelu: expected approximate of 'none' or 'tanh', got 'exact'",
        ),
        ("nn.GELU('x')(xp.ones(2))", "ValueError: gelu: expected approximate"),
        (
            "F.gelu([1.0])",
            "TypeError: gelu: expected a tensor, an array or a number for x, got list",
        ),
        ("F.silu(xp.ones(2, dtype=xp.complex64))", "TypeError: silu: …"),
        ("F.mish('x')", "TypeError: mish: expected a tensor"),
        ("F.celu(xp.ones(2), 0)", "ValueError: celu: expected an alpha other than 0, got 0"),
        (
            "F.softplus(xp.ones(2), beta=0)",
            "ValueError: softplus: expected a beta other than 0, got 0",
        ),
        ("F.celu(xp.ones(2), 'x')", "TypeError: celu: expected a number for alpha, got 'x'"),
        ("F.elu(xp.ones(2), True)", "TypeError: elu: expected a number for alpha, got True"),
        (
            "F.leaky_relu(xp.ones(2), (1,))",
            "TypeError: leaky_relu: expected a number for negative_slope, got (1,)",
        ),
        (
            "F.threshold(xp.ones(2), 1.0, None)",
            "TypeError: threshold: expected a number for value, got None",
        ),
        ("F.glu(xp.ones(2), None)", "TypeError: glu: expected an int for axis, got None"),
        (
            "F.layer_norm(xp.ones(2), 2, eps='x')",
            "TypeError: layer_norm: expected a number for eps, got 'x'",
        ),
        (
            "F.hardtanh(xp.ones(2), 1, 1)",
            "ValueError: hardtanh: expected min_val < max_val, got 1 and 1",
        ),
        ("F.softshrink(xp.ones(2), -0.5)", "ValueError: softshrink: expected lambd >= 0, got -0.5"),
        ("nn.Hardshrink(-1)(xp.ones(2))", "ValueError: hardshrink: expected lambd >= 0, got -1"),
        (
            "nn.GLU()(xp.ones((2, 3)))",
            "ValueError: glu: expected an axis of even length, got 3 in shape (2, 3)",
        ),
        ("F.glu(xp.ones(()))", "ValueError: glu: expected x with at least one axis, got shape ()"),
        (
            "nn.GLU(2)(xp.ones((2, 4)))",
            "IndexError: glu: expected axis from -2 to 1 for x of shape (2, 4), got 2",
        ),
        ("nn.Softmax(2)(xp.ones((2, 4)))", "IndexError: softmax: …"),
        ("nn.PReLU(0)", "ValueError: PReLU: expected an int above 0 for num_parameters, got 0"),
        (
            "nn.PReLU(3)(xp.ones((2, 4)))",
            "ValueError: prelu: expected one weight, or one for each channel of (2, 4)",
        ),
        (
            "nn.PReLU(3)(xp.ones(3))",
            "ValueError: prelu: expected one weight, or one for each channel of (3,), got",
        ),
        ("nn.PReLU()(xp.ones(3, dtype=xp.float64))", "TypeError: PReLU: expected input of float32"),
    ],
)
def test_invalid_arguments_are_refused(call, error):
    check_error(call, error, nn=nn, F=F)
