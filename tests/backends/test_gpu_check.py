"""The parts of ``make gpu-check`` that need no GPU."""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import xgrad
from benchmarks import gpu_check


@pytest.fixture
def check() -> Any:
    return gpu_check


def python(code: str) -> tuple[str, ...]:
    return ("python", "-c", code)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("NVIDIA H100 80GB HBM3", "nvidia-h100-80gb-hbm3"), ("  Tesla/T4 ", "tesla-t4"), ("?", "gpu")],
)
def test_slug(check: Any, name: str, expected: str) -> None:
    assert check.slug(name) == expected


def test_without_a_gpu_one_line_says_why(
    check: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def refuse(name: str) -> None:
        raise xgrad.DeviceError("cuda: no GPU: look for one")

    monkeypatch.setattr(check.xgrad, "Device", refuse)
    assert check.main(["--out", str(tmp_path / "results")]) == 1
    assert capsys.readouterr().out == "gpu-check: cuda: no GPU: look for one\n"
    assert not (tmp_path / "results").exists()


def test_junit_counts_and_names_failures(check: Any, tmp_path: Path) -> None:
    (tmp_path / "tests.xml").write_text(
        """<testsuites><testsuite tests="4" failures="1" errors="1" skipped="1">
        <testcase classname="tests.test_a" name="test_good[cuda]"/>
        <testcase classname="tests.test_a" name="test_bad[cuda]"><failure message="assert 1 == 2&#10;more">x</failure>
        </testcase>
        <testcase classname="tests.test_a" name="test_ugly"><error message="boom"/></testcase>
        <testcase classname="tests.test_b" name="test_not_here"><skipped message="no"/></testcase>
        </testsuite></testsuites>"""
    )
    assert check.junit("", tmp_path) == {
        "passed": 1,
        "skipped": 1,
        "failed": {"tests.test_a::test_bad[cuda]": "assert 1 == 2", "tests.test_a::test_ugly": "boom"},
    }


def test_a_part_that_works(check: Any) -> None:
    code = "print('chatter'); import json, sys; print(json.dumps({'us': 1.5, 'folder': sys.argv[1][-3:]}))"
    record = check.run_part(check.Part("good", (*python(code), "TMP/abc"), 60, check.last_line), 60)
    assert record.pop("seconds") < 60
    assert record == {
        "name": "good",
        "command": f"python -c {code} TMP/abc",
        "status": "ok",
        "figures": {"us": 1.5, "folder": "abc"},
    }


def test_figures_may_be_no_numbers(check: Any, tmp_path: Path) -> None:
    part = check.Part("nan", python('print(\'{"loss": NaN, "error": [-Infinity]}\')'), 60, check.last_line)
    (record,) = check.run([part])
    assert record["status"] == "ok" and record["figures"] == {"loss": "NaN", "error": ["-Infinity"]}
    check.write({"gpu": "Some GPU", "parts": [record]}, tmp_path)


def test_a_part_that_leaves_nothing_has_no_figures(check: Any, tmp_path: Path) -> None:
    nothing = "import pathlib, sys; folder = pathlib.Path(sys.argv[1]); folder.mkdir()\n"
    nothing += "for name in ('metrics.jsonl', 'timing.jsonl'): (folder / name).touch()"
    (record,) = check.run([check.Part("train", (*python(nothing), "TMP/train"), 60, check.trained)])
    assert record["status"].startswith("no figures: IndexError: ")


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("print('{}'); raise SystemExit(3)", "exit status 3"),
        ("print('no JSON')", "no figures: "),
        ('print(\'{"failed": {"one": "a", "two": "b"}}\')', "failed: 2"),
    ],
)
def test_a_part_that_fails(check: Any, code: str, status: str) -> None:
    record = check.run_part(check.Part("bad", python(code), 60, check.last_line), 60)
    assert record["status"].startswith(status)
    assert record["output"]


def test_a_command_that_is_missing(check: Any) -> None:
    record = check.run_part(check.Part("none", ("no-such-command",), 60, check.last_line), 60)
    assert record["status"].startswith("cannot run: ")


def test_a_part_that_takes_too_long_may_still_report(check: Any) -> None:
    code = "import time\ntry: time.sleep(60)\nexcept KeyboardInterrupt: print('{\"done\": 7}')"
    record = check.run_part(check.Part("slow", python(code), 60, check.last_line), 1.5)
    assert record["status"] == "out of time after 2 s"
    assert record["seconds"] < 10
    assert record["figures"] == {"done": 7}


def test_a_part_is_interrupted_in_the_background_as_well(check: Any) -> None:
    code = "import time\ntry: time.sleep(60)\nexcept KeyboardInterrupt: print('{\"done\": 7}')"
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell without job control starts a command with &
    try:
        record = check.run_part(check.Part("slow", python(code), 60, check.last_line), 1.5)
    finally:
        signal.signal(signal.SIGINT, before)
    assert record["figures"] == {"done": 7}


def test_a_part_that_does_not_end_is_killed(check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "GRACE", 0.2)
    code = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(60)"
    start = time.monotonic()
    record = check.run_part(check.Part("stuck", python(code), 60, check.last_line), 1.5)
    assert time.monotonic() - start < 20
    assert record["status"].startswith("out of time")


