"""The report as JSON, HTML and text, with all parts, and with a failure planted by the tests."""

import json
import re
import sys
from html.parser import HTMLParser
from itertools import pairwise

import pytest

import xgrad
from legibility import flaws
from xgrad.parity import report as module
from xgrad.parity.cases import OP_CASES, find
from xgrad.parity.html_report import as_html, check_installed
from xgrad.parity.report import as_json
from xgrad.parity.text_report import as_text, number
from xgrad.support import plotting

CPU = xgrad.Device("cpu")
CASES = [
    *(op for op in OP_CASES[::25] if op.name != "getitem with a mask"),
    find("getitem with a mask"),
]  # test_compare.py compares all of them


@pytest.fixture(scope="module")
def report(strict):
    """All parts, in one dtype and a few steps."""
    return module.run(CASES, [CPU, strict], ["float32"], steps=5)


@pytest.fixture
def failed(broken_multiply):
    return module.run([find("add"), broken_multiply], [CPU], ["float32"], ["ops"])


@pytest.fixture
def _packages():
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")


def test_json_keeps_its_schema(report):
    content = json.loads(as_json(report))
    assert content["schema"] == 1 and content["verdict"] == "pass"
    keys = {
        "": (
            "schema verdict devices dtypes parts command missing absent ops fused training baseline"
            " seeds versions platform date seconds reference notes tolerances limits"
        ),
        "ops": "op tolerance samples cells skipped timing",
        "training": (
            "device dtype optimizer losses loss_error last_loss_error weight_error limit step note"
        ),
        "seeds": "device what dtype equal note",
        "tolerances": "name value gradient reason per_element conditioned",
        "cells": (
            "device dtype quantity error unit relative limit what place sample inputs got expected"
            " note reproducer"
        ),
        "timing": "device dtype small large",
    }
    for name, expected in keys.items():
        parent = content["ops"][0] if name in ("cells", "timing") else content
        assert set(parent[name][0] if name else parent) == set(expected.split())
    assert {kernel["device"] for kernel in content["fused"]} == {"cpu"}
    assert [op["op"] for op in content["ops"]] == [op.name for op in CASES]
    assert (
        content["devices"]["cpu"].startswith("NumPy")
        and content["versions"]["xgrad"] == xgrad.__version__
    )


def test_json_has_no_numbers_that_json_lacks(report):
    report = module.Report(**{**vars(report), "seconds": float("inf")})
    assert (
        json.loads(as_json(report), parse_constant=lambda name: pytest.fail(name))["seconds"]
        == "inf"
    )


class Reader(HTMLParser):
    """Checks that elements are closed, and collects ids, links, loaded resources and classes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.values: dict[str, list[str]] = {"id": [], "href": [], "src": [], "class": []}
        self.tags: list[str] = []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            self.values.setdefault(name, []).append(value)
        if tag not in ("meta", "img", "source"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.usefixtures("_packages")
def test_html_has_every_op_and_no_external_resources_or_scripts(report, monkeypatch):
    drawn, original = [], plotting.svg
    monkeypatch.setattr(plotting, "svg", lambda figure: drawn.append(figure) or original(figure))
    page = as_html(report)
    assert drawn and [flaw for figure in drawn for flaw in flaws(figure)] == []
    reader = Reader(page)
    ids, links = reader.values["id"], reader.values["href"]
    for op in CASES:
        assert f">{op.name}</a>" in page and "op-" + op.name.replace(" ", "-") in ids
    assert len(ids) == len(set(ids)) and {link[1:] for link in links} <= set(ids), (
        "every link leads somewhere"
    )
    assert all(source.startswith("data:image/svg+xml;base64,") for source in reader.values["src"])
    assert (
        reader.tags.count("img") == reader.tags.count("figure") >= 5
        and len(drawn) == reader.tags.count("img") + reader.tags.count("source")
        and "script" not in reader.tags
        and not re.search(r"https?://|@import", page)
    )
    assert "prefers-color-scheme: dark" in page
    assert all(f'<span class="{shade}">' in page for shade in ("s1", "s2", "s3", "s4", "over")), (
        "a legend of colours"
    )


@pytest.mark.usefixtures("_packages")
def test_html_of_a_failure_starts_with_it(failed):
    page = as_html(failed)
    assert 'class="badge fail"' in page
    assert page.index("What failed") < page.index("the gradient of x2") < page.index('id="errors"')
    assert "find(&#39;multiply&#39;)" in page


@pytest.mark.usefixtures("_packages")
def test_html_escapes_text(report):
    report = module.Report(**{**vars(report), "absent": {"<b>": "<script>alert(1)</script>"}})
    page = as_html(report)
    assert "<script>alert" not in page and "&lt;b&gt; is not compared" in page


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_html_without_a_package_names_the_extra(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=r"pip install 'xgrad\[parity\]'"):
        check_installed()


def test_text_has_a_line_for_each_op(report):
    lines = as_text(report).splitlines()
    for op in CASES:
        assert any(line.startswith(f"{op.name}  ") for line in lines)
    assert lines[-1].startswith("PASSED: ") and "cpu, strict in float32" in lines[-1]
    errors = sum(len(op.cells) for op in report.ops)
    assert len(as_text(report, verbose=True).splitlines()) >= len(lines) + errors


def test_columns_of_the_text_have_heads_and_sub_heads(report):
    lines = as_text(report).splitlines()
    head, sub_head = next(pair for pair in pairwise(lines) if pair[1].startswith("op "))
    assert head.split()[:3] == ["cpu", "strict", "differences"]
    assert sub_head.split()[:6] == ["op", *["value", "gradient"] * 2, "gradient"]
    ends = [match.end() for match in re.finditer(r"\S+", sub_head)]
    groups = (2, 4, 5, 6)[: len(head.split())]  # the last one is PyTorch's, if it is installed
    assert [match.end() for match in re.finditer(r"\S+", head)] == [ends[i] for i in groups]
    row = next(line for line in lines if line.startswith(f"{CASES[0].name}  "))
    cells = [match.end() for match in re.finditer(r"\S+", row)]
    assert cells[1 : len(ends) - 1] == ends[1:-1], "cells stand below their heads"


def test_text_of_a_failure_names_op_input_and_code(failed):
    text = as_text(failed)
    assert re.search(r"^multiply .*!", text, re.MULTILINE)
    assert re.search(r"FAILED: multiply, .* the gradient of x2 at \[.*the input is x1 = ", text)
    assert re.search(r"^    x\d = xgrad.asarray\(", text, re.MULTILINE)
    assert text.splitlines()[-1].startswith("FAILED: 1 op out of tolerance")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.5, "0.50"), (1e-9, "1e-09"), (2e6, "2e+06"), (float("inf"), "inf")],
)
def test_numbers_are_short(value, text):
    assert number(value) == text
