"""What a step sees of a moment that is over: a parameter before its update, a generator that the step itself sets."""

from __future__ import annotations

import numpy as np
import pytest

import xgrad
from xgrad import nn, optim
from xgrad.capturing import CaptureWarning


def results(step, capture):
    """Return the numbers that some calls give, and why the step is not captured, if so."""
    step = xgrad.capture(step) if capture else step
    found = [step(xgrad.Tensor([1.0, 2.0, 3.0])) for _ in range(8)]
    return [np.array(np.asarray(x), copy=True) for x in found], getattr(step, "refusal", None)


def of_parameters(take):
    w = xgrad.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    optimizer = optim.SGD([w], lr=0.1)

    def step(x):
        before = take(w)
        optimizer.zero_grad()
        (w * x).sum().backward()
        gradient = w.grad.detach()
        optimizer.step()
        return gradient if before is None else before

    return step


@pytest.mark.parametrize("take", [lambda w: w.detach(), lambda w: w.data, lambda w: w.detach()[1:]])
def test_a_parameter_from_before_the_update_stays_what_it_was(take):
    eager, _ = results(of_parameters(take), False)
    with pytest.warns(CaptureWarning, match=r"test_moments\.py:\d+"):
        captured, refusal = results(of_parameters(take), True)
    assert "moved its parameters" in refusal
    np.testing.assert_array_equal(captured, eager)


@pytest.mark.parametrize(
    "take", [lambda w: None, lambda w: w.detach() * 1, lambda w: xgrad.asarray(w.detach(), copy=True)]
)
def test_what_is_computed_of_it_is_captured(take):
    eager, _ = results(of_parameters(take), False)
    captured, refusal = results(of_parameters(take), True)
    assert refusal is None
    np.testing.assert_array_equal(captured, eager)


def seeded(x):
    xgrad.manual_seed(1)
    return x + xgrad.random.randn(3)


def made(x):
    return nn.functional.dropout(x, 0.5) + xgrad.random.rand(3, generator=xgrad.random.Generator(5))


@pytest.mark.parametrize("step", [seeded, made])
def test_a_generator_that_is_set_within_the_step_is_refused(step):
    xgrad.manual_seed(0)
    eager, _ = results(step, False)
    xgrad.manual_seed(0)
    with pytest.warns(CaptureWarning, match=r"test_moments\.py:\d+: a generator of random numbers is made or set"):
        captured, _ = results(step, True)
    np.testing.assert_array_equal(captured, eager)
