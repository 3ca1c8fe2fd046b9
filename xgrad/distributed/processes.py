"""The processes of a job: their communicator, and how all end if one ends before the others."""

from __future__ import annotations

import atexit
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module

from xgrad.backend.device import Device
from xgrad.distributed import supervision
from xgrad.distributed.communicator import END_OF_BLOCK, END_OF_PROCESS, Communicator, RankError
from xgrad.distributed.mpi import MPICommunicator
from xgrad.distributed.supervision import RANKS, SIZES, launched, report


@contextmanager
def world(device: str | Device = "cpu") -> Iterator[Communicator]:
    """Connect the processes that a launcher started.

    If one of them ends before the others, all end, and its rank is named. All ranks leave the block
    together. A rank ends the job, and is named, if it leaves the block by an exception, or by
    ``sys.exit`` with a nonzero status where the others do not. If a rank leaves the block while
    others make another call, a `RankError` on all ranks names it, and ends them.

    Parameters
    ----------
    device : str or Device, default "cpu"
        The device of the tensors. Tensors on ``cuda`` are sent by NCCL (not yet run on a GPU), all
        others by MPI. In a launched process, ``"cuda"`` is the GPU of its rank on its machine.

    Yields
    ------
    Communicator
        The communicator of all ranks. If no launcher started this process, it has this process
        only, and needs no MPI.

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
    if communicator.size == 1:
        yield communicator
        return
    end: SystemExit | None = None
    try:
        communicator.meet("world()")
        try:
            yield communicator
        except SystemExit as error:
            if exit_status(error):
                raise
            end = error
        communicator.meet(END_OF_BLOCK)  # launchers may end all ranks once one has ended
    except RankError as error:
        if communicator.rank == 0:
            print(f"xgrad.distributed: {error}", file=sys.stderr, flush=True)
        if not _rank.all_end():
            fail(communicator, f"failed alone: RankError: {error}")
        raise SystemExit(1) from error
    except SystemExit as error:
        if not _rank.all_end():
            fail(
                communicator,
                f"ended by SystemExit({error.code!r}) before the others",
                exit_status(error),
            )
        raise
    except BaseException as error:
        traceback.print_exc()
        fail(communicator, "failed: " + ": ".join(filter(None, (type(error).__name__, str(error)))))
        raise
    finally:
        if not _rank.ended:
            supervision.enter(supervision.OUTSIDE)
    if end is not None:
        raise end


def connect(device: Device) -> Communicator:
    """Return the communicator of the launched processes, or of this process alone."""
    if launched(RANKS) is None or launched(SIZES) in (None, 1):
        return Communicator()
    if (name := device.backend.communicator) is None:
        communicator: Communicator = MPICommunicator()
    else:
        communicator = import_module(name).Communicator(device)
    supervision.enter(supervision.INSIDE)
    if _rank.communicator is None:
        _rank.leave_at_exit()
    _rank.communicator, _rank.ended = communicator, False
    return communicator


def exit_status(error: BaseException) -> int:
    """Return the exit status of a process that ends by an exception."""
    code = error.code if isinstance(error, SystemExit) else 1
    return code if isinstance(code, int) else int(code is not None)


def fail(communicator: Communicator, event: str, status: int = 1) -> None:
    """Report the end of this rank, and end all processes."""
    if communicator.size > 1:
        report(communicator.rank, communicator.size, event)
        communicator.abort(status)


def run_as_rank(function: Callable[[], None]) -> None:
    """Call a function as a rank, in a supervised process if a launcher started this one.

    If the rank ends before the others, it is named, wherever it is.
    """
    if not supervision.supervise():
        function()
        return
    _rank.leave_at_exit()
    try:
        function()
    except BaseException as error:
        if status := exit_status(error):
            if _rank.communicator is None:
                # the others may be waiting in world(): do not meet them
                atexit.unregister(_rank.leave)
            elif not _rank.all_end():
                if not isinstance(error, SystemExit):
                    traceback.print_exc()
                fail(_rank.communicator, f"ended by {error!r} before the others", status)
        raise


class _Rank:
    """The end of this process as a rank.

    communicator -- The last one made by `world`.
    ended -- Whether all ranks end, after which none communicates.
    """

    def __init__(self) -> None:
        self.communicator: Communicator | None = None
        self.ended = False
        self.process = os.getpid()

    def leave_at_exit(self) -> None:
        """Call `leave` when this process ends, once."""
        self.process = os.getpid()
        atexit.unregister(self.leave)
        atexit.register(self.leave)

    def all_end(self) -> bool:
        """Return whether all ranks end; each calls this before it ends by an error."""
        if not self.ended and self.communicator is not None and self.communicator.all_end():
            self.ended = True
            supervision.enter(supervision.ENDED)
        return self.ended

    def leave(self) -> None:
        """Compare the end of this process with the calls of the other ranks."""
        if os.getpid() != self.process or self.ended:  # this process was forked, or has ended
            return
        with suppress(ImportError, RuntimeError):  # without MPI no rank waits for this one
            if self.communicator is None:
                self.communicator = MPICommunicator()
            try:
                self.communicator.meet(END_OF_PROCESS)
            except RankError as error:
                if self.communicator.rank == 0:
                    print(f"xgrad.distributed: {error}", file=sys.stderr, flush=True)
                self.all_end()
        supervision.enter(supervision.ENDED)


_rank = _Rank()
