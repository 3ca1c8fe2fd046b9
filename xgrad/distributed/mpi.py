"""Communication by MPI, through mpi4py."""

from __future__ import annotations

import os
import pickle
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from itertools import accumulate
from typing import Any

import numpy as np

from xgrad.backend.device import Device
from xgrad.distributed import supervision
from xgrad.distributed.communicator import END_OF_PROCESS, ENDS, Communicator, RankError
from xgrad.distributed.supervision import SIZES, launched
from xgrad.support.user_code import user_line

GRACE = 1.0  # seconds within which the other ranks have to end, too


class MPICommunicator(Communicator):
    """The processes that `mpiexec` or `srun` started.

    Arrays of libraries other than NumPy are copied through the host.
    """

    def __init__(self) -> None:
        try:
            from mpi4py import MPI
        except (ImportError, RuntimeError) as error:  # without mpi4py; without an MPI library
            raise ImportError(
                f"xgrad.distributed: MPI is missing: pip install 'xgrad[mpi]' ({error})"
            ) from error
        self._mpi, self._world = MPI, MPI.COMM_WORLD
        self.rank, self.size = self._world.Get_rank(), self._world.Get_size()
        if (expected := launched(SIZES)) not in (None, self.size):
            raise RuntimeError(
                f"xgrad.distributed: expected {expected} processes, as the launcher started, got"
                f" {self.size}: launch with the mpiexec of"
                f" {MPI.Get_library_version().split(',')[0].splitlines()[0]}"
            )

        self._ends = _channel_of_ends()
        self._header, self._headers = np.empty(2, np.int64), np.empty((self.size, 2), np.int64)

    def meet(self, call: str, nbytes: int = 0) -> list[int]:
        """Return the byte counts of all ranks.

        Raises RankError on all ranks if they are at different calls.
        """
        self._header[:] = zlib.crc32(call.encode()), nbytes
        self._world.Allgather(self._header, self._headers)
        headers = self._headers.tolist()
        first = headers[0][0]
        if any(header[0] != first for header in headers):
            raise RankError(_different(self._world.allgather((call, user_line()))))
        return [header[1] for header in headers]

    def all_end(self) -> bool:
        """Return whether all ranks call this within seconds, each before it ends by an error."""
        ends, deadline = self._ends.Ibarrier(), time.monotonic() + GRACE
        while not ends.Test():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.001)
        return True

    def broadcast_object(self, x: Any, call: str = "broadcast_object") -> Any:
        """Return the object of rank 0, pickled for the other ranks."""
        data = bytearray() if self.rank else bytearray(pickle.dumps(x, pickle.HIGHEST_PROTOCOL))
        size = self.meet(call, len(data))[0]
        if self.rank:
            data = bytearray(size)
        self._world.Bcast([data, self._mpi.BYTE])
        return pickle.loads(data) if self.rank else x

    def gather_objects(self, x: Any, call: str = "gather_objects") -> list[Any]:
        """Return the objects of all ranks, in order."""
        data = pickle.dumps(x, pickle.HIGHEST_PROTOCOL)
        sizes = self.meet(call, len(data))
        gathered = bytearray(sum(sizes))
        self._world.Allgatherv([data, self._mpi.BYTE], [gathered, sizes, self._mpi.BYTE])
        stops = accumulate(sizes)
        return [
            pickle.loads(memoryview(gathered)[stop - size : stop])
            for size, stop in zip(sizes, stops, strict=True)
        ]

    def sum_array(self, array: Any, device: Device) -> None:
        """Replace an array with at most one axis by its sum over all ranks."""
        self._meet_for("sum", array)
        self._sum(array, device)

    def sum_parts(self, array: Any, device: Device) -> None:
        """Replace this rank's part of a one-dimensional array by its sum over all ranks.

        The other parts become undefined.
        """
        self._meet_for("sum of parts", array)
        self._sum_parts(array, device)

    def gather_parts(self, array: Any, device: Device) -> None:
        """Replace each part of a one-dimensional array by the data of the rank that owns it."""
        self._meet_for("gathering of parts", array)
        self._gather_parts(array, device)

    def _meet_for(self, call: str, array: Any) -> None:
        self.meet(_call_on_array(call, tuple(array.shape), array.dtype))

    def _sum(self, array: Any, device: Device) -> None:
        with _on_host(array, device) as host:
            self._world.Allreduce(self._mpi.IN_PLACE, host)

    def _sum_parts(self, array: Any, device: Device) -> None:
        with _on_host(array, device) as host:
            counts = self._counts(host.size)
            total = np.empty(counts[self.rank], host.dtype)
            self._world.Reduce_scatter(host, total, counts)
            host[self.part(host.size)] = total

    def _gather_parts(self, array: Any, device: Device) -> None:
        with _on_host(array, device) as host:
            self._world.Allgatherv(self._mpi.IN_PLACE, [host, self._counts(host.size)])

    def _counts(self, size: int) -> list[int]:
        parts = [self.part(size, rank) for rank in range(self.size)]
        return [part.stop - part.start for part in parts]

    def abort(self, status: int = 1) -> None:
        """End all processes at once, after a message that names this one."""
        supervision.enter(supervision.ENDED)
        sys.stdout.flush()
        time.sleep(0.2)  # launchers drop output that they have not read yet
        self._world.Abort(status)
        os._exit(status)  # MPICH returns while its launcher ends the processes


@contextmanager
def _on_host(array: Any, device: Device) -> Iterator[np.ndarray]:
    """Yield an array as a NumPy array, and write it back unless both share memory."""
    backend = device.backend
    host = backend.to_host(array)
    if host is array:
        yield host
        return
    host = np.array(host)
    yield host
    array[...] = backend.from_host(host, device.index)


@lru_cache
def _call_on_array(call: str, shape: tuple[int, ...], dtype: Any) -> str:
    return f"the {call} of an array of shape {shape} and dtype {dtype}"


@cache
def _channel_of_ends() -> Any:
    """Return a copy of the communicator of all ranks, with separate messages.

    It is made once, by all ranks.
    """
    from mpi4py import MPI

    return MPI.COMM_WORLD.Dup()


def _different(calls: list[tuple[str, str]]) -> str:
    """Return the message on different calls of ranks, each with the line of the program.

    At fault are ranks that end something, such as the block of `world`, before the others. If there
    are none, the minority is at fault.
    """
    ranks: dict[str, list[int]] = {}
    for rank, (call, _) in enumerate(calls):
        ranks.setdefault(call, []).append(rank)
    ends = [call for call in ENDS if call in ranks]
    usual = max(ranks, key=lambda call: len(ranks[call]))
    if ends:
        at_fault = ranks[ends[0]]
    elif 2 * len(ranks[usual]) > len(calls):
        at_fault = [rank for rank, (call, _) in enumerate(calls) if call != usual]
    else:
        at_fault = []
    got = [
        f"{call} on {_names(group)}"
        + (f" ({calls[group[0]][1]})" if call != END_OF_PROCESS else "")
        for call, group in ranks.items()
    ]
    fault = f"came to {ends[0]} before the others" if ends else "made another call than the others"
    problem = f"{_names(at_fault)} of {len(calls)} {fault}: " if at_fault else ""
    return (
        f"{problem}expected the same calls on all ranks in the same order, got {' and '.join(got)}:"
        " give all ranks equal numbers of batches and steps"
    )


def _names(ranks: list[int]) -> str:
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"
