"""Captured steps of optimizers whose parameters lie in several pieces, and are laid out anew on the way."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import xgrad
from xgrad import nn, optim

OPTIMIZERS = {
    "sgd": lambda groups: optim.SGD(groups, lr=0.1, momentum=0.9),
    "adamw": lambda groups: optim.AdamW(groups, lr=0.01),
}


def trained(make, capture, between=lambda model, step: None):
    """Return the weights after some steps, and the step."""
    xgrad.manual_seed(3)
    model = nn.MLP([300, 250, 10])  # the first weight takes more than one piece
    parameters = list(model.parameters())
    optimizer = make([{"params": parameters[:2], "lr": 0.03}, {"params": parameters[2:]}])

    def step(x):
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    step = xgrad.capture(step) if capture else step
    for i in range(8):
        between(model, i)
        step(xgrad.random.randn((4, 300)))
    return [p.detach().numpy() for p in parameters], step


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_groups_are_captured(name):
    eager, _ = trained(OPTIMIZERS[name], False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        captured, step = trained(OPTIMIZERS[name], True)
    assert step.recordings == 1 and step.refusal is None
    for got, expected in zip(captured, eager, strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_what_is_remembered_survives_a_new_layout_while_it_is_recorded(name):
    def freeze(model, i):
        model[0].bias.requires_grad_(i != 4)

    eager, _ = trained(OPTIMIZERS[name], False, freeze)
    captured, step = trained(OPTIMIZERS[name], True, freeze)
    assert step.recordings > 1 and step.refusal is None
    for got, expected in zip(captured, eager, strict=True):
        np.testing.assert_array_equal(got, expected)
