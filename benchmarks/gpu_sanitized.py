"""Small captured programs for a memory checker: ``python -m benchmarks.gpu_sanitized mlp``.

``compute-sanitizer --tool memcheck python -m benchmarks.gpu_sanitized mlp`` checks a program for
accesses out of bounds, and for errors of calls to CUDA. A program compares its results, and ends
with an error if they are wrong. Arrays lie in blocks of CuPy's pools, and the checker only knows
whole blocks.
"""

from __future__ import annotations

import argparse
import gc
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

import xgrad
from benchmarks.harness import agree
from benchmarks.peers import xgrad_peer
from benchmarks.step import expected
from xgrad.capture import CaptureWarning

PARTS = (1 << 18, 2 << 18, 3 << 18)  # sizes of temporaries: no block serves for two of them


def mlp(device: str) -> None:
    """Replay training steps of an MLP, and compare the losses with NumPy's in float64."""
    sizes, batch = (33, 17, 5), 19  # no multiples of the sizes of blocks and vectors
    step, right = xgrad_peer.step_captured(sizes, batch, device), expected(sizes, batch)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CaptureWarning)
        losses = [float(step()) for _ in range(5)]
    assert agree(losses, right), f"expected the losses {right.values}, got {losses}"


def softmax(device: str) -> None:
    """Compare softmax and its gradient, eager and captured, with NumPy's."""
    x = np.random.default_rng(0).standard_normal((37, 1031)).astype(np.float32)
    y = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    y /= y.sum(axis=1, keepdims=True)
    g = np.cos(x.astype(np.float64))
    right = y * (g - (g * y).sum(axis=1, keepdims=True))

    def both(x: xgrad.Tensor, g: xgrad.Tensor) -> list[Any]:
        leaf = x.detach().requires_grad_()
        out = xgrad.nn.functional.softmax(leaf, axis=1)
        return [out.detach(), *xgrad.autograd.grad([out], [leaf], [g])]

    captured = xgrad.capture(both)
    inputs = [xgrad.asarray(value, device=device) for value in (x, g.astype(np.float32))]
    for step in (both, captured, captured, captured):
        for got, wanted in zip(step(*inputs), (y, right), strict=True):
            np.testing.assert_allclose(got.cpu().numpy(), wanted, rtol=1e-4, atol=1e-6)


def out_of_memory(device: str) -> None:
    """Capture a step with too little memory: it runs eagerly, with a warning and right results."""
    cupy: Any = import_module("cupy")
    pool = cupy.get_default_memory_pool()
    x = xgrad.ones(PARTS[-1], device=device)

    def step(x: xgrad.Tensor) -> xgrad.Tensor:
        zero = xgrad.zeros((), device=device)
        return sum(((x[:size] + 1).sum() for size in PARTS), zero)

    captured = xgrad.capture(step)
    first = float(captured(x))
    (program,) = captured._programs.values()
    needed = program.executor.nbytes
    del captured, program
    gc.collect()  # frees the graph
    pool.free_all_blocks()
    # The last temporary does not fit.
    pool.set_limit(size=xgrad.Device(device).memory()["reserved"] + needed - (1 << 20))
    captured = xgrad.capture(step)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CaptureWarning)
        values = [float(captured(x)) for _ in range(3)]
    assert values == [first] * 3 == [2.0 * sum(PARTS)] * 3, f"got {first}, then {values}"
    assert captured.refusal, "expected a refusal for want of memory, got a captured step"
    assert "OutOfMemoryError" in captured.refusal, captured.refusal
    assert len(caught) == 1, f"expected one warning, got {[str(each.message) for each in caught]}"


PROGRAMS: dict[str, Callable[[str], None]] = {
    "mlp": mlp,
    "softmax": softmax,
    "out-of-memory": out_of_memory,
}
ON_CUDA = ("out-of-memory",)  # they need CuPy's pool


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu_sanitized",
        description="Run a small captured program, for compute-sanitizer.",
    )
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("--device", default="cuda", help="default: %(default)s")
    options = parser.parse_args()
    PROGRAMS[options.program](options.device)
    print(f"{options.program}: right results on {options.device}")


if __name__ == "__main__":
    main()
