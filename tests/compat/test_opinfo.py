"""A selection of PyTorch's own samples of functions and methods, run in both libraries.

``make pytorch-samples`` runs all of them. Each sample must agree with PyTorch, or be refused.
"""

from __future__ import annotations

import warnings
from collections import Counter
from importlib import import_module
from typing import Any

import pytest

#: The number of samples of each function and dtype.
SAMPLES = 2


@pytest.mark.parametrize("dtype", ["float64", "int64", "bool", "complex128"])
def test_samples_agree_or_are_refused(torch: Any, dtype: str) -> None:
    pytest.importorskip("expecttest", reason="PyTorch's samples need expecttest")
    counts: Counter[str] = Counter()
    failures: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PyTorch, at the import and in samples
        functions = import_module("tests.pytorch_samples.functions")
        for name, outcome in functions.outcomes([], [getattr(torch, dtype)], SAMPLES):
            counts[outcome.kind] += 1
            if outcome.kind in ("differs", "error"):
                failures.append(f"{name}: {outcome.reason}")
    assert not failures, "\n".join(dict.fromkeys(failures))
    assert counts["agrees"] > 0.9 * (counts["agrees"] + counts["refused"])
