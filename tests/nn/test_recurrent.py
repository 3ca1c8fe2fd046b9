"""Recurrent layers beyond `module_cases`: dropout, initial weights, accuracy, errors.

Layers are compared with their cells, and with the sequence in one piece.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import xgrad
from helpers import check_error
from xgrad import nn
from xgrad.ops import recurrent

KINDS = [nn.RNN, nn.GRU, nn.LSTM]


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_acts_between_layers_in_training_only(kind):
    layer, x = kind(3, 4, num_layers=2, dropout=0.5), xgrad.ones((5, 2, 3))
    xgrad.manual_seed(1)
    first = layer(x)[0]
    assert not np.array_equal(first.tolist(), layer(x)[0].tolist())
    assert np.array_equal(layer.eval()(x)[0].tolist(), layer(x)[0].tolist())
    plain = kind(3, 4, num_layers=2, dropout=0.0)
    plain.load_state_dict(layer.state_dict())
    assert np.array_equal(plain(x)[0].tolist(), layer(x)[0].tolist())


@pytest.mark.parametrize("kind", KINDS)
def test_layer_equals_its_cell_at_each_step(kind):
    layer, cell = kind(3, 4), getattr(nn, f"{kind.__name__}Cell")(3, 4)
    cell.load_state_dict(
        {name.removesuffix("_l0"): value for name, value in layer.state_dict().items()}
    )
    x, state = xgrad.random.normal((5, 2, 3)), None
    for t, expected in enumerate(layer(x)[0]):
        state = cell(x[t], state)
        h = state[0] if isinstance(state, tuple) else state
        assert np.allclose(h.tolist(), expected.tolist(), atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_state_after_a_part_continues_the_sequence(kind):
    layer, x = kind(3, 4, num_layers=2), xgrad.random.normal((5, 2, 3))
    whole, _ = layer(x)
    first, state = layer(x[:2])
    second, _ = layer(x[2:], state)
    assert np.allclose(xgrad.concat([first, second]).tolist(), whole.tolist(), atol=1e-6)


def test_saturated_gates_keep_their_relative_precision(device):
    # input, forget, candidate, output
    x = xgrad.asarray([[[-100.0, -20.0, 1.0, -40.0]]], device=device)
    ones = xgrad.ones((1, 1), device=device)
    h, c = recurrent.lstm(x, xgrad.zeros((4, 1), device=device), ones, ones)
    forget, output = (1 / (1 + math.exp(z)) for z in (20, 40))
    assert math.isclose(float(c), forget, rel_tol=1e-5)
    assert math.isclose(float(h), output * math.tanh(forget), rel_tol=1e-5)
    assert float(recurrent.lstm(1000 * x, xgrad.zeros((4, 1), device=device), ones, ones)[1]) == 0


def test_initial_weights_are_within_the_bound():
    layer = nn.LSTM(3, 16)
    assert all(0.2 < float(xgrad.max(xgrad.abs(p))) <= 0.25 for p in layer.parameters())


def test_representation_lists_options_that_are_not_default():
    assert repr(nn.GRU(3, 4, 2, batch_first=True)) == "GRU(3, 4, num_layers=2, batch_first=True)"
    assert repr(nn.LSTMCell(3, 4, bias=False)) == "LSTMCell(3, 4, bias=False)"


def test_dropout_of_one_layer_warns():
    with pytest.warns(
        UserWarning,
        match="LSTM: dropout acts between layers, and there is only one: raise num_layers",
    ):
        nn.LSTM(3, 4, dropout=0.5)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("nn.LSTM(0, 4)", "ValueError: LSTM: expected an int above 0 for input_size, got 0"),
        ("nn.GRU(3, 2.0)", "ValueError: GRU: expected an int above 0 for hidden_size, got 2.0"),
        (
            "nn.RNN(3, 4, num_layers=0)",
            "ValueError: RNN: expected an int above 0 for num_layers, got 0",
        ),
        (
            "nn.RNN(3, 4, nonlinearity='sin')",
            "ValueError: RNN: expected a nonlinearity of 'tanh' or 'relu', got 'sin'",
        ),
        (
            "nn.RNNCell(3, 4, nonlinearity=1)",
            "ValueError: RNNCell: expected a nonlinearity of 'tanh' or 'relu', got 1",
        ),
        ("nn.LSTM(3, 4, 2, dropout=2)", "ValueError: LSTM: expected p from 0 to 1, got 2"),
        (
            "nn.LSTM(3, 4)(xp.ones((5, 2, 4)))",
            (
                "ValueError: LSTM: expected input of shape (time, batch, in) or (time, in), in = 3,"
                " got (5, 2, 4)"
            ),
        ),
        (
            "nn.LSTM(3, 4, batch_first=True)(xp.ones((5, 2, 2, 3)))",
            (
                "ValueError: LSTM: expected input of shape (batch, time, in) or (time, in), in = 3,"
                " got (5, 2, 2, 3)"
            ),
        ),
        (
            "nn.GRU(3, 4)(xp.ones((0, 2, 3)))",
            "ValueError: GRU: expected at least one time step, got shape (0, 2, 3)",
        ),
        (
            "nn.GRU(3, 4)(xp.ones((5, 2, 3), dtype=xp.float64))",
            (
                "TypeError: GRU: expected input of float32, the dtype of weight, got float64: use"
                " input.astype("
            ),
        ),
        (
            "nn.GRU(3, 4)(xp.ones((5, 2, 3)), xp.ones((2, 4)))",
            "ValueError: GRU: expected hx of shape (1, 2, 4), got (2, 4)",
        ),
        (
            "nn.LSTM(3, 4)(xp.ones((5, 2, 3)), xp.ones((1, 2, 4)))",
            "TypeError: LSTM: expected a pair (h, c) for hx, got Tensor",
        ),
        (
            "nn.LSTM(3, 4)(xp.ones((5, 3)), (xp.ones((1, 4)), xp.ones((1, 2, 4))))",
            "ValueError: LSTM: expected hx[1] of shape (1, 4), got (1, 2, 4)",
        ),
        (
            "nn.RNN(3, 4)(xp.ones((5, 2, 3)), xp.ones((1, 2, 4), dtype=xp.float64))",
            "TypeError: RNN: expected hx of float32",
        ),
        (
            "nn.LSTMCell(3, 4)(xp.ones((2, 4)))",
            (
                "ValueError: LSTMCell: expected input of shape (batch, in) or (in,), in = 3, got"
                " (2, 4)"
            ),
        ),
        (
            "nn.LSTMCell(3, 4)(xp.ones((2, 3)), (xp.ones((2, 4)), xp.ones(4)))",
            "ValueError: LSTMCell: expected hx[1] of shape (2, 4), got (4,)",
        ),
    ],
)
def test_wrong_arguments_are_refused(call, error):
    check_error(call, error, nn=nn)
