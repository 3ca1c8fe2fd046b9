"""The tensor: an array, the device that it is on, and its edge into the recorded graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from xgrad.device import Device
from xgrad.grad_mode import grad_enabled
from xgrad.graph import Edge, HookHandle, Leaf, Node, Output, clock
from xgrad.operators import Operators, namespace


class Tensor(Operators):
    """An array on a device that knows how it was computed.

    Parameters
    ----------
    data : scalar, nested sequence, array or Tensor
        The values, which are copied. Arrays keep their dtype; Python floats become float32, ints int64.
    dtype : dtype, optional
        By default that of `data`.
    device : str or Device, optional
        By default that of `data`, or the `default_device` for values from the host.
    requires_grad : bool, default False
        Whether gradients are wanted: floating and complex dtypes only.

    Raises
    ------
    TypeError
        If `data` is not numeric, or gradients are wanted of integers or bools.
    DeviceError
        If the device is unknown or cannot be used.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.Tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    Tensor([2., 4.])
    """

    __slots__ = ("__weakref__", "_changed", "_data", "_device", "_edge", "_owner")  # _changed, _owner: by .data

    _data: Any
    _device: Device
    _edge: Edge | None
    _owner: Tensor
    _changed: int

    def __init__(
        self, data: Any, *, dtype: Any = None, device: str | Device | None = None, requires_grad: bool = False
    ) -> None:
        made = namespace.asarray(data, dtype=dtype, device=device, copy=True)
        self._data, self._device, self._edge = made._data, made._device, None
        self.requires_grad_(requires_grad)

    # fmt: off
    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return tuple(self._data.shape)

    @property
    def dtype(self) -> np.dtype:
        """The dtype, as one of `xgrad`'s own, whatever the device."""
        dtype: np.dtype = self._device.backend.numpy_dtype(self._data.dtype)
        return dtype

    @property
    def device(self) -> Device:
        """Where the data is."""
        return self._device

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._data.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self._data.shape)

    @property
    def T(self) -> Tensor:
        """The transpose of a matrix."""
        if self.ndim != 2:
            raise ValueError(f"T: expected a matrix, got shape {self.shape}: use .mT or permute_dims")
        return self.mT

    @property
    def mT(self) -> Tensor:
        """The transpose of each matrix in the last two axes."""
        return namespace.matrix_transpose(self)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return namespace

    def __repr__(self) -> str:
        name, host = type(self).__name__, self._device.backend.to_host(self._data)
        text = np.array2string(host, separator=", ", prefix=f"{name}(")
        if not self.size:
            text += f", shape={self.shape}"
        if not self.size or self.dtype.name not in ("float32", "int64", "bool"):
            text += f", dtype={self.dtype}"
        if str(self._device) != "cpu":
            text += f", device='{self._device}'"
        if self.requires_grad:
            text += ", requires_grad=True" if self.is_leaf else f", grad_fn=<{self.grad_fn.name}>"
        return f"{name}({text})"

    # The graph

    @property
    def requires_grad(self) -> bool:
        """Whether a backward pass reaches this tensor."""
        return self._edge is not None

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Ask for gradients of this leaf, or no longer, and return it; TypeError unless it is floating."""
        if requires_grad and self._edge is None:
            if self.dtype.kind not in "fc":
                raise TypeError(f"requires_grad: expected a floating dtype, got {self.dtype}: use .astype(float32)")
            self._edge = Leaf(self.shape, self._data.dtype, self._device)
        elif not requires_grad:
            if not self.is_leaf:
                raise RuntimeError("requires_grad_(False): expected a leaf, got a computed tensor: use .detach()")
            self._edge = None
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether the user made it, rather than a recorded op."""
        return self._edge is None or type(self._edge) is Leaf

    @property
    def grad_fn(self) -> Node | Output | Any:
        """The recorded call that made this tensor, with its ``name`` and ``inputs``; None for a leaf."""
        return None if self.is_leaf else self._edge

    @property
    def grad(self) -> Tensor | None:
        """The gradients that backward passes have added up for a leaf, None before the first.

        Of computed tensors none is kept: use `xgrad.autograd.grad` or `register_hook`.
        """
        return self._edge.grad if type(self._edge) is Leaf else None

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if type(self._edge) is Leaf:
            if value is not None:
                self._check_like("grad", value)
            self._edge.grad = value
        elif value is not None:
            raise RuntimeError("grad: expected a leaf that requires a gradient: call requires_grad_() first")

    def _check_like(self, name: str, other: Tensor) -> None:
        expected, got = ((t.shape, str(t.dtype), str(t.device)) for t in (self, other))
        if expected != got:
            raise ValueError(f"{name}: expected (shape, dtype, device) {expected}, got {got}")

    def backward(self, gradient: Tensor | None = None, retain_graph: bool = False, create_graph: bool = False) -> None:
        """Add the gradients of this tensor to the ``.grad`` of every leaf behind it: see `xgrad.autograd.backward`.

        `gradient` is that of this tensor, like it in shape, dtype and device, and may be left out for a scalar.
        """
        namespace.autograd.backward(self, gradient, retain_graph=retain_graph, create_graph=create_graph)

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> HookHandle:
        """Call `hook` with the complete gradient of this tensor in every pass; a tensor it returns replaces it.

        Examples
        --------
        >>> import xgrad
        >>> x = xgrad.ones(2, requires_grad=True)
        >>> handle = x.register_hook(lambda g: 10 * g)  # handle.remove() takes it away
        >>> x.sum().backward()
        >>> x.grad
        Tensor([10., 10.])
        """
        if self._edge is None:
            raise RuntimeError("register_hook: this tensor needs no gradient: call requires_grad_() first")
        return HookHandle(self._edge, hook)

    def detach(self) -> Tensor:
        """Return the same values without their history."""
        return wrap(self._data, self._device)

    @property
    def data(self) -> Tensor:
        """The values without their history; writing here changes this tensor behind the graph's back.

        A backward pass that would need the value from before is then refused.
        """
        view = self.detach()
        view._owner = self
        return view

    @data.setter
    def data(self, value: Any) -> None:
        new = namespace.asarray(value, device=None if isinstance(value, Tensor) else self._device)
        self._change(new._data, new._device)

    def _change(self, raw: Any, device: Device) -> None:
        """Take another value behind the graph's back, and note when, for the graph to compare."""
        self._data, self._device, self._changed = raw, device, clock.change()
        if self._edge is not None:
            self._edge.change(raw, device, self._changed)
        owner = getattr(self, "_owner", None)
        if owner is not None:
            owner._change(raw, device)

    # Conversions

    def to(self, device: str | Device | None = None, *, dtype: Any = None) -> Tensor:
        """Return this tensor on another device, in another dtype, or both; gradients come back the same way."""
        moved = self if device is None else namespace.to_device(self, device)
        return moved if dtype is None else namespace.astype(moved, dtype, copy=False)

    def to_device(self, device: str | Device, /, *, stream: Any = None) -> Tensor:
        """Return this tensor on another device: the standard's name for `to`."""
        if stream is not None:
            raise ValueError(f"to_device: expected stream=None, got {stream!r}")
        return self.to(device)

    def cpu(self) -> Tensor: return self.to("cpu")

    def numpy(self) -> np.ndarray:
        """Return the values as a NumPy array, on the CPU a read-only view; needs ``.detach()`` of a gradient first."""
        if self._edge is not None:
            raise RuntimeError("NumPy conversion: this tensor needs a gradient, which would be lost: use .detach()")
        view = self._device.backend.to_host(self._data).view()
        view.flags.writeable = False
        return view

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if self._device.type != "cpu":
            raise TypeError(f"NumPy conversion: this tensor is on {self._device}: use .detach().cpu().numpy()")
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def tolist(self) -> Any:
        """Return the values as nested lists of Python scalars."""
        return self._device.backend.to_host(self._data).tolist()

    def item(self) -> Any:
        """Return the only element as a Python scalar; ValueError if there is another number of them."""
        if self.size != 1:
            raise ValueError(f"item: expected one element, got shape {self.shape}")
        return self._device.backend.to_host(self._data).item()

    def __bool__(self) -> bool: return bool(self.item())
    def __int__(self) -> int: return int(self.item())
    def __float__(self) -> float: return float(self.item())
    def __complex__(self) -> complex: return complex(self.item())

    def __index__(self) -> int:
        if self.ndim or self.dtype.kind not in "iu":
            raise TypeError(f"index: expected a 0-d tensor of integers, got shape {self.shape}, {self.dtype}")
        return int(self.item())

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len: expected at least one axis, got a 0-d tensor")
        return int(self._data.shape[0])

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i, ...] for i in range(len(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        if not self.is_leaf:
            raise RuntimeError("copy: expected a leaf, got a computed tensor, whose graph stays: use .detach()")
        host = self._device.backend.to_host(self._data)
        return _rebuild, (type(self), host, self._device, self.requires_grad)

    # Writing

    def __setitem__(self, key: Any, value: Any) -> None:
        new = namespace.ops.setitem(self, key, value)
        if hasattr(self, "_owner") or (type(self._edge) is Leaf and not grad_enabled.get()):
            self._change(new._data, self._device)
        elif type(self._edge) is Leaf:
            raise RuntimeError(
                "x[key] = value: x is a leaf that requires a gradient, and would not stay one: assign under no_grad()"
            )
        else:
            self._data, self._edge = new._data, new._edge
    # fmt: on


def wrap(raw: Any, device: Device, edge: Edge | None = None, cls: type[Tensor] = Tensor) -> Tensor:
    """Return a tensor around an array that is on `device` already."""
    tensor: Tensor = _new(cls)
    tensor._data, tensor._device, tensor._edge = raw, device, edge
    return tensor


_new: Any = object.__new__


def _rebuild(cls: type[Tensor], host: np.ndarray, device: Device, requires_grad: bool) -> Tensor:
    made = namespace.asarray(host, device=device)
    return wrap(made._data, device, cls=cls).requires_grad_(requires_grad)
