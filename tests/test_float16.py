"""float16: arithmetic, promotion, gradients, files, and libraries without it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import xgrad
from xgrad import nn
from xgrad.parity.cases import OP_CASES
from xgrad.parity.op_case import OpCase
from xgrad.parity.run_op import rounded, run_op

HALF = np.dtype("float16")
KERNELS = ("special.erf", "special.erfcx", "special.gammaln", "special.psi")  # of those of SciPy and CuPy


@pytest.fixture(autouse=True)
def _has_float16(request: pytest.FixtureRequest) -> None:
    if "device" in request.fixturenames and request.getfixturevalue("device") == "strict":
        pytest.skip("array-api-strict has no float16")


@pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")
@pytest.mark.parametrize(
    "op", [op for op in OP_CASES if op.ranges and ("scipy" not in op.needs or op.name in KERNELS)], ids=str
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


@pytest.mark.parametrize("other", "bool uint8 int64 float16 float32 float64 complex64 complex128".split())
def test_float16_promotes_like_a_float_of_16_bits(other: str, device: str) -> None:
    x, y = xgrad.ones(2, dtype=xgrad.float16, device=device), xgrad.ones(2, dtype=other, device=device)
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


def test_model_of_float16_trains(device: str) -> None:
    xgrad.manual_seed(0)
    model = nn.Linear(3, 1, device=device).to(dtype=xgrad.float16)
    optimizer, x = xgrad.optim.SGD(model.parameters(), lr=0.1), xgrad.ones((4, 3), dtype="float16", device=device)
    for _ in range(20):
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
    assert model.weight.dtype == loss.dtype == xgrad.float16
    assert loss.item() < 1e-2


def test_captured_step_has_the_bits_of_the_eager_one() -> None:
    def step(x: xgrad.Tensor) -> xgrad.Tensor:
        return nn.functional.log_softmax(xgrad.tanh(x @ x.mT) * 2 + 1)

    x = xgrad.asarray(np.arange(6).reshape(2, 3) / 10, dtype=xgrad.float16)
    captured, expected = xgrad.capture(step), step(x).numpy()
    for _ in range(3):
        assert captured(x).numpy().tobytes() == expected.tobytes()


def test_float16_has_limits_and_kinds() -> None:
    limits = xgrad.finfo(xgrad.float16)
    assert (limits.bits, limits.max, limits.eps, limits.dtype) == (16, 65504, 2**-10, xgrad.float16)
    assert xgrad.isdtype(xgrad.float16, "real floating") and xgrad.can_cast(xgrad.float16, xgrad.float32)
    assert "float16" not in xgrad.__array_namespace_info__().dtypes(), "the standard does not have it"
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
        with pytest.raises(TypeError, match=r"dtype: expected .* got .*float16.*, which array_api_strict lacks"):
            make()
    with pytest.raises(TypeError, match="array_api_strict namespace does not support the dtype 'float16'"):
        xgrad.ones(2, dtype=xgrad.float16).to("strict")
