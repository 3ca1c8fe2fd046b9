"""The parts of ``make gpu-check`` that need no GPU, and commands with the CPU in its place."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import xgrad
from benchmarks import gpu_check
from benchmarks.agreement import agreement

ROOT = gpu_check.ROOT


def part(code: str, *args: str, name: str = "part", figures: Any = gpu_check.last_line, alone: bool = False) -> Any:
    """Return a part of the check that runs Python code."""
    return gpu_check.Part(name, ("python", "-c", code, *args), 60, figures, alone=alone)


def named(name: str) -> Any:
    return next(part for part in gpu_check.PARTS if part.name == name)


def changed(name: str, command: Sequence[str]) -> Any:
    """Run a part of the check with another command, and return its figures."""
    record = gpu_check.run_part(gpu_check.Part(name, tuple(command), 60, named(name).figures), 60)
    assert record["status"] == "ok", record
    return record["figures"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("NVIDIA H100 80GB HBM3", "nvidia-h100-80gb-hbm3"), ("  Tesla/T4 ", "tesla-t4"), ("?", "gpu")],
)
def test_slug_of_gpu_is_lower_case_with_hyphens(name: str, expected: str) -> None:
    assert gpu_check.slug(name) == expected


def test_check_without_gpu_prints_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def refuse(name: str) -> None:
        raise xgrad.DeviceError("cuda: no GPU: look for one")

    monkeypatch.setattr(gpu_check.xgrad, "Device", refuse)
    assert gpu_check.main(["--out", str(tmp_path / "results")]) == 1
    assert capsys.readouterr().out == "gpu-check: cuda: no GPU: look for one\n"
    assert not (tmp_path / "results").exists()


def test_report_of_tests_has_counts_and_failures(tmp_path: Path) -> None:
    (tmp_path / "tests.xml").write_text(
        """<testsuites><testsuite tests="4" failures="1" errors="1" skipped="1">
        <testcase classname="tests.test_a" name="test_good[cuda]"/>
        <testcase classname="tests.test_a" name="test_bad[cuda]"><failure message="assert 1 == 2&#10;more">x</failure>
        </testcase>
        <testcase classname="tests.test_a" name="test_ugly"><error message="boom"/></testcase>
        <testcase classname="tests.test_b" name="test_not_here"><skipped message="no"/></testcase>
        </testsuite></testsuites>"""
    )
    failed = {"tests.test_a::test_bad[cuda]": "assert 1 == 2", "tests.test_a::test_ugly": "boom"}
    assert gpu_check.junit("", tmp_path) == {"passed": 1, "skipped": 1, "failed": failed}


# One part

INTERRUPTED = "import time\ntry: time.sleep(60)\nexcept KeyboardInterrupt: print('{\"done\": 7}')"


def test_part_is_recorded_with_its_figures() -> None:
    code = "print('chatter'); import json, sys; print(json.dumps({'us': 1.5, 'folder': sys.argv[1][-3:]}))"
    record = gpu_check.run_part(part(code, "TMP/abc"), 60)
    assert record.pop("seconds") < 60
    figures, command = {"us": 1.5, "folder": "abc"}, f"python -c {code} TMP/abc"
    assert record == {"name": "part", "command": command, "status": "ok", "figures": figures}


def test_figures_that_are_no_numbers_are_written_as_text(tmp_path: Path) -> None:
    (record,) = gpu_check.run([part('print(\'{"loss": NaN, "error": [-Infinity]}\')')])
    assert record["status"] == "ok" and record["figures"] == {"loss": "NaN", "error": ["-Infinity"]}
    gpu_check.write({"gpu": "Some GPU", "parts": [record]}, tmp_path)


def test_training_without_results_has_no_figures() -> None:
    code = "import pathlib, sys; folder = pathlib.Path(sys.argv[1]); folder.mkdir()\n"
    code += "for name in ('metrics.jsonl', 'timing.jsonl'): (folder / name).touch()"
    (record,) = gpu_check.run([part(code, "TMP/train", figures=gpu_check.trained)])
    assert record["status"].startswith("no figures: IndexError: ")


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("print('{}'); raise SystemExit(3)", "exit status 3"),
        ("print('no JSON')", "no figures: "),
        ('print(\'{"failed": {"one": "a", "two": "b"}}\')', "failed: 2"),
    ],
)
def test_failure_of_part_is_its_status(code: str, status: str) -> None:
    record = gpu_check.run_part(part(code), 60)
    assert record["status"].startswith(status) and record["output"]


def test_missing_command_is_the_status() -> None:
    record = gpu_check.run_part(gpu_check.Part("none", ("no-such-command",), 60, gpu_check.last_line), 60)
    assert record["status"].startswith("cannot run: ")


@pytest.mark.parametrize("ignored", [False, True], ids=["foreground", "background"])
def test_part_out_of_time_is_interrupted_and_reports(ignored: bool) -> None:
    # A shell without job control starts commands with & in this way.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.default_int_handler)
    try:
        record = gpu_check.run_part(part(INTERRUPTED), 1.5)
    finally:
        signal.signal(signal.SIGINT, before)
    assert record["status"] == "out of time after 2 s"
    assert record["seconds"] < 10 and record["figures"] == {"done": 7}


def test_part_that_ignores_interrupts_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_check, "GRACE", 0.2)
    start = time.monotonic()
    code = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(60)"
    record = gpu_check.run_part(part(code), 1.5)
    assert time.monotonic() - start < 20
    assert record["status"].startswith("out of time")


# All parts


def test_failed_part_does_not_stop_others(capsys: pytest.CaptureFixture[str]) -> None:
    parts = [part("raise SystemExit(1)", name="bad"), part("print('{}')", name="good")]
    assert [record["status"] for record in gpu_check.run(parts)] == ["exit status 1", "ok"]
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert [record["status"] for record in gpu_check.run(parts, budget=0)] == ["not run: no time was left"] * 2


def test_report_is_one_file_named_for_the_gpu_without_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XGRAD_DATA", str(tmp_path / "data"))
    output = f"{tmp_path / 'data' / 'mnist'} {ROOT / 'xgrad'} {Path.home() / 'x'} {Path(sys.prefix) / 'lib'}"
    path = gpu_check.write({"gpu": "Some GPU", "output": output}, tmp_path / "results")
    assert path == tmp_path / "results" / "some-gpu.json"
    assert json.loads(path.read_text()) == {"gpu": "Some GPU", "output": "XGRAD_DATA/mnist ./xgrad ~/x PREFIX/lib"}


@pytest.mark.parametrize(("code", "status"), [("print('{}')", 0), ("raise SystemExit(1)", 1)])
def test_report_has_machine_and_parts(code: str, status: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    device = xgrad.Device("cpu")
    monkeypatch.setattr(gpu_check.xgrad, "Device", lambda name: device)
    monkeypatch.setattr(gpu_check, "PARTS", [part(code)])
    assert gpu_check.main(["--out", str(tmp_path)]) == status
    (path,) = tmp_path.glob("*.json")
    report = json.loads(path.read_text())
    assert report["ok"] is (status == 0)
    assert {"gpu", "driver", "numpy", "python", "xgrad", "commit", "date", "parts"} <= report.keys()
    assert [record["name"] for record in report["parts"]] == ["part"]


def test_all_parts_fit_into_ten_minutes() -> None:
    assert gpu_check.BUDGET + 2 * gpu_check.GRACE <= 600
    assert sum(part.limit for part in gpu_check.PARTS if part.alone) < gpu_check.BUDGET / 2
    assert all(part.limit <= gpu_check.BUDGET for part in gpu_check.PARTS)


def test_measurement_runs_alone_and_other_parts_together(tmp_path: Path) -> None:
    """Two parts wait for each other; the third sees no other process at work. Each is noted when it has ended."""
    meet = (
        "import pathlib, sys, time; here = pathlib.Path(sys.argv[1]); (here / sys.argv[2]).touch()\n"
        "while not (here / sys.argv[3]).exists(): time.sleep(0.01)\nprint('{}')"
    )
    alone = f"import os; print('{{\"met\": %d}}' % len(os.listdir({str(tmp_path)!r})))"
    parts = [
        part(meet, str(tmp_path), "one", "two", name="one"),
        part(meet, str(tmp_path), "two", "one", name="two"),
        part(alone, name="alone", alone=True),
    ]
    noted: list[list[str]] = []
    records = gpu_check.run(parts, note=lambda done: noted.append([record["name"] for record in done]))
    assert [(record["name"], record["status"]) for record in records] == [("one", "ok"), ("two", "ok"), ("alone", "ok")]
    assert records[2]["figures"] == {"met": 0}
    assert noted[0] == ["alone"] and len(noted[1]) == 2 and noted[2] == ["one", "two", "alone"]


def test_disagreement_is_reported_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    device = xgrad.Device("cpu")
    monkeypatch.setattr(device.xp, "argmax", device.xp.argmin)
    failed = agreement("cpu")["failed"]
    assert failed and all(label.startswith("argmax") for label in failed)


def test_agreement_is_that_of_its_command() -> None:
    *command, device = named("agreement").command
    assert device == "cuda"
    figures = changed("agreement", [*command, "cpu"])
    assert figures["failed"] == {} and figures["passed"] > 150


def test_parity_is_that_of_its_command() -> None:
    command = [*named("parity").command, "--ops", "multiply,relu", "--parts", "ops,seeds"]
    command[command.index("cpu,cuda")] = "cpu,strict"
    figures = changed("parity", command)
    assert figures["verdict"] == "pass" and figures["failed"] == []
    assert figures["worst"]["strict float32 value, ULP"] == {"error": 0.5, "op": "multiply"}
    equal, _, drawn = figures["equal draws"].partition(" of ")
    assert equal == drawn != "0"


def test_speed_is_that_of_its_command() -> None:
    command = [*named("speed").command, "--device", "cpu", "--quick", "--peers", "xgrad,xgrad to the host"]
    figures = changed("speed", command)
    assert figures["Time of a step"]["xgrad"].popitem()[1] > 0
    assert figures["Transfers"].keys() == {"xgrad to the host"}
