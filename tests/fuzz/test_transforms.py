"""A short run of random nested transforms, compared with PyTorch and finite differences.

``python -m tests.fuzz transforms 20000`` is a long one. Wrong derivatives, planted by a test, are
found.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from . import transforms

SHARES = range(10)  # of the programs, each a test of its own
PROGRAMS = 30  # in a share


@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize("share", SHARES)
def test_random_nested_transforms_agree_with_pytorch(share: int) -> None:
    outcomes = [transforms.check(seed) for seed in range(share * PROGRAMS, (share + 1) * PROGRAMS)]
    assert not [outcome for outcome in outcomes if outcome.startswith("MISMATCH")]
    assert sum(outcome.startswith("agrees") for outcome in outcomes) > 0.9 * PROGRAMS


def test_random_nested_transforms_agree_with_finite_differences() -> None:
    """Without PyTorch, only programs without detached values are compared."""
    outcomes = [transforms.check(seed, peer=False) for seed in range(100)]
    assert not [outcome for outcome in outcomes if outcome.startswith("MISMATCH")]
    assert sum(outcome.startswith("agrees") for outcome in outcomes) > 30


@pytest.mark.parametrize("peer", [True, False])
def test_wrong_derivatives_are_found(
    peer: bool, monkeypatch: pytest.MonkeyPatch, request: Any
) -> None:
    if peer:
        request.getfixturevalue("torch")
    seed = next(
        n for n in range(100) if transforms.check(n, peer=False) == "agrees by differences alone"
    )
    assert transforms.check(seed, peer).startswith("agrees")
    evaluate = transforms.Program.evaluate
    monkeypatch.setattr(
        transforms.Program,
        "evaluate",
        lambda self, lib, x: (
            evaluate(self, lib, x) * (1.001 if type(lib) is transforms.Library else 1)
        ),
    )
    assert re.match(
        f"MISMATCH with {'PyTorch' if peer else 'differences'} by .*, seed {seed}",
        transforms.check(seed, peer),
    )


def test_programs_reach_all_instructions_and_transforms() -> None:
    programs = [transforms.generate(seed) for seed in range(400)]
    used = {
        line.split(" = ")[1].partition(" of ")[0]
        for program in programs
        for line in program.descriptions
    }
    kinds = {name.partition(" again")[0] for name in transforms.INSTRUCTIONS}
    assert all(any(line.startswith(kind) for line in used) for kind in kinds)
    assert {name for program in programs for name in program.nest} == transforms.TRANSFORMS.keys()
    assert max(len(program.nest) for program in programs) == 3
