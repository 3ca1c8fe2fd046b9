"""Values and derivatives at the borders of domains, where they are limits, and kept dtypes.

They are compared with PyTorch, NumPy, mpmath and closed forms.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error
from xgrad import nn
from xgrad.autograd import grad
from xgrad.random import Generator

INF, NAN = math.inf, math.nan
VECTORS = [
    [0.0, 2.0, 3.0],
    [0.0, 0.0, -3.0],
    [0.0, 0.0],
    [-1.5, 2.0, 0.5],
    [INF, 2.0, 3.0],
    [NAN, 0.0, 1.0],
]


# Norms


@pytest.mark.filterwarnings(
    "ignore:(invalid value encountered in divide|divide by zero encountered in power)"
)
@pytest.mark.parametrize("ord", [-1, -2, -2.5, -0.5, -INF, 0.5])
@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_norm_of_an_order_below_one_agrees_with_pytorch(
    ord: float, vector: list[float], torch: Any
) -> None:
    x, y = xgrad.asarray(vector, requires_grad=True), torch.tensor(vector, requires_grad=True)
    got, want = xgrad.linalg.vector_norm(x, ord=ord), torch.linalg.vector_norm(y, ord=ord)
    got.backward(), want.backward()
    np.testing.assert_allclose(got.item(), want.item(), rtol=1e-6)
    if not (math.isinf(ord) and math.isnan(vector[0])):  # PyTorch's gradient is 0 there
        np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-5)


def test_norm_of_negative_order_beside_a_zero_has_second_derivatives_of_zero(device: str) -> None:
    x = xgrad.asarray([[0.0, 2.0], [1.0, 2.0]], device=device, requires_grad=True)
    (first,) = grad(xgrad.sum(xgrad.linalg.vector_norm(x, axis=1, ord=-1)), x, create_graph=True)
    (second,) = grad(xgrad.sum(first * xgrad.asarray([1.0, 3.0], device=device)), x)
    assert first.detach()[0, :].tolist() == second[0, :].tolist() == [0, 0]
    # 1 / (1 / a + 1 / b) at (1, 2)
    np.testing.assert_allclose(first.detach()[1, :].cpu().numpy(), [4 / 9, 1 / 9], rtol=1e-6)
    np.testing.assert_allclose(second[1, :].cpu().numpy(), [4 / 27, -2 / 27], rtol=1e-5)


# Special functions


@pytest.mark.parametrize("x", [5e-324, 1e-310, -1e-310, 2.3e-308, 1e-300, 0.0])
def test_derivatives_of_i0_and_i1_at_denormal_numbers_are_those_at_zero(x: float) -> None:
    pytest.importorskip("scipy", reason="needs scipy")
    for fn, limits in ((xgrad.special.i0, (1, 0, 0.5, 0)), (xgrad.special.i1, (0, 0.5, 0, 0.375))):
        leaf = xgrad.asarray([x], dtype=xgrad.float64, requires_grad=True)
        y = fn(leaf)
        for order, limit in enumerate(limits):
            if order:
                (y,) = grad(y, leaf, create_graph=True)
            np.testing.assert_allclose(y.detach().numpy(), limit, atol=1e-299)


@pytest.mark.parametrize("v", [0, 0.5, 1, 2.0, 3, -1, -2, 50, -0.5])
def test_iv_of_tiny_numbers_is_the_first_term_of_its_series(v: float) -> None:
    pytest.importorskip("scipy", reason="needs scipy")
    mpmath = pytest.importorskip("mpmath", reason="needs mpmath")
    numbers = [5e-324, 1e-310, 2.3e-308, 1e-300, 1e-100, 1e-29]
    got = xgrad.special.iv(float(v), xgrad.asarray(numbers, dtype=xgrad.float64)).numpy()
    order = abs(v) if float(v).is_integer() else v
    want = [float(mpmath.besseli(order, mpmath.mpf(x))) for x in numbers]
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=5e-324)
    if float(v).is_integer():
        negative = xgrad.special.iv(
            float(v), xgrad.asarray([-x for x in numbers], dtype=xgrad.float64)
        ).numpy()
        np.testing.assert_allclose(negative, (-1) ** int(v) * got, rtol=1e-12, atol=5e-324)


# Losses


@pytest.mark.filterwarnings("ignore:invalid value encountered in log:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:divide by zero encountered in log:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides:UserWarning")
@pytest.mark.parametrize("reduction", ["none", "sum", "mean", "batchmean"])
def test_kl_div_of_a_negative_target_is_nan(reduction: str, torch: Any) -> None:
    values, targets = [[-1.0, -1.5], [-2.0, -0.5]], [[-0.5, 0.25], [0.0, 0.75]]
    results = []
    for library, loss in ((xgrad, nn.functional.kl_div), (torch, torch.nn.functional.kl_div)):
        x = library.tensor(values, requires_grad=True)
        y = library.tensor(targets, requires_grad=True)
        out = loss(x, y, reduction=reduction)
        out.sum().backward()
        results.append(
            [out.detach().numpy(), x.grad.numpy(), y.grad.numpy()[y.detach().numpy() != 0]]
        )
    assert np.isnan(results[0][0].flat[0])
    for got, want in zip(*results, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


# Pooling


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((1, 1, 6), {"kernel_size": 3, "stride": 2, "padding": 1}),
        ((2, 2, 7), {"kernel_size": 2, "padding": 1, "dilation": 2}),
        ((1, 2, 4, 5), {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}),
        ((2, 1, 5, 4), {"kernel_size": (2, 3), "stride": 1, "padding": (1, 1)}),
        ((2, 1, 5, 4), {"kernel_size": 2}),
    ],
)
@pytest.mark.parametrize("share", [1.0, 0.7])
def test_padded_maximum_of_minus_infinity_has_its_gradient_at_an_element(
    shape: tuple[int, ...], options: dict[str, Any], share: float, torch: Any, device: str
) -> None:
    random = np.random.default_rng(0)
    values = np.where(random.random(shape) < share, -INF, random.integers(0, 3, shape)).astype(
        "float32"
    )
    name = f"max_pool{len(shape) - 2}d"
    x = xgrad.asarray(values, device=device).requires_grad_()
    y = torch.tensor(values, requires_grad=True)
    got = getattr(nn.functional, name)(x, **options)
    want = getattr(torch.nn.functional, name)(y, **options)
    weights = np.arange(1, 1 + math.prod(want.shape), dtype="float32").reshape(want.shape)
    out = xgrad.asarray(weights, device=device).requires_grad_()
    (first,) = grad(got, x, out, create_graph=True)
    want.backward(torch.tensor(weights))
    np.testing.assert_array_equal(got.detach().cpu().numpy(), want.detach().numpy())
    np.testing.assert_array_equal(first.detach().cpu().numpy(), y.grad.numpy())
    assert first.sum().item() == weights.sum()
    # each window takes the sum of the weights at its element
    (second,) = grad(xgrad.sum(first * first / 2), out)
    assert xgrad.sum(second * out).item() == xgrad.sum(first * first).item()


# Dtypes


MASK = [True, False]


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float16", "float32", "complex64"])
def test_masked_fill_keeps_the_dtype(dtype: str, device: str, torch: Any) -> None:
    if (device, dtype) == ("strict", "float16"):
        pytest.skip("array-api-strict has no float16")
    x, m = xgrad.ones(2, dtype=dtype, device=device), xgrad.asarray(MASK, device=device)
    y = torch.ones(2, dtype=getattr(torch, dtype))
    numbers = {
        "b": [False, True],
        "i": [5, -1, True],
        "f": [2, -1, 2.5, INF, True],
        "c": [2, 2.5, 1j, True],
    }
    for value in numbers[np.dtype(dtype).kind]:
        out = x.masked_fill(m, value)
        assert out.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(
            out.cpu().numpy(), y.masked_fill(torch.tensor(MASK), value).numpy()
        )
    value = (
        xgrad.asarray(True, device=device) if dtype == "bool" else xgrad.asarray(2, device=device)
    )
    assert x.masked_fill(m, value).dtype == np.dtype(dtype)


def test_masked_fill_has_gradients_by_the_elements_and_a_value_of_another_dtype() -> None:
    x = xgrad.asarray([1.0, 2.0], requires_grad=True)
    value = xgrad.asarray(3.0, dtype=xgrad.float64, requires_grad=True)
    out = x.masked_fill(xgrad.asarray(MASK), value)
    assert (out.dtype, out.tolist()) == (xgrad.float32, [3, 2])
    (out * xgrad.asarray([5.0, 7.0])).sum().backward()
    assert (x.grad.tolist(), value.grad.item(), value.grad.dtype) == ([0, 7], 5, xgrad.float64)


@pytest.mark.parametrize(
    "row",
    [
        (
            "ones.masked_fill(m, 2.5) -> TypeError: masked_fill: expected integers or bools for x"
            " of int8, got float: cast"
        ),
        (
            "ones.masked_fill(m, 1j) -> TypeError: masked_fill: expected integers or bools for x of"
            " int8, got complex"
        ),
        (
            "ones.masked_fill(m, 300) -> OverflowError: masked_fill: expected integers that int8"
            " holds, got 300"
        ),
        (
            "ones.masked_fill(m, xp.asarray(2.5)) -> TypeError: masked_fill: expected integers …"
            " got float32: cast first"
        ),
        (
            "m.masked_fill(m, 2) -> TypeError: masked_fill: expected bools for x of bool, got int:"
            " cast first"
        ),
        (
            "half.masked_fill(m, 70000) -> OverflowError: masked_fill: expected a number that"
            " float16 holds, got 70000"
        ),
        (
            "half.masked_fill(m, 1j) -> TypeError: masked_fill: expected real numbers for x of"
            " float16, got complex"
        ),
        (
            "half.astype('float32').masked_fill(m, 1e39) -> OverflowError: … a number that float32"
            " holds, got 1e+39"
        ),
        "-m -> TypeError: negative: expected numbers, got bools: write ~x, or cast first",
        "xp.negative(m) -> TypeError: negative: expected numbers, got bools",
        "m.neg() -> TypeError: negative: expected numbers, got bools",
    ],
)
def test_what_a_dtype_cannot_hold_is_refused(row: str) -> None:
    call, _, error = row.partition(" -> ")
    ones, half = xgrad.ones(2, dtype=xgrad.int8), xgrad.ones(2, dtype=xgrad.float16)
    check_error(call, error, ones=ones, half=half, m=xgrad.asarray(MASK))


BOOLS = np.array([[True, False, True], [False, False, True]])
INTS, FLOATS = np.array([[3], [4]]), np.array([[0.5], [2]])


@pytest.mark.parametrize(
    "x", [BOOLS, np.arange(6).reshape(2, 3) ** 2, np.arange(6.0).reshape(2, 3) ** 2]
)
@pytest.mark.parametrize("end", [None, BOOLS[:, :1], INTS, FLOATS])
@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_differences_are_those_of_numpy(
    x: np.ndarray, end: np.ndarray | None, n: int, device: str
) -> None:
    for name in ("prepend", "append"):
        given = {} if end is None else {name: end}
        want = np.diff(x, n=n, **given)
        tensors = {key: xgrad.asarray(value, device=device) for key, value in given.items()}
        got = xgrad.diff(xgrad.asarray(x, device=device), n=n, **tensors)
        assert got.dtype.kind == want.dtype.kind
        np.testing.assert_array_equal(got.cpu().numpy(), want)


# Random numbers


@pytest.mark.parametrize(
    "weights",
    [
        [0, 1e-320, 2e-320, 0, 3e-310],
        [0, 1e-320, 1.0],
        [0, 1e300, 1e-300, 1e-320],
        [0.0, 0.0, 5e-324],
    ],
)
@pytest.mark.parametrize("replacement", [False, True])
def test_multinomial_draws_no_weight_of_zero(
    weights: list[float], replacement: bool, device: str
) -> None:
    generator, some = Generator(0), {i for i, w in enumerate(weights) if w}
    w = xgrad.asarray(weights, dtype=xgrad.float64, device=device)
    for _ in range(50):
        drawn = generator.multinomial(w, len(some), replacement).tolist()
        assert set(drawn) <= some
        assert replacement or set(drawn) == some


def test_multinomial_draws_tiny_weights_in_proportion() -> None:
    generator, weights = Generator(0), xgrad.asarray([0, 1e-320, 3e-320], dtype=xgrad.float64)
    first = [generator.multinomial(weights, 1).item() for _ in range(1000)]
    assert abs(first.count(1) - 250) < 60
