"""The device of a GradScaler: a given one, or the device of its first loss or gradient."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import host
from xgrad import Tensor, amp, optim
from xgrad.backend import DeviceError

# the first use: by a loss, or by an optimizer whose gradients were scaled by other means
FIRST = {
    "scale": lambda scaler, loss, optimizer: scaler.scale(loss),
    "scale of a container": lambda scaler, loss, optimizer: scaler.scale({"b": (1.0, loss)}),
    "unscale_": lambda scaler, loss, optimizer: scaler.unscale_(optimizer),
    "step": lambda scaler, loss, optimizer: scaler.step(optimizer),
}


def made_on(device: str) -> tuple[Tensor, Tensor, optim.Optimizer]:
    p = xgrad.ones(2, device=device, requires_grad=True)
    loss = (p * p).sum()
    loss.backward(xgrad.full((), 2.0**16, device=device), retain_graph=True)
    return p, loss, optim.SGD([p], 0.25)


def devices_of(scaler: amp.GradScaler) -> set[str]:
    return {str(x.device) for x in vars(scaler).values() if isinstance(x, Tensor)}


@pytest.mark.parametrize("first", FIRST.values(), ids=FIRST)
def test_state_is_on_the_device_of_the_first_use(first: Any, device: str) -> None:
    _, loss, optimizer = made_on(device)
    scaler = amp.GradScaler()
    first(scaler, loss, optimizer)
    assert devices_of(scaler) == {device}
    assert scaler.state_dict() == amp.GradScaler().state_dict()


def test_training_on_a_device_needs_no_device_of_the_scaler(device: str) -> None:
    (p, loss, optimizer), scaler = made_on(device), amp.GradScaler(growth_interval=1)
    p.grad = None
    scaler.scale(loss).backward()
    assert p.grad is not None and p.grad.tolist() == [2.0**17] * 2
    scaler.step(optimizer)
    scaler.update()
    assert p.tolist() == [0.5, 0.5] and scaler.get_scale() == 2.0**17
    assert devices_of(scaler) == {device}


def test_state_that_was_loaded_before_the_first_use_moves(device: str) -> None:
    _, loss, _ = made_on(device)
    saved = amp.GradScaler().state_dict() | {"scale": 8.0, "_growth_tracker": 3}
    scaler = amp.GradScaler()
    scaler.load_state_dict(saved)
    for each in (scaler, copy.deepcopy(scaler), pickle.loads(pickle.dumps(scaler))):
        assert each.state_dict() == saved
        assert host(each.scale(loss)) == 16.0
        assert each.state_dict() == saved and devices_of(each) == {device}


def test_state_stays_on_the_first_device() -> None:
    pytest.importorskip("array_api_strict", reason="needs array-api-strict")
    scaler = amp.GradScaler()
    scaler.scale(made_on("strict:1")[1])
    with pytest.raises(DeviceError, match="x1 on cpu, x2 on strict:1"):
        scaler.scale(made_on("cpu")[1])
    assert devices_of(scaler) == {"strict:1"}


def test_given_device_stays() -> None:
    pytest.importorskip("array_api_strict", reason="needs array-api-strict")
    scaler = amp.GradScaler("strict")
    assert devices_of(scaler) == {"strict"}
    with pytest.raises(DeviceError, match="x1 on cpu, x2 on strict"):
        scaler.scale(made_on("cpu")[1])
    assert devices_of(scaler) == {"strict"}


def test_loss_within_vmap_does_not_move_the_state() -> None:
    scaler = amp.GradScaler(init_scale=2.0)
    scaled = xgrad.vmap(lambda x: scaler.scale(x))(xgrad.asarray([1.0, 2.0]))
    assert scaled.tolist() == [2.0, 4.0] and devices_of(scaler) == {"cpu"}
    assert scaler.scale(xgrad.asarray(3.0)).item() == 6.0


def test_scaler_without_a_device_replays_in_a_captured_step(capturing_device: str) -> None:
    runs = []
    for capture in (lambda step: step, xgrad.capture):
        p = xgrad.ones(4, device=capturing_device, requires_grad=True)
        optimizer, scaler = optim.Adam([p], lr=0.1), amp.GradScaler(None, 4.0, growth_interval=2)

        @capture
        def step(x: Tensor, p: Any = p, optimizer: Any = optimizer, scaler: Any = scaler) -> Any:
            optimizer.zero_grad()
            scaler.scale((p * x).sum()).backward()
            scaler.step(optimizer)
            scaler.update()

        for i in range(6):
            values = [1.0, 2.0, 3.0, np.inf if i == 3 else 4.0]
            step(xgrad.asarray(values, device=capturing_device))
        runs.append((p.tolist(), scaler.state_dict()))
        assert devices_of(scaler) == {capturing_device}
    assert step.refusal is None and step.recordings == 1
    assert runs[0] == runs[1]
