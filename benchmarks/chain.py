"""A chain of a million additions, forward, backward and freed, on one thread.

Recursion, or a graph that is searched too often, shows here. MyGrad is not among the peers: it fails at a few thousand.
"""

from __future__ import annotations

from benchmarks.harness import Options, begin, once
from benchmarks.report import Result, Table
from benchmarks.statistics import ratios
from benchmarks.worker import peer

PEERS = {"xgrad": "ours:additions", "PyTorch": "pytorch:additions", "HIPS autograd": "hips_autograd:additions"}
PARTS = ("forward", "backward", "freed")


class Chain:
    """The worker's side."""

    def __init__(self, target: str, length: int) -> None:
        self.additions, self.length = peer(target), length

    def measure(self) -> dict[str, float]:
        """Return the seconds of each part, and of all."""
        times = self.additions(self.length)
        parts = {part: after - before for part, before, after in zip(PARTS, times, times[1:], strict=False)}
        return {**parts, "all": times[-1] - times[0]}


def run(options: Options) -> Result:
    options = options.filled(threads=1, repeats=5)
    result = begin("chain", __doc__ or "", options)
    length = 1000 if options.quick else 1_000_000
    case = f"{length} additions"
    (peers,) = options.chosen(PEERS)
    found = once(result, peers, "benchmarks.chain:Chain", {case: {"length": length}}, options)
    samples = {
        name: {part: [figures[part] for figures in cases[case]] for part in (*PARTS, "all")}
        for name, cases in found.items()
    }
    result.tables = [Table(case, "s", samples, "bars")]
    if "xgrad" in samples:
        others = {f"{name} / xgrad": found for name, found in samples.items() if name != "xgrad"}
        cells = {
            name: {"all": ratios(found["all"], samples["xgrad"]["all"])}
            for name, found in others.items()
            if len(found["all"]) == len(samples["xgrad"]["all"])
        }
        result.tables.append(Table("Ratios, round by round", "", cells))
    return result
