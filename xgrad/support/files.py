"""Files that are written whole or not at all, alone or together, and read within a bound."""

import errno
import os  # and not pathlib, which takes a twentieth of NumPy's own time to import
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import BinaryIO

if sys.platform != "win32":
    import fcntl

#: Of a disk, or a user's share of it, that is full; Windows has no shares.
DISK_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
TEMPORARY = ".xgrad-", ".tmp"  # start and end of the name of a file that is not complete yet
ASIDE = ".xgrad-old"  # appended to the name of a file while `write_together` replaces it


def write(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file whole or not at all.

    The content goes to a temporary file in the same folder, which then takes the place of the earlier one. The mode
    stays, and the owner where that is permitted; a symbolic link stays, and its target is replaced. A file of several
    hard links is replaced under this name alone. What is no regular file (a device, a FIFO, a terminal) is written to
    and stays, as does the file that standard output or standard error goes to.

    Temporary files that processes left behind when they were killed are removed from the folder. Those of live
    processes are locked (``flock``) and stay; on Windows, and on file systems without locks, so do all.

    Parameters
    ----------
    path : str or os.PathLike
        Where, in a folder that exists. A file that is there is replaced.
    content : bytes
        What.

    Raises
    ------
    OSError
        If it could not be written, such as on a full disk, or over a write-protected file; what was there before still
        is, and nothing else.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write(f"{folder}/name", b"content")
    ...     os.path.getsize(f"{folder}/name")
    7
    """
    with _named(path, content):
        if _write_through(path, content):
            return
        target = os.path.realpath(path)
        with _staged(target, content) as temporary:
            os.replace(temporary, target)


def write_together(files: Mapping[str, bytes | None]) -> None:
    """Write several files of a folder, such that the first never stands beside files of another call.

    All are written under temporary names before one is replaced, as `write` does. The first is then moved aside before
    the others, and put in place after them. If the process is killed at any time, the files that belong together are
    thus all of this call, or all as they were before, or the first is missing. In the last case, which takes a kill
    within the fraction of a millisecond of the replacement, the earlier files have ``.xgrad-old`` appended to their
    names; the next call removes them. Where this raises, all files are as they were before.

    Parameters
    ----------
    files : mapping of str to bytes or None
        The contents by path, None for a file to remove.

    Raises
    ------
    OSError
        If a file could not be written, with its path as ``filename``.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_together({f"{folder}/weights": b"1 2", f"{folder}/metrics": b"loss 3"})
    ...     sorted(os.listdir(folder))
    ['metrics', 'weights']
    """
    with ExitStack() as stack:
        staged: dict[str, tuple[str, str | None]] = {}  # target: path, temporary name
        for path, content in files.items():
            with _named(path, content):
                if not _write_through(path, content):
                    target = os.path.realpath(path)
                    temporary = None if content is None else stack.enter_context(_staged(target, content))
                    staged[target] = path, temporary
        before = [target for target in staged if os.path.exists(target)]
        for target in before:
            _unlink(target + ASIDE)
        try:
            for target in before:
                with _named(staged[target][0]):
                    os.rename(target, target + ASIDE)
            for target, (path, temporary) in reversed(staged.items()):
                if temporary is not None:
                    with _named(path, files[path]):
                        os.replace(temporary, target)
        except BaseException:
            for target in staged:
                if target not in before or os.path.exists(target + ASIDE):
                    _unlink(target)
            for target in reversed(before):
                with suppress(FileNotFoundError):
                    os.rename(target + ASIDE, target)
            raise
    for target in staged:
        _unlink(target + ASIDE)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise OSError where `write` is not permitted, without a change to any file."""
    with _named(path):
        special, target = _special(path), os.path.realpath(path)
        needed = [special] if isinstance(special, str) else []
        if special is None:
            needed = [os.path.dirname(target), *([target] if os.path.exists(target) else [])]
        for name in needed:
            os.stat(name)  # raises where there is no folder
            if not os.access(name, os.W_OK):
                raise PermissionError(errno.EACCES, f"{name} is write-protected")


def read(path: str | os.PathLike[str], most: int) -> bytes:
    """Return the content of a regular file; ValueError if it is another kind of file, or has over `most` bytes."""
    # Without O_NONBLOCK, to open a FIFO is to wait for its other end.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0))) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"expected a regular file, got a device or a pipe: {path}")
        if status.st_size > most:
            raise ValueError(f"expected at most {most} bytes, got {status.st_size}: {path}")
        return file.read()


@contextmanager
def _named(path: str | os.PathLike[str], content: bytes | None = None) -> Iterator[None]:
    """Let errors of the system name the file that was to be written, and not a temporary one."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        reason = error.strerror
        if error.errno in DISK_FULL:
            kept = "the earlier file is unchanged" if os.path.exists(path) else "no part of it is left"
            reason = f"disk full: {len(content or b'')} bytes were not written, {kept}"
        raise OSError(error.errno, reason, str(path)) from error


def _special(path: str | os.PathLike[str]) -> str | int | None:
    """Return what to open for a path that leads to something that must not be replaced, None for any other path.

    That is the path of a device, or the descriptor of standard output or standard error where it is one of them.
    """
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    for descriptor in (1, 2):
        with suppress(OSError):  # closed
            if os.path.samestat(status, os.fstat(descriptor)):
                return descriptor
    return None if stat.S_ISREG(status.st_mode) else os.fspath(path)


def _write_through(path: str | os.PathLike[str], content: bytes | None) -> bool:
    """Write to what must not be replaced, such as a device, and return whether the path leads to that."""
    special = _special(path)
    if special is not None and content is not None:
        with open(os.dup(special) if isinstance(special, int) else os.open(special, os.O_WRONLY), "wb") as file:
            file.write(content)
    return special is not None


@contextmanager
def _staged(target: str, content: bytes) -> Iterator[str]:
    """Write the content of a file under a temporary name beside it, and remove that where it still exists in the end.

    It keeps its lock until then.
    """
    check_writable(target)
    status = os.stat(target) if os.path.exists(target) else None
    folder = os.path.dirname(target)
    _remove_stale(folder)
    file = _create(folder)
    try:
        with file:
            if status is not None:
                with suppress(OSError):
                    if sys.platform != "win32":
                        os.chown(file.name, -1, status.st_gid)
                        os.chown(file.name, status.st_uid, -1)
                with suppress(OSError):
                    os.chmod(file.name, stat.S_IMODE(status.st_mode))
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            if sys.platform == "win32":
                file.close()  # or it could not be renamed
            yield file.name
    finally:
        _unlink(file.name)


def _create(folder: str) -> BinaryIO:
    """Return a new temporary file, locked where the system can."""
    while True:
        # Not tempfile.mkstemp: nobody else could read what it makes.
        file = open(os.path.join(folder, os.urandom(4).hex().join(TEMPORARY)), "xb")  # noqa: SIM115
        if sys.platform != "win32":
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX)
        if os.path.exists(file.name):
            return file
        file.close()  # it was taken for a leftover before it was locked


def _remove_stale(folder: str) -> None:
    """Remove the temporary files of a folder that no live process has locked."""
    if sys.platform != "win32":
        start, end = TEMPORARY
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith(start) and entry.name.endswith(end) and entry.is_file(follow_symlinks=False):
                    with suppress(OSError), open(entry.path, "r+b") as file:
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # an OSError where it is in use
                        os.unlink(entry.path)


def _unlink(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)
