"""The native kernels of a lowered program, and the code that calls them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Set
from itertools import chain
from threading import Thread
from time import perf_counter
from typing import Any

import numpy as np

from xgrad_numpy.codegen import ArraySlot, Code, Instruction, Parts
from xgrad_numpy.instructions import end_replay, end_replay_of_unaligned, require_indices
from xgrad_numpy.lowering import Lowering
from xgrad_numpy.native import library
from xgrad_numpy.native.calls import Multiplication, NativeCall
from xgrad_numpy.native.fusion import Run, fuse
from xgrad_numpy.native.places import Place
from xgrad_numpy.native.printer import Function, Source
from xgrad_numpy.native.runtime import Runtime, tables_of
from xgrad_numpy.native.runtime import runtime as load_runtime

_AT_ONCE = 1e-3  # seconds of trials after which the step continues


class Kernels:
    """The runs of a program: found in the program, tried out by `trials`, compiled by `prepare`.

    Another thread may call only `prepare`. Trials of products give BLAS one thread for a while,
    which is a setting of the process: a product that NumPy begins then may have other bits.
    """

    def __init__(self, lowering: Lowering) -> None:
        self._lowering = lowering
        self._fused = fuse(
            [lowering.before, lowering.tentative, lowering.after],
            lowering.memory.array,
            lowering.outputs,
            products=True,
        )
        self._refused: set[NativeCall] = set()  # calls whose bits differ from NumPy's
        self._parts: list[list[Any]] = []
        self.threads = 0  #: The number of threads for which the bits of products are NumPy's.
        self.count_threads: Callable[[], int] | None = None  #: Returns the current number.

    def trials(self, runtime: Runtime) -> Iterator[None]:
        """Try out which calls have NumPy's bits.

        Yields now and then, because the first trial of a shape takes a while. If the number of
        threads changes meanwhile, all calls are tried out again.
        """
        self.count_threads = runtime.functions.threads
        self.threads, calls, done, start = 0, list(self._calls()), 0, perf_counter()
        while done < len(calls) or self.threads != self.count_threads():
            if self.threads != self.count_threads():
                self.threads, done = self.count_threads(), 0
                self._refused.clear()
                continue
            with np.errstate(all="ignore"):  # the numbers are not the user's
                has_bits = calls[done].has_bits_of_numpy(runtime)
            if not has_bits:
                self._refused.add(calls[done])
            done += 1
            if perf_counter() - start > _AT_ONCE:
                yield
                start = perf_counter()

    def _calls(self) -> Iterator[NativeCall]:
        runs = [x for part in self._fused for x in part if type(x) is Run]
        return (call for run in runs for call in run.parts if isinstance(call, NativeCall))

    def prepare(self, runtime: Runtime) -> ctypes.CDLL | None:
        """Return the compiled runs, None if there are no runs; raises as `library.load`."""
        source = self.source()
        if not source.count:
            return None
        compiled = library.load(source.text)
        runtime.connect(compiled, source.loops)
        return compiled

    def source(self) -> Source:
        """Print the source of all runs."""
        source, self._parts = Source(), []
        for part in self._fused:
            parts = [_without(self._refused, x) if type(x) is Run else [x] for x in part]
            members = list(chain.from_iterable(parts))
            calls = [source.add(x) if type(x) is Run else x for x in members]
            self._parts.append([x for x in calls if x is not None])
        return source

    def code(self, compiled: ctypes.CDLL) -> Code:
        """Return the interpreter's code with calls of C functions in place of the runs."""
        lowering = self._lowering
        before, tentative, after = (
            [
                y
                for x in part
                for y in ([x] if isinstance(x, Instruction) else self._call(compiled, x, failed))
            ]
            for part, failed in zip(
                self._parts, (end_replay, end_replay, require_indices), strict=True
            )
        )
        if given := self._multiplied_inputs():
            before.append(Instruction(end_replay_of_unaligned, given, {}))
        take = load_runtime().take_raised
        for part in (before, tentative, after) if tentative else (before, after):
            # Once, after all that may end the replay, and before anything is written for good: if
            # warnings are errors, the step then runs eagerly, and raises the error itself.
            raised = ArraySlot(dynamic=True)
            part += [Instruction(take, (), {}, raised), Instruction(warn_of, (raised,), {})]
        parts = Parts(before, tentative, after, lowering.restore)
        return Code(lowering.parameters, parts, lowering.outputs, on_error=take)

    def _multiplied_inputs(self) -> tuple[ArraySlot, ...]:
        """Return the inputs, and views of them, that `numpy.matmul` would multiply."""
        parts = [y for part in self._fused for x in part if type(x) is Run for y in x.parts]
        products = [
            y for y in parts if type(y) is Multiplication and y.instruction.function is np.matmul
        ]
        operands = [place.operand for y in products for place in y.places[:2] if place.moves]
        return tuple(dict.fromkeys([slot for slot in operands if slot.early]))

    def _call(
        self, compiled: ctypes.CDLL, x: Function, failed: Callable[[int], None]
    ) -> list[Instruction]:
        """Return the call of a function with a table of addresses, and of `failed` on its result.

        The table follows arrays of the state that move. Arrays that are elsewhere in each replay
        are entered before the call, and named after it, to keep them alive until then.
        """
        places = x.places
        operands = [place.operand for place in places]
        slots = [x for x in operands if type(x) is ArraySlot and not x.dynamic]
        table = self._lowering.add_static(lambda: _Table(operands), *slots)
        table.array = table.find()
        function = compiled[x.name]
        function.restype = ctypes.c_int32 if x.may_fail else None
        result = ArraySlot(dynamic=True) if x.may_fail else None
        call = [Instruction(function, (table,), {}, result)]
        if x.may_fail:
            call.append(Instruction(failed, (result,), {}))
        moving = {i: x for i, x in enumerate(places) if x.moves}
        if not moving:
            return call
        slots = [x.operand for x in moving.values()]
        entered = Instruction(_Moving(moving).enter, (table, *slots), {})
        late = [slot for slot in slots if not slot.early]
        return [entered, *call, *([Instruction(_keep, (*late,), {})] if late else [])]


