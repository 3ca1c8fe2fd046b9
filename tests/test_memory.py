"""Memory stays flat in training, and goes with the last reference."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import gc, resource
import numpy as np
import xgrad
from xgrad import nn, optim

gc.disable()
xgrad.manual_seed(0)
model = nn.MLP([64, 32, 10])
optimizer = optim.Adam(model.parameters())
images = xgrad.random.rand((128, 64))
labels = xgrad.random.randint(0, 10, (128,))

def step():
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()

def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()

for _ in range(200):
    step()
before = resident()
for _ in range(2000):
    step()
print(resident() - before, gc.collect())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the resident size is read from /proc")
def test_2000_training_steps_leave_memory_flat_without_the_collector() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, check=True)
    grown, found = (int(n) for n in done.stdout.split())
    assert grown < 1_000_000
    assert found < 500, "training made reference cycles"
