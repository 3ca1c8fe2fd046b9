"""Mutated files raise documented errors only, in bounded memory and time.

``XGRAD_FUZZ=10000`` sets the number of mutations of each format, ``FUZZ_SEED=1`` their seed.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import shutil
import struct
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import xgrad
from xgrad.cli import main
from xgrad.cli.arguments import UsageError
from xgrad.cli.images import read_image
from xgrad.data import DataError, read_idx
from xgrad.serialization import _checksum

resource = pytest.importorskip("resource", reason="needs a system that measures memory")

MUTATIONS = int(os.environ.get("XGRAD_FUZZ", "150"))
SEED = os.environ.get("FUZZ_SEED", "")
MEGABYTES, SECONDS = 300, 10.0  # bounds for all mutations of a format, and for one
TOKENS = [
    b"1e999",
    b"-1",
    b"NaN",
    b"null",
    b"{}",
    b"[",
    b'"',
    b"\0",
    b"\xff" * 8,
    b"\x7f" + b"\xff" * 7,
]
TOKENS += [
    b"9" * 25,
    b"9" * 5000,
    b"[" * 5000,
    b"(" * 300,
    b'{"a":' * 2000,
    b"\\ud800",
    b"O8",
    b">f8",
    b"1" * 10,
]
SHAPE = (8, 8)


def mutated(content: bytes, chance: random.Random) -> bytes:
    """Return content with a few changes, most of them near its start, where a header is."""
    data = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        at = chance.randrange(min(len(data), chance.choice((16, 200, 10**9))) + 1)
        end = at + chance.choice((0, 1, 1, 2, 8, 30))
        change = chance.randrange(6)
        if change == 0 and at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        elif change == 1:
            del data[at:]
        elif change == 2:
            data[at:end] = chance.choice(TOKENS)
        elif change == 3:
            data[at:end] = chance.randbytes(end - at)
        elif change == 4:
            data[at:at] = data[at:end]
        else:
            numbers = [i for i, c in enumerate(data) if chr(c).isdigit()]
            if numbers:
                at = chance.choice(numbers)
                data[at : at + 1] = chance.choice(TOKENS)
    return bytes(data)


def safetensors(folder: Path) -> bytes:
    values = {
        "0.weight": xgrad.ones((3, 4)),
        "1": xgrad.ones(2, dtype="int64"),
        "": xgrad.ones(()) > 0,
    }
    xgrad.save(values, folder / "valid")
    return (folder / "valid").read_bytes()


STATE = {
    "model": {"0.weight": xgrad.ones((3, 4)), "0.bias": xgrad.zeros(3)},
    "optimizer": {
        "state": {0: {"step": 1, "z": xgrad.asarray([1j], dtype="complex128")}},
        "betas": (0.9, 0.999),
    },
    "metrics": [{"epoch": 1, "loss": float("nan")}, None, True, "text", 1j],
    "generator": xgrad.random.Generator(5),
}


def checkpoint(folder: Path) -> bytes:
    xgrad.save(STATE, folder / "valid")
    return (folder / "valid").read_bytes()


def idx(folder: Path) -> bytes:
    return struct.pack(">HBB2I", 0, 0x0B, 2, 2, 3) + bytes(range(12))


def npy(folder: Path) -> bytes:
    file = io.BytesIO()
    np.save(file, np.arange(64.0).reshape(SHAPE) / 64)
    return file.getvalue()


def npz(folder: Path) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, images=np.zeros(SHAPE))
    return file.getvalue()


def png(folder: Path) -> bytes:
    pillow = pytest.importorskip("PIL.Image", reason="needs Pillow: pip install 'xgrad[cli]'")
    file = io.BytesIO()
    pillow.fromarray(np.pad(np.full((4, 4), 255, np.uint8), 4)).save(file, "png")
    return file.getvalue()


FORMATS: dict[
    str, tuple[Callable[[Path], bytes], Callable[[Path], object], tuple[type[Exception], ...]]
] = {
    "x.safetensors": (safetensors, xgrad.load, (ValueError, TypeError)),
    "checkpoint.safetensors": (checkpoint, xgrad.load, (ValueError, TypeError)),
    "x.idx": (idx, read_idx, (DataError,)),
    "x.idx.gz": (lambda folder: gzip.compress(idx(folder)), read_idx, (DataError,)),
    "x.npy": (npy, lambda path: read_image(path, SHAPE, 16.0), (UsageError,)),
    "zip.npy": (npz, lambda path: read_image(path, SHAPE, 16.0), (UsageError,)),
    "x.png": (png, lambda path: read_image(path, SHAPE, 16.0), (UsageError,)),
}


@contextmanager
def bounded_memory():
    """Check that the peak of memory grows by less than a bound."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEGABYTES * 1000


