"""Plots of a report by matplotlib, as data URIs of SVG; their colours are legible on light and dark pages."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from xgrad.parity.compare import PYTORCH_LIMIT, differences_limit
from xgrad.parity.comparison import DIFFERENCES, PYTORCH
from xgrad.parity.report import Report

COLORS = ("#3d86e0", "#d8781f", "#a06be0", "#26a195", "#d0589a")  # of devices
OTHER, INK, FAILED = "#7d899b", "#808a99", "#e0483e"  # what is no device; text and axes; errors out of tolerance
FIRST_RUN = "cpu, the first run"


def colors(report: Report) -> dict[str, str]:
    """Return the colour of each device."""
    return {device: COLORS[i % len(COLORS)] for i, device in enumerate(report.devices)}


def device_errors(report: Report) -> str:
    """Return the worst errors of all ops, a strip for each device and dtype."""
    strips = [
        (f"{device} {dtype}", color, _errors(report, device, dtype), None)
        for device, color in colors(report).items()
        for dtype in report.dtypes
    ]
    return _strips(strips, "worst error of an op, in ULP")


def rule_errors(report: Report) -> str:
    """Return the errors of the rules compared with finite differences and PyTorch; empty if there are none."""
    limits = {DIFFERENCES: differences_limit(), PYTORCH: PYTORCH_LIMIT}
    strips = [(name, OTHER, _errors(report, name, "float64"), limit) for name, limit in limits.items()]
    strips = [strip for strip in strips if strip[2]]
    return _strips(strips, "worst relative error of the reference; lines: tolerances") if strips else ""


def timing(report: Report, size: str) -> str:
    """Return the times of ops as multiples of those on the first device; empty if there are none."""
    first, *others = report.devices
    strips = []
    for device in others:
        for dtype in report.dtypes:
            points = []
            for op in report.ops:
                times = {t.device: getattr(t, size) for t in op.timing if t.dtype == dtype}
                base, other = times.get(first), times.get(device)
                if base and other and math.isfinite(other / base):
                    points.append((other / base, op.op, False, False))
            strips.append((f"{device} {dtype}", colors(report)[device], points, None))
    text = "small inputs" if size == "small" else "65 536 elements"
    return _strips(strips, f"time of an op relative to {first}, {text}") if any(s[2] for s in strips) else ""


def training(report: Report) -> str:
    """Return the losses of training runs, and their differences from those on cpu."""
    figure = _figure(9, 2.6 * len(report.baseline))
    axes = figure.subplots(len(report.baseline), 2, squeeze=False)
    for (name, losses), (left, right) in zip(report.baseline.items(), axes, strict=True):
        left.plot(losses, color=OTHER, label=FIRST_RUN)
        left.set(title=f"{name}: loss", xlabel="step", ylim=(0, None))
        right.set(title=f"{name}: difference from cpu", xlabel="step", ylabel="relative to the largest loss")
        for run in (run for run in report.training if f"{run.optimizer} {run.dtype}" == name):
            color = colors(report)[run.device]
            left.plot(run.losses, color=color, linestyle="--", label=run.device)
            off = [abs(a - b) / max(losses) for a, b in zip(run.losses, losses, strict=False)]
            if any(off):
                right.semilogy([x or math.nan for x in off], ".-", markersize=3, color=color, label=run.device)
        if not right.lines:
            right.text(0.5, 0.5, "bit-identical on all devices", color=INK, ha="center", transform=right.transAxes)
        left.legend(labelcolor=INK, framealpha=0)
    return _data_uri(figure)


Point = tuple[float, str, bool, bool]  # an error, the name of the op, whether it failed, whether it is of a gradient


def _errors(report: Report, device: str, dtype: str) -> list[Point]:
    return [
        (error.error, op.op, not error.passed, error.quantity == "gradient")
        for op in report.ops
        for error in op.cells
        if (error.device, error.dtype) == (device, dtype)
    ]


def _strips(strips: Sequence[tuple[str, str, Sequence[Point], float | None]], label: str) -> str:
    """Return a strip of dots for each name, colour, points and limit, on a logarithmic axis."""
    figure = _figure(9, 0.55 * len(strips) + 1)
    axes = figure.subplots()
    finite = [p[0] for strip in strips for p in strip[2] if 0 < p[0] < math.inf] or [1.0]
    low, high = min(finite) / 3, max(finite) * 3
    for row, (_, color, points, limit) in enumerate(strips):
        for failed in (False, True):
            for gradient in (False, True):
                chosen = [(k, p) for k, p in enumerate(points) if p[2:] == (failed, gradient)]
                axes.plot(
                    [min(max(p[0], low), high) for _, p in chosen],
                    [row + 0.6 * ((k * 0.618034) % 1 - 0.5) for k, _ in chosen],  # spread evenly, and reproducibly
                    "o", markersize=5 if failed else 3, color=FAILED if failed else color, alpha=0.75,
                    fillstyle="none" if gradient else "full",
                )  # fmt: skip
        if limit:
            axes.vlines(limit, row - 0.4, row + 0.4, color=FAILED)
        if points and (largest := max(points, key=lambda p: p[0]))[0] > 0:
            axes.annotate(largest[1], (min(largest[0], high), row - 0.38), color=INK, fontsize=8, ha="right")
    axes.set(xscale="log", xlim=(low / 1.5, high * 1.5), ylim=(len(strips) - 0.4, -0.6), xlabel=label)
    axes.set_yticks(range(len(strips)), [strip[0] for strip in strips])
    axes.grid(axis="x", alpha=0.3)
    return _data_uri(figure)


def _figure(width: float, height: float) -> Any:
    return import_module("matplotlib.figure").Figure(figsize=(width, height), layout="constrained")


def _data_uri(figure: Any) -> str:
    for axes in figure.axes:
        axes.set_facecolor("none")
        axes.tick_params(colors=INK, which="both")
        for part in (axes.xaxis.label, axes.yaxis.label, axes.title):
            part.set(color=INK)
        for spine in axes.spines.values():
            spine.set(color=INK)
    file = io.BytesIO()
    figure.savefig(file, format="svg", transparent=True)
    return "data:image/svg+xml;base64," + base64.b64encode(file.getvalue()).decode()
