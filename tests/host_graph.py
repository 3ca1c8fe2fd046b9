"""A stand-in for CuPy, cuBLAS and CUDA graphs on the host: the names that a captured step on `cuda` uses.

Launches during a stream capture are recorded, and done at each launch of the graph, in the recorded memory. Pools hand
out freed memory again. Copies and launches of graphs are queued until something waits for them. Arrays differ from
NumPy's as CuPy's do: 0-d results are arrays, views share `data.mem`, and NumPy's functions refuse them. What CUDA and
CuPy forbid during a capture is an error.
"""

from __future__ import annotations

import ctypes
import math
import operator
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from types import SimpleNamespace
from typing import Any

import array_api_compat.numpy as compat
import numpy as np

import host_cuda

log: list[Any] = []  # events in order
waiting: list[Callable[[], None]] = []  # the queue of the device


def flush() -> None:
    """Do all queued work."""
    while waiting:
        waiting.pop(0)()


def launches() -> int:
    """Return the number of launches of graphs in the log."""
    return sum(entry[0] == "launch" for entry in log)


# Memory

reserved = 0  # bytes of all pools, dropped ones included
capacity: int | None = None  # bytes of the device


class OutOfMemoryError(MemoryError):
    pass


def _reserve(nbytes: int) -> None:
    global reserved
    reserved += nbytes


