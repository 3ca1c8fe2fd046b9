"""``xgrad train --resume``: signals, checkpoints, damaged checkpoints, and locks.

Resumed runs have the bits of runs without an interruption.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

import xgrad
from helpers import override
from xgrad.cli import main
from xgrad.cli.checkpoints import Stopped, lock
from xgrad.cli.training_run import TrainingRun
from xgrad.training import Trainer

SMALL = (
    "train",
    "digits",
    "--hidden",
    "16",
    "--batch-size",
    "64",
    "--epochs",
    "2",
    "--device",
    "cpu",
    "--quiet",
)
STEPS = 46  # of this run, 23 in each epoch
EQUAL = ("weights.safetensors", "config.json", "metrics.jsonl")


def stop(monkeypatch, step: int) -> None:
    """Let a run end after a step, as at SIGTERM."""

    def stop_if_asked(self, trainer):
        if trainer.steps == step:
            raise Stopped(signal.SIGTERM)

    monkeypatch.setattr(TrainingRun, "stop_if_asked", stop_if_asked)


def interrupted(run, monkeypatch, step: int, *options: str) -> None:
    """Start a run in the folder ``out``, and interrupt it after a step."""
    with monkeypatch.context() as patch:
        stop(patch, step)
        result = run(*SMALL, "--out", "out", *options)
    message = f"xgrad train: interrupted after step {step}: `xgrad train --resume out` continues\n"
    assert result == (143, "", message)


def results(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in EQUAL]


def lines(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def checkpoints(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "checkpoints").iterdir())


@pytest.mark.parametrize("step", [1, 23, STEPS])
@pytest.mark.parametrize(
    "options",
    [
        "--optimizer adam --dropout 0.2 --shift 1",
        "--schedule plateau --validation 20 --patience 1 --lr 0.1",
        "--optimizer sgd --momentum 0.9 --no-capture --schedule onecycle --seed 3 --ema 0.9",
        "--ema 0.95 --validation 20",
    ],
)
def test_resumed_run_has_the_bits_of_one_that_was_not_interrupted(
    run, monkeypatch, tmp_path, options, step
):
    assert run(*SMALL, "--out", "whole", *options.split()).status == 0
    interrupted(run, monkeypatch, step, *options.split())
    result = run("train", "--resume", "out", "--quiet")
    assert result.status == 0 and not result.err and result.out.startswith("test accuracy ")
    assert results(tmp_path / "out") == results(tmp_path / "whole")
    timing = [
        json.loads(line) for line in (tmp_path / "out" / "timing.jsonl").read_text().splitlines()
    ]
    assert [0 < line["train_seconds"] < 60 for line in timing[:-1]] == [True, True]


@pytest.mark.parametrize("options", ["--optimizer adam --ema 0.9", "--validation 20"])
def test_loaded_checkpoint_is_released_before_training(run, monkeypatch, options):
    interrupted(run, monkeypatch, 1, *options.split())
    loaded, alive, load, fit = [], [], xgrad.load, Trainer.fit

    def spied_load(path, **others):
        state = load(path, **others)
        tensors = [
            *state["model"].values(),
            *state["optimizer"]["state"].get(0, {}).values(),
            *state["totals"],
        ]
        loaded.extend(weakref.ref(x) for x in tensors if isinstance(x, xgrad.Tensor) and x.size > 1)
        return state

    def spied_fit(trainer, epochs):
        alive.extend(x() for x in loaded)
        return fit(trainer, epochs)

    monkeypatch.setattr(xgrad, "load", spied_load)
    monkeypatch.setattr(Trainer, "fit", spied_fit)
    assert run("train", "--resume", "out", "--quiet").status == 0
    assert alive == [None] * len(loaded) and len(loaded) >= 4


def test_convolutional_network_is_resumed_to_the_bit(run, monkeypatch, tmp_path):
    options = ("--model", "cnn", "--batch-size", "500", "--epochs", "1")
    small = (*SMALL[:2], "--device", "cpu", "--quiet", *options)
    assert run(*small, "--out", "whole").status == 0
    with monkeypatch.context() as patch:
        stop(patch, 2)
        assert run(*small, "--out", "out").status == 143
    assert run("train", "--resume", "out", "--quiet").status == 0
    assert results(tmp_path / "out") == results(tmp_path / "whole")


def test_mixed_precision_is_captured_and_resumed_to_the_bit(run, monkeypatch, tmp_path):
    options = (
        "train",
        "digits",
        "--amp",
        "--hidden",
        "8",
        "--epochs",
        "2",
        "--batch-size",
        "500",
        "--device",
        "cpu",
    )
    assert run(*options, "--out", "whole").status == 0
    timing = (tmp_path / "whole" / "timing.jsonl").read_text().splitlines()
    assert all(json.loads(line)["captured"] for line in timing[:-1])
    assert run(*options, "--no-capture", "--out", "eager").status == 0
    with monkeypatch.context() as patch:
        stop(patch, 4)
        assert run(*options, "--out", "resumed").status == 143
    assert run("train", "--resume", "resumed").status == 0
    assert run(*options[:2], *options[3:], "--out", "float32").status == 0
    weights = [
        (tmp_path / out / "weights.safetensors").read_bytes()
        for out in ("whole", "eager", "resumed", "float32")
    ]
    assert weights[0] == weights[1] == weights[2] != weights[3]


def test_run_is_resumed_on_another_device(run, monkeypatch, tmp_path, device):
    assert run(*SMALL, "--out", "whole").status == 0
    interrupted(run, monkeypatch, 30)
    assert run("train", "--resume", "out", "--quiet", "--device", device).status == 0
    for line, expected in zip(lines(tmp_path / "out"), lines(tmp_path / "whole"), strict=True):
        assert line == pytest.approx(expected, rel=1e-4)
    assert json.loads((tmp_path / "out" / "config.json").read_text())["device"] == device


def test_newest_checkpoints_are_kept_and_a_damaged_one_is_left_out(run, monkeypatch, tmp_path):
    assert run(*SMALL, "--out", "whole").status == 0
    interrupted(run, monkeypatch, 33, "--checkpoint-every", "10", "--keep", "2")
    folder = tmp_path / "out" / "checkpoints"
    assert checkpoints(tmp_path / "out") == [
        "step-00000030.safetensors",
        "step-00000033.safetensors",
    ]
    newest = folder / "step-00000033.safetensors"
    newest.write_bytes(newest.read_bytes()[:-1])
    (folder / ".xgrad-0000.tmp").touch()  # of a killed process
    result = run("train", "--resume", "out", "--quiet", "--keep", "1")
    assert result.status == 0 and result.err.startswith(
        "xgrad train: a checkpoint is left out: load: expected a "
    )
    assert results(tmp_path / "out") == results(tmp_path / "whole")
    assert checkpoints(tmp_path / "out") == ["step-00000040.safetensors"]
    # the end of the finished run again
    assert run("train", "--resume", "out", "--quiet").status == 0
    assert results(tmp_path / "out") == results(tmp_path / "whole")


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_full_disk_leaves_the_last_checkpoint(run, monkeypatch, tmp_path, call):
    assert run(*SMALL, "--out", "whole").status == 0
    function, calls = getattr(os, call), []

    def full(*args):
        calls.append(args)
        if len(calls) > 5:
            raise OSError(errno.ENOSPC, "No space left on device")
        return function(*args)

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        result = run(*SMALL, "--out", "out", "--checkpoint-every", "4")
    assert result.status == 2 and result.err.count("\n") == 1 and "disk full" in result.err
    assert all(name.endswith(".safetensors") for name in checkpoints(tmp_path / "out"))
    assert run("train", "--resume", "out", "--quiet").status == 0
    assert results(tmp_path / "out") == results(tmp_path / "whole")


PROGRAM = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "from xgrad.cli import main; sys.exit(main())"
)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals for another process")
def test_sigterm_writes_a_checkpoint_of_the_last_step(run, tmp_path):
    options = override(SMALL[:-1], "--epochs", "9")
    assert run(*options, "--quiet", "--out", "whole").status == 0
    command = [sys.executable, "-c", PROGRAM, *options, "--out", "out"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        while "epoch 2/" not in (line := process.stdout.readline()):
            assert line, "ended too early"
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 143 and "`xgrad train --resume out` continues" in err
    assert run("train", "--resume", "out", "--quiet").status == 0
    assert results(tmp_path / "out") == results(tmp_path / "whole")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no locks of folders")
def test_locked_folder_is_left_to_its_run(run, monkeypatch, tmp_path):
    interrupted(run, monkeypatch, 1)
    with lock(tmp_path / "out"):
        result = run("train", "--resume", "out")
        assert (result.status, result.out) == (2, "")
        expected = (
            "--resume: expected a run that has ended, got out, which another process continues"
        )
        assert result.err == f"xgrad train: {expected}\n"
    (tmp_path / "new").mkdir()
    with lock(tmp_path / "new"):
        assert run(*SMALL, "--out", "new").out.endswith("; see new-2/\n")
    assert run("train", "--resume", "out", "--quiet").status == 0 and not list(
        (tmp_path / "new").iterdir()
    )


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ("--resume nothing", "--resume: expected the folder of a run, got nothing"),
        ("--resume " + 300 * "x", "--resume: expected the folder of a run, got xxx"),
        (
            "--resume empty",
            "--resume: expected a run with a checkpoint that is whole, got none in "
            f"{Path('empty', 'checkpoints')}: they are written at SIGTERM",
        ),
        (
            "digits --resume out",
            "dataset: expected none with --resume: the run has its own",
        ),
        (
            "--resume out --batch-size 5",
            "--batch-size: expected none with --resume: the run has its own",
        ),
        ("--checkpoint-every 0", "--checkpoint-every: expected an integer of 1 or more, got '0'"),
        ("--keep 0", "--keep: expected an integer of 1 or more, got '0'"),
    ],
)
def test_invalid_arguments_are_refused_in_one_line(run, tmp_path, argv, message):
    (tmp_path / "empty").mkdir()
    result = run("train", *argv.split())
    assert (
        result.status == 2
        and result.err.startswith(f"xgrad train: {message}")
        and result.err.count("\n") == 1
    )


@pytest.fixture(scope="module")
def after_one_step(tmp_path_factory) -> Path:
    """A checkpoint."""
    out = tmp_path_factory.mktemp("resume") / "out"
    with pytest.MonkeyPatch.context() as patch:
        stop(patch, 1)
        assert main([*SMALL, "--validation", "20", "--out", str(out)]) == 143
    return out / "checkpoints" / "step-00000001.safetensors"


CHANGES = [
    {"options": None},
    {"options": {"dataset": "--help"}},
    {"options.dataset": "nothing"},
    {"options.model": "cnn"},
    {"options.hidden": ()},
    {"options.hidden": (10**9, 10**9)},
    {"options.epochs": "x"},
    {"options.help": 1},
    {"options.device": "tpu"},
    {"options.batch_size": 32},
    {"model": None},
    {"model": {}},
    {"model.0.bias": xgrad.zeros(3)},
    {"optimizer": []},
    {"optimizer.state": {0: {"step": 1}}},
    {"optimizer.param_groups": 1},
    {"scheduler": None},
    {"scheduler.base_lrs": ["x"]},
    {"scheduler.last_epoch": 2.5},
    {"scaler": {"scale": 1.0}},
    {"loader": {}},
    {"loader.batches": 2.5},
    {"random": {"seed": 1}},
    {"position": None},
    {"position.steps": -1},
    {"position.steps": "x"},
    {"totals": (1, 2)},
    {"totals": (xgrad.zeros(3), xgrad.zeros(3))},
    {"position.seconds": float("nan")},
    {"callbacks": None},
    {"callbacks.EarlyStopping": None},
    {"callbacks.EarlyStopping": {"best_weights": {"0.bias": xgrad.zeros(16)}}},
    {"callbacks.EMA": {}},
    {"history": [1]},
    {"history": [{"epoch": 1}]},
    {
        "history": [
            dict.fromkeys(
                ("epoch", "train_loss", "train_accuracy", "validation_loss", "validation_accuracy"),
                "",
            )
        ]
    },
    {"timing": 5},
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_checkpoint_of_other_contents_is_refused_in_one_line(run, after_one_step, tmp_path, change):
    path = tmp_path / "out" / "checkpoints" / "step-00000001.safetensors"
    path.parent.mkdir(parents=True)
    state = xgrad.load(after_one_step)
    ((name, value),) = change.items()
    first, _, rest = name.partition(".")
    if rest:
        state[first][rest] = value
    else:
        state[first] = value
    xgrad.save(state, path)
    result = run("train", "--resume", "out", "--quiet")
    assert (result.status, result.out) == (2, "") and result.err.count("\n") == 1, result
    for other in ([], 3, {"x": xgrad.ones(3)}) if name == "options" else ():
        xgrad.save(other, path)
        result = run("train", "--resume", "out", "--quiet")
        assert (result.status, result.out) == (2, "") and result.err.count("\n") == 1, result
