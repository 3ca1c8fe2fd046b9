"""``xgrad summary``: the layers of a network, and totals, compared with known counts."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("options", "first", "total"),
    [
        (
            "",
            "       MLP     (1, 10)",
            "total: 235,146 parameters in 940.6 kB, activations of 3.1 kB",
        ),
        (
            "digits --hidden 16",
            "       MLP     (1, 10)",
            "total: 1,210 parameters in 4.8 kB, activations of 168 B",
        ),
        (
            "mnist --model lenet --batch-size 2",
            "       Sequential  (2, 10)",
            "total: 61,706 parameters in 246.8 kB, ",
        ),
        ("emnist-letters --model cnn", "       Sequential         (1, 26)", "total: 62,"),
        ("digits --model mixer", "", "total: 85,386 parameters in 341.5 kB, "),
    ],
)
def test_layers_and_totals_are_printed(run, options, first, total):
    status, out, err = run("summary", *options.split())
    lines = out.splitlines()
    assert status == 0 and not err and lines[0].split()[:3] == ["layer", "class", "output"]
    assert lines[1].startswith(first) and lines[-1].startswith(total)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "digits --model lenet",
            "--model lenet: expected images of at least 12x12 pixels, got 8x8: choose cnn",
        ),
        ("mnist --model cnn --hidden 3", "--hidden: expected --model mlp with it, got cnn"),
        ("mnist --model vgg", "--model: expected mlp, lenet, cnn, mixer or vit, got 'vgg'"),
        ("mnist --batch-size 0", "--batch-size: expected an integer of 1 or more, got '0'"),
        (
            "mnist --hidden 1000000000000",
            "--hidden: expected widths of hidden layers such as 256,128",
        ),
        (
            "mnist --hidden 999999999,999999999",
            "expected --hidden and --batch-size that fit into memory: ",
        ),
        (
            "mnist --batch-size 999999999",
            "expected --hidden and --batch-size that fit into memory: ",
        ),
    ],
)
def test_invalid_arguments_are_refused_in_one_line(run, options, message):
    status, out, err = run("summary", *options.split())
    assert (
        status == 2
        and not out
        and err.startswith(f"xgrad summary: {message}")
        and err.count("\n") == 1
    )
