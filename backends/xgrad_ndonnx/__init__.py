"""ndonnx's arrays as the device ``ndonnx``: functions of the standard that make an ONNX graph.

Arrays of known values compute at once. An array that depends on an argument of the graph has a
dtype and a shape but no values: reading one is an error. `xgrad.onnx.export` writes both kinds to
files. Differences from ``cpu``:

- There are no complex numbers, no decompositions, no Fourier transforms, and no special functions
  but ``erf``.
- Values that depend on an argument are not checked.
- ndonnx's slices are copies: tensors hold mutable arrays over its arrays.
- A negative index in an array counts from the end. Indices in arrays are not checked.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import accumulate
from operator import mul
from types import SimpleNamespace
from typing import Any

import numpy as np

from xgrad.backend import Backend, DeviceError
from xgrad.backend.mutable import MutableArray, MutableNamespace, unwrapped
from xgrad.backend.scipy_kernels import SciPyKernels

_DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()


class NdonnxArray(MutableArray):
    """A mutable array over an ndonnx array."""

    __slots__ = ()

    @staticmethod
    def namespace() -> Any:
        return import_module("ndonnx")

    @staticmethod
    def replaced(x: Any, key: Any, value: Any) -> Any:
        if has_arrays(key):
            return scatter(x, positions(x.shape, key), value)
        new, key = x.copy(), of_all_axes(key, x.ndim)
        xp = NdonnxArray.namespace()
        new[key] = xp.broadcast_to(xp.asarray(value, dtype=x.dtype), new[key].shape)
        return new

    def __getitem__(self, key: Any) -> MutableArray:
        key = unwrapped(key)
        if has_arrays(key):
            return NdonnxArray(gather(self.native, positions(self.shape, key)))
        key = of_all_axes(key, self.ndim)
        return self.view(lambda native: native[key])


class NdonnxBackend(Backend):
    """ndonnx: each function of the standard adds ONNX operators to a graph."""

    library = "ndonnx"
    array_type = NdonnxArray

    def __init__(self) -> None:
        try:
            self._ndonnx = NdonnxArray.namespace()
        except ImportError as error:
            raise DeviceError(
                "ndonnx: the package ndonnx is missing: pip install 'xgrad[onnx]'"
            ) from error
        added: dict[str, Any] = {
            f.__name__: f for f in (conj, cumulative_prod, diagonal, permute_dims, std, var)
        }
        products = {
            name: getattr(self._ndonnx, name)
            for name in ("matmul", "matrix_transpose", "tensordot", "vecdot")
        }
        added["real"] = conj
        added["linalg"] = SimpleNamespace(**products, diagonal=diagonal, vector_norm=vector_norm)
        special = SciPyKernels(self, {"erf": self._kernel(partial(operator, "erf"))})
        library = SimpleNamespace(**vars(self._ndonnx) | added)
        self.xp = MutableNamespace(library, NdonnxArray, index_add=self.index_add, special=special)
        self.kernels = {
            f.__name__: self._kernel(f) for f in (convolution, convolution_input, maximum_pool)
        }
        self._numpy_dtypes = {getattr(self._ndonnx, name): np.dtype(name) for name in _DTYPES}
        self._dtypes = {dtype: native for native, dtype in self._numpy_dtypes.items()}

    @staticmethod
    def _kernel(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *inputs, **options: NdonnxArray(function(*map(unwrapped, inputs), **options))

    def describe(self, index: int) -> str:
        return f"ndonnx {self._ndonnx.__version__}"

    def versions(self) -> dict[str, str]:
        return {"ndonnx": self._ndonnx.__version__}

    def to_host(self, x: Any) -> np.ndarray:
        try:
            return np.array(x.native.unwrap_numpy())
        except ValueError as error:
            raise ValueError(
                "ndonnx: the values of a tensor are read that depend on an argument of the ONNX"
                " graph: by .item(), a condition, or a function that ONNX lacks"
            ) from error

    def from_host(self, x: np.ndarray, index: int) -> Any:
        return NdonnxArray(self._ndonnx.asarray(np.array(x)))

    def dtype(self, dtype: Any) -> Any:
        if dtype in self._numpy_dtypes:
            return dtype
        if (wanted := super().dtype(dtype)) not in self._dtypes:
            raise TypeError(
                f"ndonnx: expected one of {', '.join(_DTYPES)}, got {wanted}, which ndonnx lacks"
            )
        return self._dtypes[wanted]

    def numpy_dtype(self, dtype: Any) -> np.dtype:
        return self._numpy_dtypes[dtype]

    def check_true(self, condition: Any) -> bool:
        """Return whether a condition holds; True if it depends on an argument of the graph."""
        try:
            return bool(condition.native.unwrap_numpy())
        except ValueError:
            return True

    def index_add(self, x: Any, key: Any, values: Any) -> Any:
        places = positions(x.shape, unwrapped(key))
        return NdonnxArray(scatter(x.native, places, unwrapped(values), reduction="add"))


# Functions of ndonnx's arrays


def operator(name: str, *inputs: Any, **attributes: Any) -> Any:
    """Return the first result of an ONNX operator."""
    function: Callable[..., Any] = getattr(import_module("spox.opset.ai.onnx.v21"), name)
    out = function(*[x if x is None else x.unwrap_spox() for x in inputs], **attributes)
    return NdonnxArray.namespace().asarray(out[0] if isinstance(out, tuple) else out)


def _numbers(shape: tuple[int, ...]) -> np.ndarray:
    """Return the position of each element in C order."""
    return np.arange(math.prod(shape)).reshape(shape)


def _parts(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _is_array(part: Any) -> bool:
    return hasattr(part, "unwrap_numpy")


def has_arrays(key: Any) -> bool:
    return any(map(_is_array, _parts(key)))


def of_all_axes(key: Any, count: int) -> Any:
    """Return a key with an ellipsis for the axes that it leaves out, which ndonnx requires."""
    parts = _parts(key)
    named = sum([part is not None and part is not ... for part in parts])
    whole = named == count or any(part is ... for part in parts)
    return key if whole else (*parts, ...)


def positions(shape: tuple[int, ...], key: Any) -> Any:
    """Return the positions of the elements that a key selects from an array of a shape."""
    xp, parts = NdonnxArray.namespace(), _parts(key)
    try:
        known = tuple([part.unwrap_numpy() if _is_array(part) else part for part in parts])
    except ValueError:  # an array that depends on an argument
        numbers = xp.asarray(_numbers(shape))
    else:
        return xp.asarray(_numbers(shape)[known])
    axis = list(map(_is_array, parts)).index(True)
    if any(
        not isinstance(part, slice) or part != slice(None)
        for part in (*parts[:axis], *parts[axis + 1 :])
    ):
        return numbers[key]
    taken = xp.take(numbers, xp.reshape(parts[axis], (-1,)), axis=axis)
    return xp.reshape(taken, (*shape[:axis], *parts[axis].shape, *shape[axis + 1 :]))


def gather(x: Any, places: Any) -> Any:
    """Return the elements at the given positions."""
    xp = NdonnxArray.namespace()
    return xp.reshape(xp.take(xp.reshape(x, (-1,)), xp.reshape(places, (-1,))), places.shape)


def scatter(x: Any, places: Any, values: Any, **attributes: Any) -> Any:
    """Return an array with values, broadcast and cast, at the given positions."""
    xp, flat = NdonnxArray.namespace(), (-1,)
    values = xp.broadcast_to(xp.asarray(values, dtype=x.dtype), places.shape)
    parts = [xp.reshape(x, flat), xp.reshape(places, (-1, 1)), xp.reshape(values, flat)]
    return xp.reshape(operator("scatter_nd", *parts, **attributes), x.shape)


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """Return `linalg.diagonal` of the standard."""
    return gather(
        x, NdonnxArray.namespace().asarray(np.diagonal(_numbers(x.shape), offset, -2, -1).copy())
    )


def conj(x: Any, /) -> Any:
    """Return a real array unchanged, for `conj` and `real`: ndonnx refuses real arrays."""
    return x


def permute_dims(x: Any, axes: tuple[int, ...], /) -> Any:
    """Return `permute_dims` of the standard; it also takes negative axes."""
    return NdonnxArray.namespace().permute_dims(x, tuple([axis % x.ndim for axis in axes]))


def cumulative_prod(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    """Return `cumulative_prod` of the standard: ndonnx's gives NaN for negative numbers."""
    xp, axis = NdonnxArray.namespace(), 0 if axis is None else axis % x.ndim
    x = x if dtype is None else xp.astype(x, dtype)
    parts = [xp.expand_dims(part, axis=axis) for part in xp.unstack(x, axis=axis)]
    if include_initial:
        parts = [
            xp.ones(tuple([1 if i == axis else n for i, n in enumerate(x.shape)]), dtype=x.dtype),
            *parts,
        ]
    return xp.concat(list(accumulate(parts, mul)), axis=axis) if parts else x


