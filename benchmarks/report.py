"""Results: tables of samples, as JSON, Markdown and a plot."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.statistics import spread

Cells = dict[str, dict[str, list[float]]]  # by row and column


@dataclass
class Table:
    """Samples of one kind by row and column; where columns are numbers, `plot` may be ``"lines"``."""

    title: str
    unit: str
    cells: Cells
    plot: str = ""  # "bars" or "lines", in logarithms; "progress", not in logarithms; or nothing
    corner: str = ""  # what columns are

    def columns(self) -> list[str]:
        """Return all columns, in the order in which rows first have them."""
        return list(dict.fromkeys(column for row in self.cells.values() for column in row))


@dataclass
class Words:
    """What there is to say by row and column, in words."""

    title: str
    corner: str
    cells: dict[str, dict[str, str]]


@dataclass
class Result:
    """What a benchmark found: tables, and who was left out or failed, with reasons and where."""

    name: str
    about: str
    tables: list[Table] = field(default_factory=list)
    words: list[Words] = field(default_factory=list)
    left_out: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    failed: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    command: str = ""

    def leave_out(self, peer: str, reason: str, case: str) -> None:
        _note(self.left_out, peer, reason, case)

    def fail(self, peer: str, reason: str, case: str) -> None:
        _note(self.failed, peer, reason, case)


def _note(absent: dict[str, dict[str, list[str]]], peer: str, reason: str, case: str) -> None:
    cases = absent.setdefault(peer, {}).setdefault(reason, [])
    if case not in cases:
        cases.append(case)


def markdown(result: Result, plot: bool = False) -> str:
    """Return what a person reads."""
    lines = [f"# {result.name}", "", result.about.strip(), ""]
    for table in result.tables:
        if not (columns := table.columns()):
            continue
        lines += [f"## {table.title}" + (f", {table.unit}" if table.unit else ""), ""]
        lines += [f"| {table.corner} | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
        for row, cells in table.cells.items():
            lines.append(f"| {row} | {' | '.join(cell(cells.get(column, ())) for column in columns)} |")
        lines.append("")
    for said in result.words:
        columns = list(dict.fromkeys(column for row in said.cells.values() for column in row))
        lines += [
            f"## {said.title}",
            "",
            f"| {said.corner} | {' | '.join(columns)} |",
            "|---" * (len(columns) + 1) + "|",
        ]
        lines += [f"| {row} | {' | '.join(cells.get(c, '') for c in columns)} |" for row, cells in said.cells.items()]
        lines.append("")
    for title, absent in (("Left out", result.left_out), ("Failed", result.failed)):
        for peer, reasons in absent.items():
            for reason, cases in reasons.items():
                lines.append(f"- {title}: **{peer}**: {reason} ({'; '.join(cases)})")
    if plot:
        lines += ["", f"![{result.name}]({result.name}.svg)"]
    settings = ", ".join(f"{name} {value}" for name, value in result.settings.items())
    lines += ["", "Medians, and the quartiles around them. Made by", "", "```sh", result.command, "```", ""]
    lines += [f"with {settings}.", ""] if settings else []
    lines += [f"- {name}: {text}" for name, text in result.environment.items()]
    return "\n".join(lines) + "\n"


def cell(samples: Sequence[float]) -> str:
    """Return median and quartiles as a person reads them."""
    if not samples:
        return "-"
    low, median, high = map(short, spread(samples))
    return median if low == high else f"{median} ({low} to {high})"


def short(number: float) -> str:
    """Return a number with three digits that matter."""
    if number == int(number) or abs(number) >= 1000:
        return f"{number:,.0f}".replace(",", " ")
    return f"{number:#.3g}".removesuffix(".")


def svg(tables: Sequence[Table]) -> str:
    """Return a picture of all tables that want to be plotted; needs matplotlib."""
    import matplotlib
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4 * len(tables)), layout="constrained")
    for axes, table in zip(figure.subplots(len(tables), squeeze=False)[:, 0], tables, strict=True):
        columns = table.columns()
        for i, (row, cells) in enumerate(table.cells.items()):
            found = [(column, spread(samples)) for column, samples in cells.items() if samples]
            medians = [s.median for _, s in found]
            errors = [[max(0, s.median - s.low) for _, s in found], [max(0, s.high - s.median) for _, s in found]]
            if table.plot == "bars":
                width = 0.8 / len(table.cells)
                places = [columns.index(column) + (i + 0.5) * width - 0.4 for column, _ in found]
                axes.bar(places, medians, width, yerr=errors, label=row)
            else:
                axes.errorbar([float(column) for column, _ in found], medians, errors, marker=".", label=row)
        if table.plot == "bars":
            axes.set_xticks(range(len(columns)), columns)
        elif table.plot == "lines":
            axes.set_xscale("log")
        if table.plot != "progress" and any(map(any, (row.values() for row in table.cells.values()))):
            axes.set_yscale("log")
        axes.set(title=table.title, ylabel=table.unit, xlabel=table.corner)
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    file = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "xgrad"}):  # equal data, equal files
        figure.savefig(file, format="svg", metadata={"Date": None})
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def write(result: Result, folder: Path) -> str:
    """Write NAME.json, NAME.md and NAME.svg, and return what was, or was not, written."""
    folder.mkdir(parents=True, exist_ok=True)
    name, plotted = result.name, [table for table in result.tables if table.plot and table.columns()]
    said = f"written: {name}.json, {name}.md"
    if plotted:
        try:
            (folder / f"{name}.svg").write_text(svg(plotted), encoding="utf-8")
            said += f", {name}.svg"
        except ModuleNotFoundError:
            plotted = []
            said += "; the plot is left out, for matplotlib is missing: pip install 'xgrad[benchmarks]'"
    text = json.dumps(asdict(result), indent=1, ensure_ascii=False, allow_nan=False)
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    (folder / f"{name}.md").write_text(markdown(result, bool(plotted)), encoding="utf-8")
    return said
