"""The tensor: an array, its device and dtype, and its edge in the recorded graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Never
from weakref import ref

import numpy as np

from xgrad.backend.device import Device, Placement, batching
from xgrad.backend.recording import refuse
from xgrad.core import providers
from xgrad.core.dtypes import defaults
from xgrad.core.graph import Edge, HookHandle, Leaf, Node, OutputEdge, RetainedGradient
from xgrad.core.methods import Methods
from xgrad.core.size import Size, size_of
from xgrad.core.views import NO_OPTIONS, base_of, has_family, link
from xgrad.support.hints import HintedTensor, shown
from xgrad.support.user_code import user_location

_API_VERSIONS = (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
_new: Any = object.__new__
_batching = batching.get
#: Advice for conversions of one element that get several: in general, and for some conversions.
_ONE_OR_ALL = "take one, as x[0], a reduction, as x.sum(), or all by .tolist() or .numpy()"
_ADVICE = {
    "bool": (
        "use .any() or .all(); compare tensors with `is`, as in any(p is q for q in tensors) for p"
        " in tensors"
    ),
    "format": "format each of .tolist(), or write f'{x}' without a format",
}


class Tensor(Methods, HintedTensor):
    """An array on a device, with the recorded graph of its computation.

    Parameters
    ----------
    data : scalar, nested sequence, array or Tensor
        The values, which are copied. Arrays keep their dtype; Python floats get the default dtype,
        ints int64.
    dtype : dtype, optional
        By default the dtype of `data`.
    device : str or Device, optional
        By default the device of `data`, or the `default_device` for values from the host.
    requires_grad : bool, default False
        Whether the tensor is a leaf that gets gradients: floating dtypes only.

    Raises
    ------
    TypeError
        If `data` is not numeric, or a gradient is required for integers or bools.
    ValueError
        If tensors in `data` require a gradient: `xgrad.asarray` keeps their graph.
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

    # Set on demand: _view and _views by `views.link`, _changed by writes that bypass autograd,
    # _saved_leaf by requires_grad_(False), _made_in where a `vmap` runs.
    __slots__ = (
        "__weakref__",
        "_changed",
        "_data",
        "_edge",
        "_made_in",
        "_placement",
        "_saved_leaf",
        "_view",
        "_views",
    )

    # Whether a write to a tensor without gradient gives it another array; a `Parameter` keeps its
    # own.
    _out_of_place_updates = True
    _data: Any
    _placement: Placement  # the device, and the dtype of the array
    _edge: Edge | None
    _saved_leaf: Leaf
    # the base, function and options of a view; None for a copy that looks like a view, such as the
    # one element that integers take
    _view: tuple[Any, Any, dict[str, Any]] | None
    _views: list[ref[Tensor]]
    _changed: int

    def __init__(
        self,
        data: Any,
        *more: Never,
        dtype: Any = None,
        device: str | Device | None = None,
        requires_grad: bool = False,
    ) -> None:
        if more:
            given = ", ".join(map(shown, (data, *more)))
            raise TypeError(
                f"{type(self).__name__}: expected one argument, numbers in a list or an array, got"
                f" {1 + len(more)}: write Tensor([{given}]) for these values, or"
                f" xgrad.empty(({given})) for a shape"
            )
        copied = providers.module("functions").asarray(data, dtype=dtype, device=device, copy=True)
        if copied._edge is not None:
            raise ValueError(
                f"{type(self).__name__}: expected values, got tensors that require a gradient, from"
                " which this one would be cut off: use xgrad.asarray, which keeps the graph, or"
                " .detach()"
            )
        self._data, self._placement, self._edge = copied._data, copied._placement, None
        if (batch := _batching()) is not None:
            self._made_in = batch.path
        self.requires_grad_(requires_grad)

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return tuple(self._data.shape)

    @property
    def dtype(self) -> np.dtype:
        """The dtype, the same object on every device."""
        dtype: np.dtype = self.device.backend.numpy_dtype(self._data.dtype)
        return dtype

    @property
    def device(self) -> Device:
        """The device of the data."""
        return self._placement.device

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._data.shape)

    @property
    def size(self) -> Size:
        """The number of elements; a call of it, ``x.size()``, returns the shape."""
        return size_of(tuple(self._data.shape))

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
        if api_version not in _API_VERSIONS:
            raise ValueError(
                f"__array_namespace__: expected one of {_API_VERSIONS[1:]}, got"
                f" {shown(api_version)}"
            )
        newest = api_version in (None, _API_VERSIONS[-1])
        return providers.module("functions" if newest else "standard_2024_12")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Answer a ufunc of NumPy, such as ``np.exp(tensor)`` and ``ndarray + tensor``."""
        return providers.module("numpy_protocol").call_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        """Answer another function of NumPy, such as ``np.sum(tensor)``."""
        return providers.module("numpy_protocol").call_function(function, args, options)

    def __dlpack__(
        self,
        /,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        return providers.module("dlpack").export(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[Any, int]:
        device: tuple[Any, int] = self._data.__dlpack_device__()
        return device

    def __repr__(self) -> str:
        name, host = type(self).__name__, self._to_host()
        text = np.array2string(host, separator=", ", prefix=f"{name}(")
        if not self.size:
            text += f", shape={self.shape}"
        if not self.size or self.dtype not in defaults()[:3]:
            text += f", dtype={self.dtype}"
        if str(self.device) != "cpu":
            text += f", device='{self.device}'"
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
        """Start or stop requiring gradients of this leaf, and return it.

        TypeError if its dtype is not floating.
        """
        if requires_grad and self._edge is None:
            if self.dtype.kind not in "fc":
                raise TypeError(
                    f"requires_grad: expected a floating dtype, got {self.dtype}: use"
                    " .astype(float32)"
                )
            leaf = self._leaf or Leaf(self.shape, self._placement)
            leaf.is_view = base_of(self) is not None
            leaf.viewed = leaf.viewed or has_family(self)
            self._edge = leaf
        elif not requires_grad:
            if not self.is_leaf or (self._edge is None and self._is_differentiated):
                raise RuntimeError(
                    "requires_grad_(False): expected a leaf, got a computed tensor: use .detach()"
                )
            if self._edge is not None:
                self._saved_leaf, self._edge = self._edge, None  # type: ignore[assignment]
                self._saved_leaf.viewed = True  # since the views of a constant do not set it
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether this tensor is not the result of a recorded op."""
        return self._edge is None or type(self._edge) is Leaf

    @property
    def grad_fn(self) -> Node | OutputEdge | Any:
        """The recorded call that made this tensor, with `name` and `inputs`; None for a leaf."""
        return None if self.is_leaf else self._edge

    @property
    def grad(self) -> Tensor | None:
        """The sum of the gradients of backward passes for a leaf, None before the first.

        None for a computed tensor, with a warning, unless `retain_grad` was called.
        """
        leaf = self._leaf
        holder: Leaf | RetainedGradient | None = leaf
        if leaf is None:
            holder = self._retained_gradient
            if holder is None and self._edge is not None:
                providers.module("lost_gradients").warn_missing_gradient()
        elif leaf.receiver is not None:
            leaf.receiver.expose()
        return None if holder is None else holder.grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        holder = self._leaf or self._retained_gradient
        if holder is not None:
            if value is not None:
                if isinstance(value, Tensor) and value._placement.device.level:
                    value = providers.module("writing").as_new_value(self, value, "grad")
                self._check_gradient("grad", value)
            holder.grad = value
        elif value is not None:
            raise RuntimeError(
                "grad: expected a leaf that requires a gradient: call requires_grad_() first"
            )

    @property
    def _leaf(self) -> Leaf | None:
        """The leaf of this tensor, also while it requires no gradient; None for a computed one."""
        edge = self._edge
        if edge is None:
            return getattr(self, "_saved_leaf", None)
        return edge if type(edge) is Leaf else None

    @property
    def _retained_gradient(self) -> RetainedGradient | None:
        hooks: Any = None if self._edge is None else self._edge.hooks
        return hooks.get(RetainedGradient) if hooks else None

    def retain_grad(self) -> None:
        """Keep the gradients of this computed tensor in ``.grad``, as for leaves, after its hooks.

        Raises
        ------
        RuntimeError
            If the tensor needs no gradient.

        Examples
        --------
        >>> import xgrad
        >>> x = xgrad.ones(2, requires_grad=True)
        >>> y = 3 * x
        >>> y.retain_grad()
        >>> (y * y).sum().backward()
        >>> y.grad
        Tensor([6., 6.])
        """
        if self._edge is None:
            raise RuntimeError(
                "retain_grad: this tensor needs no gradient: call requires_grad_() first"
            )
        if not self.is_leaf:
            self._edge.hooks = self._edge.hooks or {}
            self._edge.hooks.setdefault(RetainedGradient, RetainedGradient())

    def _check_gradient(self, name: str, other: Tensor, mapped: bool = False) -> None:
        if not isinstance(other, Tensor):
            raise TypeError(
                f"{name}: expected a tensor for a gradient, got {type(other).__name__}: use"
                " xgrad.asarray"
            )
        if (
            other._placement is not self._placement
            and other.device.level > self.device.level
            and not mapped
        ):
            raise ValueError(
                f"{name}: expected a gradient that is the same for the whole batch of a vmap, for a"
                " tensor from outside of it, got one of the batch: return what xgrad.autograd.grad"
                " or xgrad.vjp computes with it"
            )
        same_device = other.device.root is self.device.root
        alike = other._placement is self._placement or (other.dtype == self.dtype and same_device)
        if not alike or other.shape != self.shape:
            expected, got = (f"shape {t.shape}, {t.dtype} on {t.device}" for t in (self, other))
            raise ValueError(f"{name}: expected a gradient of {expected}, got {got}")

    def backward(
        self, gradient: Tensor | None = None, retain_graph: bool = False, create_graph: bool = False
    ) -> None:
        """Add the gradients of this tensor to the ``.grad`` of every leaf that it depends on.

        See `xgrad.autograd.backward`.

        Parameters
        ----------
        gradient : Tensor, optional
            The gradient of this tensor, of the same shape, dtype and device; by default 1, for a
            tensor with one element.
        retain_graph : bool, default False
            Whether the graph is kept for another backward pass.
        create_graph : bool, default False
            Whether the pass is recorded, so that gradients have gradients.

        Raises
        ------
        RuntimeError
            If this tensor needs no gradient, or its graph was freed by an earlier pass.
        ValueError
            If the gradient does not fit, or is missing for several elements.

        Examples
        --------
        >>> import xgrad
        >>> x = xgrad.asarray([1.0, 2.0], requires_grad=True)
        >>> (x * x).backward(xgrad.asarray([1.0, 10.0]))
        >>> x.grad
        Tensor([ 2., 40.])
        """
        providers.module("autograd").backward(
            self, gradient, retain_graph=retain_graph, create_graph=create_graph
        )

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> HookHandle:
        """Call `hook` with the complete gradient of this tensor in every backward pass.

        A tensor that the hook returns replaces the gradient.

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
            raise RuntimeError(
                "register_hook: this tensor needs no gradient: call requires_grad_() first"
            )
        return HookHandle(self._edge, hook)

    def detach(self) -> Tensor:
        """Return the same values without history.

        Of a leaf that requires a gradient, such as a parameter, it is the view that `data` is, as
        in PyTorch: it follows updates of optimizers and writes, and writes to it change the leaf.
        Of any other tensor the result is independent: later writes do not change it. In a `vmap`,
        or a `jacfwd`, the values are constants of all transforms around it.
        """
        return self.data if type(self._edge) is Leaf else self._without_history()

    def _without_history(self) -> Tensor:
        """Return the same values without history, as a tensor that is no view of this one."""
        raw, placement = self._data, self._placement
        view: Tensor = _new(Tensor)
        view._data = placement.device.detached(raw) if placement.device.level else raw
        view._placement, view._edge = placement, None
        if (batch := _batching()) is not None:
            view._made_in = batch.path
        return view

    @property
    def _is_differentiated(self) -> bool:
        """Whether this tensor has a graph: one of its own, or, in a `vmap`, one around that."""
        device = self._placement.device
        return self._edge is not None or (device.level > 0 and device.is_differentiated(self._data))

    @property
    def data(self) -> Tensor:
        """A view of the values without history: writes to it bypass autograd.

        A backward pass that needs the earlier value is then refused.
        """
        edge = self._edge
        base = None if type(edge) is Leaf and not edge.is_view else base_of(self)
        view = self._without_history()
        if base is None or self._view is None:
            link(self, view, None, NO_OPTIONS)
            return view
        _, function, options = self._view
        if function is None:
            link(base, view, None, NO_OPTIONS)
            return view
        values: Tensor = base.data
        link(values, view, function, options)  # to the base, which outlives this tensor
        return view

    @data.setter
    def data(self, value: Any) -> None:
        new = (
            value
            if isinstance(value, Tensor)
            else providers.module("functions").asarray(value, device=self.device, copy=True)
        )
        if (self._edge or self._leaf) is not None and new.dtype.kind not in "fc":
            raise TypeError(
                f"data: expected a floating dtype where a gradient is wanted, got {new.dtype}"
            )
        providers.module("writing").set_data(self, new)

    # Conversions

    def _to_host(self) -> np.ndarray:
        """Return the values as a NumPy array, in shared memory where possible."""
        refuse("the value of a tensor is read")
        host: np.ndarray = self.device.backend.to_host(self._data)
        return host

    def numpy(self) -> np.ndarray:
        """Return the values as a NumPy array, on the CPU as a read-only view.

        RuntimeError if the tensor needs a gradient: call ``.detach()`` first.
        """
        if self._is_differentiated:
            raise RuntimeError(
                "NumPy conversion: this tensor needs a gradient, which would be lost: use"
                f" .detach(), or a function of xgrad in the place of NumPy's, at {user_location()}"
            )
        view = self._to_host().view()
        view.flags.writeable = False
        return view

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if self.device.type != "cpu":
            raise TypeError(
                f"NumPy conversion: this tensor is on {self.device}: use .detach().cpu().numpy(),"
                f" at {user_location()}"
            )
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def tolist(self) -> Any:
        """Return the values as nested lists of Python scalars."""
        if self._is_differentiated:
            providers.module("lost_gradients").warn_lost_gradient("tolist")
        return self._to_host().tolist()

    def item(self) -> Any:
        """Return the only element as a Python scalar; ValueError unless there is exactly one."""
        return self._to_scalar("item")

    def _to_scalar(self, how: str) -> Any:
        """Return the only element for a conversion.

        All conversions but `bool`, `int` and `format` lose its gradient.
        """
        if how in ("item", "float", "complex") and self._is_differentiated:
            providers.module("lost_gradients").warn_lost_gradient(how)
        host = self._to_host()
        if host.size != 1:
            raise ValueError(
                f"{how}: expected one element, got shape {self.shape}:"
                f" {_ADVICE.get(how, _ONE_OR_ALL)}"
            )
        return host.item()

    def __format__(self, spec: str) -> str:
        return format(self._to_scalar("format") if spec else str(self), spec)

    def __bool__(self) -> bool:
        return bool(self._to_scalar("bool"))

    def __int__(self) -> int:
        return int(self._to_scalar("int"))

    def __float__(self) -> float:
        return float(self._to_scalar("float"))

    def __complex__(self) -> complex:
        return complex(self._to_scalar("complex"))

    def __index__(self) -> int:
        if self.ndim or self.dtype.kind not in "iu":
            raise TypeError(
                f"index: expected a 0-d tensor of integers, got shape {self.shape}, {self.dtype}"
            )
        return int(self._to_scalar("index"))

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len: expected at least one axis, got a 0-d tensor")
        return int(self._data.shape[0])

    def __reduce__(self) -> tuple[Any, ...]:
        if not self.is_leaf:
            raise RuntimeError(
                "copy: expected a leaf, got a computed tensor, whose graph is not copied: use"
                " .detach(), and for a plot .detach().numpy()"
            )
        host = self._to_host()
        return _rebuild, (type(self), host, self.device, self.requires_grad)


def from_array(
    raw: Any, device: Device, edge: Edge | None = None, cls: type[Tensor] = Tensor
) -> Tensor:
    """Return a tensor of an array on `device`."""
    return from_placement(raw, device.placements[raw.dtype], edge, cls)


def from_placement(
    raw: Any, placement: Placement, edge: Edge | None = None, cls: type[Tensor] = Tensor
) -> Tensor:
    """Return a tensor of an array with a known placement."""
    tensor: Tensor = _new(cls)
    tensor._data, tensor._placement, tensor._edge = raw, placement, edge
    if (batch := _batching()) is not None:
        tensor._made_in = batch.path
    return tensor


def as_subclass(tensor: Tensor, cls: type[Tensor]) -> None:
    """Make a tensor an instance of a subclass, which must have no slots of its own.

    The object is the same as before, with its edge, its memory and its links to views.
    """
    tensor.__class__ = cls


def _rebuild(cls: type[Tensor], host: np.ndarray, device: Device, requires_grad: bool) -> Tensor:
    raw = providers.module("functions").asarray(host, device=device)._data
    return from_array(raw, device, cls=cls).requires_grad_(requires_grad)
