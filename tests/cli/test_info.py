"""``xgrad info``: versions, devices, data."""

from __future__ import annotations

import json
import re
import sys
from importlib import metadata

import numpy as np
import pytest

import xgrad
from xgrad.backend import DeviceError
from xgrad.cli import info


def test_report_lists_versions_devices_and_data(run, tmp_path):
    status, out, err = run("info")
    assert status == 0 and not err
    assert f"numpy             {np.__version__}" in out and f"xgrad             {xgrad.__version__}" in out
    assert f"  cpu               NumPy {np.__version__}" in out
    assert "XGRAD_DATA        not set" in out and f" in {tmp_path / 'cache' / 'xgrad' / 'mnist'}, " in out


def test_every_requirement_of_the_library_has_its_version():
    of_tests = {"array-api-extra", "einops", "pytest", "pytest-xdist", "scikit-learn", "mypy", "ruff"}
    of_tests |= {"autograd", "mygrad", "furo", "myst-nb", "sphinx"}
    required = {re.match(r"[\w-]+", line)[0].lower() for line in metadata.requires("xgrad")}
    assert required - of_tests <= info.versions().keys()


def test_report_is_json_on_request(run, small_mnist, monkeypatch):
    monkeypatch.setenv("XGRAD_DATA", str(small_mnist))
    report = json.loads(run("info", "--json").out)
    assert report["versions"]["safetensors"] == metadata.version("safetensors")
    assert report["devices"][0]["name"] == "cpu" and report["devices"][0]["usable"]
    usable = [device["name"] for device in report["devices"] if device["usable"]]
    assert usable == [str(device) for device in xgrad.devices()]
    assert report["data"]["XGRAD_DATA"] == str(small_mnist)
    assert report["data"]["mnist"] == f"200 training and 100 test images, found in {small_mnist}"


def test_unusable_devices_and_missing_packages_are_reported(run, monkeypatch):
    open_backend, version = info.open_backend, metadata.version

    def broken(kind):
        if kind == "cuda":
            raise DeviceError("cuda: the driver is missing: install it")
        return open_backend(kind)

    def missing(name):
        if name == "matplotlib":
            raise metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(info, "open_backend", broken)
    monkeypatch.setattr(metadata, "version", missing)
    out = run("info").out
    assert "  cuda              not usable: the driver is missing: install it\n" in out
    assert "  matplotlib        not installed\n" in out


def test_threads_of_blas_are_reported(run, monkeypatch):
    pytest.importorskip("threadpoolctl", reason="needs threadpoolctl: pip install 'xgrad[threads]'")
    libraries = json.loads(run("info", "--json").out)["blas"]
    assert max(library["threads"] for library in libraries) == xgrad.get_num_threads()
    assert f"threads: {xgrad.get_num_threads()}\n" in run("info").out
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    assert "\nBLAS\n  not known: threadpoolctl is missing" in run("info").out
