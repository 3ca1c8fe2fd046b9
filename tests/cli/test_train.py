"""``xgrad train``: results, options, files, errors, interruptions.

Captured runs are compared with eager ones, devices with `cpu`, and files with the expected
contents.
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import xgrad
from helpers import override
from legibility import flaws
from xgrad.backend import DeviceError
from xgrad.cli import main, plots
from xgrad.cli.models import make_model
from xgrad.cli.training_run import PICTURES
from xgrad.data import digits
from xgrad.support import plotting
from xgrad.training import Trainer, callbacks

FAST = (
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
)
REPRODUCIBLE = {"weights.safetensors", "config.json", "metrics.jsonl"}
FILES = {*REPRODUCIBLE, "timing.jsonl"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """The folder of a training run."""
    out = tmp_path_factory.mktemp("train") / "out"
    assert main([*FAST, "--out", str(out), "--quiet"]) == 0
    return out


@pytest.fixture
def out(finished, tmp_path) -> Path:
    """A copy of the folder of a training run, named ``out`` in the working directory."""
    return Path(shutil.copytree(finished, tmp_path / "out"))


def lines(path: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def one_line(text: str) -> bool:
    return text.count("\n") == 1 and text.endswith("\n")


# Results


def test_training_run_writes_all_files(run, tmp_path, pictures):
    result = run(*FAST, "--out", "out", "--seed", "3")
    out = tmp_path / "out"
    assert result.status == 0 and {path.name for path in out.iterdir()} == {*FILES, *PICTURES}

    *head, threads, epoch1, epoch2 = result.out.splitlines()[:7]
    assert head == [
        "digits: 1437 training and 360 test images",
        "network: MLP 64-16-10, 1210 parameters",
        "training: 2 epochs, batches of 64, adamw, lr 0.003, weight decay 0.5, cosine",
        f"device: cpu ({xgrad.Device('cpu').backend.describe(0)})",
    ]
    assert threads.startswith("threads: ")
    assert epoch1.startswith("epoch 1/2  train loss ") and epoch2.endswith(" images/s")
    assert re.search(r"  train accuracy [\d.]+%  ", epoch1)
    metrics, timing = lines(out / "metrics.jsonl"), lines(out / "timing.jsonl")
    assert [line["epoch"] for line in metrics] == [line["epoch"] for line in timing] == [1, 2, 2]
    assert [list(line) for line in metrics[:2]] == [["epoch", "train_loss", "train_accuracy"]] * 2
    assert list(metrics[2]) == ["epoch", "test_loss", "test_accuracy"], "evaluated once, at the end"
    assert list(timing.pop()) == ["epoch", "test_seconds"]
    for line in metrics:
        assert all(0 < value < 10 for value in line.values())
    for line in timing:
        assert list(line) == [
            "epoch",
            "captured",
            "train_seconds",
            "validation_seconds",
            "images_per_second",
        ]
        assert line["captured"] is True and all(0 <= value < math.inf for value in line.values())
    correct = round(360 * metrics[2]["test_accuracy"])
    last = result.out.splitlines()[7:]
    assert last[0] == f"test accuracy {correct / 360:.2%} ({correct} of 360)"
    assert last[1] == f"files in out{os.sep}:" and last[-1].endswith("xgrad report out")
    listed = [line.split()[0] for line in last[2:-1]]
    assert len(listed) == len(set(listed)) and set(listed) == {*FILES, *PICTURES}

    config = json.loads((out / "config.json").read_text())
    expected = {
        "dataset": "digits",
        "device": "cpu",
        "model": "mlp",
        "hidden": [16],
        "activation": "relu",
    }
    expected |= {
        "optimizer": "adamw",
        "lr": 0.003,
        "momentum": 0.0,
        "weight_decay": 0.5,
        "dropout": 0.0,
    }
    expected |= {
        "schedule": "cosine",
        "shift": 0,
        "batch_size": 64,
        "epochs": 2,
        "amp": False,
        "seed": 3,
        "validation": 0,
        "patience": 0,
    }
    expected |= {"image_shape": [8, 8], "classes": 10}
    assert {key: config[key] for key in expected} == expected
    assert config["versions"]["xgrad"] == xgrad.__version__ and config["versions"]["numpy"]
    images = digits().train.images
    assert config["grey_values"] == pytest.approx(
        {"mean": images.mean(), "std": images.std(), "largest": 16}
    )
    for name in PICTURES:
        head = (out / name).read_bytes()[:24]
        assert head.startswith(b"\x89PNG\r\n\x1a\n") and int.from_bytes(head[16:20]) > 500
    shapes = {name: value.shape for name, value in xgrad.load(out / "weights.safetensors").items()}
    assert shapes == {"0.weight": (16, 64), "0.bias": (16,), "2.weight": (10, 16), "2.bias": (10,)}


def test_files_of_a_run_killed_while_it_replaced_them_are_not_overwritten(run, tmp_path, out):
    killed = tmp_path / "killed"
    killed.mkdir()
    for name in FILES:
        (killed / f"{name}.xgrad-old").write_bytes((out / name).read_bytes())
    before = contents(killed)
    result = run(*FAST, "--out", "killed", "--quiet")
    assert result.status == 0 and result.out.endswith(f"; see killed-2{os.sep}\n")
    assert contents(killed) == before


def test_curves_of_one_epoch_have_one_tick(monkeypatch, pictures):
    monkeypatch.setattr(plotting, "png", lambda figure: figure)
    line = {
        "epoch": 1,
        "train_loss": 0.5,
        "test_loss": 0.4,
        "train_accuracy": 0.9,
        "test_accuracy": 0.8,
    }
    figure = plots.curves([line], "digits")
    assert flaws(figure) == []
    for axes in figure.axes:
        low, high = axes.get_xlim()
        assert [tick for tick in axes.get_xticks() if low <= tick <= high] == [1]


def test_misclassified_images_and_curves_of_many_epochs_are_legible(monkeypatch, pictures):
    monkeypatch.setattr(plotting, "png", lambda figure: figure)
    names = [f"{part}_{what}" for part in plots.LINES for what in ("loss", "accuracy")]
    lines = [{"epoch": i, **dict.fromkeys(names, 1 / i)} for i in range(1, 201)]
    assert flaws(plots.curves(lines, "a network, " * 6)) == []
    split = digits().test
    predictions = np.eye(10, dtype=np.float32)[(split.labels + 1) % 10]
    for count, columns in ((len(split.labels), 8), (13, 5), (1, 5)):
        arrays = (split.images[:count], split.labels[:count], predictions[:count])
        assert flaws(plots.mistakes(*arrays, columns=columns)) == []


def test_equal_seeds_give_equal_files_and_no_run_is_overwritten(run, tmp_path, out):
    before = contents(out)
    result = run(*FAST, "--out", "out")
    assert result.status == 0 and result.err == "xgrad train: out has a run: this one is in out-2\n"
    assert f"\nfiles in out-2{os.sep}:\n" in result.out
    after = contents(tmp_path / "out-2")
    assert set(after) == FILES and all(after[name] == before[name] for name in REPRODUCIBLE)
    assert run(*FAST, "--out", "out", "--seed", "5", "--quiet").status == 0
    after = contents(tmp_path / "out-3")
    assert set(after) == FILES and all(after[name] != before[name] for name in FILES)
    assert contents(out) == before


def test_devices_train_equally(run, tmp_path, device):
    options = (
        "train",
        "digits",
        "--hidden",
        "8",
        "--batch-size",
        "256",
        "--epochs",
        "1",
        "--quiet",
    )
    assert run(*options, "--device", device, "--out", "out").status == 0
    assert run(*options, "--device", "cpu", "--out", "cpu").status == 0
    metrics, expected = (lines(tmp_path / out / "metrics.jsonl") for out in ("out", "cpu"))
    assert all(
        line == pytest.approx(other, rel=1e-4)
        for line, other in zip(metrics, expected, strict=True)
    )
    assert json.loads((tmp_path / "out" / "config.json").read_text())["device"] == device


def test_default_options_reach_97_percent_on_digits(run, tmp_path):
    result = run("train", "digits", "--quiet", "--device", "cpu")
    assert result.status == 0 and one_line(result.out) and not result.err
    assert lines(tmp_path / "runs" / "digits" / "metrics.jsonl")[-1]["test_accuracy"] >= 0.97


@pytest.mark.parametrize("optimizer", ["sgd", "sgd --momentum 0.9", "adam", "adamw"])
def test_captured_steps_give_bit_identical_results(run, tmp_path, optimizer):
    options = (*FAST, "--dropout", "0.2", "--schedule", "cosine", "--optimizer", *optimizer.split())
    assert 1437 % 64  # the last batch is smaller
    for capture in ("--capture", "--no-capture"):
        result = run(*options, capture, "--out", capture.strip("-"))
        assert result.status == 0 and not result.err
    captured, eager = (contents(tmp_path / out) for out in ("capture", "no-capture"))
    assert all(captured[name] == eager[name] for name in REPRODUCIBLE)
    for out, expected in (("capture", True), ("no-capture", False)):
        assert [line["captured"] for line in lines(tmp_path / out / "timing.jsonl")[:2]] == [
            expected,
            expected,
        ]


def test_steps_run_eagerly_on_devices_without_replay(run, tmp_path):
    options = (
        "train",
        "digits",
        "--hidden",
        "8",
        "--batch-size",
        "500",
        "--epochs",
        "1",
        "--device",
        "strict",
    )
    assert run(*options, "--out", "default").err == ""
    message = "xgrad train: --capture: steps on strict cannot be replayed yet: they run eagerly\n"
    assert run(*options, "--out", "requested", "--capture").err == message
    for out in ("default", "requested"):
        assert lines(tmp_path / out / "timing.jsonl")[0]["captured"] is False


def test_step_is_traced_once_for_each_shape(run, monkeypatch):
    trainers, fit = [], Trainer.fit
    monkeypatch.setattr(
        Trainer, "fit", lambda self, epochs: trainers.append(self) or fit(self, epochs)
    )
    assert run(*FAST).status == 0
    steps = trainers[0].train_step, trainers[0].eval_step
    assert [step.recordings for step in steps] == [2, 1]  # full batches, the last batch
    assert [step.refusal for step in steps] == [None, None]


@pytest.mark.parametrize(
    "options",
    [
        "--optimizer sgd --momentum 0.9 --lr 0.05",
        "--optimizer adam --weight-decay 0.001 --schedule constant",
        "--schedule onecycle",
        "--schedule linear",
        "--schedule step",
        "--shift 1",
        "--activation tanh",
        "--dropout 0.1",
        "--ema 0.9",
        "--activation sigmoid --lr 0.05",
        "--hidden 16,16,16 --batch-size 5000",
    ],
)
def test_every_option_changes_the_training(run, tmp_path, finished, options):
    assert run(*override(FAST, "--out", "other", *options.split())).status == 0
    default, metrics = (
        lines(folder / "metrics.jsonl") for folder in (finished, tmp_path / "other")
    )
    assert metrics != default and metrics[1]["train_loss"] < metrics[0]["train_loss"]


def test_validation_loss_chooses_the_weights_and_ends_the_run(run, tmp_path):
    options = ("--lr", "0.05", "--optimizer", "adam", "--epochs", "30", "--quiet")
    result = run(
        *override(FAST, *options),
        "--validation",
        "200",
        "--patience",
        "2",
        "--schedule",
        "constant",
        "--out",
        "out",
    )
    assert result.status == 0
    *metrics, test = lines(tmp_path / "out" / "metrics.jsonl")
    losses = [line["validation_loss"] for line in metrics]
    best = losses.index(min(losses)) + 1
    assert len(losses) == best + 2 < 30 and test["epoch"] == best
    assert (
        run(
            *override(override(FAST, *options), "--epochs", best),
            "--validation",
            "200",
            "--schedule",
            "constant",
            "--out",
            "b",
        ).status
        == 0
    )
    weights = [(tmp_path / out / "weights.safetensors").read_bytes() for out in ("out", "b")]
    assert weights[0] == weights[1]
    model = make_model("mlp", (8, 8), 10, (16,), "relu", 0.0)
    model.load_state_dict(xgrad.load(tmp_path / "out" / "weights.safetensors"))
    train = digits().train.images[:-200].astype(float)
    held = digits().train.images[-200:].reshape(200, 64)
    logits = (
        model(xgrad.asarray((held - train.mean()) / train.std(), dtype="float32")).detach().numpy()
    )
    labels = digits().train.labels[-200:]
    assert (logits.argmax(axis=1) == labels).mean() == metrics[best - 1]["validation_accuracy"]


def test_plateau_of_the_validation_loss_lowers_the_learning_rate(run, monkeypatch):
    trainers, evaluate = [], Trainer.evaluate
    monkeypatch.setattr(
        Trainer,
        "evaluate",
        lambda self, data: trainers.append(self) or evaluate(self, data) | {"loss": 1.0},
    )
    assert run(*override(FAST, "--schedule", "plateau", "--epochs", "5")).status == 0
    assert (
        len(trainers[0].validation_loader.dataset) == 1437 // 12
        and trainers[0].train_step.recordings == 2
    )
    assert trainers[0].optimizer.param_groups[0]["lr"] == pytest.approx(0.003 / 100)


# Files

TINY = (
    "train",
    "digits",
    "--hidden",
    "4",
    "--batch-size",
    "500",
    "--epochs",
    "1",
    "--device",
    "cpu",
    "--quiet",
)


def test_all_files_of_an_epoch_are_written_together_weights_first(run, monkeypatch):
    calls = []
    monkeypatch.setattr(
        "xgrad.cli.training_run.write_together", lambda files: calls.append(dict(files))
    )
    assert run(*FAST, "--out", "out").status == 0
    for number, files in enumerate(calls, 1):
        contents = {Path(path).name: content for path, content in files.items()}
        assert next(iter(contents)) == "weights.safetensors" and set(contents) == {
            *FILES,
            *PICTURES,
        }
        # the last one is of the test images
        assert len(contents["metrics.jsonl"].splitlines()) == number
        assert [name for name, content in contents.items() if content is None] == [*PICTURES]
    assert len(calls) == 3 and calls[0] != calls[1]


# Errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("fashion", "dataset: expected digits, mnist, fashion-mnist, kmnist, emnist-byclass, "),
        ("digits extra", "unexpected argument extra: see xgrad train --help"),
        ("--epoch 3", "unknown option --epoch: did you mean --epochs?"),
        ("--lr", "--lr: expected one argument"),
        (
            "--device gpu",
            "--device: expected auto or a device that can be used, got 'gpu': unknown device 'gpu'",
        ),
        (
            "--device cpu:7",
            (
                "--device: expected auto or a device that can be used, got 'cpu:7': unknown device"
                " 'cpu:7'"
            ),
        ),
        (
            "--device cpu:x",
            (
                "--device: expected auto or a device that can be used, got 'cpu:x': unknown device"
                " 'cpu:x'"
            ),
        ),
        (
            "--hidden 256,x",
            "--hidden: expected widths of hidden layers such as 256,128, got '256,x'",
        ),
        (
            "--hidden 256,0",
            "--hidden: expected widths of hidden layers such as 256,128, got '256,0'",
        ),
        ("--hidden ,", "--hidden: expected widths of hidden layers such as 256,128, got ','"),
        ("--activation swish", "--activation: expected relu, sigmoid or tanh, got 'swish'"),
        ("--optimizer lion", "--optimizer: expected sgd, adam or adamw, got 'lion'"),
        ("--lr -1", "--lr: expected a number above 0, got '-1'"),
        ("--lr 0", "--lr: expected a number above 0, got '0'"),
        ("--lr nan", "--lr: expected a number above 0, got 'nan'"),
        ("--lr inf", "--lr: expected a number above 0, got 'inf'"),
        ("--momentum 1", "--momentum: expected a number from 0 to below 1, got '1'"),
        ("--momentum 0.9", "--momentum: expected --optimizer sgd with it, got adamw"),
        ("--weight-decay -0.1", "--weight-decay: expected a number of 0 or more, got '-0.1'"),
        (
            "--schedule fast",
            "--schedule: expected cosine, constant, linear, step, onecycle or plateau, got 'fast'",
        ),
        ("--model resnet", "--model: expected mlp, lenet, cnn, mixer or vit, got 'resnet'"),
        ("--model cnn --hidden 16", "--hidden: expected --model mlp with it, got cnn"),
        ("--model cnn --activation relu", "--activation: expected --model mlp with it, got cnn"),
        ("--model mixer --dropout 0.1", "--dropout: expected --model mlp with it, got mixer"),
        ("--out=", "--out: expected a path, got ''"),
        ("--validation 0", "--validation: expected an integer of 1 or more, got '0'"),
        (
            "--validation 1437",
            "--validation: expected fewer than the 1437 training images, got 1437",
        ),
        ("--ema 1", "--ema: expected a number from 0 to below 1, got '1'"),
        ("--patience 0", "--patience: expected an integer of 1 or more, got '0'"),
        (
            "--model lenet",
            "--model lenet: expected images of at least 12x12 pixels, got 8x8: choose cnn",
        ),
        ("--shift -1", "--shift: expected an integer of 0 or more, got '-1'"),
        ("--shift 8", "--shift: expected fewer pixels than the 8 of an image, got 8"),
        ("--batch-size 0", "--batch-size: expected an integer of 1 or more, got '0'"),
        ("--batch-size 1.5", "--batch-size: expected an integer of 1 or more, got '1.5'"),
        ("--threads 0", "--threads: expected an integer of 1 or more, got '0'"),
        (
            f"--threads {(os.cpu_count() or 1) + 1}",
            f"--threads: expected at most {os.cpu_count()}, the number of processors, got '",
        ),
        ("--epochs 1000000000", "--epochs: expected an integer below 1e+09, got '1000000000'"),
        (
            "--batch-size 1000000000",
            "--batch-size: expected an integer below 1e+09, got '1000000000'",
        ),
        (
            "--validation 1000000000",
            "--validation: expected an integer below 1e+09, got '1000000000'",
        ),
        ("--patience 1000000000", "--patience: expected an integer below 1e+09, got '1000000000'"),
        (
            "--checkpoint-every 1000000000",
            "--checkpoint-every: expected an integer below 1e+09, got '1000000000'",
        ),
        ("--keep 1000000000", "--keep: expected an integer below 1e+09, got '1000000000'"),
        (
            "--hidden 1000000000",
            "--hidden: expected widths of hidden layers such as 256,128, got '1000000000'",
        ),
        ("--weight-decay inf", "--weight-decay: expected a number of 0 or more, got 'inf'"),
        ("--ema nan", "--ema: expected a number from 0 to below 1, got 'nan'"),
        ("--epochs 0", "--epochs: expected an integer of 1 or more, got '0'"),
        ("--seed -1", "--seed: expected an integer of 0 or more, got '-1'"),
        (
            "--seed 18446744073709551616",
            "--seed: expected an integer below 1.84467e+19, got '18446744073709551616'",
        ),
        ("--fallback mnist", "--fallback: expected digits, got 'mnist'"),
        (
            "--data folder",
            "--data: expected mnist or another data set of files with it, got digits and 'folder'",
        ),
        ("--out file/folder", "--out: expected a folder that can be written to, got file"),
        ("--out file", "--out: expected a folder that can be written to, got file"),
    ],
)
def test_invalid_arguments_are_refused_in_one_line(run, tmp_path, options, message):
    (tmp_path / "file").write_text("")
    name = [] if options.split()[0] in ("fashion", "digits") else ["digits"]
    result = run("train", *name, *options.split())
    assert result.status == 2 and not result.out
    assert one_line(result.err) and result.err.startswith(f"xgrad train: {message}")
    assert not (tmp_path / "runs").exists() and (tmp_path / "file").read_text() == ""


def test_unusable_device_is_refused_with_the_reason(run):
    try:
        xgrad.Device("cuda")
    except DeviceError as error:
        result = run("train", "digits", "--device", "cuda")
        expected = f"--device: expected auto or a device that can be used, got 'cuda': {error}"
        assert result.status == 2 and result.err == f"xgrad train: {expected}\n"
        assert run(*override(FAST, "--device", "auto", "--epochs", "1")).status == 0
    else:
        pytest.skip("cuda can be used here")


def test_diverging_training_run_fails_without_files(run, tmp_path):
    result = run(*FAST, "--optimizer", "sgd", "--lr", "1e30", "--out", "out")
    assert result.status == 1 and one_line(result.err)
    assert "expected finite losses, got nan" in result.err and result.err.endswith("than 1e+30\n")
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize(
    "name", ["weights.safetensors", "metrics.jsonl", "config.json", "mistakes.png"]
)
def test_full_disk_leaves_complete_files(run, tmp_path, monkeypatch, pictures, name):
    replace, written = os.replace, []

    def full(source, target):
        written.append(Path(target).name)
        if written.count(name) == 1 + (name != "mistakes.png"):
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    result = run(*FAST, "--out", "out", "--seed", "9", "--quiet")
    assert result.status == 2 and one_line(result.err)
    last, count = (2, 3) if name == "mistakes.png" else (1, 1)
    assert result.err.startswith(f"xgrad train: {os.path.join('out', name)}: disk full: ")
    assert result.err.endswith(
        f"; files in out are whole, last epoch with all files: epoch {last}\n"
    )
    after = contents(tmp_path / "out")
    assert set(after) == {*FILES, *(["curves.png"] if last == 2 else [])}
    assert (
        len(after["metrics.jsonl"].splitlines()) == len(after["timing.jsonl"].splitlines()) == count
    )


def test_interrupt_before_the_first_evaluation_changes_nothing(run, out, monkeypatch):
    before = contents(out)

    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(Trainer, "fit", interrupt)
    result = run(*FAST, "--out", "out", "--quiet")
    assert result == (130, "", "xgrad train: interrupted: nothing was written\n")
    monkeypatch.setattr("xgrad.cli.train.find_data", interrupt)
    assert run(*FAST, "--out", "out") == (130, "", "xgrad train: interrupted\n")
    assert contents(out) == before


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for another process")
def test_ctrl_c_leaves_complete_files(tmp_path):
    # Python ignores SIGINT if it was ignored before, as in a background job of a shell.
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from xgrad.cli import main; sys.exit(main())"
    )
    command = [sys.executable, "-c", program, *FAST[:-4], "--epochs", "100000", "--out", "out"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, **pipes) as process:
        assert process.stdout is not None
        while "epoch 2/" not in (line := process.stdout.readline()):
            assert line, "ended too early"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and one_line(err)
    assert re.fullmatch(
        r"xgrad train: interrupted after step \d+: `xgrad train --resume out` continues\n", err
    )
    assert {path.name for path in (tmp_path / "out").iterdir()} == {*FILES, "checkpoints"}
    assert len(lines(tmp_path / "out" / "metrics.jsonl")) >= 2
    assert xgrad.load(tmp_path / "out" / "weights.safetensors")


# Optional packages


def test_without_matplotlib_pictures_are_left_out(run, tmp_path, monkeypatch, pictures):
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run(*FAST, "--out", "out")
    assert result.status == 0 and one_line(result.err)
    assert "pictures are left out" in result.err and result.err.endswith(
        "pip install 'xgrad[cli]'\n"
    )
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES


def test_tensorboard_writes_events_or_names_its_extra(run, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "tensorboardX", None)
        result = run(*FAST, "--tensorboard", "--out", "out")
        assert result.status == 2 and one_line(result.err) and not (tmp_path / "out").exists()
        assert result.err.startswith("xgrad train: --tensorboard: tensorboardX is missing")
    pytest.importorskip(
        "tensorboardX", reason="needs tensorboardX: pip install 'xgrad[tensorboard]'"
    )
    assert run(*FAST, "--tensorboard", "--out", "out").status == 0
    (file,) = (tmp_path / "out" / "tensorboard").iterdir()
    assert file.read_bytes().count(b"loss/train") == 2


def test_without_tqdm_progress_is_lines(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert run(*FAST, "--out", "first").err == ""  # too short for a line
    monkeypatch.setattr(callbacks, "LINE_SECONDS", 0)
    err = run(*FAST, "--out", "second").err.splitlines()
    assert len(err) == 2 * math.ceil(1437 / 64)
    assert re.fullmatch(
        r"epoch 1/2: 64/1437 images, total 2%, [\d:]+ left, train: loss [\d.]+, accuracy [\d.]+,"
        r" \d+ images/s",
        err[0],
    )
    assert err[-1].startswith("epoch 2/2: 1437/1437 images, total 100%, 00:00 left, train: loss ")
    assert run(*FAST, "--quiet").err == ""


def test_progress_is_a_bar_on_terminals_only(run, monkeypatch):
    pytest.importorskip("tqdm")

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(callbacks, "BAR_SECONDS", 0)
    assert run(*FAST, "--out", "first").err == ""
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    assert run(*FAST, "--out", "second").status == 0
    shown = terminal.getvalue()
    assert "epoch 1/2  " in shown and "| total " in shown and " left, train: loss " in shown
    assert run(*FAST, "--quiet").status == 0 and terminal.getvalue() == shown
