"""The PyTorch backend, without a GPU.

PyTorch's device "meta" and fake reports of GPUs stand for GPUs: arrays must stay on their device.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad import DeviceError
from xgrad.parity.cases import OP_CASES
from xgrad.parity.cases.indexing import SHAPE_OF_DATA
from xgrad.parity.op_case import OpCase, Sample
from xgrad.parity.run_op import options, outputs, tensors

torch = pytest.importorskip("torch", reason="needs PyTorch: make test-peers")
xgrad_torch = pytest.importorskip("xgrad_torch")
pytestmark = pytest.mark.usefixtures("torch")

CPU = torch.device("cpu")


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Make PyTorch report two GPUs, and return the calls to its functions for them."""
    calls: list[Any] = []

    def answer(name: str, value: Any) -> None:
        monkeypatch.setattr(
            torch.cuda, name, lambda *index: (calls.append((name, *index)), value)[1]
        )

    answer("is_available", True)
    answer("device_count", 2)
    answer("get_device_properties", SimpleNamespace(name="Some GPU", total_memory=80 << 30))
    answer("mem_get_info", (60, 80))
    answer("memory_allocated", 10)
    answer("memory_reserved", 20)
    answer("synchronize", None)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    return calls


def test_each_gpu_is_a_device(two_gpus: list[Any]) -> None:
    backend = xgrad_torch.TorchBackend()
    assert backend.count() == 3
    assert [backend.native_device(i) for i in range(3)] == [
        CPU,
        torch.device("cuda:0"),
        torch.device("cuda:1"),
    ]
    for i in range(3):
        assert backend.index_of(SimpleNamespace(device=backend.native_device(i), **FLOATS)) == i
    assert backend.versions() == {"torch": torch.__version__, "cuda": "13.0"}
    assert backend.describe(0) == f"PyTorch {torch.__version__} on the CPU"
    two_gpus.clear()
    assert backend.describe(2) == f"PyTorch {torch.__version__} on Some GPU, 80 GiB"
    assert backend.memory(2) == {"used": 10, "reserved": 20, "free": 60, "total": 80}
    backend.synchronize(2)
    assert {index for _, *indices in two_gpus for index in indices} == {1}
    two_gpus.clear()
    assert backend.memory(0) == {}
    backend.synchronize(0)
    assert two_gpus == []


FLOATS = {"requires_grad": False, "dtype": torch.float32}


def test_devices_are_named_by_index(two_gpus: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    backend = xgrad_torch.TorchBackend()
    for module in ("device", "registry"):
        monkeypatch.setattr(
            sys.modules[f"xgrad.backend.{module}"], "open_backend", lambda kind: backend
        )
    monkeypatch.setattr(xgrad.Device, "_known", {})
    names = [str(xgrad.Device(f"torch:{i}")) for i in range(3)]
    assert [str(xgrad.Device("torch")), *names] == ["torch", "torch", "torch:1", "torch:2"]
    assert xgrad.Device("torch:2").native == torch.device("cuda:1")
    with pytest.raises(
        DeviceError, match="unknown device 'torch:3': this machine has 3 of type 'torch'"
    ):
        xgrad.Device("torch:3")


def test_mps_is_the_device_after_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.mps, "synchronize", lambda: calls.append("mps"))
    backend = xgrad_torch.TorchBackend()
    assert backend.devices == [CPU, torch.device("mps:0")]
    assert backend.index_of(SimpleNamespace(device=torch.device("mps:0"), **FLOATS)) == 1
    assert backend.describe(1) == f"PyTorch {torch.__version__} on MPS"
    assert (backend.versions(), backend.memory(1)) == ({"torch": torch.__version__}, {})
    backend.synchronize(0)
    assert calls == []
    backend.synchronize(1)
    assert calls == ["mps"]


def test_unavailable_cuda_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)  # as with a driver that is too old
    backend = xgrad_torch.TorchBackend()
    assert (backend.count(), backend.versions()) == (1, {"torch": torch.__version__})


# PyTorch's device without data, "meta", stands for a GPU: it cannot be mixed with the CPU, so all
# arrays that a rule creates must be on the device of its inputs.


@pytest.fixture(scope="module")
def elsewhere() -> xgrad.Device:
    backend = xgrad_torch.TorchBackend()
    backend.devices = [CPU, torch.device("meta")]
    backend.asynchronous = True  # there are no values to check
    return xgrad.Device.of("torch", backend, 1)


def test_stand_in_refuses_arrays_of_the_cpu(elsewhere: xgrad.Device) -> None:
    with pytest.raises(RuntimeError, match="cpu is not on the expected device meta"):
        torch.ones(3, device=elsewhere.native) + torch.ones(3)


def gradients(
    outs: Sequence[xgrad.Tensor], leaves: list[Any], create_graph: bool = False
) -> list[xgrad.Tensor]:
    """Return the gradients of results with weights of 1, without missing ones."""
    seeds = [xgrad.ones(x.shape, dtype=x.dtype, device=x.device) for x in outs]
    results = outs and xgrad.autograd.grad(
        outs, leaves, seeds, create_graph=create_graph, retain_graph=True, allow_unused=True
    )
    return [g for g in results if g is not None]


