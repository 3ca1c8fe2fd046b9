"""The networks of ``xgrad train``: training, predictions, shifts of images, learning rates.

Captured runs are compared with eager ones, learning rates and shapes with known values.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

import xgrad
from helpers import host
from xgrad.cli.models import IMAGE_MODELS, MODELS, make_model, shifted
from xgrad.cli.settings import SCHEDULES

SHORT = ("--epochs", "1", "--batch-size", "100", "--device", "cpu", "--quiet", "--out", "out")


@pytest.mark.parametrize("model", MODELS)
def test_network_is_trained_and_predicts(run, small_mnist, tmp_path, model):
    assert run("train", "mnist", "--data", small_mnist, "--model", model, *SHORT).err == ""
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["model"] == model and config["hidden"] == ([256, 128] if model == "mlp" else [])
    assert (
        json.loads((tmp_path / "out" / "timing.jsonl").read_text().splitlines()[0])["captured"]
        is True
    )
    status, out, err = run("predict", "out", "--data", small_mnist, "--index", "3")
    assert status == 0 and not err and "; the label is " in out
    xgrad.save({}, tmp_path / "out" / "weights.safetensors")
    assert run("predict", "out").err.startswith("xgrad predict: ")
    assert run("predict", "out", "--data", small_mnist).status == 2


def test_captured_steps_with_shifts_give_bit_identical_results(run, tmp_path):
    for capture in ("--capture", "--no-capture"):
        options = (
            "--model",
            "cnn",
            "--epochs",
            "2",
            "--batch-size",
            "500",
            "--device",
            "cpu",
            "--quiet",
        )
        assert run("train", "digits", *options, capture, "--out", capture.strip("-")).status == 0
    for name in ("weights.safetensors", "metrics.jsonl"):
        assert (tmp_path / "capture" / name).read_bytes() == (
            tmp_path / "no-capture" / name
        ).read_bytes()


def test_configuration_without_a_network_is_that_of_an_mlp(run, tmp_path):
    assert run("train", "digits", "--hidden", "8", *SHORT).status == 0
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    del config["model"], config["shift"]
    (tmp_path / "out" / "config.json").write_text(json.dumps(config))
    assert run("predict", "out").status == 0
    (tmp_path / "out" / "config.json").write_text(json.dumps(config | {"model": "resnet"}))
    assert "config.json has dataset 'digits', model 'resnet'" in run("predict", "out").err


@pytest.mark.parametrize("name", IMAGE_MODELS)
@pytest.mark.parametrize("shape", [(28, 28), (28, 32), (8, 8)], ids=str)
def test_output_has_a_column_for_each_class(name, shape):
    if name == "lenet" and shape == (8, 8):
        pytest.skip("refused: the images are too small")
    model = make_model(name, shape, 5, (), "relu", 0.0)
    assert model(xgrad.ones((3, shape[0] * shape[1]))).shape == (3, 5)


def test_networks_refuse_images_that_do_not_fit():
    with pytest.raises(ValueError, match="sides that are multiples of 4, got"):
        make_model("vit", (18, 28), 10, (), "relu", 0.0)
    with pytest.raises(ValueError, match="at least 12x12 pixels, got 11x28: choose cnn"):
        make_model("lenet", (11, 28), 10, (), "relu", 0.0)


def test_images_are_shifted_by_random_numbers_of_pixels(device):
    images = np.random.default_rng(0).normal(size=(200, 4, 5)).astype(np.float32)
    xgrad.manual_seed(0)
    got = host(
        shifted(xgrad.asarray(images.reshape(200, 20), device=device), (4, 5), 2, -7.0)
    ).reshape(images.shape)
    padded = np.pad(images, ((0, 0), (2, 2), (2, 2)), constant_values=-7.0)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (4, 5), axis=(1, 2)).reshape(
        200, 25, 4, 5
    )
    same = (windows == got[:, None]).all(axis=(2, 3))
    assert (same.sum(axis=1) == 1).all() and same.any(axis=0).all()


def test_schedules_start_and_end_at_their_rates():
    rates: dict[str, list[float]] = {}
    for name, make in SCHEDULES.items():
        if name == "plateau":  # depends on losses
            continue
        optimizer = xgrad.optim.SGD([xgrad.nn.Parameter(xgrad.ones(1))], lr=1.0)
        schedule, rates[name] = make(optimizer, 100), []
        for _ in range(100):
            rates[name] += schedule.get_last_lr()
            schedule.step()
    assert set(rates["constant"]) == {1.0}
    assert [rates[name][0] for name in ("cosine", "linear", "step", "onecycle")] == [1, 1, 1, 0]
    assert (
        rates["onecycle"][25] == 1
        and rates["cosine"][50] == pytest.approx(rates["linear"][50]) == 0.5
    )
    assert rates["step"][34] == 0.1 and rates["step"][99] == pytest.approx(0.01)
    assert all(0 <= rate <= 1 for name in rates for rate in rates[name])
    assert max(rates["cosine"][99], rates["linear"][99], rates["onecycle"][99]) < 0.011
