"""Loaded libraries of C sources: compiled once, then loaded from the cache."""

from __future__ import annotations

import ctypes
import json
import os
import shlex
import warnings
from contextlib import suppress
from functools import cache as once
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from xgrad.backend.threads import LOADER
from xgrad_numpy.native import cache, compiler
from xgrad_numpy.native.compiler import Unavailable

__all__ = ["Unavailable", "describe", "enabled", "load", "opened"]


def enabled() -> bool:
    """Return whether native kernels may be used; ``XGRAD_NATIVE=0`` turns them off."""
    return os.environ.get("XGRAD_NATIVE") != "0"


#: Seconds after which a compiler counts as hanging. Threads wait for it while programs go on, and
#: on a loaded machine a compiler may run at a tenth of its speed.
TIMEOUT = 600.0


def load(source: str, *, timeout: float = TIMEOUT) -> ctypes.CDLL:
    """Return the library of a C source, from the cache or compiled now.

    Threads and processes may call it at the same time; each of them then compiles.

    Parameters
    ----------
    source : str
        The text of one C file.
    timeout : float, optional
        Seconds after which the compiler is killed.

    Returns
    -------
    ctypes.CDLL
        The loaded library.

    Raises
    ------
    Unavailable
        If there is no library; the message is one line for the user.

    Warns
    -----
    RuntimeWarning
        If the cache folder cannot be used; once for each reason. The library is then compiled.
    """
    try:
        command = compiler.find()
        key = _key(source, command)
        folder = _cache_folder()
        return (folder and _cached(folder, key)) or _compiled(source, command, timeout, folder, key)
    except OSError as error:
        raise Unavailable(
            f"no library of native kernels: {error}: set CC to a C compiler, or XGRAD_NATIVE=0"
        ) from error


def opened(path: Path | str) -> ctypes.CDLL:
    """Return the library of a file, loaded while no other thread scans the loaded libraries."""
    with LOADER:
        return ctypes.CDLL(str(path))


def _key(source: str, command: list[str]) -> str:
    parts = [source, compiler.FLAGS, compiler.fingerprint(command), np.__version__]
    return sha256(json.dumps(parts).encode()).hexdigest()


def _cached(folder: Path, key: str) -> ctypes.CDLL | None:
    with suppress(OSError):  # another process removed the file, or files may not be executed
        path = cache.find(folder, key)
        return opened(path) if path else None
    return None


def _compiled(
    source: str, command: list[str], timeout: float, folder: Path | None, key: str
) -> ctypes.CDLL:
    """Compile a source in a private folder; load the library from the cache, or from there."""
    with TemporaryDirectory(prefix="xgrad-", ignore_cleanup_errors=True) as private:
        built = compiler.build(command, source, private, timeout)
        added = folder and cache.add(folder, key, Path(built).read_bytes())
        if added:
            try:
                return opened(added)
            except OSError:
                added.unlink(missing_ok=True)
        return opened(built)


def _cache_folder() -> Path | None:
    try:
        return cache.make()
    except OSError as error:
        _warn(
            "native kernels are compiled anew in each process, since their cache cannot be used:"
            f" {error}"
        )
        return None


@once
def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=2)


def describe() -> str:
    """Describe in one line the compiler, its version and the cache, or why there are no kernels."""
    if not enabled():
        return "off, by XGRAD_NATIVE=0"
    try:
        command = compiler.find()
        with TemporaryDirectory(prefix="xgrad-", ignore_cleanup_errors=True) as private:
            version = compiler.run([*command, "--version"], private, 10)[1].partition("\n")[0]
    except (Unavailable, OSError) as error:
        return f"not available: {error}"
    try:
        folder = cache.location()
        if folder.exists():
            cache.check(folder)
        state = f"cache: {folder}"
    except OSError as error:
        state = f"no cache: {error}"
    return f"{shlex.join(command)} ({version}), {state}"
