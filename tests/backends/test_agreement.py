"""What holds a GPU against NumPy, on the CPU in its place."""

from __future__ import annotations

import pytest

import xgrad
from benchmarks.agreement import agreement


def test_a_device_that_agrees() -> None:
    agreed = agreement("cpu")
    assert agreed["failed"] == {}
    assert agreed["passed"] > 150


def test_a_disagreement_is_reported_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    device = xgrad.Device("cpu")
    monkeypatch.setattr(device.xp, "argmax", device.xp.argmin)
    failed = agreement("cpu")["failed"]
    assert failed
    assert all(label.startswith("argmax") for label in failed)
