"""First programs of any autograd library, compared with known results."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import host, leaf64
from xgrad import Tensor


@pytest.mark.parametrize(
    ("program", "at", "value", "expected"),
    [
        (lambda x, y, z: x * y + z, (2, -3, 10), 4, [-3, 2, 1]),
        (lambda a: a * a, (3,), 9, [6]),
        (lambda a: a + a, (3,), 6, [2]),
        (lambda a: a * a + a, (3,), 12, [7]),
        (lambda a, b, c, d: ((a * b) + c) * (a + d), (2, 3, 4, 5), 70, [31, 14, 7, 10]),
        (lambda a, b, c: (a * b + c) ** 2, (2, 3, 1), 49, [42, 28, 14]),
        (lambda x, y: x * y + x, (2, 3), 8, [4, 2]),
    ],
)
def test_scalar_programs_have_known_values_and_gradients(
    program: Any, at: Any, value: float, expected: list[float], device: str
) -> None:
    leaves = [Tensor(float(x), device=device, requires_grad=True) for x in at]
    out = program(*leaves)
    out.backward()
    assert (out.item(), [x.grad.item() for x in leaves]) == (value, expected)


def test_small_network_fits_four_points(device: str) -> None:
    xgrad.manual_seed(0)
    model = xgrad.nn.MLP([3, 4, 4, 1], activation=xgrad.nn.Tanh).to(device)
    assert sum(p.size for p in model.parameters()) == 41
    inputs = [[2.0, 3.0, -1.0], [3.0, -1.0, 0.5], [0.5, 1.0, 1.0], [1.0, 1.0, -1.0]]
    x, y = Tensor(inputs, device=device), Tensor([[1.0], [-1.0], [-1.0], [1.0]], device=device)
    for _ in range(100):
        loss = ((model(x) - y) ** 2).sum()
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= 0.1 * p.grad
    assert ((model(x) - y) ** 2).sum().item() < 0.01


def test_derivatives_of_any_order_of_a_closed_form(device: str) -> None:
    """The n-th derivative of sin(2x) is 2**n sin(2x + n pi / 2)."""
    x = leaf64(0.3, device)
    y = xgrad.sin(2 * x)
    for n in range(1, 8):
        (y,) = xgrad.autograd.grad(y, x, create_graph=True)
        assert y.item() == pytest.approx(2**n * math.sin(0.6 + n * math.pi / 2), rel=1e-12)


def test_newton_steps_by_second_derivatives_converge(device: str) -> None:
    x = leaf64([2.0, -3.0], device)
    for _ in range(30):
        (slope,) = xgrad.autograd.grad((x**4 / 4 - x).sum(), x, create_graph=True)
        (curvature,) = xgrad.autograd.grad(slope.sum(), x)
        x.data = (x - slope / curvature).detach()
    np.testing.assert_allclose(host(x), [1.0, 1.0], rtol=1e-12)
