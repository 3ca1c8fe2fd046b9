"""Plots: their labels are legible, and the committed ones are drawn from the committed results."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks import plots, report
from benchmarks.report import Table
from legibility import contrast, flaws
from xgrad.support import plotting

pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'xgrad[cli]'")

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"
SAVED = [path for path in sorted(RESULTS.glob("*.json")) if report.read(path)]


def parts(svg: str) -> tuple[list[str], Counter[str]]:
    """Return the texts of an SVG, and the number of its elements by kind."""
    elements = list(ElementTree.fromstring(svg).iter())
    texts = [element.text or "" for element in elements if element.tag.endswith("}text")]
    return texts, Counter(element.tag for element in elements)


@pytest.mark.parametrize("path", SAVED, ids=lambda path: path.stem)
def test_saved_plot_is_legible_and_drawn_from_the_saved_result(path: Path) -> None:
    """`python -m benchmarks redraw` writes plots and Markdown again."""
    result = report.read(path)
    assert result is not None and result.name == path.stem
    figure = plots.picture(result.plotted())
    assert flaws(figure) == []
    saved = path.with_suffix(".svg").read_text("utf-8")
    assert parts(plotting.svg(figure)) == parts(saved)
    assert report.markdown(result, True) == path.with_suffix(".md").read_text("utf-8")


def named(count: int, words: int) -> list[Table]:
    """Return a table with long names of columns, and few bars for each."""
    names = [f"a model of {' '.join(['many'] * words)} layers, width {i}" for i in range(count)]
    cells = {name: [1.0, 2.0, 300.0] for name in names}
    return [Table("Time", "s", {"a": cells, "xgrad": cells}, "bars")]


@pytest.mark.parametrize(
    "tables",
    [
        named(4, 20),
        named(1, 1),
        [Table("Rate", "GB/s", {"xgrad": {"a": [0.0], "b": []}}, "bars")],
        [
            Table("Time " * 15, "ms", {"xgrad": {"1": [1.0], "8": [2.0]}, "b": {"1": [1.0]}}, plot)
            for plot in ("lines", "bars")
        ],
    ],
    ids=["long names", "one column", "zero and missing", "long titles"],
)
def test_plot_of_any_table_is_legible(tables: list[Table]) -> None:
    figure = plots.picture(tables)
    assert flaws(figure) == []
    texts, _ = parts(plotting.svg(figure))
    assert all(table.better in " ".join(texts) for table in tables)


def test_illegible_figures_are_found() -> None:
    def draw(figure: Any) -> None:
        axes = figure.subplots()
        axes.barh([0], [1.0])
        axes.text(0.5, 0, "on a bar")
        axes.text(0.5, 0.01, "on a text")
        axes.text(1.0, 0.6, "beyond the edge of the figure" * 3).set_in_layout(False)
        axes.plot([0, 1], [0.5, 0.5], label="a line")
        axes.legend(loc=(0.4, 0.8))

    found = flaws(plotting.figure(3, 2, draw))
    assert "'on a bar' overlaps a bar" in found
    assert "'on a bar' overlaps 'on a text'" in found
    assert any(re.search("beyond.* is cut off", flaw) for flaw in found)
    figure = plotting.figure(3, 2, draw)
    (axes,) = figure.axes
    axes.legend(loc=(0, 0))
    axes.lines[0].set_data([0, 0.5], [-0.4, -0.4])
    assert "the legend hides a line" in flaws(figure)


def test_xgrad_has_one_colour_and_bold_labels() -> None:
    cells = {"case": [1.0]}
    rows = ("xgrad", "xgrad captured", "PyTorch")
    figure = plots.picture([Table("Time", "s", dict.fromkeys(rows, cells), "bars")])
    (axes,) = figure.axes
    colors = [bar.get_facecolor() for bar in axes.patches]
    assert colors[0] == colors[1] != colors[2]
    weights = [label.get_fontweight() for label in axes.get_yticklabels()]
    assert weights == ["bold", "bold", "normal"]
    assert [text.get_text() for text in axes.texts] == ["1", "1", "1"]


@pytest.mark.parametrize("page", ["#ffffff", "#131416"])
def test_colours_have_contrast_with_light_and_dark_pages(page: str) -> None:
    assert plotting.STYLE["figure.facecolor"] == plotting.STYLE["savefig.facecolor"] == "none"
    for color in (plotting.INK, plotting.FAILED, *plotting.COLORS, *plotting.OTHERS):
        assert contrast(color, page) >= (4 if color == plotting.INK else 3), color
