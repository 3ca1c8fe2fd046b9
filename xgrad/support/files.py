"""Files that are written completely or not at all, alone or together, and bounded reads."""

import errno
import json
import os  # not pathlib, which takes a twentieth of NumPy's import time
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, BinaryIO

if sys.platform != "win32":
    import fcntl

#: Error numbers of a full disk or an exhausted quota; Windows has no quotas.
DISK_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
TEMPORARY = ".xgrad-", ".tmp"  # start and end of the names of temporary files
BACKUP = ".xgrad-old"  # appended to the name of a file while `write_together` replaces it
Content = bytes | memoryview


def write(path: str | os.PathLike[str], content: Content) -> None:
    """Write a file completely or not at all.

    The content goes to a temporary file in the same folder, which then replaces the earlier file.
    The mode is kept, and the owner if that is permitted. A symbolic link is kept, and its target
    replaced. A file with several hard links is replaced only under this name. Anything but a
    regular file (a device, a FIFO, a terminal) is written in place, as is the file behind standard
    output or standard error.

    Temporary files of killed processes are removed from the folder. Temporary files of live
    processes are locked (``flock``) and kept; on Windows, and on file systems without locks, all
    are kept.

    Raises OSError if the file could not be written, for example on a full disk, or over a
    write-protected file; the folder is then unchanged. On return, the file is on the disk under its
    name.
    """
    with _named(path, content):
        if _write_in_place(path, content):
            return
        target = _target(path)
        temporary = _temporary(target)
        try:
            with _stage(temporary, target, content):
                os.replace(temporary, target)
                _sync_folder(target)
        finally:
            _unlink(temporary)


def write_together(files: Mapping[str, Content | None]) -> None:
    """Write several files of a folder, so that the first never exists beside files of another call.

    All are written under temporary names before one is replaced, as by `write`. The first one is
    then renamed before the others, and put in place after them. If the process is killed at any
    time, either all files are from this call, or all are as before, or the first one is missing.
    The last case needs a kill within the fraction of a millisecond of the replacement; earlier
    files then have ``.xgrad-old`` appended to their names, and the next call removes them. If this
    raises an exception, all files are as before.

    `files` maps paths to contents, or to None for a file to remove. An OSError has the path as
    ``filename``.
    """
    with ExitStack() as stack:
        staged: dict[str, tuple[str, str | None]] = {}  # target: path, temporary name
        for path, content in files.items():
            with _named(path, content):
                if not _write_in_place(path, content):
                    target = _target(path)
                    staged[target] = path, None
                    if content is not None:
                        temporary = _temporary(target)
                        stack.callback(_unlink, temporary)
                        stack.enter_context(_stage(temporary, target, content))
                        staged[target] = path, temporary
        existing = [target for target in staged if os.path.exists(target)]
        for target in existing:
            _unlink(target + BACKUP)
        try:
            for target in existing:
                with _named(staged[target][0]):
                    os.rename(target, target + BACKUP)
            for target, (path, replacement) in reversed(staged.items()):
                if replacement is not None:
                    with _named(path, files[path]):
                        os.replace(replacement, target)
            for target in {os.path.dirname(target): target for target in staged}.values():
                _sync_folder(target)
        except BaseException:
            for target in staged:
                if target not in existing or os.path.exists(target + BACKUP):
                    _unlink(target)
            for target in reversed(existing):
                with suppress(FileNotFoundError):
                    os.rename(target + BACKUP, target)
            raise
    for target in staged:
        _unlink(target + BACKUP)


def json_lines(lines: Iterable[Mapping[str, Any]]) -> bytes:
    """Return one JSON object per line."""
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def make_folder(path: str | os.PathLike[str]) -> None:
    """Make a folder and its missing parents; on return, their names are on the disk."""
    missing, folder = list[str](), os.path.abspath(path)
    while not os.path.exists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    os.makedirs(path, exist_ok=True)
    for made in missing:
        _sync_folder(made)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise OSError if `write` is not permitted, without changing any file."""
    with _named(path):
        opened, target = _opened_in_place(path), _target(path)
        needed = [opened] if isinstance(opened, str) else []
        if opened is None:
            needed = [os.path.dirname(target), *([target] if os.path.exists(target) else [])]
        for name in needed:
            os.stat(name)  # raises FileNotFoundError without a folder
            if not os.access(name, os.W_OK):
                raise PermissionError(errno.EACCES, f"{name} is write-protected")


def read(path: str | os.PathLike[str], limit: int) -> bytes:
    """Return the content of a regular file.

    Raises ValueError for other files, and for more than `limit` bytes.
    """
    # Without O_NONBLOCK, opening a FIFO waits for its other end.
    with open(
        path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0))
    ) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"expected a regular file, got a device or a pipe: {path}")
        if status.st_size > limit:
            raise ValueError(f"expected at most {limit} bytes, got {status.st_size}: {path}")
        return file.read()


@contextmanager
def _named(path: str | os.PathLike[str], content: Content | None = None) -> Iterator[None]:
    """Put the path of the file to write into OSErrors, in place of a temporary name."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        reason = error.strerror
        if error.errno in DISK_FULL:
            state = (
                "the earlier file is unchanged" if os.path.exists(path) else "no part of it is left"
            )
            reason = f"disk full: {len(content or b'')} bytes were not written, {state}"
        raise OSError(error.errno, reason, str(path)) from error


