"""Check xgrad on the GPU of this machine, and write the results to a file: ``python -m benchmarks.gpu_check``.

Each of `PARTS` runs in a process of its own, since an error on a GPU can affect all later work of the process: first
the measurements, alone, then all others at once, since they mostly compile kernels. The result is one JSON file named
after the GPU, written after each part. Without a usable GPU, the reason is printed in one line.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any
from xml.etree import ElementTree

import numpy as np

import xgrad
from benchmarks.environment import ROOT, commit, output_of

BUDGET = 545.0  # seconds for all of `PARTS` together
GRACE = 25.0  # seconds for a part to end after its limit; pytest-xdist waits for ten before pytest reports

Report = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """A command to run for at most `limit` seconds.

    In the command, ``python`` stands for the running interpreter, and ``TMP`` for an empty folder. `figures` extracts
    the results from the output and that folder; the part has failed if they have a non-empty entry ``failed``. No other
    part runs beside one that is `alone`.
    """

    name: str
    command: tuple[str, ...]
    limit: float
    figures: Callable[[str, Path], Report]
    alone: bool = False


def last_line(output: str, folder: Path) -> Report:
    """Return the JSON object in the last line of the output."""
    figures: Report = json.loads(output.rstrip().rpartition("\n")[2])
    return figures


def junit(output: str, folder: Path) -> Report:
    """Return the numbers of passed and skipped tests, and the failures by name, from pytest's XML."""
    cases = list(ElementTree.parse(folder / "tests.xml").iter("testcase"))
    failed = {}
    for case in cases:
        for bad in (*case.iter("failure"), *case.iter("error")):
            lines = bad.get("message", "").splitlines() or [""]
            failed[f"{case.get('classname')}::{case.get('name')}"] = lines[0][:200]
    skipped = sum(case.find("skipped") is not None for case in cases)
    return {"passed": len(cases) - skipped - len(failed), "skipped": skipped, "failed": failed}


def speed(output: str, folder: Path) -> Report:
    """Return the medians of the benchmark ``gpu``, and the peers that were left out or failed."""
    result = json.loads((folder / "speed" / "gpu.json").read_text("utf-8"))
    tables = {
        table["title"]: {
            row: {column: float(f"{median(samples):.4g}") for column, samples in cells.items()}
            for row, cells in table["cells"].items()
        }
        for table in result["tables"]
    }
    return {**tables, "left_out": result["left_out"], "failed": result["failed"]}


def parity(output: str, folder: Path) -> Report:
    """Return the worst errors in the report of ``xgrad parity``, and all errors out of tolerance."""
    report = json.loads((folder / "parity.json").read_text("utf-8"))
    worst: dict[str, Report] = {}
    failed = []
    for op in report["ops"]:
        for cell in op["cells"]:
            error = float(cell["error"])  # "inf" if NaNs and infinities differ
            where, unit = f"{cell['device']} {cell['dtype']} {cell['quantity']}", cell["unit"]
            if error > worst.get(f"{where}, {unit}", {"error": -1.0})["error"]:
                worst[f"{where}, {unit}"] = {"error": float(f"{error:.3g}"), "op": op["op"]}
            if not error <= cell["limit"]:
                failed.append(f"{op['op']} {where}: off by {error:.3g} {unit}, tolerated {cell['limit']:.3g}, on "
                              f"{cell['sample']}")  # fmt: skip
    for kernel in report["fused"]:
        error, limit = float(kernel["error"]), kernel["limit"]
        if not error <= limit:
            where = f"{kernel['what']} {kernel['device']} {kernel['dtype']}"
            failed.append(f"fused: {where}: {kernel['note'] or f'off by {error:.3g}, tolerated {limit:.3g}'}")
    training = {
        f"{run['device']} {run['dtype']} {run['optimizer']}": max(float(run["loss_error"]), float(run["weight_error"]))
        for run in report["training"]
    }
    equal = sum(draw["equal"] for draw in report["seeds"])
    return {
        "verdict": report["verdict"],
        "worst": {where: entry for where, entry in worst.items() if entry["error"] < math.inf},
        "training": training,
        "fused kernels": len(report["fused"]),
        "equal draws": f"{equal} of {len(report['seeds'])}",
        "failed": failed,
    }


def trained(output: str, folder: Path) -> Report:
    """Return the output of the training run, with its metrics and times of the last epoch."""
    last = [(folder / "train" / name).read_text("utf-8").splitlines()[-1] for name in ("metrics.jsonl", "timing.jsonl")]
    return {"output": output.splitlines(), **json.loads(last[0]), **json.loads(last[1])}


AGREE = "python -m benchmarks.agreement cuda"
PARITY = "python -m xgrad parity --devices cpu,cuda --json TMP/parity.json --quiet"
SPEED = "python -m benchmarks gpu --repeats 5 --seconds 0.03 --output TMP/speed"
TRAIN = "python -m xgrad train mnist --no-download --fallback digits --device cuda --epochs 1 --out TMP/train"
TESTS = "python -m pytest tests -n 8 -q --device cuda --junitxml TMP/tests.xml"
CAPTURE = TESTS.replace("tests -n 8", "tests/backends/test_cuda_graph.py")
PARTS = (
    Part("speed", tuple(SPEED.split()), 220, speed, alone=True),
    Part("agreement", tuple(AGREE.split()), BUDGET, last_line),
    Part("capture", tuple(CAPTURE.split()), BUDGET, junit),
    Part("train", tuple(TRAIN.split()), BUDGET, trained),
    Part("parity", tuple(PARITY.split()), BUDGET, parity),
    Part("tests", tuple(TESTS.split()), BUDGET, junit),
)


