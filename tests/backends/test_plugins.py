"""Plug-ins of other distributions work as xgrad's own; those that fail are listed with the reason.

Small backends of this file, some of them broken, stand for the plug-ins.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import array_api_compat.numpy
import numpy as np
import pytest

import xgrad
from xgrad.backend import Backend, DeviceError
from xgrad.backend.registry import backend_class, entry_points, open_backend
from xgrad.cli.info import as_text, gather
from xgrad_numpy import NumpyBackend

ROOT = Path(xgrad.__file__).parents[1]


@pytest.fixture(autouse=True)
def no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave MNIST unread, which each report of devices would read."""
    monkeypatch.setenv("XGRAD_DATA", "no folder")


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


def test_only_its_plug_in_imports_cupy() -> None:
    sources = [
        path
        for folder in ("xgrad", "backends", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
    ]
    own_memory = {"device_figures.py", "gpu_sanitized.py"}  # benchmarks of CuPy's memory pool
    others = [x for x in sources if "xgrad_cupy" not in x.parts and x.name not in own_memory]
    assert len(others) > 20
    assert [(str(path), name) for path in others for name in imports(path) if "cupy" in name] == []
    own = [name for path in sources if "xgrad_cupy" in path.parts for name in imports(path)]
    assert {"cupy", "cupyx", "array_api_compat.cupy"} <= set(own)


def test_devices_begin_with_the_cpu() -> None:
    names = [str(device) for device in xgrad.devices()]
    assert names[0] == "cpu" and names.count("cpu") == 1


# A plug-in of another distribution


class Slate(np.ndarray):
    """The arrays of another library."""


def slate(value: Any) -> Slate:
    return np.asarray(value).view(Slate)


class SlateBackend(Backend):
    """A backend after ``backends/README.md``."""

    library = __name__.partition(".")[0]
    array_type = Slate
    devices = ("cpu", "cpu")
    synchronized = 0

    def __init__(self) -> None:
        self.xp = SimpleNamespace(**vars(array_api_compat.numpy), index_add=self.index_add)
        for name in ("zeros", "ones", "empty", "arange", "full"):
            setattr(self.xp, name, self._slate(getattr(array_api_compat.numpy, name)))

    def _slate(self, create: Callable[..., np.ndarray]) -> Callable[..., Slate]:
        return lambda *args, device=None, **options: slate(create(*args, **options))

    def to_host(self, x: Slate) -> np.ndarray:
        return x.view(np.ndarray)

    def from_host(self, x: np.ndarray, index: int) -> Slate:
        return slate(x)

    def index_add(self, x: Slate, key: Any, values: Slate) -> Slate:
        np.add.at(x, key, values)
        return x

    def synchronize(self, index: int) -> None:
        type(self).synchronized += 1


def test_plug_in_of_another_distribution_is_a_device(install: Any) -> None:
    install("odd", lambda: SlateBackend)
    assert "odd" not in {device.type for device in xgrad.devices()}, "it has not been used yet"
    device = xgrad.Device("odd")
    assert {"odd", "odd:1"} <= {str(device) for device in xgrad.devices()}
    assert [str(device) for device in xgrad.devices("odd")] == ["odd", "odd:1"]
    assert device is xgrad.Device("odd:0")
    x = xgrad.asarray([1.0, 2.0, 3.0], device="odd", requires_grad=True)
    assert type(x.device.backend) is SlateBackend
    y = xgrad.sum(x[[0, 0, 2]] * x * x)
    assert y.item() == 1 + 4 + 27
    y.backward()
    assert x.grad is not None
    assert (x.grad.device, x.grad.dtype, x.grad.tolist()) == (
        device,
        xgrad.float32,
        [2 + 1 + 4, 4, 27],
    )
    assert (x.to("cpu").device, x.to("cpu").tolist()) == (xgrad.Device("cpu"), [1, 2, 3])
    with xgrad.default_device("odd:1"):
        assert str(xgrad.zeros(2).device) == "odd:1"
    with pytest.raises(DeviceError, match=r"cpu.*odd|odd.*cpu"):
        x + xgrad.ones(3)
    before = SlateBackend.synchronized
    device.synchronize()
    assert SlateBackend.synchronized == before + 1
    assert device.memory() == {}


def test_unknown_device_lists_the_known_ones(install: Any) -> None:
    install("odd", lambda: SlateBackend)
    with pytest.raises(
        DeviceError, match=r"unknown device 'clay': the installed backends are .*odd"
    ):
        xgrad.Device("clay")
    with pytest.raises(
        DeviceError, match="unknown device 'odd:2': this machine has 2 of type 'odd'"
    ):
        xgrad.Device("odd:2")


# Plug-ins that fail


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
each_error = pytest.mark.parametrize(
    "error", ERRORS, ids=[type(error).__name__ for error in ERRORS]
)


class Working(NumpyBackend):
    """A plug-in that works; tests replace a method of it."""

    library = __name__.partition(".")[0]
    array_type: Any = Slate


def raising(error: BaseException) -> Any:
    def method(*args: object) -> Any:
        raise error

    return method


def check_unusable(reason: str = "") -> None:
    """Check that the reason is reported, in one line, and that other devices work."""
    with pytest.raises(
        DeviceError, match="odd: the plug-in odd_package:Plugin cannot be used: "
    ) as caught:
        xgrad.Device("odd")
    assert reason in str(caught.value) and "\n" not in str(caught.value)
    assert "odd" not in {device.type for device in xgrad.devices()}
    check_listed(reason)


def check_listed(reason: str) -> None:
    report = gather(every=True)
    listed = {device["name"]: device for device in report["devices"]}
    assert not listed["odd"]["usable"] and reason in listed["odd"]["description"]
    assert (
        "  odd               not usable: the plug-in odd_package:Plugin cannot be used: "
        in as_text(report)
    )
    assert listed["cpu"]["usable"] and str(xgrad.devices()[0]) == "cpu"
    assert xgrad.asarray(np.ones(2)).tolist() == [1, 1]
    with pytest.raises(TypeError, match="expected numbers"):
        xgrad.asarray(SimpleNamespace())


@each_error
def test_plug_in_with_error_at_import_is_unusable(error: BaseException, install: Any) -> None:
    install("odd", raising(error))
    check_unusable(type(error).__name__)


@each_error
@pytest.mark.parametrize(
    "method", ["__init__", "count", "native_device", "array_converter", "device_context", "dtype"]
)
def test_plug_in_with_error_in_method_is_unusable(
    method: str, error: BaseException, install: Any
) -> None:
    install("odd", lambda: type("Odd", (Working,), {method: raising(error)}))
    check_unusable(type(error).__name__)


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
def test_plug_in_that_is_no_backend_is_unusable(loaded: Any, install: Any) -> None:
    install("odd", lambda: loaded)
    check_unusable()


@pytest.mark.parametrize(
    ("value", "reason"),
    [("nowhere_at_all:Odd", "No module named"), ("xgrad_numpy:Nope", "no attribute 'Nope'")],
)
def test_plug_in_without_its_module_or_class_is_unusable(
    value: str, reason: str, install: Any
) -> None:
    install("odd", metadata.EntryPoint("odd", value, "xgrad.backends").load)
    check_unusable(reason)


@pytest.mark.parametrize("method", ["describe", "memory"])
def test_error_in_description_of_plug_in_is_listed(method: str, install: Any) -> None:
    install("odd", lambda: type("Odd", (Working,), {method: raising(SystemExit("later"))}))
    check_listed("SystemExit: later")


def test_reason_of_plug_in_itself_is_kept(install: Any) -> None:
    install(
        "odd",
        lambda: type(
            "Odd", (Working,), {"__init__": raising(DeviceError("odd: nothing is missing"))}
        ),
    )
    with pytest.raises(DeviceError, match=r"^odd: nothing is missing$"):
        xgrad.Device("odd")
    assert "odd" not in {device.type for device in xgrad.devices()}


def test_keyboard_interrupt_in_plug_in_is_raised(install: Any) -> None:
    install("odd", raising(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        xgrad.devices("odd")


@each_error
def test_array_with_error_in_its_plug_in_is_converted(error: BaseException, install: Any) -> None:
    install("odd", lambda: type("Odd", (Working,), {"index_of": raising(error)}))
    assert str(xgrad.asarray(np.ones(2).view(Slate)).device) == "cpu"


# Names


def distribution(folder: Path, name: str, entries: str) -> None:
    """Write the metadata of an installed distribution."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text(f"[xgrad.backends]\n{entries}\n", "utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A folder of distributions."""
    monkeypatch.setattr(xgrad.Device, "_known", dict(xgrad.Device._known))
    monkeypatch.syspath_prepend(tmp_path)
    caches = (entry_points, backend_class, open_backend)
    for cached in caches:
        cached.cache_clear()
    yield tmp_path
    for cached in caches:
        cached.cache_clear()


@pytest.mark.parametrize("name", ["cpu", "cuda", "strict", "torch"])
def test_plug_in_with_name_of_xgrads_own_is_refused(name: str, folder: Path) -> None:
    distribution(folder, "evil", f"{name} = evil_package:Evil")
    assert entry_points()[name].value.startswith("xgrad_")
    listed = {device["name"]: device for device in gather(every=True)["devices"]}
    refused = listed[f"{name} (evil_package:Evil)"]
    assert not refused["usable"]
    assert (
        refused["description"]
        == f"the name {name!r} is taken by xgrad: rename the plug-in, or remove it"
    )
    assert (
        str(xgrad.Device("cpu")) == "cpu" and type(open_backend("cpu")).__module__ == "xgrad_numpy"
    )


def test_two_plug_ins_with_one_name_are_refused(folder: Path) -> None:
    distribution(folder, "one", "odd = one_package:Odd\nfine = xgrad_numpy:NumpyBackend")
    distribution(folder, "two", "odd = two_package:Odd\nfine = xgrad_numpy:NumpyBackend")
    reason = (
        "expected one plug-in of this name, got one_package:Odd and two_package:Odd: remove all"
        " but one"
    )
    with pytest.raises(DeviceError, match=f"odd: {reason}"):
        xgrad.Device("odd")
    assert reason in {device["description"] for device in gather(every=True)["devices"]}
    assert "odd" not in {device.type for device in xgrad.devices()}
    assert str(xgrad.ones(2, device="fine").device) == "fine", (
        "one backend declared twice is no conflict"
    )
