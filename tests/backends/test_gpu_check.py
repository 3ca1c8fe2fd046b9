"""The machinery of ``make gpu-check`` with tiny parts, and its own parts on the CPU, without a GPU.

Fake parts have known outcomes: cases that pass, fail, hang, or end their process.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import xgrad
from benchmarks import agreement, bandwidth, gpu_cells, gpu_check, gpu_parts, gpu_sanitized, models
from benchmarks.cuda_major import cuda_major
from benchmarks.gpu_check import Part, Progress
from benchmarks.harness import Expected
from benchmarks.peers import bandwidth_xgrad
from benchmarks.worker import resolve, value

ROOT = gpu_check.ROOT
#: A process with the cases a, b, c and d; the code of a case by name ends or delays it.
PROGRAM = """
import json, sys, time
share, shares = map(int, sys.argv[1].split("/"))
done, actions = json.load(sys.stdin), json.loads(sys.argv[2])
def write(**event): print(json.dumps(event), flush=True)
write(total=4)
for name in "abcd"[share::shares]:
    if name not in done:
        write(start=name)
        error, figures = "", {}
        exec(actions.get(name, ""))
        write(case=name, figures=figures, error=error)
write(end=True)
"""


def part(
    name: str, seconds: float = 60, processes: int = 1, shown: bool = False, **actions: str
) -> Part:
    """Return a part with four cases; the actions are Python code by case."""
    command = (sys.executable, "-S", "-c", PROGRAM, "SHARE", json.dumps(actions))
    return Part(name, seconds, processes, shown, command)


def checked(parts: list[Part], folder: Path, budget: float = 60) -> tuple[Any, list[str]]:
    """Run parts, continuing in a folder; return the report and the part that each note names."""
    progress, noted = Progress(folder / "gpu.jsonl"), list[str]()
    progress.open({"device": "Some GPU"})
    gpu_check.run(parts, "cpu", progress, noted.append, budget)
    return progress.report({"device": "Some GPU"}, parts), noted


def results(run: Any, name: str) -> tuple[int, list[str]]:
    """Return the number of passed cases of a part, and the failed ones."""
    return run["parts"][name]["passed"], sorted(run["parts"][name]["failed"])


# Runs


def test_parts_run_in_order_and_are_noted(tmp_path: Path) -> None:
    run, noted = checked([part("one", processes=2), part("two", a="error = 'off by 3'")], tmp_path)
    assert noted == ["one", "two"] and not run["ok"]
    assert results(run, "one") == (4, []) and run["parts"]["two"]["failed"] == {"a": "off by 3"}


def test_part_over_its_time_is_followed_by_the_next_and_has_its_time_in_another_call(
    tmp_path: Path,
) -> None:
    slow = part("slow", 0.5, c="time.sleep(0.6 if len(done) else 60)")
    start = time.monotonic()
    run, _ = checked([slow, part("next")], tmp_path)
    assert time.monotonic() - start < 30
    assert (
        results(run, "slow") == (2, [])
        and not run["parts"]["slow"]["complete"]
        and run["parts"]["next"]["complete"]
    )
    run, _ = checked([slow, part("next", a="raise SystemExit('is complete')")], tmp_path)
    assert run["ok"] and results(run, "slow") == results(run, "next") == (4, [])


def test_parts_have_no_more_than_the_budget(tmp_path: Path) -> None:
    run, noted = checked([part("one", a="time.sleep(60)"), part("two")], tmp_path, budget=0.3)
    assert noted == ["one", "two"] and results(run, "one") == results(run, "two") == (0, [])


def test_case_that_ends_its_process_is_recorded_and_the_others_run_in_another(
    tmp_path: Path,
) -> None:
    run, _ = checked([part("one", b="raise SystemExit('illegal address')")], tmp_path)
    assert results(run, "one") == (3, ["b"])
    assert run["parts"]["one"]["failed"]["b"] == "the process ended with status 1: illegal address"


def test_case_without_an_end_is_killed_in_a_part_of_several_processes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(gpu_check, "CASE", 0.3)
    run, _ = checked([part("one", processes=2, b="time.sleep(60)")], tmp_path)
    assert (
        results(run, "one") == (3, ["b"])
        and run["parts"]["one"]["failed"]["b"] == "no result within 0.3 s"
    )


@pytest.mark.skipif(os.name != "posix", reason="needs groups of processes")
def test_processes_of_a_part_end_with_it(tmp_path: Path) -> None:
    import fcntl

    held = tmp_path / "held"
    lock = (
        f"import fcntl, time; f = open({str(held)!r}, 'w'); fcntl.flock(f, 2); print(flush=True);"
        " time.sleep(60)"
    )
    worker = (
        f"from subprocess import *; Popen([sys.executable, '-Sc', {lock!r}],"
        " stdout=PIPE).stdout.readline()"
    )
    start = time.monotonic()
    checked([part("one", 0.6, a=worker + "; time.sleep(60)"), part("two")], tmp_path)
    with held.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # waits for the worker
    assert time.monotonic() - start < 30


def test_process_that_does_not_start_is_tried_once_a_call(tmp_path: Path) -> None:
    broken = Part(
        "one", 60, 1, False, (sys.executable, "-S", "-c", "raise SystemExit('no such module')")
    )
    run, _ = checked([broken], tmp_path)
    assert list(run["parts"]["one"]["failed"].values()) == [
        "the process ended with status 1: no such module"
    ]
    run, _ = checked([part("one")], tmp_path)
    assert run["ok"]


def test_results_survive_a_kill_while_a_line_is_written(tmp_path: Path) -> None:
    checked([part("one", b="figures = {'loss': float('nan')}")], tmp_path)
    file = tmp_path / "gpu.jsonl"
    lines = file.read_text("utf-8").splitlines()
    file.write_text("\n".join(lines[:-2]) + lines[-2][:20] + "\n", "utf-8")
    run, _ = checked([part("one", shown=True)], tmp_path)
    assert run["ok"] and run["parts"]["one"]["figures"]["b"] == {"loss": "NaN"}
    assert "Infinity" not in json.dumps(run) and "NaN," not in json.dumps(run)


def test_results_of_another_machine_or_commit_are_not_continued(tmp_path: Path) -> None:
    progress = Progress(tmp_path / "gpu.jsonl")
    progress.open({"commit": "a"})
    progress.add(part="one", case="x", error="", figures={})
    again, other = Progress(progress.file), Progress(progress.file)
    again.open({"commit": "a"})
    other.open({"commit": "b"})
    assert again.records["one"].keys() == {"x"} and not other.records


@pytest.mark.skipif(os.name != "posix", reason="needs the signal SIGKILL")
def test_check_that_is_killed_within_a_part_loses_one_cell(tmp_path: Path) -> None:
    words = "-m benchmarks.gpu_check --device cpu --quick --parts bandwidth --out".split()
    command = [sys.executable, *words, str(tmp_path)]

    def cells() -> list[str]:
        texts = [file.read_text("utf-8") for file in tmp_path.glob("*.jsonl")]
        events = [json.loads(line) for text in texts for line in text.splitlines()]
        return [event["case"] for event in events if "case" in event]

    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    while len(cells()) < 3 and process.poll() is None:
        time.sleep(0.02)
    process.kill()
    process.wait()
    before, order = cells(), list(gpu_cells.rates("cpu", quick=True))
    assert 3 <= len(before) < len(order)
    assert subprocess.run(command, cwd=ROOT, capture_output=True).returncode == 1  # one part of all
    assert cells() == order and before == order[: len(before)]  # each once: none was measured again
    (report,) = tmp_path.glob("*.json")
    assert json.loads(report.read_text("utf-8"))["parts"]["bandwidth"]["complete"]


@pytest.mark.skipif(os.name != "posix", reason="needs the signal SIGTERM")
def test_check_that_is_terminated_writes_its_page(tmp_path: Path) -> None:
    words = "-m benchmarks.gpu_check --device cpu --quick --parts bandwidth --out".split()
    process = subprocess.Popen(
        [sys.executable, *words, str(tmp_path)], cwd=ROOT, stdout=subprocess.DEVNULL
    )
    while not any('"case"' in file.read_text("utf-8") for file in tmp_path.glob("*.jsonl")):
        assert process.poll() is None
        time.sleep(0.02)
    process.terminate()
    assert process.wait() == 130
    (page,) = tmp_path.glob("*.md")
    assert "\n## bandwidth\n" in page.read_text("utf-8")


def test_parts_begin_with_graphs_and_models() -> None:
    """A short loan of a machine gives the most informative parts."""
    first = ["smoke", "models", "bandwidth", "steps", "ops", "capture", "sanitizer"]
    assert [part.name for part in gpu_check.PARTS][: len(first)] == first


def test_page_on_gpus_lists_the_parts_with_their_seconds() -> None:
    page = (ROOT / "docs/gpu.md").read_text("utf-8")
    rows = re.findall(r"(?m)^\| `(\w+)` \| .* \| (\d+) \|$", page)
    assert rows == [(part.name, f"{part.seconds:g}") for part in gpu_check.PARTS]


def test_parts_fit_into_ten_minutes_with_a_minute_for_the_last() -> None:
    assert gpu_check.BUDGET < 600
    assert sum(part.seconds for part in gpu_check.PARTS) <= 520  # the budget of docs/gpu.md
    assert [part.name for part in gpu_check.PARTS] == [*gpu_parts.CASES, "tests"]


# The report


@pytest.mark.parametrize(
    ("name", "expected"),
    [("NVIDIA H100 80GB HBM3", "nvidia-h100-80gb-hbm3"), ("  Tesla/T4 ", "tesla-t4"), ("?", "gpu")],
)
def test_slug_of_gpu_is_lower_case_with_hyphens(name: str, expected: str) -> None:
    assert gpu_check.slug(name) == expected


def test_page_has_counts_errors_skips_and_tables(tmp_path: Path) -> None:
    tables = "figures = {'Time': {'xgrad': {'small': 1.5}, 'PyTorch': {'large': 2}}, 'seconds': 3}"
    more = "figures = {'Time': {'xgrad': {'large': 4}}}"
    one = part(
        "one",
        shown=True,
        a="error = 'off by 3\\nlines'",
        b="figures = {'skipped': 'no such thing'}",
        c=tables,
        d=more,
    )
    parts = [part("two", 0.3, b="time.sleep(60)"), one]
    run, _ = checked(parts, tmp_path)
    lines = gpu_check.page(run).splitlines()
    assert lines[0] == "# gpu-check on Some GPU: 1 failed, incomplete"
    assert any(line.startswith("| one | 4 | 2 | 1 | 1 | 0 | ") for line in lines)
    assert any(line.startswith("| two | 4 | 1 | 0 | 0 | 3 | ") for line in lines)
    assert {"- one: a: off by 3 lines", "- one: 1 times: no such thing", "- c: seconds 3"} <= set(
        lines
    )
    assert lines[lines.index("Time") + 2 :][:4] == [
        "|  | small | large |", "| --- | --- | --- |", "| xgrad | 1.5 | 4 |", "| PyTorch |  | 2 |"
    ]  # fmt: skip


def test_progress_has_no_folders_of_this_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XGRAD_DATA", str(tmp_path / "data"))
    error = (
        f"{tmp_path / 'data' / 'mnist'} {ROOT / 'xgrad'} {Path.home() / 'x'}"
        f" {Path(sys.prefix) / 'lib'}"
    )
    progress = Progress(tmp_path / "gpu.jsonl")
    progress.add(part="one", case="a", error=error, figures={})
    assert (
        json.loads(progress.file.read_text("utf-8"))["error"]
        == "XGRAD_DATA/mnist ./xgrad ~/x PREFIX/lib"
    )


def test_check_without_gpu_prints_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def refuse(name: str) -> None:
        raise xgrad.DeviceError("cuda: no GPU: look for one")

    monkeypatch.setattr(gpu_check.xgrad, "Device", refuse)
    assert gpu_check.main(["--out", str(tmp_path / "results")]) == 1
    assert capsys.readouterr().out == "gpu-check: cuda: no GPU: look for one\n"
    assert not (tmp_path / "results").exists()


def test_command_writes_a_page_and_json_named_after_the_device(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    status = gpu_check.main(
        ["--device", "cpu", "--quick", "--parts", "smoke", "--out", str(tmp_path)]
    )
    assert status == 1  # the other parts are missing
    (page,) = tmp_path.glob("numpy-*.md")
    report = json.loads(page.with_suffix(".json").read_text("utf-8"))
    assert {"device", "driver", "python", "xgrad", "commit"} <= report["machine"].keys()
    assert report["parts"]["smoke"] | {"seconds": 0} == {
        "cases": 10, "passed": 10, "skipped": {}, "failed": {}, "complete": True, "seconds": 0
    }  # fmt: skip
    seconds, printed = report["parts"]["smoke"]["seconds"], capsys.readouterr().out
    assert f"smoke    {seconds:6.1f} s  10 of 10 passed, 0 skipped, 0 failed" in printed


# The version of CUDA


@pytest.mark.parametrize(
    ("version", "count", "expected"),
    [
        (12040, 1, 12),
        (13020, 2, 13),
        (14000, 1, 13),
        (11080, 1, "expected a driver for CUDA 12 or newer, got one for CUDA 11"),
        (13000, 0, "finds no GPU (CUDA error 100)"),
        (0, 0, "no NVIDIA driver (libcuda.so.1)"),
    ],
)
def test_cuda_of_the_driver_selects_the_extra(
    version: int, count: int, expected: int | str
) -> None:
    def put(value: int, status: int) -> Any:
        return lambda pointer: setattr(pointer._obj, "value", value) or status

    def load(name: str) -> Any:
        if not version:
            raise OSError(name)
        no_device = 0 if count else 100
        return SimpleNamespace(
            cuDriverGetVersion=put(version, 0),
            cuInit=lambda flags: no_device,
            cuDeviceGetCount=put(count, no_device),
        )

    if isinstance(expected, int):
        assert cuda_major(load) == expected
    else:
        with pytest.raises(RuntimeError, match=re.escape(expected)):
            cuda_major(load)


# The parts


def reported(
    device: str, run: Any, done: tuple[str, ...] = (), share: int = 0, shares: int = 1
) -> list[Any]:
    """Return the events that a reporter writes."""
    lines: list[str] = []
    run(gpu_parts.Reporter(device, share, shares, done, lines.append))
    return [json.loads(line) for line in lines]


def test_reporter_runs_the_cases_of_a_share_that_are_not_done() -> None:
    ran: list[str] = []
    cases = {name: lambda name=name: ran.append(name) for name in "abcdef"}
    events = reported("cpu", lambda reporter: reporter.run(cases), ("c",), 0, 2)
    assert ran == ["a", "e"] and events[0] == {"total": 6}
    assert events[1:3] == [{"start": "a"}, {"case": "a", "figures": {}, "error": ""}]


def test_error_of_a_case_ends_the_process_if_the_device_no_longer_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> None:
        raise ValueError("of the case")

    statuses: list[int] = []
    monkeypatch.setattr(gpu_parts.os, "_exit", statuses.append)
    for works in (True, False):
        monkeypatch.setattr(gpu_parts, "works", lambda device, works=works: works)
        events = reported("cpu", lambda reporter: reporter.run({"a": fail}))
        assert events[-1]["error"] == "ValueError: of the case"
    assert statuses == [gpu_parts.UNUSABLE]


def test_tests_are_cases(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(
        "import pytest\ndef test_good(): pass\ndef test_bad(): assert 1 == 2\n"
        "@pytest.mark.skip(reason='no GPU')\ndef test_skipped(): pass\n"
        "@pytest.mark.xfail(reason='known')\ndef test_known(): assert 0\n"
    )
    (tmp_path / "test_broken.py").write_text("import no_such_module\n")

    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    def run(reporter: gpu_parts.Reporter) -> None:
        options = [
            "-q",
            "-p",
            "no:cacheprovider",
            "--continue-on-collection-errors",
            "-c",
            str(tmp_path / "pytest.ini"),
        ]
        pytest.main([str(tmp_path), *options], plugins=[gpu_parts.TestReporter(reporter)])

    events = {
        event["case"].partition("::")[2]: event for event in reported("cpu", run) if "case" in event
    }
    assert {name: event["figures"] for name, event in events.items() if event["figures"]} == {
        "test_skipped": {"skipped": "no GPU"}, "test_known": {"skipped": "known"}
    }  # fmt: skip
    assert {name: event["error"] for name, event in events.items() if event["error"]} == {
        "test_bad": "assert 1 == 2", "": "E   ModuleNotFoundError: No module named 'no_such_module'"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "cases"),
    [
        ("ops", ["multiply float32", "softmax float32"]),
        ("fused", ["the gradient of an LSTM float32"]),
        ("capture", ["multiply", "softmax", "nonzero"]),
        ("parity", ["seeded draws float32", "sign", "add float64"]),
    ],
)
def test_part_passes_on_a_device(name: str, cases: list[str], device: str) -> None:
    known = gpu_parts.CASES[name](device)
    kinds = Counter("skipped" in (known[case]() or {}) for case in cases)
    assert kinds[True] <= (1 if xgrad.Device(device).backend.executor else len(cases))


@pytest.mark.parametrize("name", gpu_sanitized.PROGRAMS)
def test_program_for_the_sanitizer_has_right_results(name: str, capturing_device: str) -> None:
    skipped = gpu_parts.sanitizer(capturing_device)[name]()
    needs_cuda = name in gpu_sanitized.ON_CUDA and not capturing_device.startswith("cuda")
    assert skipped is None or needs_cuda


def test_sanitizer_reports_errors_or_that_it_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    case = gpu_parts.sanitizer("cpu")["mlp under compute-sanitizer"]
    monkeypatch.setenv("PATH", str(tmp_path))
    tool = tmp_path / "compute-sanitizer"
    if not Path("/usr/local/cuda/bin", tool.name).exists():
        assert (case() or {})["skipped"].startswith("compute-sanitizer, of the CUDA toolkit, is")
    tool.write_text("#!/bin/sh\necho '========= Invalid __global__ write'\nexit 9\n")
    tool.chmod(0o755)
    with pytest.raises(AssertionError, match="status 9: ========= Invalid __global__ write"):
        case()


def test_smoke_passes_on_a_device(device: str) -> None:
    for case in gpu_parts.smoke(device).values():
        case()


def test_replays_whose_memory_grows_are_an_error() -> None:
    cpu, reserved = xgrad.Device("cpu"), iter(range(0, 1000, 10))

    class Growing:
        backend = cpu.backend

        def __str__(self) -> str:
            return "cpu"

        def memory(self) -> dict[str, int]:
            return {"reserved": next(reserved)}

    growing: Any = Growing()
    with pytest.raises(AssertionError, match="expected no more memory after 50 steps than 5, got"):
        gpu_parts._replays(growing)
    gpu_parts._replays(cpu)


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize(
    ("name", "case", "reason"),
    [
        ("smoke", "captured training step", "strict does not replay"),
        ("capture", "add", "strict does not replay"),
        ("fused", "SGD float32", "strict has no kernel for it"),
    ],
)
def test_case_that_a_device_lacks_is_skipped_with_the_reason(
    name: str, case: str, reason: str
) -> None:
    assert gpu_parts.CASES[name]("strict")[case]() == {"skipped": reason}


def test_wrong_results_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    device = xgrad.Device("cpu")
    # not through an op, which would keep it
    monkeypatch.setattr(device.xp, "argmax", device.xp.argmin)
    with pytest.raises(AssertionError):
        gpu_parts.CASES["parity"]("cpu")["argmax rows float32 0"]()


def test_all_arrays_and_functions_agree_on_cpu() -> None:
    device = xgrad.Device("cpu")
    checks = list(agreement.checks(device))
    assert len(checks) > 150
    for check in checks:
        agreement.compare(check, device)


def test_cell_has_figures_in_turns_with_the_reference(device: str) -> None:
    cases = gpu_cells.steps(device, quick=True)
    title = "5-4-3, batch 8"
    assert list(cases)[:2] == [f"{title}: xgrad", f"{title}: xgrad captured"]
    row = (cases[f"{title}: xgrad"]() or {})[title]["xgrad"]
    assert row["µs"] > 0 and row["times xgrad captured"] > 0
    row = (cases[f"{title}: xgrad captured"]() or {})[title]["xgrad captured"]
    assert row["µs"] > 0 and "times xgrad captured" not in row


def test_models_have_memory_and_launches_beside_their_time(device: str) -> None:
    cases = gpu_cells.trained_models(device, quick=True)
    names = [name for name in cases if name.startswith("LeNet: ")]
    assert [name.partition(": ")[2] for name in names] == list(models.ON_DEVICE)
    on = xgrad.Device(device)
    row = (cases["LeNet: xgrad captured"]() or {})["LeNet"]["xgrad captured"]
    assert row["µs"] > 0 and ("bytes reserved" in row) is bool(on.memory())
    if on.backend.executor:
        assert row["bytes of the program"] > 0
        # the emulation of CUDA does not count the nodes of graphs
        assert row.get("launches", row.get("calls that launch")) > 10


@pytest.mark.parametrize("kernel", bandwidth.KERNELS)
def test_kernels_of_bandwidth_have_equal_values(kernel: str, device: str) -> None:
    """Their sums are NumPy's in float64, and PyTorch's on the host, where it is installed."""
    arguments = {"kernel": kernel, "elements": bandwidth.QUICK[0]}
    got = float(xgrad.sum(xgrad.asarray(bandwidth_xgrad.kernel(**arguments, device=device)())))
    if find_spec("torch"):
        peer = resolve("benchmarks.peers.bandwidth_torch:kernel")
        assert got == pytest.approx(value(peer(**arguments, device="cpu")()), rel=1e-3, abs=0.1)
    if kernel.startswith("sum"):
        axes = {"sum over axis 0": 0, "sum over axis 1": 1, "sum over all but channels": (0, 2, 3)}
        x = bandwidth.data(**arguments).astype(np.float64)
        assert got == pytest.approx(x.sum(axis=axes.get(kernel)).sum(), rel=1e-3, abs=0.1)


def test_bandwidth_counts_bytes_beside_a_plain_copy(capturing_device: str) -> None:
    elements, cases = bandwidth.QUICK[0], gpu_cells.rates(capturing_device, quick=True)
    assert len(cases) == 2 * len(bandwidth.KERNELS)
    ((title, rows),) = (cases[f"Adam, {elements} elements: xgrad"]() or {}).items()
    assert title == f"GB/s, {elements} elements of float32"
    row = rows["Adam"]
    assert row["MB"] == round(7 * 4 * elements / 1e6, 3)
    assert row["xgrad"] > 0 and row["plain copy"] > 0
    assert row["xgrad / plain copy"] == pytest.approx(row["xgrad"] / row["plain copy"], rel=20)


def test_peer_that_is_absent_is_skipped_with_the_reason() -> None:
    turns = gpu_cells.Turns(gpu_cells.settings("cpu", quick=True))
    cases = turns.cases({"PyTorch CUDA graph": "absent:step"}, {"a": {}, "b": {}})
    reason = "No module named 'benchmarks.peers.absent'"
    for title in ("a", "b"):
        figures = cases[f"{title}: PyTorch CUDA graph"]() or {}
        assert reason in figures["skipped"] and list(figures) == ["skipped", title]


def test_wrong_values_of_a_peer_are_a_reason_and_of_xgrad_an_error() -> None:
    wrong = Expected([1.0] * 5, 0.01)
    turns = gpu_cells.Turns(gpu_cells.settings("cpu", quick=True), lambda **case: wrong)
    case = {"sizes": [5, 4, 3], "batch": 8}
    figures = turns.step("NumPy", "by_hand:step", "tiny", case)
    assert figures["skipped"].startswith("NumPy: computes something else: expected [1.0, ")
    with pytest.raises(AssertionError, match="computes something else"):
        turns.step("xgrad", "xgrad_peer:step", "tiny", case)
