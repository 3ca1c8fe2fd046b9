"""The processes of a job: their communicator, and what happens if one of them fails or is killed."""

from __future__ import annotations

import os
import signal
import socket
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType

from xgrad.backend.device import Device
from xgrad.distributed.communicator import Communicator, RankError
from xgrad.distributed.mpi import RANKS, SIZES, MPICommunicator, launched


@contextmanager
def world(device: str | Device = "cpu") -> Iterator[Communicator]:
    """Connect the processes that a launcher started; if one of them raises an error, end all, with its rank.

    Parameters
    ----------
    device : str or Device, default "cpu"
        The device of the tensors: those of ``cuda`` pass by NCCL (not yet run on a GPU), all others by MPI.

    Yields
    ------
    Communicator
        That of all ranks; of this process alone if no launcher started it, which needs no MPI.

    Raises
    ------
    ImportError
        If the process was launched, and mpi4py, MPI or NCCL is missing.
    RuntimeError
        If the launcher belongs to another MPI library than mpi4py found.

    Examples
    --------
    >>> import xgrad
    >>> with xgrad.distributed.world() as ranks:
    ...     print(f"rank {ranks.rank} of {ranks.size}")
    rank 0 of 1
    """
    device = Device(device)
    communicator = connect(device)
    try:
        yield communicator
        communicator.gather_objects(None)  # a launcher may end all ranks as soon as one has ended
    except (SystemExit, GeneratorExit):
        raise
    except RankError as error:
        if communicator.size == 1:
            raise
        if communicator.rank == 0:
            print(f"xgrad.distributed: {error}", file=sys.stderr, flush=True)
        communicator.gather_objects(None)  # all ranks know, and end after the message
        raise SystemExit(1) from error
    except BaseException as error:
        if communicator.size > 1:
            traceback.print_exc()
            _report(communicator.rank, communicator.size, f"failed: {type(error).__name__}: {error}")
            communicator.abort()
        raise


def connect(device: Device) -> Communicator:
    """Return the communicator of the launched processes, or of this one."""
    if launched(RANKS) is None or launched(SIZES) in (None, 1):
        return Communicator()
    if (name := device.backend.communicator) is None:
        return MPICommunicator()
    communicator: Communicator = import_module(name).Communicator(device)
    return communicator


def supervise() -> None:
    """Continue in a child process, while this one waits for it, and names the rank if it is killed.

    To be called before MPI is initialized. Without a launcher, or where processes cannot be forked, it does nothing.
    """
    rank, size = launched(RANKS), launched(SIZES)
    if rank is None or size is None or size == 1 or not hasattr(os, "fork"):
        return
    stopped: list[int] = []
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _end_with_parent()
        return

    def forward(number: int, frame: FrameType | None) -> None:
        stopped.append(number)
        os.kill(child, number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, forward)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status < 0 and not stopped:
        _report(rank, size, f"was killed by {signal.Signals(-status).name} (process {child} on {socket.gethostname()})")
    os._exit(status if status >= 0 else 128 - status)


def _report(rank: int, size: int, event: str) -> None:
    sys.stderr.write(f"xgrad.distributed: rank {rank} of {size} {event}\n")  # at once, unlike print
    sys.stderr.flush()


def _end_with_parent() -> None:
    """Let the kernel kill this process when its parent ends, such as by the launcher; Linux only.

    A signal to the group of the parent, such as Ctrl-C from a launcher, then reaches this process once, by `forward`.
    """
    if sys.platform == "linux":
        import ctypes

        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
