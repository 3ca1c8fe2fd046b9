import math

import numpy as np
import pytest

from xgrad.parity import reference as module
from xgrad.parity.evaluate import evaluate
from xgrad.parity.reference import ExtendedBackend, differences, reference
from xgrad.parity.row import Sample
from xgrad.parity.table import find

needs_long_double = pytest.mark.skipif(
    np.finfo(np.longdouble).eps == np.finfo(np.float64).eps, reason="long double is float64 here"
)


@needs_long_double
def test_the_reference_has_more_digits_than_float64():
    sample = Sample((np.array([2.0]),))
    (root,) = evaluate(find("sqrt"), sample, reference().device, "float64").values
    assert root.dtype == np.longdouble
    assert abs(root[0] * root[0] - 2) < 4 * reference().eps
    (slope,) = evaluate(find("sqrt"), sample, reference().device, "float64").gradients
    assert abs(slope[0] * 2 * root[0] - 1) < 8 * reference().eps


def test_inputs_are_rounded_first():
    third = Sample((np.array([1 / 3]),))
    (value,) = evaluate(find("positive"), third, reference().device, "float64", "float32").values
    assert value[0] == np.float32(1 / 3)


def test_the_reference_runs_no_kernel_of_the_device():
    assert not ExtendedBackend().kernels


def test_without_a_long_double_the_reference_is_cpu(monkeypatch):
    monkeypatch.setattr(np, "longdouble", np.float64)
    found = reference.__wrapped__()
    assert str(found.device) == "cpu" and "float64" in found.description
    assert found.eps == np.finfo(np.float64).eps


@pytest.mark.parametrize("columns", [True, False])
def test_differences_are_derivatives(columns):
    x = np.array([0.3, 1.1, 2.9])
    sample = Sample((x,), columns=columns)
    run = evaluate(find("sin"), sample, reference().device, "float64")
    found = differences(find("sin"), sample, run)
    weights = np.cos(np.arange(3.0))
    np.testing.assert_allclose(found.gradients[0].astype(float), weights * np.cos(x), rtol=1e-11)
    np.testing.assert_allclose(found.value_changes[0].astype(float), np.abs(x * np.cos(x)), rtol=1e-6)
    changes = np.abs(weights) * (np.abs(np.cos(x)) + np.abs(x * np.sin(x)))
    np.testing.assert_allclose(found.gradient_changes[0].astype(float), changes, rtol=1e-5)


def test_what_meets_in_a_sum_counts_by_its_magnitude():
    sample = Sample((np.array([1.0, -1.0, 0.5]),))
    found = differences(find("sum"), sample, evaluate(find("sum"), sample, reference().device, "float64"))
    assert found.value_changes[0] == pytest.approx(2.5)


@pytest.mark.parametrize(("name", "x"), [("abs", 1e-9), ("floor", 1.0), ("relu", 0.0), ("round", 0.5)])
def test_kinks_and_jumps_are_left_out(name, x):
    sample = Sample((np.array([x, 0.3]),), columns=True)
    found = differences(find(name), sample, evaluate(find(name), sample, reference().device, "float64"))
    assert found.noise[0][0] == math.inf and found.noise[0][1] < 1e-6


def test_the_module_says_what_it_is_held_against():
    assert module.reference().description.startswith("the same op")
