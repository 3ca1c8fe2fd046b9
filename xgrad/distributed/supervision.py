"""The process of a rank, and a second one that waits for it, to name the rank however it ends."""

from __future__ import annotations

import mmap
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from types import FrameType

#: Environment variables of a launched process, by launcher: MPICH, Open MPI, Slurm.
RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")

#: Phases of a rank: before `world`; in its block; after it; at its end, which was reported or is
#: the end of all ranks.
BEFORE, INSIDE, OUTSIDE, ENDED = range(4)
_PLACES = (
    "before it entered the block of world()",
    "in the block of world()",
    "after the block of world()",
)
_phase = mmap.mmap(-1, 1)  # shared with the process that waits


def launched(names: tuple[str, ...]) -> int | None:
    """Return the rank, or the number of ranks, that a launcher set; None without a launcher."""
    return next((int(os.environ[name]) for name in names if name in os.environ), None)


def enter(phase: int) -> None:
    """Set the phase of this rank, which the supervising process reads when this one ends."""
    _phase[0] = phase


def report(rank: int, size: int, event: str) -> None:
    """Print what happened to a rank, and wait until a launcher has read it.

    A launcher may drop output when it ends a job.
    """
    # in one piece, unlike print
    sys.stderr.write(f"xgrad.distributed: rank {rank} of {size} {event}\n")
    sys.stderr.flush()
    # standard error may not be a pipe, or its length may be unknown
    with suppress(ImportError, OSError, ValueError):
        import fcntl
        import termios

        for _ in range(200):  # two seconds
            if not any(fcntl.ioctl(sys.stderr.fileno(), termios.FIONREAD, bytes(4))):
                break
            time.sleep(0.01)


def supervise() -> bool:
    """Continue in a child process, while this one waits for it.

    If the child ends without a report, this process names the rank. Call this before MPI is
    initialized. Without a launcher, or where processes cannot be forked, it does nothing and
    returns False.
    """
    rank, size = launched(RANKS), launched(SIZES)
    if rank is None or size is None or size == 1 or not hasattr(os, "fork"):
        return False
    stopped: list[int] = []
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _end_with_parent()
        return True

    def forward(number: int, frame: FrameType | None) -> None:
        stopped.append(number)
        os.kill(child, number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, forward)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if event := _event(status, stopped):
        report(rank, size, f"{event} (process {child} on {socket.gethostname()})")
        status = status or 1
        _end_job(status if status > 0 else 128 - status)
    os._exit(status if status >= 0 else 128 - status)


def _end_job(status: int) -> None:
    """Let the launcher end the other ranks.

    The launcher does so by itself for a rank that has initialized MPI, and for all ranks in Slurm
    and Open MPI. MPICH's launcher receives a line of the protocol PMI-1.
    """
    with suppress(KeyError, ValueError, OSError):
        os.write(int(os.environ["PMI_FD"]), f"cmd=abort exitcode={status}\n".encode())


def _event(status: int, stopped: list[int]) -> str | None:
    """Return how a rank ended, by its exit status and the signals forwarded to it.

    None if the end was already reported.
    """
    if status < 0:
        name = signal.Signals(-status).name
        return (
            f"was stopped by {name}, sent to its parent process"
            if -status in stopped
            else f"was killed by {name}"
        )
    if _phase[0] == ENDED:
        return None
    return f"ended with status {status} {_PLACES[_phase[0]]}"


def _end_with_parent() -> None:
    """Let the kernel kill this process when its parent ends, as by the launcher; Linux only.

    A signal to the parent's process group, such as Ctrl-C from a launcher, then reaches this
    process only once, through `forward`.
    """
    if sys.platform == "linux":
        import ctypes

        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
