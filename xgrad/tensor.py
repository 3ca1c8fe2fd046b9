"""The tensor: an array, the device that it is on, and its edge into the recorded graph."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from xgrad.backend import Device
from xgrad.grad_mode import grad_enabled
from xgrad.graph import Edge, HookHandle, Leaf, Node, Output, clock

# A tensor's operators are the functions of its namespace, found when they are called: they are written in
# terms of tensors, so importing them here would be a circle.
if TYPE_CHECKING:
    import xgrad as namespace
else:
    namespace = sys.modules[__name__.partition(".")[0]]

Axis = int | tuple[int, ...] | None


class Tensor:
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

    __slots__ = (
        "__weakref__",
        "_changed",
        "_data",
        "_device",
        "_edge",
        "_owner",
    )  # _changed, _owner: see .data
    __array_ufunc__ = None  # so that `ndarray + tensor` asks the tensor

    _data: Any
    _device: Device
    _edge: Edge | None

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
        return self._device.backend.numpy_dtype(self._data.dtype)

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
        return self._device.backend.size(self._data)

    @property
    def nbytes(self) -> int:
        """The bytes that its elements take."""
        return self.size * self.dtype.itemsize

    @property
    def T(self) -> Tensor:  # noqa: N802, the standard's name
        """The transpose of a matrix."""
        if self.ndim != 2:
            raise ValueError(f"T: expected a matrix, got shape {self.shape}: use .mT or permute_dims")
        return self.mT

    @property
    def mT(self) -> Tensor:  # noqa: N802, the standard's name
        """The transpose of each matrix in the last two axes."""
        return namespace.matrix_transpose(self)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return namespace

    def __repr__(self) -> str:
        text = np.array2string(self._device.backend.to_host(self._data), separator=", ", prefix="Tensor(")
        if not self.size:
            text += f", shape={self.shape}"
        if not self.size or self.dtype.name not in ("float32", "int64", "bool"):
            text += f", dtype={self.dtype}"
        if str(self._device) != "cpu":
            text += f", device='{self._device}'"
        if self.requires_grad:
            text += ", requires_grad=True" if self.is_leaf else f", grad_fn=<{self.grad_fn.name}>"
        return f"{type(self).__name__}({text})"

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
                raise TypeError(
                    f"requires_grad: expected a floating or complex dtype, got {self.dtype}: use "
                    "astype(tensor, xgrad.float32)"
                )
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

    def backward(
        self, gradient: Tensor | None = None, retain_graph: bool = False, create_graph: bool = False
    ) -> None:
        """Add the gradients of this tensor to the ``.grad`` of every leaf behind it: see `autograd.backward`.

        Parameters
        ----------
        gradient : Tensor, optional
            That of some scalar with respect to this tensor, like it in shape, dtype and device; 1 for a scalar.
        retain_graph : bool, default False
            Keep what the graph saved, for another pass. By default it is freed on the way.
        create_graph : bool, default False
            Record the pass, so that gradients can be differentiated. Since ``.grad`` then refers to the graph,
            `xgrad.autograd.grad` is the better choice.
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
        """The values without their history; what is written here changes this tensor behind the graph's back.

        A backward pass that would need the value from before is refused.
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

    def cpu(self) -> Tensor:
        """Return this tensor on the CPU."""
        return self.to("cpu")

    def numpy(self) -> np.ndarray:
        """Return the values as a NumPy array; on the CPU a view, which cannot be written to.

        RuntimeError if the tensor needs a gradient, which would be lost: use ``.detach()`` first.
        """
        if self._edge is not None:
            raise RuntimeError("NumPy conversion: this tensor needs a gradient, which would be lost: use .detach()")
        view = self._device.backend.to_host(self._data).view()
        view.flags.writeable = False
        return view

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if self._device.type != "cpu":
            raise TypeError(f"NumPy conversion: this tensor is on {self._device}: use .detach().cpu().numpy()")
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def item(self) -> Any:
        """Return the only element as a Python scalar; ValueError if there is another number of them."""
        if self.size != 1:
            raise ValueError(f"item: expected one element, got shape {self.shape}")
        return self._device.backend.to_host(self._data).item()

    def tolist(self) -> Any:
        """Return the values as nested lists of Python scalars."""
        return self._device.backend.to_host(self._data).tolist()

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

    def __contains__(self, value: Any) -> bool:
        return bool(namespace.any(self == value))

    def __reduce__(self) -> tuple[Any, ...]:
        self._check_leaf("pickle")
        host = self._device.backend.to_host(self._data)
        return _rebuild, (type(self), host, self._device, self.requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        self._check_leaf("copy")
        twin = wrap(self._device.xp.asarray(self._data, copy=True), self._device, cls=type(self))
        memo[id(self)] = twin.requires_grad_(self.requires_grad)
        return twin

    def __copy__(self) -> Tensor: return self.__deepcopy__({})

    def _check_leaf(self, name: str) -> None:
        if not self.is_leaf:
            raise RuntimeError(f"{name}: expected a leaf, got a computed tensor, whose graph stays: use .detach()")

    # Indexing and operators

    def __getitem__(self, key: Any) -> Tensor: return namespace.ops.getitem(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        new = namespace.ops.setitem(self, key, value)
        if hasattr(self, "_owner") or (type(self._edge) is Leaf and not grad_enabled.get()):
            self._change(new._data, self._device)
        elif type(self._edge) is Leaf:
            raise RuntimeError(
                "x[key] = value: x is a leaf that requires a gradient, and would no longer be one: assign under "
                "no_grad(), or to a computed tensor such as x * 1"
            )
        else:
            self._data, self._edge = new._data, new._edge

    __hash__ = object.__hash__

    def __add__(self, other: Any) -> Tensor: return namespace.add(self, other)
    def __radd__(self, other: Any) -> Tensor: return namespace.add(other, self)
    def __sub__(self, other: Any) -> Tensor: return namespace.subtract(self, other)
    def __rsub__(self, other: Any) -> Tensor: return namespace.subtract(other, self)
    def __mul__(self, other: Any) -> Tensor: return namespace.multiply(self, other)
    def __rmul__(self, other: Any) -> Tensor: return namespace.multiply(other, self)
    def __truediv__(self, other: Any) -> Tensor: return namespace.divide(self, other)
    def __rtruediv__(self, other: Any) -> Tensor: return namespace.divide(other, self)
    def __pow__(self, other: Any) -> Tensor: return namespace.pow(self, other)
    def __rpow__(self, other: Any) -> Tensor: return namespace.pow(other, self)
    def __matmul__(self, other: Any) -> Tensor: return namespace.matmul(self, other)
    def __rmatmul__(self, other: Any) -> Tensor: return namespace.matmul(other, self)
    def __floordiv__(self, other: Any) -> Tensor: return namespace.floor_divide(self, other)
    def __rfloordiv__(self, other: Any) -> Tensor: return namespace.floor_divide(other, self)
    def __mod__(self, other: Any) -> Tensor: return namespace.remainder(self, other)
    def __rmod__(self, other: Any) -> Tensor: return namespace.remainder(other, self)
    def __and__(self, other: Any) -> Tensor: return namespace.bitwise_and(self, other)
    def __rand__(self, other: Any) -> Tensor: return namespace.bitwise_and(other, self)
    def __or__(self, other: Any) -> Tensor: return namespace.bitwise_or(self, other)
    def __ror__(self, other: Any) -> Tensor: return namespace.bitwise_or(other, self)
    def __xor__(self, other: Any) -> Tensor: return namespace.bitwise_xor(self, other)
    def __rxor__(self, other: Any) -> Tensor: return namespace.bitwise_xor(other, self)
    def __eq__(self, other: object) -> Tensor: return namespace.equal(self, other)  # type: ignore[override]
    def __ne__(self, other: object) -> Tensor: return namespace.not_equal(self, other)  # type: ignore[override]
    def __lt__(self, other: Any) -> Tensor: return namespace.less(self, other)
    def __le__(self, other: Any) -> Tensor: return namespace.less_equal(self, other)
    def __gt__(self, other: Any) -> Tensor: return namespace.greater(self, other)
    def __ge__(self, other: Any) -> Tensor: return namespace.greater_equal(self, other)
    def __neg__(self) -> Tensor: return namespace.negative(self)
    def __pos__(self) -> Tensor: return namespace.positive(self)
    def __abs__(self) -> Tensor: return namespace.abs(self)
    def __invert__(self) -> Tensor: return namespace.bitwise_invert(self)

    # The methods that habit demands: the functions of the same names
    def exp(self) -> Tensor: return namespace.exp(self)
    def log(self) -> Tensor: return namespace.log(self)
    def sqrt(self) -> Tensor: return namespace.sqrt(self)
    def abs(self) -> Tensor: return namespace.abs(self)
    def tanh(self) -> Tensor: return namespace.tanh(self)
    def sigmoid(self) -> Tensor: return namespace.sigmoid(self)
    def relu(self) -> Tensor: return namespace.relu(self)
    def astype(self, dtype: Any) -> Tensor: return namespace.astype(self, dtype)
    def squeeze(self, axis: int | tuple[int, ...]) -> Tensor: return namespace.squeeze(self, axis)
    def sum(self, axis: Axis = None, keepdims: bool = False) -> Tensor: return _reduce(namespace.sum, self, axis, keepdims)
    def mean(self, axis: Axis = None, keepdims: bool = False) -> Tensor: return _reduce(namespace.mean, self, axis, keepdims)
    def prod(self, axis: Axis = None, keepdims: bool = False) -> Tensor: return _reduce(namespace.prod, self, axis, keepdims)
    def max(self, axis: Axis = None, keepdims: bool = False) -> Tensor: return _reduce(namespace.max, self, axis, keepdims)
    def min(self, axis: Axis = None, keepdims: bool = False) -> Tensor: return _reduce(namespace.min, self, axis, keepdims)
    def any(self, axis: Axis = None, keepdims: bool = False) -> Tensor: return _reduce(namespace.any, self, axis, keepdims)
    def all(self, axis: Axis = None, keepdims: bool = False) -> Tensor: return _reduce(namespace.all, self, axis, keepdims)
    def argmax(self, axis: int | None = None, keepdims: bool = False) -> Tensor: return _reduce(namespace.argmax, self, axis, keepdims)
    def argmin(self, axis: int | None = None, keepdims: bool = False) -> Tensor: return _reduce(namespace.argmin, self, axis, keepdims)
    def var(self, axis: Axis = None, correction: float = 0, keepdims: bool = False) -> Tensor: return namespace.var(self, axis=axis, correction=correction, keepdims=keepdims)
    def std(self, axis: Axis = None, correction: float = 0, keepdims: bool = False) -> Tensor: return namespace.std(self, axis=axis, correction=correction, keepdims=keepdims)

    def reshape(self, *shape: Any) -> Tensor:
        """Return the same elements in another shape, given as numbers or as one tuple."""
        return namespace.reshape(self, shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)
    # fmt: on


def _reduce(op: Callable[..., Tensor], x: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    return op(x, axis=axis, keepdims=keepdims)


def wrap(raw: Any, device: Device, edge: Edge | None = None, cls: type[Tensor] = Tensor) -> Tensor:
    """Return a tensor around an array that is on `device` already."""
    tensor = _new(cls)
    tensor._data, tensor._device, tensor._edge = raw, device, edge
    return tensor


_new: Any = object.__new__


def _rebuild(cls: type[Tensor], host: np.ndarray, device: Device, requires_grad: bool) -> Tensor:
    made = namespace.asarray(host, device=device)
    return wrap(made._data, device, cls=cls).requires_grad_(requires_grad)
