"""CuPy arrays as the devices ``cuda:0``, ``cuda:1``, ...: NVIDIA GPUs.

``cuda`` is the first one; in a process that a launcher has started, the GPU of its rank on this
machine (`xgrad_cupy.local_rank`).

Differences from ``cpu``:

- Ops are queued and return at once. Reading a value (`item`, `numpy`, ``if x:``) waits for the GPU,
  and so does an op whose result has a shape that depends on values (a bool mask as a key).
- Indices in arrays are not checked: indices out of bounds wrap around.
- Repeated indices are added in no fixed order: the last bits of the gradient of an indexing op
  differ from run to run.
- float32 denormals count as 0. The signs of zeros may differ from NumPy's.
- Special functions that ``cupyx.scipy.special`` lacks are SciPy's: arrays pass through the host.
- Linear algebra gives NaN for a singular matrix, unless within ``cupyx.errstate(linalg="raise")``.

`xgrad.capture` replays a step as a CUDA graph (`xgrad_cupy.cuda_graph`). Fused kernels
(`xgrad_cupy.kernels`) replace generic rules that take several launches. `docs/gpu.md` lists
what was tested on a GPU.

`xgrad.set_tf32` makes float32 products faster, with 10 bits of mantissa. Environment variables:
CUDA's ``CUDA_VISIBLE_DEVICES``; CuPy's ``CUPY_CACHE_DIR`` (the cache of compiled kernels: a first
run is slow), ``CUPY_TF32=1`` (`set_tf32` from the beginning) and ``CUPY_ACCELERATORS``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial, wraps
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

from xgrad.backend import Backend, DeviceError
from xgrad.backend.scipy_kernels import SciPyKernels
from xgrad_cupy.cublas import CurrentCublas, supports
from xgrad_cupy.kernels.gelu import GELU
from xgrad_cupy.kernels.random_bits import RandomBits
from xgrad_cupy.kernels.sums import sum_of
from xgrad_cupy.kernels.table import fused_functions, kernels
from xgrad_cupy.local_rank import local_rank
from xgrad_cupy.matmul import Products
from xgrad_cupy.pools import pools
from xgrad_cupy.stream_capture import synchronize

_INSTALL = "pip install 'xgrad[cuda13]', or 'xgrad[cuda12]' for an NVIDIA driver older than 580"
_NO_DEVICE, _INSUFFICIENT_DRIVER = 100, 35  # of cudaError_t

# Sizes in bytes for which `to_host` returns pinned memory. Smaller results gain nothing by it;
# larger ones would take too much of the host's memory, because CuPy keeps pinned memory.
_PINNED = range(1 << 16, 1 << 28)

# Dtypes with atomic addition, and wider dtypes for the others: a sum in float16 stays at 2048.
_ADDABLE = frozenset(map(np.dtype, ("int32", "int64", "uint32", "uint64", "float32", "float64")))
_WIDER = {
    np.dtype(f"{kind}{bits}"): np.dtype(f"{kind}32") for kind in ("int", "uint") for bits in (8, 16)
}
_WIDER[np.dtype("float16")] = np.dtype("float32")


class CupyBackend(Backend):
    """NVIDIA GPUs through CuPy."""

    library = "cupy"
    asynchronous = True
    supports_out = True
    fast_float16 = True
    executor = "xgrad_cupy.cuda_graph"
    communicator = "xgrad_cupy.nccl"
    rule_kernels = frozenset(GELU) | {"cross_entropy_gradient"}

    def __init__(self) -> None:
        self._cp, count = _open_cupy()
        self._empty_pinned = import_module("cupyx").empty_pinned
        self.devices = [self._cp.cuda.Device(i) for i in range(count)]
        self.default_index = local_rank(os.environ) % count
        self.array_type = self._cp.ndarray
        self.xp = namespace(self._cp)
        self.xp.index_add = self.index_add
        self.xp.special = CupySpecial(self)
        self.xp.fused = fused_functions(self._cp)
        self._random = RandomBits(self._cp)
        self.kernels = kernels(self._cp, self.xp, self._random)

    @property  # CuPy's setting for the process
    def tf32(self) -> bool:  # type: ignore[override]
        return takes_tf32(self._cp)

    def set_tf32(self, enabled: bool) -> None:
        for device in self.devices if enabled else ():
            if int(device.compute_capability) < 80:
                raise DeviceError(
                    "set_tf32: expected GPUs of compute capability 8.0 or more, got"
                    f" {self.describe(device.id)}"
                )
        kinds = self._cp._core._routines_linalg
        self._cp._core.set_compute_type(
            np.float32, kinds.COMPUTE_TYPE_TF32 if enabled else kinds.COMPUTE_TYPE_DEFAULT
        )

    def describe(self, index: int) -> str:
        gpu = self._cp.cuda.runtime.getDeviceProperties(index)
        return (
            f"{gpu['name'].decode()}, compute capability {gpu['major']}.{gpu['minor']}, "
            f"{gpu['totalGlobalMem'] / 2**30:.0f} GiB" + ", TF32" * self.tf32
        )

    def versions(self) -> dict[str, str]:
        """Return the versions of CuPy, of the CUDA runtime and of the driver."""
        cuda = self._cp.cuda
        numbers = {
            "cuda_runtime": cuda.get_local_runtime_version(),
            "cuda_driver": cuda.runtime.driverGetVersion(),
        }
        return {"cupy": self._cp.__version__} | {
            name: _version(number) for name, number in numbers.items()
        }

    def index_of(self, x: Any) -> int:
        return int(x.device.id)

    def device_context(self, index: int) -> Callable[[], AbstractContextManager[Any]] | None:
        if len(self.devices) == 1:
            return None
        device = self.devices[index]  # reentrant: each thread has its own stack
        return lambda: device

    def to_host(self, x: Any) -> np.ndarray:
        with x.device:  # selects its current stream
            out = self._pinned(x.shape, x.dtype) if x.nbytes in _PINNED else None
            host: np.ndarray = x.get(out=out)
            return host

    def from_host(self, x: np.ndarray, index: int) -> Any:
        # CuPy makes a scalar zero by memset, without its sign
        if not x.ndim and x.dtype.kind in "fc" and not x:
            return self.from_host(x.reshape(1), index).reshape(())
        with self.devices[index]:
            if x.nbytes >= _PINNED.stop:
                x = np.ascontiguousarray(x, np.dtype(x.dtype.type))  # in native byte order
                moved = self._cp.empty(x.shape, x.dtype)
                moved.set(x)
                self._cp.cuda.get_current_stream().synchronize()
                return moved
            # The GPU reads later. CuPy stages a copy, except of pinned memory such as a result of
            # `to_host`, which may change before the read: so stage it here. CuPy keeps the staged
            # copy until it has been read.
            staged = (
                self._pinned(x.shape, x.dtype, "F" if x.flags.fnc else "C")
                if x.ndim and x.size
                else None
            )
            if staged is not None:
                staged[...] = x
            return self._cp.asarray(x if staged is None else staged)

    def _pinned(self, shape: tuple[int, ...], dtype: Any, order: str = "C") -> np.ndarray | None:
        """Return an array in pinned memory, or None if there is no more."""
        try:
            array: np.ndarray = self._empty_pinned(shape, dtype, order)
        except self._cp.cuda.runtime.CUDARuntimeError:
            return None
        return array

    def transfer(self, x: Any, index: int) -> Any:
        source, target = x.device, self.devices[index]
        if source == target:
            return x
        stream = self._cp.cuda.get_current_stream
        with source:
            if not x.flags.c_contiguous:  # CuPy copies only this layout between devices
                x = self._cp.ascontiguousarray(x)  # would add an axis to a 0-d array
            ready = stream().record()
        with target:
            stream().wait_event(ready)
            moved = self._cp.asarray(x)
            read = stream().record()
        with source:
            stream().wait_event(read)  # before the memory of `x` is reused
        return moved

    def array_converter(self, index: int) -> Callable[[Any], Any]:
        def convert(value: Any) -> Any:
            with self.devices[index]:
                return self._cp.asarray(value)

        return convert

    def export_buffer(self, x: Any, *, read_only: bool, copy: bool) -> Any:
        return x.copy() if copy and min(x.strides, default=0) < 0 else x.view()  # see xgrad_numpy

    def index_add(self, x: Any, key: Any, values: Any) -> Any:
        return index_add(self._cp, x, key, values)

    def random_bits(self, seed: int, call: int, width: int, count: int, index: int) -> Any:
        call = call % 2**64 if isinstance(call, int) else call  # an array of uint64 wraps by itself
        with self.devices[index]:
            return self._random.bits(seed, call, width, count)

    def synchronize(self, index: int) -> None:
        synchronize(self.devices[index])

    def mark(self, index: int) -> Any:
        with self.devices[index]:  # selects its current stream
            event = self._cp.cuda.Event()
            event.record()
        return event

    def elapsed(self, start: Any, end: Any) -> float:
        return float(self._cp.cuda.get_elapsed_time(start, end)) / 1000

    def memory(self, index: int) -> dict[str, int]:
        all_pools = [self._cp.get_default_memory_pool(), *pools()]
        with self.devices[index]:  # the pools report for the current device
            free, total = self.devices[index].mem_info
            used = sum([x.used_bytes() for x in all_pools])
            reserved = sum([x.total_bytes() for x in all_pools])
        return {"used": used, "reserved": reserved, "free": free, "total": total}


class CupySpecial(SciPyKernels):
    """Special functions of ``cupyx.scipy.special``, or of SciPy where it has none.

    Arrays pass through the host for SciPy's functions.
    """

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if (
            name.startswith("_")
            or name in _OVERFLOWING
            or not hasattr(import_module("cupyx.scipy.special"), name)
        ):
            return super().__getattr__(name)
        kernel: Callable[..., Any] = _in_dtype_of_floats(
            getattr(import_module("cupyx.scipy.special"), name)
        )
        if name == "polygamma":
            kernel = _with_array_order(kernel)
        elif name == "erf":
            kernel = _with_complex(kernel, SciPyKernels(self._backend))
        setattr(self, name, kernel)
        return kernel


#: CuPy multiplies an exponential by the unscaled function: NaN from about 90 on in float32.
_OVERFLOWING = frozenset(("i0e", "i1e", "k0e", "k1e"))


def _in_dtype_of_floats(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return results in the dtype to which the float inputs promote.

    CuPy's functions of integer orders return float64.
    """

    @wraps(kernel)
    def computed(*inputs: Any) -> Any:
        floats = [x.dtype for x in inputs if hasattr(x, "dtype") and x.dtype.kind in "fc"]
        out = kernel(*inputs)
        return out.astype(np.result_type(*floats), copy=False) if floats else out

    return computed


