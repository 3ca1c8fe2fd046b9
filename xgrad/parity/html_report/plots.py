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


def device_errors(report: Report) -> str:
    """Return a plot of the worst errors of all ops, a strip for each device and dtype."""
    strips = [
        Strip(f"{device} {dtype}", color, _errors(report, device, dtype))
        for device, color in colors(report).items()
        for dtype in report.dtypes
    ]
    return _strips(strips, "worst error of an op, in ULP")


def rule_errors(report: Report) -> str:
    """Return a plot of the errors of the rules compared with finite differences and PyTorch.

    The result is empty if there are none.
    """
    limits = {DIFFERENCES: differences_limit(), PYTORCH: PYTORCH_LIMIT}
    strips = [
        Strip(name, OTHER, _errors(report, name, "float64"), limit)
        for name, limit in limits.items()
    ]
    return _strips(
        [strip for strip in strips if strip.points], "worst relative error of the reference"
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


def timing(report: Report, size: str) -> str:
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
        [strip for strip in strips.values() if strip.points], f"time of an op relative to {first}"
    )


def training(report: Report) -> str:
    """Return a plot of the losses of training runs, and of their differences from cpu."""

    def draw(figure: Any) -> None:
        axes = figure.subplots(len(report.baseline), 2, squeeze=False)
        for (name, losses), (left, right) in zip(report.baseline.items(), axes, strict=True):
            left.plot(losses, color=OTHER, label="cpu, the first run")
            left.set(title=f"{name}: loss", xlabel="step", ylim=(0, None))
            right.set(
                title=f"{name}: difference from cpu",
                xlabel="step",
                ylabel="relative to the largest loss",
            )
            for run in (run for run in report.training if f"{run.optimizer} {run.dtype}" == name):
                color = colors(report)[run.device]
                left.plot(run.losses, color=color, linestyle="--", label=run.device)
                off = [
                    abs(a - b) / max(losses) or math.nan
                    for a, b in zip(run.losses, losses, strict=False)
                ]
                if not all(map(math.isnan, off)):
                    right.semilogy(off, ".-", markersize=3, color=color, label=run.device)
            if not right.lines:
                right.text(
                    0.5, 0.5, "bit-identical on all devices", ha="center", transform=right.transAxes
                )
            left.legend()

    return data_uri(2.6 * len(report.baseline), draw)


def _strips(strips: Sequence[Strip], label: str) -> str:
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

    return data_uri(0.55 * len(strips) + 1, draw) if strips else ""


def data_uri(height: float, draw: Callable[[Any], None], width: float = 9) -> str:
    """Return a figure, drawn by a function, as a data URI; width and height are in inches."""
    picture = plotting.svg(plotting.figure(width, height, draw)).encode()
    return "data:image/svg+xml;base64," + base64.b64encode(picture).decode()