def _opened_in_place(path: str | os.PathLike[str]) -> str | int | None:
    """Return the path or descriptor to open for a file that must not be replaced.

    This is the path of a device, or the descriptor of standard output or standard error if the file
    is one of them. None for any other path.
    """
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    for descriptor in (1, 2):
        with suppress(OSError):  # the descriptor may be closed
            if os.path.samestat(status, os.fstat(descriptor)):
                return descriptor
    return None if stat.S_ISREG(status.st_mode) else os.fspath(path)


def _target(path: str | os.PathLike[str]) -> str:
    """Return the path, with its folder, of the file to replace; symbolic links are followed."""
    return os.path.realpath(path) if os.path.islink(path) else os.path.join(os.curdir, path)


def _write_in_place(path: str | os.PathLike[str], content: Content | None) -> bool:
    """Write to a file that must not be replaced, such as a device.

    Returns False for any other file, without writing.
    """
    opened = _opened_in_place(path)
    if opened is not None and content is not None:
        with open(
            os.dup(opened) if isinstance(opened, int) else os.open(opened, os.O_WRONLY), "wb"
        ) as file:
            file.write(content)
    return opened is not None


def _temporary(target: str) -> str:
    """Return a new name beside a target, after removing temporary files that no process needs."""
    folder = os.path.dirname(target)
    _remove_stale(folder)
    return os.path.join(folder, os.urandom(8).hex().join(TEMPORARY))


def _stage(temporary: str, target: str, content: Content) -> ExitStack:
    """Write the content of a target to a temporary file; return a context that holds its lock.

    The caller removes the file, since a signal may arrive before this returns.
    """
    check_writable(target)
    status = os.stat(target) if os.path.exists(target) else None
    with ExitStack() as stack:
        file = stack.enter_context(_create(temporary))
        if status is not None:
            with suppress(OSError):
                if sys.platform != "win32":
                    os.chown(temporary, -1, status.st_gid)
                    os.chown(temporary, status.st_uid, -1)
            with suppress(OSError):
                os.chmod(temporary, stat.S_IMODE(status.st_mode))
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
        if hasattr(os, "posix_fadvise"):
            # lets the next file reuse the memory, which is cheaper than new memory
            with suppress(OSError):
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        if sys.platform == "win32":  # Windows cannot rename an open file
            stack.close()
        return stack.pop_all()


def _create(temporary: str) -> BinaryIO:
    """Return a new file, locked if the system has locks."""
    while True:
        # not tempfile.mkstemp, which gives other users no permissions
        file = open(temporary, "xb")  # noqa: SIM115
        if sys.platform != "win32":
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX)
        if os.path.exists(temporary):
            return file
        file.close()  # another process removed it as stale before it was locked


def _sync_folder(target: str) -> None:
    """Wait until the name of a file is on the disk."""
    if sys.platform != "win32":
        with suppress(PermissionError):  # the folder may be unreadable
            descriptor = os.open(os.path.dirname(target) or os.curdir, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            except OSError as error:
                if error.errno != errno.EINVAL:  # some file systems lack it
                    raise
            finally:
                os.close(descriptor)


def _remove_stale(folder: str) -> None:
    """Remove the temporary files of a folder that no live process has locked."""
    if sys.platform != "win32":
        start, end = TEMPORARY
        with suppress(OSError):
            for name in os.listdir(folder or os.curdir):
                path = os.path.join(folder, name)
                if name.startswith(start) and name.endswith(end) and not os.path.islink(path):
                    with suppress(OSError), open(path, "r+b") as file:
                        # raises OSError if the file is in use
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        os.unlink(path)


def _unlink(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)
