"""Methods of tensors that convert dtype, device or memory, and that ask for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import xgrad
from xgrad.compat.torch.promotion import cast
from xgrad.compat.torch.shape import Size
from xgrad.compat.torch.tensor import Tensor, as_torch
from xgrad.core.dtypes import standard
from xgrad.core.methods import named
from xgrad.core.views import layout
from xgrad.ops import torch_methods
from xgrad.ops.methods import to as xgrad_to

#: Names of types that ``x.type()`` returns, and takes.
TYPES = {
    "bool": "Bool",
    "uint8": "Byte",
    "int8": "Char",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "float16": "Half",
    "float32": "Float",
    "float64": "Double",
    "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}


def is_dtype(x: Any) -> bool:
    """Return whether an argument is a dtype, not a device."""
    return isinstance(x, (np.dtype, type))


def to(
    self: xgrad.Tensor,
    *target: Any,
    device: Any = None,
    dtype: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Any:
    """Return this tensor on a device, in a dtype, or like another tensor: see `xgrad.Tensor.to`."""
    for i, x in enumerate(target):
        if isinstance(x, xgrad.Tensor):
            device, dtype = x.device, x.dtype
        elif isinstance(x, bool):  # non_blocking, or copy
            copy = x if i and isinstance(target[i - 1], bool) else copy
        elif x is not None and is_dtype(x):
            dtype = x
        elif x is not None:
            device = f"cuda:{x}" if isinstance(x, int) else x
    if dtype is not None and self.dtype.kind == "c":
        self = cast(self, dtype)
    moved = xgrad_to(self, device, dtype=dtype)
    if copy and moved is self:
        moved = xgrad.asarray(self, copy=True)
    return as_torch(moved)


def as_type(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """Return the name of the type, such as 'torch.FloatTensor', or this tensor in a dtype."""
    if dtype is None:
        place = "" if self.device.type == "cpu" else f"{self.device.type}."
        return f"torch.{place}{TYPES[str(self.dtype)]}Tensor"
    if isinstance(dtype, str):
        *_, place, name = ("", *dtype.removeprefix("torch.").split("."))
        known = {f"{text}Tensor": kind for kind, text in TYPES.items()}
        if name not in known or place not in ("", "cuda"):
            raise ValueError(f"type: expected a name such as 'torch.FloatTensor', got {dtype!r}")
        return to(self, place or "cpu", dtype=standard(known[name]))
    if callable(dtype) and not is_dtype(dtype):  # FloatTensor
        return as_type(self, f"torch.{dtype.__name__}")
    return to(self, dtype=dtype)


def type_as(self: Tensor, other: Tensor) -> Any:
    """Return this tensor in the dtype and on the device of another."""
    return to(self, other)


def _cast(name: str, dtype: Any) -> Callable[..., Any]:
    def method(self: Tensor, memory_format: Any = None) -> Any:
        return to(self, dtype=dtype)

    method.__name__ = method.__qualname__ = name
    return method


def astype(self: Tensor, dtype: Any) -> Any:
    """Return a copy in a dtype, xgrad's method."""
    return as_torch(xgrad.astype(self, dtype))


def to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Any:
    """Return this tensor on a device, the standard's method."""
    return as_torch(xgrad_to(self, device))


def cpu(self: Tensor, memory_format: Any = None) -> Any:
    """Return this tensor on the CPU."""
    return to(self, "cpu")


def cuda(
    self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None
) -> Any:
    """Return this tensor on a GPU, by default the current one."""
    return as_torch(torch_methods.cuda(self, device))


def clone(self: Tensor, *, memory_format: Any = None) -> Any:
    """Return a copy; differentiable."""
    return as_torch(xgrad.asarray(self, copy=True))


def contiguous(self: Tensor, memory_format: Any = None) -> Any:
    """Return this tensor, or a copy in row order if it is a view in another order."""
    return as_torch(torch_methods.contiguous(self))


def is_contiguous(self: Tensor, memory_format: Any = None) -> bool:
    """Return whether the elements are in row order."""
    return torch_methods.contiguous(self) is self


def detach(self: Tensor) -> Any:
    """Return a view of the values without history."""
    return self.data


