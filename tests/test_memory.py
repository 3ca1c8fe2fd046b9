"""Memory stays flat in training and after errors, without the garbage collector.

The resident size, reference cycles and weak references show what is kept.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import xgrad
from helpers import function
from xgrad import data, nn, optim, training

SCRIPT = """
import gc, resource
import xgrad
from xgrad import nn, optim

gc.disable()
model = nn.MLP([64, 32, 10])
optimizer = optim.Adam(model.parameters())
images, labels = xgrad.random.rand((128, 64)), xgrad.random.randint(0, 10, (128,))

def resident_after(steps):
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()

before = resident_after(200)
gc.collect()  # of imports
print(resident_after(2000) - before, gc.collect())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the resident size is read from /proc")
def test_2000_training_steps_leave_memory_flat_without_the_collector() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, check=True
    )
    growth, collected = (int(n) for n in done.stdout.split())
    assert growth < 1_000_000
    assert collected < 20, "training made reference cycles"


def fail(*args: Any) -> Any:
    raise KeyError("the user's")


def hooked(method: str) -> nn.Module:
    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    getattr(net[1], method)(fail)
    return net


def train(x: xgrad.Tensor, capture: bool) -> None:
    net = nn.Linear(3, 3)
    loader = data.DataLoader(data.TensorDataset(x, x), batch_size=2)
    training.Trainer(net, optim.SGD(net.parameters(), lr=0.1), fail, loader, capture=capture).fit(1)


FAILING: dict[str, Callable[[xgrad.Tensor], Any]] = {
    "operator": lambda x: x + xgrad.ones(2),
    "forward rule": lambda x: function("Failing", lambda xp, x: fail(), lambda g: g)(x),
    "derivative rule": lambda x: (
        function("Failing", lambda xp, x: x * 1, lambda g: fail())(x.requires_grad_())
        .sum()
        .backward()
    ),
    "layer": lambda x: nn.Sequential(nn.Linear(3, 2), nn.Linear(3, 2))(x),
    "forward hook": lambda x: hooked("register_forward_hook")(x),
    "backward hook": lambda x: hooked("register_full_backward_hook")(x).sum().backward(),
    "call with a backward hook": lambda x: hooked("register_full_backward_hook")(x[:, :2]),
    "recomputation": lambda x: xgrad.autograd.checkpoint(fail, x),
    "transform": lambda x: xgrad.vmap(xgrad.grad(fail))(x),
    "captured step": lambda x: xgrad.capture(fail)(x),
    "state": lambda x: nn.Linear(3, 3).load_state_dict({"weight": x, "bias": x}),
    "training": lambda x: train(x, capture=False),
    "captured training": lambda x: train(x, capture=True),
}


@pytest.mark.parametrize("name", FAILING)
def test_caught_error_keeps_no_tensors_without_the_collector(name: str) -> None:
    gc.collect()
    gc.disable()
    try:
        x = xgrad.ones((3, 3))
        alive = weakref.ref(x)
        try:
            FAILING[name](x)
        except (KeyError, ValueError):
            del x
        assert alive() is None
    finally:
        gc.enable()
