"""One training step of an MLP: forward, backward and update, in float32.

The network has ReLU and softmax cross-entropy; the optimizer is plain SGD. Every peer starts from
the same weights and batch. To show that all compute the same, the first five losses must equal
NumPy's in float64, within a hundredth of their decrease.

The cost of a recording with planning is the time of the first captured call, in eager steps: trace,
passes and plan. The optimizer has taken its first step eagerly before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.harness import Expected, Options, begin, once, timed
from benchmarks.peers.by_hand import step_plain
from benchmarks.report import Cells, Result, Table
from benchmarks.statistics import ratios, spread
from benchmarks.worker import peer

PEERS = {
    "xgrad": "xgrad_peer:step",
    "xgrad captured": "xgrad_peer:step_native",
    "NumPy in place": "by_hand:step",
    "NumPy plain": "by_hand:step_plain",
    "PyTorch": "pytorch:step",
    "PyTorch compiled": "pytorch:step_compiled",
    "JAX jit": "jax_jit:step",
    "scikit-learn": "scikit_learn:step",
    "MyGrad": "my_grad:step",
    "HIPS autograd": "hips_autograd:step",
}
#: Numerators and denominators of ratios: the fastest of several peers.
RATIOS = {
    "PyTorch / xgrad": (["PyTorch"], ["xgrad"]),
    "xgrad / NumPy by hand": (["xgrad"], ["NumPy in place", "NumPy plain"]),
    "PyTorch / xgrad captured": (["PyTorch"], ["xgrad captured"]),
    "xgrad captured / NumPy by hand": (["xgrad captured"], ["NumPy in place", "NumPy plain"]),
    "xgrad captured / JAX jit": (["xgrad captured"], ["JAX jit"]),
}
NETWORKS = (
    ((2, 16, 16, 2), 32),
    ((784, 128, 10), 32),
    ((784, 256, 128, 10), 128),
    ((784, 1024, 1024, 10), 256),
)
QUICK = (((5, 4, 3), 8),)
RECORDED = {"recording with planning": "xgrad_peer:recording"}


class Recording:
    """Cost of a recording, measured in the process of a peer."""

    def __init__(self, target: str, case: Mapping[str, Any]) -> None:
        self.steps = peer(target)(**case)

    def measure(self) -> float:
        """Return the cost in eager steps."""
        return float(self.steps())


def run(options: Options) -> Result:
    options = options.filled()
    result = begin("step", __doc__ or "", options)
    cases = named(QUICK if options.quick else NETWORKS)
    (peers,) = options.chosen(PEERS)
    times = timed(result, peers, cases, options, expected)
    result.tables = [
        Table("Time of a step", "µs", scaled(times, 1e6), "bars"),
        Table("Ratios, block by block", "", compared(times, RATIOS)),
    ]
    if "xgrad captured" in peers:
        arguments = {name: {"case": case} for name, case in cases.items()}
        costs = once(result, RECORDED, "benchmarks.step:Recording", arguments, options)
        result.tables.append(Table("Cost of a recording, in eager steps", "", costs))
    return result


def named(networks: Sequence[tuple[Sequence[int], int]]) -> dict[str, dict[str, Any]]:
    """Return cases under names such as ``784-128-10, batch 32``."""
    return {
        f"{'-'.join(map(str, sizes))}, batch {batch}": {"sizes": list(sizes), "batch": batch}
        for sizes, batch in networks
    }


def expected(sizes: Sequence[int], batch: int, **other: Any) -> Expected:
    """Return the first five losses of NumPy in float64."""
    call = step_plain(sizes, batch, np.float64)
    losses = [float(call()) for _ in range(5)]
    return Expected(losses, (losses[0] - losses[-1]) / 100)


def scaled(cells: Cells, factor: float) -> Cells:
    """Return all samples in another unit."""
    return {
        row: {column: [factor * s for s in samples] for column, samples in columns.items()}
        for row, columns in cells.items()
    }


def compared(times: Cells, pairs: Mapping[str, tuple[list[str], list[str]]]) -> Cells:
    """Return the ratios of the fastest peer of one group to the fastest of another.

    A case is left out if a group has no peer for it.
    """
    cells: Cells = {}
    for name, groups in pairs.items():
        for case in dict.fromkeys(case for by_case in times.values() for case in by_case):
            above, below = (
                min(
                    (times[p][case] for p in peers if case in times.get(p, {})),
                    key=lambda s: spread(s).median,
                    default=None,
                )
                for peers in groups
            )
            if above and below:
                cells.setdefault(name, {})[case] = ratios(above, below)
    return cells
