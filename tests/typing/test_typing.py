"""Types as users see them: a script that mypy and pyright accept, calls that both refuse.

``make types`` runs these tests; without the checkers they are skipped.
"""

from __future__ import annotations

import importlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
SCRIPT, WRONG = FOLDER / "user_script.py", FOLDER / "wrong_calls.py"
#: Public modules, in which editors complete names.
MODULES = (
    "xgrad xgrad.amp xgrad.autograd xgrad.data xgrad.distributed xgrad.distributions xgrad.fft"
    " xgrad.linalg xgrad.nn xgrad.nn.functional xgrad.nn.init xgrad.nn.utils xgrad.optim"
    " xgrad.optim.lr_scheduler xgrad.random xgrad.special xgrad.testing xgrad.training"
).split()

NAMES = [f"{m}.{n}" for m in MODULES for n in importlib.import_module(m).__all__]
#: Names whose values, or results, are of any type: the contents of files, and samples.
UNTYPED = {"xgrad.data.default_collate", "xgrad.data.default_convert", "xgrad.load"}


class Findings(NamedTuple):
    """What a checker finds: lines with errors by file, types by name, and its output."""

    errors: dict[str, set[int]]
    types: dict[str, str]
    output: str


def run(*command: str | Path) -> str:
    """Return what a checker prints, which fails if it finds errors."""
    done = subprocess.run(
        [sys.executable, "-m", *map(str, command)], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


@cache
def findings(checker: str) -> Findings:
    """Return what mypy or pyright finds in the two files; pyright also shows types of names."""
    if find_spec(checker) is None:
        pytest.skip(f"needs {checker}: pip install 'xgrad[check]'")
    errors: dict[str, set[int]] = {SCRIPT.name: set(), WRONG.name: set()}
    if checker == "mypy":
        output = run("mypy", SCRIPT, WRONG)
        for name, line in re.findall(r"(\w+\.py):(\d+): error", output):
            errors[name].add(int(line))
        return Findings(errors, {}, output)
    with tempfile.TemporaryDirectory() as folder:
        imports = [f"import {module}" for module in MODULES]
        revealed = [f"reveal_type({name})" for name in NAMES]
        (Path(folder) / "names.py").write_text("\n".join([*imports, *revealed]))
        for path in (SCRIPT, WRONG):
            shutil.copy(path, folder)
        paths = [str(ROOT), str(ROOT / "backends")]
        settings = {"strict": [SCRIPT.name, WRONG.name], "extraPaths": paths}
        (Path(folder) / "pyrightconfig.json").write_text(json.dumps(settings))
        output = run("pyright", "-p", folder, "--pythonpath", sys.executable, "--outputjson")
    types, lines = {}, []
    for found in json.loads(output)["generalDiagnostics"]:
        name, line = Path(found["file"]).name, found["range"]["start"]["line"] + 1
        if name in errors:
            errors[name].add(line)
            lines.append(f"{name}:{line}: {found['message']}")
        elif match := re.fullmatch(r'(?s)Type of "([\w.]+)" is "(.*)"', found["message"]):
            types[match[1]] = match[2]
    return Findings(errors, types, "\n".join(lines))


def test_user_script_runs() -> None:
    subprocess.run([sys.executable, SCRIPT], check=True)


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_user_script_has_the_types_that_it_asserts(checker: str) -> None:
    found = findings(checker)
    assert not found.errors[SCRIPT.name], found.output


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_wrong_calls_are_refused(checker: str) -> None:
    lines = WRONG.read_text().splitlines()
    expected = {i for i, line in enumerate(lines, 1) if line.endswith("  # refused")}
    found = findings(checker)
    assert len(expected) > 40
    assert found.errors[WRONG.name] == expected, found.output


def test_public_names_have_types() -> None:
    types = findings("pyright").types
    assert set(types) == set(NAMES)
    assert {n for n, t in types.items() if re.search(r"(^|-> )(Any|Unknown)$", t)} == UNTYPED
