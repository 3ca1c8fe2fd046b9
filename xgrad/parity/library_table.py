"""The table of array libraries, as JSON and Markdown.

It has the worst error of each op, wrong values, and missing ops.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

from xgrad.parity.comparison import Comparison, WorstError
from xgrad.parity.reference import reference
from xgrad.parity.report import Report

_LONGEST = 100  # characters of inputs; larger samples are described by their shapes

_ABOUT = (
    "# Accuracy of array libraries\n"
    "\n"
    "The worst error of each op of the [op table](../../docs/command_line.md#parity) on the arrays"
    " of each library, values\n"
    "and first gradients; values that are wrong; and what is missing. An op that a library lacks is"
    " computed as its plug-in\n"
    "does: on `jax`, special functions are SciPy's. Gradients are those of xgrad's rules. Only"
    " findings are listed here:\n"
    "[{name}.json]({name}.json) has the errors of all ops. Made by\n"
    "\n"
    "```sh\n"
    "{command}\n"
    "```\n"
    "\n"
    "with {versions}. The reference is {reference}.\n"
)
_TOLERANCE = (
    "\n"
    "## Out of tolerance\n"
    "\n"
    "Errors in ULPs, in bold those out of tolerance; the input is that of the largest of these. The"
    " tolerances and their\n"
    "reasons are in `xgrad/parity/tolerance.py`.\n"
)
_WRONG = (
    "\n"
    "## Wrong values\n"
    "\n"
    "NaNs and infinities, integers, bools and dtypes that differ from the reference. The sign of"
    " zero is not compared.\n"
)
_MISSING = """
## Missing

