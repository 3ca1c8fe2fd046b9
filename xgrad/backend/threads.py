"""The number of threads of BLAS libraries."""

from __future__ import annotations

import os
from threading import RLock
from typing import Any

from xgrad.support.hints import import_optional

__all__ = ["get_num_threads", "set_num_threads"]


#: Runtimes of native kernels, which limit BLAS to one thread while they call it.
RUNTIMES: list[Any] = []

#: Held while a thread loads a library, or iterates over the loaded libraries. threadpoolctl runs
#: Python code for each of them while the system's loader is locked: a thread that holds Python's
#: lock and waits for the loader, as `ctypes.CDLL` does, would wait forever.
LOADER = RLock()
# no fork while a thread holds it, or the child could never acquire it
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=LOADER.acquire, after_in_parent=LOADER.release, after_in_child=LOADER.release
    )


def set_num_threads(n: int) -> None:
    """Set the number of threads of BLAS, which multiplies matrices on the host.

    The number applies to the whole process, for libraries loaded before this call: NumPy's, and
    SciPy's and PyTorch's if they have been imported. Small matrices are faster on one thread: see
    docs/command_line.md. Sums may differ in the last bits from sums with another number of threads.

    Parameters
    ----------
    n : int
        1 or more.

    Raises
    ------
    TypeError, ValueError
        If `n` is not an int, or below 1, or too large for C's int.
    ImportError
        If threadpoolctl is missing: it comes with the extra ``threads``.
    RuntimeError
        If threadpoolctl finds no BLAS library.

    Examples
    --------
    >>> import xgrad
    >>> before = xgrad.get_num_threads()
    >>> xgrad.set_num_threads(1)
    >>> xgrad.get_num_threads()
    1
    >>> xgrad.set_num_threads(before)
    """
    if isinstance(n, bool) or not isinstance(n, int):
        raise TypeError(f"set_num_threads: expected an int, got {n!r}")
    if not 1 <= n < 2**31:
        raise ValueError(f"set_num_threads: expected 1 or more, and below 2**31, got {n}")
    _controller("set_num_threads").limit(limits=n)
    for runtime in RUNTIMES:
        runtime.change_threads(n)


def get_num_threads() -> int:
    """Return the number of threads of BLAS, which multiplies matrices on the host.

    Returns
    -------
    int
        The largest number of all loaded libraries.

    Raises
    ------
    ImportError
        If threadpoolctl is missing: it comes with the extra ``threads``.
    RuntimeError
        If threadpoolctl finds no BLAS library.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.get_num_threads() >= 1
    True
    """
    own = [int(runtime.threads()) for runtime in RUNTIMES]
    return max(
        [*own, *[int(library["num_threads"]) for library in _controller("get_num_threads").info()]]
    )


def blas_libraries() -> list[dict[str, Any]]:
    """Return the report of threadpoolctl on each loaded BLAS library.

    It raises the same errors as `get_num_threads`.
    """
    libraries: list[dict[str, Any]] = _controller("blas_libraries").info()
    return libraries


def _controller(caller: str) -> Any:
    threadpoolctl = import_optional("threadpoolctl", "threads", f"{caller}: ")
    with LOADER:
        controller = threadpoolctl.ThreadpoolController().select(user_api="blas")
    if not len(controller):
        raise RuntimeError(
            f"{caller}: expected OpenBLAS, MKL, BLIS or FlexiBLAS, found no BLAS library that"
            " threadpoolctl knows: set its number of threads by its own environment variable"
        )
    return controller