def takes_tf32(cp: Any) -> bool:
    """Return CuPy's setting: whether float32 products may use TF32."""
    core = cp._core
    return bool(core.get_compute_type(np.float32) == core._routines_linalg.COMPUTE_TYPE_TF32)


def _with_array_order(polygamma: Callable[..., Any]) -> Callable[..., Any]:
    """Pass the order to CuPy's polygamma as an array of the dtype of `x`.

    An integer order would make the result float64.
    """
    return lambda n, x: polygamma(
        n.astype(x.dtype) if hasattr(n, "dtype") else np.full_like(x, n, shape=()), x
    )


def _with_complex(erf: Callable[..., Any], by_scipy: SciPyKernels) -> Callable[..., Any]:
    """Use SciPy's erf for complex numbers, which CuPy's erf refuses.

    SciPy is optional: it is loaded when the first complex number comes.
    """
    return lambda x: by_scipy.erf(x) if x.dtype.kind == "c" else erf(x)


def namespace(cp: Any) -> SimpleNamespace:
    """Return array-api-compat's namespace for CuPy, with replacements.

    They replace functions that synchronize, are slow, or are wrong.
    """
    compat: Any = import_module("array_api_compat.cupy")
    own = SimpleNamespace(**vars(compat))
    for name in ("arange", "empty", "eye", "full", "linspace", "ones", "zeros"):
        setattr(own, name, _on_device(cp, getattr(cp, name)))
    for name in ("empty_like", "full_like", "ones_like", "zeros_like"):
        setattr(own, name, _on_device(cp, getattr(cp, name), like=True))
    frequencies = {
        name: _on_device(cp, getattr(compat.fft, name)) for name in ("fftfreq", "rfftfreq")
    }
    own.fft = SimpleNamespace(**vars(compat.fft) | frequencies)
    linalg = {name: _with_geev_hint(getattr(compat.linalg, name)) for name in ("eig", "eigvals")}
    linalg["cholesky"] = _with_nan(cp, compat.linalg.cholesky)
    linalg |= {name: _passing_nan(cp, getattr(compat.linalg, name)) for name in ("inv", "solve")}
    own.linalg = SimpleNamespace(**vars(compat.linalg) | linalg)
    own.log = partial(_log, cp)
    own.sign = cp.sign  # compat's synchronizes
    own.clip = lambda x, /, min=None, max=None: x.clip(min, max)  # compat's synchronizes
    own.matmul, own.vecdot = _matmul_of(cp), _vecdot
    own.sum = sum_of(cp, compat.sum)
    own.cumulative_sum = partial(_scan, cp.cumsum, compat.cumulative_sum)
    own.cumulative_prod = partial(_scan, cp.cumprod, compat.cumulative_prod)
    return own


