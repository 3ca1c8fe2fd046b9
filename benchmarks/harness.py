"""Measurements of peers in fresh processes, in alternating blocks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import xgrad
from benchmarks import environment
from benchmarks.peers import LeftOut
from benchmarks.report import Cells, Result

REST = 0.15  # seconds before each block: OpenBLAS's threads spin for 0.1 s after their last product


class UsageError(Exception):
    """A user error, in one line."""


class Failed(Exception):
    """An error in a worker, with its traceback."""


@dataclass(frozen=True)
class Options:
    """Options of the command line.

    None and empty values stand for the defaults of the benchmark.
    """

    quick: bool = False
    peers: tuple[str, ...] = ()
    threads: int | None = None
    repeats: int | None = None
    seconds: float | None = None
    device: str = "cpu"
    tf32: bool = False  # whether products on a GPU may use TF32
    commit: str = "HEAD"
    tree: Path = environment.ROOT  # where the measured xgrad is
    trees: Mapping[str, Path] = field(default_factory=dict)  # other trees, by peer

    def filled(self, *, threads: int = 2, repeats: int = 9, seconds: float = 0.1) -> Options:
        """Return the options, completed by defaults."""
        repeats, seconds = (2, 0.001) if self.quick else (repeats, seconds)
        threads = self.threads or threads
        repeats = self.repeats or repeats
        seconds = self.seconds or seconds
        return replace(self, threads=threads, repeats=repeats, seconds=seconds)

    def of_peer(self, peer: str) -> Options:
        """Return the options of one peer, with its tree."""
        return replace(self, tree=self.trees.get(peer, self.tree))

    def chosen(self, *groups: Mapping[str, str]) -> list[dict[str, str]]:
        """Return the selected peers of each group."""
        known = dict.fromkeys(name for group in groups for name in group)
        if unknown := [name for name in self.peers if name not in known]:
            raise UsageError(
                f"--peers: expected some of {', '.join(known)}; got {', '.join(unknown)}"
            )
        return [
            {name: group[name] for name in group if not self.peers or name in self.peers}
            for group in groups
        ]


def begin(name: str, about: str, options: Options) -> Result:
    """Return a result with settings and environment, but without measurements."""
    env = environment.for_workers(options.threads or 1, options.device)
    settings = {
        "threads": options.threads,
        "repeats": options.repeats,
        "seconds a block": options.seconds,
    }
    return Result(name, about, settings=settings, environment=environment.describe(env))


def hardware(device: str) -> dict[str, Any]:
    """Return the description of a device, and the versions of its libraries."""
    try:
        on = xgrad.Device(device)
    except xgrad.DeviceError as error:
        raise UsageError(f"{error} (`--device cpu` runs without a GPU)") from error
    return {"device": on.backend.describe(on.index), **on.backend.versions()}


class Worker:
    """A peer in a process of its own, which works only during a request."""

    def __init__(self, subject: str, arguments: Mapping[str, Any], options: Options) -> None:
        env = environment.for_workers(
            options.threads or 1, options.device, options.tree, options.tf32
        )
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            env=env,
            cwd=None if options.tree == environment.ROOT else options.tree,
        )
        if options.threads == 1 and hasattr(os, "sched_setaffinity"):
            # All on the same core: cores of a virtual machine differ in speed, depending on other
            # machines.
            os.sched_setaffinity(self.process.pid, {max(os.sched_getaffinity(0))})
        self.begun: Any = None
        try:
            self.begin(subject, arguments)
        except BaseException:
            self.close()
            raise

    def begin(self, subject: str, arguments: Mapping[str, Any]) -> None:
        """Make the subject of the next requests, unless it is the last one."""
        if self.begun != (subject, arguments):
            self.ask(subject, **arguments)
            self.begun = subject, arguments

    def ask(self, name: str, **arguments: Any) -> Any:
        """Return the result of a request; raise LeftOut or Failed."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            print(json.dumps([name, arguments]), file=stdin, flush=True)
            line = stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise Failed(f"the process ended with exit status {self.process.wait()}")
        reply = json.loads(line)
        if "left_out" in reply:
            raise LeftOut(reply["left_out"])
        if "failed" in reply:
            raise Failed(reply["failed"])
        return reply.get("result")

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()


class WorkerGroup:
    """The workers of all peers for one case.

    Peers that fail, or lack the case, are recorded and removed.
    """

    def __init__(self, result: Result, case: str, rest: float) -> None:
        self.result, self.case, self.rest, self.workers = result, case, rest, dict[str, Worker]()

    def attempt(self, peer: str, action: Callable[[], Any]) -> Any:
        """Return the result of an action, or None if the peer was removed."""
        try:
            return action()
        except LeftOut as error:
            self.result.leave_out(peer, str(error), self.case)
        except Failed as error:
            print(f"{peer}, {self.case}: {error}", file=sys.stderr)
            self.result.fail(peer, str(error).strip().splitlines()[-1], self.case)
        self.remove(peer)

    def remove(self, peer: str) -> None:
        if worker := self.workers.pop(peer, None):
            worker.close()

    def ask(self, name: str, **arguments: Any) -> Iterator[tuple[str, Any]]:
        """Send a request to one worker after the other, and yield the answers."""
        for peer, worker in list(self.workers.items()):
            time.sleep(self.rest)
            answer = self.attempt(peer, partial(worker.ask, name, **arguments))
            if peer in self.workers:
                yield peer, answer


