"""``xgrad info``: versions, devices and data, as text and JSON.

Reports are compared with installed packages, and with faults planted by the tests.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest

import xgrad
from xgrad.backend import DeviceError
from xgrad.backend.registry import open_backend
from xgrad.cli import info
from xgrad_numpy import NumpyBackend


def test_report_lists_versions_devices_and_data(run, tmp_path):
    status, out, err = run("info")
    assert status == 0 and not err
    assert (
        f"numpy             {np.__version__}" in out
        and f"xgrad             {xgrad.__version__}" in out
    )
    assert f"  cpu               NumPy {np.__version__}" in out
    assert (
        "XGRAD_DATA        not set" in out
        and f"  mnist             not found in {tmp_path / 'cache' / 'xgrad'}\n" in out
    )


def test_every_requirement_of_the_library_has_its_version():
    of_tests = {
        "array-api-extra",
        "einops",
        "pytest",
        "pytest-xdist",
        "scikit-learn",
        "mypy",
        "pyright",
        "ruff",
        "setuptools",
    }
    of_tests |= {"autograd", "mygrad"}
    of_tests |= {"fonttools", "furo", "latex2mathml", "myst-nb", "sphinx", "sphinx-copybutton"}
    of_tests |= {"playwright", "ziamath"}
    required = {re.match(r"[\w-]+", line)[0].lower() for line in metadata.requires("xgrad")}
    assert required - of_tests <= info.versions().keys()


LIBRARIES = ("array_api_strict", "dask", "jax", "mlx", "ndonnx", "torch")


def in_a_fresh_process(statements):
    """Return the value that a new process prints as JSON, after statements.

    In the process, `loaded()` returns the array libraries that are loaded.
    """
    program = (
        f"import json, sys, xgrad\ndef loaded(): return [name for name in {LIBRARIES} if name in"
        f" sys.modules]\n{statements}"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    return json.loads(done.stdout)


def test_report_opens_other_libraries_on_request_only():
    listed, loaded = in_a_fresh_process(
        "from xgrad.cli.info import gather\nprint(json.dumps([gather()['devices'], loaded()]))"
    )
    assert loaded == []
    usable = {device["name"]: (device["usable"], device["description"]) for device in listed}
    installed = find_spec("array_api_strict") is not None
    assert usable["strict"] == (
        (None, "array_api_strict is installed: `xgrad info --open` tests it")
        if installed
        else (False, "the package array_api_strict is missing")
    )
    opened = in_a_fresh_process(
        "from xgrad.cli.info import gather\nprint(json.dumps([device['name'] for device in"
        " gather(every=True)['devices'] if device['usable']]))"
    )
    assert ("strict:2" in opened) == installed


def test_listing_devices_imports_no_other_library():
    listed, of_info, loaded = in_a_fresh_process(
        "lists = xgrad.devices(), xgrad.__array_namespace_info__().devices()\n"
        "print(json.dumps([*([str(device) for device in devices] for devices in lists), loaded()]))"
    )
    assert (
        listed == of_info
        and listed[0] == "cpu"
        and {name.partition(":")[0] for name in listed} <= {"cpu", "cuda"}
    )
    assert loaded == []


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
    version = metadata.version

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
    assert (
        "\nCUDA\n  driver, runtime, TF32 and memory pools are not known: the driver is missing:"
        " install it\n" in out
    )
    assert "  matplotlib        not installed\n" in out
    assert json.loads(run("info", "--json").out)["cuda"].endswith(
        "not known: the driver is missing: install it"
    )


def test_cuda_and_memory_are_reported(run, monkeypatch):
    versions = {"cupy": "14.2.0", "cuda_runtime": "13.2", "cuda_driver": "13.0"}
    memory = {"used": 512, "total": 8 << 30}
    gpu = SimpleNamespace(versions=lambda: versions, tf32=True)
    monkeypatch.setattr(
        info, "open_backend", lambda kind: gpu if kind == "cuda" else open_backend(kind)
    )
    monkeypatch.setattr(NumpyBackend, "memory", lambda self, index: memory)
    out, report = run("info").out, json.loads(run("info", "--json").out)
    assert (
        "\nCUDA\n  cupy              14.2.0\n  cuda_runtime      13.2\n  cuda_driver       13.0\n"
        in out
    )
    assert (
        "\n  tf32              on\n" in out
        and "\n                    memory: 512 B used, 8.6 GB total\n" in out
    )
    assert report["cuda"] == versions | {"tf32": True} and report["devices"][0]["memory"] == memory


def test_native_kernels_are_reported(run, tmp_path, monkeypatch):
    monkeypatch.delenv("XGRAD_CACHE_DIR", raising=False)
    monkeypatch.setenv("CC", f"{sys.executable} -I")  # which prints its version, too
    line = (
        f"{sys.executable} -I (Python {platform.python_version()}), cache:"
        f" {tmp_path / 'cache/xgrad/native'}"
    )
    if sys.platform == "win32":
        line = "not available: native kernels need Linux or macOS, got win32"
    assert f"\nnative kernels\n  {line}\n" in run("info").out
    assert json.loads(run("info", "--json").out)["native"] == line
    monkeypatch.setenv("CC", "missing")
    assert (
        "\nnative kernels\n  not available: expected a C compiler in CC, found no program 'missing'"
        in run("info").out
    )
    monkeypatch.setenv("XGRAD_NATIVE", "0")
    assert "\nnative kernels\n  off, by XGRAD_NATIVE=0\n" in run("info").out


def test_threads_of_blas_are_reported(run, monkeypatch):
    pytest.importorskip("threadpoolctl", reason="needs threadpoolctl: pip install 'xgrad[threads]'")
    libraries = json.loads(run("info", "--json").out)["blas"]
    assert max(library["threads"] for library in libraries) == xgrad.get_num_threads()
    assert f"threads: {xgrad.get_num_threads()}\n" in run("info").out
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    assert "\nBLAS\n  not known: threadpoolctl is missing" in run("info").out
