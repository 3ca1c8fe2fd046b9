"""States of optimizers, exchanged with PyTorch: training continues as without the exchange."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error, host

OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 0.01, "momentum": 0.9},
    "SGD without momentum": {"lr": 0.01},
    "Adam": {"amsgrad": True},
    "RMSprop": {"centered": True, "momentum": 0.5},
    "LBFGS": {"lr": 0.1, "max_iter": 2},
    **{name: {} for name in ("AdamW", "Adamax", "NAdam", "RAdam", "Adagrad", "Adadelta", "Rprop")},
    "ASGD": {"lr": 0.01, "t0": 2.0, "lambd": 0.1},
    "Adafactor": {"lr": 0.1},
}


def started(library: Any, name: str, steps: int = 0) -> tuple[Any, Any]:
    """Return parameters, one of them a scalar, and their optimizer after some steps."""
    params = [library.ones(shape, requires_grad=True) for shape in ((3,), (), (2, 3, 2))]
    optimizer = getattr(library.optim, name.split()[0])(params, **OPTIMIZERS[name])
    step(params, optimizer, steps)
    return params, optimizer


def step(params: Any, optimizer: Any, count: int) -> None:
    def closure() -> Any:
        optimizer.zero_grad()
        loss = sum(((p - 2) ** 4).sum() for p in params)
        loss.backward()
        return loss

    for _ in range(count):
        optimizer.step(closure)


def of_torch(torch: Any, x: Any) -> Any:
    """Return a nested state with PyTorch's tensors in place of xgrad's."""
    if isinstance(x, dict):
        return {key: of_torch(torch, part) for key, part in x.items()}
    if isinstance(x, list):
        return [of_torch(torch, part) for part in x]
    return torch.tensor(host(x)) if isinstance(x, xgrad.Tensor) else x


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_state_is_exchanged_with_pytorch(name, torch):
    (params, optimizer), (others, reference) = started(xgrad, name, 3), started(torch, name, 3)
    (loaded, of_loaded), (theirs, of_theirs) = started(xgrad, name), started(torch, name)
    for p, other in zip(loaded, others, strict=True):
        p.data = xgrad.asarray(other.detach().numpy(), copy=True)
    for other, p in zip(theirs, params, strict=True):
        other.data = torch.tensor(host(p.detach()))
    of_loaded.load_state_dict(reference.state_dict())
    of_theirs.load_state_dict(of_torch(torch, optimizer.state_dict()))
    step(others, reference, 3)
    for results, trained in ((loaded, of_loaded), (theirs, of_theirs)):
        step(results, trained, 3)
        for p, other in zip(results, others, strict=True):
            np.testing.assert_allclose(p.detach().numpy(), other.detach().numpy(), 1e-5)


def test_state_of_another_kind_is_refused(torch):
    _, reference = started(torch, "AdamW", 1)
    _, optimizer = started(xgrad, "Adam")
    check_error(
        "o.load_state_dict(state)",
        "ValueError: Adam.load_state_dict: expected the options … is it from another kind of"
        " optimizer?",
        o=optimizer,
        state=reference.state_dict(),
    )
    assert not optimizer.state
