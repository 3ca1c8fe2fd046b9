"""Check xgrad on the GPU of this machine and write down how fast it is: ``python -m benchmarks.gpu_check``.

It runs each of `PARTS` in a process of its own, since an error on a GPU can spoil all that the process does
afterwards: first what measures, alone, then all others at a time, since most of what they do is to compile kernels. It
writes one JSON file named after the GPU, anew after each part. Without a usable GPU it says why, in one line.
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
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np

import xgrad
from benchmarks.environment import ROOT, commit, said

FLOATS, COMPLEX = ("float32", "float64"), ("complex64", "complex128")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
BUDGET = 545.0  # seconds for all of `PARTS` together
GRACE = 25.0  # seconds to end in, for a part that ran out of time; pytest-xdist waits for ten before pytest reports

Report = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """A command to run, at most for `limit` seconds.

    In it ``python`` is the running one and ``TMP`` an empty folder. `figures` makes what is written down of its output
    and that folder; if that says that something ``failed``, so has the part. While one runs that is `alone`, no other
    does.
    """

    name: str
    command: tuple[str, ...]
    limit: float
    figures: Callable[[str, Path], Report]
    alone: bool = False


def last_line(output: str, folder: Path) -> Report:
    """Return the JSON object that a part of this module prints last."""
    figures: Report = json.loads(output.rstrip().rpartition("\n")[2])
    return figures


def junit(output: str, folder: Path) -> Report:
    """Return how many tests passed, failed and were skipped, with the failures by name, from pytest's XML."""
    cases = list(ElementTree.parse(folder / "tests.xml").iter("testcase"))
    failed = {}
    for case in cases:
        for bad in (*case.iter("failure"), *case.iter("error")):
            lines = bad.get("message", "").splitlines() or [""]
            failed[f"{case.get('classname')}::{case.get('name')}"] = lines[0][:200]
    skipped = sum(case.find("skipped") is not None for case in cases)
    return {"passed": len(cases) - skipped - len(failed), "skipped": skipped, "failed": failed}


def speed(output: str, folder: Path) -> Report:
    """Return the medians of the benchmark ``gpu``, and who was left out or failed."""
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
    """Return the worst errors of the report of ``xgrad parity``, and what it found to be past a tolerance."""
    report = json.loads((folder / "parity.json").read_text("utf-8"))
    worst: dict[str, Report] = {}
    failed = []
    for op in report["ops"]:
        for cell in op["cells"]:
            error = float(cell["error"])  # "inf" where NaNs and infinities are at other places
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
        "worst": {where: found for where, found in worst.items() if found["error"] < math.inf},
        "training": training,
        "fused kernels": len(report["fused"]),
        "equal draws": f"{equal} of {len(report['seeds'])}",
        "failed": failed,
    }


def trained(output: str, folder: Path) -> Report:
    """Return what the training printed and wrote down for its last epoch."""
    last = [(folder / "train" / name).read_text("utf-8").splitlines()[-1] for name in ("metrics.jsonl", "timing.jsonl")]
    return {"output": output.splitlines(), **json.loads(last[0]), **json.loads(last[1])}


AGREE = "python -m benchmarks.gpu_check --agreement"
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
    """Run one part and return its record; whatever goes wrong is in its ``status``, which else is ``ok``."""
    record: Report = {"name": part.name, "command": " ".join(part.command), "figures": {}}
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        if limit <= 0:
            status, output = "not run: no time was left", ""
        else:
            status, output = _run([_resolved(word, folder) for word in part.command], limit)
        output = output.replace(folder, "TMP")
        try:
            found = json.dumps(part.figures(output, Path(folder)))
            record["figures"] = json.loads(found, parse_constant=str)  # JSON has no NaN, which a GPU may well have
        except Exception as error:  # of what a part that went wrong has left
            status = f"no figures: {type(error).__name__}: {error}" if status == "ok" else status
    if status == "ok" and (failed := record["figures"].get("failed")):
        status = f"failed: {len(failed)}"
    record |= {"status": status, "seconds": round(time.monotonic() - start, 1)}
    if status != "ok":
        record["output"] = output[-4000:]
    return record


def _resolved(word: str, folder: str) -> str:
    return sys.executable if word == "python" else re.sub("^TMP", lambda _: folder, word)


