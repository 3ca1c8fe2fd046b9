"""The report as one HTML page without scripts or external resources, by Jinja2 and matplotlib."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime
from importlib import import_module, resources
from typing import Any

from xgrad.parity import text_report
from xgrad.parity.comparison import DIFFERENCES, PYTORCH, Comparison, WorstError, worst
from xgrad.parity.html_report import plots
from xgrad.parity.report import Report, notes
from xgrad.parity.tolerance import CLASSES, ROUNDED

#: The CSS classes of table cells, by share of the tolerance; the lightest also marks errors from
#: rounding alone.
SHADES = {"s1": "up to 25 %", "s2": "50 %", "s3": "75 %", "s4": "100 %", "over": "more: failed"}


def check_installed(extra: str = "parity") -> None:
    """Raise an ImportError that tells which extra to install if a package is missing."""
    for name in ("jinja2", "matplotlib"):
        try:
            import_module(name)
        except ImportError as error:
            raise ImportError(
                f"{name} is missing ({error}): pip install 'xgrad[{extra}]'"
            ) from error


def as_html(report: Report) -> str:
    """Return a report as HTML; it needs Jinja2 and matplotlib."""
    check_installed()
    compared = {error.device for op in report.ops for error in op.cells}
    colors = plots.colors(report)
    return render(
        __name__,
        report=report,
        date=date_text(datetime.fromisoformat(report.date)),
        notes=notes(),
        tolerances=CLASSES,
        shades=SHADES,
        colors=colors,
        plots=plots,
        columns=[*report.devices, *[name for name in (DIFFERENCES, PYTORCH) if name in compared]],
        differences=DIFFERENCES,
        text=text_report,
        anchor=anchor,
        shade=shade,
        summary=device_summary,
        worst=worst,
        reproducible=reproducible,
    )


def date_text(date: datetime) -> str:
    """Return a date and time as the pages show it."""
    return f"{date:%Y-%m-%d %H:%M} UTC"


def render(package: str, **values: Any) -> str:
    """Render the ``template.html`` of a package.

    The template gets the values, and the style that all pages share.
    """
    jinja2 = import_module("jinja2")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    template = resources.files(package).joinpath("template.html").read_text("utf-8")
    style = resources.files(__name__).joinpath("style.css").read_text("utf-8")
    page: str = environment.from_string(template).render(style=style, **values)
    return page


def anchor(op: Comparison) -> str:
    """Return the HTML id of an op's details."""
    return "op-" + op.op.replace(" ", "-")


def shade(error: WorstError) -> str:
    """Return the class of a table cell, by the share of the tolerance.

    If no result could be better, the cell gets the lightest shade.
    """
    if not error.passed:
        return "over"
    if error.unit == "ULP" and 0 < error.error <= ROUNDED.value:
        return "s1"
    return f"s{min(4, math.ceil(4 * error.share))}"


def reproducible(op: Comparison) -> list[WorstError]:
    """Return the worst error of each device that has a program to reproduce it."""
    errors = [error for error in op.cells if error.reproducer]
    devices = dict.fromkeys(error.device for error in errors)
    return [
        error for device in devices if (error := worst([e for e in errors if e.device == device]))
    ]


def device_summary(report: Report, device: str) -> Iterator[str]:
    """Yield the results of one device, a line for each part."""
    pairs = [(op, error) for op in report.ops for error in op.cells if error.device == device]
    if pairs:
        skipped = sum(device in op.skipped for op in report.ops)
        failed = sum(not error.passed for _, error in pairs)
        yield f"{len(report.ops) - skipped} op cases compared" + (
            f", {skipped} skipped" * bool(skipped)
        )
        if failed:
            yield f"{failed} of {len(pairs)} comparisons out of tolerance"
        else:
            exact = sum(error.error == 0 for _, error in pairs)
            yield f"all {len(pairs)} comparisons within tolerance, {exact} of them exact"
        op, largest = max(pairs, key=lambda pair: pair[1].error)
        if largest.error:
            size = text_report.number(largest.error)
            yield f"largest error: {size} ULP, in {op.op} ({largest.dtype}, {largest.quantity})"
    kernels = [kernel.passed for kernel in report.fused if kernel.device == device]
    runs = [run.passed for run in report.training if run.device == device]
    draws = [draw.equal for draw in report.seeds if draw.device == device]
    results = {
        "fused kernels agree with the generic rules": kernels,
        "training runs match cpu": runs,
    }
    for text, passed in {**results, "seeded draws are bit-identical to cpu's": draws}.items():
        if passed:
            yield f"{sum(passed)} of {len(passed)} {text}"
