"""One training step of small models: forward, backward and update, in float32.

Softmax cross-entropy, plain SGD. Every peer starts from the same weights and batch. To show that all compute the same,
the first five losses must be those of xgrad in float64, within a hundredth of their decrease.
"""

from __future__ import annotations

from typing import Any

from benchmarks.harness import Expected, Options, begin, timed
from benchmarks.peers.models_xgrad import step
from benchmarks.report import Result, Table
from benchmarks.step import compared, scaled

PEERS = {
    "xgrad": "models_xgrad:step",
    "xgrad captured": "models_xgrad:step_captured",
    "PyTorch": "models_torch:step",
    "JAX jit": "models_jax:step",
}
RATIOS = {
    "PyTorch / xgrad": (["PyTorch"], ["xgrad"]),
    "PyTorch / xgrad captured": (["PyTorch"], ["xgrad captured"]),
    "JAX jit / xgrad captured": (["JAX jit"], ["xgrad captured"]),
}
MODELS: dict[str, dict[str, Any]] = {
    "LSTM, width 128, 64 steps, batch 32": {"model": "lstm", "batch": 32, "length": 64, "width": 128, "classes": 10},
}
QUICK: dict[str, dict[str, Any]] = {
    "LSTM": {"model": "lstm", "batch": 3, "length": 4, "width": 5, "classes": 3},
}


def run(options: Options) -> Result:
    options = options.filled(seconds=0.3)
    result = begin("models", __doc__ or "", options)
    (peers,) = options.chosen(PEERS)
    times = timed(result, peers, QUICK if options.quick else MODELS, options, expected)
    result.tables = [
        Table("Time of a step", "ms", scaled(times, 1e3), "bars"),
        Table("Ratios, block by block", "", compared(times, RATIOS)),
    ]
    return result


def expected(model: str, **sizes: int) -> Expected:
    """Return the first five losses of xgrad in float64."""
    call = step(model, dtype="float64", **sizes)
    losses = [float(call()) for _ in range(5)]
    return Expected(losses, abs(losses[0] - losses[-1]) / 100)
