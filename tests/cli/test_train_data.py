"""``xgrad train`` on image sets: MNIST and others, digits as the fallback, and known accuracies."""

from __future__ import annotations

import json

import pytest

SMALL = ("--hidden", "8", "--epochs", "1", "--device", "cpu")
DIGITS = ("--hidden", "16", "--batch-size", "500", "--epochs", "1", "--device", "cpu")


def test_mnist_is_used_if_it_is_found(run, tmp_path, small_mnist, monkeypatch):
    monkeypatch.setenv("XGRAD_DATA", str(small_mnist))
    for name in ([], ["mnist"], ["mnist", "--fallback", "digits"]):
        result = run("train", *name, *SMALL)
        assert result.status == 0 and not result.err
        assert result.out.startswith("mnist: 200 training and 100 test images\nnetwork: MLP 784-8-")
    assert (tmp_path / "runs" / "mnist" / "weights.safetensors").is_file()
    monkeypatch.delenv("XGRAD_DATA")
    assert run("train", "--data", small_mnist, *SMALL).out.startswith("mnist")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ((), "was not found in the cache"),
        (("mnist", "--fallback", "digits"), "could not be downloaded"),
        (("mnist", "--fallback=digits", "--no-download"), "was not found in the cache"),
    ],
)
def test_digits_replace_missing_mnist(run, options, reason, monkeypatch):
    result = run("train", *options, *DIGITS)
    assert result.status == 0 and result.out.startswith("digits: 1437 training")
    lines = result.err.splitlines()
    replaced = "training on the 8x8 digits that come with xgrad"
    start = lines.index(f"xgrad train: MNIST {reason}: {replaced}")
    assert lines[start + 1] == "for MNIST:" and lines[-1].startswith("  export XGRAD_DATA=FOLDER ")
    assert ("  download it (11 MB)" in result.err) == (reason != "could not be downloaded")
    monkeypatch.setenv("XGRAD_DATA", "nowhere")
    result = run("train", *options, *DIGITS)
    assert result.status == 0
    assert result.err.splitlines() == [
        f"xgrad train: MNIST was not found in nowhere: {replaced}",
        "for MNIST:",
        "  unset XGRAD_DATA                 let `xgrad train` download it (11 MB)",
        "  xgrad train mnist --data FOLDER  use a folder that has the files",
        "  export XGRAD_DATA=FOLDER         use it in all commands",
    ]


@pytest.mark.parametrize("options", [(), ("--no-download",), ("--data", "folder")])
def test_missing_mnist_is_reported_with_folders_and_advice(run, tmp_path, options):
    result = run("train", "mnist", *options)
    folder = "folder" if "folder" in options else str(tmp_path / "cache" / "xgrad")
    assert result.status == 2 and not result.out and not (tmp_path / "runs").exists()
    tried, *lines = result.err.splitlines()
    message = f"xgrad train: MNIST was not found in {folder}"
    if options:
        assert tried == message
    else:
        assert "downloading it (11 MB)" in tried
        assert lines.pop(0) == f"{message}, and could not be downloaded"
        assert lines.pop(0).startswith("  http://127.0.0.1:1/: ")
    files = ["train-images-idx3-ubyte", "train-labels-idx1-ubyte"]
    assert lines[:3] == ["files, each as it is or with .gz:", *[f"  {name}" for name in files]]
    remedies = [line.split("  ")[1] for line in lines[lines.index("what to do:") + 1 :]]
    assert remedies[-3:] == [
        "xgrad train mnist --data FOLDER",
        "export XGRAD_DATA=FOLDER",
        "xgrad train digits",
    ]
    assert ("xgrad train mnist" in remedies) == bool(options), "a download has just failed"


def test_folder_of_an_unknown_user_is_named_as_it_is(run):
    result = run("train", "mnist", "--data", "~nosuchuser/data")
    assert result.err.startswith("xgrad train: MNIST was not found in ~nosuchuser/data\n")


def test_missing_file_of_a_data_folder_is_named_alone(run, small_mnist, monkeypatch):
    (small_mnist / "t10k-labels-idx1-ubyte.gz").unlink()
    monkeypatch.setenv("XGRAD_DATA", str(small_mnist))
    lines = run("train", "mnist").err.splitlines()
    assert lines[0] == f"xgrad train: MNIST was not found in {small_mnist}"
    assert lines[2:4] == ["  t10k-labels-idx1-ubyte", "what to do:"]
    assert lines[4].startswith("  unset XGRAD_DATA  ")
    lines = run("train", "emnist-digits").err.splitlines()
    assert lines[1] == "files, each as published, or gzip.zip, which has them:"


def test_other_data_sets_are_trained_on_by_name(run, tmp_path, small_fashion_mnist):
    result = run("train", "fashion-mnist", "--data", small_fashion_mnist, *SMALL)
    assert result.status == 0 and not result.err
    assert result.out.startswith("fashion-mnist: 200 training and 100 test images\n")
    assert (
        json.loads((tmp_path / "runs" / "fashion-mnist" / "config.json").read_text())[
            "class_names"
        ][1]
        == "Trouser"
    )
    result = run("predict", "runs/fashion-mnist", "--data", small_fashion_mnist)
    assert result.status == 0 and "; the label is " in result.out and "Trouser" in result.out
    result = run("train", "kmnist")
    assert (
        result.status == 2
        and "KMNIST is not on this machine yet: downloading it (21 MB)" in result.err
    )
    assert "\n  train-images-idx3-ubyte.gz\n" in result.err


def test_damaged_mnist_is_reported_and_not_replaced_by_digits(run, small_mnist):
    (small_mnist / "t10k-labels-idx1-ubyte.gz").write_bytes(b"\x1f\x8b damaged")
    for options in (
        ("--data", small_mnist),
        ("mnist", "--data", small_mnist, "--fallback", "digits"),
    ):
        result = run("train", *options)
        assert (
            result.status == 2
            and result.err.count("\n") == 1
            and "expected a complete gzip file" in result.err
        )


@pytest.mark.parametrize(
    ("options", "train_accuracy", "test_accuracy"),
    [
        ("--hidden 256,128 --epochs 5 --seed 0", 0.978, 0.978),
        ("--hidden 128 --optimizer sgd --batch-size 32 --epochs 1 --schedule cosine", 0.9, 0.95),
    ],
)
def test_mnist_reaches_known_accuracies(
    run, real_mnist, tmp_path, options, train_accuracy, test_accuracy
):
    options = ("--data", real_mnist, *options.split(), "--device", "cpu", "--out", "out")
    assert run("train", "mnist", *options).status == 0
    *_, last, test = (
        json.loads(line) for line in (tmp_path / "out" / "metrics.jsonl").read_text().splitlines()
    )
    assert test["test_accuracy"] >= test_accuracy and last["train_accuracy"] > train_accuracy


def test_captured_steps_give_bit_identical_results_at_the_sizes_of_mnist(
    run, small_mnist, tmp_path
):
    for capture in ("--capture", "--no-capture"):
        options = (
            "--hidden",
            "256,128",
            "--epochs",
            "3",
            "--device",
            "cpu",
            "--out",
            capture.strip("-"),
            capture,
        )
        assert run("train", "mnist", "--data", small_mnist, *options).status == 0
    for name in ("weights.safetensors", "config.json", "metrics.jsonl"):
        assert (tmp_path / "capture" / name).read_bytes() == (
            tmp_path / "no-capture" / name
        ).read_bytes()
