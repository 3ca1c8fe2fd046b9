"""Losses: ignored classes in captured steps, accuracy far from 0, and errors; the table of modules has their values."""

from __future__ import annotations

import numpy as np
import pytest

import xgrad
from helpers import check_error, host
from xgrad import nn

F = nn.functional


def test_captured_cross_entropy_follows_ignored_targets():
    logits = xgrad.asarray(np.random.default_rng(0).normal(size=(3, 4)))
    step = xgrad.capture(lambda x, y: F.cross_entropy(x, y))
    for target in ([0, 1, 3], [0, -100, 2], [3, 3, -100], [1, 2, 0]):
        y = xgrad.asarray(target)
        assert step(logits, y).tolist() == F.cross_entropy(logits, y).tolist()
    with pytest.raises(IndexError, match="cross_entropy: expected target from 0 to 3, got -1"):
        step(logits, xgrad.asarray([0, -1, 2]))
    assert step.refusal is None


def test_binary_cross_entropy_is_accurate_far_from_zero(device):
    x = xgrad.asarray([-90.0, 90.0, -50.0], dtype=xgrad.float64, device=device, requires_grad=True)
    target = xgrad.asarray([0.0, 1.0, 1.0], dtype=xgrad.float64, device=device)
    losses = F.binary_cross_entropy_with_logits(x, target, reduction="none")
    np.testing.assert_allclose(host(losses), [np.exp(-90), np.exp(-90), 50], 1e-12)
    losses.sum().backward()
    np.testing.assert_allclose(host(x.grad), [np.exp(-90), -np.exp(-90), -1], 1e-12)


def test_weights_are_buffers():
    loss = nn.CrossEntropyLoss(xgrad.asarray([1.0, 2.0]))
    assert list(loss.state_dict()) == ["weight"] and not list(nn.NLLLoss().state_dict())


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("F.cross_entropy(xp.ones((2, 3)), xp.asarray([0, 1]), xp.ones(2))",
         "ValueError: cross_entropy: expected weight"),
        ("F.cross_entropy(xp.ones((2, 3)), xp.ones((2, 2)))", "ValueError: cross_entropy: expected a target of prob"),
        ("F.cross_entropy(xp.ones((2, 3)), xp.ones((2, 3)), ignore_index=0)",
         "ValueError: cross_entropy: expected no ign"),
        ("F.cross_entropy(xp.ones((2, 3)), xp.ones(2, dtype=xp.bool))",
         "TypeError: cross_entropy: expected target of int"),
        ("F.cross_entropy(xp.ones((2, 3)), xp.asarray([0, 3]), ignore_index=0)", "IndexError: cross_entropy: … got 3"),
        ("F.nll_loss(xp.ones((2, 3)), xp.asarray([0, -1]))",
         "IndexError: nll_loss: expected target from 0 to 2, got -1"),
        ("F.nll_loss(xp.ones((2, 3)), xp.asarray([0]))", "ValueError: nll_loss: expected input of shape"),
        ("F.l1_loss(xp.ones(2), xp.ones((2, 1)))",
         "ValueError: l1_loss: expected input and target of one shape, got (2,)"),
        ("F.huber_loss(xp.ones(2), xp.ones(2), delta=0)", "ValueError: huber_loss: expected delta > 0, got 0"),
        ("F.smooth_l1_loss(xp.ones(2), xp.ones(2), beta=-1)", "ValueError: smooth_l1_loss: expected beta >= 0, got -1"),
        ("F.kl_div(xp.ones(2), xp.ones(2), reduction='max')", "ValueError: kl_div: expected a reduction"),
    ],
)  # fmt: skip
def test_invalid_arguments_are_refused(call, error):
    check_error(call, error, F=F)
