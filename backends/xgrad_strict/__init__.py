"""array-api-strict as the device ``strict``: the standard's functions and nothing else."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

from xgrad.backend import Backend, DeviceError
from xgrad.backend.finite_linalg import finite_linalg


class StrictBackend(Backend):
    """NumPy through array-api-strict, to test that rules use only the standard. Slow.

    Its three devices, ``strict``, ``strict:1`` and ``strict:2``, cannot be mixed.
    """

    library = "array_api_strict"

    def __init__(self) -> None:
        try:
            array_api_strict: Any = import_module("array_api_strict")
        except ImportError as error:
            raise DeviceError(
                "strict: the package array-api-strict is missing: pip install array-api-strict"
            ) from error
        self._library = array_api_strict
        self.array_type = type(array_api_strict.zeros(0))
        # vars() lacks the extensions
        extensions = {
            "fft": array_api_strict.fft,
            "linalg": finite_linalg(array_api_strict.linalg, self.to_host),
        }
        self.xp = SimpleNamespace(**vars(array_api_strict), **extensions, index_add=self.index_add)
        self.devices = [
            array_api_strict.Device(name) for name in ("CPU_DEVICE", "device1", "device2")
        ]
        names = (
            "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64"
            " complex128".split()
        )
        self._dtypes = {np.dtype(name): getattr(array_api_strict, name) for name in names}
        self._dtype_type = type(array_api_strict.float32)
        self._numpy_dtypes = {native: dtype for dtype, native in self._dtypes.items()}

    def describe(self, index: int) -> str:
        return f"array-api-strict {self._library.__version__}, {self.devices[index]!r}"

    def versions(self) -> dict[str, str]:
        return {"array-api-strict": self._library.__version__}

    def to_host(self, x: Any) -> np.ndarray:
        return np.array(x.to_device(self.devices[0]))

    def from_host(self, x: np.ndarray, index: int) -> Any:
        return self._library.asarray(x, copy=True, device=self.devices[index])

    def transfer(self, x: Any, index: int) -> Any:
        return x.to_device(self.devices[index])

    def dtype(self, dtype: Any) -> Any:
        return dtype if isinstance(dtype, self._dtype_type) else self._dtypes[super().dtype(dtype)]

    def numpy_dtype(self, dtype: Any) -> np.dtype:
        return self._numpy_dtypes[dtype]

    def shares_memory(self, x: Any, y: Any) -> bool:
        return super().shares_memory(x._array, y._array)

    def from_dlpack(self, x: Any, index: int) -> Any:
        return self._library.from_dlpack(x, device=self.devices[index])

    def index_add(self, x: Any, key: Any, values: Any) -> Any:
        parts = (
            tuple(self._host_key(part) for part in key)
            if isinstance(key, tuple)
            else self._host_key(key)
        )
        host = np.array(self.to_host(x))
        np.add.at(host, parts, self.to_host(values))
        return self.from_host(host, self.index_of(x))

    def _host_key(self, part: Any) -> Any:
        return self.to_host(part) if isinstance(part, self.array_type) else part
