"""Bags of embeddings and Gumbel softmax, beyond the tables: options, gradients, errors."""

from __future__ import annotations

import numpy as np
import pytest

import xgrad
from helpers import check_error, host, on
from xgrad import nn

F = nn.functional
NUMBERS, OFFSETS = np.array([1, 4, 0, 4, 2, 1, 4]), np.array([0, 3, 3, 6])


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 1, -1])
@pytest.mark.parametrize("with_offsets", [False, True])
@pytest.mark.parametrize("max_norm", [None, 1.2])
def test_options_match_pytorch(mode, padding, with_offsets, max_norm, device, torch):
    rows = np.random.default_rng(0).normal(size=(5, 3))
    options = {"max_norm": max_norm, "mode": mode, "padding_idx": padding}
    layer = nn.EmbeddingBag.from_pretrained(on(device, rows), False, **options)
    other = torch.nn.EmbeddingBag.from_pretrained(torch.tensor(rows), False, **options)
    inputs = [NUMBERS, OFFSETS] if with_offsets else [NUMBERS[:6].reshape(3, 2)]
    y, expected = layer(*(on(device, x) for x in inputs)), other(*map(torch.tensor, inputs))
    weights = np.random.default_rng(1).normal(size=y.shape)
    (y**2 * on(device, weights)).sum().backward()
    (expected**2 * torch.tensor(weights)).sum().backward()
    np.testing.assert_allclose(host(y), expected.detach().numpy(), 1e-10)
    np.testing.assert_allclose(host(layer.weight), other.weight.detach().numpy(), 1e-10)
    np.testing.assert_allclose(host(layer.weight.grad), other.weight.grad.numpy(), 1e-10, 1e-12)


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_scaled_gradients_are_divided_by_the_counts_of_indices(mode, device):
    """PyTorch 2.13 on the CPU divides by the counts of other indices."""
    rows, gradients = np.random.default_rng(0).normal(size=(5, 3)), []
    for scale in (False, True):
        weight = on(device, rows).requires_grad_()
        options = {"mode": mode, "scale_grad_by_freq": scale}
        y = F.embedding_bag(on(device, NUMBERS), weight, on(device, OFFSETS), **options)
        (y**2).sum().backward()
        gradients.append(host(weight.grad))
    counts = np.maximum(np.bincount(NUMBERS, minlength=5), 1)[:, None]
    np.testing.assert_allclose(gradients[1], gradients[0] / counts, 1e-12)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_first_and_second_gradients_match_finite_differences(mode):
    rows = xgrad.asarray(np.random.default_rng(0).normal(size=(5, 3)), requires_grad=True)
    numbers, offsets = xgrad.asarray(NUMBERS), xgrad.asarray(OFFSETS)

    def bags(rows):
        return F.embedding_bag(numbers, rows, offsets, mode=mode) ** 3

    assert xgrad.testing.gradcheck(bags, [rows]) and xgrad.testing.gradgradcheck(bags, [rows])


def test_no_bags_and_bags_without_indices_give_no_rows_and_zeros(torch):
    weight, nothing = np.ones((5, 3)), np.zeros(0, dtype=np.int64)
    for mode in ("sum", "mean", "max"):
        for inputs in ((nothing, nothing), (nothing, np.array([0, 0])), (np.zeros((2, 0), int),)):
            ours = F.embedding_bag(
                xgrad.asarray(inputs[0]),
                xgrad.asarray(weight),
                *map(xgrad.asarray, inputs[1:]),
                mode=mode,
            )
            bags = inputs[-1].shape[0]
            assert ours.tolist() == np.zeros((bags, 3)).tolist(), (mode, inputs)


