"""CUDA graphs on the host: the names of CuPy, cuBLAS and CUDA that a captured step on `cuda` uses, over NumPy's memory.

What is launched while a stream captures is not done, but written down, and done at each launch of the graph, in the
memory that it was given. Memory goes back to the pool that it is from, and is handed out again. Copies and launches of
graphs wait until somebody waits for them. Arrays are not NumPy's: results without axes are arrays, views share
`data.mem`, and NumPy's functions do not take them. What CUDA and CuPy forbid while a stream captures is an error.
"""

from __future__ import annotations

import ctypes
import math
import operator
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from types import SimpleNamespace
from typing import Any

import array_api_compat.numpy as compat
import numpy as np

import host_cuda

log: list[Any] = []  # what was done, in order
waiting: list[Callable[[], None]] = []  # what the device has still to do


def flush() -> None:
    """Let the device do all that it has to."""
    while waiting:
        waiting.pop(0)()


# Memory


reserved = 0  # bytes of all pools, those included that are no more
capacity: int | None = None  # bytes that the device has


class OutOfMemoryError(MemoryError):
    pass


def _reserve(nbytes: int) -> None:
    global reserved
    reserved += nbytes


class MemoryPool:
    """Memory that is handed out again when nobody holds it.

    As with CuPy's, free blocks are lost with the pool, unless they were given back before.
    """

    def __init__(self) -> None:
        self.free: dict[int, list[np.ndarray]] = {}
        self.total, self.weak = 0, weakref.ref(self)

    def malloc(self, nbytes: int) -> Pointer:
        size = -(-nbytes // 512) * 512
        free = self.free.get(size)
        if free:
            return Pointer(Memory(free.pop(), self))
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

    def free_all_blocks(self) -> None:
        if self is default:
            log.append("freed")
        self._free()

    def _free(self) -> None:
        given_back = sum(len(buffer) for buffers in self.free.values() for buffer in buffers)
        self.free.clear()
        self.total -= given_back
        _reserve(-given_back)


class Memory:
    def __init__(self, buffer: np.ndarray, pool: MemoryPool) -> None:
        self.buffer, self.pool = buffer, pool.weak
        self.ptr = buffer.ctypes.data

    def __del__(self) -> None:
        pool = self.pool()
        if pool is None:
            if callable(_reserve):  # which goes with the module at the end
                _reserve(-len(self.buffer))
        else:
            pool.free.setdefault(len(self.buffer), []).append(self.buffer)


class Pointer:
    def __init__(self, mem: Memory, offset: int = 0) -> None:
        self.mem, self.ptr = mem, mem.ptr + offset

    def __add__(self, offset: int) -> Pointer:
        return Pointer(self.mem, self.ptr - self.mem.ptr + offset)

    def copy_from_device_async(self, source: Pointer, size: int, stream: Any = None) -> None:
        target, given = _bytes(self.ptr, size), _bytes(source.ptr, size)
        keep = self.mem, source.mem
        _do(lambda: np.copyto(target, given), stream, late=True)
        del keep

    def copy_from_host_async(self, address: int, size: int, stream: Any = None) -> None:
        if (stream or get_current_stream()).nodes is not None:
            raise RuntimeError("the current stream is capturing, so H2D transfers are disallowed")
        target, given = _bytes(self.ptr, size), _bytes(address, size)
        log.append(("numbers", address))
        _do(lambda: np.copyto(target, given), stream, late=True)


def _bytes(address: int, size: int) -> np.ndarray:
    return np.frombuffer((ctypes.c_char * size).from_address(address), np.uint8) if size else np.empty(0, np.uint8)


def _do(work: Callable[[], Any], stream: Any = None, late: bool = False) -> None:
    """Do some work, or note it for a graph; what comes `late` waits until somebody waits for it."""
    stream = stream or get_current_stream()
    if stream.nodes is not None:
        stream.nodes.append(work)
    elif late:
        waiting.append(work)
    else:
        flush()
        work()


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
        self.broken = False

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
        if self.stream is not None:  # recorded, or there is nothing to wait for
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


_null = Stream()
_streams = [_null]


def get_current_stream() -> Stream:
    return _streams[-1]


class Device:
    compute_capability = "90"

    def __init__(self, index: Any = 0) -> None:
        self.id = 0

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def __eq__(self, other: object) -> bool:  # and so no hash, as CuPy's has none
        return isinstance(other, Device)

    def synchronize(self) -> None:
        flush()


# Arrays


class Array:
    """An array of the device."""

    def __init__(
        self, shape: Any, dtype: Any = float, memptr: Any = None, strides: Any = None, base: Any = None
    ) -> None:
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        self.strides = tuple(np.empty(self.shape, self.dtype).strides) if strides is None else tuple(strides)
        self.data = alloc(self.size * self.dtype.itemsize) if memptr is None else memptr
        self.base = base

    size = property(lambda self: math.prod(self.shape))
    ndim = property(lambda self: len(self.shape))
    itemsize = property(lambda self: self.dtype.itemsize)
    nbytes = property(lambda self: self.size * self.dtype.itemsize)
    device = property(lambda self: Device())
    flags = property(lambda self: self.raw.flags)
    T = property(lambda self: launch(np.ndarray.transpose, self))
    mT = property(lambda self: launch(np.matrix_transpose, self))
    real = property(lambda self: launch(np.real, self))
    imag = property(lambda self: launch(np.imag, self))
    __array_ufunc__ = None

    @property
    def raw(self) -> np.ndarray:
        mem = self.data.mem
        return np.ndarray(self.shape, self.dtype, mem.buffer, self.data.ptr - mem.ptr, self.strides)

    def get(self, out: Any = None) -> np.ndarray:
        if get_current_stream().nodes is not None:
            raise RuntimeError("the current stream is capturing, so D2H transfers are disallowed")
        flush()
        return self.raw.copy()

    def item(self) -> Any:
        return self.get().item()

    __bool__ = lambda self: bool(self.get())  # noqa: E731
    __float__ = lambda self: float(self.get())  # noqa: E731
    __int__ = lambda self: int(self.get())  # noqa: E731
    __len__ = lambda self: self.shape[0]  # noqa: E731
    __array__ = None

    def __getitem__(self, key: Any) -> Any:
        return launch(operator.getitem, self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        raw, key, value = self.raw, unwrapped(key), unwrapped(value)
        assert not isinstance(value, np.ndarray) or isinstance(value.base, np.ndarray), "an array of the host"
        _do(lambda: operator.setitem(raw, key, value))

    def fill(self, value: Any) -> None:
        self[...] = value

    def dot(self, other: Any, out: Any = None) -> Any:
        if out is not None:
            assert out.raw.flags.c_contiguous
        return launch(product(np.dot), self, other, out=out)

    def copy(self) -> Array:
        return launch(np.array, self)

    def view(self, dtype: Any = None) -> Array:
        if dtype is None:
            return Array(self.shape, self.dtype, self.data, self.strides, self if self.base is None else self.base)
        return launch(lambda x: x.view(dtype), self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.ndarray, name) or name in ("ctypes", "tobytes", "mem"):
            raise AttributeError(name)
        return partial(launch, getattr(np.ndarray, name), self)


def unwrapped(x: Any) -> Any:
    if isinstance(x, Array):
        return x.raw
    if type(x) in (list, tuple):
        return type(x)(map(unwrapped, x))
    assert not isinstance(x, np.ndarray), "an array of the host"
    return x


def _given(args: Any) -> Iterator[Array]:
    for arg in args:
        if isinstance(arg, Array):
            yield arg
        elif type(arg) in (list, tuple):
            yield from _given(arg)


def launch(function: Callable[..., Any], *args: Any, out: Any = None, **options: Any) -> Any:
    """Call a function of NumPy's for arrays of ours, now or in a graph, and return arrays of ours."""
    raw, more = [unwrapped(x) for x in args], {name: unwrapped(x) for name, x in options.items()}
    given = list(_given((*args, *options.values())))
    kinds = (((x.dtype, x.ndim, x.raw.flags.c_contiguous) if isinstance(x, Array) else type(x)) for x in args)
    compiled(getattr(function, "__name__", function), *kinds)
    first = next(((x, r) for x, r in zip(args, raw, strict=True) if isinstance(x, Array)), None)
    if get_current_stream().nodes is None:
        flush()
    with np.errstate(all="ignore"):
        result = function(*raw, **more)
    if first and result is first[1]:
        return first[0]
    if out is not None:
        target = out.raw
        assert target.shape == result.shape
        _do(lambda: np.copyto(target, quietly(function, raw, more), casting="same_kind"))
        return out
    if isinstance(result, (tuple, list)):
        parts = [_wrapped(part, given) for part in result]
        made = [(i, part.raw) for i, part in enumerate(parts) if isinstance(part, Array) and part.base is None]
        if made:

            def each() -> None:
                new = quietly(function, raw, more)
                for i, target in made:
                    np.copyto(target, new[i])

            _do(each)
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    wrapped = _wrapped(result, given)
    if isinstance(wrapped, Array) and wrapped.base is None and all(wrapped is not x for x in given):
        target = wrapped.raw
        _do(lambda: np.copyto(target, quietly(function, raw, more)))
    return wrapped


_compiled: set[Any] = set()


def compiled(*key: Any) -> None:
    """Note that a kernel is compiled, when it is first called with what it depends on."""
    if key not in _compiled:
        _compiled.add(key)
        log.append("compiled")


def quietly(function: Callable[..., Any], raw: Any, more: Any) -> Any:
    with np.errstate(all="ignore"):
        return function(*raw, **more)


def _wrapped(result: Any, given: list[Array]) -> Any:
    if not isinstance(result, (np.ndarray, np.generic)):
        return result
    if isinstance(result, np.ndarray):
        for x in given:
            if np.may_share_memory(result, x.raw) and x.size:
                place = x.data + (result.__array_interface__["data"][0] - x.data.ptr)
                return Array(result.shape, result.dtype, place, result.strides, x if x.base is None else x.base)
    new = Array(result.shape, result.dtype, None, _dense(result))
    garbage: Any = np.nan if new.dtype.kind in "fc" else 0
    new.raw[...] = garbage
    return new


def _dense(x: Any) -> Any:
    return np.empty_like(x).strides  # in the order of the axes of x


class Ufunc:
    """An elementwise function as CuPy has it."""

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


_OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "power", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "left_shift", "rshift": "right_shift", "eq": "equal", "ne": "not_equal", "lt": "less",
    "le": "less_equal", "gt": "greater", "ge": "greater_equal",
}  # fmt: skip
for _name, _function in _OPERATORS.items():
    _ufunc = Ufunc(getattr(np, _function))
    setattr(Array, f"__{_name}__", lambda x, y, ufunc=_ufunc: ufunc(x, y))
    setattr(Array, f"__r{_name}__", lambda x, y, ufunc=_ufunc: ufunc(y, x))
    if _name not in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(Array, f"__i{_name}__", lambda x, y, ufunc=_ufunc: ufunc(x, y, out=x))
for _name, _function in {"neg": "negative", "pos": "positive", "invert": "invert", "abs": "absolute"}.items():
    _ufunc = Ufunc(getattr(np, _function))
    setattr(Array, f"__{_name}__", lambda x, ufunc=_ufunc: ufunc(x))
Array.__hash__ = object.__hash__  # type: ignore[method-assign]


def product(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a product that is refused while a stream captures, as by CuPy: all others go through its cuBLAS."""

    @wraps(function)
    def call(x1: Any, x2: Any, *args: Any, **options: Any) -> Any:
        if get_current_stream().nodes is not None and np.result_type(x1, x2).kind in "fc":
            raise NotImplementedError("calling cuBLAS API during stream capture is currently unsupported")
        return function(x1, x2, *args, **options)

    return call


def join(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a join that is refused while a stream captures where CuPy copies the addresses of arrays from the host."""

    @wraps(function)
    def call(arrays: Any, /, **options: Any) -> Any:
        if get_current_stream().nodes is not None and len(arrays) > 8 and len({x.dtype for x in arrays}) == 1:
            raise RuntimeError("the current stream is capturing, so H2D transfers are disallowed")
        return function(arrays, **options)

    return call


Array.__matmul__ = lambda x, y: launch(product(np.matmul), x, y)  # type: ignore[attr-defined]


# Namespaces


def namespace(source: Any = compat) -> SimpleNamespace:
    """Return the functions of a namespace for arrays of ours."""
    found: dict[str, Any] = {}
    for name, value in vars(source).items():
        if isinstance(value, np.ufunc):
            found[name] = Ufunc(value)
        elif name.startswith("_") or isinstance(value, type) or not callable(value):
            found[name] = value
        else:
            value = product(value) if name in ("matmul", "tensordot", "vecdot") else value
            value = join(value) if name in ("concat", "stack") else value
            found[name] = wraps(value)(partial(_created if name in _CREATES else launch, value))
    if source is compat:
        found |= {"linalg": _linalg(), "fft": _fft()}
        found["asarray"] = _asarray
    return SimpleNamespace(**found)


_CREATES = frozenset("arange empty eye full linspace ones zeros".split())


def _created(function: Callable[..., Any], *args: Any, device: Any = None, **options: Any) -> Any:
    return launch(function, *args, **options)


def _asarray(x: Any, dtype: Any = None, copy: Any = None, device: Any = None) -> Any:
    if isinstance(x, Array):
        return launch(np.array, x, dtype=dtype) if copy or dtype not in (None, x.dtype) else x
    if get_current_stream().nodes is not None:
        raise RuntimeError("the current stream is capturing, so H2D transfers are disallowed")
    host = np.array(x, dtype)
    new = Array(host.shape, host.dtype)
    flush()
    new.raw[...] = host
    return new


class Plan:
    """What cuFFT works by, and in which memory."""

    def __init__(self) -> None:
        if get_current_stream().nodes is not None:
            raise RuntimeError("a plan copies its tables to the device")
        self.work_area = alloc(512)


plans: dict[Any, Plan] = {}  # the last sixteen that were used


def _fft() -> SimpleNamespace:
    found = namespace(compat.fft)
    for name in compat.fft.__all__:
        if name.endswith(("fft", "fftn")):
            setattr(found, name, _planned(getattr(found, name)))

    def cached() -> list[tuple[Any, SimpleNamespace]]:
        return [(key, SimpleNamespace(plan=plan)) for key, plan in plans.items()]

    found.config = SimpleNamespace(get_plan_cache=cached)
    return found


def _planned(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(x: Array, **options: Any) -> Any:
        key = function.__name__, x.shape, x.dtype, str(options)
        plans[key] = plan = plans.pop(key, None) or Plan()
        while len(plans) > 16:
            del plans[next(iter(plans))]
        known = weakref.ref(plan)

        def work() -> None:
            assert known() is not None, "the plan is no more"

        _do(work)
        return function(x, **options)

    return call


def _linalg() -> SimpleNamespace:
    found = namespace(compat.linalg)
    for name in ("solve", "inv", "det", "svd", "qr", "eigh", "cholesky", "slogdet", "pinv", "eigvalsh"):
        setattr(found, name, _refusing(name, getattr(found, name)))
    return found


def _refusing(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        if get_current_stream().nodes is not None:
            raise NotImplementedError("calling cuSOLVER API during stream capture is currently unsupported")
        return function(*args, **options)

    call.__name__ = name
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
        raw = [unwrapped(x) for x in args]
        _do(lambda: self.kernel(*raw))
        return args[-1]


class RawKernel:
    """A kernel of CUDA, compiled for the host."""

    def __init__(self, code: str, name: str) -> None:
        self.kernel = host_cuda.RawKernel(code, name)

    def __call__(self, grid: Any, block: Any, args: Any) -> None:
        raw = [unwrapped(x) for x in args]
        _do(lambda: self.kernel(grid, block, tuple(raw)))


# cuBLAS


class Library:
    """The functions of cuBLAS by their C signatures: addresses, sizes and flags, and nothing else."""

    def __init__(self) -> None:
        self.streams: dict[int, Stream] = {}
        self.calls: list[dict[str, Any]] = []
        self.workspace: tuple[int, int] | None = None
        self.stream: int | None = None
        for name in ("cublasCreate_v2", "cublasSetStream_v2", "cublasSetWorkspace_v2", "cublasGemmEx"):
            setattr(self, name, self._typed(getattr(self, f"_{name}")))
        self.cublasGemmStridedBatchedEx = self._typed(self._batched)

    def _typed(self, function: Callable[..., int]) -> Callable[..., int]:
        def call(*args: Any) -> int:
            types = call.argtypes  # type: ignore[attr-defined]
            assert len(args) == len(types), f"{len(args)} arguments for {len(types)}"
            for kind, arg in zip(types, args, strict=True):
                kind.from_param(arg)
            return function(*args)

        return call

    def _cublasCreate_v2(self, handle: Any) -> int:
        handle._obj.value = 4711
        return 0

    def _cublasSetStream_v2(self, handle: Any, stream: int) -> int:
        self.stream, self.workspace = stream, None
        return 0 if handle.value == 4711 else 1

    def _cublasSetWorkspace_v2(self, handle: Any, address: int, size: int) -> int:
        self.workspace = address, size
        return 0 if handle.value == 4711 else 1

    def _cublasGemmEx(self, *args: Any) -> int:
        handle, ta, tb, m, n, k, alpha, a, ka, lda, b, kb, ldb, beta, c, kc, ldc, computed, algo = args
        a, b, c = (a, ka, lda, 0), (b, kb, ldb, 0), (c, kc, ldc, 0)
        return self._batched(handle, ta, tb, m, n, k, alpha, *a, *b, beta, *c, 1, computed, algo)

    def _batched(self, handle: Any, *args: Any) -> int:
        ta, tb, m, n, k, alpha, a, ka, lda, sa, b, kb, ldb, sb, beta, c, kc, ldc, sc, count, computed, algo = args
        assert algo == -1
        current = get_current_stream()
        if handle.value != 4711 or self.stream != current.ptr or not self.workspace or not ka == kb == kc:
            return 1
        if lda < max(1, k if ta else m) or ldb < max(1, n if tb else k) or ldc < max(1, m):
            return 7  # CUBLAS_STATUS_INVALID_VALUE
        self.calls.append({"flags": (ta, tb), "computed": computed, "count": count, "leading": (lda, ldb, ldc)})
        dtype = np.dtype({0: "f4", 1: "f8", 2: "f2", 4: "c8", 5: "c16"}[ka])
        factor = np.dtype({0: "f4", 1: "f8", 2: "f4", 4: "c8", 5: "c16"}[ka])
        one, zero = (np.frombuffer(_bytes(at, factor.itemsize), factor)[0] for at in (alpha, beta))
        assert (one, zero) == (1, 0)

        def columns(at: int, rows: int, across: int, leading: int) -> np.ndarray:
            """Return a matrix that lies by columns."""
            size = ((across - 1) * leading + rows) * dtype.itemsize
            flat = np.frombuffer((ctypes.c_char * size).from_address(at), dtype)
            return np.lib.stride_tricks.as_strided(flat, (rows, across), (dtype.itemsize, leading * dtype.itemsize))

        def run() -> None:
            for i in range(count):
                first = columns(a + i * sa * dtype.itemsize, *((k, m) if ta else (m, k)), lda)
                second = columns(b + i * sb * dtype.itemsize, *((n, k) if tb else (k, n)), ldb)
                made = (first.T if ta else first) @ (second.T if tb else second)
                columns(c + i * sc * dtype.itemsize, m, n, ldc)[...] = made

        _do(run)
        return 0


def module(library: Library) -> Any:
    """Return what stands for CuPy."""
    cp: Any = SimpleNamespace(**vars(namespace()))
    cp.ndarray, cp.ElementwiseKernel, cp.RawKernel = Array, ElementwiseKernel, RawKernel
    cp.moveaxis = partial(launch, np.moveaxis)
    cp.ascontiguousarray = partial(launch, np.ascontiguousarray)
    cp.broadcast_to = partial(launch, np.broadcast_to)
    cp.get_default_memory_pool = lambda: default
    cp.empty = lambda shape, dtype: Array((shape,) if isinstance(shape, int) else shape, dtype)
    cp.zeros = lambda shape, dtype: launch(np.zeros, shape, dtype)
    cp.empty_like = lambda x: Array(x.shape, x.dtype)
    runtime = SimpleNamespace(runtimeGetVersion=lambda: 13_020)
    cp.cuda = SimpleNamespace(
        Device=Device, Stream=Stream, Event=Event, MemoryPool=MemoryPool, alloc=alloc, runtime=runtime,
        using_allocator=using_allocator, get_current_stream=get_current_stream, get_cublas_handle=lambda: 1,
    )  # fmt: skip
    kinds = SimpleNamespace(COMPUTE_TYPE_DEFAULT=1, COMPUTE_TYPE_TF32=7)
    chosen = {np.float32: 1}
    cp._core = SimpleNamespace(
        _routines_linalg=kinds, set_compute_type=chosen.__setitem__, get_compute_type=chosen.__getitem__
    )
    cp.library = library
    return cp
