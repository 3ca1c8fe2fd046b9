"""Every op of the table on every device: values, first and second derivatives, odd shapes, special values."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xgrad
from op_table import OPS, Op, Sample, torch
from xgrad.testing import gradcheck, gradgradcheck

# What NumPy and PyTorch have to say of NaNs and of nothing is not the subject here.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:.*degrees of freedom is <= 0.*"),
    pytest.mark.filterwarnings("ignore:.*Degrees of freedom <= 0.*:RuntimeWarning"),
]
needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch, the oracle, is not installed")

CASES = [pytest.param(op, sample, id=f"{op}-{i}-{sample}") for op in OPS for i, sample in enumerate(op.samples)]
DIFFERENTIABLE = [case for case in CASES if case.values[0].differentiable]


def place(device: str, op: Op) -> xgrad.Device:
    """Return the device, or skip with the row's reason why the op cannot run there."""
    if device in op.not_on:
        pytest.skip(f"{op} on {device}: {op.not_on[device]}")
    return xgrad.Device(device)


def tensors(sample: Sample, device: xgrad.Device, dtype: np.dtype, grad: bool) -> list[Any]:
    """Return the sample's arrays as leaves that lie in memory as the sample says."""
    made: list[Any] = []
    for x in sample.inputs:
        if not isinstance(x, np.ndarray):
            made.append(x)
        elif x.dtype.kind != "f":
            made.append(xgrad.asarray(x, device=device))
        else:
            raw = xgrad.Tensor(laid_out(x, sample.layout), dtype=dtype, device=device)._data
            if sample.layout == "transposed" and x.ndim > 1:
                raw = device.xp.matrix_transpose(raw)
            elif sample.layout == "reversed":
                raw = device.xp.flip(raw)
            made.append(xgrad.asarray(raw, requires_grad=grad))
    return made


def laid_out(x: np.ndarray, layout: str) -> np.ndarray:
    if layout == "transposed" and x.ndim > 1:
        return x.mT.copy()
    return np.flip(x).copy() if layout == "reversed" else x


def options(sample: Sample, device: xgrad.Device) -> dict[str, Any]:
    def convert(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(convert(v) for v in value)
        return xgrad.asarray(value, device=device) if isinstance(value, np.ndarray) else value

    return {name: convert(value) for name, value in sample.options.items()}


def outputs(result: Any) -> tuple[Any, ...]:
    return (result,) if hasattr(result, "shape") else tuple(result)


def host(x: Any) -> np.ndarray:
    return x.detach().cpu().numpy()


def weights(out: np.ndarray) -> np.ndarray:
    """Return an arriving gradient that is different for every element."""
    return np.cos(np.arange(out.size, dtype=np.float64)).reshape(out.shape)


def ours(op: Op, sample: Sample, device: xgrad.Device, dtype: np.dtype) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the values and the gradients by xgrad, checking that dtypes, shapes and devices are kept."""
    xs = tensors(sample, device, dtype, op.differentiable)
    outs = outputs(op.fn(*xs, **options(sample, device)))
    leaves = [x for x in xs if isinstance(x, xgrad.Tensor) and x.requires_grad]
    for out in outs:
        assert out.device is device
    if not (op.differentiable and leaves):
        assert not any(out.requires_grad for out in outs)
        return [host(out) for out in outs], []
    if op.name != "astype":
        assert {out.dtype for out in outs} == {dtype}
    seeds = [xgrad.asarray(weights(host(out)), dtype=out.dtype, device=device) for out in outs]
    xgrad.autograd.backward(outs, seeds)
    for leaf in leaves:
        assert leaf.grad is not None
        assert (leaf.grad.shape, leaf.grad.dtype, leaf.grad.device) == (leaf.shape, dtype, device)
    return [host(out) for out in outs], [host(leaf.grad) for leaf in leaves]


def theirs(op: Op, sample: Sample, dtype: Any) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the values and the gradients by PyTorch."""
    xs = []
    for x in sample.inputs:
        if isinstance(x, np.ndarray):
            x = torch.tensor(np.ascontiguousarray(x).reshape(x.shape))
            x = x.to(dtype).requires_grad_(op.differentiable) if x.dtype == torch.float64 else x
        xs.append(x)
    outs = outputs(op.torch(*xs, **sample.options))
    leaves = [x for x in xs if torch.is_tensor(x) and x.requires_grad]
    if not (op.differentiable and leaves):
        return [host(out) for out in outs], []
    torch.autograd.backward(outs, [torch.tensor(weights(host(out))).to(out.dtype) for out in outs])
    return [host(out) for out in outs], [host(x.grad if x.grad is not None else torch.zeros_like(x)) for x in leaves]


@needs_torch
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("op", "sample"), CASES)
def test_values_and_gradients_agree_with_pytorch(op: Op, sample: Sample, dtype: str, device: str) -> None:
    values, gradients = ours(op, sample, place(device, op), np.dtype(dtype))
    expected, expected_gradients = theirs(op, sample, getattr(torch, dtype))
    rtol, atol = (op.loose[0] if op.loose else 1e-10, 1e-12) if dtype == "float64" else (1e-5, 2e-6)
    for got, want in zip(values, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)
        assert got.shape == want.shape
    for got, want in zip(gradients, expected_gradients, strict=True):
        np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)


@pytest.mark.parametrize(("op", "sample"), DIFFERENTIABLE)
def test_gradcheck(op: Op, sample: Sample, device: str) -> None:
    where = place(device, op)
    xs = tensors(sample, where, np.dtype("float64"), True)
    if "ties" in op.name:
        pytest.skip("a tie has no derivative: what is documented is compared with PyTorch")
    assert gradcheck(lambda *values: op.fn(*values, **options(sample, where)), xs)


@pytest.mark.parametrize(("op", "sample"), DIFFERENTIABLE)
def test_gradgradcheck(op: Op, sample: Sample, device: str) -> None:
    where = place(device, op)
    xs = tensors(sample, where, np.dtype("float64"), True)
    if "ties" in op.name:
        pytest.skip("a tie has no derivative: what is documented is compared with PyTorch")
    assert gradgradcheck(lambda *values: op.fn(*values, **options(sample, where)), xs)


def special_samples() -> Iterator[Any]:
    for op in OPS:
        if op.special:
            count = sum(isinstance(x, np.ndarray) for x in op.samples[0].inputs)
            columns = np.array(list(itertools.product(op.special, repeat=count))).T
            yield pytest.param(op, Sample(tuple(columns)), id=str(op))


@needs_torch
@pytest.mark.parametrize(("op", "sample"), list(special_samples()))
def test_special_values_agree_with_pytorch(op: Op, sample: Sample, device: str) -> None:
    values, gradients = ours(op, sample, place(device, op), np.dtype("float64"))
    expected, expected_gradients = theirs(op, sample, torch.float64)
    np.testing.assert_allclose(values[0], expected[0], rtol=1e-10)
    if op.differentiable and op.special_gradient:
        for got, want in zip(gradients, expected_gradients, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-10)


def test_every_declared_op_is_in_the_table() -> None:
    """A rule that no row reaches would never be checked."""
    declared = {name for name in xgrad.ops.__all__ if callable(getattr(xgrad.ops, name))}
    tested = {op.name.split(" ")[0] for op in OPS}
    elsewhere = {"to_device"} | {name for name in declared if name in CREATION}
    assert declared - tested - elsewhere == set()


CREATION = {"asarray", "zeros", "ones", "empty", "full", "arange", "linspace", "eye"}
CREATION |= {f"{name}_like" for name in ("zeros", "ones", "empty", "full")}
