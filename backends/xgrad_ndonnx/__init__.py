"""ndonnx's arrays as the device ``ndonnx``: functions of the standard that make an ONNX graph.

Arrays of known values compute at once. What depends on an argument of the graph has a dtype and a shape and no values:
to read one is an error. `xgrad.onnx.export` makes files of both. Differences from ``cpu``:

- There are no complex numbers, no decompositions, no Fourier transforms, and no special functions but ``erf``.
- No checks of values are made of what depends on an argument.
- An index in an array counts from the end if it is negative, and is not checked.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from importlib import import_module
from itertools import accumulate
from operator import mul
from types import SimpleNamespace
from typing import Any

import numpy as np

from xgrad.backend import Backend, DeviceError
from xgrad.backend.scipy_kernels import SciPyKernels

_DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
_ADDED = "conj cumulative_prod diagonal index_add permute_dims real std var".split()
_KERNELS = "convolution convolution_input getitem maximum_pool put setitem".split()


class _Namespace(SimpleNamespace):
    """A namespace whose missing functions raise an error that says so."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"ndonnx has no {name}")


class NdonnxBackend(Backend):
    """ndonnx: each function of the standard adds operators of ONNX to a graph."""

    library = "ndonnx"

    def __init__(self) -> None:
        try:
            self._ndonnx: Any = import_module("ndonnx")
        except ImportError as error:
            raise DeviceError("ndonnx: the package ndonnx is missing: pip install 'xgrad[onnx]'") from error
        self._operators: Any = import_module("spox.opset.ai.onnx.v21")
        self.array_type = self._ndonnx.Array
        self.kernels = {name: getattr(self, name) for name in _KERNELS}
        products = {name: getattr(self._ndonnx, name) for name in ("matmul", "matrix_transpose", "tensordot", "vecdot")}
        self.xp = _Namespace(
            **vars(self._ndonnx) | {name: getattr(self, name) for name in _ADDED},
            linalg=_Namespace(**products, diagonal=self.diagonal, vector_norm=self.vector_norm),
            special=SciPyKernels(self, {"erf": lambda x: self._call("erf", x)}),
        )
        self._numpy_dtypes = {getattr(self._ndonnx, name): np.dtype(name) for name in _DTYPES}
        self._dtypes = {dtype: native for native, dtype in self._numpy_dtypes.items()}

    def describe(self, index: int) -> str:
        return f"ndonnx {self._ndonnx.__version__}"

    def versions(self) -> dict[str, str]:
        return {"ndonnx": self._ndonnx.__version__}

    def to_host(self, x: Any) -> np.ndarray:
        try:
            return np.array(x.unwrap_numpy())
        except ValueError as error:
            raise ValueError(
                "ndonnx: the values of a tensor are read that depend on an argument of the ONNX graph: by .item(), a "
                "condition, or a function that ONNX lacks"
            ) from error

    def from_host(self, x: np.ndarray, index: int) -> Any:
        return self._ndonnx.asarray(np.array(x))

    def dtype(self, dtype: Any) -> Any:
        if dtype in self._numpy_dtypes:
            return dtype
        if (wanted := super().dtype(dtype)) not in self._dtypes:
            raise TypeError(f"ndonnx: expected one of {', '.join(_DTYPES)}, got {wanted}, which ndonnx lacks")
        return self._dtypes[wanted]

    def numpy_dtype(self, dtype: Any) -> np.dtype:
        return self._numpy_dtypes[dtype]

    def check_true(self, condition: Any) -> bool:
        """Return whether a condition holds, or True if that depends on an argument of the graph."""
        try:
            return bool(condition.unwrap_numpy())
        except ValueError:
            return True

    def shares_memory(self, x: Any, y: Any) -> bool:
        """Return True: results share no memory, and a write to a view is one to its base by `put`."""
        return True

    # Elements by their positions in an array of one axis

    def _positions(self, shape: tuple[int, ...], key: Any) -> Any:
        """Return the positions of the elements that a key selects."""
        parts = key if isinstance(key, tuple) else (key,)
        try:
            known = tuple([self.to_host(part) if isinstance(part, self.array_type) else part for part in parts])
        except ValueError:  # an array that depends on an argument
            numbers = self._ndonnx.asarray(_numbers(shape))
        else:
            return self._ndonnx.asarray(_numbers(shape)[known])
        arrays: list[tuple[int, Any]] = [(i, x) for i, x in enumerate(parts) if isinstance(x, self.array_type)]
        (axis, indices), *others = arrays
        if others or any(part != slice(None) for part in (*parts[:axis], *parts[axis + 1 :])):
            return numbers[key]
        taken = self._ndonnx.take(numbers, self._ndonnx.reshape(indices, (-1,)), axis=axis)
        return self._ndonnx.reshape(taken, (*shape[:axis], *indices.shape, *shape[axis + 1 :]))

    def _take(self, x: Any, positions: Any) -> Any:
        flat = self._ndonnx.take(self._ndonnx.reshape(x, (-1,)), self._ndonnx.reshape(positions, (-1,)))
        return self._ndonnx.reshape(flat, positions.shape)

    def _scatter(self, x: Any, positions: Any, values: Any, **attributes: Any) -> Any:
        """Return a copy with values at some positions, broadcast and in its dtype."""
        flat, xp = (-1,), self._ndonnx
        values = xp.broadcast_to(xp.asarray(values, dtype=x.dtype), positions.shape)
        parts = [xp.reshape(x, flat), xp.reshape(positions, (-1, 1)), xp.reshape(values, flat)]
        return xp.reshape(self._call("scatter_nd", *parts, **attributes), x.shape)

    def index_add(self, x: Any, key: Any, values: Any) -> Any:
        return self._scatter(x, self._positions(x.shape, key), values, reduction="add")

    def getitem(self, x: Any, /, *, key: Any) -> Any:
        """Return ``x[key]``."""
        arrays = any(isinstance(part, self.array_type) for part in (key if isinstance(key, tuple) else (key,)))
        return self._take(x, self._positions(x.shape, key)) if arrays else x[key]

    def setitem(self, x: Any, value: Any, /, *, key: Any) -> Any:
        """Return a copy with a value at a key."""
        return self._scatter(x, self._positions(x.shape, key), value)

    def put(self, x: Any, value: Any, /, *, view: Any, options: dict[str, Any]) -> Any:
        """Return a copy with a value in one of its views."""
        return self._scatter(x, view.forward(self.xp, self._ndonnx.asarray(_numbers(x.shape)), **options), value)

    def diagonal(self, x: Any, /, *, offset: int = 0) -> Any:
        """Return `diagonal` of the standard, which ndonnx lacks."""
        return self._take(x, self._ndonnx.asarray(np.diagonal(_numbers(x.shape), offset, -2, -1).copy()))

    # Other functions

    def real(self, x: Any, /) -> Any:
        """Return a real array as it is, as `conj` does: ndonnx refuses these."""
        return x

    conj = real

    def permute_dims(self, x: Any, axes: tuple[int, ...], /) -> Any:
        """Return `permute_dims` of the standard, also for negative axes."""
        return self._ndonnx.permute_dims(x, tuple([axis % x.ndim for axis in axes]))

    def cumulative_prod(self, x: Any, /, *, axis: int | None = None, dtype: Any = None, **options: Any) -> Any:
        """Return `cumulative_prod` of the standard: ndonnx's is NaN for negative numbers."""
        xp, axis = self._ndonnx, 0 if axis is None else axis % x.ndim
        x = x if dtype is None else xp.astype(x, dtype)
        parts = [xp.expand_dims(part, axis=axis) for part in xp.unstack(x, axis=axis)]
        if options.get("include_initial"):
            shape = tuple([1 if i == axis else n for i, n in enumerate(x.shape)])
            parts = [xp.ones(shape, dtype=x.dtype), *parts]
        return xp.concat(list(accumulate(parts, mul)), axis=axis) if parts else x

    def var(self, x: Any, /, *, axis: Any = None, correction: float = 0, keepdims: bool = False) -> Any:
        """Return `var` of the standard: ndonnx's ignores the fraction of a correction."""
        out = self._ndonnx.var(x, axis=axis, keepdims=keepdims)
        count = math.prod(x.shape) / max(math.prod(out.shape), 1)
        return out * (count / (count - correction) if count > correction else math.inf)

    def std(self, x: Any, /, **options: Any) -> Any:
        """Return `std` of the standard, the root of `var`."""
        return self._ndonnx.sqrt(self.var(x, **options))

    def vector_norm(self, x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Any:
        """Return `linalg.vector_norm` of the standard."""
        xp, x = self._ndonnx, abs(x)
        if math.isinf(ord):
            return (xp.max if ord > 0 else xp.min)(x, axis=axis, keepdims=keepdims)
        if ord == 0:
            return xp.sum(xp.astype(x != 0, x.dtype), axis=axis, keepdims=keepdims)
        return xp.sum(x**ord, axis=axis, keepdims=keepdims) ** (1 / ord)

    def _call(self, operator: str, *inputs: Any, **attributes: Any) -> Any:
        """Return the first result of an operator of ONNX."""
        function: Callable[..., Any] = getattr(self._operators, operator)
        out = function(*[x if x is None else x.unwrap_spox() for x in inputs], **attributes)
        return self._ndonnx.asarray(out[0] if isinstance(out, tuple) else out)

    def convolution(self, input: Any, weight: Any, bias: Any = None, *, window: Any, groups: int) -> Any:
        """Return a convolution."""
        return self._call("conv", input, weight, bias, group=groups, **_attributes(window))

    def convolution_input(self, grad: Any, weight: Any, *, window: Any, groups: int) -> Any:
        """Return the gradient of a convolution for its input."""
        axes = zip(window.padded, window.stride, window.out, window.span, strict=True)
        rest = [padded - stride * (n - 1) - span for padded, stride, n, span in axes]
        return self._call("conv_transpose", grad, weight, group=groups, output_padding=rest, **_attributes(window))

    def maximum_pool(self, x: Any, *, window: Any) -> Any:
        """Return the largest element of each window."""
        return self._call("max_pool", x, **_attributes(window))


def _numbers(shape: tuple[int, ...]) -> np.ndarray:
    """Return the position of each element."""
    return np.arange(reduce(mul, shape, 1)).reshape(shape)


def _attributes(window: Any) -> dict[str, Any]:
    """Return the attributes of an operator with a window."""
    pads = [pair[end] for end in (0, 1) for pair in window.padding]
    return {"kernel_shape": window.kernel, "strides": window.stride, "dilations": window.dilation, "pads": pads}
