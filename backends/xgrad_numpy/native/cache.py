"""Cache of libraries: files named by a key and the digest of their content.

A file is loaded only if its content has the digest, so a truncated, damaged or foreign file counts
as missing. Files are written under a temporary name and renamed, and no file is changed in place,
so processes need no locks.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from xgrad.support import files

#: Maximum number of files. Adding one removes the least recently used ones.
LIMIT = 256


def location() -> Path:
    """Return the path of the cache folder, which need not exist."""
    default = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    folder = os.environ.get("XGRAD_CACHE_DIR") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or default, "xgrad"
    )
    expanded = os.path.expanduser(folder)
    if expanded.startswith("~"):
        raise FileNotFoundError("the user has no home folder: set XGRAD_CACHE_DIR to a folder")
    return Path(os.path.abspath(expanded), "native")


def check(folder: Path) -> None:
    """Raise OSError unless the folder exists, and only this user can write to it."""
    status = os.stat(folder)
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(f"{folder} is not a folder")
    if status.st_uid != os.geteuid():
        raise PermissionError(
            f"{folder} belongs to another user: set XGRAD_CACHE_DIR to a folder of your own"
        )
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"other users can write to {folder}: chmod 700 {folder}")


def make() -> Path:
    """Return the cache folder, creating it if missing; raises OSError if it cannot be used."""
    folder = location()
    os.makedirs(folder, 0o700, exist_ok=True)
    check(folder)
    return folder


def find(folder: Path, key: str) -> Path | None:
    """Return the file of a key; remove files of the key whose content does not match the digest."""
    for name in os.listdir(folder):
        if name.startswith(key):
            path = folder / name
            with suppress(OSError):
                if path.is_file() and name == _name(key, path.read_bytes()):
                    with suppress(OSError):  # the folder may be read-only
                        now = time.time_ns()  # finer than the clock of the file system
                        os.utime(path, ns=(now, now))  # the oldest files are removed first
                    return path
                path.unlink()
    return None


def add(folder: Path, key: str, content: bytes) -> Path | None:
    """Write the file of a key, and return its path; None on failure, such as a full disk."""
    path = folder / _name(key, content)
    try:
        files.write(path, content)
    except OSError:
        return None
    with suppress(OSError):  # another process may have removed a file
        kept = sorted(folder.glob("*.so"), key=os.path.getmtime, reverse=True)
        for old in kept[LIMIT:]:
            old.unlink()
    return path


def _name(key: str, content: bytes) -> str:
    return f"{key}-{sha256(content).hexdigest()}.so"
