"""Embedding, Unflatten, Residual and dropout of channels, beyond the table of modules.

The padding row is compared with PyTorch, the rest with properties that follow from the definition.
"""

from __future__ import annotations

import numpy as np
import pytest

import xgrad
from helpers import check_error, host, on
from xgrad import nn

F = nn.functional


@pytest.mark.parametrize("padding", [1, -1])
def test_padding_row_is_zero_at_first_and_gets_no_gradient_as_in_pytorch(padding, device, torch):
    numbers = np.array([[1, 4, 0], [4, 2, 1]])
    layer, other = nn.Embedding(5, 3, padding, device=device), torch.nn.Embedding(5, 3, padding)
    assert host(layer.weight)[padding].tolist() == [0, 0, 0]
    assert layer.padding_idx == other.padding_idx == padding % 5
    layer.weight.data = on(device, np.arange(15, dtype=np.float32).reshape(5, 3))
    other.load_state_dict({"weight": torch.tensor(host(layer.weight))})
    y, expected = layer(on(device, numbers)), other(torch.tensor(numbers))
    (y * y).sum().backward()
    (expected * expected).sum().backward()
    assert y.tolist() == expected.tolist()
    assert layer.weight.grad.tolist() == other.weight.grad.tolist()


@pytest.mark.parametrize("norm_type", [2.0, 1.0, 3.0, np.inf])
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("padding", [None, 1])
def test_options_of_embedding_match_pytorch(norm_type, scale, padding, device, torch):
    numbers = np.array([[1, 4, 0], [4, 2, 1], [4, 4, 4]])
    rows = np.random.default_rng(0).normal(size=(6, 3))
    options = {"max_norm": 1.2, "norm_type": norm_type, "scale_grad_by_freq": scale}
    layer = nn.Embedding.from_pretrained(on(device, rows), False, padding, **options)
    other = torch.nn.Embedding.from_pretrained(torch.tensor(rows), False, padding, **options)
    y, expected = layer(on(device, numbers)), other(torch.tensor(numbers))
    weights = np.random.default_rng(1).normal(size=y.shape)
    (y**2 * on(device, weights)).sum().backward()
    (expected**2 * torch.tensor(weights)).sum().backward()
    np.testing.assert_allclose(host(y), expected.detach().numpy(), 1e-12)
    np.testing.assert_allclose(host(layer.weight), other.weight.detach().numpy(), 1e-12)
    np.testing.assert_allclose(host(layer.weight.grad), other.weight.grad.numpy(), 1e-10, 1e-12)


def test_infinite_rows_are_looked_up_with_scaled_gradients(device):
    rows = np.array([[0.5, np.inf], [-0.0, -np.inf]])
    weight = on(device, rows).requires_grad_()
    y = F.embedding(on(device, np.array([1, 1, 0])), weight, scale_grad_by_freq=True)
    np.testing.assert_array_equal(host(y), rows[[1, 1, 0]])
    y.backward(xgrad.ones_like(y))
    assert host(weight.grad).tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_scaled_gradients_map_over_batches_and_have_second_derivatives():
    numbers = xgrad.asarray([[0, 1, 1], [2, 2, 2]])
    rows = xgrad.asarray(np.random.default_rng(0).normal(size=(3, 2)))

    def loss(rows, numbers):
        return (F.embedding(numbers, rows, scale_grad_by_freq=True) ** 3).sum()

    def second(rows, numbers):
        return xgrad.grad(lambda rows: (xgrad.grad(loss)(rows, numbers) ** 2).sum())(rows)

    for function in (xgrad.grad(loss), second):
        mapped = xgrad.vmap(function, in_axes=(None, 0))(rows, numbers)
        looped = [function(rows, numbers[i]).numpy() for i in range(2)]
        np.testing.assert_allclose(mapped.numpy(), looped, 1e-12)