@pytest.mark.parametrize("name", FORMATS)
def test_mutated_file_is_read_or_refused_as_documented(name, tmp_path):
    make, read, errors = FORMATS[name]
    content, path, refused = make(tmp_path), tmp_path / name, 0
    chance = random.Random(name + SEED)
    with bounded_memory():
        for number in range(MUTATIONS):
            data = mutated(content, chance)
            if name.endswith(".gz") and chance.random() < 0.5:
                data = gzip.compress(mutated(gzip.decompress(content), chance))
            path.write_bytes(data)
            start = time.monotonic()
            try:
                read(path)
            except errors:
                refused += 1
            except BaseException as error:
                raise AssertionError(f"mutation {number}: {data[:300]!r}") from error
            assert time.monotonic() - start < SECONDS, f"mutation {number}: {data[:300]!r}"
    assert refused > MUTATIONS / 4


def test_checkpoint_with_any_byte_changed_or_missing_is_refused_or_the_same(tmp_path):
    content, chance, path = checkpoint(tmp_path), random.Random(0), tmp_path / "changed"
    expected, refused, same = repr(STATE), 0, 0
    changed = [(i, bytes([content[i] ^ 1 << chance.randrange(8)])) for i in range(len(content))]
    files = [content[:i] + byte + content[i + 1 :] for i, byte in changed] + [
        content[:i] for i in range(len(content))
    ]
    for data in files:
        path.write_bytes(data)
        try:
            loaded = xgrad.load(path)
        except ValueError as error:
            refused += "which is damaged or of another kind" in str(error)
        else:
            same += repr(loaded) == expected
    # bytes of the name of the format, of padding, and of keys without a meaning
    assert refused + same == len(files) and same < 30


def test_mutated_state_with_a_right_checksum_is_read_or_refused(tmp_path):
    (tmp_path / "valid").write_bytes(checkpoint(tmp_path))
    with safe_open(tmp_path / "valid", "np") as file:
        state, arrays = (
            file.metadata()["xgrad.state"],
            {name: file.get_tensor(name) for name in file.keys()},  # noqa: SIM118
        )
    refused, chance = 0, random.Random(SEED)
    with bounded_memory():
        for number in range(MUTATIONS):
            text = mutated(state.encode(), chance).decode(errors="replace")
            metadata = {"xgrad.state": text, "xgrad.crc32": _checksum(text, arrays)}
            save_file(arrays, tmp_path / "mutated", metadata)
            try:
                xgrad.load(tmp_path / "mutated")
            except ValueError:
                refused += 1
            except BaseException as error:
                raise AssertionError(f"mutation {number}: {text!r}") from error
    assert refused > MUTATIONS / 4


def written(header: object, data: bytes = bytes(8), length: int | None = None) -> bytes:
    """Return a file of the format with a header of any kind, of a wrong length on request."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(
    start: int = 0, end: int = 8, shape: object = (2,), dtype: object = "F32"
) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


#: One file or more for each error of the format's own reader.
INVALID = {
    "shorter than a length": bytes(7),
    "header of no length": written(b"", b"", 0),
    "header longer than the file": written({"x": entry()}, length=10**6),
    "header longer than 100 MB": written({"x": entry()}, length=10**9),
    "length of a header that overflows": written({"x": entry()}, length=2**64 - 1),
    "header that is not UTF-8": written(b'{"\xff": 1}'),
    "header that is not JSON": written(b"{x}"),
    "header that is no object": written([]),
    "header that begins with a space": written(b" {}", b""),
    "header nested deep": written(b'{"a":' * 10**5),
    "tensor without a dtype": written({"x": {"shape": [2], "data_offsets": [0, 8]}}),
    "unknown dtype": written({"x": entry(dtype="F33")}),
    "shape with a negative length": written({"x": entry(shape=[-2])}),
    "shape with a fraction": written({"x": entry(shape=[2.0])}),
    "shape that overflows": written({"x": entry(shape=[2**33, 2**33])}),
    "shape that overflows in bytes": written({"x": entry(shape=[2**63])}),
    "fewer bytes than the shape has": written({"x": entry(0, 4)}, bytes(4)),
    "end before the start": written({"x": entry(8, 0)}),
    "data that begin after a hole": written({"x": entry(4, 12)}, bytes(12)),
    "data that overlap": written({"x": entry(), "y": entry(4, 12)}, bytes(12)),
    "offset that overflows": written({"x": entry(0, 2**64)}),
    "data that are missing": written({"x": entry()}, bytes(4)),
    "data after the last tensor": written({"x": entry()}, bytes(9)),
    "bits that do not fill a byte": written({"x": entry(0, 1, [1], "F4")}, bytes(1)),
    "the same name twice": written(b'{"x":%b,"x":%b}' % ((json.dumps(entry()).encode(),) * 2)),
    "metadata other than an object": written({"__metadata__": 1, "x": entry()}),
    "metadata other than strings": written({"__metadata__": {"a": 1}, "x": entry()}),
    "metadata twice": written(b'{"__metadata__":{},"__metadata__":{}}', b""),
}


@pytest.mark.parametrize("kind", INVALID)
def test_invalid_safetensors_file_is_refused(kind, tmp_path):
    (tmp_path / "file").write_bytes(INVALID[kind])
    with (
        bounded_memory(),
        pytest.raises(ValueError, match="load: expected a safetensors file, got "),
    ):
        xgrad.load(tmp_path / "file")
    (tmp_path / "file").write_bytes(written({"x": entry()}))  # a valid file, for comparison
    assert xgrad.load(tmp_path / "file")["x"].tolist() == [0, 0]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a training run, with an image."""
    out = tmp_path_factory.mktemp("hostile") / "out"
    options = (
        "--hidden",
        "4",
        "--epochs",
        "1",
        "--batch-size",
        "500",
        "--device",
        "cpu",
        "--quiet",
    )
    assert main(["train", "digits", *options, "--out", str(out)]) == 0
    np.save(out / "image.npy", np.arange(64.0).reshape(SHAPE) / 64)
    return out


