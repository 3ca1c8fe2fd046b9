"""Executor of captured steps on NumPy: a program as instructions that write to fixed buffers."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from xgrad.backend.recording import CaptureWarning
from xgrad.capture.program import Program
from xgrad.support.user_code import warn_user
from xgrad_numpy.codegen import ArraySlot, Code
from xgrad_numpy.lowering import Lowering

if TYPE_CHECKING:
    from ctypes import CDLL

    from xgrad_numpy.native.kernels import Compilation, Kernels

WARM = 50  # replays after which the native kernels of a program are compiled


class Executor:
    """Executor of a program on NumPy.

    "Captured steps" in ``backends/README.md`` describes the interface. `native` is True if the
    first `link` waits for compiled kernels, False for no kernels, and None to compile kernels in
    the background after some replays.
    """

    run: Callable[..., Any]

    def __init__(self, program: Program, native: bool | None = None) -> None:
        self._program = program
        self._native = False if os.environ.get("XGRAD_NATIVE") == "0" else native
        self._lowering: Lowering | None = None
        self._code: Code | None = None
        self._kernels: Kernels | None = None
        self._compilation: Compilation | None = None
        self._replays = self.nbytes = self._threads = 0
        self._count_threads: Callable[[], int] | None = None

    def link(self, arrays: Sequence[np.ndarray]) -> None:
        """Use these arrays of the state.

        The first call lowers the program, because the result depends on overlaps between the
        arrays.
        """
        lowering = self._lowering
        if lowering is None:
            native = self._native is not False
            lowering = self._lowering = Lowering(self._program, arrays, native=native)
        changed: list[ArraySlot] = []
        for slot, array in zip(lowering.state, arrays, strict=True):
            if slot.array is not array:
                slot.array = array
                changed.append(slot)
        if self._code is None:
            for slot in lowering.static:
                slot.array = slot.find()
            self._start(lowering)
        else:
            dependents = _dependents(changed)
            for slot in dependents:
                slot.array = slot.find()
            self._code.update([*changed, *dependents])

    def _start(self, lowering: Lowering) -> None:
        """Make the code that runs the instructions, and compile kernels if `native` is True."""
        self._code = Code(lowering.parameters, lowering.parts, lowering.outputs)
        self.run = self._code.run if self._native is False else self._interpret
        self.nbytes = lowering.nbytes
        if self._native:
            self._compile()
            self._wait()

    def release(self) -> None:
        """Drop all arrays; the next `link` lowers the program again."""
        if self._lowering is not None and self._code is not None:
            self._code.scope.clear()
            for slot in (*self._lowering.state, *self._lowering.static):
                slot.array = None
        if self._compilation is not None:
            self._compilation.close()
        self._lowering = self._code = self._kernels = self._compilation = None
        self._replays = 0

    # Native kernels

    def _interpret(self, *args: Any) -> Any:
        """Run the program by NumPy until its native kernels are compiled or prove unavailable."""
        self._replays += 1
        if self._compilation is None and self._replays == WARM:
            self._compile()
        compilation = self._compilation
        if compilation is not None and not compilation.advance():
            self._finish(compilation.library)
            return self.run(*args)
        assert self._code is not None
        return self._code.run(*args)

    def _run_kernels(self, *args: Any) -> Any:
        """Call the kernels.

        If the number of BLAS threads has changed, compile the kernels again, and run by NumPy
        meanwhile; a `native` program waits for the compiler. With another number of threads BLAS
        may add in another order, in eager mode too.
        """
        lowering = self._lowering
        assert self._code is not None and lowering is not None and self._count_threads is not None
        if self._count_threads() == self._threads:
            return self._code.run(*args)
        self._code = Code(lowering.parameters, lowering.parts, lowering.outputs)
        self.run, self._replays = self._interpret, WARM - 1
        if self._native:
            self._compile()
            self._wait()
        return self.run(*args)

    def _compile(self) -> None:
        """Start the compilation of the kernels of the program."""
        # takes 3 ms, which not every program needs
        from xgrad_numpy.native.kernels import Compilation, Kernels

        assert self._lowering is not None
        self._kernels = Kernels(self._lowering)
        self._compilation = Compilation(self._kernels)

    def _wait(self) -> None:
        """Wait for the kernels; if there can be none, warn with the reason."""
        compilation = self._compilation
        assert compilation is not None
        compilation.wait()
        if compilation.reason:
            warn_user(f"capture: native=True: {compilation.reason}", CaptureWarning)

    def _finish(self, library: CDLL | None) -> None:
        """Call the compiled kernels from now on; without a library, run by NumPy."""
        code, kernels = self._code, self._kernels
        assert code is not None
        self.run, self._compilation, self._kernels = code.run, None, None
        if library is not None and kernels is not None:
            self._code = kernels.code(library)
            self._count_threads, self._threads = kernels.count_threads, kernels.threads
            self.run = self._run_kernels


def _dependents(slots: Sequence[ArraySlot]) -> list[ArraySlot]:
    """Return the slots whose arrays are computed from these, each after those that it needs."""
    pending = list(slots)
    found: set[ArraySlot] = set()
    while pending:
        new = set(pending.pop().dependents) - found
        found |= new
        pending += new
    return sorted(found, key=attrgetter("order"))
