"""NumPy's warnings in calls of xgrad appear once, at the lines of the user's code."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import numpy as np
import xgrad
from xgrad import nn

zeros = xgrad.zeros(3, requires_grad=True)
xgrad.log(zeros)  # divide by zero encountered in log
zeros / zeros  # invalid value encountered in divide
for _ in range(3):
    xgrad.exp(zeros + 1000)  # overflow encountered in exp
total = xgrad.sqrt(zeros).sum()
total.backward()  # divide by zero encountered in divide
layer = nn.Linear(2, 2)
layer.weight.grad = xgrad.full((2, 2), 1e38)
xgrad.optim.SGD([layer.weight], lr=1e38).step()  # overflow encountered in multiply
step = xgrad.capture(lambda x: xgrad.log(x))
for value in (1, 1, 0):
    step(xgrad.ones(3) * value)  # divide by zero encountered in log
xgrad.linalg.inv(xgrad.eye(2) * xgrad.inf)  # invalid value encountered in multiply
var, one = xgrad.var, xgrad.zeros(1)
var(one, correction=2)  # Degrees of freedom <= 0 for slice; invalid value encountered in divide
np.log(np.zeros(3))  # divide by zero encountered in log
with np.errstate(all="ignore"):
    xgrad.log(zeros)
"""


def test_warnings_of_numpy_are_at_the_line_of_the_user(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=True
    )
    lines = SCRIPT.splitlines()
    marked = [
        (str(i), line.partition("  # ")[2]) for i, line in enumerate(lines, 1) if "  # " in line
    ]
    wanted = {(number, message) for number, messages in marked for message in messages.split("; ")}
    got = re.findall(rf"{re.escape(str(script))}:(\d+): RuntimeWarning: (.*)", done.stderr)
    assert set(got) == wanted and len(got) == done.stderr.count("RuntimeWarning") == len(wanted), (
        done.stderr
    )