def test_pretrained_rows_are_copied_and_frozen():
    rows = xgrad.ones((3, 2), dtype=xgrad.float64)
    layer = nn.Embedding.from_pretrained(rows, padding_idx=1)
    rows *= 2
    assert layer.weight.tolist() == [[1.0, 1.0]] * 3 and layer.weight.dtype == xgrad.float64
    assert not layer.weight.requires_grad and list(layer.state_dict()) == ["weight"]
    assert nn.Embedding.from_pretrained(rows, freeze=False).weight.requires_grad


def test_captured_step_renormalizes_rows_as_eagerly():
    rows = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    twins = [
        nn.Embedding.from_pretrained(
            xgrad.asarray(rows), freeze=False, max_norm=0.5, scale_grad_by_freq=True
        )
        for _ in range(2)
    ]

    def step_of(layer):
        def step(x):
            layer.zero_grad()
            y = layer(x)
            (y**2).sum().backward()
            return y.detach(), layer.weight.grad

        return step

    eager, captured = step_of(twins[0]), xgrad.capture(step_of(twins[1]))
    for numbers in ([0, 1, 1], [2, 2, 2], [3, 0, 1]):
        x = xgrad.asarray(numbers)
        for a, b in zip(eager(x), captured(x), strict=True):
            assert host(a).tobytes() == host(b).tobytes()
        assert host(twins[0].weight).tobytes() == host(twins[1].weight).tobytes()
    assert captured.refusal is None


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64])
def test_embedding_takes_integers_of_any_width(dtype, device):
    weight = on(device, np.arange(600.0).reshape(300, 2))
    assert F.embedding(on(device, np.array([[2], [1]], dtype)), weight).tolist() == [
        [[4, 5]],
        [[2, 3]],
    ]


def test_rows_of_embedding_are_standard_normal():
    weight = host(nn.Embedding(400, 300).weight)
    assert abs(weight.mean()) < 0.02 and abs(weight.std() - 1) < 0.02


def test_captured_step_checks_the_numbers_of_embedding():
    layer = nn.Embedding(3, 2)
    step = xgrad.capture(lambda x: layer(x).detach() * 2)
    for numbers in ([0, 1], [2, 2]):
        assert step(xgrad.asarray(numbers)).tolist() == (layer(xgrad.asarray(numbers)) * 2).tolist()
    with pytest.raises(IndexError, match="expected input from 0 to 2, got 3"):
        step(xgrad.asarray([0, 3]))
    assert step.refusal is None


@pytest.mark.parametrize(
    ("name", "shape"),
    [("dropout1d", (1000, 3)), ("dropout1d", (20, 50, 3)), ("dropout2d", (20, 50, 2, 3))],
)
def test_dropout_of_channels_zeroes_whole_channels(name, shape, device):
    x = xgrad.ones(shape, device=device, requires_grad=True)
    y = getattr(F, name)(x, 0.25, generator=xgrad.random.Generator(3))
    values = host(y).reshape(1000, -1)
    assert (values == values[:, :1]).all()
    assert sorted(set(values[:, 0].tolist())) == [0, pytest.approx(4 / 3)]
    assert abs((values[:, 0] == 0).mean() - 0.25) < 0.05
    (gradient,) = xgrad.autograd.grad(y.sum(), x)
    assert host(gradient).tolist() == host(y).tolist()
    assert getattr(F, name)(x, 0.25, training=False) is x and getattr(F, name)(x, 0.0) is x
    mask = F.dropout(xgrad.ones(1000), 0.25, generator=xgrad.random.Generator(3))
    assert (host(mask).reshape(-1) == values[:, 0]).all()  # of every device the same


