"""JAX, Dask and MLX, whose arrays or slices are immutable, compared with the `cpu` device.

The subjects are the op table with gradients, writes through views, and training.
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad import nn, optim
from xgrad.cli import main
from xgrad.parity.cases import OP_CASES
from xgrad.parity.op_case import OpCase
from xgrad.parity.run_op import quiet, run_op

# else every 30th row for JAX and Dask, which take minutes
WHOLE = os.environ.get("XGRAD_WHOLE_TABLE") == "1"
CPU = xgrad.Device("cpu")
#: Rows that do not pass, by library, with the error and its message; one that begins to pass fails.
FAILING: dict[str, dict[str, tuple[type[Exception], str]]] = {
    "jax": {},
    "dask": {},
    "mlx": {},
}
ROWS = [(name, op) for name in FAILING for op in OP_CASES[:: 1 if WHOLE or name == "mlx" else 30]]
PRECISION = {"mlx": ("float32", 1e-5)}  # it has no complex128
DEPENDS = "the shape of the result depends on the data"


@pytest.fixture(params=FAILING)
def library(request: pytest.FixtureRequest) -> xgrad.Device:
    try:
        return xgrad.Device(request.param)
    except xgrad.DeviceError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(("library", "op"), ROWS, indirect=["library"], ids=str)
def test_op_and_its_gradient_are_those_of_cpu(op: OpCase, library: xgrad.Device) -> None:
    if op.missing() or op.unsupported.get("strict") == DEPENDS:
        pytest.skip(f"needs {op.missing()}" if op.missing() else DEPENDS)
    error = FAILING[library.type].get(op.name)
    dtype, tolerance = PRECISION.get(library.type, ("float64", 1e-9))
    with quiet(), pytest.raises(error[0], match=error[1]) if error else nullcontext():
        for sample in op.samples:
            got, expected = (run_op(op, sample, device, dtype) for device in (library, CPU))
            for x, y in zip(
                [*got.values, *got.gradients], [*expected.values, *expected.gradients], strict=True
            ):
                np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


def test_native_array_is_a_tensor_on_its_device(library: xgrad.Device) -> None:
    native = library.backend.from_host(np.full((2, 3), 2, np.float32), 0).native
    x = xgrad.asarray(native)
    assert x.device is library and (x.shape, x.dtype) == ((2, 3), xgrad.float32)
    x += 1
    assert x.tolist() == [[3.0] * 3] * 2 and np.all(np.asarray(native) == 2)


@pytest.mark.parametrize("library", ["jax"], indirect=True)
def test_native_array_of_another_device_is_refused(
    library: xgrad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    native = library.backend.from_host(np.zeros(2), 0).native
    monkeypatch.setattr(library.backend, "devices", ["another"])
    with pytest.raises(
        TypeError, match=r"jax: expected an array on one of .'another'., got one on "
    ):
        xgrad.asarray(native)


def test_indices_are_int64(library: xgrad.Device) -> None:
    x = xgrad.asarray([1.0, 2.0], device=library)
    for indices in (xgrad.searchsorted(x, x), xgrad.argmax(x), xgrad.argmin(x), xgrad.argsort(x)):
        assert indices.dtype == xgrad.int64


@pytest.mark.parametrize("name", ["jax", "dask", "mlx", "ndonnx", "torch"])
def test_inspection_reports_the_dtypes_that_arrays_can_have(name: str) -> None:
    try:
        device = xgrad.Device(name)
    except xgrad.DeviceError as error:
        pytest.skip(str(error))
    info = xgrad.__array_namespace_info__()
    all_names = xgrad.__array_namespace_info__().dtypes(device="cpu")
    assert device in info.devices()
    listed = info.dtypes(device=device)
    assert {"bool", "int64", "float32", "float64"} <= {*listed} <= {*all_names}
    for dtype in listed.values():
        assert xgrad.zeros(2, dtype=dtype, device=device).dtype == dtype
    for kind in (
        "bool",
        "signed integer",
        ("real floating", "integral"),
        "numeric",
        "complex floating",
    ):
        expected = [dtype for dtype in listed.values() if xgrad.isdtype(dtype, kind)]
        assert [*info.dtypes(device=device, kind=kind).values()] == expected
    with xgrad.default_device(device):
        capabilities = info.capabilities()
    assert (
        capabilities["data-dependent shapes"]
        == capabilities["boolean indexing"]
        == (name != "dask")
    )


def test_writes_reach_the_base_and_all_views(library: xgrad.Device) -> None:
    x = xgrad.zeros((3, 4), device=library)
    row, column = x[1], x.mT[2]
    part = row[:2]
    part += 1
    x[2, 2] = 5
    column[0] = 3
    x.reshape((2, 6))[1, 3:] = 7
    expected = np.zeros((3, 4))
    expected[1, :2], expected[2, 2], expected[0, 2] = 1, 5, 3
    expected.reshape((2, 6))[1, 3:] = 7
    for got, want in (
        (x, expected),
        (row, expected[1]),
        (column, expected[:, 2]),
        (part, expected[1, :2]),
    ):
        np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam])
def test_training_gives_the_weights_of_cpu(kind: Any, library: xgrad.Device) -> None:
    def trained(device: xgrad.Device) -> dict[str, np.ndarray]:
        xgrad.manual_seed(0)
        net = nn.MLP([6, 8, 3]).to(device)
        optimizer = kind(net.parameters(), lr=0.05)
        generator = np.random.default_rng(0)
        for _ in range(5):
            x = xgrad.asarray(generator.normal(size=(16, 6)), dtype=xgrad.float32, device=device)
            y = xgrad.asarray(generator.integers(0, 3, 16), device=device)
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()
        return {name: p.detach().numpy() for name, p in net.named_parameters()}

    expected = trained(CPU)
    for name, got in trained(library).items():
        np.testing.assert_allclose(got, expected[name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "library", ["torch", "jax"] if WHOLE else ["torch"], indirect=True
)  # JAX compiles for 20 s
def test_train_command_gives_the_weights_of_cpu(library: xgrad.Device, tmp_path: Path) -> None:
    for device in ("cpu", library.type):
        options = [
            "--no-download",
            "--quiet",
            "--hidden=8",
            "--epochs=1",
            f"--out={tmp_path / device}",
        ]
        assert main(["train", "digits", f"--device={device}", *options]) == 0
    expected, got = (
        xgrad.load(tmp_path / name / "weights.safetensors") for name in ("cpu", library.type)
    )
    for name, x in expected.items():
        np.testing.assert_allclose(got[name].numpy(), x.numpy(), rtol=1e-5, atol=1e-6)
