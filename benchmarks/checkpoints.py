"""The cost of checkpoints: `xgrad train mnist` without any, and with one every 100 steps.

Runs alternate, each in a fresh process. "epochs" is the time of training and evaluation that the
run itself measures. "all" is the time of the command, which also reads the data and writes the
files of each epoch. The benchmark fails if checkpoints add more than 3 % to the command, by the
median of the rounds. `--quick` trains on the embedded digits, and has no bound.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path

from benchmarks.harness import Options, UsageError, begin, once
from benchmarks.problems import images
from benchmarks.report import Result, Table
from benchmarks.statistics import ratios, spread
from xgrad.cli import main
from xgrad.data import DataError

BOUND = 1.03  # largest ratio to the time without checkpoints
PEERS = {"no checkpoints": "", "every 100 steps": "--checkpoint-every=100"}


class Command:
    """A training run in this process."""

    def __init__(self, target: str, quick: bool) -> None:
        data = ["digits", "--epochs=1", "--batch-size=14"] if quick else ["mnist", "--no-download"]
        self.argv = ["train", *data, "--device=cpu", "--quiet", *filter(None, [target])]

    def measure(self) -> dict[str, float]:
        """Return the seconds of the epochs, and of the whole command."""
        with tempfile.TemporaryDirectory(dir=os.curdir) as folder, redirect_stdout(io.StringIO()):
            start = time.perf_counter()
            status = main([*self.argv, "--out", folder])
            seconds = time.perf_counter() - start
            if status:
                raise RuntimeError(f"exit status {status}")
            lines = [
                json.loads(line) for line in Path(folder, "timing.jsonl").read_text().splitlines()
            ]
        return {
            "epochs": sum(
                x for line in lines for name, x in line.items() if name.endswith("_seconds")
            ),
            "all": seconds,
        }


def run(options: Options) -> Result:
    options = options.filled(repeats=11)
    result = begin("checkpoints", __doc__ or "", options)
    try:
        images(options.quick)
    except DataError as error:
        raise UsageError(str(error)) from error
    case = "digits" if options.quick else "mnist"
    (peers,) = options.chosen(PEERS)
    figures = once(
        result, peers, "benchmarks.checkpoints:Command", {case: {"quick": options.quick}}, options
    )
    samples = {
        peer: {part: [run[part] for run in cases[case]] for part in ("epochs", "all")}
        for peer, cases in figures.items()
    }
    result.tables = [Table(f"Training run on {case}", "s", samples, "bars")]
    if samples.keys() == PEERS.keys():
        without, with_them = samples.values()
        cells = {part: ratios(with_them[part], without[part]) for part in without}
        result.tables.append(
            Table("Ratios, round by round", "", {"every 100 steps / no checkpoints": cells})
        )
        if not options.quick:
            check(result, cells)
    return result


def check(result: Result, cells: Mapping[str, Sequence[float]]) -> None:
    """Record a failure if the median ratio of the command is above the bound."""
    if (median := spread(cells["all"]).median) > BOUND:
        reason = (
            f"takes {median:.3f} times as long as without checkpoints: expected at most {BOUND}"
        )
        result.fail("every 100 steps", reason, "all")