def test_residual_adds_its_input():
    block = nn.Residual(nn.Linear(3, 3))
    x = xgrad.ones((2, 3))
    assert block(x).tolist() == (x + block.fn(x)).tolist()
    assert [name for name, _ in block.named_parameters()] == ["fn.weight", "fn.bias"]
    assert nn.Residual(xgrad.tanh)(x).tolist() == (x + xgrad.tanh(x)).tolist()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (
            "nn.Embedding(0, 3)",
            "ValueError: Embedding: expected an int above 0 for num_embeddings, got 0",
        ),
        (
            "nn.Embedding(3, 2, 3)",
            "ValueError: Embedding: expected padding_idx from -3 to 2, got 3",
        ),
        (
            "nn.Embedding(3, 2, 0.5)",
            "TypeError: Embedding: expected an int for padding_idx, got 0.5",
        ),
        (
            "nn.Embedding(3, 2, sparse=True)",
            "ValueError: Embedding: expected sparse=False, got True: gradients are dense",
        ),
        (
            "nn.Embedding(3, 2, max_norm=-1.0)(xp.arange(2))",
            "ValueError: embedding: expected max_norm >= 0, got -1.0",
        ),
        (
            "nn.Embedding(3, 2, max_norm=1.0, norm_type=0)(xp.arange(2))",
            "ValueError: embedding: expected norm_type above 0, got 0",
        ),
        (
            "nn.Embedding.from_pretrained(xp.ones(3))",
            "ValueError: Embedding.from_pretrained: expected embeddings of shape",
        ),
        (
            "nn.Embedding(3, 2)(xp.ones(2))",
            "TypeError: embedding: expected input of integers, got float32: use .astype",
        ),
        (
            "nn.Embedding(3, 2)(xp.asarray([0, 3]))",
            "IndexError: embedding: expected input from 0 to 2, got 3",
        ),
        (
            "nn.Embedding(3, 2)(xp.asarray([-1]))",
            "IndexError: embedding: expected input from 0 to 2, got -1",
        ),
        (
            "nn.Embedding(3, 2)([1])",
            "TypeError: embedding: expected a tensor, an array or a number for input, got list",
        ),
        (
            "F.embedding(xp.arange(2), xp.ones(3))",
            "ValueError: embedding: expected weight of shape (rows, features), got",
        ),
        ("nn.Embedding(3, 2, device='strict')(xp.arange(2))", "DeviceError: …strict"),
        (
            "nn.Unflatten(1, 6)",
            "TypeError: Unflatten: expected a tuple of ints for unflattened_size, got 6",
        ),
        (
            "nn.Unflatten(1, (2, 1.5))",
            "TypeError: Unflatten: expected an int for unflattened_size, got 1.5",
        ),
        (
            "nn.Unflatten(1, (-1, -1))",
            "ValueError: Unflatten: expected lengths of at least 0, and at most one of -1, got",
        ),
        (
            "nn.Unflatten(1, (2, 3))(xp.ones((2, 5)))",
            "ValueError: Unflatten: expected an axis of length (2, 3), got 5 in",
        ),
        (
            "nn.Unflatten(1, (2, -1))(xp.ones((2, 5)))",
            "ValueError: Unflatten: expected an axis of length (2, -1), got 5",
        ),
        (
            "nn.Unflatten(2, (2, 3))(xp.ones((2, 6)))",
            "IndexError: Unflatten: expected axis from -2 to 1 for input … 2",
        ),
        (
            "nn.Residual(nn.ReLU)",
            "TypeError: Residual: expected a module or a function, got … call the class",
        ),
        ("nn.Residual(3)", "TypeError: Residual: expected a module or a function, got 3"),
        (
            "nn.Residual(nn.Linear(3, 1))(xp.ones((2, 3)))",
            "ValueError: Residual: expected a result of the shape of the input (2, 3), got (2, 1)",
        ),
        ("nn.Dropout2d(2)", "ValueError: Dropout2d: expected p from 0 to 1, got 2"),
        (
            "nn.Dropout2d()(xp.ones((2, 3)))",
            "ValueError: dropout2d: expected x of shape (batch, channels, height, width), "
            "got (2, 3)",
        ),
        (
            "nn.Dropout1d()(xp.ones(3))",
            "ValueError: dropout1d: expected x of shape (channels, length) or "
            "(batch, channels, length), got (3,)",
        ),
        (
            "nn.Dropout1d()(xp.ones((2, 3), dtype=xp.int64))",
            "TypeError: dropout1d: expected a floating x, got int64",
        ),
    ],
)
def test_invalid_arguments_are_refused(call, error):
    check_error(call, error, nn=nn, F=F)
