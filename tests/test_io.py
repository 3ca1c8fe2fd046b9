"""Files of tensors: what goes in comes out, and nothing half written stays."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import numpy as np
import pytest

import xgrad

DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64".split()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 3, 4)])
def test_round_trip(dtype, shape, device, tmp_path):
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


def test_layouts_and_leaves(tmp_path):
    base = xgrad.asarray(np.arange(12.0).reshape(3, 4), requires_grad=True)
    tensors = {
        "leaf": base,
        "transposed": base.mT,
        "strided": base[::2, ::-1],
        "wide": xgrad.broadcast_to(base, (2, 3, 4)),
    }
    xgrad.save(tensors, tmp_path / "file")
    loaded = xgrad.load(tmp_path / "file")
    for name, x in tensors.items():
        assert loaded[name].tolist() == x.tolist()


def test_default_device(tmp_path):
    xgrad.save({"x": xgrad.ones(2)}, tmp_path / "file")
    with xgrad.default_device("strict"):
        assert str(xgrad.load(tmp_path / "file")["x"].device) == "strict"


def test_the_format_is_safetensors(tmp_path):
    safetensors = pytest.importorskip("safetensors")
    xgrad.save({"x": xgrad.ones(2)}, tmp_path / "file")
    with safetensors.safe_open(tmp_path / "file", framework="np") as file:
        assert file.metadata() == {"format": "xgrad"}
        assert file.get_tensor("x").tolist() == [1, 1]


def test_files_of_pytorch(tmp_path, torch):
    from safetensors.torch import load_file, save_file

    state = torch.nn.Linear(3, 2).state_dict()
    save_file(state, tmp_path / "theirs")
    layer = xgrad.nn.Linear(3, 2)
    layer.load_state_dict(xgrad.load(tmp_path / "theirs"))
    xgrad.save(layer.state_dict(), tmp_path / "ours")
    for name, value in load_file(tmp_path / "ours").items():
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
def test_what_cannot_be_saved(tensors, text, tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(TypeError, match=text):
        xgrad.save(tensors, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_a_save_that_dies_leaves_what_was_there(call, error, tmp_path, monkeypatch):
    path = tmp_path / "file"
    xgrad.save({"x": xgrad.ones(2)}, path)

    def die(*arguments):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, call, die)
        with pytest.raises(type(error)):
            xgrad.save({"x": xgrad.zeros(2)}, path)
    assert list(tmp_path.iterdir()) == [path]
    assert xgrad.load(path)["x"].tolist() == [1, 1]


def test_a_full_disk_says_so_and_keeps_the_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    xgrad.save({"x": xgrad.ones(2)}, path)

    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"disk full: \d+ bytes were not written, the earlier file is unchanged: .*file'"):
        xgrad.save({"x": xgrad.zeros(2)}, path)
    assert list(tmp_path.iterdir()) == [path] and xgrad.load(path)["x"].tolist() == [1, 1]
    with pytest.raises(
        OSError, match=r"disk full: \d+ bytes were not written, no part of it is left: .*other'"
    ) as caught:
        xgrad.save({"x": xgrad.zeros(2)}, tmp_path / "other")
    assert caught.value.errno == errno.ENOSPC and caught.value.filename == str(tmp_path / "other")
    assert list(tmp_path.iterdir()) == [path]


def test_paths_that_do_not_do(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"save: expected an existing folder, got .*: make it first"):
        xgrad.save({}, tmp_path / "folder" / "file")
    with pytest.raises(IsADirectoryError, match="save: expected the path of a file, got the folder"):
        xgrad.save({}, tmp_path)
    with pytest.raises(FileNotFoundError, match=r"load: file not found: .*file: expected a safetensors file"):
        xgrad.load(tmp_path / "file")
    with pytest.raises(IsADirectoryError, match="load: expected a safetensors file, got the folder"):
        xgrad.load(tmp_path)
    assert not list(tmp_path.iterdir())


def test_paths_of_bytes_and_an_empty_path(tmp_path):
    xgrad.save({"x": xgrad.ones(1)}, os.fsencode(tmp_path / "file"))
    assert xgrad.load(tmp_path / "file")["x"].tolist() == [1]
    with pytest.raises(IsADirectoryError, match="save: expected the path of a file, got the folder ''"):
        xgrad.save({}, "")


def test_a_file_that_may_not_be_read_says_so(tmp_path, monkeypatch):
    xgrad.save({"x": xgrad.ones(1)}, tmp_path / "file")
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.R_OK)  # root may read everything
    with pytest.raises(PermissionError, match=r"load: expected a file that can be read, got .*file: change its mode"):
        xgrad.load(tmp_path / "file")


def test_a_save_keeps_the_mode_and_follows_a_link(tmp_path):
    path, link = tmp_path / "file", tmp_path / "link"
    path.touch(0o600)
    link.symlink_to(path)
    xgrad.save({"x": xgrad.ones(1)}, link)
    assert link.is_symlink() and xgrad.load(path)["x"].tolist() == [1]
    assert os.name == "nt" or path.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.name == "nt", reason="Windows has no FIFOs")
def test_a_save_to_a_fifo_leaves_it(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    reader = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    xgrad.save({"x": xgrad.ones(1)}, tmp_path / "fifo")
    xgrad.save({"x": xgrad.ones(1)}, tmp_path / "file")
    assert os.read(reader, 10**5) == (tmp_path / "file").read_bytes()
    os.close(reader)
    assert len(list(tmp_path.iterdir())) == 2


def test_damaged_files(tmp_path):
    path = tmp_path / "file"
    xgrad.save({"x": xgrad.ones(100)}, path)
    whole = path.read_bytes()
    for content in (b"", whole[:4], whole[:40], whole[:-1], whole + b"x", b"PK\x03\x04" + bytes(100), whole[8:]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"load: expected a safetensors file, got .*, which is damaged"):
            xgrad.load(path)


def test_an_empty_mapping(tmp_path):
    xgrad.save({}, tmp_path / "file")
    assert xgrad.load(tmp_path / "file") == {}


def test_an_unknown_device(tmp_path):
    xgrad.save({"x": xgrad.ones(1)}, tmp_path / "file")
    with pytest.raises(xgrad.DeviceError, match="unknown device 'tpu'"):
        xgrad.load(tmp_path / "file", device="tpu")


def test_nothing_of_this_is_loaded_early():
    code = "import sys, xgrad; print(sorted({'safetensors', 'numpy.random', 'difflib', 'tempfile'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