class MemoryPool:
    """A pool of memory. As with CuPy's, its free blocks are lost when it is dropped, unless they were freed before."""

    def __init__(self) -> None:
        self.free: dict[int, list[np.ndarray]] = {}
        self.total, self.weak = 0, weakref.ref(self)

    def malloc(self, nbytes: int) -> Pointer:
        size = -(-nbytes // 512) * 512
        if self.free.get(size):
            return Pointer(Memory(self.free[size].pop(), self))
        if capacity is not None and reserved + size > capacity:
            self._free()
            if reserved + size > capacity:
                raise OutOfMemoryError(f"Out of memory allocating {size:,} bytes")
        self.total += size
        _reserve(size)
        buffer = np.empty(size + 512, np.uint8)
        start = -buffer.ctypes.data % 512
        return Pointer(Memory(buffer[start : start + size], self))

    def total_bytes(self) -> int:
        return self.total

    def used_bytes(self) -> int:
        return self.total - sum(len(buffer) for buffers in self.free.values() for buffer in buffers)

    def free_all_blocks(self) -> None:
        if self is default:
            log.append("freed")
        self._free()

    def _free(self) -> None:
        nbytes = self.total - self.used_bytes()
        self.free.clear()
        self.total -= nbytes
        _reserve(-nbytes)


class Memory:
    def __init__(self, buffer: np.ndarray, pool: MemoryPool) -> None:
        self.buffer, self.pool, self.ptr = buffer, pool.weak, buffer.ctypes.data

    def __del__(self) -> None:
        pool = self.pool()
        if pool is not None:
            pool.free.setdefault(len(self.buffer), []).append(self.buffer)
        elif callable(_reserve):  # None at exit
            _reserve(-len(self.buffer))


class Pointer:
    def __init__(self, mem: Memory, offset: int = 0) -> None:
        self.mem, self.ptr = mem, mem.ptr + offset

    def __add__(self, offset: int) -> Pointer:
        return Pointer(self.mem, self.ptr - self.mem.ptr + offset)

    def copy_from_device_async(self, source: Pointer, size: int, stream: Any = None) -> None:
        target, data = _bytes(self.ptr, size), _bytes(source.ptr, size)
        _do(lambda: np.copyto(target, data), stream, queued=True)

    def copy_from_host_async(self, address: int, size: int, stream: Any = None) -> None:
        _refuse_transfers(stream)
        target, data = _bytes(self.ptr, size), _bytes(address, size)
        log.append(("numbers", address))
        _do(lambda: np.copyto(target, data), stream, queued=True)


def _bytes(address: int, size: int) -> np.ndarray:
    return np.frombuffer((ctypes.c_char * size).from_address(address), np.uint8) if size else np.empty(0, np.uint8)


default = MemoryPool()
_allocators = [default.malloc]


@contextmanager
def using_allocator(allocator: Callable[[int], Pointer]) -> Iterator[None]:
    _allocators.append(allocator)
    try:
        yield
    finally:
        _allocators.pop()


def alloc(nbytes: int) -> Pointer:
    return _allocators[-1](nbytes)


# Streams, events and graphs


class Stream:
    def __init__(self, non_blocking: bool = False) -> None:
        self.ptr = id(self) if non_blocking else 0
        self.nodes: list[Callable[[], Any]] | None = None

    def __enter__(self) -> Stream:
        _streams.append(self)
        return self

    def __exit__(self, *error: Any) -> None:
        _streams.pop()

    def begin_capture(self) -> None:
        assert self.ptr, "cannot capture on the default (legacy) stream"
        log.append("begin")
        self.nodes = []

    def end_capture(self) -> Graph:
        assert self.nodes is not None, "the stream does not capture"
        log.append("end")
        nodes, self.nodes = self.nodes, None
        return Graph(nodes)

    def synchronize(self) -> None:
        assert self.nodes is None, "cudaErrorStreamCaptureUnsupported"
        flush()

    def record(self) -> Event:
        event = Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        log.append(("wait", self.ptr, event.stream))


class Event:
    def __init__(self, disable_timing: bool = False) -> None:
        self.stream: int | None = None

    def record(self, stream: Stream) -> None:
        self.stream = stream.ptr

    def synchronize(self) -> None:
        if self.stream is not None:  # recorded
            log.append("waited for a copy")
            flush()


class Graph:
    def __init__(self, nodes: list[Callable[[], Any]]) -> None:
        self.nodes = nodes

    def upload(self, stream: Stream) -> None:
        pass

    def launch(self, stream: Stream) -> None:
        log.append(("launch", stream.ptr))
        nodes = self.nodes
        waiting.append(lambda: [node() for node in nodes] and None)


_streams = [Stream()]


def get_current_stream() -> Stream:
    return _streams[-1]


def capturing() -> bool:
    return get_current_stream().nodes is not None


def _refuse_transfers(stream: Stream | None = None) -> None:
    if (stream or get_current_stream()).nodes is not None:
        raise RuntimeError("the current stream is capturing, so transfers from and to the host are disallowed")


def _do(work: Callable[[], Any], stream: Any = None, queued: bool = False) -> None:
    """Do some work now or later, or add it to a graph."""
    stream = stream or get_current_stream()
    if stream.nodes is not None:
        stream.nodes.append(work)
    elif queued:
        waiting.append(work)
    else:
        flush()
        work()


class Device:
    compute_capability = "90"
    mem_info = 1 << 30, 1 << 30

    def __init__(self, index: Any = 0) -> None:
        self.id = 0

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def __eq__(self, other: object) -> bool:  # and no hash, as in CuPy
        return isinstance(other, Device)

    def synchronize(self) -> None:
        flush()


# Arrays


class Array:
    """An array of the device."""

    def __init__(
        self, shape: Any, dtype: Any = float, memptr: Any = None, strides: Any = None, base: Any = None
    ) -> None:
        self.shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self.dtype, self.base = np.dtype(dtype), base
        self.strides = tuple(np.empty(self.shape, self.dtype).strides if strides is None else strides)
        self.data = alloc(self.nbytes) if memptr is None else memptr

    size = property(lambda self: math.prod(self.shape))
    ndim = property(lambda self: len(self.shape))
    itemsize = property(lambda self: self.dtype.itemsize)
    nbytes = property(lambda self: self.size * self.itemsize)
    device = property(lambda self: Device())
    flags = property(lambda self: self.raw.flags)
    T = property(lambda self: launch(np.ndarray.transpose, self))
    mT = property(lambda self: launch(np.matrix_transpose, self))
    real = property(lambda self: launch(np.real, self))
    imag = property(lambda self: launch(np.imag, self))
    __array_ufunc__ = __array__ = None

    @property
    def raw(self) -> np.ndarray:
        mem = self.data.mem
        return np.ndarray(self.shape, self.dtype, mem.buffer, self.data.ptr - mem.ptr, self.strides)

    def get(self, out: Any = None) -> np.ndarray:
        _refuse_transfers()
        flush()
        return self.raw.copy()

    def item(self) -> Any:
        return self.get().item()

    def __bool__(self) -> bool:
        return bool(self.get())

    def __float__(self) -> float:
        return float(self.get())

    def __int__(self) -> int:
        return int(self.get())

    def __len__(self) -> int:
        return self.shape[0]  # type: ignore[no-any-return]

    def __getitem__(self, key: Any) -> Any:
        return launch(operator.getitem, self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        raw, key, value = self.raw, unwrap(key), unwrap(value)
        _do(lambda: operator.setitem(raw, key, value))

    def __matmul__(self, other: Any) -> Any:
        return launch(refused_product(np.matmul), self, other)

    def fill(self, value: Any) -> None:
        self[...] = value

    def dot(self, other: Any, out: Any = None) -> Any:
        assert out is None or out.flags.c_contiguous
        return launch(refused_product(np.dot), self, other, out=out)

    def copy(self) -> Array:
        return launch(np.array, self)  # type: ignore[no-any-return]

    def view(self, dtype: Any = None) -> Array:
        if dtype is not None:
            return launch(lambda x: x.view(dtype), self)  # type: ignore[no-any-return]
        return Array(self.shape, self.dtype, self.data, self.strides, self if self.base is None else self.base)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.ndarray, name) or name in ("ctypes", "tobytes", "mem"):
            raise AttributeError(name)
        return partial(launch, getattr(np.ndarray, name), self)


def unwrap(x: Any) -> Any:
    """Return NumPy's arrays for those of the device, also in containers."""
    if isinstance(x, Array):
        return x.raw
    if type(x) in (list, tuple):
        return type(x)(map(unwrap, x))
    assert not isinstance(x, np.ndarray), "an array of the host"
    return x


def _arrays_in(args: Iterable[Any]) -> Iterator[Array]:
    for arg in args:
        if isinstance(arg, Array):
            yield arg
        elif type(arg) in (list, tuple):
            yield from _arrays_in(arg)


def launch(function: Callable[..., Any], *args: Any, out: Any = None, **options: Any) -> Any:
    """Call a function of NumPy on arrays of the device, now or in a graph, and return arrays of the device."""
    raw, more = [unwrap(x) for x in args], {name: unwrap(x) for name, x in options.items()}
    operands = list(_arrays_in((*args, *options.values())))
    kinds = ((x.dtype, x.ndim, x.flags.c_contiguous) if isinstance(x, Array) else type(x) for x in args)
    _compile(getattr(function, "__name__", function), *kinds)

    def call() -> Any:
        with np.errstate(all="ignore"):
            return function(*raw, **more)

    if not capturing():
        flush()
    result = call()
    unchanged = [x for x, y in zip(args, raw, strict=True) if isinstance(x, Array) and y is result]
    if unchanged:
        return unchanged[0]
    assert out is None or out.shape == result.shape
    single = not isinstance(result, (tuple, list))
    outputs = [out] if out is not None else [_wrap(part, operands) for part in ([result] if single else result)]
    written = [(i, x.raw) for i, x in enumerate(outputs) if isinstance(x, Array) and (x is out or x.base is None)]

    def write() -> None:
        new = call()
        for i, target in written:
            np.copyto(target, new if single else new[i], casting="same_kind")

    if written:
        _do(write)
    if single:
        return outputs[0]
    return type(result)(*outputs) if hasattr(result, "_fields") else type(result)(outputs)


def _wrap(result: Any, operands: list[Array]) -> Any:
    """Return an array of the device for a result: a view of an operand, or a new one, full of NaN until computed."""
    if not isinstance(result, (np.ndarray, np.generic)):
        return result
    for x in operands if isinstance(result, np.ndarray) else ():
        if np.may_share_memory(result, x.raw) and x.size:
            address = x.data + (result.__array_interface__["data"][0] - x.data.ptr)
            return Array(result.shape, result.dtype, address, result.strides, x if x.base is None else x.base)
    new = Array(result.shape, result.dtype, None, np.empty_like(result).strides)
    new.raw[...] = np.nan if new.dtype.kind in "fc" else 0
    return new


_compiled: set[Any] = set()


def _compile(*key: Any) -> None:
    """Log the first call of a kernel with these dtypes and layouts."""
    if key not in _compiled:
        _compiled.add(key)
        log.append("compiled")


class Ufunc:
    """An elementwise function of CuPy."""

    def __init__(self, function: np.ufunc) -> None:
        self.function, self.__name__, self.name = function, function.__name__, function.__name__
        self.nin, self.nout, self.types = function.nin, function.nout, function.types

    def __call__(self, *args: Any, out: Any = None, **options: Any) -> Any:
        for x in args:
            if hasattr(x, "__cupy_override_elementwise_kernel__"):
                more = options if out is None else options | {"out": out}
                return x.__cupy_override_elementwise_kernel__(self, *args, **more)
        assert all(isinstance(x, (Array, bool, int, float, complex, np.generic)) for x in args), self.name
        if len(args) > self.nin:
            *args, out = args  # type: ignore[assignment]
        return launch(self.function, *args, out=out, **options)

    def at(self, x: Array, key: Any, values: Any) -> None:
        raw, key, values = map(unwrap, (x, key, values))
        _do(lambda: self.function.at(raw, key, values))


_OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "power", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "left_shift", "rshift": "right_shift", "eq": "equal", "ne": "not_equal", "lt": "less",
    "le": "less_equal", "gt": "greater", "ge": "greater_equal", "neg": "negative", "pos": "positive",
    "invert": "invert", "abs": "absolute",
}  # fmt: skip
for _name, _function in _OPERATORS.items():
    _ufunc = Ufunc(getattr(np, _function))
    setattr(Array, f"__{_name}__", lambda *args, ufunc=_ufunc: ufunc(*args))
    if _ufunc.nin == 2 and _name not in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(Array, f"__r{_name}__", lambda x, y, ufunc=_ufunc: ufunc(y, x))
        setattr(Array, f"__i{_name}__", lambda x, y, ufunc=_ufunc: ufunc(x, y, out=x))
