"""Figures of a step on a device beside its time: launches, and bytes that are reserved."""

from __future__ import annotations

import ctypes
from importlib import import_module
from typing import Any

import xgrad


def empty_pool(device: str) -> None:
    """Return the unused memory of CuPy's pool to the driver; later figures do not count it."""
    if xgrad.Device(device).type == "cuda":
        cupy: Any = import_module("cupy")
        cupy.get_default_memory_pool().free_all_blocks()


def of_step(step: Any, device: str) -> dict[str, int]:
    """Return known figures of an eager or a captured step that was called before.

    These are the bytes that the process has reserved on the device; and for a captured step, the
    bytes of its program, and its launches: the nodes of the CUDA graph, or else the calls of the
    program that launch.
    """
    reserved = xgrad.Device(device).memory().get("reserved")
    figures = {} if reserved is None else {"bytes reserved": reserved}
    for program in getattr(step, "_programs", {}).values():
        executor = program.executor
        graph = getattr(executor, "_graph", None)
        count = None if graph is None else nodes(graph.graph)
        figures["bytes of the program"] = executor.nbytes
        if count is not None:
            figures["launches"] = count
        else:
            interpreter = getattr(executor, "_interpreter", program.program)
            figures["calls that launch"] = sum(map(_launches, interpreter.calls))
    return figures


def _launches(call: Any) -> bool:
    """Return whether a call computes something: it is no view of an array."""
    read = [value.storage for value in call.reads]
    return bool(call.writes or any(value.storage not in read for value in call.results))


def nodes(graph: int) -> int | None:
    """Return the number of nodes of a ``cudaGraph_t``: kernels, copies and memsets.

    The result is None if the driver cannot tell, as on the emulation of CUDA.
    """
    count, driver = ctypes.c_size_t(), ctypes.CDLL("libcuda.so.1")
    if not hasattr(driver, "cuGraphGetNodes"):
        return None
    status = driver.cuGraphGetNodes(ctypes.c_void_p(graph), None, ctypes.byref(count))
    if status:
        raise RuntimeError(f"cuGraphGetNodes returned {status}")
    return count.value
