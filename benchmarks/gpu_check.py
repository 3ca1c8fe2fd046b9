"""Check xgrad on the GPU of this machine: ``python -m benchmarks.gpu_check``.

``make gpu-check`` calls it. The `PARTS` run one after the other, each for its number of seconds
plus the seconds that others leave unused. Processes (`benchmarks.gpu_parts`) share the cases of a
part, and each result is appended to a file of JSON lines, named after the GPU. Another call
continues there. After each part, a report is written beside the file as JSON and as Markdown.
Without a usable GPU, the reason is printed in one line. ``--device cpu`` or ``torch`` is a
rehearsal without a GPU.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock, Timer
from typing import Any

import numpy as np

import xgrad
from benchmarks.environment import PACKAGES, ROOT, THREADS, commit, cores, output_of, versions

BUDGET = 570.0  # seconds for all parts together
CASE = 60.0  # seconds for a case of a part that has more than one process
LISTED = 40  # most errors that the page lists
START = "start of the process"  # the case of a process that ends before its first case

Record = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """A part of the check: its least number of seconds, and its largest number of processes.

    In `command`, ``PART``, ``DEVICE`` and ``SHARE`` are placeholders. If `shown`, the figures of
    passed cases are reported.
    """

    name: str
    seconds: float
    processes: int = 12
    shown: bool = False
    command: tuple[str, ...] = (
        sys.executable,
        "-m",
        "benchmarks.gpu_parts",
        "PART",
        "DEVICE",
        "SHARE",
    )


#: The most informative part first. Each also gets the time that earlier and completed parts leave.
PARTS = (
    Part("smoke", 20, processes=1),
    Part("models", 150, processes=1, shown=True),
    Part("bandwidth", 60, processes=1, shown=True),
    Part("steps", 50, processes=1, shown=True),
    Part("ops", 50),
    Part("capture", 20),
    Part("sanitizer", 40, processes=1),
    Part("fused", 10, processes=4),
    Part("mnist", 25, processes=1, shown=True),
    Part("parity", 45),
    Part("speed", 20, processes=1, shown=True),
    Part("tests", 30),
)


@dataclass
class Progress:
    """The results so far.

    These are the records of each part by case, the number of its cases, and its seconds.
    """

    file: Path
    records: dict[str, dict[str, Record]] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    seconds: Counter[str] = field(default_factory=Counter)

    def open(self, machine: Record) -> None:
        """Read the file if it is of the same machine and commit, else start a new one."""
        lines = self.file.read_text("utf-8").splitlines() if self.file.exists() else []
        if not lines or _parsed(lines[0]) != machine:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.write_text(json.dumps(machine) + "\n", "utf-8")
            return
        for event in map(_parsed, lines[1:]):
            if event and event.get("case") != START:
                self._apply(event)

    def add(self, **event: Any) -> None:
        """Apply an event, and append it to the file."""
        self._apply(event)
        with self.file.open("a", encoding="utf-8") as file:
            file.write(_public(json.dumps(event)) + "\n")

    def _apply(self, event: Record) -> None:
        part = event["part"]
        if "case" in event:
            self.records.setdefault(part, {})[event["case"]] = event
        self.totals[part] = event.get("total", self.totals.get(part, 0))
        self.seconds[part] += event.get("spent", 0)

    def complete(self, part: str) -> bool:
        """Return whether all cases of a part have run."""
        return 0 < self.totals.get(part, 0) <= len(self.records.get(part, {}))

    def report(self, machine: Record, parts: Sequence[Part]) -> Record:
        """Return the counts of all parts, and the errors and figures of their cases."""
        summaries = {}
        for part in parts:
            records = self.records.get(part.name, {})
            failed = {case: record["error"] for case, record in records.items() if record["error"]}
            figures = {
                case: record["figures"] for case, record in records.items() if case not in failed
            }
            skipped = Counter(
                str(entry["skipped"]) for entry in figures.values() if "skipped" in entry
            )
            summaries[part.name] = {
                "cases": max(self.totals.get(part.name, 0), len(records)),
                "passed": len(figures) - sum(skipped.values()),
                "skipped": dict(skipped.most_common()),
                "failed": failed,
                "complete": self.complete(part.name),
                "seconds": round(self.seconds[part.name], 1),
            } | ({"figures": figures} if part.shown else {})
        ok = all(part["complete"] and not part["failed"] for part in summaries.values())
        return {"machine": machine, "ok": ok, "parts": summaries}


def _parsed(line: str) -> Record:
    """Return the object in a line; empty if the process was killed while it wrote the line."""
    try:
        return dict(json.loads(line, parse_constant=str))  # JSON has no NaN
    except ValueError:
        return {}


def _public(text: str) -> str:
    """Return text without paths of this machine."""
    private = {
        "XGRAD_DATA": os.environ.get("XGRAD_DATA"),
        ".": str(ROOT),
        "PREFIX": sys.prefix,
        "~": str(Path.home()),
    }
    # The longest path first, since one may lie in another.
    for shown, path in sorted(private.items(), key=lambda item: -len(item[1] or "")):
        text = text.replace(json.dumps(path)[1:-1], shown) if path else text
    return text


# Runs


class Share:
    """The cases of a part that run in one process at a time.

    If a process ends early, another one continues.
    """

    def __init__(
        self, part: Part, device: str, share: str, deadline: float, progress: Progress, lock: Lock
    ) -> None:
        self.part, self.deadline, self.progress, self.lock = part, deadline, progress, lock
        named = {"PART": part.name, "DEVICE": device, "SHARE": share}
        self.command = [named.get(word, word) for word in part.command]
        self.process: subprocess.Popen[str] | None = None

    def run(self) -> None:
        """Run until all cases are done, or the time is up."""
        while time.monotonic() < self.deadline and self._run():
            pass

    def kill(self) -> None:
        """End the process and the processes that it has started.

        Workers of a benchmark, for instance, would continue to use the GPU.
        """
        if self.process:
            with contextlib.suppress(ProcessLookupError):
                (
                    os.killpg(self.process.pid, signal.SIGKILL)
                    if os.name == "posix"
                    else self.process.kill()
                )

    def _run(self) -> bool:
        """Run one process, and return whether another one is needed."""
        case, finished, overdue, results = "", False, False, 0
        env = os.environ | (dict.fromkeys(THREADS, "1") if self.part.processes > 1 else {})
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as noise:
            process = self.process = subprocess.Popen(
                self.command,
                cwd=ROOT,
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=noise,
                text=True,
                process_group=0 if os.name == "posix" else None,
            )
            assert process.stdin
            assert process.stdout
            with self.lock:
                done = list(self.progress.records.get(self.part.name, {}))
            try:
                process.stdin.write(json.dumps(done))
                process.stdin.close()
            except BrokenPipeError:
                pass  # the exit status is evaluated later
            while True:
                limit = CASE if case and self.part.processes > 1 else float("inf")
                timer = Timer(min(limit, max(0.0, self.deadline - time.monotonic())), self.kill)
                timer.start()
                line = process.stdout.readline()
                timer.cancel()
                if not line:
                    break
                event = _parsed(line)
                case, finished = event.get("start", ""), "end" in event
                results += "case" in event
                if "case" in event or "total" in event:
                    with self.lock:
                        self.progress.add(part=self.part.name, **event)
            process.stdout.close()
            status, overdue = process.wait(), time.monotonic() >= self.deadline
            self.kill()
            self.process = None
            if finished or overdue:
                return False
            if case or not results:
                noise.seek(0)
                reason = (
                    f"no result within {CASE:g} s"
                    if status == -9
                    else f"the process ended with status {status}"
                )
                last = (noise.read().strip().splitlines() or [""])[-1]
                with self.lock:
                    error = f"{reason}: {last}" if last else reason
                    self.progress.add(
                        part=self.part.name, case=case or START, figures={}, error=error
                    )
            return bool(case or results)


def run(
    parts: Sequence[Part],
    device: str,
    progress: Progress,
    note: Callable[[str], Any],
    budget: float = BUDGET,
) -> None:
    """Run all parts within a number of seconds, and call `note` after each.

    The seconds of later parts are reserved for them.
    """
    end, lock = time.monotonic() + budget, Lock()
    for i, part in enumerate(parts):
        if not progress.complete(part.name):
            start = time.monotonic()
            later = sum(
                other.seconds for other in parts[i + 1 :] if not progress.complete(other.name)
            )
            deadline = min(end, max(start + part.seconds, end - later))
            count = min(part.processes, cores())
            shares = [
                Share(part, device, f"{i}/{count}", deadline, progress, lock) for i in range(count)
            ]
            with ThreadPoolExecutor(count) as threads:
                try:
                    for _ in threads.map(Share.run, shares):
                        pass
                finally:  # also after an interruption
                    for share in shares:
                        share.deadline = 0.0
                        share.kill()
                    progress.add(part=part.name, spent=time.monotonic() - start)
        note(part.name)


# The report


def slug(name: str) -> str:
    """Return a name as part of a file name."""
    return re.sub("[^a-z0-9]+", "-", name.lower()).strip("-") or "gpu"


def describe(device: xgrad.Device) -> Record:
    """Return hardware, versions and commit."""
    driver = output_of("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    return {
        "device": device.backend.describe(device.index),
        "count": device.backend.count(),
        "driver": (driver or "").partition("\n")[0] or "unknown",
        **device.backend.versions(),
        "packages": ", ".join(versions(PACKAGES)),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "xgrad": xgrad.__version__,
        "system": f"{platform.system()} {platform.machine()}, {cores()} cores",
        "commit": commit(),
    }


def page(report: Record) -> str:
    """Return the report as a page of Markdown."""
    machine, parts = report["machine"], report["parts"]
    incomplete = [name for name, part in parts.items() if not part["complete"]]
    failed = {
        f"{name}: {case}": error
        for name, part in parts.items()
        for case, error in part["failed"].items()
    }
    verdict = f"{len(failed)} failed" if failed else "none failed"
    lines = [
        f"# gpu-check on {machine['device'].partition(',')[0]}: {verdict}"
        + ", incomplete" * bool(incomplete),
        "",
        *(f"- {name}: {value}" for name, value in machine.items()),
        "",
        *_table(
            ["part", "cases", "passed", "skipped", "failed", "not reached", "seconds"],
            [
                [
                    name,
                    part["cases"],
                    part["passed"],
                    (skipped := sum(part["skipped"].values())),
                    len(part["failed"]),
                    part["cases"] - part["passed"] - skipped - len(part["failed"]),
                    part["seconds"],
                ]
                for name, part in parts.items()
            ],
        ),
    ]
    if incomplete:
        lines += ["", f"Not complete: {', '.join(incomplete)}. The same command continues."]
    if failed:
        lines += ["", "## Failed", ""]
        lines += [
            f"- {case}: {' '.join(error.split())[:300]}"
            for case, error in list(failed.items())[:LISTED]
        ]
        lines += [f"- and {len(failed) - LISTED} more, in the JSON"] * (len(failed) > LISTED)
    if skipped := [
        f"- {name}: {count} times: {why}"
        for name, part in parts.items()
        for why, count in part["skipped"].items()
    ]:
        lines += ["", "## Skipped", "", *skipped]
    for name, part in parts.items():
        if figures := part.get("figures"):
            lines += ["", f"## {name}", *_shown(figures)]
    return "\n".join(lines) + "\n"


def _shown(figures: dict[str, Record]) -> list[str]:
    """Return the figures of cases: a line for each case, and tables, to which cases add cells."""
    lines, tables = list[str](), dict[str, dict[str, Record]]()
    for case, entries in figures.items():
        plain = []
        for key, value in entries.items():
            if not isinstance(value, dict):
                plain += [f"{key} {value}"] * (key != "skipped")
                continue
            for row, columns in value.items():
                tables.setdefault(key, {}).setdefault(row, {}).update(columns)
        if plain:
            lines += [*[""] * (not lines), f"- {case}: {', '.join(plain)}"]
    for title, rows in tables.items():
        columns = list(dict.fromkeys(column for row in rows.values() for column in row))
        cells = [[row, *map(rows[row].get, columns)] for row in rows]
        lines += ["", title, "", *_table(["", *columns], cells)]
    return lines


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    return [
        f"| {' | '.join('' if x is None else str(x) for x in row)} |"
        for row in (head, ["---"] * len(head), *rows)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status.

    The status is 0 if there is a GPU and all cases pass, else 1.
    """
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu_check", description="Check xgrad on a GPU."
    )
    add = parser.add_argument
    add(
        "--device",
        default="cuda",
        help="cuda, cuda:1 ..., or cpu or torch as a rehearsal (default: %(default)s)",
    )
    add("--budget", type=float, default=BUDGET, help="seconds for all parts (default: %(default)s)")
    add(
        "--parts",
        default="",
        metavar="NAME,...",
        help=f"some of {', '.join(part.name for part in PARTS)}",
    )
    add(
        "--quick",
        action="store_true",
        help="tiny sizes in parts that measure, as a test: their figures mean nothing",
    )
    add("--fresh", action="store_true", help="do not continue a previous call")
    results = ROOT / "benchmarks" / "results" / "gpu"
    add(
        "--out",
        type=Path,
        default=results,
        help="folder for the results (default: benchmarks/results/gpu)",
    )
    options = parser.parse_args(arguments)
    try:
        device = xgrad.Device(options.device)
    except xgrad.DeviceError as error:
        print(f"gpu-check: {error}")
        return 1
    names = options.parts.split(",") if options.parts else [part.name for part in PARTS]
    words = ("--quick",) * options.quick
    parts = [replace(part, command=(*part.command, *words)) for part in PARTS if part.name in names]
    machine = describe(device) | dict.fromkeys(["sizes"] * options.quick, "tiny, as a test")
    file = options.out / f"{slug(machine['device'].partition(',')[0])}.jsonl"
    if options.fresh:
        file.unlink(missing_ok=True)
    progress = Progress(file)
    progress.open(machine)
    print(machine["device"], flush=True)

    def note(name: str = "") -> Record:
        report = progress.report(machine, PARTS)
        file.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n", "utf-8")
        file.with_suffix(".md").write_text(page(report), "utf-8")
        if part := report["parts"].get(name):
            skipped = sum(part["skipped"].values())
            counts = (
                f"{part['passed']} of {part['cases']} passed, {skipped} skipped,"
                f" {len(part['failed'])} failed"
            )
            print(f"{name:8} {part['seconds']:6.1f} s  {counts}", flush=True)
        return report

    try:
        run(parts, str(device), progress, note, options.budget)
    except KeyboardInterrupt:
        return 130
    finally:
        report = note()
    print(file.with_suffix(".md"))
    return 0 if report["ok"] else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the page is then written
    sys.exit(main())
