"""Results: tables of samples, as JSON, Markdown and a plot."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from textwrap import fill
from typing import Any

from benchmarks.statistics import spread

Cells = dict[str, dict[str, list[float]]]  # by row and column


@dataclass
class Table:
    """Samples of one kind by row and column."""

    title: str
    unit: str
    cells: Cells
    # "bars" or "lines" (columns are numbers), both logarithmic; "progress", linear; "": no plot
    plot: str = ""
    corner: str = ""  # meaning of the columns

    def columns(self) -> list[str]:
        """Return all columns, in the order of their first occurrence."""
        return list(dict.fromkeys(column for row in self.cells.values() for column in row))


@dataclass
class Words:
    """A table of words."""

    title: str
    corner: str
    cells: dict[str, dict[str, str]]


@dataclass
class Result:
    """Result of a benchmark: tables, and the peers that were left out or failed.

    For these peers, the reasons and the cases are given.
    """

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
    """Return the result as Markdown."""
    lines = [f"# {result.name}", "", result.about.strip(), ""]
    for table in result.tables:
        if table.columns():
            title = f"{table.title}, {table.unit}" if table.unit else table.title
            rows = {
                row: {column: cell(samples) for column, samples in cells.items()}
                for row, cells in table.cells.items()
            }
            lines += _table(title, table.corner, rows, "-")
    for words in result.words:
        lines += _table(words.title, words.corner, words.cells, "")
    for title, absent in (("Left out", result.left_out), ("Failed", result.failed)):
        for peer, reasons in absent.items():
            for reason, cases in reasons.items():
                lines.append(f"- {title}: **{peer}**: {reason} ({'; '.join(cases)})")
    if plot:
        lines += ["", f"![{result.name}]({result.name}.svg)"]
    settings = ", ".join(f"{name} {value}" for name, value in result.settings.items())
    lines += [
        "",
        "Medians, and the quartiles around them. Made by",
        "",
        "```sh",
        result.command,
        "```",
        "",
    ]
    lines += [f"with {settings}.", ""] if settings else []
    lines += [f"- {name}: {text}" for name, text in result.environment.items()]
    return "\n".join(lines) + "\n"


def _table(title: str, corner: str, rows: dict[str, dict[str, str]], missing: str) -> list[str]:
    """Return the lines of a table with its title."""
    columns = list(dict.fromkeys(column for cells in rows.values() for column in cells))
    lines = [
        f"## {title}",
        "",
        f"| {corner} | {' | '.join(columns)} |",
        "|---" * (len(columns) + 1) + "|",
    ]
    lines += [
        f"| {row} | {' | '.join(cells.get(c, missing) for c in columns)} |"
        for row, cells in rows.items()
    ]
    return [*lines, ""]


def cell(samples: Sequence[float]) -> str:
    """Return median and quartiles as text."""
    if not samples:
        return "-"
    low, median, high = map(short, spread(samples))
    return median if low == high else f"{median} ({low} to {high})"


def short(number: float) -> str:
    """Return a number with three significant digits."""
    if number == int(number) or abs(number) >= 1000:
        return f"{number:,.0f}".replace(",", " ")
    return f"{number:#.3g}".removesuffix(".")


def picture(tables: Sequence[Table]) -> Any:
    """Return a figure of tables; needs matplotlib.

    With a width of 7 inches, text is readable on a page that shows the figure 500 pixels wide.
    """
    from matplotlib.figure import Figure

    heights = [1 + len(t.columns()) * _height(t) if t.plot == "bars" else 3 for t in tables]
    figure = Figure(figsize=(7, sum(heights)), layout="constrained")
    subplots = figure.subplots(len(tables), squeeze=False, height_ratios=heights)
    for axes, table in zip(subplots[:, 0], tables, strict=True):
        columns = table.columns()
        for i, (row, cells) in enumerate(table.cells.items()):
            spreads = {column: spread(samples) for column, samples in cells.items() if samples}
            medians = [s.median for s in spreads.values()]
            below = [max(0, s.median - s.low) for s in spreads.values()]
            errors = [below, [max(0, s.high - s.median) for s in spreads.values()]]
            if table.plot == "bars":
                height = 0.8 / len(table.cells)
                positions = [columns.index(column) + (i + 0.5) * height - 0.4 for column in spreads]
                axes.barh(positions, medians, height, xerr=errors, label=row)
            else:
                axes.errorbar(
                    [float(column) for column in spreads], medians, errors, marker=".", label=row
                )
        if table.plot == "bars":
            axes.set_yticks(range(len(columns)), [_label(column) for column in columns])
            axes.set_ylim(len(columns) - 0.5, -0.5)
            axes.set_xlabel(table.unit)
        else:
            axes.set(xlabel=table.corner, ylabel=table.unit)
        if table.plot == "lines":
            _logarithmic(axes, "x")
        elif table.plot == "progress":
            axes.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
        # Counts and ratios, which have no unit, are linear.
        if table.unit and any(map(any, (row.values() for row in table.cells.values()))):
            _logarithmic(axes, "x" if table.plot == "bars" else "y")
        axes.set_title(table.title)
        axes.grid(alpha=0.3, axis="x" if table.plot == "bars" else "both")
        axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))  # beside the axes
    return figure


def _label(column: str) -> str:
    """Return the name of a column on short lines."""
    return ",\n".join([fill(part, 30) for part in column.split(", ")])


def _height(table: Table) -> float:
    """Return the height of a group of bars in inches, with space for its label."""
    lines = max((_label(column).count("\n") + 1 for column in table.columns()), default=0)
    return max(0.15 * len(table.cells), 0.18 * (lines + 1))


def svg(tables: Sequence[Table]) -> str:
    """Return the picture of tables as SVG; needs matplotlib."""
    import matplotlib

    file, figure = io.StringIO(), picture(tables)
    with matplotlib.rc_context({"svg.hashsalt": "xgrad"}):  # equal data give equal files
        figure.savefig(file, format="svg", metadata={"Date": None})
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def _logarithmic(axes: Any, name: str) -> None:
    """Make the x or y axis logarithmic, with plain numbers at its ticks."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set(**{f"{name}scale": "log"})
    axis = getattr(axes, f"{name}axis")
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda x, _: short(x) if x >= 1 else f"{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def write(result: Result, folder: Path) -> str:
    """Write NAME.json, NAME.md and NAME.svg, and return a message about the files."""
    folder.mkdir(parents=True, exist_ok=True)
    name = result.name
    plotted = [table for table in result.tables if table.plot and table.columns()]
    message = f"written: {name}.json, {name}.md"
    if plotted:
        try:
            (folder / f"{name}.svg").write_text(svg(plotted), encoding="utf-8")
            message += f", {name}.svg"
        except ModuleNotFoundError:
            plotted = []
            message += (
                "; without a plot, since matplotlib is missing: pip install 'xgrad[benchmarks]'"
            )
    text = json.dumps(asdict(result), indent=1, ensure_ascii=False, allow_nan=False)
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    (folder / f"{name}.md").write_text(markdown(result, bool(plotted)), encoding="utf-8")
    return message
