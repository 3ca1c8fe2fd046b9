"""Devices: names, defaults, differentiable transfers, and errors of mixed devices."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad import Device, DeviceError, Tensor
from xgrad.backend.devices import current_device

strict = pytest.importorskip(
    "array_api_strict", reason="array-api-strict, the second device, is not installed"
)


def test_names_of_one_device_are_one_object() -> None:
    assert Device("cpu") is Device("cpu:0") is Device(Device("cpu"))
    assert Device("strict:1") is not Device("strict")
    assert [str(Device(name)) for name in ("cpu", "strict", "strict:1")] == [
        "cpu",
        "strict",
        "strict:1",
    ]
    assert (
        pickle.loads(pickle.dumps(Device("strict:1")))
        is copy.deepcopy(Device("strict:1"))
        is Device("strict:1")
    )


def test_devices_are_the_usable_ones_with_the_cpu_first() -> None:
    in_use = Device("strict:1")
    devices = xgrad.devices()
    assert devices[0] is Device("cpu") and in_use in devices
    assert {Device("strict"), Device("strict:1"), Device("strict:2")} <= set(devices)
    for device in devices:
        device.synchronize()
        assert isinstance(device.memory(), dict) and device.backend.describe(device.index)


def test_devices_of_a_type_are_those_or_an_error() -> None:
    assert xgrad.devices("cpu") == [Device("cpu")]
    assert xgrad.devices("strict") == [Device("strict"), Device("strict:1"), Device("strict:2")]
    with pytest.raises(
        DeviceError, match="unknown device 'tpu': the installed backends are cpu, cuda, dask, "
    ):
        xgrad.devices("tpu")
    with pytest.raises(TypeError, match="devices: expected a type such as 'cuda', got 3"):
        xgrad.devices(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tpu", "unknown device 'tpu': the installed backends are cpu, cuda, dask, "),
        ("cpu:1", "unknown device 'cpu:1': this machine has 1 of type 'cpu'"),
        ("cpu:x", "unknown device 'cpu:x': expected a name such as 'cpu' or 'cuda:1'"),
        ("strict:7", "this machine has 3 of type 'strict'"),
    ],
)
def test_unknown_device_is_refused(name: str, message: str) -> None:
    for ask in (Device, lambda n: xgrad.ones(2, device=n), lambda n: xgrad.ones(2).to(n)):
        with pytest.raises(DeviceError, match=message):
            ask(name)
    with pytest.raises(TypeError, match="Device: expected a name such as"):
        Device(0)  # type: ignore[arg-type]


@pytest.mark.parametrize("other", ["strict", "strict:1"])
def test_op_on_two_devices_is_refused(other: str) -> None:
    a, b = xgrad.ones(2), xgrad.ones(2, device=other)
    first, second = (a, b) if other == "strict" else (xgrad.ones(2, device="strict"), b)
    operands = f"x1 on {first.device}, x2 on {other}"
    for op in (xgrad.add, xgrad.matmul, xgrad.maximum):
        with pytest.raises(
            DeviceError,
            match=f"{op.__name__}: expected tensors of one device, got {operands}: move",
        ):
            op(first, second)
    with pytest.raises(
        DeviceError, match=r"concat: expected tensors of one device, got arrays\[0\] on"
    ):
        xgrad.concat([first, second])
    with pytest.raises(DeviceError, match="indexing: expected a key on"):
        first[Tensor([0], device=other)]


def test_default_device_belongs_to_its_thread() -> None:
    seen: list[Any] = []
    with xgrad.default_device("strict") as device:
        assert device is Device("strict") is xgrad.ones(2).device is Tensor([1]).device
        assert xgrad.ones(2, device="cpu").device is Device("cpu")
        with xgrad.default_device("strict:1"):
            assert current_device() is Device("strict:1")
        thread = threading.Thread(target=lambda: seen.append(xgrad.zeros(1).device))
        thread.start()
        thread.join()
        assert xgrad.ones_like(Tensor([1.0], device="cpu")).device is Device("cpu")
    assert seen == [Device("cpu")]
    assert xgrad.ones(2).device is Device("cpu")


def test_default_device_decorates_function() -> None:
    @xgrad.default_device("strict")
    def make() -> Tensor:
        return xgrad.ones(2)

    assert make().device is make().device is Device("strict")


def test_transfers_are_differentiable_to_any_order() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = x.to("strict")
    assert y.device is Device("strict") and x.to("cpu") is x
    z = (y * y * y).to("strict:1").to("cpu").sum()
    (first,) = xgrad.autograd.grad(z, x, create_graph=True)
    assert first is not None and first.device is x.device and first.tolist() == [3, 12]
    (second,) = xgrad.autograd.grad(first.sum(), x)
    assert second is not None and second.tolist() == [6, 12]


def test_gradient_is_on_the_device_of_its_leaf() -> None:
    x = Tensor([1.0, 2.0], device="strict", requires_grad=True)
    (x.to("cpu").sum() + (x * x).sum().to("cpu")).backward()
    assert x.grad is not None and x.grad.device is x.device and x.grad.tolist() == [3, 5]


def test_transfer_with_dtype_is_differentiable() -> None:
    x = Tensor([1.0], requires_grad=True)
    y = x.to("strict", dtype=xgrad.float64)
    assert (y.dtype, str(y.device)) == (xgrad.float64, "strict")
    y.sum().backward()
    assert x.grad is not None and x.grad.dtype == xgrad.float32
    with pytest.raises(ValueError, match="to_device: expected stream=None"):
        x.to_device("cpu", stream=1)


@pytest.mark.parametrize(("other", "dtype"), [("strict", "float32"), ("cpu", "float64")])
def test_gradient_follows_leaf_to_new_device_or_dtype(other: str, dtype: str) -> None:
    x = Tensor([1.0], requires_grad=True)
    (x * x).sum().backward()
    x.data = x.data.to(other, dtype=dtype)
    assert (
        x.grad is not None
        and x.grad.device is x.device is Device(other)
        and str(x.grad.dtype).endswith(dtype)
    )
    (x * x).sum().backward()
    assert x.grad.tolist() == [4]


def test_leaf_that_moved_between_use_and_backward_is_refused() -> None:
    x = Tensor([1.0], requires_grad=True)
    y = (x + 1).sum()
    x.data = x.data.to("strict")
    with pytest.raises(
        RuntimeError,
        match=r"add was applied to a leaf that has since been given shape \(1,\) on strict",
    ):
        y.backward()
    y = (x + 1).sum()
    x.data = xgrad.ones((2, 3), device="strict")
    with pytest.raises(RuntimeError, match=r"since been given shape \(2, 3\) on strict"):
        y.backward()


def test_array_of_backend_is_on_its_device() -> None:
    raw = strict.asarray([1.0, 2.0], device=strict.Device("device1"))
    assert xgrad.asarray(raw).device is Device("strict:1")
    assert (xgrad.ones(2, dtype=xgrad.float64, device="strict:1") + raw).tolist() == [2, 3]


def test_tensor_copies_memory_of_array() -> None:
    source = np.zeros(2, np.float32)
    made = [Tensor(source, device=device) for device in ("cpu", "strict")]
    source[0] = 1
    assert [x.tolist() for x in made] == [[0, 0], [0, 0]]


def test_numpy_array_goes_to_default_device_and_as_operand_to_cpu() -> None:
    with pytest.raises(DeviceError, match="got x1 on strict, x2 on cpu"):
        xgrad.ones(2, device="strict") + np.ones(2)
    with xgrad.default_device("strict"):
        assert xgrad.asarray(np.ones(2)).device is Device("strict")
        with pytest.raises(DeviceError, match="got x1 on strict, x2 on cpu"):
            xgrad.ones(2) + np.ones(2)
