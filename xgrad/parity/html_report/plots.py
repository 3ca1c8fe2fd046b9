"""Plots of a report as data URIs of SVG, drawn by matplotlib."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

from xgrad.parity.compare import PYTORCH_LIMIT, differences_limit
from xgrad.parity.comparison import DIFFERENCES, PYTORCH
from xgrad.parity.report import Report
from xgrad.support import plotting
from xgrad.support.plotting import COLORS, FAILED, OTHER

WIDE, NARROW = 9.0, 4.6  # inches of a plot: on a wide page, and on a phone


class Point(NamedTuple):
    """The size of an error or a time, with the name of the op.

    `failed` tells whether the error is out of tolerance, `gradient` whether it belongs to a
    gradient.
    """

    size: float
    op: str
    failed: bool = False
    gradient: bool = False


class Strip(NamedTuple):
    """A row of points, with the tolerance if they have one."""

    name: str
    color: str
    points: list[Point]
    limit: float | None = None


def colors(report: Report) -> dict[str, str]:
    """Return the colour of each device."""
    return {device: COLORS[i % len(COLORS)] for i, device in enumerate(report.devices)}


def device_errors(report: Report, width: float = WIDE) -> str:
    """Return a plot of the worst errors of all ops, a strip for each device and dtype."""
    strips = [
        Strip(f"{device} {dtype}", color, _errors(report, device, dtype))
        for device, color in colors(report).items()
        for dtype in report.dtypes
    ]
    return _strips(strips, "worst error of an op, in ULP", width)


def rule_errors(report: Report, width: float = WIDE) -> str:
    """Return a plot of the errors of the rules compared with finite differences and PyTorch.

    The result is empty if there are none.
    """
    limits = {DIFFERENCES: differences_limit(), PYTORCH: PYTORCH_LIMIT}
    strips = [
        Strip(name, OTHER, _errors(report, name, "float64"), limit)
        for name, limit in limits.items()
    ]
    return _strips(
        [strip for strip in strips if strip.points], "worst relative error of the reference", width
    )


def _errors(report: Report, device: str, dtype: str) -> list[Point]:
    pairs = [
        (op, error)
        for op in report.ops
        for error in op.cells
        if (error.device, error.dtype) == (device, dtype)
    ]
    return [
        Point(error.error, op.op, not error.passed, error.quantity == "gradient")
        for op, error in pairs
    ]


def timing(report: Report, size: str, width: float = WIDE) -> str:
    """Return a plot of op times, as multiples of the times on the first device.

    The result is empty if there are none.
    """
    first, *others = report.devices
    strips = {
        (name, t): Strip(f"{name} {t}", colors(report)[name], [])
        for name in others
        for t in report.dtypes
    }
    for op in report.ops:
        times = {(t.device, t.dtype): getattr(t, size) for t in op.timing}
        for (device, dtype), strip in strips.items():
            base, other = times.get((first, dtype)), times.get((device, dtype))
            if base and other and math.isfinite(other / base):
                strip.points.append(Point(other / base, op.op))
    return _strips(
        [strip for strip in strips.values() if strip.points],
        f"time of an op relative to {first}",
        width,
    )


def training(report: Report) -> dict[str, str]:
    """Return plots of the losses of training runs and of their differences from cpu, by caption."""
    plots: dict[str, str] = {}
    for name, losses in report.baseline.items():
        runs = [run for run in report.training if f"{run.optimizer} {run.dtype}" == name]

        def draw_losses(figure: Any, losses: Any = losses, runs: Any = runs) -> None:
            axes = figure.subplots()
            axes.plot(losses, color=OTHER, label="cpu, the first run")
            axes.set(xlabel="step", ylim=(0, None))
            for run in runs:
                color = colors(report)[run.device]
                axes.plot(run.losses, color=color, linestyle="--", label=run.device)
            axes.legend()

        def draw_differences(figure: Any, losses: Any = losses, runs: Any = runs) -> None:
            axes = figure.subplots()
            axes.set(xlabel="step", ylabel="relative to the largest loss")
            for run in runs:
                off = [
                    abs(a - b) / max(losses) or math.nan
                    for a, b in zip(run.losses, losses, strict=False)
                ]
                if not all(map(math.isnan, off)):
                    color = colors(report)[run.device]
                    axes.semilogy(off, ".-", markersize=3, color=color, label=run.device)
            if not axes.lines:
                equal = "bit-identical on all devices"
                axes.text(0.5, 0.5, equal, ha="center", transform=axes.transAxes)

        plots[f"{name}: loss"] = data_uri(2.6, draw_losses, NARROW)
        plots[f"{name}: difference from cpu"] = data_uri(2.6, draw_differences, NARROW)
    return plots


def _strips(strips: Sequence[Strip], label: str, width: float) -> str:
    """Return a plot of strips of points on a logarithmic axis.

    Points below the axis, such as 0, are drawn at its start.
    """
    sizes = [
        point.size for strip in strips for point in strip.points if 1e-20 < point.size < math.inf
    ] or [1.0]
    low, high = min(sizes) / 3, max(sizes) * 3

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for row, (_, color, points, limit) in enumerate(strips):
            for failed, gradient in product((False, True), repeat=2):
                group = [
                    (k, p.size)
                    for k, p in enumerate(points)
                    if (p.failed, p.gradient) == (failed, gradient)
                ]
                x = [min(max(size, low), high) for _, size in group]
                y = [row + 0.6 * ((k * 0.618034) % 1 - 0.5) for k, _ in group]  # spread evenly
                fill, shown = "none" if gradient else "full", FAILED if failed else color
                axes.plot(
                    x, y, "o", markersize=5 if failed else 3, color=shown, alpha=0.8, fillstyle=fill
                )
            if limit:
                axes.vlines(limit, row - 0.4, row + 0.4, color=FAILED)
            largest = max(points, key=lambda point: point.size, default=Point(0.0, ""))
            if largest.size > 0:
                axes.text(min(largest.size, high), row - 0.38, largest.op, fontsize=8, ha="right")
        axes.set(
            xscale="log", xlim=(low / 1.5, high * 1.5), ylim=(len(strips) - 0.4, -0.6), xlabel=label
        )
        axes.set_yticks(range(len(strips)), [strip.name for strip in strips])
        axes.grid(axis="x")

    return data_uri(0.55 * len(strips) + 1, draw, width) if strips else ""


def data_uri(height: float, draw: Callable[[Any], None], width: float = WIDE) -> str:
    """Return a figure, drawn by a function, as a data URI; width and height are in inches."""
    picture = plotting.svg(plotting.figure(width, height, draw)).encode()
    return "data:image/svg+xml;base64," + base64.b64encode(picture).decode()
