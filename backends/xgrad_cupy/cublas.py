"""Products of matrices by a cuBLAS handle of our own, which CUDA lets a graph capture: CuPy refuses that of its own.

Not yet run on a GPU. What cuBLAS is given is checked by a stand-in that computes from just that.

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
_TF32 = 77  # CUBLAS_COMPUTE_32F_FAST_TF32
_DEFAULT = -1  # CUBLAS_GEMM_DEFAULT
_HOPPER, _LARGE, _SMALL = 90, 32 << 20, 4 << 20  # bytes of workspace that cuBLAS asks for, from Hopper on and before

_MATRIX = [c_void_p, c_int, c_int]
_SIZES = [c_void_p, *[c_int] * 5, c_void_p]
_BATCHED = [*_MATRIX, c_longlong]
_SIGNATURES = {
    "cublasCreate_v2": [c_void_p],
    "cublasSetStream_v2": [c_void_p, c_void_p],
    "cublasSetWorkspace_v2": [c_void_p, c_void_p, c_size_t],
    "cublasGemmEx": [*_SIZES, *_MATRIX, *_MATRIX, c_void_p, *_MATRIX, c_int, c_int],
    "cublasGemmStridedBatchedEx": [*_SIZES, *_BATCHED, *_BATCHED, c_void_p, *_BATCHED, c_int, c_int, c_int],
}


class CublasError(RuntimeError):
    """What cuBLAS answered."""


def workspace_size(capability: str) -> int:
    """Return how many bytes cuBLAS wants to work with on a GPU of a compute capability, such as "90"."""
    return _LARGE if int(capability) >= _HOPPER else _SMALL


def load(cp: Any, library: Callable[[str], Any] = ctypes.CDLL) -> Any:
    """Return the cuBLAS that CuPy has loaded, with the types of the functions that are used here.

    Raises
    ------
    CublasError
        If it is not found.
    """
    cp.cuda.get_cublas_handle()  # loads it, from wherever CuPy has it
    major = cp.cuda.runtime.runtimeGetVersion() // 1000
    names = (f"libcublas.so.{major}", f"cublas64_{major}.dll", "libcublas.so")
    for name in names:
        try:
            found = library(name)
        except OSError:
            continue
        for function, types in _SIGNATURES.items():
            getattr(found, function).argtypes = types
            getattr(found, function).restype = c_int
        return found
    raise CublasError(f"cuBLAS is not found: expected one of {', '.join(names)}")


class Layout(NamedTuple):
    """How a matrix lies: by rows, or transposed, by columns; and how many elements there are from one to the next."""

    transposed: bool
    leading: int


def layout(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> Layout | None:
    """Return how a matrix lies in memory, or None if cuBLAS cannot take it as it lies."""
    (rows, columns), (down, right) = shape, strides
    if (columns == 1 or right == itemsize) and _steps(rows, down, columns, itemsize):
        return Layout(False, down // itemsize if rows > 1 else max(columns, 1))
    if (rows == 1 or down == itemsize) and _steps(columns, right, rows, itemsize):
        return Layout(True, right // itemsize if columns > 1 else max(rows, 1))
    return None


def _steps(count: int, stride: int, length: int, itemsize: int) -> bool:
    return count == 1 or (stride % itemsize == 0 and stride >= max(length, 1) * itemsize)


class _Matrix(NamedTuple):
    """A matrix, or a stack of them, as cuBLAS is told of it; steps and strides are in elements."""

    address: int
    transposed: bool
    leading: int
    stride: int

    @staticmethod
    def of(x: Any) -> _Matrix:
        size = int(x.dtype.itemsize)
        lies = layout(x.shape[-2:], x.strides[-2:], size)
        if lies is None:
            raise ValueError(f"gemm: expected matrices by rows or by columns, got strides {x.strides} of {x.dtype}")
        return _Matrix(x.data.ptr, *lies, x.strides[0] // size if len(x.shape) > 2 else 0)


class Cublas:
    """A handle of cuBLAS on the current device. It is never given back, for kernels in graphs may lean on it.

    Parameters
    ----------
    library : ctypes.CDLL
        What `load` returns.

    Attributes
    ----------
    tf32 : bool
        Whether products of float32 and complex64 may take TF32.

    Raises
    ------
    CublasError
        By this and by all methods, if cuBLAS does not do what it is asked for.
    """

    def __init__(self, library: Any) -> None:
        self._library, self.tf32, self._handle = library, False, c_void_p()
        self._check("cublasCreate_v2", ctypes.byref(self._handle))

    def use(self, stream: int, workspace: int, size: int) -> None:
        """Work on a stream, with memory that lives as long as what is captured; both are given by address."""
        self._check("cublasSetStream_v2", self._handle, stream)  # which takes the workspace away
        self._check("cublasSetWorkspace_v2", self._handle, workspace, size)

    def gemm(self, a: Any, b: Any, out: Any) -> None:
        """Write the product of two matrices, or of stacks of them, into an array.

        Parameters
        ----------
        a, b, out : array
            Of one dtype that `takes`, of shapes (..., m, k), (..., k, n) and (..., m, n), with at most one axis before;
            matrices, of which none is empty, by rows or by columns (`layout`). A stack with stride 0 is one matrix.
        """
        left, right, result = _Matrix.of(a), _Matrix.of(b), _Matrix.of(out)
        if result.transposed:  # the transpose of the product then lies by rows
            self.gemm(b.swapaxes(-1, -2), a.swapaxes(-1, -2), out.swapaxes(-1, -2))
            return
        (m, k), n = a.shape[-2:], b.shape[-1]
        if max(m, n, k, left.leading, right.leading, result.leading) >= 1 << 31:
            raise CublasError(f"expected sizes below 2**31, got a product of ({m}, {k}) and ({k}, {n})")
        kind, computed, factor = _KINDS[out.dtype]
        if self.tf32 and out.dtype in (np.float32, np.complex64):  # which CuPy has one setting for
            computed = _TF32
        # cuBLAS thinks in columns: of what lies by rows it sees the transpose. So the second factor comes first.
        one, zero = np.ones((), factor), np.zeros((), factor)
        flags = int(right.transposed), int(left.transposed)  # CUBLAS_OP_N and CUBLAS_OP_T
        sizes = (self._handle, *flags, n, m, k, one.ctypes.data)
        parts = [(x.address, kind, x.leading, x.stride) for x in (right, left, result)]
        if out.ndim == 2:
            single = [part[:-1] for part in parts]
            self._check(
                "cublasGemmEx", *sizes, *single[0], *single[1], zero.ctypes.data, *single[2], computed, _DEFAULT
            )
        else:
            factors = (*parts[0], *parts[1], zero.ctypes.data, *parts[2])
            self._check("cublasGemmStridedBatchedEx", *sizes, *factors, out.shape[0], computed, _DEFAULT)

    def _check(self, name: str, *args: Any) -> None:
        status = getattr(self._library, name)(*args)
        if status:
            raise CublasError(f"{name} returned status {status}")


def takes(dtype: Any) -> bool:
    """Return whether products of a dtype go through cuBLAS; those of integers are kernels of CuPy's."""
    return dtype in _KINDS
