"""Measurements of one rank, for the benchmark `distributed`: arguments and results in JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

import xgrad
from benchmarks.problems import mlp
from xgrad import nn, optim
from xgrad.distributed import Communicator, DataParallel, world

Samples = list[float]  # seconds


def blocks(ranks: Communicator, call: Callable[[], Any], repeats: int, seconds: float) -> Samples:
    """Return the seconds of a call in several blocks; all ranks make equally many calls."""
    call()
    start = time.perf_counter()
    call()
    count = ranks.broadcast_object(max(1, round(seconds / (time.perf_counter() - start))))
    samples = []
    for _ in range(repeats):
        ranks.gather_objects(None)
        start = time.perf_counter()
        for _ in range(count):
            call()
        samples.append((time.perf_counter() - start) / count)
    return samples


def steps(
    ranks: Communicator, sizes: Sequence[int], batch: int, shard: bool, **options: Any
) -> dict[str, Any]:
    """Return the times of an AdamW step and its update, and the bytes of the optimizer's state."""
    problem = mlp(sizes, batch)
    xgrad.manual_seed(0)
    model = nn.MLP(list(sizes))
    optimizer = optim.AdamW(model.parameters(), lr=1e-4)
    parallel = DataParallel(model, optimizer, ranks, shard)
    rows = ranks.part(batch)
    x, y = xgrad.asarray(problem.x[rows]), xgrad.asarray(problem.y[rows])

    def backward() -> tuple[xgrad.Tensor, None]:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        return loss.detach(), None

    def step() -> None:
        if ranks.size == 1:
            backward()
        else:
            parallel.reduce_gradients(backward()[0], len(y))
        optimizer.step()

    times = blocks(ranks, step, **options)
    updates = blocks(ranks, optimizer.step, **options)
    state = sum(x._data.nbytes for flat in optimizer.flats() for x in flat.arrays.values())
    return {
        "step": times,
        "update": updates,
        "state": state,
        "parameters": sum(p.size for p in model.parameters()),
    }


def messages(ranks: Communicator, counts: Sequence[int], **options: Any) -> dict[str, Samples]:
    """Return the times of all-reduces of float32 arrays, and of a message of one number."""
    cpu, results = xgrad.Device("cpu"), {}
    for count in counts:
        call = partial(ranks.sum_array, np.zeros(count, np.float32), cpu)
        results[str(count)] = blocks(ranks, call, **options)
    results["number"] = blocks(ranks, lambda: ranks.gather_objects((0.5, 32)), **options)
    return results


def overlap(ranks: Communicator, count: int, size: int, **options: Any) -> dict[str, Samples]:
    """Return the times of matrix products, an all-reduce, both in turn, and both at once."""
    from mpi4py import MPI

    array, x = np.zeros(count, np.float32), np.ones((size, size), np.float32)

    def products() -> None:
        for _ in range(8):
            x @ x

    def reduce() -> None:
        MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, array)

    def in_turn() -> None:
        products()
        reduce()

    def at_once() -> None:
        request = MPI.COMM_WORLD.Iallreduce(MPI.IN_PLACE, array)
        products()
        request.Wait()

    calls = {"products": products, "all-reduce": reduce, "in turn": in_turn, "at once": at_once}
    return {name: blocks(ranks, call, **options) for name, call in calls.items()}


MEASUREMENTS: Mapping[str, Callable[..., Any]] = {
    "steps": steps,
    "messages": messages,
    "overlap": overlap,
}

if __name__ == "__main__":
    with world() as ranks:
        results = [
            MEASUREMENTS[name](ranks, **arguments) for name, arguments in json.loads(sys.argv[1])
        ]
        if ranks.rank == 0:
            print(json.dumps(results))
