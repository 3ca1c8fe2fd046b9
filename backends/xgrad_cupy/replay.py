"""A recorded program as a CUDA graph: one launch for all of its kernels.

The calls are made once while a stream of ours captures, with memory of a pool that nobody else takes from. A replay
copies arguments and numbers to where the graph reads them, launches it on the caller's stream, and copies results out.
Not yet run on a GPU: see ``tests/backends/test_cuda_graph.py`` for what stands for one.

References
----------
.. [1] NVIDIA, "CUDA Programming Guide", https://docs.nvidia.com/cuda/cuda-programming-guide/: "CUDA Graphs".
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from importlib import import_module
from threading import Lock
from typing import Any

import numpy as np

from xgrad.capturing.execution import Cell, Execution
from xgrad.capturing.memory import root_of
from xgrad.capturing.numbers import Number
from xgrad.capturing.outcomes import Unusable
from xgrad.capturing.program import Call, Program, Value
from xgrad_cupy import cublas, takes_tf32
from xgrad_cupy.products import Products

_SLOTS = 8  # replays of which the numbers may be on their way at a time
_WIDTH = 16  # bytes for a number
_LINKS, _RUNS = 16, 8  # so many captures are free, and one more for so many replays: a graph must pay
_KERNELS = "xgrad_cupy.kernels"

_handles: dict[int, cublas.Cublas] = {}  # by the number of the device
_one_at_a_time = Lock()  # a handle works for one stream
_pools: set[Any] = set()  # that are in use: blocks are lost that come back to one which is being collected
_retired: list[tuple[Any, Any]] = []  # pools whose memory is to be given back, each with its device


class Replay(Execution):
    """What runs a program: see `xgrad_numpy.replay.Replay`.

    Attributes
    ----------
    run : callable
        Takes the arrays of `found`, then the numbers that `numbers` lists, and returns the outputs; or an error, if the
        graph was not launched.
    nbytes : int
        How much memory it has of its own.
    ripe, planned : bool
        That nothing is planned later.

    Raises
    ------
    Unusable
        By this and by `link`, if CUDA, CuPy or cuBLAS refuse to capture it; nothing has been changed then.
    """

    ripe, planned = False, True

    def __init__(self, program: Program, found: list[Value]) -> None:
        self._cp: Any = import_module("cupy")
        self._device = self._cp.cuda.Device()  # the current one
        super().__init__(program, found)
        self.nbytes = 0
        self._links = self._runs = 0
        self._graph: Any = None
        self._pool: Any = None
        self._numbers = Numbers(self._cp, [])
        self._after: Any = None  # the stream of the last replay
        self._refuse_shared(found)

    def _refuse_shared(self, found: list[Value]) -> None:
        written = {id(value.storage) for call in self.calls for value in call.targets()}
        storages = [id(value.storage) for value in found]
        if any(storages.count(storage) > 1 for storage in written):
            raise Unusable("arguments share memory that the step changes")
        self._written = [i for i, storage in enumerate(storages) if storage in written]

    def number_dtype(self, call: Call, number: Number) -> Any:
        kernel = getattr(call.function, "__module__", "") == _KERNELS
        return np.dtype(np.float64) if kernel else super().number_dtype(call, number)

    def reason(self, call: Call, error: Exception) -> str:
        if call.numbers and call.name == "drawn":
            return "random numbers are made on the host, which a CUDA graph cannot repeat"
        text = str(error).strip().partition("\n")[0]
        return f"{call.name} cannot be part of a CUDA graph: {type(error).__name__}: {text}"

    def function_of(self, call: Call) -> Callable[..., Any]:
        return self._products.stands_for(call.function)

    # Capture

    def link(self, arrays: list[Any]) -> None:
        """Take the arrays of `statics`, and capture the graph anew, which has their addresses in it."""
        self.release()
        self._links += 1
        if self._links > _LINKS + self._runs // _RUNS:
            raise Unusable("parameters or gradients move to other memory time and again: each time a graph is captured")
        try:
            with _one_at_a_time, self._device:
                self._capture(arrays)
        except Unusable:
            self.release()
            raise
        except Exception as error:
            self.release()
            raise Unusable(f"CUDA does not capture the step: {type(error).__name__}: {error}") from error

    def _capture(self, arrays: list[Any]) -> None:
        cp = self._cp
        cuda = cp.cuda
        if self._device.id not in _handles:
            _handles[self._device.id] = cublas.Cublas(cublas.load(cp))
        handle = _handles[self._device.id]
        self._arrays, self._tf32 = arrays, takes_tf32(cp)
        handle.tf32 = self._tf32
        self._products = Products(cp, handle)
        stream = self._stream = cuda.Stream(non_blocking=True)
        self._pool = _new_pool(cp)
        self._device.synchronize()  # what comes does not wait for other streams
        with stream:
            with cuda.using_allocator(self._pool.malloc):
                size = cublas.workspace_size(self._device.compute_capability)
                self._workspace = cp.empty(size, np.uint8)
                handle.use(stream.ptr, self._workspace.data.ptr, size)
                self._inputs = [self._alike(value) for value in self.found]
                self._numbers = Numbers(cp, self.cells)
            cells = self._numbers.arrays
            self._numbers.copy_in(self._numbers.now, stream)
            given = {value.number: static for value, (static, _) in zip(self.found, self._inputs, strict=True)}
            self._warm_up(given, arrays, cells)
            given |= {value.number: array for value, array in zip(self.statics, arrays, strict=True)}
            with cuda.using_allocator(self._pool.malloc):
                outputs = self._captured(lambda: self.execute(given, cells))
            self._graph.upload(stream)
        # CuPy drops a plan, and with it memory that kernels in the graph use, when sixteen others came after it.
        self._plans = [node.plan for _, node in cp.fft.config.get_plan_cache()]
        stream.synchronize()
        self._results = self._ways_out(outputs)
        self.nbytes = int(self._pool.total_bytes())

    def _captured(self, work: Callable[[], Any]) -> Any:
        """Return what some work returns, after capturing it as the graph; a capture always comes to its end."""
        self._stream.begin_capture()
        try:
            result = work()
        except BaseException:
            with contextlib.suppress(Exception):  # which says that the capture has failed: that is known
                self._stream.end_capture()
            raise
        self._graph = self._stream.end_capture()
        return result

    def _warm_up(self, given: dict[int, Any], arrays: list[Any], cells: dict[Cell, Any]) -> None:
        """Make all calls on copies of what they may change: kernels must have been compiled, and loaded, by then.

        Arguments are all zeros there, which are right as indices, too.
        """
        pool = _new_pool(self._cp)
        try:
            with self._cp.cuda.using_allocator(pool.malloc):
                copies = self._copies(arrays)
                scratch = {value.number: copy for value, copy in zip(self.statics, copies, strict=True)}
                del copies
                outputs = self.execute(given | scratch, cells)
                self._stream.synchronize()
                del scratch, outputs
        finally:
            _retire(self._device, pool)

    # Memory

    def _alike(self, value: Value) -> tuple[Any, int]:
        """Return zeros that lie as a value does, and how many bytes to copy at once, or 0 if they are apart."""
        cp, itemsize = self._cp, int(value.dtype.itemsize)
        low, high = _extent(value.shape, value.strides, itemsize)
        memory = cp.zeros(high - low, np.uint8)
        array = cp.ndarray(value.shape, value.dtype, memory.data + -low if high else memory.data, value.strides)
        return array, value.nbytes if not low and high == value.nbytes else 0

    def _copies(self, arrays: list[Any]) -> list[Any]:
        """Return copies of arrays that lie as they do, and share memory as they do."""
        cp, copies = self._cp, {}
        for members in _by_memory(arrays).values():
            first, low, high = _span([arrays[i] for i in members])
            memory = cp.empty(high - low, np.uint8)
            if high > low:
                memory.data.copy_from_device_async(first.data + (low - first.data.ptr), high - low)
            for i in members:
                x = arrays[i]
                place = memory.data + (x.data.ptr - low) if high > low else memory.data
                copies[i] = cp.ndarray(x.shape, x.dtype, place, x.strides)
        return [copies[i] for i in range(len(arrays))]

    # Results

    def _ways_out(self, outputs: list[Any]) -> list[Callable[[tuple[Any, ...]], Iterable[tuple[int, Any]]]]:
        """Return functions that take what is given to a replay, and return outputs, each with its number."""
        ways: list[Any] = []
        new: list[int] = []
        for i, (value, array) in enumerate(zip(self.program.outputs, outputs, strict=True)):
            if value.number in self.constants or value.storage.kind not in ("input", "memory"):
                new.append(i)
            elif value.storage.kind == "memory":
                ways.append(_View(i, array))
            else:
                given = {v.number: static for v, (static, _) in zip(self.found, self._inputs, strict=True)}
                self.view(value, given)  # which says whether it can be followed
                ways.append(_ViewOfGiven(i, value, self))
        for members in _by_memory([outputs[i] for i in new]).values():
            ways.append(_Fresh(self._cp, [(new[k], outputs[new[k]]) for k in members]))
        return ways

    # Replay

    def run(self, *given: Any) -> Any:
        """Launch the graph; see the class."""
        count = len(self._inputs)
        try:
            if takes_tf32(self._cp) is not self._tf32:  # which is in the graph
                self.link(self._arrays)
            with self._device:
                stream = self._cp.cuda.get_current_stream()
                if self._after is not None and self._after != stream:
                    stream.wait_event(self._after.record())
                self._after = stream
                self._numbers.copy_in(given[count:], stream)
                for (static, nbytes), array in zip(self._inputs, given, strict=False):
                    if nbytes:
                        static.data.copy_from_device_async(array.data, nbytes, stream)
                    else:
                        static[...] = array
                self._graph.launch(stream)
        except Exception as error:
            return error
        self._runs += 1
        with self._device:
            for i in self._written:
                given[i][...] = self._inputs[i][0]
            results = dict(pair for way in self._results for pair in way(given))
        return tuple([results[i] for i in range(len(results))])

    def release(self) -> None:
        """Let go of the graph and its memory, once it has been run."""
        if self._after is not None:
            with contextlib.suppress(Exception), self._device:
                self._device.synchronize()
        self._graph = self._after = None
        self._results, self._inputs, self._arrays, self._plans = [], [], [], []
        pool, self._pool = self._pool, None
        self._workspace = self._stream = None
        self._numbers = Numbers(self._cp, [])
        if pool is not None:
            _retire(self._device, pool)


class Numbers:
    """Numbers of Python on their way to a GPU: from pinned memory, in one copy a replay.

    Several replays may wait for the GPU while the next ones are prepared, so there is a ring of pinned buffers; one is
    filled again when what was in it has been copied.

    Attributes
    ----------
    arrays : dict of Cell to array
        Where the numbers are, on the GPU.
    now : list
        What the numbers were when the program was recorded.
    """

    def __init__(self, cp: Any, cells: list[Cell]) -> None:
        self._cells, self._turn = cells, 0
        count = max([cell.source for cell in cells], default=-1) + 1
        self.now = [0] * count
        self.arrays: dict[Cell, Any] = {}
        self._nbytes = _WIDTH * len(cells)
        if not cells:
            return
        for cell in cells:
            self.now[cell.source] = cell.now
        self._memory = cp.empty(self._nbytes, np.uint8)
        for i, cell in enumerate(cells):
            self.arrays[cell] = cp.ndarray((), cell.dtype, self._memory.data + _WIDTH * i)
        self._slots = [_Slot(cp, cells) for _ in range(_SLOTS)]

    def copy_in(self, numbers: Any, stream: Any) -> None:
        """Let the GPU have numbers, by the places that cells name, before what comes next on a stream."""
        if not self._cells:
            return
        slot = self._slots[self._turn]
        self._turn = (self._turn + 1) % _SLOTS
        slot.wait()
        for place, cell in zip(slot.places, self._cells, strict=True):
            place[()] = numbers[cell.source]
        self._memory.data.copy_from_host_async(slot.address, self._nbytes, stream)
        slot.sent(stream)


class _Slot:
    """A pinned buffer, and when it was copied."""

    def __init__(self, cp: Any, cells: list[Cell]) -> None:
        self.host = import_module("cupyx").empty_pinned((_WIDTH * len(cells),), np.uint8)
        self.address = self.host.ctypes.data
        self.places = [
            self.host[_WIDTH * i : _WIDTH * i + cell.dtype.itemsize].view(cell.dtype).reshape(())
            for i, cell in enumerate(cells)
        ]
        self._copied = cp.cuda.Event(disable_timing=True)
        self._busy = False

    def wait(self) -> None:
        if self._busy:
            self._copied.synchronize()
            self._busy = False

    def sent(self, stream: Any) -> None:
        self._copied.record(stream)
        self._busy = True


class _View:
    """A result that is memory which was there before."""

    def __init__(self, number: int, array: Any) -> None:
        self.number, self.array = number, array

    def __call__(self, given: tuple[Any, ...]) -> Iterable[tuple[int, Any]]:
        return ((self.number, self.array.view()),)  # so that an optimizer sees that somebody looks


class _ViewOfGiven:
    """A result that shares memory with an argument."""

    def __init__(self, number: int, value: Value, execution: Replay) -> None:
        self.number, self.value, self.execution = number, value, execution

    def __call__(self, given: tuple[Any, ...]) -> Iterable[tuple[int, Any]]:
        arrays = {v.number: array for v, array in zip(self.execution.found, given, strict=False)}
        return ((self.number, self.execution.view(self.value, arrays).view()),)


class _Fresh:
    """Results in one piece of the graph's memory, which the next replay writes to: they are copied out of it."""

    def __init__(self, cp: Any, outputs: list[tuple[int, Any]]) -> None:
        self.cp = cp
        first, low, high = _span([x for _, x in outputs])
        self.source, self.nbytes = first.data + (low - first.data.ptr) if high > low else None, high - low
        self.about = [(i, x.shape, x.dtype, x.data.ptr - low if high > low else 0, x.strides) for i, x in outputs]
        self.kept = [x for _, x in outputs]

    def __call__(self, given: tuple[Any, ...]) -> Iterable[tuple[int, Any]]:
        memory = self.cp.cuda.alloc(self.nbytes)
        if self.source is not None:
            memory.copy_from_device_async(self.source, self.nbytes)
        ndarray = self.cp.ndarray
        return [
            (i, ndarray(shape, dtype, memory + offset if offset else memory, strides))
            for i, shape, dtype, offset, strides in self.about
        ]


