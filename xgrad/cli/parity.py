"""``xgrad parity``: the comparison of devices."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from xgrad.backend import DeviceError
from xgrad.backend.device import Device
from xgrad.backend.devices import device_types
from xgrad.cli.arguments import Parser, UsageError, nonempty_path, some_of, words
from xgrad.parity import html_report, library_table
from xgrad.parity.cases import OP_CASES
from xgrad.parity.op_case import OpCase
from xgrad.parity.report import DTYPES, PARTS, as_json
from xgrad.parity.report import run as compare
from xgrad.parity.text_report import as_text
from xgrad.support import files
from xgrad.support.suggestions import did_you_mean


def run(argv: Sequence[str]) -> int:
    """Compare devices.

    Returns
    -------
    int
        0 if all agree, 1 if something is out of tolerance or nothing was compared, 2 if a device is
        missing.
    """
    args = parser().parse_args(argv)
    ops = select(args.ops) if "ops" in args else OP_CASES
    names = requested(args.devices) if "devices" in args else device_types()
    usable, missing = find_devices(names)
    if not usable:
        raise UsageError("; ".join(f"{name}: {reason}" for name, reason in missing.items()))
    if "table" in args and args.table.suffix != ".md":
        raise UsageError(f"--table: expected a file named *.md, got {args.table}")
    for name in ("json", "html", "table"):
        if name in args:
            check_writable(getattr(args, name))
    if "html" in args:
        try:
            html_report.check_installed()
        except ImportError as error:
            raise UsageError(f"--html: {error}") from error
    show_progress = progress(args.quiet)
    report = compare(ops, usable, args.dtypes, args.parts, progress=show_progress)
    show_progress("")
    report.missing, report.absent = (missing, {}) if "devices" in args else ({}, missing)
    report.command = shlex.join(["xgrad", "parity", *argv])
    # Printed before a report that goes to standard output as well.
    print(as_text(report, args.verbose), flush=True)
    try:
        if "json" in args:
            files.write(args.json, as_json(report).encode())
        if "html" in args:
            files.write(args.html, html_report.as_html(report).encode())
        if "table" in args:
            table = library_table.content(report)
            files.write(args.table.with_suffix(".json"), library_table.as_json(table).encode())
            files.write(args.table, library_table.as_markdown(table, args.table.stem).encode())
    except OSError as error:
        raise UsageError(f"the report could not be written: {error}") from error
    return {"pass": 0, "fail": 1, "empty": 1, "incomplete": 2}[report.verdict]


def parser() -> Parser:
    """Return the parser of the command's arguments."""
    top = Parser(
        "parity", "", "Compare devices: ops, fused kernels, training runs, seeds and times."
    )
    add = top.add_argument
    names = "NAME,..."
    add(
        "--devices",
        type=words,
        metavar=names,
        help="e.g. cpu,strict,torch,cuda (default: the first of each type)",
    )
    add("--ops", type=words, metavar=names, help="e.g. add,multiply (default: the whole op table)")
    add(
        "--dtypes",
        type=some_of(*DTYPES),
        default=",".join(DTYPES),
        metavar=names,
        help=f"dtypes to compare in (default: {','.join(DTYPES)})",
    )
    add(
        "--parts",
        type=some_of(*PARTS),
        default=",".join(PARTS),
        metavar=names,
        help=f"parts to compare (default: {','.join(PARTS)})",
    )
    add("--json", type=nonempty_path, metavar="FILE", help="write the report as JSON")
    add(
        "--html",
        type=nonempty_path,
        metavar="FILE",
        help="write the report as a page with plots (needs xgrad[parity])",
    )
    add(
        "--table",
        type=nonempty_path,
        metavar="FILE.md",
        help="write what is out of tolerance, wrong or missing, and FILE.json",
    )
    add(
        "-v",
        "--verbose",
        action="store_true",
        default=False,
        help="print every device, dtype and quantity",
    )
    add("--quiet", action="store_true", default=False, help="print no progress")
    return top


def select(names: Sequence[str]) -> list[OpCase]:
    """Return the cases of some ops, given the names of ops or of cases."""
    cases = [op for op in OP_CASES if op.name in names or op.function_name in names]
    known = {name for op in OP_CASES for name in (op.name, op.function_name)}
    if unknown := sorted(set(names) - known):
        raise UsageError(
            f"--ops: unknown op {', '.join(unknown)}: expected names such as {OP_CASES[0]}, as in"
            f" xgrad.ops{did_you_mean(unknown[0], known)}"
        )
    if not cases:
        raise UsageError("--ops: expected names of ops, got none")
    return cases


def requested(names: Sequence[str]) -> Sequence[str]:
    """Return the names of devices, which must be known."""
    if not names:
        raise UsageError("--devices: expected names of devices, got none")
    if unknown := [name for name in names if name.partition(":")[0] not in device_types()]:
        known = ", ".join(device_types())
        hint = did_you_mean(unknown[0], device_types())
        raise UsageError(
            f"--devices: unknown device {unknown[0]!r}: the installed backends are {known}{hint}"
        )
    return names


def find_devices(names: Sequence[str]) -> tuple[list[Device], dict[str, str]]:
    """Return the usable devices of some names, and the reason for each that is not usable."""
    usable: list[Device] = []
    missing = {}
    for name in names:
        try:
            device = Device(name)
        except DeviceError as error:
            missing[name] = str(error).removeprefix(f"{name}: ")
        else:
            usable += [device] if device not in usable else []
    return usable, missing


def check_writable(path: Path) -> None:
    """Raise UsageError if a file cannot be written, before the comparison, which takes minutes."""
    folder = path.absolute().parent
    try:
        if path.is_dir() or not folder.is_dir():
            raise UsageError(f"expected a file in a folder that exists, got {path}")
        files.check_writable(path)
    except OSError as error:
        raise UsageError(f"expected a file that can be written, got {path}: {error}") from error


def progress(quiet: bool) -> Callable[[str], None]:
    """Return a function that shows the current step on a terminal.

    It takes one line, which the next step replaces.
    """
    if quiet or not sys.stderr.isatty():
        return lambda text: None
    return lambda text: print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