Array.__hash__ = object.__hash__  # type: ignore[method-assign]


# Functions that cannot be captured


def refused(
    function: Callable[..., Any], library: str, when: Callable[..., bool] = lambda *args: True
) -> Callable[..., Any]:
    """Return a function that raises CuPy's error during a capture, for arguments of which a condition holds."""

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if capturing() and when(*args):
            if library == "CuPy":
                _refuse_transfers()
            raise NotImplementedError(f"calling {library} API during stream capture is currently unsupported")
        return function(*args, **options)

    return call


def refused_product(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a product: CuPy's go through its cuBLAS, except those of integers."""
    return refused(function, "cuBLAS", lambda x1, x2, *args: np.result_type(x1, x2).kind in "fc")


def refused_join(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a join: CuPy copies the addresses of more than eight arrays from the host."""
    return refused(function, "CuPy", lambda arrays: len(arrays) > 8 and len({x.dtype for x in arrays}) == 1)


_SOLVERS = "solve inv det svd qr eigh cholesky slogdet pinv eigvalsh".split()
_CREATES = frozenset("arange empty eye full linspace ones zeros".split())


def namespace(source: Any = compat) -> SimpleNamespace:
    """Return the functions of a namespace for arrays of the device."""
    functions: dict[str, Any] = {}
    for name, value in vars(source).items():
        if isinstance(value, np.ufunc):
            functions[name] = Ufunc(value)
        elif name.startswith("_") or isinstance(value, type) or not callable(value):
            functions[name] = value
        else:
            value = refused_product(value) if name in ("matmul", "tensordot", "vecdot") else value
            value = refused_join(value) if name in ("concat", "stack") else value
            functions[name] = wraps(value)(partial(_create if name in _CREATES else launch, value))
    if source is compat:
        functions |= {"linalg": namespace(compat.linalg), "fft": _fft(), "asarray": _asarray}
    elif source is compat.linalg:
        functions |= {name: refused(functions[name], "cuSOLVER") for name in _SOLVERS}
    return SimpleNamespace(**functions)


def _create(function: Callable[..., Any], *args: Any, device: Any = None, **options: Any) -> Any:
    return launch(function, *args, **options)


def _asarray(x: Any, dtype: Any = None, copy: Any = None, device: Any = None) -> Any:
    if isinstance(x, Array):
        return launch(np.array, x, dtype=dtype) if copy or dtype not in (None, x.dtype) else x
    _refuse_transfers()
    host = np.array(x, dtype)
    new = Array(host.shape, host.dtype)
    flush()
    new.raw[...] = host
    return new


class Plan:
    """A plan of cuFFT, with its memory."""

    def __init__(self) -> None:
        _refuse_transfers()  # of its tables
        self.work_area = alloc(512)


plans: dict[Any, Plan] = {}  # CuPy's cache of sixteen


def _fft() -> SimpleNamespace:
    functions = namespace(compat.fft)
    for name in compat.fft.__all__:
        if name.endswith(("fft", "fftn")):
            setattr(functions, name, _with_plan(getattr(functions, name)))
    functions.config = SimpleNamespace(
        get_plan_cache=lambda: [(key, SimpleNamespace(plan=plan)) for key, plan in plans.items()]
    )
    return functions


def _with_plan(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(x: Array, **options: Any) -> Any:
        key = function.__name__, x.shape, x.dtype, str(options)
        plans[key] = plan = plans.pop(key, None) or Plan()
        while len(plans) > 16:
            del plans[next(iter(plans))]
        alive = weakref.ref(plan)

        def check() -> None:
            assert alive() is not None, "the plan was dropped"

        _do(check)
        return function(x, **options)

    return call


# Kernels


class ElementwiseKernel:
    """A kernel of CuPy, compiled for the host."""

    def __init__(self, ins: str, outs: str, *args: Any, **options: Any) -> None:
        self.kernel = host_cuda.ElementwiseKernel(ins, outs, *args, **options)
        self.name, self.nin, self.nout = self.kernel.name, len(self.kernel.ins), len(self.kernel.outs)

    def __call__(self, *args: Any) -> Any:
        if len(args) == self.nin:
            return launch(self.kernel, *args)
        raw = [unwrap(x) for x in args]
        _do(lambda: self.kernel(*raw))
        return args[-1]


class RawKernel:
    """A kernel of CUDA, compiled for the host."""

    def __init__(self, code: str, name: str) -> None:
        self.kernel = host_cuda.RawKernel(code, name)

    def __call__(self, grid: Any, block: Any, args: Any) -> None:
        raw = tuple(unwrap(x) for x in args)
        _do(lambda: self.kernel(grid, block, raw))


# cuBLAS

_HANDLE = 4711
_DTYPES = {0: ("f4", "f4"), 1: ("f8", "f8"), 2: ("f2", "f4"), 4: ("c8", "c8"), 5: ("c16", "c16")}  # and of factors


class Library:
    """The functions of cuBLAS by their C signatures: only addresses, sizes and flags."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.workspace: tuple[int, int] | None = None
        self.stream: int | None = None
        for name in "cublasCreate_v2 cublasSetStream_v2 cublasSetWorkspace_v2 cublasGemmEx".split():
            setattr(self, name, self._typed(getattr(self, f"_{name}")))
        self.cublasGemmStridedBatchedEx = self._typed(self._batched)

    def _typed(self, function: Callable[..., int]) -> Callable[..., int]:
        def call(*args: Any) -> int:
            for kind, arg in zip(call.argtypes, args, strict=True):  # type: ignore[attr-defined]
                kind.from_param(arg)
            return function(*args)

        return call

    def _cublasCreate_v2(self, handle: Any) -> int:
        handle._obj.value = _HANDLE
        return 0

    def _cublasSetStream_v2(self, handle: Any, stream: int) -> int:
        self.stream, self.workspace = stream, None
        return int(handle.value != _HANDLE)

    def _cublasSetWorkspace_v2(self, handle: Any, address: int, size: int) -> int:
        self.workspace = address, size
        return int(handle.value != _HANDLE)

    def _cublasGemmEx(self, *args: Any) -> int:
        handle, ta, tb, m, n, k, alpha, a, ka, lda, b, kb, ldb, beta, c, kc, ldc, computed, algo = args
        a, b, c = (a, ka, lda, 0), (b, kb, ldb, 0), (c, kc, ldc, 0)
        return self._batched(handle, ta, tb, m, n, k, alpha, *a, *b, beta, *c, 1, computed, algo)

    def _batched(self, handle: Any, *args: Any) -> int:
        ta, tb, m, n, k, alpha, a, ka, lda, sa, b, kb, ldb, sb, beta, c, kc, ldc, sc, count, computed, algo = args
        assert algo == -1
        if handle.value != _HANDLE or self.stream != get_current_stream().ptr or not self.workspace:
            return 1
        if not ka == kb == kc or lda < max(1, k if ta else m) or ldb < max(1, n if tb else k) or ldc < max(1, m):
            return 7  # CUBLAS_STATUS_INVALID_VALUE
        self.calls.append({"flags": (ta, tb), "computed": computed})
        dtype, factor = map(np.dtype, _DTYPES[ka])
        one, zero = (np.frombuffer(_bytes(address, factor.itemsize), factor)[0] for address in (alpha, beta))
        assert (one, zero) == (1, 0)

        def columns(address: int, rows: int, width: int, leading: int) -> np.ndarray:
            """Return a matrix stored by columns."""
            flat = _bytes(address, ((width - 1) * leading + rows) * dtype.itemsize).view(dtype)
            return np.lib.stride_tricks.as_strided(flat, (rows, width), (dtype.itemsize, leading * dtype.itemsize))

        def run() -> None:
            for i in range(count):
                first = columns(a + i * sa * dtype.itemsize, *((k, m) if ta else (m, k)), lda)
                second = columns(b + i * sb * dtype.itemsize, *((n, k) if tb else (k, n)), ldb)
                product = (first.T if ta else first) @ (second.T if tb else second)
                columns(c + i * sc * dtype.itemsize, m, n, ldc)[...] = product

        _do(run)
        return 0


def module() -> Any:
    """Return the stand-in for the module ``cupy``."""
    cp = namespace()
    cp.ndarray, cp.ElementwiseKernel, cp.RawKernel = Array, ElementwiseKernel, RawKernel
    for name in ("moveaxis", "ascontiguousarray", "broadcast_to"):
        setattr(cp, name, partial(launch, getattr(np, name)))
    cp.get_default_memory_pool = lambda: default
    cp.empty = Array
    cp.zeros = lambda shape, dtype: launch(np.zeros, shape, dtype)
    cp.empty_like = lambda x: Array(x.shape, x.dtype)
    cp.cuda = SimpleNamespace(
        Device=Device, Stream=Stream, Event=Event, MemoryPool=MemoryPool, alloc=alloc, using_allocator=using_allocator,
        runtime=SimpleNamespace(runtimeGetVersion=lambda: 13_020), get_current_stream=get_current_stream,
        get_cublas_handle=lambda: 1,
    )  # fmt: skip
    compute_types = {np.float32: 1}
    cp._core = SimpleNamespace(
        _routines_linalg=SimpleNamespace(COMPUTE_TYPE_DEFAULT=1, COMPUTE_TYPE_TF32=7),
        set_compute_type=compute_types.__setitem__, get_compute_type=compute_types.__getitem__,
    )  # fmt: skip
    return cp