def run_part(part: Part, limit: float) -> Report:
    """Run one part and return its record, with the ``status`` ``ok`` or an error."""
    record: Report = {"name": part.name, "command": " ".join(part.command), "figures": {}}
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        if limit <= 0:
            status, output = "not run: no time was left", ""
        else:
            status, output = _run([_resolved(word, folder) for word in part.command], limit)
        output = output.replace(folder, "TMP")
        try:
            figures = json.dumps(part.figures(output, Path(folder)))
            record["figures"] = json.loads(figures, parse_constant=str)  # JSON has no NaN
        except Exception as error:  # partial output may have any form, and the other parts must be reported
            status = f"no figures: {type(error).__name__}: {error}" if status == "ok" else status
    if status == "ok" and (failed := record["figures"].get("failed")):
        status = f"failed: {len(failed)}"
    record |= {"status": status, "seconds": round(time.monotonic() - start, 1)}
    if status != "ok":
        record["output"] = output[-4000:]
    return record


def _resolved(word: str, folder: str) -> str:
    return sys.executable if word == "python" else re.sub("^TMP", lambda _: folder, word)


def _interruptible() -> None:
    """Enable SIGINT in a child, which inherits it as ignored if a shell started this process in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _run(command: Sequence[str], limit: float) -> tuple[str, str]:
    """Run a command, and return its status and output."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as file:
        try:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                preexec_fn=_interruptible if os.name == "posix" else None,
            )
        except OSError as error:
            return f"cannot run: {error.strerror}: {Path(command[0]).name}", ""
        try:
            code = process.wait(limit)
            status = "ok" if code == 0 else f"exit status {code}"
        except subprocess.TimeoutExpired:
            status = f"out of time after {limit:.0f} s"
            process.send_signal(signal.SIGINT if os.name == "posix" else signal.SIGTERM)  # pytest still reports
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        file.seek(0)
        return status, file.read()


# The report


def slug(name: str) -> str:
    """Return a name as part of a file name."""
    return re.sub("[^a-z0-9]+", "-", name.lower()).strip("-") or "gpu"


def describe(device: xgrad.Device) -> Report:
    """Return hardware, versions, commit and date."""
    about = device.backend.describe(device.index)
    return {
        "gpu": about.partition(",")[0],
        "device": about,
        "count": device.backend.count(),
        "driver": (output_of("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader") or "").partition(
            "\n"
        )[0],
        **getattr(device.backend, "versions", dict)(),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "xgrad": xgrad.__version__,
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "commit": commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def write(report: Report, folder: Path) -> Path:
    """Write the report to a file named after the GPU, without paths of this machine, and return its path."""
    text = json.dumps(report, indent=1, allow_nan=False)
    private = {"XGRAD_DATA": os.environ.get("XGRAD_DATA"), ".": str(ROOT), "PREFIX": sys.prefix, "~": str(Path.home())}
    for shown, path in sorted(private.items(), key=lambda item: -len(item[1] or "")):  # one may lie in another
        text = text.replace(json.dumps(path)[1:-1], shown) if path else text
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{slug(report['gpu'])}.json"
    file.write_text(text + "\n", encoding="utf-8")
    return file


def run(
    todo: Sequence[Part], budget: float = BUDGET, note: Callable[[list[Report]], None] = lambda records: None
) -> list[Report]:
    """Run all parts within a number of seconds, and return their records.

    After each part, `note` is called with the records so far.
    """
    end, records = time.monotonic() + budget, dict[str, Report]()

    def finish(part: Part, record: Report) -> None:
        records[part.name] = record
        print(f"{part.name:10} {record['seconds']:6.1f} s  {record['status']}", flush=True)
        note([records[part.name] for part in todo if part.name in records])

    def start(part: Part) -> Report:
        return run_part(part, min(part.limit, end - GRACE - time.monotonic()))

    for part in todo:
        if part.alone:
            finish(part, start(part))
    with ThreadPoolExecutor(len(todo)) as threads:
        others = {threads.submit(start, part): part for part in todo if not part.alone}
        for future in as_completed(others):
            finish(others[future], future.result())
    return [records[part.name] for part in todo]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status: 0 if there is a GPU and all parts pass."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_check", description="Check xgrad on a GPU.")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "benchmarks" / "results" / "gpu", help="folder for the results"
    )
    options = parser.parse_args(arguments)
    try:
        device = xgrad.Device("cuda")
    except xgrad.DeviceError as error:
        print(f"gpu-check: {error}")
        return 1
    report = describe(device)
    print(report["device"])

    def note(records: list[Report]) -> None:
        done = len(records) == len(PARTS)
        report.update(parts=records, ok=done and all(record["status"] == "ok" for record in records))
        write(report, options.out)

    run(PARTS, note=note)
    print(write(report, options.out))
    return 0 if report["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
