"""Growth of the cost of a step with batch, width and depth, and of a chain with its length.

Networks are 784-256-128-10 (batch), w-w-w-10 at batch 64 (width), and layers of 64 at batch 32
(depth). The chain is the one of the benchmark `ops`: ``z = (z + y) * y`` on 8x8 matrices, forward
and backward. The exponent p of cost = c sizeᵖ is fitted to the upper half of the sizes by least
squares in logarithms.
"""

from __future__ import annotations

from typing import Any

from benchmarks.harness import Options, begin, timed
from benchmarks.ops import chained
from benchmarks.report import Result, Table
from benchmarks.statistics import exponent, spread
from benchmarks.step import expected, scaled

PEERS = {
    "xgrad": "xgrad_peer:step",
    "xgrad captured": "xgrad_peer:step_captured",
    "PyTorch": "pytorch:step",
}
CHAINS = {"xgrad": "xgrad_peer:chain", "PyTorch": "pytorch:chain"}
SIZES = {
    "batch": (1, 4, 16, 64, 256, 1024, 4096),
    "width": (16, 32, 64, 128, 256, 512, 1024, 2048),
    "depth": (1, 2, 4, 8, 16, 32, 64),
    "chain": (10, 100, 1000, 10_000, 100_000),
}


def case(kind: str, size: int) -> dict[str, Any]:
    """Return the arguments of a measurement."""
    if kind == "batch":
        return {"sizes": [784, 256, 128, 10], "batch": size}
    if kind == "width":
        return {"sizes": [size, size, size, 10], "batch": 64}
    if kind == "depth":
        return {"sizes": [64] * size + [10], "batch": 32}
    return {"length": size}


def run(options: Options) -> Result:
    options = options.filled(repeats=5)
    result = begin("scaling", __doc__ or "", options)
    exponents = Table("Exponents", "", {})
    steps, chains = options.chosen(PEERS, CHAINS)
    for kind, sizes in SIZES.items():
        cases = {str(size): case(kind, size) for size in (sizes[:3] if options.quick else sizes)}
        chain = kind == "chain"
        times = timed(
            result, chains if chain else steps, cases, options, chained if chain else expected
        )
        title = "Time of a chain" if chain else f"Time of a step by {kind}"
        result.tables.append(
            Table(title, "µs", scaled(times, 1e6), "lines", "ops" if chain else kind)
        )
        for peer, cells in times.items():
            if len(cells) >= 3:
                medians = [spread(samples).median for samples in cells.values()]
                exponents.cells.setdefault(peer, {})[kind] = [
                    exponent([float(size) for size in cells], medians)
                ]
    result.tables.append(exponents)
    return result