def _without(refused: Set[NativeCall], run: Run) -> Iterator[Run | Instruction]:
    """Yield the parts of a run between calls that are left to NumPy, and these calls."""
    parts: list[Any] = []
    for part in run.parts:
        if isinstance(part, NativeCall) and part in refused:
            if parts:
                yield Run(parts)
            yield part.instruction
            parts = []
        else:
            parts.append(part)
    if parts:
        yield Run(parts)


def warn_of(bits: int) -> None:
    """Let NumPy warn of floating-point exceptions in kernels as of its own.

    ``numpy.errstate`` applies. The order of several exceptions is unknown: an infinity from an
    overflow or a division is often the cause of an invalid value.
    """
    if bits:
        for bit, (function, x) in _EXCEPTIONS.items():
            if bits & bit:
                function(x, x)


#: Calls that raise DIVIDED, OVERFLOWN, INVALID and UNDERFLOWN of runtime.h, by the exception's bit.
_EXCEPTIONS: dict[int, tuple[Any, np.ndarray]] = {
    2: (lambda x, _: np.reciprocal(x), np.zeros(1)), 4: (np.multiply, np.full(1, 1e300)),
    1: (np.subtract, np.full(1, np.inf)), 8: (np.multiply, np.full(1, 1e-300)),
}  # fmt: skip


class _Table:
    """The addresses of arrays as an argument of a C function.

    It keeps constants alive, to which there may be no other reference.
    """

    def __init__(self, operands: list[Any]) -> None:
        arrays = [x.array if type(x) is ArraySlot else x for x in operands]  # None for inputs
        self._constants = [x for x in operands if type(x) is not ArraySlot]
        # copies of arrays that are not aligned, or have other strides
        self.copies: dict[int, Any] = {}
        addresses = [None if x is None else x.__array_interface__["data"][0] for x in arrays]
        self._as_parameter_ = (ctypes.c_void_p * len(addresses))(*addresses)


