"""Executor of captured steps on CuPy: a program as a CUDA graph, launched as a whole.

`Executor.link` makes the calls twice: on copies of the state, which compiles and loads the kernels,
and while a stream captures, in the memory of a private pool. Before the first capture,
`xgrad_cupy.self_check` compares a small graph with NumPy. `Executor.run` copies inputs, numbers and
draws of the host to fixed addresses, launches the graph on the current stream, and copies its
results. `xgrad.capture` makes one call of a step at a time, and links again if the state moves.

References
----------
.. [1] NVIDIA, "CUDA Programming Guide", https://docs.nvidia.com/cuda/cuda-programming-guide/: "CUDA
   Graphs".
"""

from __future__ import annotations

import contextlib
import operator
import os
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from itertools import accumulate, cycle
from threading import Lock
from typing import Any

import numpy as np

from xgrad.backend.device import Device
from xgrad.backend.ownership import owner_of
from xgrad.capture.program import Call, Program, Unusable, Value
from xgrad_cupy import cublas
from xgrad_cupy.calls import Uses
from xgrad_cupy.copy_elimination import join_copies, write_to_targets
from xgrad_cupy.fft_plans import own_plans
from xgrad_cupy.fused_programs import fusion
from xgrad_cupy.fused_sums import with_sums
from xgrad_cupy.host_draws import host_draws
from xgrad_cupy.interpreter import Interpreter, NumberOperand
from xgrad_cupy.kernels.copies import copy_all
from xgrad_cupy.matmul import Products
from xgrad_cupy.pools import new_pool, retire
from xgrad_cupy.self_check import outcomes
from xgrad_cupy.stream_capture import Invalidated, causes, record
from xgrad_cupy.stream_order import LastRun

_BUFFERS = 8  # number of runs whose copies of numbers may be pending
_WIDTH = 16  # bytes for a number
_FREE_CAPTURES, _RUNS_PER_CAPTURE = 16, 8  # captures allowed at first; runs per further capture
_JOINS = frozenset({"concat", "concatenate", "stack"})

_handles: dict[int, cublas.Cublas] = {}  # by the index of the device
_cublas_lock = Lock()  # a handle works on one stream at a time


