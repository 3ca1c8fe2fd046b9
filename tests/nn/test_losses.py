"""Losses beyond the table of modules: ignored classes, accuracy far from 0, and errors.

They are compared with PyTorch, with closed forms and, for captured steps, with eager calls.
"""

from __future__ import annotations

from inspect import signature

import numpy as np
import pytest

import xgrad
from helpers import check_error, host
from nn.module_cases import CASES
from nn.test_modules import tensors
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


def test_binary_cross_entropy_at_0_and_1_is_clamped(device, torch):
    values, target = [0.0, 1.0, 0.0, 1.0, 0.3, 1e-40], [1.0, 0.0, 0.0, 1.0, 0.5, 1.0]
    x = xgrad.asarray(values, dtype=xgrad.float64, device=device, requires_grad=True)
    y = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    losses = F.binary_cross_entropy(
        x, xgrad.asarray(target, dtype=xgrad.float64, device=device), reduction="none"
    )
    expected = torch.nn.functional.binary_cross_entropy(
        y, torch.tensor(target, dtype=torch.float64), reduction="none"
    )
    losses.sum().backward()
    expected.sum().backward()
    np.testing.assert_allclose(host(losses), expected.detach().numpy(), 1e-12)
    # its limit of 1e-12 is in float32
    np.testing.assert_allclose(host(x.grad), y.grad.numpy(), 1e-8)


def test_gradient_of_variances_below_eps_is_that_of_eps(torch):
    values = [0.0, 1e-9, 0.5]
    var, other = xgrad.asarray(values, requires_grad=True), torch.tensor(values, requires_grad=True)
    F.gaussian_nll_loss(xgrad.zeros(3), xgrad.ones(3), var, eps=0.1).backward()
    torch.nn.functional.gaussian_nll_loss(torch.zeros(3), torch.ones(3), other, eps=0.1).backward()
    np.testing.assert_allclose(host(var.grad), other.grad.numpy(), 1e-6)


def test_vectors_of_zeros_have_finite_similarities_and_gradients(device):
    x = xgrad.zeros((2, 3), device=device, requires_grad=True)
    for out in (
        F.cosine_similarity(x, xgrad.ones((2, 3), device=device)),
        F.normalize(x),
        F.pairwise_distance(x, x),
    ):
        out.sum().backward()
    assert np.isfinite(host(x.grad)).all()


def test_captured_losses_check_values():
    step = xgrad.capture(
        lambda x, var: (F.binary_cross_entropy(x, x), F.gaussian_nll_loss(x, x, var))
    )
    half, one = xgrad.asarray([0.5]), xgrad.ones(1)
    assert [loss.item() for loss in step(half, one)] == pytest.approx([np.log(2), 0])
    with pytest.raises(ValueError, match="binary_cross_entropy: expected input from 0 to 1"):
        step(2 * one, one)
    with pytest.raises(ValueError, match="gaussian_nll_loss: expected var of 0 or more"):
        step(half, -one)
    assert step.refusal is None


def test_weights_are_buffers():
    loss = nn.CrossEntropyLoss(xgrad.asarray([1.0, 2.0]))
    assert list(loss.state_dict()) == ["weight"] and not list(nn.NLLLoss().state_dict())


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (
            "F.cross_entropy(xp.ones((2, 3)), xp.asarray([0, 1]), xp.ones(2))",
            "ValueError: cross_entropy: expected weight",
        ),
        (
            "F.cross_entropy(xp.ones((2, 3)), xp.ones((2, 2)))",
            "ValueError: cross_entropy: expected a target of prob",
        ),
        (
            "F.cross_entropy(xp.ones((2, 3)), xp.ones((2, 3)), ignore_index=0)",
            "ValueError: cross_entropy: expected no ign",
        ),
        (
            "F.cross_entropy(xp.ones((2, 3)), xp.ones(2, dtype=xp.bool))",
            "TypeError: cross_entropy: expected target of int",
        ),
        (
            "F.cross_entropy(xp.ones((2, 3)), xp.asarray([0, 3]), ignore_index=0)",
            "IndexError: cross_entropy: … got 3",
        ),
        (
            "F.nll_loss(xp.ones((2, 3)), xp.asarray([0, -1]))",
            "IndexError: nll_loss: expected target from 0 to 2, got -1",
        ),
        (
            "F.nll_loss(xp.ones((2, 3)), xp.asarray([0]))",
            "ValueError: nll_loss: expected input of shape",
        ),
        (
            "F.l1_loss(xp.ones(2), xp.ones((2, 1)))",
            "ValueError: l1_loss: expected input and target of one shape, got (2,)",
        ),
        (
            "F.huber_loss(xp.ones(2), xp.ones(2), delta=0)",
            "ValueError: huber_loss: expected delta > 0, got 0",
        ),
        (
            "F.smooth_l1_loss(xp.ones(2), xp.ones(2), beta=-1)",
            "ValueError: smooth_l1_loss: expected beta >= 0, got -1",
        ),
        (
            "F.margin_ranking_loss(xp.ones(2), xp.ones(2), xp.ones(3))",
            "ValueError: margin_ranking_loss: expected input1, input2 and target of one shape, "
            "got (2,), (2,) and (3,)",
        ),
        (
            "F.binary_cross_entropy(xp.asarray([1.5]), xp.ones(1))",
            "ValueError: binary_cross_entropy: expected input from 0 to 1, got others: for logits",
        ),
        (
            "F.gaussian_nll_loss(xp.ones((2, 3)), xp.ones((2, 3)), xp.ones(3))",
            "ValueError: gaussian_nll_loss: expected var of the shape of input, (2, 3), got (3,)",
        ),
        (
            "F.gaussian_nll_loss(xp.ones(2), xp.ones(2), xp.asarray([1.0, -1.0]))",
            "ValueError: gaussian_nll_loss: expected var of 0 or more",
        ),
        (
            "F.cosine_embedding_loss(xp.ones((2, 3)), xp.ones((2, 3)), xp.ones(3))",
            "ValueError: cosine_embedding_loss: expected inputs of shape "
            "(batch, features) and target",
        ),
        (
            "F.triplet_margin_loss(xp.ones(2), xp.ones(2), xp.ones(2), 0)",
            "ValueError: triplet_margin_loss: expected margin > 0, got 0",
        ),
        (
            "F.multi_margin_loss(xp.ones((2, 3)), xp.asarray([0, 3]))",
            "IndexError: multi_margin_loss: expected target from 0 to 2, got 3",
        ),
        (
            "F.multi_margin_loss(xp.ones((2, 3)), xp.asarray([0, 1]), 3)",
            "ValueError: multi_margin_loss: expected p of 1 or 2, got 3",
        ),
        (
            "F.multi_margin_loss(xp.ones((2, 3, 1)), xp.asarray([[0], [1]]))",
            "ValueError: multi_margin_loss: expected input of shape (batch, classes), "
            "got (2, 3, 1)",
        ),
        (
            "F.multilabel_soft_margin_loss(xp.ones(()), xp.ones(()))",
            "ValueError: multilabel_soft_margin_loss: expected input of shape (..., classes), "
            "got ()",
        ),
        (
            "F.cosine_similarity(xp.ones(3), xp.ones(3))",
            "IndexError: cosine_similarity: expected axis from -1 to 0",
        ),
        ("F.normalize(xp.ones(3), dim=0)", "TypeError: … write axis= for dim="),
        (
            "F.kl_div(xp.ones(2), xp.ones(2), reduction='max')",
            "ValueError: kl_div: expected a reduction",
        ),
    ],
)
def test_invalid_arguments_are_refused(call, error):
    check_error(call, error, F=F)


