"""Functions of whole models: gradient clipping, compared with PyTorch, parameters as a vector."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error, host
from xgrad import nn, optim
from xgrad.nn import utils

GRADIENTS = [np.array([[1.0, -2.0], [3.0, 0.5]]), np.array([-4.0, 0.25, 0.0]), np.array(2.0)]


def parameters(device: str, packed: bool) -> list[Any]:
    """Return parameters with gradients, `packed` in the buffer of an optimizer."""
    params = [xgrad.asarray(np.ones_like(g), device=device).requires_grad_() for g in GRADIENTS]
    optimizer = optim.SGD(params, lr=0.0)
    for _ in range(2 if packed else 1):
        optimizer.zero_grad()
        sum(
            (p * xgrad.asarray(g, device=device)).sum()
            for p, g in zip(params, GRADIENTS, strict=True)
        ).backward()
        if packed:
            optimizer.step()
    return params


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("norm_type", [1, 2.0, 3.5, 0.5, math.inf])
@pytest.mark.parametrize("max_norm", [0.0, 1.5, 100.0])
def test_clipped_norms_match_pytorch(packed, norm_type, max_norm, device, torch):
    params, others = parameters(device, packed), [torch.ones(g.shape) for g in GRADIENTS]
    for q, g in zip(others, GRADIENTS, strict=True):
        q.grad = torch.tensor(g)[...].to(q.dtype)
    norm = utils.clip_grad_norm_(params, max_norm, norm_type, error_if_nonfinite=True)
    expected = torch.nn.utils.clip_grad_norm_(others, max_norm, norm_type)
    np.testing.assert_allclose(host(norm), expected.item(), 1e-6)
    for p, q in zip(params, others, strict=True):
        np.testing.assert_allclose(host(p.grad), q.grad.numpy(), 1e-5)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("norm_type", [1, 2.0, math.inf])
def test_total_norm_and_clipping_with_it_match_pytorch(packed, norm_type, device, torch):
    params, others = parameters(device, packed), [torch.ones(g.shape) for g in GRADIENTS]
    for q, g in zip(others, GRADIENTS, strict=True):
        q.grad = torch.tensor(g)[...].to(q.dtype)
    norm = utils.get_total_norm([p.grad for p in params], norm_type)
    expected = torch.nn.utils.get_total_norm([q.grad for q in others], norm_type)
    np.testing.assert_allclose(host(norm), expected.item(), 1e-6)
    utils.clip_grads_with_norm_(params, 1.5, norm)
    torch.nn.utils.clip_grads_with_norm_(others, 1.5, expected)
    for p, q in zip(params, others, strict=True):
        np.testing.assert_allclose(host(p.grad), q.grad.numpy(), 1e-5)
    assert utils.get_total_norm([]).item() == 0


@pytest.mark.parametrize("packed", [False, True])
def test_clipped_values(packed, device):
    params = parameters(device, packed)
    utils.clip_grad_value_(params, 1.5)
    for p, g in zip(params, GRADIENTS, strict=True):
        assert host(p.grad).tolist() == np.clip(g, -1.5, 1.5).tolist()


def test_infinite_norm_is_an_error_on_request_and_leaves_the_gradients():
    x = xgrad.ones(2, requires_grad=True)
    x.grad = xgrad.asarray([1.0, float("inf")])
    with pytest.raises(
        RuntimeError, match="clip_grad_norm_: expected gradients with a finite norm, got inf"
    ):
        utils.clip_grad_norm_(x, 1.0, error_if_nonfinite=True)
    assert x.grad.tolist() == [1.0, float("inf")]


def test_captured_clipping_equals_eager():
    runs = []
    for capture in (lambda step: step, xgrad.capture):
        xgrad.manual_seed(0)
        model = nn.MLP([3, 4, 2])
        optimizer = optim.SGD(model.parameters(), lr=0.1)

        def step(x: Any, model: Any = model, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            (model(x) ** 2).sum().backward()
            utils.clip_grad_value_(model.parameters(), 0.5)
            norm = utils.clip_grad_norm_(model.parameters(), 0.7, norm_type=math.inf)
            optimizer.step()
            return norm

        step = capture(step)
        norms = [host(step(xgrad.ones((5, 3)))).tobytes() for _ in range(5)]
        runs.append((norms, [host(p).tobytes() for p in model.parameters()]))
    assert runs[0] == runs[1]
    assert step.refusal is None


def test_vector_of_parameters_round_trip(device):
    model, twin = (nn.MLP([3, 4, 2]).to(device) for _ in range(2))
    optimizer = optim.SGD(twin.parameters(), lr=0.0)
    (twin(xgrad.ones((1, 3), device=device))).sum().backward()
    optimizer.step()  # packs the parameters
    vector = utils.parameters_to_vector(model.parameters())
    assert vector.requires_grad and vector.shape == (26,)
    utils.vector_to_parameters(vector, twin.parameters())
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        assert host(p).tolist() == host(q).tolist()
        assert q.is_leaf and q.requires_grad
    optimizer.step()
    assert host(vector).tolist() == host(utils.parameters_to_vector(twin.parameters())).tolist()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("u.clip_grad_norm_(x, -1)", "ValueError: clip_grad_norm_: expected max_norm >= 0, got -1"),
        (
            "u.clip_grad_norm_(x, 1, norm_type=0)",
            "ValueError: clip_grad_norm_: expected norm_type above 0, got 0",
        ),
        (
            "u.clip_grad_value_(x, -1)",
            "ValueError: clip_grad_value_: expected clip_value >= 0, got -1",
        ),
        (
            "u.clip_grad_value_([1.0], 1)",
            "TypeError: clip_grad_value_: expected a tensor for parameters[0], got float",
        ),
        (
            "u.parameters_to_vector([])",
            "ValueError: parameters_to_vector: expected parameters, got none",
        ),
        (
            "u.vector_to_parameters(x, [x, x])",
            "ValueError: vector_to_parameters: expected vec of shape (4,), got (2,)",
        ),
        (
            "u.vector_to_parameters([1.0], [x])",
            "TypeError: vector_to_parameters: expected a tensor for vec, got list",
        ),
    ],
)
def test_errors(call, expected):
    check_error(call, expected, u=utils, x=xgrad.ones(2, requires_grad=True))
