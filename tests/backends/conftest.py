"""Fixtures that install plug-ins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from xgrad.backend.device import Device
from xgrad.backend.registry import backend_class, entry_points, open_backend


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, Callable[[], Any]], None]]:
    """A function that installs a plug-in.

    It takes the name of the plug-in's device, and a function that loads its class.
    """
    monkeypatch.setattr(Device, "_known", dict(Device._known))

    def install(name: str, load: Callable[[], Any]) -> None:
        backend_class.cache_clear()
        open_backend.cache_clear()
        monkeypatch.setitem(
            entry_points(), name, SimpleNamespace(load=load, value=f"{name}_package:Plugin")
        )

    yield install
    backend_class.cache_clear()
    open_backend.cache_clear()