@contextmanager
def worker_group(
    result: Result,
    peers: Mapping[str, str],
    subject: str,
    case: str,
    arguments: Mapping[str, Any],
    options: Options,
    idle: dict[str, Worker] | None = None,
) -> Iterator[WorkerGroup]:
    """Start a fresh process for each peer, one after the other, and end all of them at the end.

    Workers in `idle`, from the previous case, are reused, and kept.
    """
    print(f"{result.name}: {case}: {', '.join(peers)}", file=sys.stderr, flush=True)
    quiet = options.quick or options.threads == 1 or options.device != "cpu"
    group = WorkerGroup(result, case, 0.0 if quiet else REST)
    try:
        for peer, target in peers.items():
            case_arguments = {"target": target, **arguments}
            if worker := (idle or {}).pop(peer, None):
                group.workers[peer] = worker
                group.attempt(peer, partial(worker.begin, subject, case_arguments))
            elif worker := group.attempt(
                peer, partial(Worker, subject, case_arguments, options.of_peer(peer))
            ):
                group.workers[peer] = worker
        yield group
    finally:
        if idle is None:
            for worker in group.workers.values():
                worker.close()
        else:
            idle |= group.workers


@dataclass(frozen=True)
class Expected:
    """Expected results of the first calls, and their tolerance."""

    values: list[float]
    tolerance: float


def timed(
    result: Result,
    peers: Mapping[str, str],
    cases: Mapping[str, Mapping[str, Any]],
    options: Options,
    expected: Callable[..., Expected] | None = None,
    cells: Cells | None = None,
    idle: dict[str, Worker] | None = None,
    details: dict[str, Cells] | None = None,
) -> Cells:
    """Return the seconds of a call for each peer and case, in alternating blocks of the peers.

    A peer fails if its first values differ from the `expected` ones. On a GPU, which takes seconds
    to initialize, a process runs one case after the other. `cells`, if given, are filled during the
    measurement. `idle`, if given, are workers of an earlier call; they are kept for the next one.
    `details`, if given, are filled with the peers' other figures, by their names.
    """
    cells = {} if cells is None else cells
    own = None if idle is not None or options.device == "cpu" else dict[str, Worker]()
    idle = own if idle is None else idle
    try:
        for case, arguments in cases.items():
            right = expected(**arguments) if expected else None
            started = {"case": arguments, "seconds": options.seconds}
            blocks: dict[str, list[float]] = {}
            with worker_group(
                result, peers, "benchmarks.worker:Blocks", case, started, options, idle
            ) as group:
                for peer, values in group.ask("first_values"):
                    if right and not agree(values, right):
                        result.fail(
                            peer,
                            f"computes something else: expected {right.values}, got {values}",
                            case,
                        )
                        group.remove(peer)
                for _ in range(options.repeats or 1):
                    for peer, seconds in group.ask("block"):
                        blocks.setdefault(peer, []).append(seconds)
                for peer in peers:
                    # A peer may have failed in a later block.
                    if peer in group.workers and peer in blocks:
                        cells.setdefault(peer, {})[case] = blocks[peer]
                if details is not None:
                    for peer, figures in group.ask("details"):
                        for name, figure in figures.items():
                            details.setdefault(name, {}).setdefault(peer, {})[case] = [figure]
    finally:
        for worker in (own or {}).values():
            worker.close()
    return {peer: cells[peer] for peer in peers if peer in cells}


def agree(values: list[float], expected: Expected) -> bool:
    """Return whether all values are within the tolerance; NaN never is."""
    pairs = zip(values, expected.values, strict=True)
    return all(abs(value - right) <= expected.tolerance for value, right in pairs)


def once(
    result: Result,
    peers: Mapping[str, str],
    subject: str,
    cases: Mapping[str, Mapping[str, Any]],
    options: Options,
) -> dict[str, dict[str, list[Any]]]:
    """Return the results of the subject's `measure` for each peer and case.

    Each repeat runs in a fresh process.
    """
    results: dict[str, dict[str, list[Any]]] = {}
    for case, arguments in cases.items():
        for _ in range(options.repeats or 1):
            for peer, target in peers.items():  # one process at a time
                with worker_group(
                    result, {peer: target}, subject, case, arguments, options
                ) as group:
                    for _, figures in group.ask("measure"):
                        results.setdefault(peer, {}).setdefault(case, []).append(figures)
    return results
