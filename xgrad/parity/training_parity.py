"""Comparison of a training run on several devices, step by step."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

import numpy as np

import xgrad
from xgrad import nn, optim
from xgrad.backend.device import Device
from xgrad.data import DataLoader, TensorDataset, digits

SIZES, BATCH, STEPS, SEED = (64, 32, 16, 10), 32, 200, 0
OPTIMIZERS: dict[str, Callable[[Any], optim.Optimizer]] = {
    "sgd": lambda parameters: optim.SGD(parameters, lr=0.02, momentum=0.9),
    "adam": lambda parameters: optim.Adam(parameters, lr=3e-3),
}

#: The tolerated relative difference between a training run and the run on cpu: of the losses, and
#: of all weights together.
LIMITS = {"float64": 5e-15, "float32": 3e-6}
REASON = (
    "Libraries sum in different orders, and rounding errors carry over to the next step. At these"
    " learning rates they stay of the size of one step: with ten seeds, PyTorch's arrays differed"
    " by 4.6e-16 in float64 and 2.6e-7 in float32; ten times as much is tolerated. (At five times"
    " the learning rate of SGD, training is chaotic, and one seed of ten diverges.) A second run on"
    " cpu must be bit-identical."
)


@dataclass(frozen=True)
class ParityRun:
    """A training run on a device, and its difference from the run on cpu.

    `loss_error` is the largest difference of the losses of a step, relative to the largest loss.
    `weight_error` is the norm of the difference of the final weights, relative to the norm of cpu's
    weights. `step` is the median time of a step in microseconds.
    """

    device: str
    dtype: str
    optimizer: str
    losses: list[float]
    loss_error: float
    last_loss_error: float
    weight_error: float
    limit: float
    step: float
    note: str = ""

    @property
    def passed(self) -> bool:
        """Whether both errors are within tolerance."""
        return max(self.loss_error, self.weight_error) <= self.limit


class _Run(NamedTuple):
    losses: np.ndarray
    weights: np.ndarray
    step: float


def train(device: Device, dtype: str, optimizer: str, steps: int = STEPS) -> _Run:
    """Train an MLP on the embedded digits, from one seed."""
    xgrad.manual_seed(SEED)
    split = digits().train
    images = xgrad.asarray(split.images.reshape(-1, 64).astype(dtype) / 16, device=device)
    labels = xgrad.asarray(split.labels.astype(np.int64), device=device)
    model = nn.MLP(SIZES, device=device, dtype=dtype)
    optimize = OPTIMIZERS[optimizer](model.parameters())
    loader = DataLoader(TensorDataset(images, labels), BATCH, shuffle=True)
    losses: list[Any] = []
    times = []
    while len(losses) < steps:
        for x, y in loader:
            start = time.perf_counter()
            loss = nn.functional.cross_entropy(model(x), y)
            optimize.zero_grad()
            loss.backward()
            optimize.step()
            losses.append(loss.item())
            times.append(time.perf_counter() - start)
            if len(losses) == steps:
                break
    weights = np.concatenate([p.detach().numpy().reshape(-1) for p in model.parameters()])
    return _Run(np.array(losses), weights.astype(np.float64), 1e6 * median(times))


def compare_training(device: Device, dtype: str, optimizer: str, baseline: _Run) -> ParityRun:
    """Compare a training run on a device with the run on cpu."""
    limit = 0.0 if device.type == "cpu" else LIMITS[dtype]
    try:
        run = isolated(train, device, dtype, optimizer, len(baseline.losses))
    except Exception as error:
        note = f"{type(error).__name__}: {error}"
        return ParityRun(
            str(device), dtype, optimizer, [], np.inf, np.inf, np.inf, limit, float("nan"), note
        )
    off = np.abs(run.losses - baseline.losses) / np.max(baseline.losses)
    weights = np.linalg.norm(run.weights - baseline.weights) / np.linalg.norm(baseline.weights)
    largest, last, final = (
        float(x) if np.isfinite(x) else np.inf for x in (np.max(off), off[-1], weights)
    )
    return ParityRun(
        str(device), dtype, optimizer, run.losses.tolist(), largest, last, final, limit, run.step
    )


def isolated(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function that sets seeds, without changing the caller's seeds."""
    return copy_context().run(function, *arguments)
