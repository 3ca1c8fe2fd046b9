"""Types as users see them: a script that mypy and pyright accept, calls that both refuse.

``make types`` runs these tests; without the checkers they are skipped.
"""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
SCRIPT, WRONG = FOLDER / "user_script.py", FOLDER / "wrong_calls.py"
#: Public modules, in which editors complete names.
MODULES = (
    "xgrad xgrad.amp xgrad.autograd xgrad.data xgrad.distributed xgrad.distributions xgrad.fft"
    " xgrad.linalg xgrad.nn xgrad.nn.functional xgrad.nn.init xgrad.nn.utils xgrad.optim"
    " xgrad.optim.lr_scheduler xgrad.random xgrad.serialization xgrad.special xgrad.testing"
    " xgrad.training"
).split()

#: Lines with errors by file.
Errors = dict[str, set[int]]


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Return what a module of Python prints; a checker that finds errors fails."""
    done = subprocess.run(
        [sys.executable, "-m", *map(str, command)], capture_output=True, text=True, cwd=cwd
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def needs(package: str) -> None:
    if find_spec(package) is None:
        pytest.skip(f"needs {package}: pip install 'xgrad[check]'")


@cache
def errors_of(checker: str) -> tuple[Errors, str]:
    """Return the lines with errors of a checker in the two files, and its output."""
    needs(checker)
    found: Errors = {SCRIPT.name: set(), WRONG.name: set()}
    if checker == "mypy":
        output = run("mypy", "--no-pretty", SCRIPT, WRONG)
        for name, line in re.findall(r"(\w+\.py):(\d+): error", output):
            found[name].add(int(line))
        return found, output
    output = run("pyright", "-p", FOLDER, "--pythonpath", sys.executable, "--outputjson")
    for error in json.loads(output)["generalDiagnostics"]:
        found[Path(error["file"]).name].add(error["range"]["start"]["line"] + 1)
    return found, output


def test_user_script_runs() -> None:
    subprocess.run([sys.executable, SCRIPT], check=True)


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_user_script_has_the_types_that_it_asserts(checker: str) -> None:
    errors, output = errors_of(checker)
    assert not errors[SCRIPT.name], output


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_wrong_calls_are_refused(checker: str) -> None:
    lines = WRONG.read_text().splitlines()
    expected = {i for i, line in enumerate(lines, 1) if line.endswith("  # refused")}
    errors, output = errors_of(checker)
    assert len(expected) > 40
    assert errors[WRONG.name] == expected, output


def test_public_names_have_types(tmp_path: Path) -> None:
    """No public name is Any, nor has a result of Any, but for files and samples of any kind."""
    needs("pyright")
    names = [f"{m}.{n}" for m in MODULES for n in importlib.import_module(m).__all__]
    lines = [f"import {m}" for m in MODULES] + [f"reveal_type({name})" for name in names]
    (tmp_path / "names.py").write_text("\n".join(lines))
    paths = [str(ROOT), str(ROOT / "backends")]
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"extraPaths": paths}))
    found: list[dict[str, Any]] = json.loads(
        run("pyright", "-p", tmp_path, "--pythonpath", sys.executable, "--outputjson")
    )["generalDiagnostics"]
    types = dict(
        re.findall(r'Type of "([\w.]+)" is "(.*)"', "\n".join(d["message"] for d in found))
    )
    assert set(types) == set(names)
    untyped = {n for n, t in types.items() if re.search(r"(^|-> )(Any|Unknown)$", t)}
    assert untyped == {
        "xgrad.data.default_collate",
        "xgrad.data.default_convert",
        "xgrad.load",
        "xgrad.serialization.load",
    }
