import gzip
import hashlib
import os
import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import xgrad.cli
from xgrad.data import images, mirrors

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
    monkeypatch.setattr(mirrors, "MIRRORS", ("http://127.0.0.1:1/",))


@pytest.fixture
def run(capsys):
    """The command line, in this process."""

    def call(*argv) -> Result:
        capsys.readouterr()
        return Result(xgrad.cli.main([str(part) for part in argv]), *capsys.readouterr())

    return call


@pytest.fixture
def small_mnist(tmp_path, monkeypatch) -> Path:
    """A folder with a data set that has the names and shapes of MNIST, and 300 images."""
    folder = tmp_path / "small"
    folder.mkdir()
    rng, sums = np.random.default_rng(0), {}
    for name in images._SHA256:
        shape = (200 if "train" in name else 100, 28, 28)[: 3 if "images" in name else 1]
        values = rng.integers(0, 256 if "images" in name else 10, shape, dtype=np.uint8)
        content = struct.pack(f">HBB{len(shape)}I", 0, 8, len(shape), *shape) + values.tobytes()
        sums[name] = hashlib.sha256(content).hexdigest()
        (folder / f"{name}.gz").write_bytes(gzip.compress(content))
    monkeypatch.setattr(images, "_SHA256", sums)
    return folder


@pytest.fixture
def real_mnist() -> Path:
    if MNIST is None:
        pytest.skip("needs MNIST: set XGRAD_DATA to its folder")
    return MNIST
