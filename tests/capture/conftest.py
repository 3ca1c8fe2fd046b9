"""Fixtures of the tests of captured steps."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import nullcontext

import pytest

import xgrad
from capture.twins import NATIVE
from locked_memory import LockedRecorder
from xgrad.capture import captured
from xgrad.capture.program import Program
from xgrad_numpy import executor


@pytest.fixture(autouse=True)
def frozen_heap() -> Iterator[None]:
    """Exclude the objects of other tests from garbage collection.

    A step is followed by a collection where one of its tensors may have escaped.
    """
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def locked_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Record steps while known arrays are read-only outside of array code.

    A write that bypasses the recorder then raises.
    """
    monkeypatch.setattr(captured, "Recorder", LockedRecorder)


class Compiled(executor.Executor):
    """An executor that waits for its native kernels, unless they are turned off."""

    def __init__(self, program: Program, native: bool | None = None) -> None:
        super().__init__(program, True if native is None else native)


@pytest.fixture(autouse=True)
def native_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile native kernels before the first replay, if that is asked for."""
    if NATIVE:
        monkeypatch.setattr(executor, "Executor", Compiled)


@pytest.fixture(autouse=True)
def by_default(capturing_device: str) -> Iterator[None]:
    """Run tests on each device that replays captured steps, unless `twins.on_cpu`."""
    with nullcontext() if capturing_device == "cpu" else xgrad.default_device(capturing_device):
        yield
