"""The command line in this process, and small image sets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import pytest

import xgrad.cli
from small_image_sets import install, put, small_files
from xgrad.cli.training_run import TrainingRun
from xgrad.data import mirrors

MNIST = Path(os.environ["XGRAD_DATA"]).resolve() if os.environ.get("XGRAD_DATA") else None


class Result(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def _no_data(monkeypatch, tmp_path):
    """An empty working directory, no data folder, an empty cache, no network."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("XGRAD_DATA", raising=False)
    monkeypatch.setenv(
        "LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME", str(tmp_path / "cache")
    )
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(
        mirrors, "MIRRORS", dict.fromkeys(mirrors.MIRRORS, ("http://127.0.0.1:1/",))
    )


@pytest.fixture(autouse=True)
def _no_pictures(request, monkeypatch):
    """Leave out pictures, unless the test has the fixture `pictures`.

    They take longer than the training.
    """
    if "pictures" not in request.fixturenames:
        monkeypatch.setattr(TrainingRun, "draw", lambda self, trainer: None)


@pytest.fixture
def pictures():
    pytest.importorskip("matplotlib")


@pytest.fixture
def run(capsys):
    """A function that runs a command, and returns its status and output."""

    def call(*argv) -> Result:
        capsys.readouterr()
        return Result(xgrad.cli.main([str(part) for part in argv]), *capsys.readouterr())

    return call


def small_set(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with 300 images of the size of MNIST in place of a published image set."""
    files = small_files(name, (200, 100), (28, 28))
    install(monkeypatch, name, files)
    return put(folder, files, compress=True)


@pytest.fixture
def small_mnist(tmp_path, monkeypatch) -> Path:
    return small_set("mnist", tmp_path / "small", monkeypatch)


@pytest.fixture
def small_fashion_mnist(tmp_path, monkeypatch) -> Path:
    return small_set("fashion-mnist", tmp_path / "fashion", monkeypatch)


@pytest.fixture
def real_mnist() -> Path:
    if MNIST is None:
        pytest.skip("needs MNIST: set XGRAD_DATA to its folder")
    return MNIST
