"""Benchmarks: statistics of known samples, alternation of peers, errors, and files.

All benchmarks run with tiny sizes; the figures themselves are not tested.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from benchmarks import (
    before,
    environment,
    epoch,
    harness,
    imports,
    models,
    reach,
    report,
    statistics,
    step,
)
from benchmarks.__main__ import NAMES, main
from benchmarks.checkpoints import check
from benchmarks.harness import Expected, Failed, Options, Worker, once, timed
from benchmarks.report import Result, Table

ROOT = Path(__file__).parents[1]
needs_git = pytest.mark.skipif(
    not (ROOT / ".git").exists(), reason="needs the commits of a git checkout"
)
TINY = {"tiny": {"sizes": [5, 4, 3], "batch": 8}}
QUICK = Options(quick=True).filled()


# Statistics and tables


def test_statistics_of_known_samples() -> None:
    assert statistics.spread([5, 1, 2, 3, 4]) == (2, 3, 4)
    assert statistics.spread([1, 2]) == (1.25, 1.5, 1.75)
    assert statistics.spread([7]) == (7, 7, 7)
    assert statistics.ratios([2, 9], [1, 3]) == [2, 3]
    with pytest.raises(ValueError, match="zip"):
        statistics.ratios([1, 2], [1])
    sizes = [1, 2, 4, 8, 16, 32]
    costs = [1000, 1000, 1000, *(3 * size**1.5 for size in sizes[3:])]
    assert statistics.exponent(sizes, costs) == pytest.approx(1.5)  # of the upper half
    with pytest.raises(ValueError, match="expected three sizes or more, got 2"):
        statistics.exponent([1, 2], [1, 2])


def test_ratios_are_those_of_the_fastest_of_each_group() -> None:
    times = {
        "a": {"x": [6.0, 8.0], "y": [1.0]},
        "b": {"x": [2.0, 2.0]},
        "c": {"x": [1.0, 1.0], "z": [1.0]},
    }
    pairs = {"a / best": (["a"], ["b", "c", "absent"]), "absent / a": (["absent"], ["a"])}
    assert step.compared(times, pairs) == {"a / best": {"x": [6, 8]}}


@pytest.mark.parametrize(
    ("samples", "text"),
    [
        ([], "-"),
        ([3.0], "3"),
        ([0.01234], "0.0123"),
        ([15432.1], "15 432"),
        ([1.0, 2.0, 4.0], "2 (1.50 to 3)"),
        ([123.4, 123.4], "123"),
    ],
)
def test_cell_has_three_significant_digits(samples: list[float], text: str) -> None:
    assert report.cell(samples) == text


def test_markdown_has_rows_columns_and_missing_peers() -> None:
    table = Table("Time", "µs", {"a": {"x": [1.0]}, "b": {"y": [2.0]}}, corner="case")
    result = Result(
        "name", "About.", [table, Table("Nothing", "", {})], command="python -m benchmarks name"
    )
    result.leave_out("c", "c is not installed", "x")
    result.leave_out("c", "c is not installed", "y")
    result.fail("d", "boom", "x")
    text = report.markdown(result)
    assert "| case | x | y |\n|---|---|---|\n| a | 1 | - |\n| b | - | 2 |" in text
    assert "- Left out: **c**: c is not installed (x; y)\n- Failed: **d**: boom (x)" in text
    assert "Nothing" not in text


def test_seconds_to_an_accuracy_are_those_of_the_epochs_up_to_it() -> None:
    def seed(seconds: float, *accuracies: float) -> list[dict[str, float]]:
        return [
            {"loading": 1.0, "epoch": seconds, "evaluation": 0.1, "accuracy": x} for x in accuracies
        ]

    runs = {
        "a": [seed(2.0, 0.9, 0.98), seed(2.0, 0.9, 0.9, 0.9)],
        "b": [seed(4.0, 0.5, 0.9, 0.97, 0.99)],
    }
    cells = epoch.summary(runs, 0.98)
    expected = {
        "seconds": [5],
        "epochs": [2],
        "seeds that reached it": [1],
        "seconds for 3 epochs": [7, 7],
    }
    assert {name: cells["a"][name] for name in expected} == expected
    assert cells["b"]["seconds"] == [17] and cells["b"]["seconds for 3 epochs"] == [13]
    assert epoch.summary({"a": [seed(1.0, 0.1)]}, 0.98)["a"]["seconds"] == []


# Alternation and errors


class Scripted:
    """A worker with given results of its blocks: numbers, or errors to raise."""

    calls: list[str]
    blocks: dict[str, Iterable[Any]]

    def __init__(self, subject: str, arguments: dict[str, Any], options: Options) -> None:
        self.target = arguments["target"]
        self.results = iter(self.blocks[self.target])
        self.calls.append(f"start {self.target}")

    def ask(self, name: str) -> Any:
        self.calls.append(f"{name} {self.target}")
        if name == "first_values":
            return [1.0] * 5
        if isinstance(result := next(self.results), Exception):
            raise result
        return result

    def close(self) -> None:
        self.calls.append(f"close {self.target}")


def scripted(monkeypatch: pytest.MonkeyPatch, **blocks: Iterable[Any]) -> list[str]:
    """Replace workers by scripted ones, and return the list of their calls."""
    monkeypatch.setattr(harness, "Worker", Scripted)
    monkeypatch.setattr(Scripted, "blocks", blocks, raising=False)
    monkeypatch.setattr(Scripted, "calls", calls := list[str](), raising=False)
    return calls


def test_blocks_of_peers_alternate(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = scripted(monkeypatch, a=[0.5, 0.5], b=[0.5, 0.5])
    cells = timed(Result("turns", ""), {"A": "a", "B": "b"}, {"case": {}}, QUICK)
    assert cells == {"A": {"case": [0.5, 0.5]}, "B": {"case": [0.5, 0.5]}}
    assert calls[:4] == ["start a", "start b", "first_values a", "first_values b"]
    assert calls[4:8] == ["block a", "block b", "block a", "block b"]
    assert sorted(calls[8:]) == ["close a", "close b"]


def test_peer_that_fails_in_a_later_block_has_no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch, a=[0.5, 0.25], b=[0.5, Failed("out of memory")])
    result = Result("half", "")
    assert timed(result, {"A": "a", "B": "b"}, {"case": {}}, QUICK) == {"A": {"case": [0.5, 0.25]}}
    assert result.failed.keys() == {"B"}


def test_tf32_is_disabled_on_gpus_unless_it_is_measured() -> None:
    assert environment.for_workers(1, "cuda")["NVIDIA_TF32_OVERRIDE"] == "0"
    assert "NVIDIA_TF32_OVERRIDE" not in environment.for_workers(1, "cpu")
    assert "NVIDIA_TF32_OVERRIDE" not in environment.for_workers(1, "cuda", tf32=True)


def test_process_on_a_gpu_runs_all_cases_until_one_fails() -> None:
    options = replace(QUICK, device="gpu")
    result, peers = Result("turns", ""), {"xgrad": "xgrad_peer:op", "NumPy": "by_hand:op"}
    cases = {name: {"name": name} for name in ("add", "no such op", "multiply")}
    started, cells = [], {}

    class Counted(Worker):
        def __init__(self, *args: Any) -> None:
            started.append(self)
            super().__init__(*args)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(harness, "Worker", Counted)
        timed(result, peers, cases, options, None, cells)
    assert [list(columns) for columns in cells.values()] == [["add", "multiply"]] * 2
    assert len(started) == 4 and all(worker.process.poll() is not None for worker in started)
    assert result.left_out.keys() == {"xgrad", "NumPy"} and not result.failed


def test_worker_of_an_earlier_call_keeps_its_subject() -> None:
    idle = dict[str, Worker]()
    peers = {"NumPy": "by_hand:step"}
    try:
        timed(Result("turns", ""), peers, TINY, QUICK, idle=idle)
        worker, begun = idle["NumPy"], idle["NumPy"].begun
        timed(Result("turns", ""), peers, TINY, QUICK, idle=idle)
        assert idle["NumPy"] is worker and worker.begun is begun  # not made again
        other = {"other": {"sizes": [5, 4, 3], "batch": 9}}
        timed(Result("turns", ""), peers, other, QUICK, idle=idle)
        assert idle["NumPy"] is worker and worker.begun[1]["case"] == other["other"]
    finally:
        for worker in idle.values():
            worker.close()


def test_interrupted_benchmark_writes_its_results(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    timed, seen = harness.timed, []

    def interrupted(result: Any, peers: Any, cases: Any, *args: Any) -> Any:
        seen.append(list(cases))
        if "add" in cases:
            raise KeyboardInterrupt
        return timed(result, peers, cases, *args)

    monkeypatch.setattr("benchmarks.gpu.timed", interrupted)
    monkeypatch.setattr("benchmarks.ops.timed", interrupted)
    assert (
        main(["gpu", "--quick", "--device", "cpu", "--peers", "xgrad", "--output", str(tmp_path)])
        == 1
    )
    written = json.loads((tmp_path / "gpu.json").read_text())
    assert [table["title"] for table in written["tables"] if table["cells"]] == [
        "Time of a step", "Time of a step with TF32"
    ]  # fmt: skip
    assert len(seen) == 3 and written["failed"].keys() == {"all peers"}


def test_peer_with_other_results_fails() -> None:
    result = Result("wrong", "")
    peers = {"xgrad": "xgrad_peer:step", "NumPy": "by_hand:step"}
    assert timed(result, peers, TINY, QUICK, lambda **case: Expected([1.0] * 5, 0.01)) == {}
    (reason,) = result.failed["xgrad"]
    assert reason.startswith("computes something else: expected [1.0, 1.0, 1.0, 1.0, 1.0], got [")


def test_other_learning_rate_and_nan_are_out_of_tolerance() -> None:
    expected = step.expected([5, 4, 3], 8)
    first, *others = expected.values
    assert harness.agree(expected.values, expected)
    assert not harness.agree([first, *(first + 1.05 * (loss - first) for loss in others)], expected)
    assert not harness.agree([math.nan] * 5, expected)


def test_missing_library_is_left_out_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    missing = "raise ModuleNotFoundError(\"No module named 'mygrad'\", name='mygrad')"
    (tmp_path / "mygrad.py").write_text(missing)
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    )
    result = Result("absent", "")
    cells = timed(
        result, {"MyGrad": "my_grad:step", "NumPy": "by_hand:step"}, TINY, QUICK, step.expected
    )
    assert cells.keys() == {"NumPy"}
    assert result.left_out == {"MyGrad": {"mygrad is not installed": ["tiny"]}}
    assert not result.failed


def test_errors_and_dead_processes_are_failures(capsys: pytest.CaptureFixture[str]) -> None:
    result = Result("broken", "")
    peers = {"typo": "no_such_file:step", "xgrad": "xgrad_peer:additions"}
    assert once(
        result, peers, "benchmarks.chain:Chain", {"case": {"length": -1}}, QUICK
    ).keys() == {"xgrad"}
    assert result.failed == {
        "typo": {"ModuleNotFoundError: No module named 'benchmarks.peers.no_such_file'": ["case"]}
    }
    assert "Traceback" in capsys.readouterr().err
    with pytest.raises(Failed, match="exit status 3"):
        Worker("os:_exit", {"status": 3}, QUICK)


# All benchmarks with tiny sizes

SMALL = {
    "step": "xgrad,xgrad captured,NumPy in place,NumPy plain",
    "models": "xgrad,xgrad captured",
    "ops": "xgrad,NumPy",
    "epoch": "xgrad,xgrad captured,NumPy by hand",
    "memory": "xgrad,xgrad captured,NumPy plain",
    "scaling": "xgrad",
    "import": "xgrad,NumPy",
    "load": "xgrad captured,xgrad captured by NumPy",
    "chain": "xgrad",
    "reach": "xgrad",
    "checkpoints": "no checkpoints,every 100 steps",
    "threads": "1 thread,all threads",
    "distributed": "",
    "before": "",
    "gpu": "xgrad,array library,xgrad to the device,xgrad to the device pinned,xgrad to the host",
}


def run(name: str, folder: Path, *options: str) -> dict[str, Any]:
    more = ("--device", "cpu") if name == "gpu" else ()
    assert main([name, "--quick", "--repeats", "1", "--output", str(folder), *options, *more]) == 0
    result: dict[str, Any] = json.loads((folder / f"{name}.json").read_text("utf-8"))
    return result


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[needs_git] * (name == "before")) for name in NAMES]
)
def test_benchmark_runs_and_writes_files(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "reach" and (reason := reach.unlisted("scipy")):
        pytest.skip(reason)
    result = run(name, tmp_path, "--peers", SMALL[name])
    text = (tmp_path / f"{name}.md").read_text("utf-8")
    assert text.startswith(f"# {name}\n")
    assert result["command"].startswith(f"python -m benchmarks {name} --quick ")
    assert {"CPU", "Python", "packages", "commit", "date"} <= result["environment"].keys()
    rows = {
        row
        for table in result["tables"]
        for row, cells in table["cells"].items()
        if any(cells.values())
    }
    assert rows >= set(filter(None, SMALL[name].split(",")))
    assert all(f"\n| {row} | " in text for row in rows)
    assert not result["failed"]
    for private in (str(ROOT), str(tmp_path)):
        assert private not in text + json.dumps(result)
    if find_spec("matplotlib"):
        assert (tmp_path / f"{name}.svg").read_text("utf-8").count("<svg ") == 1
    else:
        assert "matplotlib is missing" in capsys.readouterr().out


def test_all_peers_have_equal_results(tmp_path: Path) -> None:
    peers = [peer for peer in step.PEERS if peer != "PyTorch compiled"]  # slow
    result = run("step", tmp_path, "--peers", ",".join(peers))
    assert result["tables"][0]["cells"].keys() | result["left_out"].keys() == set(peers)
    assert all(
        "not installed" in reason for reasons in result["left_out"].values() for reason in reasons
    )


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_models_of_all_peers_have_equal_results(library: str, request: Any, tmp_path: Path) -> None:
    request.getfixturevalue(library)
    peer = {"torch": "PyTorch", "jax": "JAX jit"}[library]
    (times, *_) = run("models", tmp_path, "--peers", peer)["tables"]
    assert times["cells"][peer].keys() == models.QUICK.keys()


def test_models_on_another_device_have_its_peers_and_memory(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    result = run("models", tmp_path, "--peers", "xgrad,PyTorch", "--device", "torch")
    times, *_ = result["tables"]
    assert times["unit"] == "µs" and times["cells"].keys() == {"xgrad"}
    assert times["cells"]["xgrad"].keys() == models.QUICK.keys()
    assert result["left_out"].keys() == {"PyTorch"}  # which has no device of this name
    assert "--device=torch" in result["command"] and "device" in result["environment"]


def test_without_matplotlib_the_plot_is_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    message = report.write(
        Result("name", "", [Table("Time", "s", {"a": {"x": [1.0]}}, "bars")]), tmp_path
    )
    assert message.startswith(
        "written: name.json, name.md; without a plot, since matplotlib is missing"
    )
    assert message.endswith("pip install 'xgrad[benchmarks]'")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["name.json", "name.md"]


def test_saved_results_are_redrawn_without_measurement(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    report.write(Result("a", "About.", [Table("Time", "s", {"b": {"x": [1.0]}}, "bars")]), tmp_path)
    (tmp_path / "other.json").write_text("{}")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for name in ("a.svg", "a.md"):
        (tmp_path / name).unlink()
    assert main(["redraw", "--output", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "written: a.json, a.md, a.svg\n"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_import_above_the_bound_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = {"pass": 0.02, "import numpy": 0.07, "import xgrad": 0.082}
    monkeypatch.setattr(imports, "seconds", lambda statement, env: seconds[statement])
    options = Options(peers=("xgrad", "NumPy"), repeats=3)
    assert not imports.run(options).failed
    seconds["import xgrad"] = 0.086
    reason = "takes 1.32 times as long as NumPy: expected at most 1.3"
    assert imports.run(options).failed == {"xgrad": {reason: ["import"]}}


def test_cost_of_checkpoints_above_the_bound_fails() -> None:
    result = Result("checkpoints", "")
    check(result, {"epochs": [1.0, 1.02, 2.0], "all": [1.0, 1.05, 1.05]})
    reason = "takes 1.050 times as long as without checkpoints: expected at most 1.03"
    assert result.failed == {"every 100 steps": {reason: ["all"]}}


def test_ratio_to_the_commit_above_the_bound_fails() -> None:
    result = Result("before", "")
    before.check(
        result, {"fast": {"ratio": [1.04, 1.04, 2.0]}, "slow": {"ratio": [1.0, 1.06, 1.06]}}
    )
    assert result.failed == {
        before.NOW: {"takes 1.06 times as long as before: expected at most 1.05": ["slow"]}
    }


@needs_git
def test_worker_of_a_commit_has_the_library_of_its_tree(tmp_path: Path) -> None:
    with before.tree_of("HEAD") as tree:
        (tree / "xgrad" / "__init__.py").write_text("raise ValueError('of the commit')")
        result = Result("before", "")
        timed(
            result,
            {"now": "xgrad_peer:step", "then": "xgrad_peer:step"},
            TINY,
            replace(QUICK, trees={"then": tree}),
        )
    assert result.failed == {"then": {"ValueError: of the commit": ["tiny"]}}


# The command line


def test_without_a_name_all_benchmarks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(NAMES)
    assert all(line.endswith(".") for line in lines)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["stpe"], "invalid choice: 'stpe'"),
        (["step", "--repeats", "0"], "expected 1 or more, got 0"),
        (["step", "--seconds", "nan"], "expected a number above 0, got nan"),
        (
            ["ops", "--peers", "xgrad,Nonesuch"],
            "benchmarks ops: --peers: expected some of xgrad, NumPy, ",
        ),
        (["gpu", "--device", "nonesuch"], "benchmarks gpu: "),
        (["models", "--device", "nonesuch"], "benchmarks models: "),
        (["epoch"], "benchmarks epoch: "),
        (
            ["before", "--commit", "nonesuch"],
            "benchmarks before: --commit: expected a commit",
        ),
    ],
)
def test_invalid_arguments_are_refused(
    args: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XGRAD_DATA", str(tmp_path))  # no MNIST
    try:
        status = main(args)
    except SystemExit as error:  # of argparse
        status = int(error.code or 0)
    err = capsys.readouterr().err
    assert status == 2 and message in err
    assert "usage: " in err or err.count("\n") == 1
