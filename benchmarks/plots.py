"""Plots of tables, in the style of all plots of xgrad."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

from benchmarks.statistics import short, spread
from xgrad.support import plotting
from xgrad.support.hints import import_optional

if TYPE_CHECKING:
    from benchmarks.report import Table

# inches; pages show the figure at this size, and telephones at two thirds of it
WIDTH, BAR, TITLE, LINE, LINES = 5.6, 0.19, 0.34, 0.17, 2.4
#: Lines of peers, which share few greys.
DASHES = ("--", ":", "-.")


def picture(tables: Sequence[Table]) -> Any:
    """Return a figure of tables; it needs matplotlib.

    The bars of a table are grouped by column. Each group has its own linear scale, from 0, since
    columns differ by orders of magnitude; the values are written beside the bars.
    """
    heights = [_height(table) for table in tables]

    def draw(figure: Any) -> None:
        parts = figure.subfigures(len(tables), squeeze=False, height_ratios=heights)[:, 0]
        for part, table in zip(parts, tables, strict=True):
            part.suptitle(heading(table), x=0.01, ha="left", weight="bold")
            (_bars if table.plot == "bars" else _lines)(part, table)

    return plotting.figure(WIDTH, sum(heights), draw, "benchmarks")


def heading(table: Table) -> str:
    """Return the title of a plot: what was measured, in which unit, and which way is better."""
    return fill(", ".join(filter(None, [table.title, table.unit, table.better])), 46)


def is_xgrad(row: str) -> bool:
    """Tell whether a row of a table is a measurement of xgrad, which plots emphasize."""
    return row.split()[0] == "xgrad"


def title(column: str) -> str:
    """Return the name of a column on lines that are no longer than the bars below."""
    return fill(column, 38)


def _groups(table: Table) -> dict[str, dict[str, Sequence[float]]]:
    """Return the samples by column and row, without those that are missing."""
    groups: dict[str, dict[str, Sequence[float]]] = {column: {} for column in table.columns()}
    for row, cells in table.cells.items():
        for column, samples in cells.items():
            if samples:
                groups[column][row] = samples
    return {column: group for column, group in groups.items() if group}


def _height(table: Table) -> float:
    """Return the height of the plot of a table in inches."""
    top = TITLE + LINE * heading(table).count("\n")
    if table.plot != "bars":
        return top + LINES
    groups = _groups(table)
    titles = sum(TITLE + LINE * title(column).count("\n") for column in groups)
    return top + titles * (len(groups) > 1) + BAR * sum(map(len, groups.values()))


def _bars(part: Any, table: Table) -> None:
    groups = _groups(table)
    ratios = [len(group) for group in groups.values()]
    subplots = part.subplots(len(groups), squeeze=False, height_ratios=ratios) if groups else []
    for (axes,), (column, group) in zip(subplots, groups.items(), strict=True):
        spreads = [spread(samples) for samples in group.values()]
        medians = [s.median for s in spreads]
        errors = [[s.median - s.low for s in spreads], [s.high - s.median for s in spreads]]
        bars = axes.barh(
            range(len(group)),
            medians,
            0.76,
            xerr=errors,
            color=["C0" if is_xgrad(row) else plotting.OTHER for row in group],
            error_kw={"ecolor": plotting.INK, "elinewidth": 1},
        )
        values = axes.bar_label(bars, [short(median) for median in medians], padding=4)
        axes.set_yticks(range(len(group)), group)
        for row, *texts in zip(group, axes.get_yticklabels(), values, strict=True):
            for text in texts:
                text.set(fontsize=9, weight="bold" if is_xgrad(row) else "normal")
        # with space for the value beside the longest bar
        axes.set(xlim=(0, 1.25 * max(s.high for s in spreads) or 1), ylim=(len(group) - 0.4, -0.6))
        axes.tick_params(axis="y", length=0)
        axes.get_xaxis().set_visible(False)
        axes.spines["bottom"].set_visible(False)
        if len(groups) > 1:
            axes.set_title(title(column), fontsize=9)


def _lines(part: Any, table: Table) -> None:
    axes, peers = part.subplots(), 0
    for row, cells in table.cells.items():
        spreads = {float(column): spread(samples) for column, samples in cells.items() if samples}
        medians = [s.median for s in spreads.values()]
        errors = [[s.median - s.low for s in spreads.values()]]
        errors += [[s.high - s.median for s in spreads.values()]]
        look: dict[str, Any] = {"color": "C0", "linewidth": 2.2, "zorder": 3}
        if not is_xgrad(row):
            look = {
                "color": plotting.OTHERS[peers % len(plotting.OTHERS)],
                "linestyle": DASHES[peers % len(DASHES)],
            }
            peers += 1
        axes.errorbar(list(spreads), medians, errors, marker=".", label=row, **look)
    axes.set_xlabel(table.corner)
    _logarithmic(axes, "x")
    if any(map(any, (cells.values() for cells in table.cells.values()))):
        _logarithmic(axes, "y")
    axes.grid()
    # beside the axes, where it hides no line
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize=9)


def _logarithmic(axes: Any, name: str) -> None:
    """Make the x or y axis logarithmic, with plain numbers at its ticks."""
    ticker = import_optional("matplotlib.ticker", "benchmarks")
    axes.set(**{f"{name}scale": "log"})
    axis = getattr(axes, f"{name}axis")
    low, high = axis.get_view_interval()
    axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
    axis.set_major_formatter(ticker.FuncFormatter(lambda x, _: short(x) if x >= 1 else f"{x:g}"))
    axis.set_minor_locator(ticker.NullLocator())
