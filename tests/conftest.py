"""Devices under test, and what no test may leave behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import xgrad
from xgrad.backend import DeviceError
from xgrad.devices import current_device


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--device",
        action="append",
        help="run the tests that take a device on this one, and only those; may be repeated",
    )


def usable(name: str) -> bool:
    """Return whether a device can be used here."""
    try:
        xgrad.Device(name)
    except DeviceError:
        return False
    return True


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "device" in metafunc.fixturenames:
        asked = metafunc.config.getoption("--device")
        names = asked or [name for name in ("cpu", "strict", "torch", "torch:1", "cuda") if usable(name)]
        metafunc.parametrize("device", names)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--device"):
        items[:] = [item for item in items if "device" in getattr(item, "fixturenames", ())]


@pytest.fixture(scope="session", autouse=True)
def _strict_refuses_what_a_gpu_would_wait_for() -> None:
    try:
        import array_api_strict
    except ImportError:
        return
    array_api_strict.set_array_api_strict_flags(
        api_version="2024.12", boolean_indexing=False, data_dependent_shapes=False
    )


@pytest.fixture(autouse=True)
def _no_state_leaks() -> Iterator[None]:
    yield
    assert xgrad.is_grad_enabled(), "a test left gradients disabled"
    assert str(current_device()) == "cpu", "a test left another default device"