Ops of which at least one sample raises an error.
"""


def content(report: Report) -> dict[str, Any]:
    """Return the figures of a report.

    These are the worst errors, in ULPs, of each op on each device, and all findings.
    """
    keys = list(product(report.dtypes, ("value", "gradient")))
    findings: list[dict[str, Any]] = []
    for op in report.ops:
        findings += [_refused(op.op, device, reason) for device, reason in op.skipped.items()]
        findings += [_finding(op, error) for error in op.failures if error.device in report.devices]
    return {
        "command": report.command,
        "reference": reference().description,
        "versions": report.versions,
        "devices": report.devices,
        "columns": [" ".join(key) for key in keys],
        # without duplicates, since an op may be refused in both dtypes
        "findings": [f for i, f in enumerate(findings) if f not in findings[:i]],
        "errors": {
            op.op: {d: [_worst(op, d, *key) for key in keys] for d in report.devices}
            for op in report.ops
        },
    }


def _worst(op: Comparison, device: str, dtype: str, quantity: str) -> float | None:
    """Return the worst rounding error, or None if there is none."""
    key = device, dtype, quantity, "rounding"
    errors = [e.error for e in op.cells if (e.device, e.dtype, e.quantity, e.kind) == key]
    return float(f"{errors[0]:.3g}") if errors else None


def _finding(op: Comparison, error: WorstError) -> dict[str, Any]:
    if error.kind == "refused":
        return _refused(op.op, error.device, _reason(error.note))
    place = f" at {list(error.place)}" if sum(error.place) else ""
    inputs = error.inputs if len(error.inputs) <= _LONGEST else f"shapes {error.sample}{place}"
    size = (
        {"error": float(f"{error.error:.3g}"), "limit": error.limit}
        if error.kind == "rounding"
        else {}
    )
    return {
        "op": op.op,
        "device": error.device,
        "kind": error.kind,
        "column": f"{error.dtype} {error.quantity}",
        "input": inputs,
        "what": error.what,
        "got": error.got,
        "expected": error.expected,
        **size,
    }


def _refused(op: str, device: str, reason: str) -> dict[str, Any]:
    return {"op": op, "device": device, "kind": "refused", "reason": reason}


def _reason(note: str) -> str:
    """Return the first line of an exception's message.

    The op and its arguments, which xgrad adds to the message, are left out.
    """
    error, _, message = note.partition(": ")
    first = next(filter(str.strip, re.sub(r"^\w+: ", "", message).splitlines()), "")
    return f"{error}: {first.partition(' (got')[0]}"


def as_json(table: dict[str, Any]) -> str:
    """Return the figures as JSON, with a line for each finding and each op."""
    parts = {name: json.dumps(value) for name, value in table.items()}
    rows = [f"{json.dumps(op)}: {json.dumps(row)}" for op, row in table["errors"].items()]
    parts |= {
        "findings": _lines("[]", map(json.dumps, table["findings"])),
        "errors": _lines("{}", rows),
    }
    return _lines("{}", (f'"{name}": {text}' for name, text in parts.items())) + "\n"


def _lines(brackets: str, rows: Iterable[str]) -> str:
    return "\n".join([brackets[0], ",\n".join(rows), brackets[1]])


def as_markdown(table: dict[str, Any], name: str) -> str:
    """Return a page with the findings alone; `name` is the name of the JSON file."""
    versions = ", ".join(f"{library} {version}" for library, version in table["versions"].items())
    about = _ABOUT.format(name=name, **table | {"versions": versions})
    parts = {about: _summary, _TOLERANCE: _rounding, _WRONG: _wrong, _MISSING: _missing}
    lines = []
    for text, rows in parts.items():
        head, *found = rows(table)
        lines += [
            text,
            *([_row(head), _row(["---"] * len(head)), *map(_row, found)] if found else ["None."]),
        ]
    return "\n".join([*lines, ""])


def _row(cells: list[str]) -> str:
    return "| " + " | ".join([cell.replace("|", "\\|") for cell in cells]) + " |"


def _summary(table: dict[str, Any]) -> Iterator[list[str]]:
    """Yield the head and a row for each device: how many ops have findings of each kind."""
    yield ["device", "library", "ops compared", "out of tolerance", "wrong values", "missing"]
    for device, library in table["devices"].items():
        found = {(f["kind"], f["op"]) for f in table["findings"] if f["device"] == device}
        counts = [
            str(sum(kind == k for k, _ in found)) for kind in ("rounding", "wrong", "refused")
        ]
        compared = sum(
            any(error is not None for error in row[device]) for row in table["errors"].values()
        )
        yield [f"`{device}`", library, f"{compared} of {len(table['errors'])}", *counts]


def _rounding(table: dict[str, Any]) -> Iterator[list[str]]:
    """Yield the head and a row for each figure that is out of tolerance on any device.

    A row has the errors of all devices.
    """
    yield ["op", "", "tolerated", *[f"`{device}`" for device in table["devices"]], "input"]
    for (op, column), found in _grouped(table, "rounding", "op", "column").items():
        bold, number = {f["device"] for f in found}, table["columns"].index(column)
        errors = {device: row[number] for device, row in table["errors"][op].items()}
        cells = [
            "-" if e is None else f"**{e:g}**" if device in bold else f"{e:g}"
            for device, e in errors.items()
        ]
        worst = max(found, key=lambda f: f["error"])
        yield [op, column, f"{worst['limit']:.3g}", *cells, f"`{worst['input']}`"]


def _wrong(table: dict[str, Any]) -> Iterator[list[str]]:
    """Yield the head and a row for each wrong value; equal ones in both dtypes share a row."""
    yield ["op", "on", "", "input", "got", "expected"]
    for row, found in _grouped(
        table, "wrong", "op", "device", "what", "input", "got", "expected"
    ).items():
        op, device, what, *values = row
        what += f", {', '.join(f['column'].split()[0] for f in found)}"
        yield [op, f"`{device}`", what, *[f"`{value}`" for value in values]]


def _missing(table: dict[str, Any]) -> Iterator[list[str]]:
    """Yield the head and a row for each reason why a device lacks ops."""
    yield ["on", "ops", "reason"]
    for (device, reason), found in _grouped(table, "refused", "device", "reason").items():
        yield [f"`{device}`", ", ".join(f["op"] for f in found), reason]


def _grouped(
    table: dict[str, Any], kind: str, *keys: str
) -> dict[tuple[str, ...], list[dict[str, Any]]]:
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for f in table["findings"]:
        if f["kind"] == kind:
            groups.setdefault(tuple([f[key] for key in keys]), []).append(f)
    return groups
