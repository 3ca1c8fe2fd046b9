"""The report as JSON, as a page, and on a terminal."""

import json
import re
from html.parser import HTMLParser

import pytest

import xgrad
from xgrad.parity import report as module
from xgrad.parity.page import as_page
from xgrad.parity.page.svg import Dot, curves, strips
from xgrad.parity.report import as_json
from xgrad.parity.table import OPS, find
from xgrad.parity.text import as_text, number

CPU, STRICT = xgrad.Device("cpu"), xgrad.Device("strict")
ROWS = [*OPS[::25], find("getitem with a mask")]  # all of them are compared in test_compare.py


@pytest.fixture(scope="module")
def report():
    """Everything, in one dtype and a few steps."""
    return module.run(ROWS, [CPU, STRICT], ["float32"], steps=5)


@pytest.fixture
def failed(broken_multiply):
    return module.run([find("add"), broken_multiply], [CPU], ["float32"], ["ops"])


def test_the_schema_of_the_json_is_what_programs_rely_on(report):
    found = json.loads(as_json(report))
    assert found["schema"] == 1 and found["verdict"] == "pass"
    assert set(found) == set(
        "schema verdict devices dtypes parts command missing absent ops fused training baseline seeds versions "
        "platform date seconds reference notes tolerances limits".split()
    )
    assert set(found["ops"][0]) == {"op", "tolerance", "samples", "cells", "skipped", "timing"}
    assert set(found["ops"][0]["cells"][0]) == set(
        "device dtype quantity error unit relative limit what place sample inputs got expected note reproducer".split()
    )
    assert set(found["ops"][0]["timing"][0]) == {"device", "dtype", "small", "large"}
    assert set(found["training"][0]) == set(
        "device dtype optimizer losses loss_error last_loss_error weight_error limit step note".split()
    )
    assert found["fused"] == []  # for no device here has such kernels
    assert set(found["seeds"][0]) == {"device", "what", "dtype", "equal", "note"}
    assert set(found["tolerances"][0]) == {"name", "value", "gradient", "reason", "per_element", "conditioned"}
    assert [op["op"] for op in found["ops"]] == [op.name for op in ROWS]
    assert found["devices"]["cpu"].startswith("NumPy") and found["versions"]["xgrad"] == xgrad.__version__


def test_json_has_no_numbers_that_json_lacks(report):
    report = module.Report(**{**vars(report), "seconds": float("inf")})
    assert json.loads(as_json(report), parse_constant=lambda name: pytest.fail(name))["seconds"] == "inf"


class Reader(HTMLParser):
    """Checks that elements are closed, and gathers ids, links and what a page would load."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loads: list[str] = []
        self.tags: list[str] = []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append(tag)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if "href" in given else []
        self.loads += [given[name] for name in ("src", "srcset", "data", "xlink:href") if name in given]
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_has_every_op_and_needs_nothing_else(report):
    page = as_page(report)
    reader = Reader(page)
    for op in ROWS:
        assert f">{op.name}</a>" in page and "op-" + op.name.replace(" ", "-") in reader.ids
    assert len(reader.ids) == len(set(reader.ids))
    assert {link[1:] for link in reader.links} <= set(reader.ids), "every link leads somewhere"
    assert reader.loads == [] and not re.search(r"https?://|@import|url\(", page)
    assert reader.tags.count("svg") == 2 + 4 + 2 - sum("every loss has the same bits" in p for p in page.split("</p>"))
    assert "prefers-color-scheme: dark" in page


def test_colours_of_the_page_have_a_legend_and_plots_a_caption_that_wraps(report):
    page = as_page(report)
    assert all(f'<span class="s{i}">' in page for i in range(1, 5)) and '<span class="over">' in page
    plots = page.partition('id="training"')[2].partition("</section>")[0].split("<figure>")[1:]
    assert all(plot.startswith(("<figcaption>", '<p class="same">')) for plot in plots)
    for colour in set(re.findall(r'class="[lch](\d)"', page)):
        assert f'"key k{colour}"' in page


def test_the_page_of_a_failure_begins_with_it(failed):
    page = as_page(failed)
    Reader(page)
    assert 'class="badge fail"' in page
    assert page.index("What failed") < page.index("the gradient of x2") < page.index('id="errors"')
    assert page.count("class=&quot;") == 0 and "find(&#x27;multiply&#x27;)" in page


def test_what_is_not_ours_is_escaped(report):
    report = module.Report(**{**vars(report), "absent": {"<b>": "<script>alert(1)</script>"}})
    page = as_page(report)
    assert "<script>alert" not in page and "&lt;b&gt; is not compared" in page


def test_the_text_has_a_line_for_each_op(report):
    lines = as_text(report).splitlines()
    for op in ROWS:
        assert any(line.startswith(f"{op.name}  ") for line in lines)
    assert lines[-1].startswith("PASSED: ") and "cpu, strict in float32" in lines[-1]
    cells = sum(len(op.cells) for op in report.ops)
    assert len(as_text(report, verbose=True).splitlines()) >= len(lines) + cells


def test_the_text_of_a_failure_names_op_input_and_code(failed):
    text = as_text(failed)
    assert re.search(r"^multiply .*!", text, re.MULTILINE)
    assert re.search(r"FAILED: multiply, .* the gradient of x2 at \[.*the input is x1 = ", text)
    assert re.search(r"^    x\d = xgrad.asarray\(", text, re.MULTILINE)
    assert text.splitlines()[-1].startswith("FAILED: 1 op past the tolerance")


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (0.5, "0.50"), (1e-9, "1e-09"), (2e6, "2e+06"), (float("inf"), "inf")]
)
def test_numbers_are_short(value, text):
    assert number(value) == text


def test_plots_take_zeros_infinities_and_nothing():
    dots = [Dot(0.0, "a"), Dot(float("inf"), "<b>", True), Dot(float("nan"), "c"), Dot(3.0, "d", hollow=True)]
    plot = strips([("x", 0, dots), ("y", 1, [])], "errors", limits=[1.0, 2.0])
    assert plot.count("<circle") == 4 and "nan" not in plot and "&lt;b&gt;" in plot
    assert "<polyline" in curves([("x", 0, [0.0, float("nan"), 1.0])], "loss", log=True)
    assert "nan" not in curves([("x", 0, [0.0, float("nan"), 1.0]), ("y", 1, [])], "loss", log=False)
    assert strips([], "nothing").startswith("<svg")
