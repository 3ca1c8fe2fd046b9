"""Recordings are replayed as they were recorded at first, and planned where that pays: both are tested."""

from __future__ import annotations

import pytest

from xgrad_numpy import replay

PLANNED_AT_ONCE = {"_OFTEN": 0}
PLANNED_LATER = {"_OFTEN": 2, "_PIECE": 1 << 60}  # at the third replay
WAYS = {"planned at once": PLANNED_AT_ONCE, "planned later": PLANNED_LATER}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a module's tests both ways, or only the one that its `WAY` names."""
    names = [metafunc.module.WAY] if hasattr(metafunc.module, "WAY") else list(WAYS)
    metafunc.parametrize("_when_it_is_planned", [WAYS[name] for name in names], ids=names, indirect=True)


@pytest.fixture(autouse=True)
def _when_it_is_planned(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in request.param.items():
        monkeypatch.setattr(replay, name, value)
