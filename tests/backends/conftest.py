"""Fixtures that install plug-ins, and the folder of kernels compiled for the host, one for all workers of a run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import host_cuda
from xgrad.backend.device import Device
from xgrad.backend.registry import backend_class, entry_points, open_backend


@pytest.fixture(scope="session", autouse=True)
def _compiles_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    base = tmp_path_factory.getbasetemp()
    run = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    host_cuda.folder = run / "kernels"
    host_cuda.folder.mkdir(exist_ok=True)


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, Callable[[], Any]], None]]:
    """A function that installs a plug-in, given the name of its device and a function that loads its class."""
    monkeypatch.setattr(Device, "_known", dict(Device._known))

    def install(name: str, load: Callable[[], Any]) -> None:
        backend_class.cache_clear()
        open_backend.cache_clear()
        monkeypatch.setitem(entry_points(), name, SimpleNamespace(load=load, value=f"{name}_package:Plugin"))

    yield install
    backend_class.cache_clear()
    open_backend.cache_clear()
