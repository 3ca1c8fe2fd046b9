"""The folder in which kernels are compiled for the host, one for all workers of a run."""

from __future__ import annotations

import os

import pytest

import host_cuda


@pytest.fixture(scope="session", autouse=True)
def _compiles_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    base = tmp_path_factory.getbasetemp()
    run = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    host_cuda.folder = run / "kernels"
    host_cuda.folder.mkdir(exist_ok=True)
