"""CTC loss, compared with PyTorch and with the sum over all alignments."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error, host, on
from xgrad import nn

F = nn.functional
LOGITS = np.random.default_rng(0).normal(size=(7, 4, 5))
TARGETS = np.array([[1, 3, 4], [2, 2, 2], [4, 1, 1], [3, 1, 2]])


def compared(
    torch: Any, device: str, logits: np.ndarray, targets: np.ndarray, lengths: Any, **options: Any
) -> None:
    """Compare the loss and the gradient with respect to the logits."""
    ours = on(device, logits).requires_grad_()
    other = torch.tensor(logits, requires_grad=True)
    loss = F.ctc_loss(F.log_softmax(ours), on(device, targets), *lengths, **options)
    expected = torch.nn.functional.ctc_loss(
        other.log_softmax(-1), torch.tensor(targets), *map(torch.tensor, lengths), **options
    )
    assert loss.shape == expected.shape
    np.testing.assert_allclose(host(loss), expected.detach().numpy(), 1e-10)
    weights = np.cos(np.arange(loss.size) + 1.0).reshape(loss.shape)
    (loss * on(device, weights)).sum().backward()
    (expected * torch.tensor(weights)).sum().backward()
    np.testing.assert_allclose(host(ours.grad), other.grad.numpy(), 1e-10, 1e-10)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize(
    "lengths",
    [([7, 7, 7, 7], [3, 3, 3, 3]), ([7, 6, 5, 2], [3, 3, 0, 2]), ([3, 5, 1, 0], [3, 3, 1, 0])],
)
@pytest.mark.parametrize("form", ["padded", "concatenated"])
@pytest.mark.parametrize("blank", [0, 4])
def test_loss_and_gradient_match_pytorch(reduction, lengths, form, blank, device, torch):
    targets = TARGETS if blank == 0 else TARGETS - 1
    if form == "concatenated":
        targets = np.concatenate([row[:n] for row, n in zip(targets, lengths[1], strict=True)])
    compared(torch, device, LOGITS, targets, lengths, reduction=reduction, blank=blank)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_loss_without_batch_matches_pytorch(reduction, device, torch):
    compared(torch, device, LOGITS[:, 0, :], TARGETS[0], (7, 3), reduction=reduction)
    compared(torch, device, LOGITS[:, 0, :], TARGETS[0, :2], ([6], [2]), reduction=reduction)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_impossible_targets_have_infinite_loss_or_zero_as_in_pytorch(reduction, device, torch):
    lengths = [7, 4, 5, 1], [3, 3, 3, 2]  # 2, 2, 2 needs five times
    compared(torch, device, LOGITS, TARGETS, lengths, reduction=reduction, zero_infinity=True)
    ours = on(device, LOGITS).requires_grad_()
    loss = F.ctc_loss(F.log_softmax(ours), on(device, TARGETS), *lengths, reduction=reduction)
    infinite = np.isinf(host(loss))
    assert infinite.tolist() == ([False, True, False, True] if reduction == "none" else True)
    loss.sum().backward()
    assert np.isfinite(host(ours.grad)).all()  # PyTorch's is NaN


def collapsed(path: tuple[int, ...]) -> list[int]:
    merged = [label for label, _ in itertools.groupby(path)]
    return [label for label in merged if label]


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("zero_infinity", [False, True])
def test_nan_in_an_input_is_not_taken_for_an_impossible_target(zero_infinity, device, torch):
    logs = np.log(np.full((7, 4, 5), 0.2))
    logs[2, 0, 3] = logs[6, 3, 1] = np.nan  # the second one is after the end of its sequence
    options = {"reduction": "none", "zero_infinity": zero_infinity}
    lengths = [7, 7, 7, 6], [3, 3, 3, 3]
    ours = on(device, logs).requires_grad_()
    loss = F.ctc_loss(ours, on(device, TARGETS), *lengths, **options)
    loss.sum().backward()
    expected = torch.nn.functional.ctc_loss(
        torch.tensor(logs), torch.tensor(TARGETS), *map(torch.tensor, lengths), **options
    )
    np.testing.assert_allclose(host(loss), expected.numpy(), 1e-12)
    assert np.isnan(host(ours.grad)).any(axis=(0, 2)).tolist() == [True, False, False, False]


@pytest.mark.parametrize("target", [[], [1], [1, 2], [2, 2], [1, 2, 1]])
def test_second_gradient_matches_sum_over_all_alignments(target, torch):
    x = np.random.default_rng(1).normal(size=(5, 3))
    paths = [p for p in itertools.product(range(3), repeat=5) if collapsed(p) == target]
    results = []
    for library, leaf in (
        (xgrad, xgrad.asarray(x, requires_grad=True)),
        (torch, torch.tensor(x, requires_grad=True)),
    ):
        if library is xgrad:
            labels = xgrad.asarray(np.array([[*target, 0]]))
            logs = xgrad.expand_dims(leaf, axis=1)  # not normalized: the derivative is exact
            loss = F.ctc_loss(logs, labels, [5], [len(target)], reduction="none")[0]
        else:
            logs = torch.stack([sum(leaf[t, k] for t, k in enumerate(path)) for path in paths])
            loss = -torch.logsumexp(logs, 0)
        (first,) = library.autograd.grad(loss, leaf, create_graph=True)
        (first**3).sum().backward()
        results.append([v.detach().numpy() for v in (loss, first, leaf.grad)])
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, 1e-10, 1e-12)


def test_zero_probabilities_and_float32_over_many_times(torch):
    logs = np.full((3, 1, 3), -np.inf)
    logs[[0, 1, 2], 0, [1, 0, 2]] = 0.0
    leaf = xgrad.asarray(logs, requires_grad=True)
    loss = F.ctc_loss(leaf, xgrad.asarray([[1, 2]]), [3], [2], reduction="sum")
    loss.backward()
    assert loss.item() == 0 and np.isfinite(host(leaf.grad)).all()
    logits = np.random.default_rng(0).normal(size=(300, 2, 20)).astype(np.float32)
    targets = np.random.default_rng(0).integers(1, 20, (2, 50))
    ours = F.ctc_loss(
        F.log_softmax(xgrad.asarray(logits)), xgrad.asarray(targets), [300, 280], [50, 40]
    )
    expected = torch.nn.functional.ctc_loss(
        torch.tensor(logits).double().log_softmax(-1),
        torch.tensor(targets),
        torch.tensor([300, 280]),
        torch.tensor([50, 40]),
    )
    np.testing.assert_allclose(ours.item(), expected.item(), 1e-5)


def test_module_and_lengths_as_tensors(device):
    logs, targets = F.log_softmax(on(device, LOGITS)), on(device, TARGETS)
    lengths = np.array([7, 6, 5, 4]), np.array([3, 2, 1, 2])
    for reduction in ("none", "mean"):
        loss = nn.CTCLoss(reduction=reduction)(logs, targets, *(on(device, x) for x in lengths))
        other = F.ctc_loss(logs, targets, *(x.tolist() for x in lengths), reduction=reduction)
        assert loss.tolist() == other.tolist()


@pytest.mark.parametrize("tensors", [False, True])
def test_captured_step_equals_eager(tensors, capturing_device):
    def step(x, targets, *lengths):
        leaf = x.detach().requires_grad_()
        lengths = lengths or ([7, 6, 5, 4], [3, 2, 1, 2])
        loss = F.ctc_loss(F.log_softmax(leaf), targets, *lengths)
        loss.backward()
        return loss.detach(), leaf.grad

    lengths = (np.array([7, 6, 5, 4]), np.array([3, 2, 1, 2])) if tensors else ()
    captured = xgrad.capture(step)
    for seed in range(3):
        x = np.random.default_rng(seed).normal(size=(7, 4, 5)).astype(np.float32)
        arguments = [on(capturing_device, v) for v in (x, TARGETS, *lengths)]
        for a, b in zip(step(*arguments), captured(*arguments), strict=True):
            assert host(a).tobytes() == host(b).tobytes()
    assert captured.refusal is None


def test_loss_under_vmap_equals_a_loop():
    logs = F.log_softmax(xgrad.asarray(np.random.default_rng(0).normal(size=(3, 7, 4, 5))))
    targets = xgrad.asarray(TARGETS)

    def loss(x):
        return F.ctc_loss(x, targets, [7, 6, 5, 4], [3, 2, 1, 2])

    out = xgrad.vmap(xgrad.grad(loss))(logs)
    for i in range(3):
        np.testing.assert_allclose(host(out[i, ...]), host(xgrad.grad(loss)(logs[i, ...])), 1e-12)


CALL = "F.ctc_loss(xp.zeros((3, 2, 4)), "


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("nn.CTCLoss(reduction='max')", "ValueError: CTCLoss: expected a reduction of"),
        ("nn.CTCLoss(blank=0.5)", "TypeError: CTCLoss: expected an int for blank, got 0.5"),
        ("nn.CTCLoss(zero_infinity=1)", "TypeError: CTCLoss: expected a bool for zero_infinity"),
        (
            CALL + "xp.ones((2, 2)), [3, 3], [2, 2])",
            "TypeError: ctc_loss: expected floating log_probs and targets of integers, got float32",
        ),
        (
            CALL + "xp.asarray([[1, 2]]), [3, 3], [2, 2])",
            "ValueError: ctc_loss: expected targets of shape (2, length), got (1, 2)",
        ),
        (
            CALL + "xp.asarray([[1, 2], [1, 2]]), [3], [2, 2])",
            "ValueError: ctc_loss: expected input_lengths of shape (2,), got (1,)",
        ),
        (
            CALL + "xp.asarray([[1, 2], [1, 2]]), 3, [2, 2])",
            "ValueError: ctc_loss: expected input_lengths of shape (2,), got ()",
        ),
        (
            CALL + "xp.asarray([[1, 2], [1, 2]]), [3, 4], [2, 2])",
            "IndexError: ctc_loss: expected input_lengths from 0 to 3, got 4",
        ),
        (
            CALL + "xp.asarray([[1, 2], [1, 2]]), [3, 3], [2, 3])",
            "IndexError: ctc_loss: expected target_lengths from 0 to 2, got 3",
        ),
        (
            CALL + "xp.asarray([1, 2, 1]), [3, 3], [2, 2])",
            "ValueError: ctc_loss: expected concatenated targets of shape (4,), the sum",
        ),
        (
            CALL + "xp.asarray([[1, 4], [1, 2]]), [3, 3], [2, 2])",
            "IndexError: ctc_loss: expected targets from 0 to 3, got 4",
        ),
        (
            CALL + "xp.asarray([[1, 2], [1, 2]]), [3, 3], [2, 2], blank=4)",
            "ValueError: ctc_loss: expected blank from 0 to 3, got 4",
        ),
        (
            "F.ctc_loss(xp.zeros(3), xp.asarray([1]), [3], [1])",
            "ValueError: ctc_loss: expected log_probs of shape (time, batch, classes)",
        ),
        (
            "nn.AdaptiveLogSoftmaxWithLoss(8, 5, [3, 2])",
            "ValueError: AdaptiveLogSoftmaxWithLoss: expected cutoffs in ascending order from 1",
        ),
        (
            "nn.AdaptiveLogSoftmaxWithLoss(8, 5, [5])",
            "ValueError: AdaptiveLogSoftmaxWithLoss: expected cutoffs in ascending order from 1",
        ),
        (
            "nn.AdaptiveLogSoftmaxWithLoss(3, 5, [2])",
            "ValueError: AdaptiveLogSoftmaxWithLoss: expected features for all 1 clusters, got 0",
        ),
        (
            "nn.AdaptiveLogSoftmaxWithLoss(8, 5, [2])(xp.ones((2, 8)), xp.asarray([1, 5]))",
            "IndexError: AdaptiveLogSoftmaxWithLoss: expected target from 0 to 4, got 5",
        ),
        (
            "nn.AdaptiveLogSoftmaxWithLoss(8, 5, [2])(xp.ones((2, 7)), xp.asarray([1, 2]))",
            "ValueError: AdaptiveLogSoftmaxWithLoss: expected input of shape (batch, 8), got",
        ),
    ],
)
def test_wrong_arguments_are_refused(call, error):
    check_error(call, error, nn=nn, F=F)


def test_log_probabilities_and_predictions_of_adaptive_softmax_match_pytorch(torch):
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 9, [2, 5], div_value=2.0).double()
    other = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 9, [2, 5], div_value=2.0).double()
    other.load_state_dict({k: torch.tensor(v.numpy()) for k, v in layer.state_dict().items()})
    x = np.random.default_rng(0).normal(size=(20, 8))
    logs, expected = layer.log_prob(xgrad.asarray(x)), other.log_prob(torch.tensor(x))
    np.testing.assert_allclose(host(logs), expected.detach().numpy(), 1e-10)
    predicted = layer.predict(xgrad.asarray(x))
    assert predicted.tolist() == other.predict(torch.tensor(x)).tolist()
