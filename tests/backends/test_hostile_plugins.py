"""Plug-ins that fail in any way: they are listed with the reason, and nothing else changes."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad.backend import Backend, DeviceError
from xgrad.backend.registry import backend_class, entry_points, open_backend
from xgrad.cli.info import as_text, gather
from xgrad_numpy import NumpyBackend


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class OwnBaseError(BaseException):
    """An exception that is no Exception."""


ERRORS = [
    ImportError("no libthing.so"),
    AttributeError("module 'm' has no attribute 'Nope'"),
    ValueError("two\nlines"),
    SystemExit(3),
    GeneratorExit(),
    StopIteration(),
    RecursionError("maximum recursion depth exceeded"),
    SyntaxError("invalid syntax", ("plug.py", 3, 1, "x = =\n")),
    OwnBaseError("base"),
    UnprintableError(),
]
IDS = [type(error).__name__ for error in ERRORS]


class Cells(np.ndarray):
    """The arrays of the plug-ins below."""


class Working(NumpyBackend):
    """A plug-in that works; tests replace one part of it."""

    library = __name__.partition(".")[0]
    array_type: Any = Cells


def raising(error: BaseException) -> Any:
    def method(*args: object) -> Any:
        raise error

    return method


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(xgrad.Device, "_known", dict(xgrad.Device._known))

    def install(load: Any) -> None:
        backend_class.cache_clear()
        open_backend.cache_clear()
        monkeypatch.setitem(entry_points(), "odd", SimpleNamespace(load=load, value="odd_package:Odd"))

    yield install
    backend_class.cache_clear()
    open_backend.cache_clear()


def check_unusable(reason: str = "") -> None:
    """Check that the reason is reported, in one line, and that other devices work."""
    with pytest.raises(DeviceError, match="odd: the plug-in odd_package:Odd cannot be used: ") as caught:
        xgrad.Device("odd")
    assert reason in str(caught.value) and "\n" not in str(caught.value)
    check_listed(reason)


def check_listed(reason: str) -> None:
    listed = {device["name"]: device for device in gather()["devices"]}
    assert not listed["odd"]["usable"] and reason in listed["odd"]["description"]
    assert "  odd               not usable: the plug-in odd_package:Odd cannot be used: " in as_text(gather())
    assert listed["cpu"]["usable"] and str(xgrad.devices()[0]) == "cpu"
    assert xgrad.asarray(np.ones(2)).tolist() == [1, 1]
    with pytest.raises(TypeError, match="expected numbers"):
        xgrad.asarray(SimpleNamespace())


@pytest.mark.parametrize("error", ERRORS, ids=IDS)
def test_any_error_at_import_makes_the_plug_in_unusable(error: BaseException, install: Any) -> None:
    install(raising(error))
    check_unusable(type(error).__name__)
    assert "odd" not in {device.type for device in xgrad.devices()}


@pytest.mark.parametrize("error", ERRORS, ids=IDS)
@pytest.mark.parametrize("method", ["__init__", "count", "native_device", "array_converter", "device_context", "dtype"])
def test_any_error_of_a_method_makes_the_plug_in_unusable(method: str, error: BaseException, install: Any) -> None:
    install(lambda: type("Odd", (Working,), {method: raising(error)}))
    check_unusable(type(error).__name__)
    assert "odd" not in {device.type for device in xgrad.devices()}


@pytest.mark.parametrize("method", ["describe", "memory"])
def test_an_error_in_the_description_is_listed(method: str, install: Any) -> None:
    install(lambda: type("Odd", (Working,), {method: raising(SystemExit("later"))}))
    check_listed("SystemExit: later")


@pytest.mark.parametrize(
    "loaded",
    [
        None,
        Backend,
        NumpyBackend(),
        int,
        lambda: NumpyBackend(),
        type("NoLibrary", (Backend,), {}),
        type("NoNamespace", (Working,), {"__init__": lambda self: None}),
        type("NoNumber", (Working,), {"count": lambda self: "two"}),
        type("Negative", (Working,), {"count": lambda self: -1}),
    ],
)
def test_what_is_no_backend_is_unusable(loaded: Any, install: Any) -> None:
    install(lambda: loaded)
    check_unusable()


def test_a_keyboard_interrupt_stays_one(install: Any) -> None:
    install(raising(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        xgrad.devices()


@pytest.mark.parametrize("error", ERRORS, ids=IDS)
def test_an_array_that_its_plug_in_cannot_place_is_converted_as_any_other(error: BaseException, install: Any) -> None:
    install(lambda: type("Odd", (Working,), {"index_of": raising(error)}))
    assert str(xgrad.asarray(np.ones(2).view(Cells)).device) == "cpu"


def test_a_missing_module_or_name_is_the_reason(install: Any) -> None:
    for value, reason in (("nowhere_at_all:Odd", "No module named"), ("xgrad_numpy:Nope", "no attribute 'Nope'")):
        point = metadata.EntryPoint("odd", value, "xgrad.backends")
        install(point.load)
        check_unusable(reason)


def distribution(folder: Path, name: str, entries: str) -> None:
    """Write what an installed distribution leaves."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text(f"[xgrad.backends]\n{entries}\n", "utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(xgrad.Device, "_known", dict(xgrad.Device._known))
    monkeypatch.syspath_prepend(tmp_path)
    caches = (entry_points, backend_class, open_backend)
    for cached in caches:
        cached.cache_clear()
    yield tmp_path
    for cached in caches:
        cached.cache_clear()


@pytest.mark.parametrize("name", ["cpu", "cuda", "strict", "torch"])
def test_a_plug_in_with_the_name_of_a_built_in_device_is_refused(name: str, folder: Path) -> None:
    distribution(folder, "evil", f"{name} = evil_package:Evil")
    assert entry_points()[name].value.startswith("xgrad_")
    listed = {device["name"]: device for device in gather()["devices"]}
    refused = listed[f"{name} (evil_package:Evil)"]
    assert not refused["usable"]
    assert refused["description"] == f"the name {name!r} is taken by xgrad: rename the plug-in, or remove it"
    assert str(xgrad.Device("cpu")) == "cpu" and type(open_backend("cpu")).__module__ == "xgrad_numpy"


def test_two_plug_ins_with_one_name_are_refused(folder: Path) -> None:
    distribution(folder, "one", "odd = one_package:Odd\nfine = xgrad_numpy:NumpyBackend")
    distribution(folder, "two", "odd = two_package:Odd\nfine = xgrad_numpy:NumpyBackend")
    reason = "expected one plug-in of this name, got one_package:Odd and two_package:Odd: remove all but one"
    with pytest.raises(DeviceError, match=f"odd: {reason}"):
        xgrad.Device("odd")
    assert reason in {device["description"] for device in gather()["devices"]}
    assert "odd" not in {device.type for device in xgrad.devices()}
    assert str(xgrad.ones(2, device="fine").device) == "fine", "one backend declared twice is no conflict"