class Executor:
    """Executor of a program as a CUDA graph.

    "Captured steps" in ``backends/README.md`` describes the interface. `run` returns an exception
    if the graph was not launched. The constructor and `link` raise Unusable if CUDA, CuPy or cuBLAS
    cannot capture the program, before anything is written.
    """

    _arrays: list[Any]  # arrays of the state
    _inputs: list[tuple[Any, int]]  # copies that the graph reads: see `_zeros_like`
    _drawn: dict[Call, tuple[Any, int]]  # copies of draws of the host, in the order of `_draws`
    # outputs that are views: of the state (with the array) or of inputs
    _views: list[tuple[int, Value, Any]]
    _new: list[int]  # indices of the other outputs
    _plans: list[Any]  # plans of Fourier transforms

    def __init__(self, program: Program, native: bool | None = None) -> None:
        inputs = [value.storage for value in program.inputs]
        owners = [*inputs, *{value.storage for value in program.state}]
        for call in program.calls:
            if any(x.storage in inputs and owners.count(x.storage) > 1 for x in call.writes):
                raise Unusable("arguments share memory that the step writes to", call.line)
        written = {x.storage for call in program.calls for x in call.writes}
        self._written = [i for i, storage in enumerate(inputs) if storage in written]
        self._draws = host_draws(program)
        self._cp: Any = import_module("cupy")
        fused = native is not False and os.environ.get("XGRAD_NATIVE") != "0"
        self._interpreter = Interpreter(program, fusion(self._cp) if fused else None)
        self._fused = self._interpreter.calls if fused else []
        self._program = program
        self._device = self._cp.cuda.Device()  # the current one
        self._links = self._runs = self.nbytes = 0
        self._pool: Any = None
        self._clear()

    def _function_of(self, call: Call) -> Callable[..., Any]:
        """Return the function of a call, or one in its place that a stream can capture."""
        if call in self._drawn:
            return lambda *_: self._drawn[call][0]
        if call.name in _JOINS:
            return partial(_join, self._cp, call.function)
        return self._products.capturable(call.function)

    # Capture

    def link(self, arrays: Sequence[Any]) -> None:
        """Capture the graph with these arrays of the state; it contains their addresses."""
        self.release()
        outcomes.require(type(self), self._device)
        self._links += 1
        if self._links > _FREE_CAPTURES + self._runs // _RUNS_PER_CAPTURE:
            raise Unusable(
                "parameters or gradients move to other memory again and again: each move captures a"
                " graph"
            )
        for last in (False, True):
            try:
                with _cublas_lock, self._device:
                    self._capture(list(arrays))
                return
            except Exception as error:
                for each in causes(error):
                    traceback.clear_frames(each.__traceback__)  # frames keep arrays alive
                self.release()
                if isinstance(error, Unusable):
                    raise
                if last or not isinstance(error, (MemoryError, Invalidated)):
                    raise Unusable(
                        f"CUDA does not capture the step: {type(error).__name__}: {error}"
                    ) from error
                if isinstance(error, MemoryError):
                    with self._device:
                        self._cp.get_default_memory_pool().free_all_blocks()

    def _capture(self, arrays: list[Any]) -> None:
        cp, program, pool = self._cp, self._program, new_pool(self._cp)
        self._pool, self._arrays, self._tf32 = pool, arrays, cublas.takes_tf32(cp)
        self._reduce_launches(arrays)
        stream = self._stream = cp.cuda.Stream(non_blocking=True)
        self._device.synchronize()  # the stream does not wait for others
        with stream:
            with cp.cuda.using_allocator(pool.malloc):
                self._products = Products(cp, self._handle(stream))
                self._inputs = [self._zeros_like(value) for value in program.inputs]
                self._drawn = {call: self._zeros_like(call.results[0]) for call in self._draws}
                self._numbers = Numbers(cp, self._interpreter.operands)
            self._numbers.copy_in([number.value for number in program.numbers], stream)
            inputs = {
                value.number: x for value, (x, _) in zip(program.inputs, self._inputs, strict=True)
            }
            with own_plans(cp) as self._plans:
                self._warm_up(inputs)
                with cp.cuda.using_allocator(pool.malloc):
                    # no closure: the frames of an error would keep it, and so the inputs, alive
                    outputs, self._graph = record(stream, partial(self._execute, inputs, arrays))
            self._graph.upload(stream)
        stream.synchronize()
        self._classify_outputs(outputs, inputs)
        self.nbytes = int(pool.total_bytes())

    def _reduce_launches(self, arrays: list[Any]) -> None:
        """Make copies, and sums after elementwise calls, by fewer launches.

        Which calls may do so depends on the memory that parts of the state share.
        """
        if not self._fused:
            return
        ranges = {
            value: (x.data.ptr + begin, x.data.ptr + end)
            for value, x in zip(self._program.state, arrays, strict=True)
            for begin, end in [_extent(x.shape, x.strides, x.itemsize)]
        }

        def overlap(x: Value, y: Value) -> bool:
            if x not in ranges or y not in ranges:
                return True
            return bool(ranges[x][0] < ranges[y][1] and ranges[y][0] < ranges[x][1])

        total = Device("cuda").backend.xp.sum
        uses = Uses(self._fused, overlap)
        calls = write_to_targets(self._fused, total, self._program.outputs, uses)
        calls = with_sums(self._cp, calls, total, Uses(calls, overlap))
        self._interpreter.replace_calls(join_copies(self._cp, calls, Uses(calls, overlap)))

    def _handle(self, stream: Any) -> cublas.Cublas:
        """Return the cuBLAS handle of the device, set to a stream and a workspace of the graph."""
        if self._device.id not in _handles:
            _handles[self._device.id] = cublas.Cublas(cublas.load(self._cp))
        handle = _handles[self._device.id]
        handle.tf32 = self._tf32
        self._workspace = self._cp.empty(
            cublas.workspace_size(self._device.compute_capability), np.uint8
        )
        handle.use(stream.ptr, self._workspace.data.ptr, self._workspace.nbytes)
        return handle

    def _warm_up(self, inputs: dict[int, Any]) -> None:
        """Make all calls on zero inputs and copies of the state.

        This compiles and loads the kernels.
        """
        pool = new_pool(self._cp)
        try:
            with self._cp.cuda.using_allocator(pool.malloc):
                state, copies = _Copies(self._cp, self._arrays).new()
                for copy in copies:
                    copy()
                self._execute(inputs, state)
                del state, copies
                self._stream.synchronize()
        finally:
            retire(self._device, pool)

    def _execute(self, inputs: dict[int, Any], state: list[Any]) -> list[Any]:
        arrays = inputs | {
            value.number: x for value, x in zip(self._program.state, state, strict=True)
        }
        return self._interpreter.execute(arrays, self._numbers.arrays, self._function_of)

    def _zeros_like(self, value: Value) -> tuple[Any, int]:
        """Return zeros with the layout of a value, and its size in bytes.

        Zeros are valid indices. The size is 0 if the layout has gaps.
        """
        cp, strides = self._cp, value.strides or ()
        low, high = _extent(value.shape, strides, value.dtype.itemsize)
        memory = cp.zeros(high - low, np.uint8).data
        array = cp.ndarray(value.shape, value.dtype, memory + -low, strides)
        return array, value.nbytes if not low and high == value.nbytes else 0

    def _classify_outputs(self, outputs: list[Any], inputs: dict[int, Any]) -> None:
        """Separate views of inputs and of the state from results.

        Results are copied, because the next run overwrites them.
        """
        owners = {id(owner_of(x)) for x, _ in self._inputs}
        state = {id(owner_of(x)) for x in self._arrays}
        for i, (value, array) in enumerate(zip(self._program.outputs, outputs, strict=True)):
            if id(owner_of(array)) in owners:
                self._interpreter.view(value, inputs)  # raises if it cannot be made
                self._views.append((i, value, None))
            elif id(owner_of(array)) in state:
                self._views.append((i, value, array))
            else:
                self._new.append(i)
        self._copies = _Copies(self._cp, [outputs[i] for i in self._new])

    # Execution

    def run(self, *args: Any) -> Any:
        """Launch the graph on the current stream; the class describes the result."""
        launched = False
        with self._device:
            try:
                outputs, copies = self._outputs(args)
                stream = self._cp.cuda.get_current_stream()
                with self._last_run.followed_on(stream):
                    self._copy_in(args, stream)
                    copies += self._copies_out(args, stream)
                    launched = True  # from here on, errors are raised: the state may have changed
                    self._graph.launch(stream)
                    for copy in copies:
                        copy()
            except Exception as error:
                if launched:
                    raise
                return error
            self._runs += 1
            return outputs

    def _outputs(self, args: Sequence[Any]) -> tuple[tuple[Any, ...], list[Callable[[], Any]]]:
        """Return the outputs of a run, and functions that copy results to them."""
        if cublas.takes_tf32(self._cp) is not self._tf32:  # the graph contains the setting
            self.link(self._arrays)
        outputs: list[Any] = [None] * len(self._program.outputs)
        results, copies = self._copies.new()
        for i, array in zip(self._new, results, strict=True):
            outputs[i] = array
        inputs = {value.number: x for value, x in zip(self._program.inputs, args, strict=False)}
        for i, value, array in self._views:
            view = self._interpreter.view(value, inputs) if array is None else array
            outputs[i] = view.view()
        return tuple(outputs), copies

    def _copy_in(self, args: Sequence[Any], stream: Any) -> None:
        """Queue copies of inputs, numbers and draws to the addresses of the graph."""
        arrays, numbers = args[: len(self._inputs)], args[len(self._inputs) :]
        self._numbers.copy_in(numbers, stream)
        drawn = [draw(numbers) for draw in self._draws.values()]
        copies = [*self._inputs, *self._drawn.values()]
        for (static, nbytes), array in zip(copies, [*arrays, *drawn], strict=True):
            if nbytes:
                static.data.copy_from_device_async(array.data, nbytes, stream)
            else:
                static[...] = array

    def _copies_out(self, args: Sequence[Any], stream: Any) -> list[Callable[[], Any]]:
        """Return functions that queue copies back to inputs that the graph writes to."""
        copies: list[Callable[[], Any]] = []
        for array, (static, nbytes) in [(args[i], self._inputs[i]) for i in self._written]:
            if nbytes:
                copies.append(
                    partial(array.data.copy_from_device_async, static.data, nbytes, stream)
                )
            else:
                copies.append(partial(operator.setitem, array, ..., static))
        return copies

    def release(self) -> None:
        """Drop the graph, its memory and the arrays of the state, after its last run ends."""
        with contextlib.suppress(Exception), self._device:
            self._last_run.synchronize()
        pool = self._pool
        self._clear()
        if pool is not None:
            retire(self._device, pool)

    def _clear(self) -> None:
        self._graph = self._pool = self._workspace = self._stream = None
        self._last_run = LastRun()
        self._arrays, self._inputs, self._views, self._new, self._plans = [], [], [], [], []
        self._drawn = {}
        self._copies, self._numbers = _Copies(self._cp, []), Numbers(self._cp, [])


