"""That all backends have the same standing, and only their own plug-in loads an array library."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import array_api_compat.numpy
import numpy as np
import pytest

import xgrad
from xgrad.backend import Backend, DeviceError
from xgrad.backend.registry import entry_points

ROOT = Path(xgrad.__file__).parents[1]


def test_the_folder_of_the_plug_ins_is_no_package(tmp_path: Path) -> None:
    for name in ("backends", "tests"):
        command = [sys.executable, "-c", f"import {name}"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={"PYTHONPATH": ""})
        assert f"No module named '{name}'" in done.stderr


def imports(path: Path) -> Iterator[str]:
    """Yield the top-level names of what a file imports, by statement or by name."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module)):
                yield module
            case ast.Call(
                func=ast.Name("import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(str(module)), *_],
            ):
                yield module


def test_cupy_is_imported_by_its_plug_in_alone() -> None:
    sources = [
        path
        for folder in ("xgrad", "backends", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
        if "xgrad_cupy" not in path.parts
    ]
    assert len(sources) > 20
    mentions = [(str(path), name) for path in sources for name in imports(path) if "cupy" in name]
    assert mentions == []
    assert {"cupy", "cupyx", "array_api_compat.cupy"} <= set(imports(ROOT / "backends/xgrad_cupy/__init__.py"))


def test_devices_begin_with_the_cpu() -> None:
    devices = xgrad.devices()
    assert str(devices[0]) == "cpu"
    assert [str(device) for device in devices].count("cpu") == 1


class Slate(np.ndarray):
    """The arrays of a library that is somebody else's."""


def written(value: Any) -> Slate:
    return np.asarray(value).view(Slate)


class SlateBackend(Backend):
    """A backend as somebody else would write it, following ``backends/README.md``."""

    library = __name__.partition(".")[0]
    array_type = Slate
    synchronized = 0

    def __init__(self) -> None:
        self.xp = SimpleNamespace(**vars(array_api_compat.numpy), index_add=self.index_add)
        for name in ("zeros", "ones", "empty", "arange", "full"):
            setattr(self.xp, name, self._written(getattr(array_api_compat.numpy, name)))

    def _written(self, create: Callable[..., np.ndarray]) -> Callable[..., Slate]:
        return lambda *args, device=None, **options: written(create(*args, **options))

    def count(self) -> int:
        return 2

    def native_device(self, index: int) -> str:
        return "cpu"

    def to_host(self, x: Slate) -> np.ndarray:
        return x.view(np.ndarray)

    def from_host(self, x: np.ndarray, index: int) -> Slate:
        return written(x)

    def index_add(self, x: Slate, key: Any, values: Slate) -> Slate:
        np.add.at(x, key, values)
        return x

    def synchronize(self, index: int) -> None:
        type(self).synchronized += 1


class BrokenBackend(Backend):
    """A backend whose library is missing."""

    library = "nothing"

    def __init__(self) -> None:
        raise DeviceError("broken: the package nothing is missing: pip install nothing")


class FakeEntryPoint:
    """What an installed distribution would have declared."""

    def __init__(self, cls: type[Backend]) -> None:
        self.load = lambda: cls


@pytest.fixture
def _plug_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(entry_points(), "slate", FakeEntryPoint(SlateBackend))
    monkeypatch.setitem(entry_points(), "broken", FakeEntryPoint(BrokenBackend))
    monkeypatch.setattr(xgrad.Device, "_known", dict(xgrad.Device._known))


@pytest.mark.usefixtures("_plug_ins")
def test_a_plug_in_of_somebody_else_has_the_same_standing() -> None:
    assert {"slate", "slate:1"} <= {str(device) for device in xgrad.devices()}
    device = xgrad.Device("slate")
    assert device is xgrad.Device("slate:0")
    x = xgrad.asarray([1.0, 2.0, 3.0], device="slate", requires_grad=True)
    assert type(x.device.backend) is SlateBackend
    y = xgrad.sum(x[[0, 0, 2]] * x * x)
    assert y.item() == 1 + 4 + 27
    y.backward()
    assert x.grad is not None
    assert (x.grad.device, x.grad.dtype) == (device, xgrad.float32)
    assert x.grad.tolist() == [2 + 1 + 4, 4, 27]
    assert (x.to("cpu").device, x.to("cpu").tolist()) == (xgrad.Device("cpu"), [1, 2, 3])
    with xgrad.default_device("slate:1"):
        assert str(xgrad.zeros(2).device) == "slate:1"
    with pytest.raises(DeviceError, match=r"cpu.*slate|slate.*cpu"):
        x + xgrad.ones(3)
    before = SlateBackend.synchronized
    device.synchronize()
    assert SlateBackend.synchronized == before + 1
    assert device.memory() == {}


@pytest.mark.usefixtures("_plug_ins")
def test_a_plug_in_that_cannot_be_used_says_why_and_harms_no_other() -> None:
    with pytest.raises(DeviceError, match="broken: the package nothing is missing: pip install nothing"):
        xgrad.Device("broken")
    assert "broken" not in {device.type for device in xgrad.devices()}


@pytest.mark.usefixtures("_plug_ins")
def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(DeviceError, match=r"unknown device 'clay': the installed backends are .*slate"):
        xgrad.Device("clay")
    with pytest.raises(DeviceError, match="unknown device 'slate:2': this machine has 2 of type 'slate'"):
        xgrad.Device("slate:2")