@pytest.mark.parametrize("padding", [None, 0])
def test_maxima_of_infinite_rows_are_of_their_own_bag_as_in_pytorch(padding, device, torch):
    rows = np.array([[3.0, 3.0], [-np.inf, -np.inf], [-np.inf, 1.0], [2.0, -4.0]])
    for numbers, starts in (([0, 1, 2, 3, 0, 1], [0, 2, 3]), ([1, 0, 3, 3, 3], [0, 1, 2])):
        y = F.embedding_bag(
            *(on(device, np.array(x)) for x in (numbers, rows, starts)),
            mode="max",
            padding_idx=padding,
        )
        expected = torch.nn.functional.embedding_bag(
            *map(torch.tensor, (numbers, rows, starts)), mode="max", padding_idx=padding
        )
        np.testing.assert_array_equal(host(y), expected.numpy())
    bags = np.array([[0, 1], [1, 1], [2, 0], [0, 0]])
    y = F.embedding_bag(on(device, bags), on(device, rows), mode="max", padding_idx=padding)
    expected = torch.nn.functional.embedding_bag(
        torch.tensor(bags), torch.tensor(rows), mode="max", padding_idx=padding
    )
    np.testing.assert_array_equal(host(y), expected.numpy())


def test_captured_sums_of_bags_equal_eager_and_check_offsets():
    layer = nn.EmbeddingBag(5, 3)
    step = xgrad.capture(lambda x, offsets: layer(x, offsets).detach())
    for offsets in ([0, 3], [0, 5], [0, 7]):
        arguments = xgrad.asarray(NUMBERS), xgrad.asarray(offsets)
        assert host(step(*arguments)).tobytes() == host(layer(*arguments)).tobytes()
    with pytest.raises(ValueError, match="expected offsets in ascending order from 0"):
        step(xgrad.asarray(NUMBERS), xgrad.asarray([0, 8]))
    assert step.refusal is None


def test_bags_under_vmap_equal_a_loop():
    rows = xgrad.asarray(np.random.default_rng(0).normal(size=(2, 5, 3)))
    numbers, offsets = xgrad.asarray(NUMBERS), xgrad.asarray(OFFSETS)
    for mode in ("sum", "mean", "max"):
        out = xgrad.vmap(lambda w, mode=mode: F.embedding_bag(numbers, w, offsets, mode=mode))(rows)
        for i in range(2):
            alone = F.embedding_bag(numbers, rows[i, ...], offsets, mode=mode)
            np.testing.assert_allclose(host(out[i, ...]), host(alone), 1e-14)


def test_largest_class_of_gumbel_softmax_has_the_probability_of_softmax(device):
    logits = xgrad.asarray([0.0, 1.0, 2.0], device=device)
    generator = xgrad.random.Generator(0)
    draws = F.gumbel_softmax(
        xgrad.broadcast_to(logits, (20000, 3)), tau=0.5, hard=True, generator=generator
    )
    assert set(host(draws).reshape(-1).tolist()) == {0.0, 1.0}
    expected = np.exp([0, 1, 2]) / np.exp([0, 1, 2]).sum()
    np.testing.assert_allclose(host(xgrad.mean(draws, axis=0)), expected, atol=0.015)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gumbel_softmax_matches_pytorch_with_the_same_noise(axis, device, torch):
    x = np.random.default_rng(0).normal(size=(3, 4))
    uniform = xgrad.random.uniform((3, 4), dtype=xgrad.float64, generator=xgrad.random.Generator(5))
    logits, other = on(device, x).requires_grad_(), torch.tensor(x, requires_grad=True)
    noise = -torch.log(-torch.log(torch.tensor(uniform.numpy())))
    soft = torch.softmax((other + noise) / 0.3, axis)
    weights = np.random.default_rng(1).normal(size=(3, 4))
    for hard in (False, True):
        y = F.gumbel_softmax(logits, 0.3, hard, axis=axis, generator=xgrad.random.Generator(5))
        chosen = torch.zeros_like(soft).scatter_(axis, soft.argmax(axis, keepdim=True), 1.0)
        expected = chosen - soft.detach() + soft if hard else soft
        np.testing.assert_allclose(host(y), expected.detach().numpy(), 1e-10, 1e-12)
        (gradient,) = xgrad.autograd.grad((y * on(device, weights)).sum(), logits)
        (wanted,) = torch.autograd.grad(
            (expected * torch.tensor(weights)).sum(), other, retain_graph=True
        )
        np.testing.assert_allclose(host(gradient), wanted.numpy(), 1e-10, 1e-12)