class Numbers:
    """Copies of numbers to a GPU, in one transfer per run, through a ring of pinned buffers.

    Several runs may be queued, so a buffer is refilled only once its transfer is done. `arrays` are
    the 0-d arrays on the GPU.
    """

    def __init__(self, cp: Any, operands: list[NumberOperand]) -> None:
        self._operands = operands
        self._nbytes = _WIDTH * len(operands)
        self.arrays = dict[NumberOperand, Any]()
        if not operands:
            return
        offsets = [(x, _WIDTH * i) for i, x in enumerate(operands)]
        self._memory = cp.empty(self._nbytes, np.uint8).data
        self.arrays = {x: cp.ndarray((), x.dtype, self._memory + i) for x, i in offsets}
        ring = []
        for row in import_module("cupyx").empty_pinned((_BUFFERS, self._nbytes), np.uint8):
            host = [row[i : i + x.dtype.itemsize].view(x.dtype).reshape(()) for x, i in offsets]
            ring.append((row.ctypes.data, host, cp.cuda.Event(disable_timing=True)))
        self._ring = cycle(ring)

    def copy_in(self, numbers: Sequence[Any], stream: Any) -> None:
        """Queue a copy of numbers, in the order of `Program.numbers`, on a stream."""
        if self._operands:
            address, host, copied = next(self._ring)
            copied.synchronize()
            for array, operand in zip(host, self._operands, strict=True):
                array[()] = numbers[operand.number]
            self._memory.copy_from_host_async(address, self._nbytes, stream)
            copied.record(stream)


