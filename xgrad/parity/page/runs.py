"""What a page says of fused kernels, trainings and seeds."""

from __future__ import annotations

from collections.abc import Sequence

from xgrad.parity.page.html import cell, escape, key, section, table, tag
from xgrad.parity.page.svg import curves
from xgrad.parity.report import Report, notes
from xgrad.parity.text import number
from xgrad.parity.training import Training

OTHER = 5  # the colour of what is no device
FIRST = "cpu, the first run"


def fused(report: Report) -> str:
    """Return a table of how far kernels are from the generic rules."""
    rows = [
        [
            cell(f.what), cell(f.dtype), cell(f.device),
            cell(f.note or number(f.error), "over" if not f.passed else "s1" if f.error else ""), cell(number(f.limit)),
        ]
        for f in report.fused
    ]  # fmt: skip
    heads = ["kernel", "dtype", "device", "error, in units of the precision", "tolerance"]
    return section("fused", "Fused kernels", tag("p", escape(notes()["fused"])), table(heads, rows))


def training(report: Report, colours: dict[str, int]) -> str:
    """Return the curves of all trainings, and how far they are from those on cpu."""
    plots, rows = [], []
    for name, ours in report.baseline.items():
        runs = [t for t in report.training if f"{t.optimizer} {t.dtype}" == name]
        lines = [(FIRST, OTHER, ours), *[(t.device, colours[t.device], t.losses) for t in runs]]
        plots.append(_captioned(f"{name}: loss", lines, log=False))
        offs = [(t.device, colours[t.device], _offs(t, ours)) for t in runs]
        offs = [line for line in offs if any(line[2])]
        if offs:
            plots.append(_captioned(f"{name}: relative difference from cpu (0 at the bottom)", offs, log=True))
        else:
            plots.append(tag("p", f"{name}: every loss has the same bits on all devices", class_="same"))
        rows += [_row(t) for t in runs]
    keys = {**colours, FIRST: OTHER}
    legend = tag("p", *[tag("span", key(c), escape(name)) for name, c in keys.items()], class_="legend")
    heads = ["optimizer", "dtype", "device", "losses, largest", "last loss", "final weights", "tolerance", "µs a step"]
    figures = tag("div", *[tag("figure", plot) for plot in plots], class_="pair")
    return section("training", "Training", tag("p", escape(notes()["training"])), legend, figures, table(heads, rows))


def _captioned(text: str, lines: Sequence[tuple[str, int, Sequence[float]]], *, log: bool) -> str:
    return tag("figcaption", escape(text)) + curves(lines, text, log=log)


def _offs(run: Training, ours: list[float]) -> list[float]:
    scale = max(ours)
    return [abs(a - b) / scale for a, b in zip(run.losses, ours, strict=False)]


def _row(t: Training) -> list[str]:
    shade = "s1" if t.passed else "over"
    off = [
        cell(f"{e:.1e}" if e else "0", shade if e else "") for e in (t.loss_error, t.last_loss_error, t.weight_error)
    ]
    return [cell(t.optimizer), cell(t.dtype), cell(t.device), *off, cell(f"{t.limit:g}"), cell(f"{t.step:.0f}")]


def seeds(report: Report) -> str:
    """Return a table of what is drawn on which device."""
    found = {(s.what, s.dtype, s.device): s for s in report.seeds}

    def mark(what: str, dtype: str, device: str) -> str:
        seed = found[what, dtype, device]
        return cell("equal" if seed.equal else seed.note, "" if seed.equal else "over")

    rows = [
        [cell(what), *[mark(what, dtype, device) for device in report.devices for dtype in report.dtypes]]
        for what in dict.fromkeys(s.what for s in report.seeds)
    ]
    heads = ["draw", *[f"{escape(d)}{tag('small', dtype)}" for d in report.devices for dtype in report.dtypes]]
    return section("seeds", "Seeds", tag("p", escape(notes()["seeds"])), table(heads, rows))
