"""Trajectories of optimizers, compared with PyTorch or with equations in NumPy.

Continuations from a state are compared with uninterrupted runs, captured steps with eager ones.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import host
from optim.optimizer_cases import (
    IDS,
    INPUT,
    OPTIONS,
    START,
    TARGET,
    groups,
    kind,
    objective,
    reference,
)

STEPS = 100
STEPS_ELSEWHERE = 20  # on the devices of tests, which are slow
#: Of a parameter against its largest component, or 1. Rounding errors of 6e-8, or of 1e-16, grow
#: over 100 steps: where gradients near 0 are divided by their moments, and where steps overshoot a
#: minimum. Most rows stay below 1e-5.
TOLERANCE = {"float32": 1e-4, "float64": 1e-9}


def started(
    name: str, options: dict[str, Any], device: str, dtype: str
) -> tuple[Any, list[Any], Callable[[], Any]]:
    """Return an optimizer, the parameters, and a function that computes loss and gradients."""
    make = partial(xgrad.asarray, dtype=getattr(xgrad, dtype), device=device)
    params, data = [make(x).requires_grad_() for x in START], (make(INPUT), make(TARGET))
    optimizer = kind(name)(groups(name, params, options["lr"]), **options)

    def backward() -> Any:
        optimizer.zero_grad()
        loss = objective(xgrad, params, data)
        loss.backward()
        return loss

    return optimizer, params, backward


def assert_close(params: list[Any], others: list[Any], tolerance: float) -> None:
    for p, q in zip(params, others, strict=True):
        q = q.detach().numpy()
        np.testing.assert_allclose(
            host(p), q, rtol=0, atol=tolerance * max(1.0, float(np.abs(q).max()))
        )


@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=IDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_trajectory_matches_reference(name, options, dtype, device, torch, pytorch_dtype):
    pytorch_dtype(dtype)
    optimizer, params, backward = started(name, options, device, dtype)
    others = [torch.tensor(x, dtype=getattr(torch, dtype), requires_grad=True) for x in START]
    data = torch.tensor(INPUT, dtype=others[0].dtype), torch.tensor(TARGET, dtype=others[0].dtype)
    other = reference(torch, name, groups(name, others, options["lr"]), **options)
    for _ in range(STEPS if device in ("cpu", "cuda") else STEPS_ELSEWHERE):
        backward()
        optimizer.step()
        for q in others:
            q.grad = None
        objective(torch, others, data).backward()
        other.step()
    assert {p.dtype for p in params} == {getattr(xgrad, dtype)}
    assert {str(p.device) for p in params} == {device}
    assert_close(params, others, TOLERANCE[dtype])


def test_muon_in_bfloat16_of_pytorch_is_close(torch):
    options = {"lr": 0.02, "momentum": 0.5, "nesterov": False}
    optimizer, params, backward = started("Muon", options, "cpu", "float32")
    others = [torch.tensor(x, dtype=torch.float32, requires_grad=True) for x in START]
    other = torch.optim.Muon(groups("Muon", others, 0.02), **options)
    backward()
    for p, q in zip(params, others, strict=True):
        q.grad = torch.tensor(p.grad.tolist())
    optimizer.step()
    other.step()
    assert_close(params, others, 1e-3)


@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=IDS)
def test_continuing_from_a_state_is_exact(name, options, device):
    optimizer, params, backward = started(name, options, device, "float32")
    for _ in range(7):
        backward()
        optimizer.step()
    state = pickle.loads(pickle.dumps(optimizer.state_dict()))
    kept = repr(state)
    follower, others, backward_others = started(name, {"lr": 0.7}, device, "float32")
    for p, q in zip(others, params, strict=True):
        p.data = xgrad.asarray(q.detach(), copy=True)
    follower.load_state_dict(state)
    for _ in range(7):
        backward()
        optimizer.step()
        backward_others()
        follower.step()
    for p, q in zip(others, params, strict=True):
        assert host(p).tobytes() == host(q).tobytes()
    assert repr(follower.state_dict()) == repr(optimizer.state_dict())
    assert repr(state) == kept, "what state_dict returned was written to"


@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=IDS)
def test_captured_step_equals_eager(name, options, capturing_device):
    optimizers, runs = [], []
    for capture in (lambda step: step, xgrad.capture):
        optimizer, params, backward = started(name, options, capturing_device, "float32")

        def step(optimizer: Any = optimizer, params: Any = params, backward: Any = backward) -> Any:
            loss = backward()
            optimizer.step()
            return loss

        optimizers.append(optimizer)
        runs.append((capture(step), params))
    (eager, expected), (captured, params) = runs
    for i in range(12):
        assert host(eager()).tobytes() == host(captured()).tobytes()
        for optimizer in optimizers if i % 4 == 3 else ():
            optimizer.param_groups[0]["lr"] *= 0.5
    assert repr(optimizers[0].state_dict()) == repr(optimizers[1].state_dict())
    for p, q in zip(params, expected, strict=True):
        assert host(p).tobytes() == host(q).tobytes()
    assert captured.refusal is None
    # equations change with the length of RAdam's average, and where ASGD begins to average
    assert captured.recordings == (2 if name == "RAdam" or options.get("t0") else 1)