def _with_gradients(
    op: OpCase, sample: Sample, inputs: list[Any], elsewhere: xgrad.Device
) -> list[xgrad.Tensor]:
    """Return the results of an op, and their first and second derivatives."""
    outs = outputs(op.fn(*inputs, **options(sample, elsewhere)))
    leaves = [x for x in inputs if getattr(x, "requires_grad", False)]
    if not (op.differentiable and leaves):
        return list(outs)
    first = gradients(outs, leaves, create_graph=True)
    return [
        *outs,
        *first,
        *gradients(outs, leaves),
        *gradients([g for g in first if g.requires_grad], leaves),
    ]


#: Functions that return a bool, or iterate until values have converged.
READ_VALUES = ("allclose", "expm", "sqrtm")


@pytest.mark.parametrize("op", OP_CASES, ids=str)
def test_op_and_its_derivatives_stay_on_their_device(op: OpCase, elsewhere: xgrad.Device) -> None:
    shapeless = op.unsupported.items() >= SHAPE_OF_DATA.items()
    if reason := op.unsupported.get("torch") or (SHAPE_OF_DATA["strict"] if shapeless else ""):
        pytest.skip(reason)
    for sample in op.samples:
        if op.function_name in (
            "abs",
            "sign",
            "special.huber",
            "special.i0e",
            "special.i1e",
            "softsign",
        ) and () in map(np.shape, sample.inputs):
            continue  # array-api-compat's sign reads the value
        inputs = tensors(sample, elsewhere, np.dtype("float32"), op.differentiable)
        try:
            results = _with_gradients(op, sample, inputs, elsewhere)
        except NotImplementedError as error:
            if (
                "scipy" in op.needs or op.name in READ_VALUES
            ) and "Cannot copy out of meta tensor" in str(error):
                pytest.skip("values are read on the host, of which that device has none")
            raise
        for x in results:
            assert x.device is elsewhere
            assert x._data.device == elsewhere.native


def test_model_trains_on_another_device(elsewhere: xgrad.Device) -> None:
    model = xgrad.nn.MLP([3, 4, 2]).to(elsewhere)
    images = xgrad.random.rand((5, 3), device=elsewhere)
    labels = xgrad.zeros(5, dtype="int64", device=elsewhere)
    for kind in (xgrad.optim.SGD, xgrad.optim.Adam):
        optimizer = kind(model.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            scores = xgrad.nn.functional.dropout(model(images))
            (
                xgrad.nn.functional.log_softmax(scores)[xgrad.arange(5, device=elsewhere), labels]
            ).sum().backward()
            optimizer.step()
    assert {p._data.device for p in model.parameters()} == {elsewhere.native}


# PyTorch's own autograd


def test_pytorch_tensor_that_requires_gradient_is_refused() -> None:
    array = torch.ones(2, requires_grad=True)
    tensor = xgrad.ones(2, device="torch", requires_grad=True)
    for take in (
        xgrad.asarray,
        xgrad.Tensor,
        lambda x: tensor * x,
        lambda x: xgrad.ops.setitem(tensor, 0, x[0]),
        lambda x: setattr(tensor, "data", x),
        lambda x: xgrad.asarray(x, device="cpu"),
    ):
        for x in (array, 2 * array, torch.nn.Parameter(torch.ones(2))):
            with pytest.raises(
                TypeError, match=r"torch: expected .*without a gradient, got .*: \.detach\(\) it"
            ):
                take(x)
    assert xgrad.asarray(array.detach()).tolist() == [1, 1]


@pytest.mark.parametrize(
    "x",
    [torch.ones(2, dtype=torch.bfloat16), torch.ones(2, device="meta")],
    ids=["dtype", "device"],
)
def test_unsupported_dtype_or_device_is_refused(x: Any) -> None:
    with pytest.raises(
        TypeError,
        match=r"torch: expected a tensor of a dtype of NumPy's on the CPU, CUDA or MPS, got",
    ):
        xgrad.asarray(x)


def test_pytorch_tensor_may_be_assigned() -> None:
    x = xgrad.ones(3, device="torch")
    x[1] = torch.tensor(7.0)
    x[2:] = torch.tensor([8])
    assert x.tolist() == [1, 7, 8]
    with pytest.raises(
        TypeError, match="setitem: expected real numbers for x of float32, got complex64"
    ):
        x[0] = torch.tensor(1j)


def test_pytorch_autograd_records_nothing() -> None:
    x = xgrad.Tensor([1.0, -2.0], device="torch", requires_grad=True)
    y = xgrad.relu(x) * x
    (g,) = xgrad.autograd.grad(y.sum(), x, create_graph=True)
    g.sum().backward()
    assert x.grad is not None
    assert not any(t._data.requires_grad for t in (x, y, g, x.grad))


def test_transfer_between_host_and_torch_copies() -> None:
    backend = xgrad_torch.TorchBackend()
    host = np.arange(6.0).reshape(2, 3)[::-1].T
    x = backend.from_host(host, 0)
    back = backend.to_host(x)
    np.testing.assert_array_equal(back, host, strict=True)
    back[...] = 0
    np.testing.assert_array_equal(backend.to_host(x), host, strict=True)
    np.testing.assert_array_equal(
        backend.to_host(torch.tensor(1 + 2j).conj()), np.asarray(1 - 2j, np.complex64)
    )
