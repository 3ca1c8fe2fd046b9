"""Fixtures of the tests of captured steps."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import nullcontext

import pytest

import xgrad


@pytest.fixture(autouse=True)
def frozen_heap() -> Iterator[None]:
    """Keep what other tests hold out of collections and of searches for references: a refused trace needs one."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def by_default(capturing_device: str) -> Iterator[None]:
    """Run tests on each device that replays captured steps, unless `twins.on_cpu`."""
    with nullcontext() if capturing_device == "cpu" else xgrad.default_device(capturing_device):
        yield
