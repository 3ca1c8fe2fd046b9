"""Memory stays flat in training, without the garbage collector."""

from __future__ import annotations

import subprocess
import sys

import pytest

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
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, check=True)
    growth, collected = (int(n) for n in done.stdout.split())
    assert growth < 1_000_000
    assert collected < 20, "training made reference cycles"
