import gzip
import hashlib
import os
import struct
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import xgrad.cli
from xgrad.data import mirrors
from xgrad.data.published import SETS

MNIST = Path(os.environ["XGRAD_DATA"]).resolve() if os.environ.get("XGRAD_DATA") else None


class Result(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def nowhere(monkeypatch, tmp_path):
    """A folder of its own to work in, no data folder, an empty cache, no network."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("XGRAD_DATA", raising=False)
    monkeypatch.setenv("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(mirrors, "MIRRORS", dict.fromkeys(mirrors.MIRRORS, ("http://127.0.0.1:1/",)))


@pytest.fixture
def run(capsys):
    """The command line, in this process."""

    def call(*argv) -> Result:
        capsys.readouterr()
        return Result(xgrad.cli.main([str(part) for part in argv]), *capsys.readouterr())

    return call


def small(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a data set that has the names and shapes of MNIST or one of its kin, and 300 images."""
    folder.mkdir()
    rng, digests = np.random.default_rng(0), {}
    for file, digest in SETS[name].digests.items():
        shape = (200 if "train" in file else 100, 28, 28)[: 3 if "images" in file else 1]
        values = rng.integers(0, 256 if "images" in file else 10, shape, dtype=np.uint8)
        content = struct.pack(f">HBB{len(shape)}I", 0, 8, len(shape), *shape) + values.tobytes()
        compressed, algorithm = gzip.compress(content), digest.partition(":")[0]
        digests[file] = hashlib.new(algorithm, compressed if file.endswith(".gz") else content).hexdigest()
        digests[file] = f"{algorithm}:{digests[file]}"
        (folder / f"{file.removesuffix('.gz')}.gz").write_bytes(compressed)
    monkeypatch.setitem(SETS, name, replace(SETS[name], digests=digests))
    return folder


@pytest.fixture
def small_mnist(tmp_path, monkeypatch) -> Path:
    return small("mnist", tmp_path / "small", monkeypatch)


@pytest.fixture
def small_fashion_mnist(tmp_path, monkeypatch) -> Path:
    return small("fashion-mnist", tmp_path / "fashion", monkeypatch)


@pytest.fixture
def real_mnist() -> Path:
    if MNIST is None:
        pytest.skip("needs MNIST: set XGRAD_DATA to its folder")
    return MNIST