def _run(command: Sequence[str], limit: float) -> tuple[str, str]:
    """Run a command, and return how it ended and what it printed."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as file:
        try:
            process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT
            )
        except OSError as error:
            return f"cannot run: {error.strerror}: {Path(command[0]).name}", ""
        try:
            code = process.wait(limit)
            status = "ok" if code == 0 else f"exit status {code}"
        except subprocess.TimeoutExpired:
            status = f"out of time after {limit:.0f} s"
            process.send_signal(signal.SIGINT if os.name == "posix" else signal.SIGTERM)  # pytest then still reports
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


# What must agree with NumPy


class Check(NamedTuple):
    """A function to call with some arrays, moved to the device, and what must come out."""

    label: str
    expected: np.ndarray
    function: Callable[..., Any]
    arrays: tuple[np.ndarray, ...] = ()


def agreement(name: str) -> Report:
    """Return how many checks agree with NumPy, and what the others said."""
    device, passed, failed = xgrad.Device(name), 0, {}
    backend = device.backend
    for check in (*reductions(device), *additions(device), *transfers(device), *functions(device)):
        try:
            got = check.function(*[backend.from_host(x, device.index) for x in check.arrays])
            np.testing.assert_array_equal(backend.to_host(got), check.expected, strict=True)
            assert backend.index_of(got) == device.index, "the result is on another device"
        except Exception as error:
            failed[check.label] = f"{type(error).__name__}: {error}"[:500]
        except KeyboardInterrupt:
            failed[check.label] = "out of time"
            break
        else:
            passed += 1
    return {"passed": passed, "failed": failed}


def reductions(device: xgrad.Device) -> Iterator[Check]:
    """Yield argmax, argmin, max and min where there are infinities, NaN and ties, for each way that CuPy reduces."""
    inf, nan = np.inf, np.nan
    long = np.zeros(100_003)
    long[[77_777, 88_888]], long[[5, 99_999]] = inf, -inf
    cases = {
        "one": [inf],
        "infinities": [-inf, inf, 0, inf, -inf],
        "all low": [-inf, -inf, -inf],
        "all high": [inf, inf, inf],
        "nan": [1, nan, inf, 2],
        "rows": [[-inf, -inf, -inf], [inf, 1, inf], [2, -inf, 2]],
        "long": long,
        "wide": np.stack([long, -long]),
    }
    for (label, values), dtype, op in product(cases.items(), FLOATS, ("argmax", "argmin", "max", "min")):
        x = np.asarray(values, dtype)
        for axis in (None, *range(x.ndim)):
            expected = np.asarray(getattr(np, op)(x, axis=axis))
            yield Check(f"{op} {label} {dtype} {axis}", expected, partial(getattr(device.xp, op), axis=axis), (x,))


def additions(device: xgrad.Device) -> Iterator[Check]:
    """Yield additions by index, with indices that repeat."""
    a, b, mask = np.asarray([0, 2, 0, -1]), np.asarray([[1], [1]]), np.asarray([True, False, True])
    keys: dict[str, Any] = {
        "array": a,
        "second axis": (slice(None), a),
        "two arrays": (b, a),
        "array and number": (a, 1),
        "apart": (a, slice(None), a),
        "0-d": np.asarray(1),
        "empty": np.zeros(0, np.int64),
        "mask": mask,
        "mask behind": (slice(None), mask),
        "array and mask": (np.asarray([1, 1]), mask),
        "number": 1,
        "slices": (slice(None, None, -2), None, Ellipsis),
    }
    for (label, key), dtype in product(keys.items(), (*FLOATS, *COMPLEX, "float16", *INTEGERS)):
        if dtype != "float32" and label not in ("second axis", "mask"):
            continue  # a kernel is compiled for each
        x = np.ones((3, 3, 3), dtype)
        values = (np.arange(x[key].size) % 7).astype(dtype).reshape(x[key].shape)
        if x.dtype.kind == "c":
            values *= np.asarray(1 - 2j, dtype)
        expected = x.copy()
        np.add.at(expected, key, values)
        yield Check(f"index_add {label} {dtype}", expected, partial(_add, device, key), (x, values))


def _add(device: xgrad.Device, key: Any, x: Any, values: Any) -> Any:
    parts = [
        device.backend.from_host(part, device.index) if isinstance(part, np.ndarray) else part
        for part in (key if isinstance(key, tuple) else (key,))
    ]
    x = device.xp.asarray(x, copy=True)  # what came from the host may share its memory
    return device.xp.index_add(x, tuple(parts) if isinstance(key, tuple) else parts[0], values)


def transfers(device: xgrad.Device) -> Iterator[Check]:
    """Yield arrays of all layouts that go to the device and back."""
    grid, large = np.arange(12, dtype=np.float32).reshape(3, 4), np.arange(300_000.0).reshape(300, 1000)
    frozen = grid.copy()
    frozen.flags.writeable = False
    cases = {
        "0-d": np.asarray(2.5),
        "no elements": np.zeros((0, 3), np.float32),
        "column-major": np.asfortranarray(grid),
        "backwards": grid[::-1, ::-2],
        "broadcast": np.broadcast_to(grid[0], (5, 4)),
        "permuted": np.ones((2, 3, 4)).transpose(1, 0, 2),
        "read-only": frozen,
        "large": large,
        "large column-major": large.T,
    }
    cases |= {dtype: np.arange(5).astype(dtype) for dtype in ("bool", *FLOATS, *COMPLEX, *INTEGERS)}
    for label, x in cases.items():
        yield Check(f"to the device and back: {label}", x, lambda x: x, (x,))
    yield Check("back from a view", large[::-1, 1:], lambda x: x[::-1, 1:], (large,))
    if device.backend.asynchronous:  # elsewhere memory may be shared
        for size, pinned in product((16, 1 << 20, 1 << 24), (False, True)):
            label = f"the source changes after the call: {size}{' pinned' if pinned else ''}"
            yield Check(label, np.ones((4, size), np.float32), partial(_overwrite, device, size, pinned))
    moving = (("", grid), (" of a view", grid[::-1, ::2]), (" without axes", cases["0-d"]))
    for other, (label, x) in product(range(device.backend.count()), moving):
        yield Check(f"from device {other}{label}", x, partial(_from, device, other, x))


def _overwrite(device: xgrad.Device, size: int, pinned: bool) -> Any:
    backend = device.backend
    x = np.ones(size, np.float32)
    if pinned:  # as are large results
        x = backend.to_host(backend.from_host(x, device.index))
    moved = [backend.from_host(x, device.index) for _ in range(4)]
    x[...] = 0
    return device.xp.stack(moved)


def _from(device: xgrad.Device, other: int, x: np.ndarray) -> Any:
    return device.backend.transfer(device.backend.from_host(x, other), device.index)


def functions(device: xgrad.Device) -> Iterator[Check]:
    """Yield what our namespace for CuPy does otherwise than array-api-compat's."""
    xp, on = device.xp, {"dtype": device.backend.dtype("float32"), "device": device.native}
    x = np.asarray([np.nan, -np.inf, -2, -0.5, 0, 3, np.inf], np.float32)
    stack, matrix = np.arange(24.0).reshape(2, 3, 4), np.arange(20.0).reshape(4, 5)
    yield Check("sign", np.sign(x), xp.sign, (x,))
    for low, high in ((-1.0, 2.0), (None, 2.0), (-1.0, None)):
        yield Check(f"clip {low} {high}", np.clip(x, low, high), partial(xp.clip, min=low, max=high), (x,))
    for shape in ((6,), (0,), (3, 4)):
        ones = np.ones(shape, np.float32)
        yield Check(f"cumulative_sum {shape}", ones.cumsum(axis=-1), partial(xp.cumulative_sum, axis=-1), (ones,))
    for label, a, b in (("", stack, matrix), (" transposed", stack, matrix[:, :4].T), (" empty", stack[:0], matrix)):
        yield Check(f"matmul of a stack{label}", a @ b, xp.matmul, (a, b))
    for dtype in ("float32", "int64", "complex64"):
        a = np.arange(9).reshape(3, 3).astype(dtype)
        yield Check(f"matmul {dtype}", a @ a, xp.matmul, (a, a))
    for made, create in (
        (np.zeros((2, 3)), partial(xp.zeros, (2, 3))),
        (np.full(2, -7.5), partial(xp.full, (2,), -7.5)),
        (np.arange(1.0, 7, 2), partial(xp.arange, 1, 7, 2)),
        (np.linspace(0, 1, 5), partial(xp.linspace, 0, 1, 5)),
        (np.eye(2, 3, 1), partial(xp.eye, 2, 3, k=1)),
    ):
        yield Check(f"{create.func.__name__} on a device", made.astype(np.float32), partial(create, **on))
    yield Check("ones_like", np.ones_like(x), xp.ones_like, (x,))


