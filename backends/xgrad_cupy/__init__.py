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

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

import numpy as np

from xgrad.backend import Backend, DeviceError
from xgrad_cupy.array_functions import namespace
from xgrad_cupy.cublas import takes_tf32
from xgrad_cupy.kernels.gelu import GELU
from xgrad_cupy.kernels.random_bits import RandomBits
from xgrad_cupy.kernels.table import fused_functions, kernels
from xgrad_cupy.local_rank import local_rank
from xgrad_cupy.opening import open_cupy, version_text
from xgrad_cupy.pools import pools
from xgrad_cupy.scatter import index_add
from xgrad_cupy.special import CupySpecial
from xgrad_cupy.stream_capture import synchronize

# Sizes in bytes for which `to_host` returns pinned memory. Smaller results gain nothing by it;
# larger ones would take too much of the host's memory, because CuPy keeps pinned memory.
_PINNED = range(1 << 16, 1 << 28)


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
        self._cp, count = open_cupy()
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
            name: version_text(number) for name, number in numbers.items()
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
