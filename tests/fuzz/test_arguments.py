"""A short run of ``python -m tests.fuzz arguments``.

Random arguments of the command line are refused in one line, or accepted.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(os.name == "nt", reason="Windows has no limits of memory")
def test_random_arguments_are_refused_in_one_line_or_accepted() -> None:
    """The variable FUZZ_ARGUMENTS sets the number of commands, FUZZ_SEED the seed."""
    count = os.environ.get("FUZZ_ARGUMENTS", "100")
    command = [
        sys.executable,
        "-m",
        "tests.fuzz",
        "arguments",
        count,
        os.environ.get("FUZZ_SEED", "0"),
    ]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root)
    assert done.returncode == 0 and "refused, train" in done.stdout, (
        done.stdout + done.stderr[-2000:]
    )
