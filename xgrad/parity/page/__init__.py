"""A report as one page of HTML that needs nothing else: its style, plots and few lines of script are inside."""

from __future__ import annotations

from importlib import resources

from xgrad.parity.page.html import cell, escape, key, section, table, tag
from xgrad.parity.page.ops import details, errors, ops_table, timing
from xgrad.parity.page.runs import fused, seeds, training
from xgrad.parity.report import Report, notes
from xgrad.parity.text import explain, failed_runs, number, verdict
from xgrad.parity.tolerance import CLASSES

COLOURS = 6  # of the style, of which the last is for what is no device


def as_page(report: Report) -> str:
    """Return a report as HTML."""
    colours = {name: i % (COLOURS - 1) for i, name in enumerate(report.devices)}
    parts: dict[str, str] = {}
    if report.failed:
        parts["failed"] = _failed(report)
    if report.ops:
        parts |= {"errors": errors(report, colours), "table": ops_table(report), "details": details(report)}
    if report.fused:
        parts["fused"] = fused(report)
    if report.training:
        parts["training"] = training(report, colours)
    if report.seeds:
        parts["seeds"] = seeds(report)
    if any(op.timing for op in report.ops):
        parts["timing"] = timing(report, colours)
    parts["method"] = _method()
    body = "\n".join([_summary(report, colours, list(parts)), *parts.values(), _environment(report)])
    style, script = (resources.files(__name__).joinpath(name).read_text("utf-8") for name in ("style.css", "script.js"))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>xgrad parity: {report.verdict}</title><style>\n{style}</style></head>\n"
        f"<body><main>\n{body}\n</main><script>\n{script}</script></body></html>\n"
    )


TITLES = {
    "failed": "What failed",
    "errors": "Errors",
    "table": "Op by op",
    "details": "Worst inputs",
    "fused": "Fused kernels",
    "training": "Training",
    "seeds": "Seeds",
    "timing": "Timing",
    "method": "How it is compared",
}


def _summary(report: Report, colours: dict[str, int], parts: list[str]) -> str:
    badge = tag("span", report.verdict, class_=f"badge {report.verdict}")
    cards = tag("div", *[_card(report, name, colour) for name, colour in colours.items()], class_="cards")
    gone = [f"{name} was asked for, but cannot be used: {why}" for name, why in report.missing.items()]
    gone += [f"{name} is not compared, for it cannot be used here: {why}" for name, why in report.absent.items()]
    links = " &middot; ".join(tag("a", TITLES[part], href=f"#{part}") for part in parts)
    return tag(
        "header",
        tag("h1", "xgrad parity ", badge),
        tag("p", escape(verdict(report)), ".", class_="lead"),
        cards,
        *[tag("p", escape(line), class_="gone") for line in gone],
        tag("nav", links),
    )


def _card(report: Report, device: str, colour: int) -> str:
    """Return what came of one device."""
    lines = []
    cells = [(op, cell) for op in report.ops for cell in op.cells if cell.device == device]
    if cells:
        skipped, bad = sum(device in op.skipped for op in report.ops), sum(not cell.passed for _, cell in cells)
        lines.append(f"{len(report.ops) - skipped} rows of ops compared" + (f", {skipped} skipped" * bool(skipped)))
        exact = sum(cell.error == 0 for _, cell in cells)
        if bad:
            lines.append(f"{bad} of {len(cells)} comparisons past the tolerance")
        else:
            lines.append(f"all {len(cells)} comparisons within tolerance, {exact} of them exact")
        op, most = max(cells, key=lambda pair: pair[1].error)
        if most.error:
            lines.append(f"largest error: {number(most.error)} ULP, in {op.op} ({most.dtype}, {most.quantity})")
    kernels = [f for f in report.fused if f.device == device]
    if kernels:
        lines.append(f"{sum(f.passed for f in kernels)} of {len(kernels)} fused kernels agree with the generic rules")
    runs = [t for t in report.training if t.device == device]
    if runs:
        lines.append(f"{sum(t.passed for t in runs)} of {len(runs)} trainings follow cpu's")
    draws = [s for s in report.seeds if s.device == device]
    if draws:
        lines.append(f"{sum(s.equal for s in draws)} of {len(draws)} seeded draws have the same bits")
    return tag(
        "div",
        tag("h3", key(colour), escape(device)),
        tag("p", escape(report.devices[device])),
        tag("ul", *[tag("li", escape(line)) for line in lines]),
        class_="card",
    )


def _failed(report: Report) -> str:
    items = [
        tag("li", escape(explain(op, cell)), tag("pre", escape(cell.reproducer)) if cell.reproducer else "")
        for op in report.ops
        for cell in op.failures
    ]
    items += [tag("li", escape(line)) for line in failed_runs(report)]
    return section("failed", TITLES["failed"], tag("ul", *items, class_="failures"))


def _method() -> str:
    said = notes()
    texts = [
        tag("h3", title) + tag("p", escape(said[name]))
        for name, title in (("reference", "The reference"), ("rules", "The rules"), ("units", "Errors"))
    ]
    rows = [
        [
            cell(t.name),
            cell(f"{t.value:g}"),
            cell(f"{t.gradient:g}"),
            cell(f"{t.per_element:g}" if t.per_element else ""),
            cell(t.reason, "prose"),
        ]
        for t in CLASSES
    ]
    heads = ["class", "value, units", "gradient, units", "more for each element", "reason"]
    return section("method", TITLES["method"], *texts, tag("h3", "Tolerances"), table(heads, rows))


def _environment(report: Report) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    first = f"{report.date}, {report.seconds:.0f} s, {report.platform}; {versions}"
    again = tag("p", "Again: ", tag("code", escape(report.command)))
    return tag("footer", tag("p", escape(first)), again)
