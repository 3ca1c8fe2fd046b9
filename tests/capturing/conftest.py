"""Recordings are replayed as they were recorded at first, and planned where that pays: both are tested."""

from __future__ import annotations

import pytest

from xgrad_numpy import replay

PLANNED_AT_ONCE = {"_OFTEN": 0}
PLANNED_LATER = {"_OFTEN": 2, "_PIECE": 1 << 60}  # at the third replay
#: Of what is planned, and of the memory that it takes.
ABOUT_PLANS = ("test_listing", "test_memory")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    ways = {"planned at once": PLANNED_AT_ONCE, "planned later": PLANNED_LATER}
    if metafunc.module.__name__.endswith(ABOUT_PLANS):
        del ways["planned later"]
    metafunc.parametrize("_when_it_is_planned", ways.values(), ids=ways.keys(), indirect=True)


@pytest.fixture(autouse=True)
def _when_it_is_planned(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in request.param.items():
        monkeypatch.setattr(replay, name, value)