class _MovingStruct(ctypes.Structure):
    """``struct moving`` of arrays.c."""

    _fields_ = (
        ("count", ctypes.c_int64),
        *[(name, ctypes.POINTER(ctypes.c_int64)) for name in ("places", "axes", "strides")],
    )


class _Moving:
    """The arrays that are in other memory in each replay, by their places in a table."""

    def __init__(self, places: Mapping[int, Place]) -> None:
        self._strides = {i: x.array.strides for i, x in places.items()}
        self._new = frozenset([i for i, x in places.items() if x.is_new])
        integers = ctypes.c_int64 * len(places)
        strides = list(chain.from_iterable(self._strides.values()))
        self._struct = _MovingStruct(
            len(places), integers(*places), integers(*map(len, self._strides.values())),
            (ctypes.c_int64 * len(strides))(*strides),
        )  # fmt: skip
        self._objects, _ = tables_of(len(places))
        self._enter = load_runtime().functions.enter

    def enter(self, table: _Table, *arrays: np.ndarray) -> None:
        """Enter the addresses of arrays."""
        if not self._enter(ctypes.byref(self._struct), self._objects(*arrays), table):
            for (i, strides), x in zip(self._strides.items(), arrays, strict=True):
                if i in self._new and x.strides != strides:  # the result would go to a copy
                    raise RuntimeError(
                        f"expected memory for a result with strides {strides}, got {x.strides}"
                    )
                enter(table, i, x, strides)


def enter(table: _Table, i: int, x: np.ndarray, strides: tuple[int, ...]) -> None:
    """Enter the address of an array, or of a copy if it is not aligned or has other strides."""
    if x.strides != strides or not x.flags.aligned:
        extent = sum([(n - 1) * stride for n, stride in zip(x.shape, strides, strict=True)])
        copy = np.ndarray(x.shape, x.dtype, np.empty(extent + x.itemsize, np.uint8), 0, strides)
        copy[...] = x
        x = table.copies[i] = copy
    table._as_parameter_[i] = x.__array_interface__["data"][0]


def _keep(*arrays: np.ndarray) -> None:
    """Do nothing; naming the arrays keeps them alive until this call."""


class Compilation:
    """The compilation of a program: other threads load the runtime and compile.

    The thread of the step makes the trials. `library` is None until everything is done; if it stays
    None, `reason` says why.
    """

    def __init__(self, kernels: Kernels) -> None:
        self.library: ctypes.CDLL | None = None
        self.reason = ""
        self._runtime: Runtime | None = None
        self._kernels = kernels
        self._thread: Thread
        self._work = self._stages()

    def advance(self) -> bool:
        """Do some of the work of the step's thread; return whether there is more to come."""
        try:
            return next(self._work, False)
        except BaseException:  # an interrupt: start again, with the finished trials known
            self._work = self._stages()
            raise

    def wait(self) -> None:
        """Wait until everything is done."""
        while self.advance():
            self._thread.join()

    def close(self) -> None:
        """Abandon the compilation; a running thread goes on until it is done."""
        self._work = iter(())

    def _stages(self) -> Iterator[bool]:
        """Yield True while a thread works or trials are left."""
        self._start(self._load)
        while self._thread.is_alive():
            yield True
        if self._runtime is None:
            return
        try:
            for _ in self._kernels.trials(self._runtime):
                yield True
        except MemoryError as error:
            self.reason = f"no memory to try out matrix products: {error}"
            return
        self._start(self._prepare)
        while self._thread.is_alive():
            yield True

    def _start(self, work: Callable[[], None]) -> None:
        self._thread = Thread(target=work, name="xgrad-compile", daemon=True)
        self._thread.start()

    def _load(self) -> None:
        try:
            self._runtime = load_runtime()
        except (
            library.Unavailable,
            RuntimeWarning,
        ) as error:  # the cache warns; a RuntimeWarning is raised if warnings are errors
            self.reason = str(error)

    def _prepare(self) -> None:
        assert self._runtime is not None
        try:
            self.library = self._kernels.prepare(self._runtime)
        except (library.Unavailable, RuntimeWarning) as error:
            self.reason = str(error)
