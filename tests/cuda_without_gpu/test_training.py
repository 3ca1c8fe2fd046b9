"""Training on the emulation of CUDA: losses compared with `cpu`, launches and memory counted."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

if "CUDA_WITHOUT_GPU" not in os.environ:
    pytest.skip("needs the emulation of CUDA: make test-cuda-without-gpu", allow_module_level=True)

import cupy as cp

import xgrad
from tests.cuda_without_gpu.counters import totals
from xgrad import nn, optim
from xgrad.cli.models import lenet
from xgrad.data import DataNotFoundError, images

Model = Callable[[], nn.Module]


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 10))


class Training:
    """Training on batches of MNIST, or of random images where it is not there."""

    def __init__(self, model: Model, device: str, capture: bool, size: int = 64) -> None:
        xgrad.manual_seed(0)
        self.model, self.device, self.size = model().to(device), device, size
        self.optimizer = optim.Adam(self.model.parameters(), lr=1e-3)
        self.step: Any = xgrad.capture(self._step) if capture else self._step
        self.images, self.labels = data()

    def _step(self, x: Any, y: Any) -> Any:
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def run(self, steps: int) -> np.ndarray:
        xgrad.manual_seed(1)  # of dropout
        losses = []
        for i in range(steps):
            rows = np.arange(i * self.size, (i + 1) * self.size) % len(self.labels)
            batch = [xgrad.asarray(x[rows], device=self.device) for x in (self.images, self.labels)]
            losses.append(self.step(*batch))
        return np.array([loss.item() for loss in losses])


def data() -> tuple[np.ndarray, np.ndarray]:
    try:
        mnist = images.mnist(download=False)
    except DataNotFoundError:
        rng = np.random.default_rng(0)
        labels = rng.integers(0, 10, 2560)
        return (rng.random((2560, 784)) + (labels[:, None] == np.arange(784) // 78)).astype(
            np.float32
        ), labels
    return mnist.train.images[:12800].reshape(-1, 784).astype(np.float32) / 255, mnist.train.labels[
        :12800
    ]


@pytest.mark.parametrize("capture", [False, True], ids=["eager", "captured"])
@pytest.mark.parametrize(
    ("model", "steps"), [(mlp, 400), (lambda: lenet((28, 28), 10), 20)], ids=["MLP", "CNN"]
)
def test_training_on_mnist_has_the_losses_of_cpu(model: Model, steps: int, capture: bool) -> None:
    training = Training(model, "cuda", capture)
    losses = training.run(steps)
    assert not capture or training.step.refusal is None
    np.testing.assert_allclose(
        losses, Training(model, "cpu", False).run(steps), rtol=2e-3, atol=1e-5
    )
    assert losses[-5:].mean() < losses[:5].mean()


@pytest.mark.parametrize(
    ("model", "launches", "pool"),
    [(mlp, 13, 33_641_984), (lambda: lenet((28, 28), 10), 44, 37_484_544)],
    ids=["MLP", "CNN"],
)
def test_replay_is_one_launch_and_allocates_nothing(model: Model, launches: int, pool: int) -> None:
    """The graph has so many kernels, without copies from the host, and so many bytes.

    32 MiB of them are for cuBLAS.
    """
    training = Training(model, "cuda", True, size=16)
    training.run(5)
    before, used = totals(), cp.get_default_memory_pool().used_bytes()
    training.run(3)
    assert training.step.refusal is None
    assert tuple(np.subtract(totals(), before)) == (3 * launches, 0, 3)
    assert cp.get_default_memory_pool().used_bytes() == used
    (program,) = training.step._programs.values()
    assert program.executor.nbytes == pool
