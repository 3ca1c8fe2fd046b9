"""The examples in docstrings run, and print what the docstrings show."""

from __future__ import annotations

import doctest
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import xgrad
from printed import OutputChecker

PACKAGE = Path(xgrad.__file__).parent


def modules() -> Iterator[str]:
    """Yield the names of the modules whose source has an example."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if ">>> " in path.read_text(encoding="utf-8"):
            parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
            yield ".".join(parts).removesuffix(".__init__")


def run_examples(name: str) -> None:
    """Run the examples of a module; raise AssertionError with those that print something else."""
    runner = doctest.DocTestRunner(OutputChecker(), verbose=False)
    report: list[str] = []
    for test in doctest.DocTestFinder().find(import_module(name)):
        runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)


@pytest.mark.parametrize("name", sorted({*modules()} - {"xgrad.onnx"}))
def test_examples_of_docstrings_print_what_they_show(name: str) -> None:
    run_examples(name)


def test_examples_of_docstrings_have_at_most_88_columns() -> None:
    wide = [
        f"{test.name}: {line}"
        for name in modules()
        for test in doctest.DocTestFinder().find(import_module(name))
        for example in test.examples
        for line in (example.source + example.want).splitlines()
        if len(line) > (84 if line in example.source else 88)  # beside >>> and ...
    ]
    assert not wide


def test_examples_of_export_to_onnx_print_what_they_show(onnxruntime: Any) -> None:
    run_examples("xgrad.onnx")


def test_printed_output_is_compared_with_a_tolerance_for_floats_alone() -> None:
    same = OutputChecker().check_output
    assert same("Tensor([2.718282, 0.5 ])", "Tensor([2.7182817, 0.5      ])", 0)
    assert same("linear  20  930 µs", "linear 20 1.20 ms", 0)
    assert same("infinity, at example.py:3: x", "infinity, at /a/b.py:1353: x", 0)
    for expected, printed in (
        ("[1.5]", "[1.501]"),
        ("[1.5]", "[1.5, 1.5]"),
        ("[3]", "[4]"),
        ("[3]", "[3.0]"),
        ("[0.0]", "[-0.0]"),
        ("[0.3...]", "[0.3333]"),
        ("True", "False"),
        ("float32", "float64"),
    ):
        assert not same(expected, printed, 0), (expected, printed)
