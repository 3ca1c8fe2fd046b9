"""A short run of ``python -m tests.kills``.

A run that is killed and resumed several times has the bits of a run without kills.
"""

from __future__ import annotations

import os

import pytest

from kills import killed_run


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_killed_run_is_resumed_to_the_bit(tmp_path):
    result = killed_run(kills=3, seed=1, epochs=2, folder=tmp_path)
    assert (result.damaged, result.different) == (0, [])
