"""`save` and `load`: round trips, files of other libraries, invalid tensors, files and paths.

Loaded states have the bits of the saved ones, also after further training.
"""

from __future__ import annotations

import errno
import math
import os
import pickle
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import xgrad
from xgrad import nn, optim, serialization
from xgrad.random import Generator
from xgrad.serialization import serialized, snapshot

DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128"
).split()


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


def test_keys_are_loaded_in_their_order(tmp_path):
    state = {"z": xgrad.ones(2), "count": xgrad.asarray(3), "a": xgrad.ones(0), "b": xgrad.ones(0)}
    xgrad.save(state, tmp_path / "file")
    assert list(xgrad.load(tmp_path / "file")) == list(state)


def test_views_and_leaves_are_saved_by_value(tmp_path):
    base = xgrad.asarray(np.arange(12.0).reshape(3, 4), requires_grad=True)
    tensors = {"leaf": base, "transposed": base.mT, "strided": base[::2, ::-1]}
    tensors["broadcast"] = xgrad.broadcast_to(base, (2, 3, 4))
    for saved in (tensors, {}):
        xgrad.save(saved, tmp_path / "file")
        loaded = xgrad.load(tmp_path / "file")
        assert {name: x.tolist() for name, x in loaded.items()} == {
            name: x.tolist() for name, x in saved.items()
        }


def test_snapshot_is_of_the_state_at_its_call(device, tmp_path):
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).to(device)
    optimizer = optim.Adam(net.parameters())  # matrices are then in Fortran's order
    for _ in range(2):
        x = xgrad.arange(12.0, device=device).reshape((2, 3, 2)).mT
        state = {"net": net.state_dict(), "x": x, "z": x * 1j, "optimizer": optimizer.state_dict()}
        expected, content = serialized(state), snapshot(state)
        net(xgrad.ones((2, 3), device=device)).sum().backward()
        optimizer.step()
        x[0, 0, ...] = 5.0
        states = []
        for name, file in (("expected", expected), ("snapshot", content())):
            (tmp_path / name).write_bytes(file)
            states.append(serialized(xgrad.load(tmp_path / name)))
        assert states[0] == states[1] == expected


def test_device_is_the_default_device_and_must_be_known(path):
    with xgrad.default_device("strict"):
        assert str(xgrad.load(path)["x"].device) == "strict"
    with pytest.raises(xgrad.DeviceError, match="unknown device 'tpu'"):
        xgrad.load(path, device="tpu")


def test_safetensors_reads_the_file(path):
    safetensors = pytest.importorskip("safetensors")
    with safetensors.safe_open(path, framework="np") as file:
        assert file.metadata().keys() == {"format", "xgrad.crc32"}
        assert file.get_tensor("x").tolist() == [1, 1]


NESTED = [
    None,
    True,
    2**70,
    -0.0,
    1e-310,
    math.inf,
    -math.inf,
    1j,
    complex(math.inf, -0.0),
    "",
    "\ud800\0é",
    [],
    (),
    {},
    {"a": [1, (2.5, None), {}], "b": {0: "x", -1: (), "1": False}},
    {"$tensor": "x", "$dict": []},
    {"__metadata__": 1, "xgrad.state": {"format": "xgrad"}},
]


@pytest.mark.parametrize("state", NESTED, ids=lambda state: repr(state)[:30])
def test_state_without_tensors_is_loaded_as_it_was_saved(state, tmp_path):
    xgrad.save(state, tmp_path / "file")
    loaded = xgrad.load(tmp_path / "file")
    # which also compares types, keys in order, and signs of zeros
    assert repr(loaded) == repr(state)


def test_types_of_containers_and_numbers_become_plain_ones(tmp_path):
    state = OrderedDict(
        pair=namedtuple("Pair", "x y")(np.float32(0.5), math.nan), all=[np.int64(2), np.bool_(True)]
    )
    xgrad.save(state, tmp_path / "file")
    loaded = xgrad.load(tmp_path / "file")
    assert repr(loaded) == "{'pair': (0.5, nan), 'all': [2, True]}"


def test_tensor_of_several_places_is_saved_once_and_is_one_tensor_again(tmp_path):
    x = xgrad.asarray(np.arange(1000.0))
    for state in ({"a": x, "b": x}, {"a": {"b": x}, "c": [x, 1]}):
        xgrad.save(state, tmp_path / "file")
        first, second = dict(tensors_of(xgrad.load(tmp_path / "file"))).values()
        assert first is second and first.tolist() == x.tolist()
        assert (tmp_path / "file").stat().st_size < 9000


