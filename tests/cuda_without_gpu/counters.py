"""Counters of the emulation of CUDA: what was launched, copied, allocated and freed, by name.

Names are kernels' names, names of functions of the libraries (such as ``cublasGemmEx``),
``copy to host``, ``copy from host``, ``copy on device``, ``memset``, ``cudaMalloc``, ``cudaFree``
and ``cudaGraphLaunch``.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

Extent = tuple[int, int, int]


class Calls(NamedTuple):
    """Numbers of calls of one name.

    `launched` were queued on a stream, `captured` recorded while it captured, and `replayed`
    queued by the launch of a graph.
    """

    launched: int
    captured: int
    replayed: int


class Grid(NamedTuple):
    """A launch of a kernel. A replay of a graph is none: its kernels are here as captured."""

    kernel: str
    grid: Extent
    block: Extent
    shared: int
    captured: bool


class _Totals(ctypes.Structure):
    _fields_ = [(name, ctypes.c_long) for name in ("kernels", "allocations", "graphs")]


def _driver(name: str, result: Any) -> Any:
    function = getattr(ctypes.CDLL("libcuda.so.1"), name)
    function.restype = result
    return function


def calls() -> dict[str, Calls]:
    """Return the numbers of calls since the last reset, by name."""
    lines = _driver("cuda_host_calls", ctypes.c_char_p)().decode().splitlines()
    parts = [line.split("\t") for line in lines]
    return {name: Calls(*map(int, numbers)) for name, *numbers in parts if any(map(int, numbers))}


def launches() -> dict[str, int]:
    """Return how often each name was launched since the last reset, also by graphs."""
    counts = {name: x.launched + x.replayed for name, x in calls().items()}
    return {name: count for name, count in counts.items() if count}


def captured() -> dict[str, int]:
    """Return how often each name was recorded in a capture since the last reset."""
    return {name: x.captured for name, x in calls().items() if x.captured}


def free_calls_in_captures() -> int:
    """Return the calls of cudaFree since the last reset by a thread that captured."""
    return captured().get("cudaFree", 0)


def grids() -> list[Grid]:
    """Return the launches of kernels since the last reset, at most the last 10 000."""
    lines = _driver("cuda_host_grids", ctypes.c_char_p)().decode().splitlines()
    found = []
    for kernel, *texts in [line.split("\t") for line in lines]:
        gx, gy, gz, bx, by, bz, shared, in_capture = map(int, texts)
        found.append(Grid(kernel, (gx, gy, gz), (bx, by, bz), shared, bool(in_capture)))
    return found


def reset() -> None:
    """Set the numbers of calls to zero, and forget the launches of kernels."""
    _driver("cuda_host_reset", None)()


def totals() -> tuple[int, int, int]:
    """Return the kernels and calls of libraries that have run, the allocations, and the graphs.

    They are counted from the start of the process; all queued work is done first.
    """
    _driver("cudaDeviceSynchronize", ctypes.c_int)()
    now = _driver("cuda_host_counters", ctypes.POINTER(_Totals))().contents
    return now.kernels, now.allocations, now.graphs


def capacity() -> ctypes.c_size_t:
    """Return the memory of the device in bytes; tests may set its value."""
    contents: ctypes.c_size_t = _driver(
        "cuda_host_capacity", ctypes.POINTER(ctypes.c_size_t)
    )().contents
    return contents
