"""The device of a name without an index: on `cuda`, the GPU of a process's rank on its machine."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import xgrad
import xgrad_cupy
from xgrad import Device, DeviceError
from xgrad.distributed import Communicator
from xgrad_cupy.local_rank import VARIABLES, local_rank
from xgrad_strict import StrictBackend


@pytest.mark.parametrize("name", VARIABLES)
def test_local_rank_is_that_of_any_launcher(name: str) -> None:
    assert local_rank({"HOME": "3", name: "2"}) == 2
    assert local_rank({name: "0"}) == 0


def test_local_rank_is_0_without_a_launcher_or_if_empty() -> None:
    assert local_rank({"OMPI_COMM_WORLD_RANK": "5", "SLURM_PROCID": "5"}) == 0
    assert local_rank(dict.fromkeys(VARIABLES, "")) == 0
    assert local_rank({"LOCAL_RANK": "", "SLURM_LOCALID": "3"}) == 3


@pytest.mark.parametrize("name", VARIABLES[:-1])
def test_local_rank_of_a_launcher_within_slurm_is_the_launchers(name: str) -> None:
    assert local_rank({"SLURM_LOCALID": "0", name: "3"}) == 3


@pytest.mark.parametrize("value", ["abc", "-1", "1.0", " 1", "²", "9" * 5000])
def test_local_rank_that_is_none_is_refused_with_its_variable(value: str) -> None:
    with pytest.raises(DeviceError, match=r"expected the number of .* LOCAL_RANK, got"):
        local_rank({"LOCAL_RANK": value})


@pytest.mark.parametrize(("rank", "index"), [("0", 0), ("1", 1), ("5", 2), (None, 0)])
def test_cuda_without_index_is_the_gpu_of_the_local_rank(
    rank: str | None, index: int, cuda: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    if rank is not None:
        monkeypatch.setenv("MPI_LOCALRANKID", rank)
    opened = xgrad_cupy.open_cupy()[0], 3  # of three GPUs, none of which is used
    monkeypatch.setattr(xgrad_cupy, "open_cupy", lambda: opened)
    assert xgrad_cupy.CupyBackend().default_index == index


# Names, on a backend whose default index is 1


@pytest.fixture
def second(install: Any) -> Device:
    """A device with index 1, which its name without an index means."""
    pytest.importorskip("array_api_strict", reason="needs array-api-strict")

    class OnSecond(StrictBackend):
        default_index = 1

    install("gpu", lambda: OnSecond)
    return Device("gpu:1")


def test_name_without_index_is_the_default_device_of_its_type(second: Device) -> None:
    assert Device("gpu") is second is Device(second)
    first = Device("gpu:0")
    assert first is not second and (first.index, second.index) == (0, 1)
    assert xgrad.ones(2, device="gpu").device is xgrad.ones(2).to("gpu").device is second
    assert xgrad.ones(2, device="gpu:0").device is first
    with xgrad.default_device("gpu"):
        assert xgrad.ones(2).device is second
    assert xgrad.devices("gpu") == [first, second, Device("gpu:2")]


def test_string_of_a_device_is_a_name_of_it(second: Device) -> None:
    for device in xgrad.devices("gpu"):
        assert Device(str(device)) is device
    assert [str(device) for device in xgrad.devices("gpu")] == ["gpu:0", "gpu:1", "gpu:2"]
    assert repr(second) == "Device('gpu:1')"
    with pytest.raises(DeviceError, match="x1 on gpu:0, x2 on gpu:1"):
        xgrad.ones(2, device="gpu:0") + xgrad.ones(2, device="gpu")


def test_device_of_a_batch_has_the_name_of_its_device(second: Device) -> None:
    seen = []
    xgrad.vmap(lambda x: seen.append(str(x.device)) or x)(xgrad.ones(2, device="gpu:0"))
    assert seen == ["gpu:0"]


def test_pickle_of_a_tensor_keeps_its_device(second: Device) -> None:
    for device in xgrad.devices("gpu"):
        assert pickle.loads(pickle.dumps(device)) is copy.deepcopy(device) is device
        x = pickle.loads(pickle.dumps(xgrad.ones(2, device=device)))
        assert x.device is device


def test_pickle_is_of_the_same_device_where_the_short_name_is_another(install: Any) -> None:
    """Pickles pass between processes of different local ranks."""
    pytest.importorskip("array_api_strict", reason="needs array-api-strict")
    install("gpu", lambda: StrictBackend)
    assert str(Device("gpu")) == "gpu"
    assert b"gpu:0" in pickle.dumps(Device("gpu"))
    assert b"gpu:0" in pickle.dumps(xgrad.ones(2, device="gpu"))


def test_state_of_rank_0_is_sent_from_the_host(second: Device) -> None:
    """Other ranks need not have the device of rank 0."""

    class Sent(Communicator):
        def broadcast_object(self, x: Any, call: str = "broadcast_object") -> Any:
            self.sent = x
            return x

    ranks = Sent()
    ranks.size = 2
    model = xgrad.nn.Linear(2, 1).to("gpu")
    ranks.broadcast(model)
    assert {str(x.device) for state in ranks.sent for x in state.values()} == {"cpu"}
    pickle.dumps(ranks.sent)  # as MPI sends it
    weight = model.weight.detach().to("cpu").numpy()
    np.testing.assert_array_equal(ranks.sent[0]["weight"].numpy(), weight)
