"""The programs in the README run, and do what it says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

README = Path(__file__).parent.parent / "README.md"
PROGRAMS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


PRINTED = [
    r"test accuracy 9[5-9]\.\d% on",
    r"12\.0 12\.0",
    r"2 recordings, 45 steps an epoch, loss 0\.\d",
    r"\[396\.0, 200\.0\]\n\[\[402\.0, 400\.0\], \[400\.0, 200\.0\]\]\n\{'0\.weight': \(8, 2\), [^\n]*\nTrue True\n",
    r"True False\n",
]


@pytest.mark.parametrize(("program", "pattern"), list(zip(PROGRAMS, PRINTED, strict=True)))
def test_programs_of_the_readme_run(program: str, pattern: str) -> None:
    if "from_dlpack" in program and np.lib.NumpyVersion(np.__version__) < "2.1.0":
        pytest.skip("NumPy 2.0 takes all memory as read-only, and cannot give it away as that: it is copied")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, str(README), "exec"), {})
    assert re.search(pattern, printed.getvalue())
