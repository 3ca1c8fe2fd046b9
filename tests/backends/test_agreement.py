"""The comparison of a GPU with NumPy, with the CPU in its place."""

from __future__ import annotations

import pytest

import xgrad
from benchmarks.agreement import agreement


def test_device_in_agreement_has_no_failures() -> None:
    agreed = agreement("cpu")
    assert agreed["failed"] == {}
    assert agreed["passed"] > 150


def test_disagreement_is_reported_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    device = xgrad.Device("cpu")
    monkeypatch.setattr(device.xp, "argmax", device.xp.argmin)
    failed = agreement("cpu")["failed"]
    assert failed
    assert all(label.startswith("argmax") for label in failed)
