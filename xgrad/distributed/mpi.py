"""Communication by MPI, through mpi4py."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from xgrad.backend.device import Device
from xgrad.distributed.communicator import Communicator

#: Environment variables of a launched process, by launcher: MPICH, Open MPI, Slurm.
RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")


def launched(names: tuple[str, ...]) -> int | None:
    """Return the rank, or the number of ranks, that a launcher gave this process; None without a launcher."""
    return next((int(os.environ[name]) for name in names if name in os.environ), None)


class MPICommunicator(Communicator):
    """The processes that `mpiexec` or `srun` started. Arrays of other libraries than NumPy pass through the host."""

    def __init__(self) -> None:
        try:
            from mpi4py import MPI
        except (ImportError, RuntimeError) as error:  # without mpi4py; without an MPI library
            raise ImportError(f"xgrad.distributed: MPI is missing: pip install 'xgrad[mpi]' ({error})") from error
        self._mpi, self._world = MPI, MPI.COMM_WORLD
        self.rank, self.size = self._world.Get_rank(), self._world.Get_size()
        if (expected := launched(SIZES)) not in (None, self.size):
            raise RuntimeError(
                f"xgrad.distributed: expected {expected} processes, as the launcher started, got {self.size}: "
                f"launch with the mpiexec of {MPI.Get_library_version().split(',')[0].splitlines()[0]}"
            )

    def broadcast_object(self, x: Any) -> Any:
        """Return the object of rank 0, pickled for the others."""
        return self._world.bcast(x)

    def gather_objects(self, x: Any) -> list[Any]:
        """Return the objects of all ranks, in order."""
        return list(self._world.allgather(x))

    def sum_array(self, array: Any, device: Device) -> None:
        """Replace an array of one axis or none by its sum over all ranks."""
        with _on_host(array, device) as host:
            self._world.Allreduce(self._mpi.IN_PLACE, host)

    def sum_parts(self, array: Any, device: Device) -> None:
        """Replace the rank's part of an array of one axis by its sum over all ranks; other parts become undefined."""
        with _on_host(array, device) as host:
            counts = self._counts(host.size)
            total = np.empty(counts[self.rank], host.dtype)
            self._world.Reduce_scatter(host, total, counts)
            host[self.part(host.size)] = total

    def gather_parts(self, array: Any, device: Device) -> None:
        """Replace each part of an array of one axis by that of the rank to which it belongs."""
        with _on_host(array, device) as host:
            self._world.Allgatherv(self._mpi.IN_PLACE, [host, self._counts(host.size)])

    def _counts(self, size: int) -> list[int]:
        parts = [self.part(size, rank) for rank in range(self.size)]
        return [part.stop - part.start for part in parts]

    def abort(self) -> None:
        """End all processes at once."""
        sys.stdout.flush()
        time.sleep(0.2)  # launchers drop the output that they have not read yet
        self._world.Abort(1)
        os._exit(1)  # MPICH returns while its launcher ends the processes


@contextmanager
def _on_host(array: Any, device: Device) -> Iterator[np.ndarray]:
    """Yield an array as one of NumPy, and write that back unless it has the same memory."""
    backend = device.backend
    host = backend.to_host(array)
    if host is array:
        yield host
        return
    host = np.array(host)
    yield host
    array[...] = backend.from_host(host, device.index)