@pytest.fixture
def folder(trained, tmp_path):
    """A copy of the folder of the training run."""
    return Path(shutil.copytree(trained, tmp_path / "copied"))


@pytest.mark.parametrize("image", [False, True], ids=["data set", "image"])
def test_mutated_configuration_is_used_or_refused_in_one_line(image, folder, capsys):
    chance, refused = random.Random(f"{image}{SEED}"), 0
    # Without unused fields, so that more mutations hit the used ones.
    used = (
        "dataset",
        "hidden",
        "activation",
        "dropout",
        "image_shape",
        "classes",
        "class_names",
        "grey_values",
    )
    config = json.loads((folder / "config.json").read_bytes())
    content = json.dumps({name: config[name] for name in used}).encode()
    argv = ["predict", str(folder), *([str(folder / "image.npy")] if image else [])]
    with bounded_memory():
        for number in range(MUTATIONS):
            data = mutated(content, chance)
            (folder / "config.json").write_bytes(data)
            capsys.readouterr()
            try:
                status = main(argv)
            except BaseException as error:
                raise AssertionError(f"mutation {number}: {data!r}") from error
            refused += status == 2
            err = capsys.readouterr().err
            assert (status, err.count("\n")) in ((0, 0), (2, 1)), (
                f"mutation {number}: {data!r}: {err}"
            )
    assert refused > MUTATIONS / 4


CHANGES = [
    {"image_shape": [1e999, 8]},
    {"image_shape": [8.5, 8]},
    {"image_shape": [-8, -8]},
    {"image_shape": [10**9, 10**9]},
    {"classes": 1e999},
    {"classes": 10.0},
    {"hidden": [10**9, 10**9]},
    {"hidden": [4, 10**6]},
    {"hidden": "12"},
    {"hidden": 4},
    {"class_names": list(range(10))},
    {"dropout": [1]},
    {"activation": []},
    {"dataset": []},
    {"grey_values": {"mean": 10**400, "std": 1, "largest": 1}},
    {"grey_values": 3},
]
TEXTS = ["[" * 10**5, '{"a":' * 10**5, "9" * 5000, "", "[]", " " * 2**21, "\ud800"]


@pytest.mark.parametrize("config", [*CHANGES, *TEXTS], ids=lambda config: str(config)[:40])
def test_invalid_configuration_is_refused_in_one_line(config, folder, capsys):
    if isinstance(config, dict):
        config = json.dumps(json.loads((folder / "config.json").read_bytes()) | config)
    (folder / "config.json").write_bytes(config.encode("utf-8", "surrogatepass"))
    with bounded_memory():
        assert main(["predict", str(folder), str(folder / "image.npy")]) == 2
    out, err = capsys.readouterr()
    assert not out and err.startswith("xgrad predict: expected ") and err.count("\n") == 1


def test_array_of_another_shape_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "large.npy"
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "|u1", "fortran_order": False, "shape": (2**30,)}
        )
        file.truncate(file.tell() + 2**30)
    with bounded_memory(), pytest.raises(UsageError, match=r"got uint8 of shape \(1073741824,\)"):
        read_image(path, SHAPE, 16.0)


def test_picture_of_too_many_pixels_is_refused(tmp_path):
    pillow = pytest.importorskip("PIL.Image", reason="needs Pillow: pip install 'xgrad[cli]'")
    pillow.new("1", (10000, 10000)).save(tmp_path / "bomb.png")
    with pytest.raises(
        UsageError, match=r"bomb\.png: Image size \(100000000 pixels\) exceeds limit"
    ):
        read_image(tmp_path / "bomb.png", SHAPE, 16.0)