def detach_(self: Tensor) -> Any:
    """Remove the history of this tensor, and return it."""
    self._edge = None
    return self


def numpy(self: Tensor, *, force: bool = False) -> np.ndarray:
    """Return the values as a NumPy array, a read-only view; a copy with `force`."""
    if force:
        return np.array(xgrad.Tensor.numpy(self._without_history().to("cpu")))
    return xgrad.Tensor.numpy(self)


def pin_memory(self: Tensor, device: Any = None) -> Any:
    """Return this tensor: memory on the host is never pinned."""
    return self


def share_memory_(self: Tensor) -> Any:
    """Return this tensor."""
    return self


def is_pinned(self: Tensor) -> bool:
    """Return False: memory on the host is never pinned."""
    return False


def dim(self: Tensor) -> int:
    """Return the number of axes."""
    return self.ndim


def nelement(self: Tensor) -> int:
    """Return the number of elements."""
    return int(self.size)


def element_size(self: Tensor) -> int:
    """Return the size of an element in bytes."""
    return self.dtype.itemsize


def get_device(self: Tensor) -> int:
    """Return the index of the GPU, or -1 on the CPU."""
    return self.device.index if self.device.type == "cuda" else -1


def stride(self: Tensor, dim: int | None = None) -> Any:
    """Return the steps in memory between elements, counted in elements."""
    array = layout(self)
    strides = tuple([step // array.itemsize for step in array.strides])
    return strides if dim is None else strides[dim]


def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Return whether another tensor has the same shape."""
    return self.shape == other.shape


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Return whether another tensor is the same object."""
    return self is tensor


def backward(
    self: Tensor,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradients to the ``.grad`` of the leaves: see `xgrad.Tensor.backward`."""
    if inputs is not None:
        raise NotImplementedError(
            "backward: inputs= is not available in xgrad.compat.torch: use torch.autograd.grad"
        )
    keep = create_graph if retain_graph is None else retain_graph
    xgrad.autograd.backward(self, gradient, retain_graph=keep, create_graph=create_graph)


def register_hook(self: Tensor, hook: Callable[[Any], Any]) -> Any:
    """Call a function with the gradient of this tensor in each backward pass."""
    return xgrad.Tensor.register_hook(self, lambda gradient: hook(as_torch(gradient)))


def new_tensor(self: Tensor, data: Any, **options: Any) -> Any:
    """Return a new tensor of values, with this dtype and device."""
    requires_grad = options.pop("requires_grad", False)
    options = {"dtype": self.dtype, "device": self.device, **options}
    data = data.detach() if isinstance(data, xgrad.Tensor) else data
    return as_torch(xgrad.asarray(data, copy=True, **options)).requires_grad_(requires_grad)


def new(self: Tensor, *data: Any) -> Any:
    """Return a new tensor of values, or of a shape, with this dtype and device."""
    if len(data) == 1 and not isinstance(data[0], int) and not isinstance(data[0], Size):
        return new_tensor(self, data[0])
    shape = tuple(data[0]) if data and isinstance(data[0], Size) else data or (0,)
    return as_torch(xgrad.zeros(shape, dtype=self.dtype, device=self.device))


METHODS: dict[str, Any] = {
    function.__name__: function
    for function in (
        astype, backward, clone, contiguous, cpu, cuda, detach, detach_, dim, element_size,
        get_device, is_contiguous, is_pinned, is_same_size, is_set_to, nelement, new, new_tensor,
        numpy, pin_memory, register_hook, share_memory_, stride, to, to_device, type_as,
    )
}  # fmt: skip
METHODS |= {"ndimension": dim, "type": named(as_type, "type")}
METHODS |= {
    name: _cast(name, dtype)
    for name, dtype in {
        "bool": xgrad.bool,
        "byte": xgrad.uint8,
        "cdouble": xgrad.complex128,
        "cfloat": xgrad.complex64,
        "char": xgrad.int8,
        "double": xgrad.float64,
        "float": xgrad.float32,
        "half": xgrad.float16,
        "int": xgrad.int32,
        "long": xgrad.int64,
        "short": xgrad.int16,
    }.items()
}
