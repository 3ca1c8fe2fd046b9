"""Comparisons of training runs and of equal seeds on a device and on `cpu`.

Devices that agree pass; planted differences and errors are noted.
"""

import numpy as np
import pytest

import xgrad
from xgrad.parity import seed_parity, training_parity
from xgrad.parity.seed_parity import compare_seeds
from xgrad.parity.training_parity import LIMITS, compare_training, isolated, train

CPU = xgrad.Device("cpu")


@pytest.mark.parametrize("optimizer", training_parity.OPTIMIZERS)
@pytest.mark.parametrize("dtype", LIMITS)
def test_training_runs_on_two_devices_agree(optimizer, dtype, device):
    baseline = isolated(train, CPU, dtype, optimizer, 160)
    run = compare_training(xgrad.Device(device), dtype, optimizer, baseline)
    assert run.passed and len(run.losses) == 160 and not run.note
    assert run.losses[-1] < 0.8 * run.losses[0], "it learns"
    assert run.limit == (0 if device == "cpu" else LIMITS[dtype])


def test_training_run_out_of_tolerance_does_not_pass(monkeypatch, strict):
    baseline = isolated(train, CPU, "float32", "sgd", 20)
    assert not compare_training(
        strict, "float32", "sgd", baseline._replace(losses=baseline.losses * np.nan)
    ).passed
    monkeypatch.setattr(training_parity, "BATCH", 31)
    run = compare_training(strict, "float32", "sgd", baseline)
    assert not run.passed and run.loss_error > 1e-3 and run.weight_error > 1e-4
    monkeypatch.setitem(training_parity.OPTIMIZERS, "sgd", lambda parameters: 1 / 0)
    run = compare_training(strict, "float32", "sgd", baseline)
    assert not run.passed and run.note == "ZeroDivisionError: division by zero"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_equal_seeds_give_equal_bits(dtype, device):
    draws = compare_seeds(xgrad.Device(device), dtype)
    assert {draw.what for draw in draws} == set(seed_parity.DRAWS)
    assert [draw for draw in draws if not draw.equal] == []


def test_different_bits_and_errors_are_noted(monkeypatch, strict):
    draws = {
        "one bit": lambda device, dtype: [
            xgrad.asarray(np.float32([1, 1 + 2**-23 * (device is strict)]), device=device)
        ],
        "sign": lambda device, dtype: [
            xgrad.asarray([0.0 if device is CPU else -0.0], device=device)
        ],
        "error": lambda device, dtype: [] if device is CPU else 1 / 0,
    }
    monkeypatch.setattr(seed_parity, "DRAWS", draws)
    notes = {draw.what: draw.note for draw in compare_seeds(strict, "float32")}
    assert notes["one bit"] == notes["sign"] == "differs from cpu in 1 of 1 tensors"
    assert notes["error"].startswith("ZeroDivisionError")


def test_seed_of_the_caller_is_unchanged():
    xgrad.manual_seed(7)
    first = xgrad.random.rand(3).tolist()
    xgrad.manual_seed(7)
    compare_seeds(CPU, "float32")
    isolated(train, CPU, "float32", "sgd", 2)
    assert xgrad.random.rand(3).tolist() == first