@pytest.mark.parametrize("hard", [False, True])
def test_gumbel_softmax_of_float16_is_the_rounded_one_of_float32(hard):
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float16)
    results = [
        F.gumbel_softmax(xgrad.asarray(y), 0.5, hard, generator=xgrad.random.Generator(5)).numpy()
        for y in (x, x.astype(np.float32))
    ]
    assert results[0].dtype == np.float16
    np.testing.assert_array_equal(results[0], results[1].astype(np.float16))


def test_captured_gumbel_softmax_draws_as_eagerly():
    x, results = xgrad.asarray([[0.5, -1.0, 2.0]]), []
    for run in (lambda f: f, xgrad.capture):
        xgrad.manual_seed(3)
        step = run(lambda x: F.gumbel_softmax(x, 0.4, True))
        results.append([host(step(x)).tobytes() for _ in range(8)])
    assert results[0] == results[1] and len(set(results[0])) > 1 and step.refusal is None


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (
            "nn.EmbeddingBag(3, 2, mode='min')",
            "ValueError: EmbeddingBag: expected a mode of ['sum', 'mean', 'max'], got 'min'",
        ),
        (
            "nn.EmbeddingBag(3, 2, sparse=True)",
            "ValueError: EmbeddingBag: expected sparse=False, got True",
        ),
        (
            "nn.EmbeddingBag(3, 2, mode='max', scale_grad_by_freq=True)",
            "ValueError: EmbeddingBag: expected scale_grad_by_freq=False for mode='max'",
        ),
        (
            "nn.EmbeddingBag(3, 2)(xp.arange(2))",
            "ValueError: embedding_bag: expected input of shape … got (2,) without offsets",
        ),
        (
            "nn.EmbeddingBag(3, 2)(xp.zeros((2, 2), dtype=xp.int64), xp.arange(2))",
            "ValueError: embedding_bag: expected no offsets for bags of one length",
        ),
        (
            "nn.EmbeddingBag(3, 2)(xp.arange(2), xp.asarray([1]))",
            "ValueError: embedding_bag: expected offsets in ascending order from 0 to at most 2",
        ),
        (
            "nn.EmbeddingBag(3, 2)(xp.arange(2), xp.zeros(1))",
            "TypeError: embedding_bag: expected offsets of integers, got float32",
        ),
        (
            "nn.EmbeddingBag(3, 2)(xp.arange(2), xp.asarray([0]), xp.ones(2))",
            "ValueError: embedding_bag: expected mode='sum' for per_sample_weights, got 'mean'",
        ),
        (
            "nn.EmbeddingBag(3, 2, mode='sum')(xp.arange(2), xp.asarray([0]), xp.ones(3))",
            "ValueError: embedding_bag: expected per_sample_weights of the shape of input, (2,)",
        ),
        (
            "nn.EmbeddingBag(3, 2)(xp.asarray([3]), xp.asarray([0]))",
            "IndexError: embedding_bag: expected input from 0 to 2, got 3",
        ),
        (
            "F.gumbel_softmax(xp.ones(3), tau=0)",
            "ValueError: gumbel_softmax: expected tau above 0, got 0",
        ),
        (
            "F.gumbel_softmax(xp.arange(3))",
            "TypeError: gumbel_softmax: expected floating logits, got int64",
        ),
        ("F.gumbel_softmax(xp.ones(3), axis=1)", "IndexError: gumbel_softmax: …"),
    ],
)
def test_wrong_arguments_are_refused(call, error):
    check_error(call, error, nn=nn, F=F)
