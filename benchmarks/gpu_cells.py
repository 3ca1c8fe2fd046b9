"""The parts of ``make gpu-check`` that measure: a case is one cell, a peer's times for one problem.

The blocks of the peer alternate with blocks of a reference peer. Each has a process of its own,
which continues with its next case.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import xgrad
from benchmarks import bandwidth, gpu, models, ops, step
from benchmarks.harness import Expected, Options, Worker, timed
from benchmarks.peers import REPEATS
from benchmarks.report import Cells, Result
from benchmarks.statistics import ratios, short, spread

Figures = dict[str, Any]  # an entry "skipped" has the reason
Cases = dict[str, Callable[[], Figures | None]]
Arguments = Mapping[str, Any]
BANDWIDTH = {"xgrad": "bandwidth_xgrad:kernel", "PyTorch": "bandwidth_torch:kernel"}
#: Beginnings of reasons for which a peer is left out of all cases of a process.
ABSENT = ("is not installed", "finds no")


@dataclass
class Turns:
    """Cells that are measured in turns with a reference peer.

    A cell is the entry of a table with a title, the peer's row, and columns of figures. `reference`
    is the name and the target of the reference peer; a cell of its own has no other peer beside it.
    """

    options: Options
    expected: Callable[..., Expected] | None = None
    reference: tuple[str, str] | None = None
    scale: float = 1.0  # microseconds are of a call, divided by this number of repetitions
    _idle: dict[str, Worker] = field(default_factory=dict)
    _absent: dict[str, str] = field(default_factory=dict)  # reasons, by peer
    _expected: dict[str, Expected] = field(default_factory=dict)  # by title

    def __post_init__(self) -> None:
        weakref.finalize(self, _close, self._idle)  # when the last cell is dropped

    def cases(self, peers: Mapping[str, str], problems: Mapping[str, Arguments]) -> Cases:
        """Return the cells of all peers for each problem, by ``problem: peer``."""
        return {
            f"{title}: {peer}": partial(self.step, peer, target, title, arguments)
            for title, arguments in problems.items()
            for peer, target in peers.items()
        }

    def step(self, peer: str, target: str, title: str, arguments: Arguments) -> Figures:
        """Return microseconds, other figures of the peer, and the ratio to the reference."""
        times, details, reason = self.measure(peer, target, title, arguments)
        if reason:
            return {"skipped": f"{peer}: {reason}", title: {peer: {"µs": reason}}}
        micros = [1e6 * s / self.scale for s in times[peer][title]]
        low, _, high = map(short, spread(micros))
        row: dict[str, Any] = {"µs": digits(micros), "quartiles": f"{low} to {high}"}
        row |= {name: int(rows[peer][title][0]) for name, rows in details.items() if peer in rows}
        if self.reference and self.reference[0] in times.keys() - {peer}:
            name = self.reference[0]
            row[f"times {name}"] = digits(ratios(times[peer][title], times[name][title]))
        return {title: {peer: row}}

    def rate(
        self, peer: str, target: str, size: str, kernel: str, count: int, arguments: Arguments
    ) -> Figures:
        """Return GB/s for a number of bytes, beside the reference, which copies an array."""
        title = f"{kernel}, {size}"
        times, _, reason = self.measure(peer, target, title, arguments)
        if reason:
            return {"skipped": f"{peer}: {reason}", size: {kernel: {peer: reason}}}
        rates = [count / s / 1e9 for s in times[peer][title]]
        row: dict[str, Any] = {"MB": round(count / 1e6, 3), peer: digits(rates)}
        for name in {self.reference[0] if self.reference else ""} & times.keys():
            copied = 4 * bandwidth.COPY * arguments["elements"]
            copies = [copied / s / 1e9 for s in times[name][title]]
            row[f"{peer} / {name}"] = digits(ratios(rates, copies))
            row[name] = digits(copies)
        return {size: {kernel: row}}

    def measure(
        self, peer: str, target: str, title: str, arguments: Arguments
    ) -> tuple[Cells, dict[str, Cells], str]:
        """Return times, other figures, and the reason if the peer was left out.

        An error of xgrad is raised, an error of another peer is a reason.
        """
        result, details = Result("gpu-check", ""), dict[str, Cells]()
        if peer in self._absent:
            return {}, details, self._absent[peer]
        if self.expected and title not in self._expected:
            self._expected[title] = self.expected(**arguments)
        peers = {peer: target} | dict([self.reference] if self.reference else [])
        right = (lambda **_: self._expected[title]) if self.expected else None
        times = timed(
            result, peers, {title: arguments}, self.options, right, idle=self._idle, details=details
        )
        for reason in [*result.left_out.get(peer, {}), *result.failed.get(peer, {})]:
            assert peer in result.left_out or not peer.startswith("xgrad"), reason
            if any(words in reason for words in ABSENT):
                self._absent[peer] = reason
            return {}, details, reason
        return times, details, ""


def _close(workers: dict[str, Worker]) -> None:
    for worker in workers.values():
        worker.close()


def digits(samples: list[float]) -> float:
    """Return the median with four significant digits."""
    return float(f"{spread(samples).median:.4g}")


def settings(device: str, quick: bool, seconds: float = 0.05) -> Options:
    """Return the options of a part: short blocks, since a part has many cells."""
    if quick:
        return Options(quick=True, threads=1, device=device).filled()
    return Options(repeats=5, seconds=seconds, device=device).filled()


def rates(device: str, quick: bool = False) -> Cases:
    """Return the bandwidth of kernels, beside a plain copy."""
    options = settings(device, quick, 0.02)
    kernels = Turns(options, reference=("plain copy", "bandwidth_xgrad:plain_copy"))
    cases: Cases = {}
    total = xgrad.Device(device).memory().get("total")
    for elements in bandwidth.QUICK if quick else bandwidth.SIZES:
        if total and 4 * elements * bandwidth.ARRAYS > total:
            continue
        size = f"GB/s, {elements} elements of float32"
        for kernel, arrays in bandwidth.KERNELS.items():
            arguments = {"kernel": kernel, "elements": elements, "device": device}
            for peer, target in BANDWIDTH.items():
                cases[f"{kernel}, {elements} elements: {peer}"] = partial(
                    kernels.rate, peer, target, size, kernel, 4 * arrays * elements, arguments
                )
    return cases


def steps(device: str, quick: bool = False) -> Cases:
    """Return steps of MLPs, in full float32, and of a large one with TF32."""
    reference = ("xgrad captured", gpu.PEERS["xgrad captured"])

    def cells(networks: gpu.Networks, tf32: bool) -> Cases:
        options = settings(device, quick)
        turns = Turns(replace(options, tf32=tf32), step.expected, reference)
        problems = {
            name + ", TF32" * tf32: case | {"device": device, "tf32": tf32}
            for name, case in step.named(gpu.QUICK if quick else networks).items()
        }
        return turns.cases(gpu.PEERS, problems)

    small, medium, large = gpu.NETWORKS[:3]
    return cells([small, large, medium], tf32=False) | cells([large], tf32=True)


def trained_models(device: str, quick: bool = False) -> Cases:
    """Return steps of models: first of peers that start fast, and last compiled ones."""
    turns = Turns(
        settings(device, quick, 0.1),
        models.expected,
        ("xgrad captured", models.ON_DEVICE["xgrad captured"]),
    )
    problems = models.problems(quick, {"device": device})
    *fast, slower, slowest = models.ON_DEVICE
    return {
        name: cell
        for group in (fast, [slower], [slowest])
        for name, cell in turns.cases(
            {peer: models.ON_DEVICE[peer] for peer in group}, problems
        ).items()
    }


def speed(device: str, quick: bool = False) -> Cases:
    """Return single ops, launches included."""
    options = settings(device, quick)
    names = ops.OPS[:1] if quick else ops.OPS
    single = Turns(options, ops.expected, ("xgrad", gpu.LAUNCHES["xgrad"]), REPEATS)
    chains = Turns(options, ops.chained, ("xgrad", gpu.CHAINS["xgrad"]), ops.LENGTH)
    return {
        **single.cases(gpu.LAUNCHES, {name: {"name": name, "device": device} for name in names}),
        **chains.cases(gpu.CHAINS, {"chain": {"length": ops.LENGTH, "device": device}}),
    }
