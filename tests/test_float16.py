"""float16: arithmetic, promotion, gradients, files, and libraries without it.

Values are compared with float64 of the rounded inputs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad import nn
from xgrad.parity.cases import OP_CASES
from xgrad.parity.op_case import OpCase
from xgrad.parity.run_op import rounded, run_op

HALF = np.dtype("float16")
# some of SciPy's and CuPy's functions
KERNELS = ("special.erf", "special.erfcx", "special.gammaln", "special.psi")


@pytest.fixture(autouse=True)
def _has_float16(request: pytest.FixtureRequest) -> None:
    if "device" in request.fixturenames and request.getfixturevalue("device") == "strict":
        pytest.skip("array-api-strict has no float16")


@pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")
@pytest.mark.parametrize(
    "op",
    [op for op in OP_CASES if op.ranges and ("scipy" not in op.needs or op.name in KERNELS)],
    ids=str,
)
def test_elementwise_ops_agree_with_float64_of_rounded_inputs(op: OpCase, device: str) -> None:
    """The tolerance is relative to the largest result, since sums and differences cancel."""
    if "scipy" in op.needs:
        pytest.importorskip("scipy", reason="needs scipy")
    sample, unit = op.range_sample(), np.finfo(HALF).eps
    got = run_op(op, sample, xgrad.Device(device), HALF)
    want = run_op(op, rounded(sample, HALF), xgrad.Device("cpu"), "float64")
    for half, exact in zip([*got[0], *got[1]], [*want[0], *want[1]], strict=True):
        if half.dtype.kind != "f":
            np.testing.assert_array_equal(half, exact)
            continue
        assert half.dtype == HALF
        np.testing.assert_allclose(half, exact, rtol=8 * unit, atol=4 * unit * np.abs(exact).max())


@pytest.mark.parametrize(
    "other", "bool uint8 int64 float16 float32 float64 complex64 complex128".split()
)
def test_float16_promotes_like_a_float_of_16_bits(other: str, device: str) -> None:
    x = xgrad.ones(2, dtype=xgrad.float16, device=device)
    y = xgrad.ones(2, dtype=other, device=device)
    expected = other if np.dtype(other).kind in "fc" else "float16"
    assert (x + y).dtype == (y * x).dtype == xgrad.result_type(x, y) == expected
    assert (x + 1).dtype == (x * 1.5).dtype == (2 / x).dtype == (x**True).dtype == xgrad.float16
    assert (x * 1j).dtype == xgrad.complex64


def test_gradients_have_the_dtype(device: str) -> None:
    x = xgrad.asarray([[1.0, 2.0]], dtype=xgrad.float16, device=device, requires_grad=True)
    w = xgrad.ones((2, 3), device=device, requires_grad=True)  # of float32
    xgrad.exp(x @ w * 0.5).sum().backward()
    assert (x.grad.dtype, w.grad.dtype) == (xgrad.float16, xgrad.float32)
    np.testing.assert_allclose(x.grad.cpu().numpy(), np.full((1, 2), 1.5 * np.exp(1.5)), rtol=2e-3)


def test_sums_and_means_of_many_are_exact(device: str) -> None:
    x = xgrad.ones(5000, dtype=xgrad.float16, device=device)  # a sum in float16 stays at 2048
    assert (xgrad.sum(x).item(), xgrad.mean(30 * x).item(), (x @ x).item()) == (5000, 30, 5000)
    assert xgrad.sum(x).dtype == xgrad.mean(x).dtype == xgrad.float16


def half(values: Any, device: str = "cpu") -> xgrad.Tensor:
    return xgrad.asarray(values, dtype=xgrad.float16, device=device)


@pytest.mark.parametrize("axis", [0, 1])
def test_sums_of_rows_and_columns_count_further_than_2048(axis: int, device: str) -> None:
    x = xgrad.ones((5000, 2) if axis == 0 else (2, 5000), dtype=xgrad.float16, device=device)
    for out in (
        xgrad.sum(x, axis=axis),
        xgrad.cumulative_sum(x, axis=axis)[(-1,) if axis == 0 else (..., -1)],
    ):
        assert (out.dtype, out.tolist()) == (xgrad.float16, [5000, 5000])


def test_gradients_of_a_repeated_index_and_of_a_broadcast_input_count_further_than_2048(
    device: str,
) -> None:
    if device.startswith("torch"):
        pytest.skip("PyTorch's index_put_ adds float16 in float16")
    x, bias = half([1.0, 2.0], device).requires_grad_(), half([0.0], device).requires_grad_()
    (x[xgrad.zeros(5000, dtype=xgrad.int64, device=device)] + bias).sum().backward()
    assert (x.grad.tolist(), bias.grad.tolist()) == ([5000, 0], [5000])


def test_mean_of_more_elements_than_the_largest_float16_has_a_gradient(device: str) -> None:
    x = xgrad.ones(100_000, dtype=xgrad.float16, device=device).requires_grad_()
    (1000 * xgrad.mean(x)).backward()
    assert x.grad[0].item() == float(np.float16(0.01))


@pytest.mark.parametrize("in_optimizer", [False, True])
def test_gradients_of_a_large_norm_are_clipped(in_optimizer: bool, device: str) -> None:
    x = half(np.zeros(1000), device).requires_grad_()
    if in_optimizer:
        xgrad.optim.SGD([x], lr=0.1)
    (300 * x).sum().backward()
    norm = nn.utils.clip_grad_norm_(x, 1.0)
    assert norm.dtype == xgrad.float32 and abs(norm.item() - 300 * 1000**0.5) < 1e-2
    np.testing.assert_allclose(x.grad.cpu().numpy(), 1000**-0.5, rtol=1e-3)


def test_second_derivatives_of_large_numbers_are_finite(device: str) -> None:
    x = half([300.0, 400.0], device).requires_grad_()
    for fn in (
        xgrad.linalg.vector_norm,
        lambda x: xgrad.std(x) / 100,
        lambda x: nn.functional.normalize(x, axis=0)[0],
    ):
        (first,) = xgrad.autograd.grad(fn(x), x, create_graph=True)
        (second,) = xgrad.autograd.grad((first * half([1.0, 3.0], device)).sum(), x)
        wide = x.detach().astype(xgrad.float64).requires_grad_()
        (exact,) = xgrad.autograd.grad(fn(wide), wide, create_graph=True)
        (wanted,) = xgrad.autograd.grad(
            (exact * xgrad.asarray([1.0, 3.0], device=device)).sum(), wide
        )
        assert first.dtype == second.dtype == xgrad.float16
        np.testing.assert_allclose(
            first.detach().cpu().numpy(), exact.detach().cpu().numpy(), rtol=2e-3, atol=1e-6
        )
        np.testing.assert_allclose(second.cpu().numpy(), wanted.cpu().numpy(), rtol=4e-3, atol=1e-6)


def test_float16_beside_another_dtype_has_the_promoted_result() -> None:
    x, y = half([[300.0, 400.0]]), xgrad.asarray([[300.0, 400.0]], dtype=xgrad.float64)
    assert nn.functional.cosine_similarity(x, y).dtype == xgrad.float64
    assert nn.functional.mse_loss(x, y).dtype == xgrad.float64
    assert nn.functional.mse_loss(x / 8, xgrad.asarray([[1, 2]])).dtype == xgrad.float16
    assert xgrad.prod(x, dtype=xgrad.float64).dtype == xgrad.float64
    assert (xgrad.prod(x, dtype=xgrad.float32).item(), xgrad.prod(x / 8).item()) == (120000, 1875)
    assert xgrad.var(half([1, 2]), axis=0).dtype == xgrad.float16


@pytest.mark.parametrize("p", [0.0, 0.5])
@pytest.mark.parametrize("masked", [False, True])
def test_attention_in_products_of_float16_agrees_with_float64(
    p: float, masked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on devices with fast products of float16.

    There are more keys than a sum in float16 could add.
    """
    monkeypatch.setattr(type(xgrad.Device("cpu").backend), "fast_float16", True)
    random = np.random.default_rng(0)
    arrays = [random.normal(size=(3000 if i else 4, 2)).astype(HALF) for i in range(3)]
    arrays[2] = (arrays[2] * 100).astype(HALF)
    mask = random.normal(size=(4, 3000)).astype(HALF)
    results = []
    for dtype in (xgrad.float16, xgrad.float64):
        xgrad.manual_seed(0)
        inputs = [
            xgrad.asarray(x, dtype=dtype).requires_grad_()
            for x in (*arrays, *([mask] if masked else []))
        ]
        out = nn.functional.scaled_dot_product_attention(*inputs, dropout_p=p)
        assert out.dtype == dtype
        out.backward(xgrad.asarray(np.cos(np.arange(8)).reshape(4, 2), dtype=dtype))
        results.append([out.detach().numpy(), *[x.grad.numpy() for x in inputs]])
    for got, want in zip(*results, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-2, atol=4e-3 * np.abs(want).max())


