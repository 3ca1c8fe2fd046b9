"""Functions that make tensors, where a shape may be given as numbers: ``zeros(3, 4)``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import xgrad
from xgrad.compat.torch.promotion import is_number, result_type
from xgrad.compat.torch.shapes import sizes_of
from xgrad.compat.torch.tensor import as_result, as_torch, torch_function
from xgrad.core.tensor import Tensor


def checked_options(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a function that makes a tensor, without those that need no action.

    These are the memory format and pinned memory; another layout, and names of axes, are refused.
    """
    for option in ("memory_format", "pin_memory"):
        options.pop(option, None)
    layout, names = options.pop("layout", None), options.pop("names", None)
    if layout not in (None, "torch.strided") or names is not None:
        raise NotImplementedError(
            f"{name}: layouts other than torch.strided, and names=, are not available in"
            " xgrad.compat.torch"
        )
    return options


def _filled(name: str, op: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function ``name(*size, dtype=None, device=None, requires_grad=False)``."""

    def function(*size: Any, **options: Any) -> Any:
        if "size" in options:
            size = (options.pop("size"),)
        return op(sizes_of(size), **checked_options(name, options))

    function.__name__ = function.__qualname__ = name
    return torch_function(function)


def _like(name: str, op: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function ``name(input, *, dtype=None, device=None, requires_grad=False)``."""

    def function(input: Tensor, **options: Any) -> Any:
        return op(input.detach(), **checked_options(name, options))

    function.__name__ = function.__qualname__ = name
    return torch_function(function)


zeros, ones, empty = (_filled(f.__name__, f) for f in (xgrad.zeros, xgrad.ones, xgrad.empty))
zeros_like, ones_like, empty_like = (
    _like(f.__name__, f) for f in (xgrad.zeros_like, xgrad.ones_like, xgrad.empty_like)
)


def tensor(
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """Return a new tensor with a copy of values: see `xgrad.Tensor`."""
    dtype = _dtype_of_numpy(data) if dtype is None else dtype
    made = xgrad.asarray(_detached(data), dtype=dtype, device=device, copy=True)
    return as_torch(made).requires_grad_(requires_grad)


def _dtype_of_numpy(data: Any) -> Any:
    """Return the dtype of NumPy's numbers and arrays in a list; None for Python's numbers."""
    while isinstance(data, (list, tuple)) and data and isinstance(data[0], (list, tuple)):
        data = data[0]
    if isinstance(data, (list, tuple)):
        kinds = set(map(type, data))
        if any(issubclass(kind, (np.generic, np.ndarray)) for kind in kinds):
            return result_type(
                *[xgrad.zeros((1,), dtype=x.dtype) if hasattr(x, "dtype") else x for x in data]
            )
    return None


def _detached(data: Any) -> Any:
    if isinstance(data, xgrad.Tensor):
        return data._without_history()
    if isinstance(data, (list, tuple)) and any(
        isinstance(x, (xgrad.Tensor, list, tuple)) for x in data
    ):
        return [_detached(x) for x in data]
    return data


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Any:
    """Return values as a tensor; a tensor as it is, with its graph: see `xgrad.asarray`.

    An array of NumPy is copied, where PyTorch shares its memory.
    """
    copy = True if isinstance(data, np.ndarray) else None
    dtype = _dtype_of_numpy(data) if dtype is None else dtype
    return as_result(xgrad.asarray(data, dtype=dtype, device=device, copy=copy), (data,))


def asarray(
    obj: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Any:
    """Return values as a tensor: see `xgrad.asarray`."""
    copy = True if isinstance(obj, np.ndarray) and copy is None else copy
    made = xgrad.asarray(obj, dtype=dtype, device=device, copy=copy, requires_grad=requires_grad)
    return as_result(made, (obj,))


def from_numpy(ndarray: np.ndarray) -> Any:
    """Return a tensor with a copy of the values, where PyTorch shares the memory."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"from_numpy: expected an array of NumPy, got {type(ndarray).__name__}")
    return as_torch(xgrad.asarray(ndarray, device="cpu", copy=True))


def from_dlpack(x: Any) -> Any:
    """Return a tensor of another library's array: see `xgrad.from_dlpack`."""
    return as_torch(xgrad.from_dlpack(x))


@torch_function
def full(size: Any, fill_value: Any, **options: Any) -> Any:
    """Return a tensor full of a value: see `xgrad.full`."""
    if isinstance(fill_value, (xgrad.Tensor, np.generic)):
        fill_value = fill_value.item()
    return xgrad.full(sizes_of((size,)), fill_value, **checked_options("full", options))


@torch_function
def full_like(input: Tensor, fill_value: Any, **options: Any) -> Any:
    """Return a tensor full of a value, with the shape of another: see `xgrad.full_like`."""
    options = {"dtype": input.dtype, "device": input.device, **options}
    return full(tuple(input.shape), _as_dtype(fill_value, options["dtype"]), **options)


def _as_dtype(value: Any, dtype: Any) -> Any:
    """Return a number as PyTorch casts it to a dtype."""
    value = value.item() if isinstance(value, (xgrad.Tensor, np.generic)) else value
    kind = "f" if dtype is None else np.dtype(dtype).kind
    return bool(value) if kind == "b" else int(value) if kind in "iu" else value


@torch_function
def arange(start: Any, end: Any = None, step: Any = 1, **options: Any) -> Any:
    """Return the numbers from `start` up to `end`, which is excluded: see `xgrad.arange`."""
    start, end, step = (
        x.item() if isinstance(x, (xgrad.Tensor, np.generic)) else x for x in (start, end, step)
    )
    if end is None:
        start, end = 0, start
    options = checked_options("arange", options)
    dtype = options.get("dtype")
    if dtype is not None and np.dtype(dtype).kind in "iu":  # PyTorch truncates the numbers first
        count = math.ceil((end - start) / step)
        start, end, step = int(start), int(end), int(step)
        if np.dtype(dtype) != np.int64:
            end = start + count * step
        options["dtype"] = xgrad.int64
        return xgrad.astype(xgrad.arange(start, end, step, **options), dtype, copy=False)
    if (end - start) * step < 0:
        raise RuntimeError(f"arange: expected a step from {start} towards {end}, got {step}")
    return xgrad.arange(start, end, step, **options)


def range(start: float = 0, end: float = 0, step: float = 1, **options: Any) -> Any:
    """Return the numbers from `start` to `end`, which is included: see `xgrad.arange`."""
    dtype = options.pop("dtype", None) or xgrad.get_default_dtype()
    count = math.floor((end - start) / step) + 1
    return arange(start, start + (count - 0.5) * step, step, dtype=dtype, **options)


@torch_function
def linspace(start: Any, end: Any, steps: int, **options: Any) -> Any:
    """Return evenly spaced numbers: see `xgrad.linspace`."""
    start, end = (x.item() if isinstance(x, xgrad.Tensor) else x for x in (start, end))
    options = checked_options("linspace", options)
    if (dtype := options.get("dtype")) is not None and np.dtype(dtype).kind in "iu":
        options["dtype"] = xgrad.float64
        spaced = xgrad.linspace(int(start), int(end), steps, **options)
        return xgrad.astype(xgrad.trunc(spaced), dtype)
    return xgrad.linspace(start, end, steps, **options)


@torch_function
def logspace(start: Any, end: Any, steps: int, base: float = 10.0, **options: Any) -> Any:
    """Return numbers evenly spaced on a logarithmic scale: see `xgrad.linspace`."""
    start, end = (x.item() if isinstance(x, xgrad.Tensor) else x for x in (start, end))
    options = checked_options("logspace", options)
    dtype = options.pop("dtype", None)
    if dtype is not None and np.dtype(dtype).kind in "iu":
        start, end = int(start), int(end)
    working = xgrad.float64 if dtype is None or np.dtype(dtype).kind != "c" else dtype
    powers = xgrad.pow(base, xgrad.linspace(start, end, steps, **{**options, "dtype": working}))
    return xgrad.astype(powers, dtype or xgrad.get_default_dtype(), copy=False)


@torch_function
def eye(n: int, m: int | None = None, **options: Any) -> Any:
    """Return an identity matrix: see `xgrad.eye`."""
    return xgrad.eye(n, n if m is None else m, **checked_options("eye", options))


@torch_function
def complex(real: Tensor, imag: Tensor) -> Any:
    """Return complex numbers of their parts."""
    if real.dtype != imag.dtype:
        raise RuntimeError(f"complex: expected equal dtypes, got {real.dtype} and {imag.dtype}")
    return real + 1j * imag


@torch_function
def polar(abs: Tensor, angle: Tensor) -> Any:
    """Return complex numbers of their absolute values and angles."""
    return abs * xgrad.cos(angle) + 1j * (abs * xgrad.sin(angle))


def _triangle(name: str, op: Callable[..., Any]) -> Callable[..., Any]:
    def function(row: int, col: int, offset: int = 0, **options: Any) -> Any:
        options = checked_options(name, options)
        dtype = options.pop("dtype", None) or xgrad.int64
        mask = op(xgrad.ones((row, col), dtype=xgrad.int64, **options), k=offset)
        found: Any = xgrad.nonzero(mask)
        return xgrad.astype(xgrad.stack(found), dtype, copy=False)

    function.__name__ = function.__qualname__ = name
    return torch_function(function)


tril_indices, triu_indices = (
    _triangle(f"{f.__name__}_indices", f) for f in (xgrad.tril, xgrad.triu)
)


def scalar_tensor(s: Any, **options: Any) -> Any:
    """Return a tensor without axes, floating by default: see `xgrad.full`."""
    options.setdefault("dtype", xgrad.get_default_dtype())
    return full((), s, **options)


def is_tensor(obj: Any) -> bool:
    """Return whether an object is a tensor."""
    return isinstance(obj, xgrad.Tensor)


def is_floating_point(input: Tensor) -> bool:
    """Return whether the dtype is a real floating one."""
    return input.dtype.kind == "f"


def is_complex(input: Tensor) -> bool:
    """Return whether the dtype is complex."""
    return input.dtype.kind == "c"


def is_nonzero(input: Tensor) -> bool:
    """Return whether the only element is nonzero."""
    return bool(input)


def typed(name: str, dtype: Any, device: str = "cpu") -> Callable[..., Any]:
    """Return a constructor such as ``FloatTensor``: of values, or of a shape given as numbers."""

    def constructor(*data: Any) -> Any:
        if len(data) == 1 and not is_number(data[0]):
            return tensor(data[0], dtype=dtype, device=device)
        return zeros(*data or (0,), dtype=dtype, device=device)

    constructor.__name__ = constructor.__qualname__ = name
    return constructor


FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        arange, as_tensor, asarray, complex, empty, empty_like, eye, from_dlpack, from_numpy, full,
        full_like, is_complex, is_floating_point, is_nonzero, is_tensor, linspace, logspace, ones,
        ones_like, polar, range, scalar_tensor, tensor, tril_indices, triu_indices, zeros,
        zeros_like,
    )
}  # fmt: skip
FUNCTIONS |= {
    f"{name}Tensor": typed(f"{name}Tensor", dtype)
    for name, dtype in (
        ("Bool", xgrad.bool),
        ("Byte", xgrad.uint8),
        ("Char", xgrad.int8),
        ("Double", xgrad.float64),
        ("Float", xgrad.float32),
        ("Half", xgrad.float16),
        ("Int", xgrad.int32),
        ("Long", xgrad.int64),
        ("Short", xgrad.int16),
    )
}