LOSSES = sorted(
    name for name in nn.__all__ if name.endswith("Loss") and not name.startswith("Adaptive")
)
#: What each option takes, in words of an error, and values that it refuses.
OPTIONS: dict[str, tuple[str, list[object]]] = {
    "reduction": ("a reduction of .*'mean', 'sum'.* or 'none'", ["max", 3, None]),
    **dict.fromkeys(("blank", "ignore_index"), ("an int", ["x", 0.5, True])),
    "eps": ("(a number|eps >= 0)", ["x", None, (1.0,), True, -1.0, float("nan")]),
    "margin": (
        "(a number|margin (> 0|other than NaN))",
        ["x", None, (1.0,), 1j, True, float("nan")],
    ),
    "p": ("(a number|p (of 1 or 2|other than NaN))", ["x", None, True, float("nan")]),
    "beta": ("(a number|beta >= 0)", ["x", None, -0.5, float("nan")]),
    "delta": ("(a number|delta > 0)", ["x", None, 0, float("nan")]),
    "label_smoothing": ("(a number|label_smoothing from 0 to 1)", ["x", None, -0.1, 2]),
    **dict.fromkeys(
        ("full", "log_input", "log_target", "swap", "zero_infinity"),
        ("a bool", ["x", None, 1, 0.5]),
    ),
    "distance_function": ("a function of two tensors", ["x", 1]),
    **dict.fromkeys(("weight", "pos_weight"), ("a Tensor or None", ["x", 1.0, [1.0]])),
}


@pytest.mark.parametrize("name", LOSSES)
def test_option_of_another_type_or_out_of_range_is_refused_by_name(name):
    loss = getattr(nn, name)
    if name == "CTCLoss":  # PyTorch's gradient differs: see `test_ctc_loss.py`
        inputs = [xgrad.zeros((3, 1, 2)), xgrad.asarray([[1]]), [3], [1]]
    else:
        inputs, _ = tensors(next(case for case in CASES if case.name == name))
    for option in signature(loss).parameters:
        expected, refused = OPTIONS[option]
        for value in refused:
            with pytest.raises((TypeError, ValueError), match=rf"^{name}\b.*expected {expected}"):
                loss(**{option: value})
            if not option.endswith("weight"):
                with pytest.raises(
                    (TypeError, ValueError),
                    match=rf"^{loss.function.__name__}: expected {expected}",
                ):
                    loss.function(*inputs, **{option: value})


def test_ranges_of_single_losses_are_checked_when_they_are_made():
    for call, expected in (
        ("nn.TripletMarginLoss(0)", "ValueError: TripletMarginLoss: expected margin > 0, got 0"),
        ("nn.MultiMarginLoss(3)", "ValueError: MultiMarginLoss: expected p of 1 or 2, got 3"),
        (
            "nn.MSELoss('batchmean')",
            "ValueError: MSELoss: expected a reduction of 'mean', 'sum' or 'none', got 'batc…",
        ),
    ):
        check_error(call, expected, nn=nn)
    assert nn.KLDivLoss("batchmean").reduction == "batchmean"
