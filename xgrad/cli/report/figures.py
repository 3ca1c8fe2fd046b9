"""Figures of a report on training runs, as data URIs."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xgrad.parity.html_report.plots import data_uri

#: The line of each part of the data, in the order of the legend.
LINES = {"train": ":", "val": "--", "validation": "--", "valid": "--", "test": "-"}
COLUMNS = 4  # of the grid of histograms


def curves(runs: Sequence[Any]) -> str:
    """Return a plot of the losses and accuracies of all runs by epoch."""
    names = dict.fromkeys(name for run in runs for line in run.metrics for name in line)
    parts = {
        name: match.groups()
        for name in names
        if (match := re.fullmatch(r"([a-z]+)_(loss|accuracy)", name))
    }
    shown = [
        quantity
        for quantity in ("loss", "accuracy")
        if any(q == quantity for _, q in parts.values())
    ]

    def draw(figure: Any) -> None:
        for axes, quantity in zip(
            figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True
        ):
            for run in runs:
                for name, (part, _) in parts.items():
                    if name.endswith(quantity) and (points := _points(run.metrics, name)):
                        style, label = LINES.get(part, "-."), _plain(f"{run.name}, {part}")
                        axes.plot(
                            *zip(*points, strict=True),
                            style,
                            marker=".",
                            color=run.color,
                            label=label,
                        )
            axes.set(xlabel="epoch", title=quantity)
            axes.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
            axes.grid()
            if quantity == "loss" and all(y > 0 for line in axes.lines for y in line.get_ydata()):
                axes.set_yscale("log")
                axes.yaxis.set_major_formatter(lambda value, position: f"{value:g}")
                axes.yaxis.set_minor_formatter(
                    lambda value, position: f"{value:g}" if f"{value:e}"[0] in "25" else ""
                )
            if quantity == "accuracy":
                axes.yaxis.set_major_formatter(lambda value, position: f"{100 * value:g} %")
        marks = {line.get_label(): line for axes in figure.axes for line in axes.lines}
        figure.legend(
            marks.values(), marks, loc="outside lower center", ncols=min(3, len(runs)), fontsize=8
        )

    return data_uri(3.4 + 0.25 * len(runs), draw) if shown else ""


def _plain(name: str) -> str:
    """Return a name that matplotlib shows as it is.

    Matplotlib takes ``$`` for mathematics, and leaves names that start with ``_`` out of legends.
    """
    return " " * name.startswith("_") + name.replace("$", r"\$")


def _points(lines: Sequence[Mapping[str, float]], name: str) -> list[tuple[float, float]]:
    """Return the epochs of the lines that have a figure, with the figure."""
    return [(line["epoch"], line[name]) for line in lines if "epoch" in line and name in line]


def throughput(runs: Sequence[Any]) -> str:
    """Return a plot of the images per second of all runs by epoch; empty if no run has them."""
    known = [(run, points) for run in runs if (points := _points(run.timing, "images_per_second"))]

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for run, points in known:
            axes.plot(*zip(*points, strict=True), ".-", color=run.color, label=_plain(run.name))
        axes.set(xlabel="epoch", ylabel="images per second", ylim=(0, None))
        axes.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
        axes.grid()
        axes.legend()

    return data_uri(2.8, draw) if known else ""


def confusion(run: Any) -> str:
    """Return a plot of the confusion matrix of a run.

    The shade of an error is its share of the most frequent error.
    """
    counts, names = run.confusion(), run.class_names
    errors = counts - np.diag(np.diag(counts))

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        axes.imshow(errors, cmap="Reds", vmin=0, vmax=max(1, errors.max()))
        for i, j in np.argwhere(counts) if len(names) <= 12 else ():
            color = "white" if errors[i, j] > 0.5 * errors.max() else "#303030"
            axes.text(j, i, counts[i, j], ha="center", va="center", fontsize=9, color=color)
        ticks = range(0, len(names), 1 if len(names) <= 30 else 2)
        axes.set_xticks(
            ticks, [_plain(names[i]) for i in ticks], rotation=0 if max(map(len, names)) < 3 else 90
        )
        axes.set_yticks(ticks, [_plain(names[i]) for i in ticks])
        axes.set(xlabel="predicted", ylabel="label")

    return data_uri(5.3, draw, width=5.5)


def _by_number(name: str) -> list[tuple[int, str]]:
    """Return a sort key that puts 2.weight before 10.weight."""
    return [(int(part) if part.isdecimal() else 0, part) for part in name.split(".")]


def histograms(runs: Sequence[Any]) -> str:
    """Return histograms of the weights of all runs, one plot for each name."""
    names = sorted({name for run in runs for name in run.weights}, key=_by_number)
    rows = -(-len(names) // COLUMNS)

    def draw(figure: Any) -> None:
        grid = figure.subplots(rows, COLUMNS, squeeze=False).flat
        for axes, name in zip(grid, names, strict=False):
            for run in runs:
                if name in run.weights:
                    values = np.asarray(run.weights[name], dtype=np.float64).reshape(-1)
                    bins = max(5, min(50, math.isqrt(values.size)))
                    axes.hist(
                        values[np.isfinite(values)],
                        bins=bins,
                        histtype="step",
                        density=True,
                        color=run.color,
                    )
            axes.set_title(_plain(name), fontsize=9)
            axes.set_yticks([])
            axes.tick_params(labelsize=8)
            axes.locator_params(axis="x", nbins=4)
        for axes in list(figure.axes)[len(names) :]:
            axes.set_axis_off()

    return data_uri(1.5 * rows, draw) if names else ""
