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
WIDTH = 4.6  # inches of a plot, as wide as a phone; wider pages have several beside each other


def curves(runs: Sequence[Any]) -> dict[str, str]:
    """Return plots of the loss and the accuracy of all runs by epoch, by their captions."""
    plots = {quantity: _curve(runs, quantity) for quantity in ("loss", "accuracy")}
    return {f"{name} by epoch".capitalize(): plot for name, plot in plots.items() if plot}


def _curve(runs: Sequence[Any], quantity: str) -> str:
    """Return a plot of a quantity of all runs and parts of the data; empty if no run has it."""
    names = dict.fromkeys(name for run in runs for line in run.metrics for name in line)
    parts = {
        name: match[1] for name in names if (match := re.fullmatch(rf"([a-z]+)_{quantity}", name))
    }

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for run in runs:
            for name, part in parts.items():
                if points := _points(run.metrics, name):
                    style, label = LINES.get(part, "-."), _plain(f"{run.name}, {part}")
                    x, y = zip(*points, strict=True)
                    axes.plot(x, y, style, marker=".", color=run.color, label=label)
        axes.set(xlabel="epoch")
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
        figure.legend(loc="outside lower center", ncols=min(2, len(runs)), fontsize=9)

    return data_uri(3.0 + 0.25 * len(runs), draw, WIDTH) if parts else ""


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

    return data_uri(2.8, draw, WIDTH) if known else ""


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


def histograms(runs: Sequence[Any]) -> list[tuple[str, str]]:
    """Return the names of weights, with histograms of their values in all runs."""
    names = sorted({name for run in runs for name in run.weights}, key=_by_number)
    return [(name, _histogram(runs, name)) for name in names]


def _histogram(runs: Sequence[Any], name: str) -> str:
    """Return a histogram of the weights of a name in all runs."""

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for run in (run for run in runs if name in run.weights):
            values = np.asarray(run.weights[name], dtype=np.float64).reshape(-1)
            values, bins = values[np.isfinite(values)], max(5, min(50, math.isqrt(values.size)))
            axes.hist(values, bins=bins, histtype="step", density=True, color=run.color)
        axes.set_yticks([])
        axes.locator_params(axis="x", nbins=4)

    return data_uri(1.3, draw, WIDTH / 2)
