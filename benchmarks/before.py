"""Comparison of this tree with a commit, by default HEAD: ops, training steps and import.

Blocks of the two alternate. The benchmark fails if the median of the ratios of a case is above
1.05. The benchmarks of this tree measure both, so the commit must have the public names that
`peers/xgrad_peer.py` uses.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import environment
from benchmarks.harness import Options, UsageError, begin, timed
from benchmarks.ops import LENGTH, OPS
from benchmarks.report import Cells, Result, Table
from benchmarks.statistics import ratios, spread
from benchmarks.step import NETWORKS, QUICK, named, scaled

BOUND = 1.05  # largest ratio to the time at the commit
NOW, BEFORE = "this tree", "commit"


def run(options: Options) -> Result:
    options = options.filled(threads=1, repeats=15)
    result = begin("before", __doc__ or "", options)
    with tree_of(options.commit) as tree:
        options = replace(options, trees={BEFORE: tree})
        times: Cells = {NOW: {}, BEFORE: {}}
        ops = {name: {"name": name} for name in (OPS[:1] if options.quick else OPS)}
        steps = named(QUICK if options.quick else NETWORKS)
        groups: list[tuple[str, str, Mapping[str, Mapping[str, Any]]]] = [
            ("op: {}", "xgrad_peer:op", ops),
            ("chain of {}", "xgrad_peer:chain", {str(LENGTH): {"length": LENGTH}}),
            ("step: {}", "xgrad_peer:step", steps),
            ("captured step: {}", "xgrad_peer:step_captured", steps),
        ]
        for title, target, group in groups:
            titled = {title.format(case): arguments for case, arguments in group.items()}
            for peer, cells in timed(
                result, {NOW: target, BEFORE: target}, titled, options
            ).items():
                times[peer] |= cells
        for peer, samples in import_times(options, tree).items():
            times[peer]["import"] = samples
    cases = [case for case in times[NOW] if case in times[BEFORE]]
    compared = {case: {"ratio": ratios(times[NOW][case], times[BEFORE][case])} for case in cases}
    result.tables = [
        Table("Time", "µs", scaled(times, 1e6), "bars"),
        Table(f"{NOW} / {BEFORE} {options.commit}", "", compared),
    ]
    if not options.quick:
        check(result, compared)
    return result


@contextmanager
def tree_of(commit: str) -> Iterator[Path]:
    """Yield a temporary folder with the library at a commit."""
    command = ["git", "archive", commit, "xgrad", "backends"]
    archive = subprocess.run(command, cwd=environment.ROOT, capture_output=True)
    if archive.returncode:
        raise UsageError(
            f"--commit: expected a commit of the repository, got {commit}:"
            f" {archive.stderr.decode().strip()}"
        )
    with TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
            files.extractall(folder, filter="data")
        yield Path(folder)


def import_times(options: Options, tree: Path) -> dict[str, list[float]]:
    """Return the seconds of ``import xgrad`` after NumPy's import in new interpreters, by peer."""
    statement = (
        "import time, numpy; start = time.perf_counter(); import xgrad; print(time.perf_counter() -"
        " start)"
    )
    trees = {NOW: environment.ROOT, BEFORE: tree}
    samples: dict[str, list[float]] = {peer: [] for peer in trees}
    for i in range((options.repeats or 1) + 1):
        for peer, folder in trees.items():
            env = environment.for_workers(1, "cpu", folder)
            command = [sys.executable, "-c", statement]
            done = subprocess.run(command, check=True, env=env, cwd=folder, capture_output=True)
            if i:  # the first round fills the caches
                samples[peer].append(float(done.stdout))
    return samples


def check(result: Result, compared: Cells) -> None:
    """Record a failure for each case with a median of the ratios above the bound."""
    for case, cells in compared.items():
        if (median := spread(cells["ratio"]).median) > BOUND:
            result.fail(
                NOW, f"takes {median:.2f} times as long as before: expected at most {BOUND}", case
            )
