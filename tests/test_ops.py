"""Every op of the table on every device: values, first and second derivatives, odd shapes, special values."""

from __future__ import annotations

import numpy as np
import pytest

import xgrad
from xgrad.parity.evaluate import by_pytorch, evaluate, options, tensors
from xgrad.parity.pytorch import installed
from xgrad.parity.row import Op, Sample
from xgrad.parity.table import OPS
from xgrad.testing import gradcheck, gradgradcheck

# What NumPy and PyTorch have to say of NaNs and of nothing is not the subject here.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:.*degrees of freedom is <= 0.*"),
    pytest.mark.filterwarnings("ignore:.*Degrees of freedom <= 0.*:RuntimeWarning"),
]
needs_torch = pytest.mark.skipif(not installed(), reason="PyTorch, the oracle, is not installed")

CASES = [
    pytest.param(op, sample, id=f"{kind}{op}-{i}-{sample}")
    for op in OPS
    for kind, samples in (("", op.samples), ("complex ", op.complex_samples()))
    for i, sample in enumerate(samples)
]
DIFFERENTIABLE = [case for case in CASES if case.values[0].differentiable]


def place(device: str, op: Op) -> xgrad.Device:
    """Return the device, or skip with the row's reason why the op cannot run there."""
    where = xgrad.Device(device)
    if op.kernel:
        pytest.importorskip("scipy", reason="SciPy, whose kernel it is, is not installed")
    if reason := op.not_on.get(where.type):
        pytest.skip(f"{op} on {device}: {reason}")
    return where


@needs_torch
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("op", "sample"), [case for case in CASES if case.values[0].torch is not None])
def test_values_and_gradients_agree_with_pytorch(op: Op, sample: Sample, dtype: str, device: str) -> None:
    values, gradients = evaluate(op, sample, place(device, op), dtype)  # which checks shapes, dtypes and devices
    expected, expected_gradients = by_pytorch(op, sample, dtype)
    rtol, atol = (op.loose[0] if op.loose else 1e-10, 1e-12) if dtype == "float64" else (1e-5, 2e-6)
    for got, want in zip(values, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)
        assert (got.shape, got.dtype.kind) == (want.shape, want.dtype.kind)
    for got, want in zip(gradients, expected_gradients, strict=True):
        np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)


@pytest.mark.parametrize(("op", "sample"), DIFFERENTIABLE)
def test_gradcheck(op: Op, sample: Sample, device: str) -> None:
    where = place(device, op)
    xs = tensors(sample, where, np.dtype("float64"), True)
    if op.no_derivative:
        pytest.skip(f"{op.no_derivative}: what is documented is compared with PyTorch")
    fast = device != "cpu"  # the rules are the same everywhere: elsewhere a random direction shows that they run
    assert gradcheck(lambda *values: op.fn(*values, **options(sample, where)), xs, fast_mode=fast)


@pytest.mark.parametrize(("op", "sample"), DIFFERENTIABLE)
def test_gradgradcheck(op: Op, sample: Sample, device: str) -> None:
    where = place(device, op)
    xs = tensors(sample, where, np.dtype("float64"), True)
    if op.no_derivative:
        pytest.skip(f"{op.no_derivative}: what is documented is compared with PyTorch")
    assert gradgradcheck(lambda *values: op.fn(*values, **options(sample, where)), xs)


SPECIAL = [pytest.param(op, sample, id=str(op)) for op in OPS if (sample := op.special_sample())]


@needs_torch
@pytest.mark.parametrize(("op", "sample"), SPECIAL)
def test_special_values_agree_with_pytorch(op: Op, sample: Sample, device: str) -> None:
    values, gradients = evaluate(op, sample, place(device, op), "float64")
    expected, expected_gradients = by_pytorch(op, sample, "float64")
    np.testing.assert_allclose(values[0], expected[0], rtol=1e-10)
    if op.differentiable and op.special_gradient:
        for got, want in zip(gradients, expected_gradients, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-10)


def test_every_declared_op_is_in_the_table() -> None:
    """A rule that no row reaches would never be checked."""
    declared = {name for name in xgrad.ops.__all__ if callable(getattr(xgrad.ops, name))}
    declared |= {f"{module}.{name}" for module in ("fft", "special") for name in getattr(xgrad, module).__all__}
    declared |= set(xgrad.linalg.__all__)
    tested = {op.function_name for op in OPS}
    elsewhere = {"to_device", "nextafter", "fft.fftfreq", "fft.rfftfreq", "special.expit", "special.digamma"}
    elsewhere |= CREATION | OF_DTYPES
    assert declared - tested - elsewhere == set()


CREATION = {"asarray", "from_dlpack", "zeros", "ones", "empty", "full", "arange", "linspace", "eye"}
CREATION |= {f"{name}_like" for name in ("zeros", "ones", "empty", "full")}
OF_DTYPES = {"can_cast", "finfo", "iinfo", "isdtype", "result_type"}
