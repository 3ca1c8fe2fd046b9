"""One training step of small models: forward, backward and update, in float32.

The loss is softmax cross-entropy, the optimizer plain SGD. Every peer starts from the same weights
and batch. To show that all compute the same, the first five losses must equal xgrad's in float64,
within a hundredth of their decrease.

On another device than `cpu`, the default of `xgrad.capture` is measured, beside PyTorch's eager
step, its replay as a CUDA graph, its compiled step and JAX's `jit`, all in full float32 (no TF32).
Launches are the nodes of a CUDA graph: kernels, copies and memsets. Bytes reserved are of all pools
of the process; of them, bytes of the program belong to a captured step.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from benchmarks.__main__ import main
from benchmarks.harness import Expected, Options, begin, hardware, timed
from benchmarks.peers.models_xgrad import step
from benchmarks.report import Cells, Result, Table
from benchmarks.step import compared, scaled

PEERS = {
    "xgrad": "models_xgrad:step",
    "xgrad captured": "models_xgrad:step_captured",
    "PyTorch": "models_torch:step",
    "PyTorch compiled": "models_torch:step_compiled",
    "JAX jit": "models_jax:step",
}
#: Peers on another device than `cpu`, which also return figures beside the time.
ON_DEVICE = {
    "xgrad": "models_xgrad:step_on",
    "xgrad captured": "models_xgrad:captured_on",
    "PyTorch": "models_torch:step_on",
    "PyTorch CUDA graph": "models_torch:graph_on",
    "JAX jit": "models_jax:step",
    "PyTorch compiled": "models_torch:compiled_on",
}
RATIOS = {
    "PyTorch / xgrad": (["PyTorch"], ["xgrad"]),
    "PyTorch / xgrad captured": (["PyTorch"], ["xgrad captured"]),
    "PyTorch compiled / xgrad captured": (["PyTorch compiled"], ["xgrad captured"]),
    "JAX jit / xgrad captured": (["JAX jit"], ["xgrad captured"]),
}
GRAPH_RATIOS = {
    "PyTorch CUDA graph / xgrad captured": (["PyTorch CUDA graph"], ["xgrad captured"]),
    "xgrad / xgrad captured": (["xgrad"], ["xgrad captured"]),
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
    on_cpu = options.device == "cpu"
    device = {} if on_cpu else hardware(options.device)
    options = options.filled(seconds=0.3)
    result = begin("models", __doc__ or "", options)
    result.environment |= device
    (peers,) = options.chosen(PEERS if on_cpu else ON_DEVICE)
    details: dict[str, Cells] = {}
    cases = problems(options.quick, {} if on_cpu else {"device": options.device})
    times = timed(result, peers, cases, options, expected, details=details)
    result.tables = [
        Table(
            "Time of a step",
            "ms" if on_cpu else "µs",
            scaled(times, 1e3 if on_cpu else 1e6),
            "bars",
        ),
        Table(
            "Ratios, block by block",
            "",
            compared(times, RATIOS if on_cpu else RATIOS | GRAPH_RATIOS),
        ),
        *[Table(name[0].upper() + name[1:], "", cells) for name, cells in details.items()],
    ]
    return result


def problems(quick: bool, more: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the arguments of all models, and `more` arguments, by the names of the columns."""
    return {name: {**sizes, **more} for name, sizes in (QUICK if quick else MODELS).items()}


def expected(model: str, device: str = "cpu", **sizes: int) -> Expected:
    """Return the first five losses of xgrad in float64, always from `cpu`."""
    call = step(model, dtype="float64", **sizes)
    losses = [float(call()) for _ in range(5)]
    return Expected(losses, abs(losses[0] - losses[-1]) / 100)


if __name__ == "__main__":
    sys.exit(main(["models", *sys.argv[1:]]))
