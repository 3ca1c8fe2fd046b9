"""A selection of PyTorch's own samples of functions and methods, run in both libraries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_first_samples_of_each_function_agree(torch: Any) -> None:
    """``make pytorch-samples`` runs all of them.

    They run in a process of their own, as PyTorch inspects the stack for each sample, which takes
    long within pytest.
    """
    pytest.importorskip("expecttest", reason="PyTorch's samples need expecttest")
    command = [sys.executable, "-m", "tests.pytorch_samples", "--first", "2", "functions"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert not found.returncode, found.stdout + found.stderr
