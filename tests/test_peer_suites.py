"""The list of known failures in other projects' test suites is valid; einops' suite passes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from peer_suites.run import HERE, SUITES, is_known, known_failures, markdown


def test_listed_tests_are_of_a_suite_and_have_a_reason() -> None:
    text = (HERE / "xfails.txt").read_text("utf-8")
    assert all(block.startswith("#") for block in text.strip().split("\n\n"))
    assert {test.partition("/")[0] for test in known_failures(text)} <= set(SUITES)


def test_entry_of_the_list_covers_all_parameters_of_a_test() -> None:
    known = known_failures("# the reason\na/m.C::f\na/m::g[x-1]\n\n# another\nb/n\n")
    assert known == {"a/m.C::f", "a/m::g[x-1]", "b/n"}
    assert all(
        is_known(test, known)
        for test in ("a/m.C::f", "a/m.C::f[x]", "a/m::g[x-1]", "b/n::f", "b/n.C::f")
    )
    assert not any(
        is_known(test, known) for test in ("a/m.C::f2", "a/m::g[x-2]", "a/m::g", "b/n2::f")
    )


def test_table_has_a_line_for_each_row() -> None:
    assert (
        markdown(["suite", "passed"], [["a", "1"]])
        == "| suite | passed |\n| --- | ---: |\n| a | 1 |"
    )


def test_suite_of_einops_passes() -> None:
    tests = pytest.importorskip("einops.tests")
    assert Path(tests.__file__).name == "__init__.py"
    command = [sys.executable, str(HERE / "run.py"), "einops", "--jobs", "0", "-k", "test_ops"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| einops | " in done.stdout