class _Copies:
    """Copies of arrays that keep layouts and shared memory: one copy for each allocation."""

    def __init__(self, cp: Any, arrays: list[Any]) -> None:
        self._cp, self._count = cp, len(arrays)
        owners: dict[int, list[tuple[int, Any]]] = {}
        for i, x in enumerate(arrays):
            owners.setdefault(id(owner_of(x)), []).append((i, x))
        self._groups = list(map(_span, owners.values()))

    def new(self) -> tuple[list[Any], list[Callable[[], Any]]]:
        """Return new arrays, and functions that queue copies to them on the current stream."""
        arrays: list[Any] = [None] * self._count
        copies: list[Callable[[], Any]] = []
        for source, nbytes, parts in self._groups:
            memory = self._cp.cuda.alloc(nbytes)
            if nbytes:
                copies.append(partial(memory.copy_from_device_async, source, nbytes))
            for i, shape, dtype, offset, strides in parts:
                arrays[i] = self._cp.ndarray(shape, dtype, memory + offset, strides)
        return arrays, copies


def _span(members: list[tuple[int, Any]]) -> tuple[Any, int, list[tuple[Any, ...]]]:
    """Return the address and the size in bytes of the span of arrays in one allocation.

    The third value has their layouts in the span.
    """
    spans = [
        (x.data.ptr + i, x.data.ptr + j)
        for _, x in members
        for i, j in [_extent(x.shape, x.strides, x.itemsize)]
    ]
    begin, end = min([begin for begin, _ in spans]), max([end for _, end in spans])
    parts = [(i, x.shape, x.dtype, x.data.ptr - begin, x.strides) for i, x in members]
    first = members[0][1].data
    return first + (begin - first.ptr), end - begin, parts


def _join(
    cp: Any, function: Callable[..., Any], arrays: Sequence[Any], /, *, axis: int | None = 0
) -> Any:
    """Join arrays by kernels that a stream can capture.

    CuPy copies one array at a time, or copies a list of their addresses from the host, which cannot
    be captured.
    """
    if len({x.dtype for x in arrays}) > 1:
        return function(arrays, axis=axis)
    if function.__name__ == "stack":
        arrays = [cp.expand_dims(x, axis) for x in arrays]
    elif axis is None:
        arrays, axis = [x.ravel() for x in arrays], 0
    first, ends = arrays[0], [*accumulate([x.shape[axis] for x in arrays])]
    axis %= first.ndim
    out = cp.empty((*first.shape[:axis], ends[-1], *first.shape[axis + 1 :]), first.dtype)
    before = (slice(None),) * axis
    copy_all(
        cp,
        arrays,
        [
            out[(*before, slice(end - x.shape[axis], end))]
            for x, end in zip(arrays, ends, strict=True)
        ],
    )
    return out


def _extent(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> tuple[int, int]:
    """Return the offsets of the begin and end of an array, in bytes from its first element."""
    if 0 in shape:
        return 0, 0
    steps = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
    return sum(s for s in steps if s < 0), sum(s for s in steps if s > 0) + itemsize