def _with_geev_hint(solve: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Name the remedy in the error of a cuSOLVER without the solver of general eigenproblems."""

    @wraps(solve)
    def solved(x: Any, /) -> Any:
        try:
            return solve(x)
        except RuntimeError as error:
            if "geev" not in str(error):
                raise
            raise RuntimeError(
                f"cuSOLVER has no geev here: install a newer CUDA, or use x.to('cpu'): {error}"
            ) from error

    return solved


def _with_nan(cp: Any, cholesky: Callable[..., Any]) -> Callable[..., Any]:
    """Return NaN for a matrix that is not positive definite.

    CuPy returns a partial factorization.
    """

    @wraps(cholesky)
    def factorized(x: Any, /, *, upper: bool = False) -> Any:
        out = cholesky(x, upper=upper)
        positive = (out.diagonal(0, -2, -1).real > 0).all(axis=-1)
        return cp.where(positive[..., None, None], out, np.nan)

    return factorized


def _passing_nan(cp: Any, solve: Callable[..., Any]) -> Callable[..., Any]:
    """Return NaN for a matrix that contains NaN.

    cuSOLVER's LU decomposition can return finite results for it.
    """

    @wraps(solve)
    def solved(x: Any, /, *others: Any) -> Any:
        out = solve(x, *others)
        wrong = cp.isnan(x).any(axis=(-2, -1))
        vector = bool(others) and others[0].ndim == 1
        return cp.where(wrong[..., None] if vector else wrong[..., None, None], np.nan, out)

    return solved


def _log(cp: Any, x: Any, /) -> Any:
    """Return the logarithm, with an infinite real part for every infinite complex number.

    CuPy's result lacks it for a number with an infinite part and a NaN.
    """
    out = cp.log(x)
    if x.dtype.kind == "c":
        out.real[...] = cp.where(cp.isinf(x), np.inf, out.real)
    return out


def _on_device(cp: Any, create: Callable[..., Any], like: bool = False) -> Callable[..., Any]:
    """Add the parameter `device` to a creation function of CuPy: array-api-compat's ignores it."""

    @wraps(create)
    def created(*args: Any, device: Any = None, **options: Any) -> Any:
        if device is None and like:
            device = args[0].device
        with cp.cuda.Device(device):  # the current one, if None
            return create(*args, **options)

    return created


def _matmul_of(cp: Any) -> Callable[..., Any]:
    """Return the function for matrix products, by the same cuBLAS calls as in a CUDA graph.

    For contiguous real matrices CuPy itself makes these calls, in half the time. It copies other
    layouts, multiplies stacks and complex numbers by other functions, and rounds each term when it
    multiplies rows by columns in float16.
    """
    products = Products(cp, CurrentCublas(cp))

    def matmul(x1: Any, x2: Any, /, out: Any = None) -> Any:
        if x1.ndim > 2 and x2.ndim == 2 and out is None:
            rows = x1.reshape(math.prod(x1.shape[:-1]), x1.shape[-1])
            return matmul(rows, x2).reshape(*x1.shape[:-1], x2.shape[1])
        dtype = np.result_type(x1.dtype, x2.dtype)
        if not supports(dtype) or (dtype.char in "fd" and is_plain(x1) and is_plain(x2)):
            return x1 @ x2 if out is None else x1.dot(x2, out)
        products.cublas.tf32 = takes_tf32(cp)
        return products.matmul(x1, x2, out)

    def is_plain(x: Any) -> bool:
        return bool(x.ndim <= 2 and (x.flags.c_contiguous or x.flags.f_contiguous))

    return matmul


def _vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Return the sums of products along an axis, by elementwise multiplication.

    array-api-compat multiplies stacks of 1 by 1 matrices.
    """
    dtype = np.result_type(x1.dtype, x2.dtype)
    if dtype == np.float16:  # products overflow above 65504
        return _vecdot(x1.astype(np.float32), x2.astype(np.float32), axis=axis).astype(dtype)
    return (x1.conj() * x2).sum(axis=axis, dtype=dtype)


def _scan(flat: Callable[..., Any], general: Callable[..., Any], x: Any, /, **options: Any) -> Any:
    """Accumulate along an axis; CuPy has a fast kernel for one axis, unless `axis` is passed."""
    if (
        x.ndim == 1
        and x.size
        and options.get("axis") in (None, 0, -1)
        and not options.get("include_initial")
    ):
        return flat(x, dtype=options.get("dtype"))
    return general(x, **options)


def index_add(cp: Any, x: Any, key: Any, values: Any) -> Any:
    """Add `values` to ``x[key]`` in place, once for each repeated index, and return `x`."""
    parts = key if isinstance(key, tuple) else (key,)
    if not any(isinstance(part, cp.ndarray) and part.dtype.kind in "iu" for part in parts):
        x[key] += values  # no index repeats
    elif not x.size:
        return x  # CuPy's kernel would divide by zero
    elif x.dtype in _ADDABLE:
        cp.add.at(x, key, values)
    elif x.dtype.kind == "c":
        cp.add.at(x.real, key, values.real)
        cp.add.at(x.imag, key, values.imag)
    elif x.dtype in _WIDER:
        sums = x.astype(_WIDER[x.dtype])
        cp.add.at(sums, key, values.astype(sums.dtype))
        x[...] = sums
    else:
        raise TypeError(
            f"index_add: expected integers, or floats or complex numbers of NumPy's, got {x.dtype}:"
            " cast to float32"
        )
    return x


def _open_cupy() -> tuple[Any, int]:
    """Return CuPy and the number of GPUs, after a test computation.

    Raises DeviceError, which names the missing part.
    """
    try:
        cp: Any = import_module("cupy")
    except ModuleNotFoundError as error:
        if error.name == "cupy":
            raise DeviceError(f"cuda: the package CuPy is missing: {_INSTALL}") from error
        raise DeviceError(f"cuda: CuPy lacks a package: {_reason(error)}: {_INSTALL}") from error
    except Exception as error:
        raise DeviceError(f"cuda: CuPy does not load: {_reason(error)}: {_INSTALL}") from error
    runtime = cp.cuda.runtime
    try:
        count = runtime.getDeviceCount()
    except Exception as error:
        status = getattr(error, "status", None)
        if status == _INSUFFICIENT_DRIVER and not runtime.driverGetVersion():
            raise DeviceError(
                "cuda: no NVIDIA driver: install one, and see that nvidia-smi finds the GPU"
            ) from error
        if status == _INSUFFICIENT_DRIVER:
            has, needs = _version(runtime.driverGetVersion()), _version(runtime.runtimeGetVersion())
            raise DeviceError(
                f"cuda: the NVIDIA driver knows CUDA up to {has}, CuPy was built for {needs}:"
                " update the driver, or uninstall this CuPy and pip install 'xgrad[cuda12]'"
            ) from error
        if status != _NO_DEVICE:
            raise DeviceError(
                f"cuda: the NVIDIA driver fails: {_reason(error)}: see nvidia-smi"
            ) from error
        count = 0
    if not count:
        raise DeviceError("cuda: no GPU: see nvidia-smi, and whether CUDA_VISIBLE_DEVICES hides it")
    try:
        ones = cp.ones((2, 2), dtype=np.float32)
        correct = (ones @ ones + ones).get().tolist() == [[3, 3], [3, 3]]
    except Exception as error:
        raise DeviceError(
            f"cuda: there is a GPU, but CuPy fails on it: {_reason(error)}: if CUDA's libraries are"
            f" missing, {_INSTALL}"
        ) from error
    if not correct:
        raise DeviceError(
            "cuda: CuPy's results on this GPU are wrong: see that driver, CUDA and CuPy fit"
            " together"
        )
    return cp, count


def _version(number: int) -> str:
    """Return the version "12.8" for CUDA's number 12080."""
    return f"{number // 1000}.{number % 1000 // 10}"


def _reason(error: Exception) -> str:
    """Return the line of an error that has the cause: CuPy adds frames and advice around it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" =")]
    if "Original error:" in lines[:-1]:
        return lines[lines.index("Original error:") + 1]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
