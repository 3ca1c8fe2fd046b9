"""The table of array libraries: errors by rounding, wrong values, and refusals.

Ops that are wrong in known ways stand for the libraries.
"""

import dataclasses
import json
from pathlib import Path

import pytest

import xgrad
from xgrad.parity import report as module
from xgrad.parity.cases import find
from xgrad.parity.library_table import as_json, as_markdown, content

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


@pytest.fixture
def table(strict):
    """The figures of ops that are wrong in each way on the device strict."""

    def sine(x):
        if x.device is not strict:
            return xgrad.sin(x)
        if x.ndim > 1:
            raise ValueError("sin: no axes (got 2)\nhelp")
        return xgrad.where(xgrad.isinf(x), 1.0, xgrad.sin(x) * (1 + 1e-13))

    cases = [find("nonzero"), dataclasses.replace(find("sin"), fn=sine)]
    return content(module.run(cases, [xgrad.Device("cpu"), strict], ["float64"], ["ops"]))


def test_table_has_each_kind_of_finding_of_one_op(table):
    kinds = {(f["op"], f["kind"], f.get("column")): f for f in table["findings"]}
    assert set(kinds) == {
        ("nonzero", "refused", None),
        ("sin", "refused", None),
        ("sin", "rounding", "float64 value"),
        ("sin", "rounding", "float64 gradient"),
        ("sin", "wrong", "float64 value"),
    }
    assert kinds["sin", "refused", None]["reason"] == "ValueError: no axes"
    rounding = kinds["sin", "rounding", "float64 value"]
    wrong = kinds["sin", "wrong", "float64 value"]
    assert rounding["limit"] == 4 and 200 < rounding["error"] < 2000
    assert (wrong["input"], wrong["got"], wrong["expected"]) == ("x = [inf]", "1.0", "nan")
    value, gradient = table["errors"]["sin"]["strict"]
    assert value == rounding["error"] < 2 * gradient and table["errors"]["nonzero"]["strict"] == [
        None,
        None,
    ]


def test_markdown_has_a_row_for_each_finding(table):
    lines = as_markdown(json.loads(as_json(table)), "libraries").splitlines()
    for row in (
        "| sin | `strict` | the result, float64 | `x = [inf]` | `1.0` | `nan` |",
        "| `strict` | sin | ValueError: no axes |",
    ):
        assert row in lines
    assert any(line.startswith("| sin | float64 value | 4 | 0.5 | **") for line in lines)
    assert any(
        line.startswith("| `strict` | array-api-strict ")
        and line.endswith("| 1 of 2 | 1 | 1 | 2 |")
        for line in lines
    )


def test_published_page_has_the_figures_of_its_json():
    table = json.loads(text := (RESULTS / "libraries.json").read_text("utf-8"))
    assert as_json(table) == text and len(text) < 200_000
    assert as_markdown(table, "libraries") == (RESULTS / "libraries.md").read_text("utf-8")
