"""One training step beside other load: one busy process for each core, which leaves half of each core.

The ratios are times under load by twice the time alone, the fair share: 1 is a step that loses nothing by the load.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.environment import cores
from benchmarks.harness import Options, begin, timed
from benchmarks.models import MODELS, QUICK
from benchmarks.report import Cells, Result, Table
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
    cases = QUICK if options.quick else MODELS
    alone = timed(result, peers, cases, options)
    with busy(cores()):
        beside = timed(result, peers, cases, options)
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
    """Return times under load by twice the least time alone."""
    return {
        peer: {case: [x / (2 * min(alone[peer][case])) for x in times] for case, times in cases.items()}
        for peer, cases in beside.items()
        if all(case in alone.get(peer, {}) for case in cases)
    }
