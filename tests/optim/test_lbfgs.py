"""L-BFGS: steps compared with PyTorch, state, errors, and captured closures.

A continued run is compared with an uninterrupted one, a captured closure with an eager one.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import host
from optim.optimizer_cases import INPUT, START, TARGET, objective
from xgrad.capture import CaptureWarning
from xgrad.optim import LBFGS

OPTIONS: list[dict[str, Any]] = [
    {"lr": 0.1},
    {"lr": 0.2, "max_iter": 4, "history_size": 3},
    {"line_search_fn": "strong_wolfe", "max_iter": 8},
    {"line_search_fn": "strong_wolfe", "max_iter": 4, "history_size": 2},
    {"line_search_fn": "strong_wolfe", "max_eval": 5, "lr": 3.0},
    {"line_search_fn": "strong_wolfe", "lr": 3e-3, "max_iter": 3},
    {"line_search_fn": "strong_wolfe", "max_iter": 8, "tolerance_grad": 1.0},
    {"line_search_fn": "strong_wolfe", "max_iter": 8, "tolerance_change": 0.1},
]
TOLERANCE = {"float32": 1e-3, "float64": 1e-9}


def problem(
    device: str = "cpu", dtype: str = "float64", **options: Any
) -> tuple[LBFGS, list[Any], Any]:
    """Return an optimizer, its parameters and its closure."""
    params, data = (
        [xgrad.asarray(x, dtype=getattr(xgrad, dtype), device=device) for x in part]
        for part in (START, (INPUT, TARGET))
    )
    optimizer = LBFGS([p.requires_grad_() for p in params], **options)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = objective(xgrad, params, data)
        loss.backward()
        return loss

    return optimizer, params, closure


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_steps_match_pytorch(options, dtype, device, torch):
    optimizer, params, closure = problem(device, dtype, **options)
    others, data = (
        [torch.tensor(x, dtype=getattr(torch, dtype)) for x in part]
        for part in (START, (INPUT, TARGET))
    )
    reference = torch.optim.LBFGS([q.requires_grad_() for q in others], **options)

    def other_closure() -> Any:
        reference.zero_grad()
        loss = objective(torch, others, data)
        loss.backward()
        return loss

    for _ in range(3 if dtype == "float64" else 1):  # the differences grow
        assert optimizer.step(closure).item() == pytest.approx(
            reference.step(other_closure).item(), 1e-4
        )
        state = reference.state[others[0]]
        assert (optimizer.state[params[0]]["n_iter"]) == state["n_iter"]
        assert (optimizer.state[params[0]]["func_evals"]) == state["func_evals"]
    for p, q in zip(params, others, strict=True):
        q = q.detach().numpy()
        assert (p.dtype, str(p.device)) == (dtype, device)
        np.testing.assert_allclose(host(p), q, TOLERANCE[dtype], TOLERANCE[dtype])


@pytest.mark.parametrize("restore", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_continuing_from_a_state_is_exact(restore, device):
    optimizer, params, closure = problem(device, max_iter=5, line_search_fn="strong_wolfe")
    optimizer.step(closure)
    state = restore(optimizer.state_dict())
    follower, others, other_closure = problem(device)
    for p, q in zip(others, params, strict=True):
        p.data = xgrad.asarray(q.detach(), copy=True)
    follower.load_state_dict(state)
    optimizer.step(closure)
    follower.step(other_closure)
    for p, q in zip(others, params, strict=True):
        assert host(p).tobytes() == host(q).tobytes()


def test_state_that_does_not_match_is_refused():
    optimizer, _, closure = problem()
    optimizer.step(closure)
    good = optimizer.state_dict()
    other = LBFGS([xgrad.ones(3, requires_grad=True)])
    for state, error, text in [
        (
            good | {"state": {}},
            ValueError,
            r"groups with these numbers of parameters: \[1\], got \[6\]",
        ),
        (
            other.state_dict() | {"state": good["state"]},
            ValueError,
            r"vectors of shape \(3,\) in the state, got \(36,\)",
        ),
        (
            other.state_dict() | {"state": {0: {"n_iter": 1}}},
            ValueError,
            r"expected \['H_diag', .*, got \['n_iter'\]",
        ),
        ([], TypeError, "expected a mapping with 'state' and 'param_groups'"),
    ]:
        with pytest.raises(error, match=text):
            other.load_state_dict(state)
        assert not other.state_dict()["state"]


def test_parameters_without_a_gradient_stay():
    used, unused = xgrad.ones(2, requires_grad=True), xgrad.ones(2, requires_grad=True)
    optimizer = LBFGS([used, unused])

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (used * used).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert unused.tolist() == [1.0, 1.0]
    np.testing.assert_allclose(used.tolist(), [0.0, 0.0], atol=1e-6)


def test_captured_step_runs_eagerly_with_a_warning():
    optimizer, params, closure = problem(max_iter=3)
    twin, others, other_closure = problem(max_iter=3)
    captured = xgrad.capture(lambda: optimizer.step(closure))
    with pytest.warns(
        CaptureWarning,
        match="LBFGS takes steps that depend on values: capture the closure, not the",
    ):
        captured()
    captured()
    for _ in range(2):
        twin.step(other_closure)
    assert [p.tolist() for p in params] == [q.tolist() for q in others]


def test_captured_closure_equals_eager():
    optimizer, params, closure = problem(max_iter=5, line_search_fn="strong_wolfe")
    twin, others, other_closure = problem(max_iter=5, line_search_fn="strong_wolfe")
    captured = xgrad.capture(other_closure)
    for _ in range(3):
        optimizer.step(closure)
        twin.step(captured)
    assert [p.tolist() for p in params] == [q.tolist() for q in others]
    # the first step finds no gradients
    assert captured.refusal is None and captured.recordings == 2


def test_state_after_an_interrupted_step_can_be_loaded() -> None:
    x = xgrad.Tensor([1.0, 2.0], requires_grad=True)
    optimizer, calls = xgrad.optim.LBFGS([x]), iter(range(2))

    def closure() -> Any:
        next(calls)
        optimizer.zero_grad()
        loss = xgrad.sum(x**2)
        loss.backward()
        return loss

    with pytest.raises(StopIteration):
        optimizer.step(closure)
    optimizer.load_state_dict(optimizer.state_dict())
    assert optimizer.state[x]["func_evals"] == 0
