"""`torch.save` and `torch.load`: keys, file objects, devices and errors."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import pytest

import xgrad
from xgrad.compat import torch as compat
from xgrad.compat.torch import nn


def test_keys_keep_their_order(torch: Any, tmp_path: Path) -> None:
    path = tmp_path / "state.pt"
    orders = []
    for library in (torch, compat):
        model = library.nn.Sequential(library.nn.Linear(2, 2), library.nn.BatchNorm1d(2))
        library.save(model.state_dict(), path)
        orders.append(list(library.load(path)))
    assert orders[0] == orders[1]
    compat.save({"z": compat.ones(0), "a": compat.ones(0, dtype=compat.int64)}, path)
    assert list(compat.load(path)) == ["z", "a"]


def test_file_objects(tmp_path: Path) -> None:
    state = {"w": compat.arange(3.0), "epoch": 3}
    buffer = io.BytesIO()
    compat.save(state, buffer)
    buffer.seek(0)
    loaded = compat.load(buffer)
    assert type(loaded["w"]) is compat.Tensor
    assert (loaded["w"].tolist(), loaded["epoch"]) == ([0, 1, 2], 3)
    with open(tmp_path / "state.pt", "wb") as file:
        compat.save(state, file)
    with open(tmp_path / "state.pt", "rb") as file:
        assert compat.load(file)["w"].tolist() == [0, 1, 2]


def test_map_location(tmp_path: Path) -> None:
    path = tmp_path / "state.pt"
    compat.save({"w": compat.ones(2)}, path)
    for location in ("cpu", compat.device("cpu"), lambda storage, location: storage):
        assert compat.load(path, map_location=location)["w"].device.type == "cpu"
    for location in ({"cuda:0": "cpu"}, lambda storage, location: storage.cuda()):
        with pytest.raises(NotImplementedError, match="expected a device as map_location"):
            compat.load(path, map_location=location)


def test_file_whose_header_has_the_first_bytes_of_a_pickle_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "state.pt"
    header_bytes = int.from_bytes(b"\x80\x02", "little")
    xgrad.save({"": xgrad.ones(1)}, path)
    name = "x" * (header_bytes - int.from_bytes(path.read_bytes()[:8], "little"))
    xgrad.save({name: xgrad.ones(1)}, path)
    assert path.read_bytes()[:2] == b"\x80\x02"
    assert compat.load(path)[name].tolist() == [1]


def test_models_and_options_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="Linear: give its state_dict"):
        compat.save(nn.Linear(1, 1), tmp_path / "model.pt")
    with pytest.raises(TypeError, match=r"torch\.load: unknown arguments \['foo'\]"):
        compat.load(tmp_path / "model.pt", foo=1)
    with pytest.raises(TypeError, match=r"torch\.save: unknown arguments \['foo'\]"):
        compat.save({}, tmp_path / "model.pt", foo=1)


def test_files_of_pytorch_are_refused(torch: Any, tmp_path: Path) -> None:
    torch.save({"w": torch.ones(1)}, tmp_path / "theirs.pt")
    with pytest.raises(ValueError, match=r"safetensors\.torch\.save_file"):
        compat.load(tmp_path / "theirs.pt")
    (tmp_path / "pickle.pt").write_bytes(pickle.dumps({"w": 1}, protocol=2))
    with pytest.raises(ValueError, match=r"safetensors\.torch\.save_file"):
        compat.load(tmp_path / "pickle.pt")
    with open(tmp_path / "theirs.pt", "rb") as file, pytest.raises(ValueError, match=r"save_file"):
        compat.load(file)
