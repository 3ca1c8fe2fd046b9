"""One training step under other load: one busy process for each core.

The load leaves half of each core. Blocks alone and under load alternate. A ratio is the time under
load divided by the fair share, which is twice the time alone just before. At a ratio of 1, a step
loses nothing more by the load.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from benchmarks.environment import cores
from benchmarks.harness import Options, begin, worker_group
from benchmarks.models import MODELS, QUICK
from benchmarks.report import Cells, Result, Table
from benchmarks.statistics import ratios
from benchmarks.step import scaled

PEERS = {
    "xgrad": "models_xgrad:step",
    "xgrad captured": "models_xgrad:step_captured",
    "xgrad captured by NumPy": "models_xgrad:step_captured_by_numpy",
    "PyTorch": "models_torch:step",
}


def run(options: Options) -> Result:
    options = options.filled(seconds=0.5, repeats=5)
    result = begin("load", __doc__ or "", options)
    (peers,) = options.chosen(PEERS)
    alone: Cells = {}
    beside: Cells = {}
    for case, arguments in (QUICK if options.quick else MODELS).items():
        started = {"case": arguments, "seconds": options.seconds}
        with worker_group(
            result, peers, "benchmarks.worker:Blocks", case, started, options
        ) as group:
            for _ in range(options.repeats or 1):
                for times, load in ((alone, nullcontext()), (beside, busy(cores()))):
                    with load:
                        for peer, seconds in group.ask("block"):
                            times.setdefault(peer, {}).setdefault(case, []).append(seconds)
            # peers that failed, if only in a later block
            for peer in peers.keys() - group.workers.keys():
                for times in (alone, beside):
                    times.get(peer, {}).pop(case, None)
    result.tables = [
        Table("Time of a step alone", "ms", scaled(alone, 1e3)),
        Table("Time of a step under load", "ms", scaled(beside, 1e3), "bars"),
        Table("Time under load by the fair share", "", shares(alone, beside)),
    ]
    return result


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Run processes that compute without end."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def shares(alone: Cells, beside: Cells) -> Cells:
    """Return times under load divided by twice the time alone, block by block."""
    return {
        peer: {
            case: [ratio / 2 for ratio in ratios(times, alone[peer][case])]
            for case, times in cases.items()
        }
        for peer, cases in beside.items()
    }
