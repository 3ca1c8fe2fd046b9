"""Training by several processes: steps and messages here, and a model of up to 1024 ranks.

Each rank has one BLAS thread, and the ranks share a batch. With n bytes of gradients, p ranks, a
latency L and a bandwidth B, an all-reduce takes 2 (p - 1) L + 2 (p - 1) / p n / B as a ring.
Recursive halving and doubling (R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19, 2005) takes 2
log2(p) L in place of 2 (p - 1) L. With sharded state, a reduce-scatter and an all-gather together
have the same cost, and a rank updates n / p.

On this machine, L and B are fitted to the all-reduces of 2 ranks. The model of a step adds one
rank's step on its part of the batch and the messages. Both times are multiplied by p / cores if
there are more ranks than cores.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks import environment
from benchmarks.harness import Failed, Options, begin
from benchmarks.report import Cells, Result, Table
from benchmarks.statistics import spread
from benchmarks.step import scaled

NETWORKS = {
    "784-256-128-10, batch 256": ([784, 256, 128, 10], 256),
    "784-1024-1024-10, batch 512": ([784, 1024, 1024, 10], 512),
}
QUICK = {"8-6-3, batch 16": ([8, 6, 3], 16)}
COUNTS = (1, 1000, 10_000, 100_000, 1_000_000)  # elements of float32 arrays
RANKS = (1, 2, 4)

#: A cluster: 100 million parameters, 0.2 s for forward and backward of one rank's batch, 10 ms for
#: an update of all parameters, 2 µs and 25 GB/s between ranks. Assumed, not measured.
CLUSTER = {"parameters": 1e8, "compute": 0.2, "update": 0.01, "latency": 2e-6, "bandwidth": 25e9}


def all_reduce(
    nbytes: float, ranks: int, latency: float, bandwidth: float, ring: bool = True
) -> float:
    """Return the modelled seconds of an all-reduce."""
    messages = 2 * (ranks - 1) if ring else 2 * math.ceil(math.log2(ranks))
    return messages * latency + 2 * (ranks - 1) / ranks * nbytes / bandwidth


def fitted(samples: dict[str, list[float]]) -> tuple[float, float]:
    """Return latency and bandwidth of 2 ranks, by least squares of relative errors."""
    pairs = [
        (4 * int(count), spread(seconds).median)
        for count, seconds in samples.items()
        if count != "number"
    ]
    nbytes, seconds = np.array(pairs).T
    # seconds = 2 latency + nbytes / bandwidth
    slope, start = np.polyfit(nbytes, seconds, 1, w=1 / seconds)
    return max(start, 0.0) / 2, 1 / slope


def measured(ranks: int, requests: list[tuple[str, dict[str, Any]]], options: Options) -> list[Any]:
    """Return the results of requests to a job with a number of ranks."""
    launch = ["-m", "xgrad.distributed.launch", "-n", str(ranks), "benchmarks.ranks"]
    command = [
        sys.executable,
        *(launch if ranks > 1 else ["-m", "benchmarks.ranks"]),
        json.dumps(requests),
    ]
    env = environment.for_workers(1, "cpu", options.tree)
    done = subprocess.run(command, env=env, cwd=environment.ROOT, capture_output=True, text=True)
    if done.returncode:
        raise Failed(done.stderr.strip().splitlines()[-1])
    results: list[Any] = json.loads(done.stdout)
    return results


def predicted() -> Cells:
    """Return the modelled efficiency of weak scaling on the cluster, by number of ranks."""
    cells: Cells = {}
    nbytes, compute, update = 4 * CLUSTER["parameters"], CLUSTER["compute"], CLUSTER["update"]
    for ranks in (2, 4, 8, 16, 64, 256, 1024):
        for name, ring, shard in (
            ("ring", True, False),
            ("halving and doubling", False, False),
            ("halving and doubling, sharded", False, True),
        ):
            message = all_reduce(nbytes, ranks, CLUSTER["latency"], CLUSTER["bandwidth"], ring)
            step = compute + message + (update / ranks if shard else update)
            cells.setdefault(name, {})[str(ranks)] = [100 * (compute + update) / step]
    return cells


def add_measurements(result: Result, options: Options) -> None:
    """Add the tables of measurements on this machine."""
    networks, counts = (QUICK, COUNTS[:3]) if options.quick else (NETWORKS, COUNTS)
    common = {"repeats": options.repeats, "seconds": options.seconds}
    cases = [(name, shard) for name in networks for shard in (False, True)]
    times, ratios, state, reductions, overlapped = (Cells() for _ in range(5))
    outcomes, alone = {}, {}
    for ranks in RANKS:
        requests = [
            (
                "steps",
                {"sizes": networks[name][0], "batch": networks[name][1], "shard": shard, **common},
            )
            for name, shard in cases
        ]
        parts = [
            ("steps", {"sizes": sizes, "batch": max(batch // ranks, 1), "shard": False, **common})
            for sizes, batch in networks.values()
        ]
        print(f"distributed: {ranks} ranks", file=sys.stderr, flush=True)
        alone[ranks] = dict(zip(networks, measured(1, parts, options), strict=True))
        *steps, sums = measured(
            ranks, [*requests, ("messages", {"counts": counts, **common})], options
        )
        outcomes[ranks] = dict(zip(cases, steps, strict=True))
        if ranks > 1:
            reductions[f"{ranks} ranks"] = scaled({"": sums}, 1e6)[""]
        if ranks == 2:
            latency, bandwidth = fitted(sums)
            number = spread(sums["number"]).median
    result.settings |= {
        "fitted latency, µs": 1e6 * latency,
        "fitted bandwidth, GB/s": bandwidth / 1e9,
    }
    for ranks in RANKS:
        busy = max(1, ranks / environment.cores())
        for name in networks:
            part = alone[ranks][name]
            step, update = (spread(part[key]).median for key in ("step", "update"))
            message = all_reduce(4 * part["parameters"], ranks, latency, bandwidth, ring=False)
            for shard in (False, True) if ranks > 1 else (False,):
                outcome = outcomes[ranks][name, shard]
                row = (
                    f"{ranks} ranks, sharded"
                    if shard
                    else f"{ranks} ranks"
                    if ranks > 1
                    else "1 rank"
                )
                times.setdefault(row, {})[name] = [1e3 * x for x in outcome["step"]]
                state.setdefault(row, {})[name] = [outcome["state"] / 1e6]
                own = step - update * (1 - 1 / ranks if shard else 0)
                model = busy * (own + message + number * math.log2(ranks))
                ratios.setdefault(row, {})[name] = [model / spread(outcome["step"]).median]
    count, size = (1000, 8) if options.quick else (1_000_000, 512)
    (both,) = measured(2, [("overlap", {"count": count, "size": size, **common})], options)
    overlapped["2 ranks"] = scaled({"": both}, 1e3)[""]
    result.tables += [
        Table("Time of a step", "ms", times, "bars"),
        Table("Modelled time / measured time", "", ratios),
        Table("State of AdamW in a rank", "MB", state),
        Table(
            "Time of an all-reduce of float32, and of a message of one number",
            "µs",
            reductions,
            corner="count",
        ),
        Table("Products during an all-reduce", "ms", overlapped),
    ]


def run(options: Options) -> Result:
    options = options.filled(threads=1, repeats=7)
    result = begin("distributed", __doc__ or "", options)
    if find_spec("mpi4py") is None:
        result.leave_out("ranks", "mpi4py is not installed", "this machine")
    else:
        try:
            add_measurements(result, options)
        except Failed as error:
            result.fail("ranks", str(error), "this machine")
    result.tables.append(
        Table("Modelled efficiency of a cluster", "%", predicted(), "lines", "ranks")
    )
    return result