def var(x: Any, /, *, axis: Any = None, correction: float = 0, keepdims: bool = False) -> Any:
    """Return `var` of the standard: ndonnx's ignores the fractional part of a correction."""
    out = NdonnxArray.namespace().var(x, axis=axis, keepdims=keepdims)
    count = math.prod(x.shape) / max(math.prod(out.shape), 1)
    return out * (count / (count - correction) if count > correction else math.inf)


def std(x: Any, /, **options: Any) -> Any:
    """Return `std` of the standard, the square root of `var`."""
    return NdonnxArray.namespace().sqrt(var(x, **options))


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Any:
    """Return `linalg.vector_norm` of the standard."""
    xp, x = NdonnxArray.namespace(), abs(x)
    if math.isinf(ord):
        return (xp.max if ord > 0 else xp.min)(x, axis=axis, keepdims=keepdims)
    if ord == 0:
        return xp.sum(xp.astype(x != 0, x.dtype), axis=axis, keepdims=keepdims)
    return xp.sum(x**ord, axis=axis, keepdims=keepdims) ** (1 / ord)


# Kernels


def convolution(input: Any, weight: Any, bias: Any = None, *, window: Any, groups: int) -> Any:
    """Return the convolution by ONNX's operator."""
    return operator("conv", input, weight, bias, group=groups, **_attributes(window))


def convolution_input(grad: Any, weight: Any, *, window: Any, groups: int) -> Any:
    """Return the gradient of a convolution with respect to its input."""
    axes = zip(window.padded, window.stride, window.out, window.span, strict=True)
    rest = [padded - stride * (n - 1) - span for padded, stride, n, span in axes]
    return operator(
        "conv_transpose", grad, weight, group=groups, output_padding=rest, **_attributes(window)
    )


def maximum_pool(x: Any, *, window: Any) -> Any:
    """Return the largest element of each window."""
    return operator("max_pool", x, **_attributes(window))


def _attributes(window: Any) -> dict[str, Any]:
    """Return the attributes of a window operator."""
    pads = [pair[end] for end in (0, 1) for pair in window.padding]
    return {
        "kernel_shape": window.kernel,
        "strides": window.stride,
        "dilations": window.dilation,
        "pads": pads,
    }
