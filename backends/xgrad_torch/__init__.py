"""PyTorch's arrays as the devices ``torch``, its CPU, and ``torch:1``, ``torch:2``, ..., its GPUs.

The GPUs are CUDA's or MPS's. This is a second implementation of the same ops: other kernels, 0-d
results, own dtypes and devices, no implicit NumPy. PyTorch's autograd is not used: a PyTorch tensor
that requires a gradient is refused. Differences from ``cpu``:

- Slices with negative steps are refused, and memory with negative strides is copied.
- In a key such as ``x[0, :, [1, 2]]`` the integer is not an array index, so the axis of the list
  comes last.
- Special functions that PyTorch lacks are SciPy's: arrays pass through the host.
- On CUDA, an index in an array, or a class in a target, that is out of bounds makes all later work
  of the process on the GPU fail, as in PyTorch. Repeated indices are added in no fixed order.
- MPS has no float64: PyTorch refuses it there.

Neither CUDA nor MPS has been run. Work there is queued, but the backend is not `asynchronous`:
checks of values wait.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

from xgrad.backend import Backend, DeviceError
from xgrad.backend.scipy_kernels import SciPyKernels
from xgrad.core.dtypes import SCALARS

# The PyTorch special functions that are used. Others are SciPy's, through the host; so are
# `bessel_j0` and the other Bessel functions, which in PyTorch have errors of 1e-9 in float64.
_SPECIAL = """
digamma erf erfc erfcx erfinv expit gammainc gammaincc gammaln i0 i0e i1 i1e log_ndtr logit ndtr \
ndtri psi xlog1py
xlogy zeta
""".split()
_DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64"
    " complex128".split()
)


class TorchBackend(Backend):
    """PyTorch without its autograd, through array-api-compat."""

    library = "torch"
    supports_out = True

    def __init__(self) -> None:
        try:
            self._torch: Any = import_module("torch")
        except ImportError as error:
            raise DeviceError(
                "torch: the package PyTorch is missing: pip install 'xgrad[torch]'"
            ) from error
        self._cuda = self._torch.cuda
        self.array_type = self._torch.Tensor
        added = {
            "index_add": self.index_add,
            "special": special(self._torch, self),
            "unique_all": partial(_unique_all, self._torch),
            "positive": self._torch.clone,  # PyTorch's positive and conj return their argument
            "conj": lambda x: x.conj_physical() if x.is_complex() else x.clone(),
        }
        self.xp = SimpleNamespace(**vars(import_module("array_api_compat.torch")) | added)
        gpus = self._cuda.device_count() if self._cuda.is_available() else 0
        self.devices = [
            self._torch.device("cpu"),
            *[self._torch.device("cuda", i) for i in range(gpus)],
        ]
        if self._torch.backends.mps.is_available():
            self.devices.append(self._torch.device("mps", 0))
        self._dtypes = {np.dtype(name): getattr(self._torch, name) for name in _DTYPES}
        self._numpy_dtypes = {native: dtype for dtype, native in self._dtypes.items()}

    def describe(self, index: int) -> str:
        name = "MPS" if self.devices[index].type == "mps" else "the CPU"
        if self.devices[index].type == "cuda":
            gpu = self._cuda.get_device_properties(index - 1)
            name = f"{gpu.name}, {gpu.total_memory / 2**30:.0f} GiB"
        return f"PyTorch {self._torch.__version__} on {name}"

    def versions(self) -> dict[str, str]:
        """Return the version of PyTorch, and its CUDA version if there is a GPU."""
        cuda = (
            {"cuda": self._torch.version.cuda}
            if any(device.type == "cuda" for device in self.devices)
            else {}
        )
        return {"torch": self._torch.__version__} | cuda

    def index_of(self, x: Any) -> int:
        if x.requires_grad:  # `index_of` is called for every array of the user
            raise TypeError(
                "torch: expected a PyTorch tensor without a gradient, got one that requires it:"
                " .detach() it"
            )
        if x.dtype not in self._numpy_dtypes or x.device not in self.devices:
            raise TypeError(
                "torch: expected a tensor of a dtype of NumPy's on the CPU, CUDA or MPS, got"
                f" {x.dtype}, {x.device}"
            )
        return self.devices.index(x.device)

    def to_host(self, x: Any) -> np.ndarray:
        host: np.ndarray = x.to("cpu", copy=True).numpy(force=True)
        return host

    def from_host(self, x: np.ndarray, index: int) -> Any:
        return self._torch.from_numpy(np.array(x)).to(self.devices[index])

    def transfer(self, x: Any, index: int) -> Any:
        return x.to(self.devices[index])

    def array_converter(self, index: int) -> Callable[[Any], Any]:
        return lambda value: self._torch.asarray(value, device=self.devices[index])

    def dtype(self, dtype: Any) -> Any:
        return dtype if isinstance(dtype, self._torch.dtype) else self._dtypes[super().dtype(dtype)]

    def numpy_dtype(self, dtype: Any) -> Any:
        return self._numpy_dtypes[dtype]

    def index_add(self, x: Any, key: Any, values: Any) -> Any:
        indices = self._torch.arange(x.numel(), device=x.device).reshape(x.shape)[key]
        x.view(-1).index_add_(0, indices.reshape(-1), values.reshape(-1))
        return x

    def shares_memory(self, x: Any, y: Any) -> bool:
        return bool(x.untyped_storage()._cdata == y.untyped_storage()._cdata)

    def from_dlpack(self, x: Any, index: int) -> Any:
        # negative strides crash PyTorch
        if isinstance(x, np.ndarray) and min(x.strides, default=0) < 0:
            raise BufferError("from_dlpack: PyTorch has no arrays with negative strides: copy them")
        return self._torch.from_dlpack(x)

    def export_buffer(self, x: Any, *, read_only: bool, copy: bool) -> Any:
        return x.detach()

    def synchronize(self, index: int) -> None:
        if self.devices[index].type == "mps":
            self._torch.mps.synchronize()
        elif index:
            self._cuda.synchronize(index - 1)

    def memory(self, index: int) -> dict[str, int]:
        if self.devices[index].type != "cuda":
            return {}
        used = self._cuda.memory_allocated(index - 1)
        reserved = self._cuda.memory_reserved(index - 1)
        free, total = self._cuda.mem_get_info(index - 1)
        return {"used": used, "reserved": reserved, "free": free, "total": total}


def _unique_all(torch: Any, x: Any, /) -> tuple[Any, Any, Any, Any]:
    """Return `unique_all` of the standard: PyTorch does not return the first indices."""
    flat = x.reshape(-1)
    if flat.is_complex():
        order = torch.argsort(flat.imag, stable=True)
        order = order[torch.argsort(flat.real[order], stable=True)]
    else:
        order = torch.argsort(flat, stable=True)
    values = flat[order]
    first = torch.ones_like(order, dtype=torch.bool)
    first[1:] = values[1:] != values[:-1]
    starts = torch.nonzero(first)[:, 0]
    inverse = torch.empty_like(order)
    inverse[order] = torch.cumsum(first, 0) - 1
    counts = torch.diff(starts, append=starts.new_tensor([len(order)]))
    return values[starts], order[starts], inverse.reshape(x.shape), counts


def special(torch: Any, backend: Backend) -> SciPyKernels:
    """Return the special functions: PyTorch's own, with scalars as tensors, otherwise SciPy's."""

    def taking_scalars(name: str) -> Callable[..., Any]:
        function = getattr(torch.special, name)

        def kernel(*inputs: Any) -> Any:
            like = next(x for x in inputs if type(x) not in SCALARS)
            # some of PyTorch's functions refuse these
            if like.is_complex() or like.dtype == torch.float16:
                return getattr(by_scipy, name)(*inputs)
            as_like = partial(torch.asarray, dtype=like.dtype, device=like.device)
            return function(*[as_like(x) if type(x) in SCALARS else x for x in inputs])

        return kernel

    def polygamma(n: Any, x: Any) -> Any:
        if type(n) is not int:
            return by_scipy.polygamma(n, x)
        # PyTorch's polygamma has an error of 1e-9 for n = 1.
        return (
            (-1) ** (n + 1) * math.factorial(n) * own["zeta"](n + 1, x)
            if n
            else torch.special.psi(x)
        )

    by_scipy = SciPyKernels(backend)
    own = {name: taking_scalars(name) for name in _SPECIAL}
    return SciPyKernels(backend, own | {"polygamma": polygamma})
