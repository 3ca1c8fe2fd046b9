"""Checkpoints of a training run, its folder, and the signals that end it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import Any

import xgrad
from xgrad.cli.arguments import UsageError
from xgrad.serialization import snapshot
from xgrad.support.files import BACKUP, make_folder, write

if sys.platform != "win32":
    import fcntl

FOLDER = "checkpoints"
END = ".safetensors"


class Checkpoints:
    """The newest checkpoints of a run, one file each, written by a thread.

    A file is either complete or absent, and older files are removed once a new one is on the disk.
    Whenever the process is killed, the checkpoint before the one that is being written is complete.
    """

    def __init__(self, run: Path, keep: int) -> None:
        self.folder, self.keep = run / FOLDER, keep
        self.last = -1  # the step of the checkpoint that was written last
        # One thread for all writes, since starting a thread holds up training.
        self._thread = ThreadPoolExecutor(1, "xgrad-checkpoint")
        self._write: Future[None] | None = None

    def write(self, step: int, state: Any) -> None:
        """Copy the state after a number of steps, and start to write it.

        If the previous write failed, its error is raised.
        """
        self.wait()
        self.folder.mkdir(exist_ok=True)
        content = snapshot(state)

        def write_and_prune() -> None:
            write(self._path(step), content())
            self._prune(step)

        self.last, self._write = step, self._thread.submit(write_and_prune)

    def wait(self) -> None:
        """Wait until the last checkpoint is on the disk; raise the error of its write."""
        last, self._write = self._write, None
        if last is not None:
            last.result()

    def latest(self) -> Iterator[tuple[Path, Any]]:
        """Yield the path and the content of each intact checkpoint, the newest one first."""
        for step in reversed(self.steps()):
            path = self._path(step)
            try:
                yield path, xgrad.load(path, device="cpu")
            except (OSError, ValueError, TypeError) as error:
                print(f"xgrad train: a checkpoint is left out: {error}", file=sys.stderr)

    def _prune(self, step: int) -> None:
        """Remove all but the newest checkpoints, and all later than `step`.

        The run could not be resumed from the later ones.
        """
        steps = self.steps()
        kept = [other for other in steps if other <= step][-self.keep :]
        for other in set(steps) - set(kept):
            self._path(other).unlink(missing_ok=True)

    def steps(self) -> list[int]:
        """Return the steps of the checkpoints, in order."""
        names = os.listdir(self.folder) if self.folder.is_dir() else []
        numbers = [name.removeprefix("step-").removesuffix(END) for name in names]
        return sorted(int(n) for n in numbers if n.isdecimal() and self._path(int(n)).name in names)

    def _path(self, step: int) -> Path:
        return self.folder / f"step-{step:08}{END}"


class Stopped(Exception):
    """A signal asked the run to end; the argument is its number."""


@contextmanager
def stop_signals() -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM instead of acting on them; a second one of a kind takes effect."""
    received: list[int] = []
    before: dict[signal.Signals, Any] = {}

    def receive(number: int, frame: FrameType | None) -> None:
        received.append(number)
        signal.signal(number, before[signal.Signals(number)])

    try:
        if current_thread() is main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                # A background job of a shell ignores signals, and continues to.
                if signal.getsignal(number) not in (signal.SIG_IGN, None):
                    before[number] = signal.getsignal(number)
                    signal.signal(number, receive)
        yield received
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


@contextmanager
def new_folder(out: Path, files: tuple[str, ...]) -> Iterator[Path]:
    """Make and lock a folder without a run: ``out``, else ``out-2``, ``out-3`` and so on.

    A folder has a run if another process has locked it, or if it has one of the `files` or
    checkpoints. A process that was killed while it replaced the files may have left them under the
    names of backups.
    """
    files = (*files, *(name + BACKUP for name in files))
    base = out if out.name not in ("", "..") else Path(os.path.realpath(out))
    for number in count(1):
        folder = out if number == 1 else base.with_name(f"{base.name}-{number}")
        make_folder(folder)
        with lock(folder) as locked:
            if (
                locked
                and not any((folder / name).exists() for name in files)
                and not Checkpoints(folder, 1).steps()
            ):
                yield folder
                return


@contextmanager
def run_folder(folder: Path) -> Iterator[Path]:
    """Lock the folder of a run; raise UsageError if another process has locked it."""
    with lock(folder) as locked:
        if not locked:
            raise UsageError(
                f"--resume: expected a run that has ended, got {folder}, which another process"
                " continues"
            )
        yield folder


@contextmanager
def lock(folder: Path) -> Iterator[bool]:
    """Lock a folder, and yield whether no other process has locked it.

    The lock ends with the context, or with the process if it is killed. Windows has no locks of
    folders, and the result is True.
    """
    if sys.platform == "win32":
        yield True
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            locked = False
        except OSError:  # a file system without locks
            locked = True
        else:
            locked = True
        yield locked
    finally:
        os.close(descriptor)