# The report


def slug(name: str) -> str:
    """Return a name as part of a file name."""
    return re.sub("[^a-z0-9]+", "-", name.lower()).strip("-") or "gpu"


def describe(device: xgrad.Device) -> Report:
    """Return what the figures depend on: hardware, versions, commit and date."""
    about = device.backend.describe(device.index)
    return {
        "gpu": about.partition(",")[0],
        "device": about,
        "count": device.backend.count(),
        "driver": (said("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader") or "").partition("\n")[0],
        **getattr(device.backend, "versions", dict)(),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "xgrad": xgrad.__version__,
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "commit": commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def write(report: Report, folder: Path) -> Path:
    """Write the report into a file named after the GPU, without this machine's folders, and return its path."""
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
    """Run all parts, whatever becomes of the others, within so many seconds, and return their records.

    After each of them, `note` is called with the records that there are.
    """
    end, records = time.monotonic() + budget, dict[str, Report]()

    def ended(part: Part, record: Report) -> None:
        records[part.name] = record
        print(f"{part.name:10} {record['seconds']:6.1f} s  {record['status']}", flush=True)
        note([records[part.name] for part in todo if part.name in records])

    def begun(part: Part) -> Report:
        return run_part(part, min(part.limit, end - GRACE - time.monotonic()))

    for part in todo:
        if part.alone:
            ended(part, begun(part))
    with ThreadPoolExecutor(len(todo)) as threads:
        others = {threads.submit(begun, part): part for part in todo if not part.alone}
        for future in as_completed(others):
            ended(others[future], future.result())
    return [records[part.name] for part in todo]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status: 0 if there is a GPU and all is well on it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_check", description="Check xgrad on a GPU.")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "benchmarks" / "results" / "gpu", help="folder for the results"
    )
    parser.add_argument("--agreement", action="store_true", help=argparse.SUPPRESS)  # that part alone
    options = parser.parse_args(arguments)
    if options.agreement:
        print(json.dumps(agreement("cuda")))
        return 0
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
