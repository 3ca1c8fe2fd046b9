"""Fixtures of the tests of captured steps."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def frozen_heap() -> Iterator[None]:
    """Keep what other tests hold out of collections and of searches for references: a refused trace needs one."""
    gc.freeze()
    yield
    gc.unfreeze()