def tensors_of(tree):
    from xgrad.support.trees import leaves

    return [(path, leaf) for path, leaf in leaves(tree) if isinstance(leaf, xgrad.Tensor)]


def test_tensors_are_named_by_their_paths_for_other_readers(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    x, z = xgrad.ones((2, 3)), xgrad.asarray([1 + 2j], dtype="complex128")
    xgrad.save(
        {"a": {"w": x, "n": 1}, "a.w": -x, "l": [x, {0: 2 * x}], "z": z, "\ud800": 3 * x},
        tmp_path / "file",
    )
    arrays = {
        name: array.tolist() for name, array in safetensors.load_file(tmp_path / "file").items()
    }
    values = {name: xgrad.asarray(array) for name, array in arrays.items()}
    assert values.pop("z").tolist() == [[1.0, 2.0]]
    assert {name: value[0, 0].item() for name, value in values.items()} == {
        "a.w": 1,
        "a.w_": -1,
        "l.1.0": 2,
        "?": 3,
    }


OPTIMIZERS = [
    optim.SGD,
    optim.Adam,
    optim.AdamW,
    optim.Adagrad,
    optim.RMSprop,
    optim.Lion,
    optim.Muon,
    optim.NAdam,
    optim.Adafactor,
    optim.ASGD,
    optim.Rprop,
]


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_training_continues_from_a_file_to_the_bit(kind, device, tmp_path):
    def parts():
        model = nn.Sequential(
            nn.Linear(30, 40), nn.BatchNorm1d(40), nn.Dropout(), nn.Linear(40, 7)
        ).to(device)
        optimizer = kind(
            [p for p in model.parameters() if kind is not optim.Muon or p.ndim == 2], lr=0.01
        )
        return (
            model,
            optimizer,
            optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=9),
            Generator(3),
        )

    def train(steps, model, optimizer, schedule, generator):
        for _ in range(steps):
            optimizer.zero_grad()
            model(generator.randn((8, 30), device=device)).square().mean().backward()
            optimizer.step()
            schedule.step()
        return [p.cpu().numpy().tobytes() for p in model.state_dict().values()]

    xgrad.manual_seed(5)
    model, optimizer, schedule, generator = first = parts()
    train(3, *first)
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "schedule": schedule.state_dict(),
    }
    xgrad.save(
        state | {"random": xgrad.random.get_state(), "generator": generator}, tmp_path / "file"
    )
    expected = train(3, *first)

    model, optimizer, schedule, _ = parts()
    loaded = xgrad.load(tmp_path / "file", device=device)
    for part, name in ((model, "model"), (optimizer, "optimizer"), (schedule, "schedule")):
        part.load_state_dict(loaded[name])
    xgrad.random.set_state(loaded["random"])
    assert train(3, model, optimizer, schedule, loaded["generator"]) == expected


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
    with pytest.raises(
        TypeError, match=r"load: 'half' in .* has the dtype BF16, which xgrad lacks: save it as F32"
    ):
        xgrad.load(tmp_path / "half")


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (
            nn.Linear(2, 2),
            r"save: expected tensors, numbers, .*, got Linear: give its state_dict\(\)",
        ),
        (
            {"x": [0, np.ones(2)]},
            r"save: expected .*, got ndarray at state\['x'\]\[1\]: use xgrad.asarray",
        ),
        ([b""], r"save: expected .*, got bytes at state\[0\]: leave it out, or convert it"),
        ({True: 1}, "save: expected keys of type str or int, got True"),
        ({"x": {(0,): 1}}, r"save: expected keys of type str or int, got .* at state\['x'\]"),
    ],
)
def test_invalid_values_are_refused_without_a_write(state, text, path):
    before = path.read_bytes()
    with pytest.raises(TypeError, match=text):
        xgrad.save(state, path)
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]


def test_state_is_nested_at_most_100_deep(path):
    deep, cycle = [xgrad.ones(1)], []
    for i in range(99):
        deep = {0: deep} if i % 2 else (deep,)
    cycle.append([cycle, cycle])
    xgrad.save(deep, path)
    assert str(xgrad.load(path)) == str(deep)
    for state in ([[deep]], cycle):
        with pytest.raises(ValueError, match="save: expected containers nested at most 100 deep"):
            xgrad.save(state, path)


