"""Trainings, seeds and times."""

import numpy as np
import pytest

import xgrad
from xgrad import nn
from xgrad.parity import seeds, training
from xgrad.parity.seeds import compare_seeds
from xgrad.parity.training import LIMITS, isolated, train, trajectory

CPU, STRICT = xgrad.Device("cpu"), xgrad.Device("strict")


@pytest.mark.parametrize("optimizer", training.OPTIMIZERS)
@pytest.mark.parametrize("dtype", LIMITS)
def test_trainings_on_two_devices_agree(optimizer, dtype, device):
    ours = isolated(train, CPU, dtype, optimizer, 160)
    found = trajectory(xgrad.Device(device), dtype, optimizer, ours)
    assert found.passed and len(found.losses) == 160 and not found.note
    assert found.losses[-1] < 0.8 * found.losses[0], "it learns"
    assert found.limit == (0 if device == "cpu" else LIMITS[dtype])


def test_a_training_that_goes_elsewhere_is_past_the_tolerance(monkeypatch):
    ours = isolated(train, CPU, "float32", "sgd", 20)
    monkeypatch.setattr(training, "BATCH", 31)
    found = trajectory(STRICT, "float32", "sgd", ours)
    assert not found.passed and found.loss_error > 1e-3 and found.weight_error > 1e-4


def test_a_training_that_raises_is_past_the_tolerance(monkeypatch):
    ours = isolated(train, CPU, "float32", "sgd", 3)
    monkeypatch.setitem(training.OPTIMIZERS, "sgd", lambda parameters: 1 / 0)
    found = trajectory(STRICT, "float32", "sgd", ours)
    assert not found.passed and found.note == "ZeroDivisionError: division by zero"


def test_a_loss_that_is_not_a_number_is_past_the_tolerance():
    ours = isolated(train, CPU, "float32", "sgd", 3)
    assert not trajectory(STRICT, "float32", "sgd", ours._replace(losses=ours.losses * np.nan)).passed


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_seeds_give_equal_bits(dtype, device):
    found = compare_seeds(xgrad.Device(device), dtype)
    assert {s.what for s in found} == set(seeds.DRAWS)
    assert [s for s in found if not s.equal] == []


def test_dropout_is_compared_where_there_is_one():
    assert ("dropout" in seeds.DRAWS) == hasattr(nn, "Dropout")


def test_other_bits_and_errors_are_named(monkeypatch):
    draws = {
        "one bit": lambda device, dtype: [
            xgrad.asarray(np.float32([1, 1 + 2**-23 * (device is STRICT)]), device=device)
        ],
        "sign": lambda device, dtype: [xgrad.asarray([0.0 if device is CPU else -0.0], device=device)],
        "error": lambda device, dtype: [] if device is CPU else 1 / 0,
    }
    monkeypatch.setattr(seeds, "DRAWS", draws)
    notes = {s.what: s.note for s in compare_seeds(STRICT, "float32")}
    assert notes["one bit"] == notes["sign"] == "differs from cpu in 1 of 1 tensors"
    assert notes["error"].startswith("ZeroDivisionError")


def test_the_seed_of_the_caller_is_not_touched():
    xgrad.manual_seed(7)
    first = xgrad.random.rand(3).tolist()
    xgrad.manual_seed(7)
    compare_seeds(CPU, "float32")
    isolated(train, CPU, "float32", "sgd", 2)
    assert xgrad.random.rand(3).tolist() == first
