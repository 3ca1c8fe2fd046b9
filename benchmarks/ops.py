"""Overhead of an op: 8x8 matrices of float32, on one thread.

Both operands require gradients, except for "no grad". The chain is ``z = (z + y) * y``, 50 times,
forward and backward from a gradient of ones, after which the gradients are cleared; its figure is
the time of one of the 100 ops. The results must agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.harness import Expected, Options, begin, timed
from benchmarks.peers import REPEATS
from benchmarks.peers.by_hand import op
from benchmarks.problems import operands
from benchmarks.report import Cells, Result, Table
from benchmarks.step import compared, scaled
from benchmarks.worker import value

PEERS = {
    "xgrad": "xgrad_peer:op",
    "NumPy": "by_hand:op",
    "PyTorch": "pytorch:op",
    "JAX": "jax_jit:op",
    "MyGrad": "my_grad:op",
}
CHAINS = {
    "xgrad": "xgrad_peer:chain",
    "PyTorch": "pytorch:chain",
    "MyGrad": "my_grad:chain",
    "HIPS autograd": "hips_autograd:chain",
}
RATIOS = {
    f"PyTorch / {peer}": (["PyTorch"], [peer]) for peer in PEERS | CHAINS if peer != "PyTorch"
}
OPS = ("add", "multiply", "add a scalar", "matmul", "relu", "sum", "add, no grad")
LENGTH = 100


def run(options: Options) -> Result:
    options = options.filled(threads=1, repeats=21, seconds=0.05)
    result = begin("ops", __doc__ or "", options)
    peers, chains = options.chosen(PEERS, CHAINS)
    times = measured(result, peers, chains, options)
    result.tables = [
        Table("Time of an op", "µs", scaled(times, 1e6), "bars"),
        Table("Ratios, block by block", "", compared(times, RATIOS)),
    ]
    return result


def measured(
    result: Result,
    peers: Mapping[str, str],
    chains: Mapping[str, str],
    options: Options,
    **device: str,
) -> Cells:
    """Return the seconds of each op, and of one op of the chain."""
    ops = {name: {"name": name, **device} for name in (OPS[:1] if options.quick else OPS)}
    times = scaled(timed(result, peers, ops, options, expected), 1 / REPEATS)
    case = {"chain": {"length": LENGTH, **device}}
    for peer, cells in scaled(timed(result, chains, case, options, chained), 1 / LENGTH).items():
        times.setdefault(peer, {}).update(cells)
    return times


def expected(name: str, **device: str) -> Expected:
    """Return NumPy's result."""
    right = value(op(name)())
    return Expected([right] * 5, 1e-5 * abs(right))


def chained(length: int, **device: str) -> Expected:
    """Return the sum of the gradient of y, from z' = (z + y) + y (z' + 1) in float64."""
    z, y = (x.astype(np.float64) for x in operands())
    slope: Any = 0.0
    for _ in range(length // 2):
        z, slope = (z + y) * y, z + y + y * (slope + 1)
    return Expected([float(slope.sum())] * 5, 1e-4 * float(slope.sum()))
