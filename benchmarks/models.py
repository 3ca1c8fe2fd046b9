"""One training step of small models: forward, backward and update, in float32.

The loss is softmax cross-entropy, the optimizer plain SGD. Every peer starts from the same weights
and batch. To show that all compute the same, the first five losses must equal xgrad's in float64,
within a hundredth of their decrease.
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
    "PyTorch compiled": "models_torch:step_compiled",
    "JAX jit": "models_jax:step",
}
RATIOS = {
    "PyTorch / xgrad": (["PyTorch"], ["xgrad"]),
    "PyTorch / xgrad captured": (["PyTorch"], ["xgrad captured"]),
    "PyTorch compiled / xgrad captured": (["PyTorch compiled"], ["xgrad captured"]),
    "JAX jit / xgrad captured": (["JAX jit"], ["xgrad captured"]),
}
MODELS: dict[str, dict[str, Any]] = {
    "LSTM, width 128, 64 steps, batch 32": {
        "model": "lstm",
        "batch": 32,
        "length": 64,
        "width": 128,
        "classes": 10,
    },
    "transformer encoder, 2 layers of width 128, 4 heads, length 64, batch 16": {
        "model": "encoder",
        "batch": 16,
        "length": 64,
        "width": 128,
        "heads": 4,
        "layers": 2,
        "classes": 10,
    },
    "GPT, 4 layers of width 128, 4 heads, length 64, batch 8": {
        "model": "gpt",
        "batch": 8,
        "length": 64,
        "width": 128,
        "heads": 4,
        "layers": 4,
        "classes": 100,
    },
    "LeNet, 28x28, batch 64": {"model": "lenet", "batch": 64, "size": 28, "classes": 10},
    "ResNet, 8 layers of width 16 to 64, 32x32, batch 32": {
        "model": "resnet",
        "batch": 32,
        "size": 32,
        "width": 16,
        "classes": 10,
    },
}
QUICK: dict[str, dict[str, Any]] = {
    "LSTM": {"model": "lstm", "batch": 3, "length": 4, "width": 5, "classes": 3},
    "transformer encoder": {
        "model": "encoder",
        "batch": 3,
        "length": 4,
        "width": 6,
        "heads": 2,
        "layers": 1,
        "classes": 3,
    },
    "GPT": {
        "model": "gpt",
        "batch": 3,
        "length": 4,
        "width": 6,
        "heads": 2,
        "layers": 2,
        "classes": 5,
    },
    "LeNet": {"model": "lenet", "batch": 3, "size": 12, "classes": 3},
    "ResNet": {"model": "resnet", "batch": 3, "size": 8, "width": 2, "classes": 3},
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
