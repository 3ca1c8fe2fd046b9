"""Packed and padded sequences, alone and through recurrent layers, compared with PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error, host, on
from xgrad import nn
from xgrad.nn.utils import rnn

LENGTHS = [5, 3, 3, 1]
SHUFFLED = [3, 1, 5, 3]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def arrays(packed: Any) -> list[Any]:
    return [None if x is None else np.asarray(x.detach().tolist()) for x in packed]


@pytest.mark.parametrize("lengths", [LENGTHS, SHUFFLED, [2, 2, 2, 2], [6, 6, 6, 6]])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("rest", [(), (2,), (2, 3)])
def test_packing_matches_pytorch(lengths, batch_first, rest, device, torch):
    x = normal(*((4, 6) if batch_first else (6, 4)), *rest)
    ours, other = on(device, x).requires_grad_(), torch.tensor(x, requires_grad=True)
    is_sorted = lengths == sorted(lengths, reverse=True)
    for enforce in (True, False) if is_sorted else (False,):
        options = {"batch_first": batch_first, "enforce_sorted": enforce}
        packed = rnn.pack_padded_sequence(ours, lengths, **options)
        expected = torch.nn.utils.rnn.pack_padded_sequence(other, lengths, **options)
        for a, b in zip(arrays(packed), arrays(expected), strict=True):
            assert (a is None) == (b is None) and (a is None or a.tolist() == b.tolist())
        for more in ({}, {"total_length": 8, "padding_value": -1.5}):
            padded, counts = rnn.pad_packed_sequence(packed, batch_first, **more)
            wanted, others = torch.nn.utils.rnn.pad_packed_sequence(expected, batch_first, **more)
            assert padded.tolist() == wanted.tolist() and counts.tolist() == others.tolist()
        weights = normal(*padded.shape, seed=1)
        (padded**3 * on(device, weights)).sum().backward()
        (wanted**3 * torch.tensor(weights)).sum().backward()
        np.testing.assert_allclose(host(ours.grad), other.grad.numpy(), 1e-12)


def test_lengths_as_tensor_and_structures_without_the_inverse(torch):
    x = normal(6, 4, 2)
    packed = rnn.pack_padded_sequence(
        xgrad.asarray(x), xgrad.asarray(SHUFFLED), enforce_sorted=False
    )
    short = rnn.PackedSequence(*packed[:3])
    assert rnn.pad_packed_sequence(short)[0].tolist() == rnn.pad_packed_sequence(packed)[0].tolist()
    assert packed.to(dtype=xgrad.float32).data.dtype == xgrad.float32
    assert packed.to("cpu").batch_sizes.tolist() == [4, 3, 3, 1, 1]


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("side", ["right", "left"])
def test_padding_of_sequences_matches_pytorch(batch_first, side, device, torch):
    values = [normal(n, 2, seed=n) for n in (2, 4, 0)]
    ours = [on(device, x).requires_grad_() for x in values]
    others = [torch.tensor(x, requires_grad=True) for x in values]
    padded = rnn.pad_sequence(ours, batch_first, 0.5, side)
    expected = torch.nn.utils.rnn.pad_sequence(others, batch_first, 0.5, side)
    assert padded.tolist() == expected.tolist()
    (padded**2).sum().backward()
    (expected**2).sum().backward()
    for x, y in zip(ours, others, strict=True):
        assert host(x.grad).tolist() == y.grad.tolist()


def test_unpadding_and_packing_of_lists_match_pytorch(torch):
    values = [normal(n, 2, seed=n) for n in (2, 4, 1)]
    ours, others = [xgrad.asarray(x) for x in values], [torch.tensor(x) for x in values]
    packed = rnn.pack_sequence(ours, enforce_sorted=False)
    expected = torch.nn.utils.rnn.pack_sequence(others, enforce_sorted=False)
    for a, b in zip(arrays(packed), arrays(expected), strict=True):
        assert a.tolist() == b.tolist()
    for x, y in zip(rnn.unpack_sequence(packed), values, strict=True):
        assert x.tolist() == y.tolist()
    padded = rnn.pad_sequence(ours, batch_first=True)
    for x, y in zip(rnn.unpad_sequence(padded, [2, 4, 1], batch_first=True), values, strict=True):
        assert x.tolist() == y.tolist()


LAYERS = [
    (name, options)
    for name in ("RNN", "GRU", "LSTM")
    for options in (
        {},
        {"bidirectional": True},
        {"num_layers": 2, "bidirectional": True, "batch_first": True},
        {"num_layers": 2, "bias": False},
    )
]
LAYERS += [
    ("RNN", {"nonlinearity": "relu", "bidirectional": True}),
    ("LSTM", {"proj_size": 2}),
    ("LSTM", {"proj_size": 1, "num_layers": 2, "bidirectional": True}),
]


def twins(torch: Any, name: str, options: Any) -> tuple[Any, Any]:
    """Return layers of both libraries with equal weights."""
    layer = getattr(nn, name)(3, 4, **options).double()
    other = getattr(torch.nn, name)(3, 4, **options).double()
    other.load_state_dict({k: torch.tensor(x.numpy()) for k, x in layer.state_dict().items()})
    return layer, other


@pytest.mark.parametrize(("name", "options"), LAYERS)
@pytest.mark.parametrize("lengths", [LENGTHS, SHUFFLED])
@pytest.mark.parametrize("with_state", [False, True])
def test_layers_of_packed_sequences_match_pytorch(name, options, lengths, with_state, torch):
    layer, other = twins(torch, name, options)
    batch_first = options.get("batch_first", False)
    x = normal(*((4, 6) if batch_first else (6, 4)), 3)
    count = options.get("num_layers", 1) * (1 + options.get("bidirectional", False))
    sizes = [options.get("proj_size", 0) or 4, 4] if name == "LSTM" else [4]
    states = [normal(count, 4, n, seed=i + 5) for i, n in enumerate(sizes)] if with_state else []

    results = []
    for library, module, utils in (
        (xgrad, layer, rnn),
        (torch, other, torch.nn.utils.rnn),
    ):
        leaves = [library.asarray(v, dtype=library.float64) for v in (x, *states)]
        leaves = [v.detach().requires_grad_() for v in leaves]
        packed = utils.pack_padded_sequence(leaves[0], lengths, batch_first, enforce_sorted=False)
        hx = leaves[1:] and (leaves[1] if len(leaves) == 2 else tuple(leaves[1:]))
        out, state = module(packed, *([hx] if with_state else []))
        padded, counts = utils.pad_packed_sequence(out, batch_first)
        ends = list(state) if name == "LSTM" else [state]
        total = sum((y**3).sum() for y in (padded, *ends))
        firsts = library.autograd.grad(total, leaves, create_graph=True)
        sum((g**2).sum() for g in firsts).backward()
        seconds = [v.grad for v in (*leaves, *(p for _, p in module.named_parameters()))]
        results.append(
            [v.detach().numpy() for v in (out.data, padded, counts, *ends, *firsts, *seconds)]
        )
    assert [k for k, _ in layer.named_parameters()] == [k for k, _ in other.named_parameters()]
    for a, b in zip(*results, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, 1e-10, 1e-10 * max(1.0, float(np.abs(b).max())))


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
def test_packed_layer_equals_each_sequence_alone(name, device):
    layer = getattr(nn, name)(3, 4, num_layers=2, bidirectional=True).double().to(device)
    x = on(device, normal(6, 4, 3))
    packed = rnn.pack_padded_sequence(x, SHUFFLED, enforce_sorted=False)
    out, state = layer(packed)
    ends = state if name == "LSTM" else (state,)
    for i, sequence in enumerate(rnn.unpack_sequence(out)):
        alone, last = layer(x[: SHUFFLED[i], i, :])
        np.testing.assert_allclose(host(sequence), host(alone), 1e-12, 1e-12)
        for end, expected in zip(ends, last if name == "LSTM" else (last,), strict=True):
            np.testing.assert_allclose(host(end[:, i, :]), host(expected), 1e-12, 1e-12)


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_padding_causes_no_anomaly(name, dtype):
    layer = getattr(nn, name)(3, 4, num_layers=2, bidirectional=True).to(
        dtype=getattr(xgrad, dtype)
    )
    x = xgrad.asarray(normal(6, 4, 3).astype(dtype), requires_grad=True)
    with xgrad.autograd.detect_anomaly():
        out, state = layer(rnn.pack_padded_sequence(x, SHUFFLED, enforce_sorted=False))
        ends = state if name == "LSTM" else (state,)
        sum((y**2).sum() for y in (out.data, *ends)).backward()
    padding = np.arange(6)[:, None] >= SHUFFLED
    assert np.isfinite(host(x.grad)).all() and not host(x.grad)[padding].any()


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
def test_captured_step_of_packed_sequences_equals_eager(name, capturing_device):
    layer = getattr(nn, name)(3, 4, bidirectional=True, device=capturing_device)

    def step(x):
        layer.zero_grad()
        packed = rnn.pack_padded_sequence(x, SHUFFLED, enforce_sorted=False)
        out, _ = layer(packed)
        padded, _ = rnn.pad_packed_sequence(out)
        (padded**2).sum().backward()
        return padded.detach(), *(p.grad for p in layer.parameters())

    captured = xgrad.capture(step)
    for seed in range(3):
        x = on(capturing_device, normal(6, 4, 3, seed=seed).astype(np.float32))
        for a, b in zip(step(x), captured(x), strict=True):
            assert host(a).tobytes() == host(b).tobytes()
    assert captured.refusal is None


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (
            "rnn.pack_padded_sequence(xp.ones((3, 2)), [2, 3])",
            "ValueError: pack_padded_sequence: expected lengths in descending order, got [2, 3]",
        ),
        (
            "rnn.pack_padded_sequence(xp.ones((3, 2)), [4, 3])",
            "ValueError: pack_padded_sequence: expected lengths of 2 sequences, from 1 to 3, got",
        ),
        (
            "rnn.pack_padded_sequence(xp.ones((3, 2)), [3, 0])",
            "ValueError: pack_padded_sequence: expected lengths of 2 sequences, from 1 to 3, got",
        ),
        (
            "rnn.pack_padded_sequence(xp.ones((3, 2)), [3])",
            "ValueError: pack_padded_sequence: expected lengths of 2 sequences",
        ),
        (
            "rnn.pack_padded_sequence(xp.ones((3, 2)), [3.0, 1.0])",
            "TypeError: pack_padded_sequence: expected an int for lengths, got 3.0",
        ),
        (
            "rnn.pack_padded_sequence(xp.ones((3, 2)), 3)",
            "TypeError: pack_padded_sequence: expected a list of ints for lengths, got 3",
        ),
        (
            "rnn.pack_padded_sequence(xp.ones(3), [3])",
            "ValueError: pack_padded_sequence: expected input of at least two axes, got shape (3,)",
        ),
        (
            "rnn.pad_packed_sequence(xp.ones(3))",
            "TypeError: pad_packed_sequence: expected a PackedSequence",
        ),
        (
            "rnn.pad_packed_sequence(rnn.pack_sequence([xp.ones(3)]), total_length=2)",
            "ValueError: pad_packed_sequence: expected total_length of at least 3",
        ),
        (
            "rnn.pad_sequence([xp.ones((3, 2)), xp.ones((3, 1))])",
            "ValueError: pad_sequence: expected sequences of shapes (length, ...)",
        ),
        ("rnn.pad_sequence([])", "ValueError: pad_sequence: expected sequences of shapes"),
        (
            "rnn.pad_sequence([xp.ones(2)], padding_side='top')",
            "ValueError: pad_sequence: expected a padding_side of 'right' or 'left', got 'top'",
        ),
        (
            "rnn.unpad_sequence(xp.ones(3), [3])",
            "ValueError: unpad_sequence: expected padded_sequences of at least two axes",
        ),
        (
            "nn.GRU(3, 4)(rnn.pack_sequence([xp.ones((3, 2))]))",
            "ValueError: GRU: expected input of shape (elements, in), in = 3, for packed data",
        ),
        (
            "nn.GRU(3, 4)(rnn.pack_sequence([xp.ones(3)]))",
            "ValueError: GRU: expected input of shape (elements, in), in = 3, for packed data",
        ),
        (
            "nn.LSTM(3, 4, proj_size=4)",
            "ValueError: LSTM: expected proj_size from 0 to 3, below hidden_size, got 4",
        ),
    ],
)
def test_wrong_arguments_are_refused(call, error):
    check_error(call, error, nn=nn, rnn=rnn)
