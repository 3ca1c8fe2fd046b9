"""The runtime of native kernels: one library for all programs.

It has a pool of threads, and products by NumPy's BLAS.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.resources import files
from threading import Thread
from typing import Any

import numpy as np

from xgrad.backend.threads import RUNTIMES
from xgrad_numpy.native import library
from xgrad_numpy.native.expressions import MEMORY_TYPES, chooses_first
from xgrad_numpy.native.loops import Loop
from xgrad_numpy.products import sharing

#: The sources, in order: later ones use definitions of earlier ones.
SOURCES = (
    "runtime.h",
    "arrays.c",
    "pool.c",
    "pairs.h",
    "panels.h",
    "products.c",
    "loops.c",
    "reductions.c",
    "indices.c",
    "table.c",
    "recurrent.h",
    "windows.h",
)
#: Sources that follow once for each type: they use the type as REAL, and call functions for it as
#: NAME(...).
TYPED_SOURCES = ("tiles.c", "panels.c", "recurrent.c", "gru.c", "pooling.c", "convolution.c")
_FLOATS: tuple[np.dtype[Any], ...] = (np.dtype("float32"), np.dtype("float64"))
#: Names of the functions of BLAS, names of the functions for its number of threads, and whether its
#: integers have 64 bits: in NumPy's wheels, and in builds with another OpenBLAS.
_BLAS_NAMES = (
    ("scipy_cblas_{}64_", "scipy_openblas_{}64_", True),
    ("scipy_cblas_{}", "scipy_openblas_{}", False),
    ("cblas_{}64_", "openblas_{}64_", True),
    ("cblas_{}", "openblas_{}", False),
)


def source_of(name: str) -> str:
    """Return the text of a source."""
    return (files("xgrad_numpy.native") / "c" / name).read_text(encoding="utf-8")


def _typed(dtype: np.dtype[Any]) -> str:
    """Return the sources for a type, with NumPy's rule for the maximum of zeros, if it has one."""
    real = MEMORY_TYPES[dtype]
    name = "isgreaterequal" if chooses_first(np.maximum, dtype) else "isgreater"
    macros = {
        "REAL": real,
        "BITS": f"int{8 * dtype.itemsize}_t",
        "NAME(x)": f"x##_{real}",
        "EXCEEDS(x, y)": f"{name}(x, y)",
    }
    define = "".join([f"#define {name} {text}\n" for name, text in macros.items()])
    undefine = "".join([f"#undef {name.partition('(')[0]}\n" for name in macros])
    return define + "".join(map(source_of, TYPED_SOURCES)) + undefine


class Runtime:
    """The loaded runtime: its `functions`, and whether it `has_products`."""

    def __init__(self) -> None:
        blas = _find_blas()
        head = f"#define OBJECT_SIZE {object.__basicsize__}\n" + (
            "#define WIDE_BLAS\n" if blas and blas[1] else ""
        )
        self.functions = library.load(
            head + "".join(map(source_of, SOURCES)) + "".join([_typed(x) for x in _FLOATS])
        )
        #: The same functions; while one runs, no other thread runs Python, and so none begins a
        #: NumPy product.
        self.alone = ctypes.PyDLL(self.functions._name, handle=self.functions._handle)
        #: Returns the floating-point exceptions in kernels, as bits.
        self.take_raised = self.functions.take_raised
        self.has_products = blas is not None
        if blas is not None:
            functions = [ctypes.cast(function, ctypes.c_void_p) for function in blas[0]]
            self.functions.use_blas(*functions, ctypes.c_int32(_single_products_warn()))
            RUNTIMES.append(self)
        else:
            self._count = ctypes.CFUNCTYPE(ctypes.c_int)(_number_of_threads)
            self.functions.use_threads_of(self._count)

    def threads(self) -> int:
        """Return the number of threads that products may use."""
        return int(self.functions.threads())

    def change_threads(self, n: int) -> None:
        """Change the number of threads that products may use."""
        self.functions.change_threads(n)

    def addresses(self, *arrays: np.ndarray) -> Any:
        """Return a table of the addresses of the first elements of arrays.

        ``__array_interface__`` would take longer.
        """
        objects, pointers = tables_of(len(arrays))
        out = pointers()
        self.functions.addresses(objects(*arrays), ctypes.c_int64(len(arrays)), out)
        return out

    def connect(self, compiled: ctypes.CDLL, loops: Mapping[str, Loop]) -> None:
        """Let the kernels of a program use the runtime and NumPy's loops.

        `loops` are the loops by the names of their variables.
        """
        for name, loop in loops.items():
            variable = Loop.in_dll(compiled, name)
            variable.function, variable.data = loop.function, loop.data
        table = ctypes.addressof(ctypes.c_char.in_dll(self.functions, "runtime"))
        ctypes.c_void_p.in_dll(compiled, "runtime").value = table


@cache
def tables_of(count: int) -> tuple[Any, Any]:
    """Return the types of tables of objects and of addresses, with a number of entries."""
    return ctypes.py_object * count, ctypes.c_void_p * count


@cache
def runtime() -> Runtime:
    """Return the runtime, compiled now or from the cache; raises Unavailable as `library.load`."""
    return Runtime()


def loaded_runtime() -> Runtime | None:
    """Return the runtime if it is loaded, else None; then eager mode computes without it.

    The first call starts loading it, in a separate thread. None also if there is no compiler, or
    with ``XGRAD_NATIVE=0``.
    """
    if not _LOADING:
        if not library.enabled():
            return None
        _LOADING.append(Thread(target=_load, name="xgrad-compile", daemon=True))
        _LOADING[0].start()
    return _LOADED[0] if _LOADED else None


_LOADING: list[Thread] = []
_LOADED: list[Runtime] = []


def _load() -> None:
    # the cache warns; a RuntimeWarning is raised if warnings are errors
    with suppress(library.Unavailable, RuntimeWarning):
        _LOADED.append(runtime())
        sharing.follow(_LOADED[0].functions.threads())


def _single_products_warn() -> bool:
    """Return whether NumPy warns of exceptions in products of two matrices; it does from 2.4 on."""
    x = np.array([[np.inf, -np.inf]], np.float32)
    try:
        with np.errstate(invalid="raise"):
            x.dot(np.ones((2, 2), np.float32))
    except FloatingPointError:
        return True
    return False


def _number_of_threads() -> int:
    """Return the number of threads if there is no BLAS to ask for it."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _find_blas() -> tuple[list[Any], bool] | None:
    """Return the functions of BLAS that `use_blas` takes, and whether its integers have 64 bits.

    None if they are not found.
    """
    core: Any = getattr(np, "_core", None) or np.core
    # also finds functions of the libraries that it needs
    handle = library.opened(core._multiarray_umath.__file__)
    for blas, openblas, wide in _BLAS_NAMES:
        names = [blas.format(name) for name in ("sgemm", "dgemm", "sgemv", "dgemv")]
        names += [openblas.format("get_num_threads"), openblas.format("set_num_threads")]
        if all(hasattr(handle, name) for name in names):
            return [handle[name] for name in names], wide
    return None
