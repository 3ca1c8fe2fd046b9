"""Matrix products by cuBLAS, with CuPy's handle or a separate one.

CUDA graphs need the separate handle: CuPy refuses to capture calls with its own.

References
----------
.. [1] NVIDIA, "cuBLAS", https://docs.nvidia.com/cuda/cublas/: "CUDA Graphs Support", cublasGemmEx,
   cublasGemmStridedBatchedEx, cublasSetWorkspace.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import c_int, c_longlong, c_size_t, c_void_p
from typing import Any, NamedTuple

import numpy as np

#: cudaDataType_t, cublasComputeType_t and the ctype of the factors, by dtype.
_KINDS: dict[Any, tuple[int, int, Any]] = {
    np.dtype("float16"): (2, 68, np.float32),
    np.dtype("float32"): (0, 68, np.float32),
    np.dtype("float64"): (1, 70, np.float64),
    np.dtype("complex64"): (4, 68, np.complex64),
    np.dtype("complex128"): (5, 70, np.complex128),
}
#: Addresses of 1 and 0, on the host, by the type of the factors.
_NUMBERS = {
    kind: np.array([1, 0], kind) for kind in (np.float32, np.float64, np.complex64, np.complex128)
}
_FACTORS = {kind: (x.ctypes.data, x.ctypes.data + x.itemsize) for kind, x in _NUMBERS.items()}
_TF32 = 77  # CUBLAS_COMPUTE_32F_FAST_TF32
_DEFAULT = -1  # CUBLAS_GEMM_DEFAULT
# workspace in bytes that cuBLAS recommends, from Hopper on and before
_HOPPER, _LARGE, _SMALL = (90, 32 << 20, 4 << 20)

_MATRIX = [c_void_p, c_int, c_int]
_SIZES = [c_void_p, *[c_int] * 5, c_void_p]
_BATCHED = [*_MATRIX, c_longlong]
_SIGNATURES = {
    "cublasCreate_v2": [c_void_p],
    "cublasSetStream_v2": [c_void_p, c_void_p],
    "cublasSetWorkspace_v2": [c_void_p, c_void_p, c_size_t],
    "cublasGemmEx": [*_SIZES, *_MATRIX, *_MATRIX, c_void_p, *_MATRIX, c_int, c_int],
    "cublasGemmStridedBatchedEx": [
        *_SIZES,
        *_BATCHED,
        *_BATCHED,
        c_void_p,
        *_BATCHED,
        c_int,
        c_int,
        c_int,
    ],
}


class CublasError(RuntimeError):
    """An error status of cuBLAS, or cuBLAS missing."""


def workspace_size(capability: str) -> int:
    """Return the size in bytes of the workspace for GPUs of a compute capability, such as "90"."""
    return _LARGE if int(capability) >= _HOPPER else _SMALL


def load(cp: Any, library: Callable[[str], Any] = ctypes.CDLL) -> Any:
    """Return the cuBLAS library that CuPy uses, with the argument types of its functions.

    Raises CublasError if the library is not found.
    """
    cp.cuda.get_cublas_handle()  # loads the library
    major = cp.cuda.runtime.runtimeGetVersion() // 1000
    names = (f"libcublas.so.{major}", f"cublas64_{major}.dll", "libcublas.so")
    for name in names:
        try:
            loaded = library(name)
        except OSError:
            continue
        for function, types in _SIGNATURES.items():
            getattr(loaded, function).argtypes = types
            getattr(loaded, function).restype = c_int
        return loaded
    raise CublasError(f"cuBLAS is not found: expected one of {', '.join(names)}")


class Layout(NamedTuple):
    """Layout of a matrix: by rows or transposed, and its leading dimension.

    `leading` is the number of elements from one row, or column, to the next.
    """

    transposed: bool
    leading: int


def layout(x: Any) -> Layout | None:
    """Return the layout of the matrices in the last two axes of an array.

    None if cuBLAS needs a copy of them.
    """
    (rows, columns), (down, right), size = x.shape[-2:], x.strides[-2:], int(x.dtype.itemsize)
    for transposed, lines, stride, length, step in (
        (False, rows, down, columns, right), (True, columns, right, rows, down),
    ):  # fmt: skip
        regular = lines == 1 or (stride % size == 0 and stride >= max(length, 1) * size)
        if regular and (length == 1 or step == size):
            return Layout(transposed, stride // size if lines > 1 else max(length, 1))
    return None


class Cublas:
    """A cuBLAS handle from the library of `load` on the current device.

    All methods raise `CublasError` for an error status. The handle is never destroyed, because
    graphs may contain kernels that depend on it. `tf32` is whether products of float32 and
    complex64 may use TF32.
    """

    def __init__(self, library: Any) -> None:
        self._library, self.tf32, self._handle = library, False, c_void_p()
        self._call("cublasCreate_v2", ctypes.byref(self._handle))

    def use(self, stream: int, workspace: int, size: int) -> None:
        """Set a stream and a workspace, given by address; it must outlive captured graphs."""
        self._call("cublasSetStream_v2", self._handle, stream)  # resets the workspace
        self._call("cublasSetWorkspace_v2", self._handle, workspace, size)

    def gemm(self, a: Any, b: Any, out: Any) -> None:
        """Write the product of two matrices, or of two stacks with one leading axis, to an array.

        All arrays have one dtype that cuBLAS `supports`, a `layout` other than None, and elements.
        A stack with stride 0 repeats one matrix.
        """
        left, right, result = map(layout, (a, b, out))
        if left is None or right is None or result is None:
            strides = ", ".join(str(x.strides) for x in (a, b, out))
            raise ValueError(
                f"gemm: expected matrices by rows or by columns, got strides {strides} of"
                f" {out.dtype}"
            )
        if result.transposed:  # the transpose of the product is by rows
            self.gemm(b.swapaxes(-1, -2), a.swapaxes(-1, -2), out.swapaxes(-1, -2))
            return
        (m, k), n = a.shape[-2:], b.shape[-1]
        if max(m, n, k, left.leading, right.leading, result.leading) >= 1 << 31:
            raise CublasError(
                f"expected sizes below 2**31, got a product of ({m}, {k}) and ({k}, {n})"
            )
        kind, computed, factor = _KINDS[out.dtype]
        if self.tf32 and out.dtype in (np.float32, np.complex64):  # CuPy has one setting for both
            computed = _TF32
        # cuBLAS stores matrices by columns, so it sees matrices by rows as transposed: swap the
        # factors.
        one, zero = _FACTORS[factor]
        flags = int(right.transposed), int(left.transposed)  # CUBLAS_OP_N and CUBLAS_OP_T
        sizes = (self._handle, *flags, n, m, k, one)
        factors = ((b, right), (a, left), (out, result))
        first, second, third = [(x.data.ptr, kind, lay.leading) for x, lay in factors]
        if out.ndim == 2:
            args: tuple[Any, ...] = (*first, *second, zero, *third, computed, _DEFAULT)
            self._call("cublasGemmEx", *sizes, *args)
        else:
            steps = [x.strides[0] // x.dtype.itemsize for x, _ in factors]
            args = (*first, steps[0], *second, steps[1], zero, *third, steps[2])
            self._call(
                "cublasGemmStridedBatchedEx", *sizes, *args, out.shape[0], computed, _DEFAULT
            )

    def _call(self, name: str, *args: Any) -> None:
        status = getattr(self._library, name)(*args)
        if status:
            raise CublasError(f"{name} returned status {status}")


class CurrentCublas(Cublas):
    """CuPy's handle of the current device, on the current stream.

    Its functions raise CuPy's errors.
    """

    def __init__(self, cp: Any) -> None:
        self._cp, self.tf32, self._handle = cp, False, c_void_p()

    def _call(self, name: str, *args: Any) -> None:
        function = getattr(
            self._cp.cuda.cublas, name[len("cublas")].lower() + name[len("cublas") + 1 :]
        )
        function(self._cp.cuda.get_cublas_handle(), *args[1:])


def supports(dtype: Any) -> bool:
    """Return whether cuBLAS multiplies matrices of a dtype.

    CuPy has its own kernels for integers.
    """
    return dtype in _KINDS


def takes_tf32(cp: Any) -> bool:
    """Return CuPy's setting: whether float32 products may use TF32."""
    core = cp._core
    return bool(core.get_compute_type(np.float32) == core._routines_linalg.COMPUTE_TYPE_TF32)
