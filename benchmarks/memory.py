"""Memory of training steps: at the start, at the peak, and its growth.

The resident memory is measured in a fresh process: after import and set-up, before the first step;
and at the peak of the steps, beyond the first figure. The growth of the peak is from the first half
of many steps to the second, after a warm-up of a tenth of them; the number of Python objects is
compared before and after both halves. On a machine that cannot reset the peak, the peak of the
set-up may hide the peak of the steps.
"""

from __future__ import annotations

import gc
import mmap
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.harness import Options, begin, once
from benchmarks.report import Result, Table
from benchmarks.step import NETWORKS, QUICK, named
from benchmarks.worker import peer, value

PEERS = {
    "xgrad": "xgrad_peer:step",
    "xgrad captured": "xgrad_peer:step_captured",
    "NumPy in place": "by_hand:step",
    "NumPy plain": "by_hand:step_plain",
    "PyTorch": "pytorch:step",
    "JAX jit": "jax_jit:step",
}
MIB = 1 << 20
PROCESS = Path("/proc/self")


def resident() -> int:
    """Return the resident bytes of this process: the current ones on Linux, else the peak."""
    try:
        return int((PROCESS / "statm").read_text().split()[1]) * mmap.PAGESIZE
    except OSError:
        return peak()


def reset_peak() -> None:
    """Reset the peak to the current size, if Linux permits it."""
    with suppress(OSError):
        (PROCESS / "clear_refs").write_text("5")


def peak() -> int:
    """Return the largest resident size so far, in bytes."""
    try:
        lines = (PROCESS / "status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        import resource  # missing on Windows

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << (
            0 if sys.platform == "darwin" else 10
        )


class Steps:
    """Measurement in the process of a peer."""

    def __init__(self, target: str, case: Mapping[str, Any], warm_up: int, steps: int) -> None:
        self.step, self.warm_up, self.steps = peer(target)(**case), warm_up, steps

    def take(self, steps: int) -> int:
        """Return the peak during a number of steps."""
        result: Any = 0
        reset_peak()
        for _ in range(steps):
            result = self.step()
        value(result)
        return peak()

    def measure(self) -> dict[str, float]:
        """Return memory in MiB, and the growth of the number of objects."""
        gc.collect()
        start = resident()
        most = self.take(self.warm_up)
        gc.collect()
        objects = len(gc.get_objects())
        first, second = (self.take(self.steps // 2) for _ in range(2))
        gc.collect()
        return {
            "start": start / MIB,
            "peak": (max(most, first, second) - start) / MIB,
            "growth": (second - first) / MIB,
            "objects": len(gc.get_objects()) - objects,
        }


def run(options: Options) -> Result:
    options = options.filled(repeats=3)
    result = begin("memory", __doc__ or "", options)
    networks = named(QUICK if options.quick else NETWORKS)
    many = [20] if options.quick else [10_000, 1000, 1000, 200]
    cases = {
        f"{name}, {steps} steps": {"case": case, "warm_up": steps // 10, "steps": steps}
        for (name, case), steps in zip(networks.items(), many, strict=True)
    }
    (peers,) = options.chosen(PEERS)
    figures_by_peer = once(result, peers, "benchmarks.memory:Steps", cases, options)
    for title, unit, key in (
        ("Before the first step", "MiB", "start"),
        ("Peak memory of steps above the start", "MiB", "peak"),
        ("Growth of the peak from the first half of the steps to the second", "MiB", "growth"),
        ("Growth of the number of Python objects", "", "objects"),
    ):
        cells = {
            name: {case: [figures[key] for figures in rounds] for case, rounds in by_case.items()}
            for name, by_case in figures_by_peer.items()
        }
        result.tables.append(Table(title, unit, cells, "bars" if key == "peak" else ""))
    return result
