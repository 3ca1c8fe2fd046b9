"""Results: tables of samples, as JSON, Markdown and a plot."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.plots import picture
from benchmarks.statistics import short, spread
from xgrad.support import plotting

Cells = dict[str, dict[str, list[float]]]  # by row and column


@dataclass
class Table:
    """Samples of one kind by row and column."""

    title: str
    unit: str
    cells: Cells
    # "bars", "lines" (of columns that are numbers, logarithmic), or "": no plot
    plot: str = ""
    corner: str = ""  # meaning of the columns

    def columns(self) -> list[str]:
        """Return all columns, in the order of their first occurrence."""
        return list(dict.fromkeys(column for row in self.cells.values() for column in row))

    @property
    def better(self) -> str:
        """Which way is better: counts, shares and rates should be high, times and sizes low."""
        return f"{'higher' if self.unit in ('', '%', 'GB/s') else 'lower'} is better"


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

    def plotted(self) -> list[Table]:
        """Return the tables that have a plot."""
        return [table for table in self.tables if table.plot and table.columns()]

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


def write(result: Result, folder: Path) -> str:
    """Write NAME.json, NAME.md and NAME.svg, and return a message about the files."""
    folder.mkdir(parents=True, exist_ok=True)
    name = result.name
    text = json.dumps(asdict(result), indent=1, ensure_ascii=False, allow_nan=False)
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    message, plotted = f"written: {name}.json, {name}.md", False
    try:
        if tables := result.plotted():
            (folder / f"{name}.svg").write_text(plotting.svg(picture(tables)), encoding="utf-8")
            message, plotted = f"{message}, {name}.svg", True
    except ImportError as error:
        message += f"; without a plot, since {error}"
    (folder / f"{name}.md").write_text(markdown(result, plotted), encoding="utf-8")
    return message


def read(path: Path) -> Result | None:
    """Return a result from its JSON, or None for JSON of another kind."""
    values = json.loads(path.read_text(encoding="utf-8"))
    if "tables" not in values:
        return None
    tables = [Table(**table) for table in values.pop("tables")]
    return Result(
        tables=tables, words=[Words(**words) for words in values.pop("words", [])], **values
    )
