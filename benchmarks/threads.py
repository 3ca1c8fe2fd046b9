"""One training step of the networks of `xgrad train`, with one BLAS thread and with all.

Blocks with one thread and with all alternate, alone and beside one busy process for each core. A
ratio is the time with one thread divided by the time with all: below 1, one thread is faster.
Columns have the largest product of weights with a batch, in multiply-adds, by which `xgrad train`
chooses the number of threads: `xgrad.cli.threads`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext

import xgrad
from benchmarks.environment import cores
from benchmarks.harness import Options, begin, worker_group
from benchmarks.load import busy
from benchmarks.report import Cells, Result, Table
from benchmarks.statistics import ratios
from benchmarks.step import scaled
from xgrad import nn, optim
from xgrad.backend.threads import set_num_threads
from xgrad.cli.models import make_model
from xgrad.cli.threads import largest_product

PEERS = {"1 thread": "1", "all threads": "all"}
RATIO = "1 thread / all threads"
#: Network, side of the images, hidden layers, batch size.
NETWORKS = (
    ("mlp", 8, (512, 256), 16),
    ("mlp", 28, (256, 128), 256),
    ("lenet", 28, (), 128),
    ("vit", 28, (), 128),
    ("mlp", 28, (1024, 1024), 128),
    ("cnn", 28, (), 128),
    ("mlp", 28, (1024, 1024), 512),
    ("mlp", 28, (2048, 2048), 512),
)
QUICK = (("mlp", 8, (4,), 8),)


class Steps:
    """Captured training steps with a number of threads."""

    def __init__(
        self, target: str, model: str, side: int, hidden: Sequence[int], batch: int, seconds: float
    ) -> None:
        set_num_threads(1 if target == "1" else cores())
        xgrad.manual_seed(0)
        self.network, self.seconds = (
            make_model(model, (side, side), 10, hidden, "relu", 0.0),
            seconds,
        )
        self.product = largest_product(self.network, xgrad.zeros((1, side * side)), batch)
        optimizer = optim.Adam(self.network.parameters(), lr=1e-4)
        x = xgrad.random.randn((batch, side * side))
        labels = xgrad.random.randint(0, 10, (batch,))

        @xgrad.capture
        def step() -> xgrad.Tensor:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self.network(x), labels)
            loss.backward()
            optimizer.step()
            return loss.detach()

        self.step = step
        for _ in range(3):  # the optimizer makes its state, and capture traces
            step()

    def largest(self) -> int:
        """Return the multiply-adds of the largest product."""
        return self.product

    def block(self) -> float:
        """Return the seconds of a step, measured over a block."""
        self.step()
        start, calls = time.perf_counter(), 0
        while (spent := time.perf_counter() - start) < self.seconds or not calls:
            self.step()
            calls += 1
        return spent / calls


def run(options: Options) -> Result:
    options = options.filled(repeats=5, seconds=0.3, threads=cores())
    result = begin("threads", __doc__ or "", options)
    (peers,) = options.chosen(PEERS)
    alone: Cells = {}
    beside: Cells = {}
    for model, side, hidden, batch in QUICK if options.quick else NETWORKS:
        network = {"model": model, "side": side, "hidden": hidden, "batch": batch}
        started = {**network, "seconds": options.seconds}
        name = f"{model} {','.join(map(str, hidden))}".strip() + f", {side}x{side}, {batch}"
        with worker_group(
            result, peers, "benchmarks.threads:Steps", name, started, options
        ) as all_:
            case = name
            for _, largest in all_.ask("largest"):
                case = f"{name}: {largest:.1e}"
            for _ in range(options.repeats or 1):
                for times, load in ((alone, nullcontext()), (beside, busy(cores()))):
                    with load:
                        for peer, seconds in all_.ask("block"):
                            times.setdefault(peer, {}).setdefault(case, []).append(seconds)
    result.tables = [
        Table("Time of a step alone", "ms", scaled(alone, 1e3)),
        Table("Time of a step beside busy processes", "ms", scaled(beside, 1e3), "bars"),
    ]
    if peers.keys() == PEERS.keys():
        one, every = PEERS
        quotients = {
            title: {case: ratios(x, times[every][case]) for case, x in times[one].items()}
            for title, times in {"alone": alone, "beside busy processes": beside}.items()
        }
        result.tables.append(Table(RATIO, "", quotients))
    return result
