"""PyTorch's arrays on the CPU as the device ``torch``: other kernels, 0-d results, own dtypes, no implicit NumPy.

It is what CuPy's behaviour is rehearsed on where there is no GPU. What is not as on ``cpu``: slices with negative
steps are refused.
"""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

from xgrad.backend import Backend, DeviceError

_DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()


class TorchBackend(Backend):
    """PyTorch without its autograd, through array-api-compat."""

    library = "torch"

    def __init__(self) -> None:
        try:
            self._torch: Any = import_module("torch")
        except ImportError as error:
            raise DeviceError("torch: the package PyTorch is missing: pip install torch") from error
        self.array_type = self._torch.Tensor
        self.xp = SimpleNamespace(**vars(import_module("array_api_compat.torch")) | {"index_add": self.index_add})
        self._dtypes = {np.dtype(name): getattr(self._torch, name) for name in _DTYPES}
        self._numpy_dtypes = {native: dtype for dtype, native in self._dtypes.items()}

    def describe(self, index: int) -> str:
        return f"PyTorch {self._torch.__version__} on the CPU"

    def versions(self) -> dict[str, str]:
        return {"torch": self._torch.__version__}

    def native_device(self, index: int) -> Any:
        return self._torch.device("cpu")

    def to_host(self, x: Any) -> np.ndarray:
        host: np.ndarray = x.detach().numpy(force=True).copy()
        return host

    def from_host(self, x: np.ndarray, index: int) -> Any:
        return self._torch.from_numpy(np.array(x))

    def dtype(self, dtype: Any) -> Any:
        return dtype if isinstance(dtype, self._torch.dtype) else self._dtypes[np.dtype(dtype)]

    def numpy_dtype(self, dtype: Any) -> Any:
        return self._numpy_dtypes[dtype]

    def index_add(self, x: Any, key: Any, values: Any) -> Any:
        places = self._torch.arange(x.numel()).reshape(x.shape)[key]
        x.view(-1).index_add_(0, places.reshape(-1), values.reshape(-1))
        return x
