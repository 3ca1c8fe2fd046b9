"""MLX's arrays as the device ``mlx``: MLX's default device.

It is the GPU on Apple machines, otherwise the CPU. MLX's slices are copies: tensors hold mutable
arrays over its arrays. Neither its derivatives nor its compiler are used. Differences from ``cpu``:

- There is no complex128, and on the GPU no float64: complex numbers of float64 are complex64.
- Indices in arrays are not checked.
- Special functions are SciPy's. NumPy's functions replace those that MLX lacks, or whose results
  differ: see `functions`.

Work is queued, but the backend is not `asynchronous`: checks of values wait. It has not run on a
GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from itertools import chain
from typing import Any

import numpy as np

from xgrad.backend import Backend, DeviceError
from xgrad.backend.mutable import MutableArray, MutableNamespace, unwrapped
from xgrad.backend.scipy_kernels import SciPyKernels
from xgrad_mlx.functions import functions

_DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64"
    " complex64".split()
)


class MlxArray(MutableArray):
    """A mutable array over an MLX array."""

    __slots__ = ()

    @staticmethod
    def namespace() -> Any:
        return import_module("mlx.core")

    @staticmethod
    def replaced(x: Any, key: Any, value: Any) -> Any:
        new, key = MlxArray.namespace().array(x), _without_masks(key)
        if new[key].size:  # MLX refuses empty parts
            new[key] = value
        return new

    @property
    def device(self) -> None:
        return None

    def __getitem__(self, key: Any) -> MutableArray:
        if not any(
            isinstance(part, MlxArray) for part in (key if isinstance(key, tuple) else (key,))
        ):
            np.broadcast_to(0, self.shape)[key]  # raises IndexError, because MLX does not
            return super().__getitem__(key)
        return MlxArray(self.native[_without_masks(unwrapped(key))])


def _without_masks(key: Any) -> tuple[Any, ...]:
    """Return a key with indices in place of masks, which MLX does not take."""
    mx = MlxArray.namespace()
    parts = [
        (
            map(mx.array, np.nonzero(np.array(part)))
            if isinstance(part, mx.array) and part.dtype == mx.bool_
            else [part]
        )
        for part in (key if isinstance(key, tuple) else (key,))
    ]
    return tuple(chain.from_iterable(parts))


class MlxBackend(Backend):
    """MLX without its derivatives and its compiler."""

    library = "mlx"
    array_type = MlxArray

    def __init__(self) -> None:
        try:
            self._mx = MlxArray.namespace()
        except ImportError as error:
            raise DeviceError(
                "mlx: the package MLX is missing: pip install 'xgrad[mlx]'"
            ) from error
        self.native_types = (self._mx.array,)
        self._dtypes = {
            np.dtype(name): getattr(self._mx, {"bool": "bool_"}.get(name, name)) for name in _DTYPES
        }
        self._numpy_dtypes = {native: dtype for dtype, native in self._dtypes.items()}
        namespace = functions(self._mx, self._native)
        self.xp = MutableNamespace(
            namespace, MlxArray, index_add=self.index_add, special=SciPyKernels(self)
        )

    def versions(self) -> dict[str, str]:
        return {"mlx": self._mx.__version__}

    def describe(self, index: int) -> str:
        return f"MLX {self._mx.__version__} on {self._mx.default_device()}"

    def _native(self, x: np.ndarray) -> Any:
        return self._mx.array(np.array(x, order="C"), dtype=self.dtype(x.dtype))

    def to_host(self, x: Any) -> np.ndarray:
        return np.array(x.native)

    def from_host(self, x: np.ndarray, index: int) -> Any:
        return MlxArray(self._native(x))

    def array_converter(self, index: int) -> Callable[[Any], Any]:
        return lambda x: (
            MlxArray(x) if isinstance(x, self._mx.array) else self.from_host(np.asarray(x), index)
        )

    def dtype(self, dtype: Any) -> Any:
        if isinstance(dtype, self._mx.Dtype):
            return dtype
        if (wanted := super().dtype(dtype)) not in self._dtypes:
            raise TypeError(
                f"mlx: expected one of {', '.join(_DTYPES)}, got {wanted}, which MLX lacks: cast it"
                " before"
            )
        return self._dtypes[wanted]

    def numpy_dtype(self, dtype: Any) -> Any:
        return self._numpy_dtypes[dtype]

    def shares_memory(self, x: Any, y: Any) -> bool:
        return bool(x.root is y.root)

    def index_add(self, x: Any, key: Any, values: Any) -> Any:
        values = unwrapped(values)
        return MlxArray(
            x.native.at[_without_masks(unwrapped(key))].add(values) if values.size else x.native
        )

    def synchronize(self, index: int) -> None:
        self._mx.synchronize()
