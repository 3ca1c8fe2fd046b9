"""A short run of random differentiable programs, compared with PyTorch and finite differences.

``python -m tests.fuzz programs 100000`` is a long one. Wrong gradients, planted by a test, are
found.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from . import programs

SHARES = range(10)  # of the programs, each a test of its own
PROGRAMS = 20  # in a share


@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize("share", SHARES)
def test_random_programs_agree_with_pytorch_and_finite_differences(share: int) -> None:
    outcomes = [programs.check(seed) for seed in range(share * PROGRAMS, (share + 1) * PROGRAMS)]
    assert not [outcome for outcome in outcomes if outcome.startswith("MISMATCH")]
    assert sum(outcome.startswith("agrees") for outcome in outcomes) > 0.9 * PROGRAMS


@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize(
    ("wrong", "refusing", "reference"),
    [
        (["xgrad"], [], "PyTorch"),
        (["xgrad", "torch"], [], "differences"),
        (["xgrad"], ["torch"], "differences"),
    ],
)
def test_wrong_gradients_are_found(
    wrong: list[str], refusing: list[str], reference: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate, factor = programs.Program.evaluate, 1.0

    def changed(program: programs.Program, library: str) -> list[np.ndarray]:
        if library in refusing:
            raise NotImplementedError
        value, *gradients = evaluate(program, library)
        return [value, *[x * (factor if library in wrong else 1) for x in gradients]]

    monkeypatch.setattr(programs.Program, "evaluate", changed)
    assert programs.check(0) == ("agrees by differences alone" if refusing else "agrees")
    factor = 1.1
    assert re.match(f"MISMATCH with {reference}, .*, seed 0", programs.check(0))