def test_model_of_float16_trains(device: str) -> None:
    xgrad.manual_seed(0)
    model = nn.Linear(3, 1, device=device).to(dtype=xgrad.float16)
    optimizer = xgrad.optim.SGD(model.parameters(), lr=0.1)
    x = xgrad.ones((4, 3), dtype="float16", device=device)
    for _ in range(20):
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
    assert model.weight.dtype == loss.dtype == xgrad.float16
    assert loss.item() < 1e-2


@pytest.mark.parametrize(
    "step",
    [
        lambda x: nn.functional.log_softmax(xgrad.tanh(x @ x.mT) * 2 + 1),
        lambda x: (
            xgrad.linalg.vector_norm(1000 * x, axis=0) + xgrad.std(1000 * x) + xgrad.sum(x, axis=0)
        ),
        lambda x: nn.functional.cosine_similarity(500 * x, 300 + x) * xgrad.mean(x),
        lambda x: nn.functional.scaled_dot_product_attention(x, x, x),
        lambda x: xgrad.cumulative_sum(x, axis=0) * xgrad.prod(x + 1),
    ],
)
def test_captured_step_has_the_bits_of_the_eager_one(step: Any) -> None:
    x = xgrad.asarray(np.arange(6).reshape(2, 3) / 10, dtype=xgrad.float16)
    captured, expected = xgrad.capture(step), step(x).numpy()
    for _ in range(3):
        assert captured(x).numpy().tobytes() == expected.tobytes()


