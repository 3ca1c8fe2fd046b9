"""Optimizers of float16 parameters, which compute in float32, compared with float32 parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad import optim

OPTIMIZERS: dict[str, dict[str, Any]] = {
    "Adam": {"lr": 0.01},
    "AdamW": {"lr": 0.01, "amsgrad": True},
    "RMSprop": {"lr": 0.01},
    "Adagrad": {"lr": 0.01},
    "Adadelta": {"lr": 0.5},
    "NAdam": {"lr": 0.01},
    "RAdam": {"lr": 0.01},
    "Adamax": {"lr": 0.01},
    "Rprop": {"lr": 0.01},
    "ASGD": {"lr": 1e-3, "t0": 2.0},
    "Adafactor": {"lr": 0.01},
    "SGD": {"lr": 1e-3, "momentum": 0.9},
    "Lion": {"lr": 0.01},
}
GRADIENTS = [0.0, 0.01, -0.5, 1.0, 300.0]


def trained(name: str, dtype: Any, captured: bool = False) -> xgrad.Tensor:
    p = xgrad.ones(len(GRADIENTS), dtype=dtype, requires_grad=True)
    optimizer = getattr(optim, name)([p], **OPTIMIZERS[name])
    # The state is of float16, too, in which the squares of Adagrad and Adafactor have to fit.
    gradient = xgrad.asarray(
        np.minimum(GRADIENTS, 100 if name in ("Adagrad", "Adafactor") else np.inf), dtype=dtype
    )

    def step() -> None:
        optimizer.zero_grad()
        (p * gradient).sum().backward()
        optimizer.step()

    run = xgrad.capture(step) if captured else step
    for _ in range(5):
        run()
    state = optimizer.state_dict()["state"][0]
    assert all(x.dtype == dtype for x in state.values() if isinstance(x, xgrad.Tensor) and x.ndim)
    return p.detach()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_of_float16_are_those_of_float32_within_rounding(name: str) -> None:
    got, want = trained(name, xgrad.float16), trained(name, xgrad.float32)
    assert got.dtype == xgrad.float16
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=4e-3, atol=4e-3)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_captured_steps_of_float16_have_the_bits_of_eager_ones(name: str) -> None:
    assert (
        trained(name, xgrad.float16, True).numpy().tobytes()
        == trained(name, xgrad.float16).numpy().tobytes()
    )
