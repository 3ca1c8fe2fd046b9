"""What a page says of the ops: plots, a table to sort, the worst inputs, and times."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from xgrad.parity.compare import DIFFERENCES, PYTORCH, PYTORCH_LIMIT, Cell, Comparison, differences_limit
from xgrad.parity.page.html import cell, escape, section, table, tag
from xgrad.parity.page.svg import Dot, strips
from xgrad.parity.report import Report, notes
from xgrad.parity.text import by, number, short, worst
from xgrad.parity.tolerance import ROUNDED

OTHER = 5  # the colour of what is no device


def errors(report: Report, colours: dict[str, int]) -> str:
    """Return the strips of all errors."""
    rows = [
        (f"{name} {dtype}", colour, _dots(report, name, dtype))
        for name, colour in colours.items()
        for dtype in report.dtypes
    ]
    limits = {DIFFERENCES: differences_limit(), PYTORCH: PYTORCH_LIMIT}
    rules = [(name, OTHER, _dots(report, name, "float64")) for name in limits]
    rules = [row for row in rules if row[2]]
    content = [
        tag(
            "p",
            "One dot for each op: filled, its values; hollow, its gradients. Point at one to see which. What is past "
            "its tolerance is red.",
        ),
        tag("figure", strips(rows, "worst error of an op, in ULP")),
    ]
    if rules:
        wider = {op.op for op in report.ops for c in op.cells if c.device in limits and c.limit > limits[c.device]}
        text = "The rules, which all devices share, against what does not use them. Red lines are the tolerances"
        text += f", but for {len(wider)} ops, whose own are wider: point at a dot to see which." if wider else "."
        plot = strips(rules, "worst relative error of the reference", limits=[limits[name] for name, _, _ in rules])
        content += [tag("p", text), tag("figure", plot)]
    return section("errors", "Errors", *content)


def _dots(report: Report, device: str, dtype: str) -> list[Dot]:
    return [
        Dot(
            c.error,
            f"{op.op}, {c.quantity}: {short(c)} of {number(c.limit)} {c.unit}",
            not c.passed,
            c.quantity == "gradient",
        )
        for op in report.ops
        for c in op.cells
        if (c.device, c.dtype) == (device, dtype)
    ]


def ops_table(report: Report) -> str:
    """Return a line for each op, which can be sorted and filtered."""
    there = {c.device for op in report.ops for c in op.cells}
    names = [*report.devices, *[name for name in (DIFFERENCES, PYTORCH) if name in there]]
    kinds = [(name, q) for name in names for q in ("value", "gradient") if (name, q) != (DIFFERENCES, "value")]
    groups = [
        tag("th", escape(n), tag("small", "ULP" if n in report.devices else "relative"), colspan=_span(n))
        for n in names
    ]
    heads = [tag("th", text, data_sort="text") for text in ("op", "tolerance")]
    heads += [tag("th", quantity, data_sort="number") for _, quantity in kinds]
    head = tag("thead", tag("tr", "<th></th><th></th>", *groups), tag("tr", *heads))
    body = tag("tbody", *[_row(op, kinds) for op in report.ops])
    return section(
        "table",
        "Op by op",
        tag("p", "The worst of all samples and dtypes. A click on a heading sorts, one on an op shows its inputs."),
        tag(
            "p", "Used of the tolerance:", *[tag("span", text, class_=k) for k, text in SHADES.items()], class_="legend"
        ),
        '<p><input id="filter" type="search" placeholder="filter by op or tolerance" aria-label="filter"> '
        '<label><input id="bad" type="checkbox"> failures only</label> <span id="count"></span></p>',
        tag("div", tag("table", head, body, id="ops"), class_="scroll"),
    )


def _span(name: str) -> str:
    return "1" if name == DIFFERENCES else "2"


def _row(op: Comparison, kinds: Sequence[tuple[str, str]]) -> str:
    cells = [tag("td", tag("a", escape(op.op), href=f"#{_anchor(op)}")), cell(op.tolerance)]
    for name, quantity in kinds:
        found = by(op, name, quantity)
        if found is None:
            why = op.skipped.get(name, "not differentiable" if quantity == "gradient" else "not compared")
            text = "skipped" if name in op.skipped else "-"
            cells.append(tag("td", text, class_="none", data_value="-1", title=why))
        else:
            title = f"{found.dtype}, {found.what}; {number(found.limit)} {found.unit} tolerated"
            value = f"{found.error:.6g}" if math.isfinite(found.error) else "1e300"
            cells.append(tag("td", short(found), class_=shade(found), data_value=value, title=title))
    return tag("tr", *cells, class_="bad" if op.failures else "")


#: What the colours of cells say; the lightest is also that of errors which rounding alone makes.
SHADES = {"s1": "up to 25 %", "s2": "50 %", "s3": "75 %", "s4": "100 %", "over": "more: failed"}


def shade(found: Cell) -> str:
    """Return how dark a cell is: by how much of the tolerance is used, unless no result could be better."""
    if not found.passed:
        return "over"
    if found.unit == "ULP" and 0 < found.error <= ROUNDED.value:
        return "s1"
    return f"s{min(4, math.ceil(4 * found.share))}"


def _anchor(op: Comparison) -> str:
    return "op-" + op.op.replace(" ", "-")


def details(report: Report) -> str:
    """Return for each op all errors, and code for the worst of each device."""
    text = (
        "For each op where and how far each device is off the most, and code to paste that shows the worst of each. "
        "Where the error is 0 there is nothing to show."
    )
    return section("details", "Worst inputs", tag("p", text), *[_detail(op) for op in report.ops])


def _detail(op: Comparison) -> str:
    most = worst([c for c in op.cells if c.unit == "ULP"])
    used = "" if most is None else f", {number(most.error)} ULP on {most.device}" if most.error else ", exact"
    about = tag("span", escape(f"{op.samples} samples, {op.tolerance}{used}"))
    rows = [
        [
            cell(c.device),
            cell(c.dtype),
            cell(c.quantity),
            cell(f"{short(c)} {c.unit}", shade(c)),
            cell(number(c.limit)),
            cell(f"{c.relative:.1e}"),
            cell(c.note or c.inputs if c.error else "", title=c.inputs if c.error else ""),
        ]
        for c in op.cells
    ]
    return tag(
        "details",
        tag("summary", tag("b", escape(op.op)), about),
        *[tag("p", escape(f"Skipped on {name}: {why}.")) for name, why in op.skipped.items()],
        table(["against", "dtype", "quantity", "worst error", "tolerance", "relative", "input"], rows),
        *[_code(c) for c in _worst_by_device(op)],
        id=_anchor(op),
        class_="bad" if op.failures else "",
    )


def _worst_by_device(op: Comparison) -> Iterator[Cell]:
    for device in dict.fromkeys(c.device for c in op.cells):
        found = worst([c for c in op.cells if c.device == device and c.reproducer])
        if found is not None:
            yield found


def _code(c: Cell) -> str:
    outcome = c.note or f"got {c.got}, expected {c.expected}"
    title = tag("summary", escape(f"{c.device}, {c.dtype}, {c.quantity}: {outcome}"))
    return tag("details", title, tag("pre", escape(c.reproducer)))


def timing(report: Report, colours: dict[str, int]) -> str:
    """Return how long ops take, as multiples of the first device."""
    base, *others = report.devices
    plots = []
    for size, text in (("small", "small inputs"), ("large", "65 536 elements")):
        rows = [
            (f"{name} {dtype}", colours[name], list(_ratios(report, base, name, dtype, size)))
            for name in others
            for dtype in report.dtypes
        ]
        if any(dots for _, _, dots in rows):
            label = f"time of an op as a multiple of that on {base}, {text}"
            plots.append(tag("figure", strips(rows, label, zero=False, unity=True)))
    heads = ["op", *[escape(n) + tag("small", "small, large") for n in report.devices]]
    times = table(heads, [[cell(op.op), *[_times(op, name) for name in report.devices]] for op in report.ops])
    numbers = tag("details", tag("summary", f"Microseconds, {report.dtypes[0]}"), times)
    return section("timing", "Timing", tag("p", escape(notes()["timing"])), *plots, numbers)


def _ratios(report: Report, base: str, device: str, dtype: str, size: str) -> Iterator[Dot]:
    for op in report.ops:
        times = {t.device: getattr(t, size) for t in op.timing if t.dtype == dtype}
        ours, theirs = times.get(base), times.get(device)
        if ours and theirs and math.isfinite(theirs / ours):
            yield Dot(theirs / ours, f"{op.op}: {theirs:.0f} µs, {theirs / ours:.2g} of {base}")


def _times(op: Comparison, device: str) -> str:
    for t in op.timing:
        if t.device == device:
            return cell(f"{t.small:.0f}" + ("" if t.large is None else f", {t.large:.0f}"))
    return cell("-", "none")