def test_float16_has_limits_and_kinds() -> None:
    limits = xgrad.finfo(xgrad.float16)
    assert (limits.bits, limits.max, limits.eps, limits.dtype) == (16, 65504, 2**-10, xgrad.float16)
    assert xgrad.isdtype(xgrad.float16, "real floating") and xgrad.can_cast(
        xgrad.float16, xgrad.float32
    )
    assert "float16" not in xgrad.__array_namespace_info__().dtypes(), (
        "the standard does not have it"
    )
    assert repr(xgrad.ones(1, dtype="float16")) == "Tensor([1.], dtype=float16)"


def test_float16_survives_casts_and_files(device: str, tmp_path: Path) -> None:
    x = xgrad.asarray([1.0, 1e5, 1 / 3], device=device)
    with np.errstate(over="ignore"):
        half = x.astype(xgrad.float16)
    assert half.cpu().numpy().tolist() == [1, np.inf, float(np.float16(1 / 3))]
    xgrad.save({"x": half}, tmp_path / "x.safetensors")
    loaded = xgrad.load(tmp_path / "x.safetensors")["x"]
    assert loaded.dtype == xgrad.float16 and loaded.tolist() == half.tolist()


def test_library_without_float16_is_named_in_the_error() -> None:
    pytest.importorskip("array_api_strict")
    for make in (
        lambda: xgrad.zeros(2, dtype=xgrad.float16, device="strict"),
        lambda: xgrad.ones(2, device="strict").astype("float16"),
    ):
        with pytest.raises(
            TypeError, match=r"dtype: expected .* got .*float16.*, which array_api_strict lacks"
        ):
            make()
    with pytest.raises(
        TypeError, match="array_api_strict namespace does not support the dtype 'float16'"
    ):
        xgrad.ones(2, dtype=xgrad.float16).to("strict")
