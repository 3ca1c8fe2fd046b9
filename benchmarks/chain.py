"""A chain of a million additions: forward, backward and release, on one thread.

It shows recursion, and repeated traversals of the graph. MyGrad is not among the peers, because it
fails at a few thousand additions.
"""

from __future__ import annotations

from benchmarks.harness import Options, begin, once
from benchmarks.report import Result, Table
from benchmarks.statistics import ratios
from benchmarks.worker import peer

PEERS = {
    "xgrad": "xgrad_peer:additions",
    "PyTorch": "pytorch:additions",
    "HIPS autograd": "hips_autograd:additions",
}
PARTS = ("forward", "backward", "freed")


class Chain:
    """Measurement in the process of a peer."""

    def __init__(self, target: str, length: int) -> None:
        self.additions, self.length = peer(target), length

    def measure(self) -> dict[str, float]:
        """Return the seconds of each part, and of all parts together."""
        times = self.additions(self.length)
        parts = {
            part: after - before
            for part, before, after in zip(PARTS, times, times[1:], strict=False)
        }
        return {**parts, "all": times[-1] - times[0]}


def run(options: Options) -> Result:
    options = options.filled(threads=1, repeats=5)
    result = begin("chain", __doc__ or "", options)
    length = 1000 if options.quick else 1_000_000
    case = f"{length} additions"
    (peers,) = options.chosen(PEERS)
    figures_by_peer = once(
        result, peers, "benchmarks.chain:Chain", {case: {"length": length}}, options
    )
    samples = {
        name: {part: [figures[part] for figures in cases[case]] for part in (*PARTS, "all")}
        for name, cases in figures_by_peer.items()
    }
    result.tables = [Table(f"Chain of {case}", "s", samples, "bars")]
    if "xgrad" in samples:
        xgrad = samples["xgrad"]["all"]
        cells = {
            f"{name} / xgrad": {"all": ratios(parts["all"], xgrad)}
            for name, parts in samples.items()
            if name != "xgrad" and len(parts["all"]) == len(xgrad)
        }
        result.tables.append(Table("Ratios, round by round", "", cells))
    return result