def test_state_of_more_than_the_format_has_room_for_is_refused_without_a_write(path, monkeypatch):
    state, before = {"losses": ["0" * 64] * 16}, path.read_bytes()
    monkeypatch.setattr(serialization, "MAX_HEADER", 1000)
    with pytest.raises(
        ValueError,
        match=r"save: expected names, numbers and strings of at most 1000 bytes, .* got 12",
    ):
        xgrad.save(state, path)
    assert path.read_bytes() == before
    monkeypatch.undo()
    xgrad.save(state, path)
    assert xgrad.load(path) == state


def test_full_disk_leaves_the_earlier_file_or_none(path, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    other = path.parent / "other"
    for target, text in (
        (path, "the earlier file is unchanged: .*file'"),
        (other, "no part of it is left: .*other'"),
    ):
        with pytest.raises(
            OSError, match=rf"disk full: \d+ bytes were not written, {text}"
        ) as caught:
            xgrad.save({"x": xgrad.zeros(2)}, target)
        assert caught.value.errno == errno.ENOSPC and caught.value.filename == str(target)
    assert list(path.parent.iterdir()) == [path] and xgrad.load(path)["x"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("call", "name", "error", "text"),
    [
        (
            xgrad.save,
            "folder/file",
            FileNotFoundError,
            r"save: expected an existing folder, got .*: make it first",
        ),
        (xgrad.save, ".", IsADirectoryError, "save: expected the path of a file, got the folder"),
        (xgrad.save, "", IsADirectoryError, "save: expected the path of a file, got the folder ''"),
        (
            xgrad.load,
            "file",
            FileNotFoundError,
            "load: file not found: file: expected a safetensors file",
        ),
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
    # root may read everything
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.R_OK)
    with pytest.raises(
        PermissionError,
        match=r"load: expected a file that can be read, got .*file: change its mode",
    ):
        xgrad.load(path)


def test_damaged_files_are_refused(path):
    whole = path.read_bytes()
    for content in (
        b"",
        whole[:4],
        whole[:40],
        whole[:-1],
        whole + b"x",
        b"PK\x03\x04" + bytes(100),
        whole[8:],
    ):
        path.write_bytes(content)
        with pytest.raises(
            ValueError, match=r"load: expected a safetensors file, got .*, which is damaged"
        ):
            xgrad.load(path)


@pytest.mark.parametrize("kind", ["zip", "old", "script"])
@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_file_of_pytorch_is_refused_with_the_lines_that_convert_it(kind, torch, tmp_path):
    path, out = tmp_path / "model.pt", tmp_path / "weights.safetensors"
    layer = torch.nn.Linear(3, 2)
    if kind == "script":
        torch.jit.trace(layer, torch.ones(1, 3)).save(str(path))
    else:
        state = layer.state_dict()
        torch.save(state, path, _use_new_zipfile_serialization=kind == "zip")
    with pytest.raises(ValueError, match="executes no pickle") as caught:
        xgrad.load(path)
    lines = str(caught.value).splitlines()
    said = {"zip": "a file of torch.save.", "old": "before version 1.6.", "script": "TorchScript."}
    assert lines[0].startswith(f"load: expected a safetensors file, got {path}, ")
    assert lines[0].endswith(said[kind])
    code = "\n".join(line.strip() for line in lines[2:-1])
    exec(code.replace('"weights.safetensors"', repr(str(out))))
    loaded = xgrad.load(out)
    assert {k: x.tolist() for k, x in loaded.items()} == {
        k: x.tolist() for k, x in layer.state_dict().items()
    }


def test_pickle_is_refused_by_name_and_not_executed(tmp_path):
    path, evidence = tmp_path / "model.pkl", tmp_path / "evidence"

    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(evidence),)

    for protocol in (2, 3, 4, 5):
        path.write_bytes(pickle.dumps(Evil(), protocol))
        with pytest.raises(ValueError, match=r", a pickle, perhaps of torch\.save\."):
            xgrad.load(path)
    assert not evidence.exists()


def test_files_without_a_checksum_are_loaded_if_they_are_of_others(tmp_path, path):
    from safetensors.numpy import save_file

    for metadata in (None, {"format": "pt"}, {"format": "xgrad"}):
        save_file({"x": np.ones(2)}, tmp_path / "other", metadata=metadata)
        assert xgrad.load(tmp_path / "other")["x"].tolist() == [1, 1]
    for metadata in ({"format": "xgrad-3"}, {"xgrad.state": "1"}, {"xgrad.crc32": "0" * 64}):
        save_file({"x": np.ones(2)}, tmp_path / "other", metadata=metadata)
        with pytest.raises(ValueError, match="its contents do not have its checksum"):
            xgrad.load(tmp_path / "other")
