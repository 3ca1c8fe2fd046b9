"""``xgrad parity``: one device held against another, op by op and run by run."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from xgrad.backend import DeviceError
from xgrad.backend.device import Device
from xgrad.backend.devices import device_types
from xgrad.backend.registry import open_backend
from xgrad.cli.arguments import Parser, UsageError, checked
from xgrad.parity.page import as_page
from xgrad.parity.report import DTYPES, PARTS, as_json
from xgrad.parity.report import run as compare
from xgrad.parity.row import Op
from xgrad.parity.table import OPS
from xgrad.parity.text import as_text
from xgrad.support import files


def run(argv: Sequence[str]) -> int:
    """Compare devices.

    Returns
    -------
    int
        0 where all agree, 1 where something is past its tolerance or nothing was compared, 2 where a device is missing.
    """
    args = parser().parse_args(argv)
    ops = select(args.ops) if "ops" in args else OPS
    usable, missing = sort_devices(args.devices) if "devices" in args else (installed()[0], {})
    absent = {} if "devices" in args else installed()[1]
    if not usable:
        raise UsageError("; ".join(f"{name}: {why}" for name, why in missing.items()))
    for name in ("json", "html"):
        if name in args:
            check_writable(getattr(args, name))
    report = compare(ops, usable, args.dtypes, args.parts, progress=note(args.quiet))
    note(args.quiet)("")
    report.missing, report.absent = missing, absent
    report.command = shlex.join(["xgrad", "parity", *argv])
    print(as_text(report, args.verbose), flush=True)  # before a report that goes to standard output as well
    try:
        if "json" in args:
            files.write(args.json, as_json(report).encode())
        if "html" in args:
            files.write(args.html, as_page(report).encode())
    except OSError as error:
        raise UsageError(f"the report could not be written: {error}") from error
    return {"pass": 0, "fail": 1, "empty": 1, "incomplete": 2}[report.verdict]


def parser() -> Parser:
    """Return the parser of the command's arguments."""
    top = Parser("parity", "Hold one device against another: ops, trainings, seeds, and how long they take.")
    add = top.add_argument
    add(
        "--devices",
        type=words,
        metavar="NAME,...",
        help="such as cpu,strict,torch,cuda (default: the first of each type)",
    )
    add("--ops", type=words, metavar="NAME,...", help="such as add,multiply (default: every row of the table)")
    add("--dtypes", type=some_of(DTYPES), default=",".join(DTYPES), metavar="NAME,...", help="what to compare in")
    add("--parts", type=some_of(PARTS), default=",".join(PARTS), metavar="NAME,...", help="what to compare")
    add("--json", type=Path, metavar="FILE", help="write the report for a program to read")
    add("--html", type=Path, metavar="FILE", help="write the report as one page with plots")
    add("-v", "--verbose", action="store_true", default=False, help="print every device, dtype and quantity")
    add("--quiet", action="store_true", default=False, help="do not say what is being done")
    return top


def words(text: str) -> list[str]:
    """Return names that commas separate, without repetitions."""
    return list(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))


def some_of(known: Sequence[str]) -> Callable[[str], list[str]]:
    """Return an argument's type: some of a few names."""
    return checked(words, lambda found: bool(found) and set(found) <= set(known), f"some of {','.join(known)}")


def select(names: Sequence[str]) -> list[Op]:
    """Return the rows of some ops, given their names or those of rows."""
    rows = [op for op in OPS if op.name in names or op.function_name in names]
    known = {name for op in OPS for name in (op.name, op.function_name)}
    if unknown := sorted(set(names) - known):
        raise UsageError(f"--ops: unknown op {', '.join(unknown)}: expected names such as {OPS[0]}, as in xgrad.ops")
    if not rows:
        raise UsageError("--ops: expected names of ops, got none")
    return rows


def sort_devices(names: Sequence[str]) -> tuple[list[Device], dict[str, str]]:
    """Return the devices of some names that can be used, and why the others cannot; a name must be known."""
    if not names:
        raise UsageError("--devices: expected names of devices, got none")
    usable, missing = [], {}
    for name in names:
        if name.partition(":")[0] not in device_types():
            raise UsageError(
                f"--devices: unknown device {name!r}: the installed backends are {', '.join(device_types())}"
            )
        try:
            device = Device(name)
        except DeviceError as error:
            missing[name] = str(error).removeprefix(f"{name}: ")
        else:
            usable += [device] if device not in usable else []
    return usable, missing


def installed() -> tuple[list[Device], dict[str, str]]:
    """Return the first device of each backend that can be used, and why the others cannot."""
    usable, absent = [], {}
    for name in device_types():
        try:
            open_backend(name)
            usable.append(Device(name))
        except DeviceError as error:
            absent[name] = str(error).removeprefix(f"{name}: ")
    return usable, absent


def check_writable(path: Path) -> None:
    """Refuse a file that could not be written, before the minutes that it takes to know what to write."""
    folder = path.absolute().parent
    try:
        if path.is_dir() or not folder.is_dir():
            raise UsageError(f"expected a file in a folder that exists, got {path}")
        files.check_writable(path)
    except OSError as error:
        raise UsageError(f"expected a file that can be written, got {path}: {error}") from error


def note(quiet: bool) -> Callable[[str], None]:
    """Return what says on a terminal what is being done, in one line that the next one replaces."""
    if quiet or not sys.stderr.isatty():
        return lambda text: None
    return lambda text: print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
