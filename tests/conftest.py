"""Devices under test, and checks of the state after each test."""

from __future__ import annotations

import gc
import os
import signal
import tempfile
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

import xgrad
from xgrad.backend import DeviceError
from xgrad.backend.device import intercepting
from xgrad.backend.devices import current_device

DEVICES = ("cpu", "strict", "torch", "torch:1", "cuda")
PEERS = {"torch", "jax", "onnxruntime"}  # fixtures of what ``make test-peers`` installs


def pytest_addoption(parser: pytest.Parser) -> None:
    add = parser.addoption
    add(
        "--device",
        action="append",
        help="run the tests that take a device on this one, and only those; repeatable",
    )
    add("--peers", action="store_true", help="run only the tests that need PyTorch or JAX")


def pytest_configure(config: pytest.Config) -> None:
    # of a shell's job in the background, which tests interrupt
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if "XGRAD_CACHE_DIR" not in os.environ:  # workers of a run share one
        folder = tempfile.TemporaryDirectory(prefix="xgrad-tests-")
        config.add_cleanup(folder.cleanup)
        os.environ["XGRAD_CACHE_DIR"] = folder.name
    if config.getoption("--peers"):  # or all that needs them would be skipped
        try:
            for peer in sorted(PEERS):
                import_module(peer)
            xgrad.Device("torch")
        except (ImportError, DeviceError) as error:
            raise pytest.UsageError(
                f"--peers: expected PyTorch, JAX and onnxruntime: {error}: make test-peers"
            ) from error


def usable(name: str) -> bool:
    """Return whether a device can be used here."""
    try:
        xgrad.Device(name)
    except DeviceError:
        return False
    return True


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize tests by the devices that can be used.

    `device` is one at a time, and `capturing_device` one that replays captured steps. `devices` are
    compared in one test: either PyTorch's devices, or the others.
    """
    names = metafunc.config.getoption("--device") or [name for name in DEVICES if usable(name)]
    if "device" in metafunc.fixturenames:
        metafunc.parametrize("device", names)
    given = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    if "capturing_device" in metafunc.fixturenames and "capturing_device" not in given:
        executors = [name for name in names if xgrad.Device(name).backend.executor]
        metafunc.parametrize("capturing_device", executors)
    if "devices" in metafunc.fixturenames:
        groups = [
            [name for name in names if name.startswith("torch") == peer] for peer in (False, True)
        ]
        metafunc.parametrize("devices", [group for group in groups if group], ids="+".join)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept = [item for item in items if _wanted(item, config)]
    config.hook.pytest_deselected(items=list(set(items) - set(kept)))
    items[:] = kept
    gc.collect()
    gc.freeze()  # else each collection, and each search for objects, visits all tests
    gc.collect()  # of an empty heap: its size decides when Python makes a full collection


def _wanted(item: pytest.Item, config: pytest.Config) -> bool:
    fixtures = set(getattr(item, "fixturenames", ()))
    given = getattr(item, "callspec", None)
    devices = (
        [] if given is None else [given.params.get("device", ""), *given.params.get("devices", ())]
    )
    if chosen := config.getoption("--device"):
        if not fixtures & {"device", "capturing_device", "devices"} and not (
            "cuda" in chosen and "cuda" in fixtures
        ):
            return False
        if given is not None and given.params.get("capturing_device", chosen[0]) not in chosen:
            return False
    if not config.getoption("--peers"):
        return True
    return bool(fixtures & (PEERS | {"library"})) or any(d.startswith("torch") for d in devices)


@pytest.fixture(scope="session")
def torch() -> Any:
    """PyTorch, on one thread; a test without it is skipped."""
    torch = pytest.importorskip("torch", reason="needs PyTorch: make test-peers")
    torch.set_num_threads(1)
    return torch


@pytest.fixture(scope="session")
def jax() -> Any:
    """JAX; a test without it is skipped."""
    return pytest.importorskip("jax", reason="needs JAX: make test-peers")


@pytest.fixture(scope="session")
def onnxruntime() -> Any:
    """onnxruntime without warnings; a test without it or ndonnx is skipped."""
    pytest.importorskip("ndonnx", reason="needs ndonnx: make test-peers")
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime: make test-peers")
    onnxruntime.set_default_logger_severity(4)
    return onnxruntime


@pytest.fixture(scope="session")
def strict() -> Any:
    """The device of array-api-strict; a test without it is skipped."""
    pytest.importorskip(
        "array_api_strict", reason="needs array-api-strict: pip install 'xgrad[test]'"
    )
    return xgrad.Device("strict")


@pytest.fixture(scope="session")
def cuda() -> Any:
    """The device of CuPy; a test without it is skipped."""
    if not usable("cuda"):
        pytest.skip("needs a GPU, or its emulation: make test-cuda-without-gpu")
    return xgrad.Device("cuda")


@pytest.fixture(scope="session", autouse=True)
def _strict_refuses_what_a_gpu_would_wait_for() -> None:
    try:
        import array_api_strict
    except ImportError:
        return
    array_api_strict.set_array_api_strict_flags(
        api_version="2025.12", boolean_indexing=False, data_dependent_shapes=False
    )


@pytest.fixture(autouse=True)
def _no_state_leaks() -> Iterator[None]:
    yield
    assert xgrad.is_grad_enabled(), "a test left gradients disabled"
    assert intercepting.get() is None, "a test left the detection of anomalies on"
    assert str(current_device()) == "cpu", "a test left another default device"
    assert xgrad.get_default_dtype() == xgrad.float32, "a test left another default dtype"