def _new_pool(cp: Any) -> Any:
    pool = cp.cuda.MemoryPool()
    _pools.add(pool)
    return pool


def _retire(device: Any, pool: Any) -> None:
    """Give back the memory of a pool, which is not done when CuPy drops one; later, what somebody still has of it."""
    _retired.append((device, pool))
    _pools.discard(pool)
    for pair in _retired[:]:
        with contextlib.suppress(Exception), pair[0]:  # another thread may be at it
            pair[1].free_all_blocks()
            if not pair[1].total_bytes():
                _retired.remove(pair)


def _extent(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, int]:
    """Return where an array begins and ends in memory, in bytes from its first element."""
    if 0 in shape:
        return 0, 0
    steps = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
    return sum(s for s in steps if s < 0), sum(s for s in steps if s > 0) + itemsize


def _span(arrays: list[Any]) -> tuple[Any, int, int]:
    """Return the first of some arrays, and from which address to which they all lie."""
    extents = [(x.data.ptr, *_extent(x.shape, x.strides, x.dtype.itemsize)) for x in arrays if x.size]
    if not extents:
        return arrays[0], 0, 0
    first = next(x for x in arrays if x.size)
    return first, min(at + low for at, low, _ in extents), max(at + high for at, _, high in extents)


def _by_memory(arrays: list[Any]) -> dict[int, list[int]]:
    """Return the places of arrays that share memory, by the id of what owns that."""
    groups: dict[int, list[int]] = {}
    for i, x in enumerate(arrays):
        groups.setdefault(id(root_of(x)), []).append(i)
    return groups