def test_every_part_runs_whatever_became_of_the_others(check: Any, capsys: pytest.CaptureFixture[str]) -> None:
    parts = [
        check.Part("bad", python("raise SystemExit(1)"), 60, check.last_line),
        check.Part("good", python("print('{}')"), 60, check.last_line),
    ]
    assert [record["status"] for record in check.run(parts)] == ["exit status 1", "ok"]
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert [record["status"] for record in check.run(parts, budget=0)] == ["not run: no time was left"] * 2


def test_the_report_is_one_file_of_the_gpus_name(check: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XGRAD_DATA", str(tmp_path / "data"))
    output = f"{tmp_path / 'data' / 'mnist'} {check.ROOT / 'xgrad'} {Path.home() / 'x'} {Path(sys.prefix) / 'lib'}"
    path = check.write({"gpu": "Some GPU", "output": output}, tmp_path / "results")
    assert path == tmp_path / "results" / "some-gpu.json"
    assert json.loads(path.read_text()) == {"gpu": "Some GPU", "output": "XGRAD_DATA/mnist ./xgrad ~/x PREFIX/lib"}


def test_the_whole_report(check: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On the CPU in the GPU's place, with other parts."""
    device = xgrad.Device("cpu")
    monkeypatch.setattr(check.xgrad, "Device", lambda name: device)
    for code, status in (("print('{}')", 0), ("raise SystemExit(1)", 1)):
        monkeypatch.setattr(check, "PARTS", [check.Part("one", python(code), 60, check.last_line)])
        assert check.main(["--out", str(tmp_path)]) == status
        (path,) = tmp_path.glob("*.json")
        report = json.loads(path.read_text())
        assert report["ok"] is (status == 0)
        assert {"gpu", "driver", "numpy", "python", "xgrad", "commit", "date", "parts"} <= report.keys()
        assert [part["name"] for part in report["parts"]] == ["one"]


def test_all_parts_fit_into_ten_minutes(check: Any) -> None:
    assert check.BUDGET + 2 * check.GRACE <= 600
    assert sum(part.limit for part in check.PARTS if part.alone) < check.BUDGET / 2
    assert all(part.limit <= check.BUDGET for part in check.PARTS)


def test_what_measures_runs_alone_and_the_others_at_a_time(check: Any, tmp_path: Path) -> None:
    """Each waits for the other, but for the last, which finds nobody at work; each is noted when it has ended."""
    meet = (
        "import pathlib, sys, time; here = pathlib.Path(sys.argv[1]); (here / sys.argv[2]).touch()\n"
        "while not (here / sys.argv[3]).exists(): time.sleep(0.01)\nprint('{}')"
    )
    alone = f"import os; print('{{\"met\": %d}}' % len(os.listdir({str(tmp_path)!r})))"
    parts = [
        check.Part("one", (*python(meet), str(tmp_path), "one", "two"), 60, check.last_line),
        check.Part("two", (*python(meet), str(tmp_path), "two", "one"), 60, check.last_line),
        check.Part("alone", python(alone), 60, check.last_line, alone=True),
    ]
    noted: list[list[str]] = []
    records = check.run(parts, note=lambda found: noted.append([record["name"] for record in found]))
    assert [(record["name"], record["status"]) for record in records] == [("one", "ok"), ("two", "ok"), ("alone", "ok")]
    assert records[2]["figures"] == {"met": 0}
    assert noted[0] == ["alone"] and len(noted[1]) == 2 and noted[2] == ["one", "two", "alone"]


def test_the_agreement_is_that_of_the_command(check: Any) -> None:
    """On the CPU in the GPU's place."""
    (part,) = (part for part in check.PARTS if part.name == "agreement")
    assert part.command[-1] == "cuda"
    record = check.run_part(check.Part("agreement", (*part.command[:-1], "cpu"), 60, part.figures), 60)
    assert record["status"] == "ok", record
    assert record["figures"]["failed"] == {} and record["figures"]["passed"] > 150


def test_the_parity_is_that_of_the_command(check: Any) -> None:
    """On the CPU in the GPU's place, with a few ops."""
    (part,) = (part for part in check.PARTS if part.name == "parity")
    command = [*part.command, "--ops", "multiply,relu", "--parts", "ops,seeds"]
    command[command.index("cpu,cuda")] = "cpu,strict"
    record = check.run_part(check.Part("parity", tuple(command), 60, part.figures), 60)
    assert record["status"] == "ok", record
    figures = record["figures"]
    assert figures["verdict"] == "pass" and figures["failed"] == []
    assert figures["worst"]["strict float32 value, ULP"] == {"error": 0.5, "op": "multiply"}
    made, _, drawn = figures["equal draws"].partition(" of ")
    assert made == drawn != "0"


def test_the_speed_is_that_of_the_benchmark(check: Any) -> None:
    """On the CPU in the GPU's place, at tiny sizes."""
    (part,) = (part for part in check.PARTS if part.name == "speed")
    rehearsal = (*part.command, "--device", "cpu", "--quick", "--peers", "xgrad,xgrad to the host")
    record = check.run_part(check.Part("speed", rehearsal, 60, part.figures), 60)
    assert record["status"] == "ok"
    assert record["figures"]["Time of a step"]["xgrad"].popitem()[1] > 0
    assert record["figures"]["Transfers"].keys() == {"xgrad to the host"}
