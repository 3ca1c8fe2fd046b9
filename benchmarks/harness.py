"""Peers in fresh processes that take turns, and what is asked of them all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from benchmarks import environment
from benchmarks.peers import LeftOut
from benchmarks.report import Cells, Result

REST = 0.15  # seconds before each block: OpenBLAS's threads spin on for 0.1 s after their last product


class UsageError(Exception):
    """A command that cannot be carried out: why, in one line."""


class Failed(Exception):
    """What went wrong in a worker: its traceback."""


@dataclass(frozen=True)
class Options:
    """What was asked for on the command line; None and nothing stand for what the benchmark thinks best."""

    quick: bool = False
    peers: tuple[str, ...] = ()
    threads: int | None = None
    repeats: int | None = None
    seconds: float | None = None
    device: str = "cpu"

    def filled(self, *, threads: int = 2, repeats: int = 9, seconds: float = 0.1) -> Options:
        """Return options with nothing left open."""
        repeats, seconds = (2, 0.001) if self.quick else (repeats, seconds)
        return replace(
            self,
            threads=self.threads or threads,
            repeats=self.repeats or repeats,
            seconds=self.seconds or seconds,
        )

    def chosen(self, *groups: Mapping[str, str]) -> list[dict[str, str]]:
        """Return the peers that were asked for, of each group of those that there are."""
        known = dict.fromkeys(name for group in groups for name in group)
        if unknown := [name for name in self.peers if name not in known]:
            raise UsageError(f"--peers: expected some of {', '.join(known)}; got {', '.join(unknown)}")
        return [{name: group[name] for name in group if not self.peers or name in self.peers} for group in groups]


def begin(name: str, about: str, options: Options) -> Result:
    """Return a result that says how it is about to be measured, and on what."""
    env = environment.for_workers(options.threads or 1, options.device)
    settings = {"threads": options.threads, "repeats": options.repeats, "seconds a block": options.seconds}
    return Result(name, about, settings=settings, environment=environment.describe(env))


class Worker:
    """One peer in a process of its own, which does something only when asked, while we wait."""

    def __init__(self, subject: str, arguments: Mapping[str, Any], options: Options) -> None:
        env = environment.for_workers(options.threads or 1, options.device)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            env=env,
        )
        if options.threads == 1 and hasattr(os, "sched_setaffinity"):
            # The same core for all: those of a virtual machine differ, and change, by what its neighbours do.
            os.sched_setaffinity(self.process.pid, {max(os.sched_getaffinity(0))})
        try:
            self.ask(subject, **arguments)
        except BaseException:
            self.close()
            raise

    def ask(self, name: str, **arguments: Any) -> Any:
        """Return what a method returns; raise LeftOut or Failed."""
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


class Crew:
    """The workers of all peers for one case; who cannot take part, or fails, is noted in the result and leaves."""

    def __init__(self, result: Result, case: str, rest: float) -> None:
        self.result, self.case, self.rest, self.workers = result, case, rest, dict[str, Worker]()

    def attempt(self, peer: str, do: Callable[[], Any]) -> Any:
        """Return what comes of it, None if the peer had to leave."""
        try:
            return do()
        except LeftOut as error:
            self.result.leave_out(peer, str(error), self.case)
        except Failed as error:
            print(f"{peer}, {self.case}: {error}", file=sys.stderr)
            self.result.fail(peer, str(error).strip().splitlines()[-1], self.case)
        self.dismiss(peer)

    def dismiss(self, peer: str) -> None:
        if worker := self.workers.pop(peer, None):
            worker.close()

    def ask(self, name: str, **arguments: Any) -> Iterator[tuple[str, Any]]:
        """Ask one after the other, and yield what they say."""
        for peer, worker in list(self.workers.items()):
            time.sleep(self.rest)
            answer = self.attempt(peer, partial(worker.ask, name, **arguments))
            if peer in self.workers:
                yield peer, answer


@contextmanager
def crew(
    result: Result,
    peers: Mapping[str, str],
    subject: str,
    case: str,
    arguments: Mapping[str, Any],
    options: Options,
    idle: dict[str, Worker] | None = None,
) -> Iterator[Crew]:
    """Start a fresh process for each peer, one after the other, and end them all at the end.

    Those that are `idle` from the case before are taken again, and are idle afterwards.
    """
    print(f"{result.name}: {case}: {', '.join(peers)}", file=sys.stderr, flush=True)
    quiet = options.quick or options.threads == 1 or options.device != "cpu"
    members = Crew(result, case, 0.0 if quiet else REST)
    try:
        for peer, target in peers.items():
            given = {"target": target, **arguments}
            if worker := (idle or {}).pop(peer, None):
                members.workers[peer] = worker
                members.attempt(peer, partial(worker.ask, subject, **given))
            elif worker := members.attempt(peer, partial(Worker, subject, given, options)):
                members.workers[peer] = worker
        yield members
    finally:
        if idle is None:
            for worker in members.workers.values():
                worker.close()
        else:
            idle |= members.workers


@dataclass(frozen=True)
class Expected:
    """What must come of the first calls, and how far from it a peer may be."""

    values: list[float]
    tolerance: float


def timed(
    result: Result,
    peers: Mapping[str, str],
    cases: Mapping[str, Mapping[str, Any]],
    options: Options,
    expected: Callable[..., Expected] | None = None,
    cells: Cells | None = None,
) -> Cells:
    """Return the seconds of a call, for each peer and case block by block, the blocks of all peers in turn.

    Whose first values are not what is `expected` of the case computes something else: it fails. On a GPU, which takes
    seconds to begin with, a process does one case after the other. `cells` are filled as it goes, if they are given.
    """
    cells = {} if cells is None else cells
    idle: dict[str, Worker] | None = None if options.device == "cpu" else {}
    try:
        for case, arguments in cases.items():
            right = expected(**arguments) if expected else None
            started = {"case": arguments, "seconds": options.seconds}
            found: dict[str, list[float]] = {}
            with crew(result, peers, "benchmarks.worker:Blocks", case, started, options, idle) as members:
                for peer, values in members.ask("first_values"):
                    if right and not agree(values, right):
                        result.fail(peer, f"computes something else: expected {right.values}, got {values}", case)
                        members.dismiss(peer)
                for _ in range(options.repeats or 1):
                    for peer, seconds in members.ask("block"):
                        found.setdefault(peer, []).append(seconds)
                for peer in peers:
                    if peer in members.workers and peer in found:  # it may have failed half way
                        cells.setdefault(peer, {})[case] = found[peer]
    finally:
        for worker in (idle or {}).values():
            worker.close()
    return {peer: cells[peer] for peer in peers if peer in cells}


def agree(values: list[float], expected: Expected) -> bool:
    """Return whether all values are near what is expected; NaN is not."""
    pairs = zip(values, expected.values, strict=True)
    return all(abs(value - right) <= expected.tolerance for value, right in pairs)


def once(
    result: Result,
    peers: Mapping[str, str],
    subject: str,
    cases: Mapping[str, Mapping[str, Any]],
    options: Options,
) -> dict[str, dict[str, list[Any]]]:
    """Return what `measure` of the subject says, for each peer and case of as many fresh processes as repeats."""
    found: dict[str, dict[str, list[Any]]] = {}
    for case, arguments in cases.items():
        for _ in range(options.repeats or 1):
            for peer, target in peers.items():  # no two processes at a time
                with crew(result, {peer: target}, subject, case, arguments, options) as members:
                    for _, figures in members.ask("measure"):
                        found.setdefault(peer, {}).setdefault(case, []).append(figures)
    return found
