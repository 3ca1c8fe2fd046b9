"""`save` and `load`: round trips, other libraries, invalid tensors, files and paths."""

from __future__ import annotations

import errno
import os

import numpy as np
import pytest

import xgrad

DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64".split()


@pytest.fixture
def path(tmp_path):
    """A file with a tensor of ones."""
    xgrad.save({"x": xgrad.ones(2)}, tmp_path / "file")
    return tmp_path / "file"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 3, 4)])
def test_tensors_are_loaded_as_they_were_saved(dtype, shape, device, tmp_path):
    values = (np.arange(np.prod(shape)).reshape(shape) % 2).astype(dtype)
    x = xgrad.asarray(values, device=device)
    xgrad.save({"a.b": x, "": x}, tmp_path / "file")
    loaded = xgrad.load(tmp_path / "file", device=device)
    assert set(loaded) == {"a.b", ""}
    for y in loaded.values():
        assert (y.shape, y.dtype, y.device) == (x.shape, x.dtype, x.device)
        assert not y.requires_grad
        assert y.cpu().numpy().tobytes() == values.tobytes()
    assert str(xgrad.load(str(tmp_path / "file"))["a.b"].device) == "cpu"


def test_views_and_leaves_are_saved_by_value(tmp_path):
    base = xgrad.asarray(np.arange(12.0).reshape(3, 4), requires_grad=True)
    tensors = {"leaf": base, "transposed": base.mT, "strided": base[::2, ::-1]}
    tensors["broadcast"] = xgrad.broadcast_to(base, (2, 3, 4))
    for saved in (tensors, {}):
        xgrad.save(saved, tmp_path / "file")
        loaded = xgrad.load(tmp_path / "file")
        assert {name: x.tolist() for name, x in loaded.items()} == {name: x.tolist() for name, x in saved.items()}


def test_device_is_the_default_device_and_must_be_known(path):
    with xgrad.default_device("strict"):
        assert str(xgrad.load(path)["x"].device) == "strict"
    with pytest.raises(xgrad.DeviceError, match="unknown device 'tpu'"):
        xgrad.load(path, device="tpu")


def test_safetensors_reads_the_file(path):
    safetensors = pytest.importorskip("safetensors")
    with safetensors.safe_open(path, framework="np") as file:
        assert file.metadata() == {"format": "xgrad"}
        assert file.get_tensor("x").tolist() == [1, 1]


def test_files_are_exchanged_with_pytorch(tmp_path, torch):
    from safetensors.torch import load_file, save_file

    state = torch.nn.Linear(3, 2).state_dict()
    save_file(state, tmp_path / "from_torch")
    layer = xgrad.nn.Linear(3, 2)
    layer.load_state_dict(xgrad.load(tmp_path / "from_torch"))
    xgrad.save(layer.state_dict(), tmp_path / "to_torch")
    for name, value in load_file(tmp_path / "to_torch").items():
        assert torch.equal(value, state[name])

    save_file({"half": torch.ones(2, dtype=torch.bfloat16)}, tmp_path / "half")
    with pytest.raises(TypeError, match=r"load: 'half' in .* has the dtype BF16, which xgrad lacks: save it as F32"):
        xgrad.load(tmp_path / "half")


@pytest.mark.parametrize(
    ("tensors", "text"),
    [
        ([("x", xgrad.ones(2))], r"save: expected a mapping of names to tensors, got list: .*state_dict\(\)"),
        (xgrad.nn.Linear(2, 2), "save: expected a mapping of names to tensors, got Linear"),
        ({1: xgrad.ones(2)}, "save: expected a str as the name of each tensor, got 1"),
        ({"x": np.ones(2)}, "save: expected a Tensor for 'x', got ndarray: use xgrad.asarray"),
        ({"x": xgrad.ones(1, dtype=xgrad.complex128)}, "save: 'x' is complex128, which safetensors lacks"),
        ({"__metadata__": xgrad.ones(1)}, "save: the name '__metadata__' is taken by the format"),
    ],
)
def test_invalid_tensors_are_refused_without_a_write(tensors, text, path):
    before = path.read_bytes()
    with pytest.raises(TypeError, match=text):
        xgrad.save(tensors, path)
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]


def test_full_disk_leaves_the_earlier_file_or_none(path, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    other = path.parent / "other"
    for target, text in ((path, "the earlier file is unchanged: .*file'"), (other, "no part of it is left: .*other'")):
        with pytest.raises(OSError, match=rf"disk full: \d+ bytes were not written, {text}") as caught:
            xgrad.save({"x": xgrad.zeros(2)}, target)
        assert caught.value.errno == errno.ENOSPC and caught.value.filename == str(target)
    assert list(path.parent.iterdir()) == [path] and xgrad.load(path)["x"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("call", "name", "error", "text"),
    [
        (xgrad.save, "folder/file", FileNotFoundError, r"save: expected an existing folder, got .*: make it first"),
        (xgrad.save, ".", IsADirectoryError, "save: expected the path of a file, got the folder"),
        (xgrad.save, "", IsADirectoryError, "save: expected the path of a file, got the folder ''"),
        (xgrad.load, "file", FileNotFoundError, "load: file not found: file: expected a safetensors file"),
        (xgrad.load, ".", IsADirectoryError, "load: expected a safetensors file, got the folder"),
    ],
)
def test_invalid_paths_are_refused(call, name, error, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=text):
        call(*([{}] if call is xgrad.save else []), name)
    assert not list(tmp_path.iterdir())


def test_path_of_bytes_is_accepted(path):
    xgrad.save({"x": xgrad.zeros(1)}, os.fsencode(path))
    assert xgrad.load(path)["x"].tolist() == [0]


def test_read_protected_file_is_refused(path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.R_OK)  # root may read everything
    with pytest.raises(PermissionError, match=r"load: expected a file that can be read, got .*file: change its mode"):
        xgrad.load(path)


def test_damaged_files_are_refused(path):
    whole = path.read_bytes()
    for content in (b"", whole[:4], whole[:40], whole[:-1], whole + b"x", b"PK\x03\x04" + bytes(100), whole[8:]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"load: expected a safetensors file, got .*, which is damaged"):
            xgrad.load(path)
