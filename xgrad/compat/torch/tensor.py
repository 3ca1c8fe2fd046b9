"""The tensor of this namespace: xgrad's, with PyTorch's attributes; `methods` adds its methods.

Every function of the namespace calls xgrad's functions, and `torch_function` makes their results
instances of `Tensor`. The object itself stays the same: its graph, its links to views, and whoever
else holds it, such as an optimizer its gradients, are not affected.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import xgrad
from xgrad.compat.torch.shape import Size
from xgrad.core.size import Size as ElementCount
from xgrad.core.size import size_of
from xgrad.core.tensor import as_subclass
from xgrad.core.views import unlink, views_of
from xgrad.nn.parameter import Parameter as XgradParameter
from xgrad.ops import writing

F = TypeVar("F", bound=Callable[..., Any])

#: Keywords of NumPy that PyTorch's functions accept as well, with its own.
_ALIASES = {"axis": "dim", "keepdims": "keepdim"}


class Tensor(xgrad.Tensor):
    """A tensor with PyTorch's methods: ``Tensor(2, 3)`` has a shape, ``Tensor([2, 3])`` values.

    Made by a shape, its values are zeros, where PyTorch's are arbitrary.
    """

    __slots__ = ()

    def __init__(self, *data: Any, device: Any = None) -> None:
        if len(data) == 1 and not isinstance(data[0], (int, Size)):
            values: Any = data[0]
        else:
            values = xgrad.zeros(tuple(data[0]) if data and isinstance(data[0], Size) else data)
            values = xgrad.zeros((0,)) if not data else values
        xgrad.Tensor.__init__(
            self,
            values.detach() if isinstance(values, xgrad.Tensor) else values,
            dtype=xgrad.get_default_dtype(),
            device=device,
        )

    @property
    def shape(self) -> Size:
        """The length of each axis."""
        return Size(self._data.shape)

    @property
    def size(self) -> ElementCount:
        """The number of elements; a call of it, ``x.size()``, returns the shape."""
        return size_of(self.shape)

    def __repr__(self) -> str:
        # names of equal lengths, so the columns stay aligned
        return super().__repr__().replace("Tensor(", "tensor(", 1)

    def __format__(self, specification: str) -> str:
        if type(self) is Tensor and not self._data.shape:
            return format(self.item(), specification)
        return super().__format__(specification)

    @property
    def grad(self) -> xgrad.Tensor | None:
        """The gradient of this leaf, None before the first backward pass."""
        return as_torch(xgrad.Tensor.grad.fget(self))  # type: ignore[attr-defined, no-any-return]

    @grad.setter
    def grad(self, value: xgrad.Tensor | None) -> None:
        xgrad.Tensor.grad.fset(self, value)  # type: ignore[attr-defined]

    @property
    def data(self) -> xgrad.Tensor:
        """A view of the values without history."""
        return as_torch(xgrad.Tensor.data.fget(self))  # type: ignore[attr-defined, no-any-return]

    @data.setter
    def data(self, value: Any) -> None:
        """Give this tensor other values; views keep the earlier ones, as in PyTorch."""
        for view in views_of(self):
            unlink(view)
        unlink(self)
        xgrad.Tensor.data.fset(self, value)  # type: ignore[attr-defined]

    @staticmethod
    def _in_namespace(result: Any) -> Any:
        """Return a result of a function of xgrad that another library called with a tensor."""
        return as_torch(result)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return as_torch(super().__array_ufunc__(ufunc, method, *inputs, **options))

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return as_torch(super().__array_function__(function, types, args, options))


class Parameter(Tensor, XgradParameter):
    """A trainable tensor, which a `Module` registers when it is set as an attribute."""

    __slots__ = ()

    def __init__(self, data: Any = (), requires_grad: bool = True) -> None:
        XgradParameter.__init__(self, data, requires_grad=requires_grad)


def as_torch(value: Any) -> Any:
    """Make tensors, also in tuples, lists and dicts, instances of `Tensor`; return the value."""
    kind = type(value)
    if kind is xgrad.Tensor:
        as_subclass(value, Tensor)
    elif kind is XgradParameter:
        as_subclass(value, Parameter)
    elif isinstance(value, (tuple, list)):
        for part in value:
            as_torch(part)
    elif isinstance(value, dict):
        for part in value.values():
            as_torch(part)
    return value


def as_argument(value: Any) -> Any:
    """Return an argument of a call, for a tensor of xgrad a view of it in this namespace.

    The caller's tensor keeps its class, so that its methods keep their meaning. Tensors in lists,
    tuples and dicts become instances of `Tensor` themselves.
    """
    if type(value) in (xgrad.Tensor, XgradParameter):
        return as_torch(xgrad.reshape(value, value.shape))
    return as_torch(value)


def as_result(result: Any, args: Any) -> Any:
    """Return a result as a tensor of this namespace, a view if it is the first argument itself."""
    return as_argument(result) if args and result is args[0] else as_torch(result)


def torch_function(function: F) -> F:
    """Return a function whose results are tensors of this namespace.

    It also takes ``out=`` with a tensor, or a tuple of them, to which the results are written, and
    ``axis=`` and ``keepdims=`` for ``dim=`` and ``keepdim=``.
    """

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if not options:
            return as_result(function(*args), args)
        for name, own in _ALIASES.items():
            if name in options:
                options[own] = options.pop(name)
        out = options.pop("out", None)
        result = as_result(function(*args, **options), args)
        return result if out is None else _written(function.__name__, result, out)

    return call  # type: ignore[return-value]


def _written(name: str, result: Any, out: Any) -> Any:
    """Write results to the tensors of ``out=``, and return these."""
    if isinstance(out, (tuple, list)):
        for part, target in zip(result, out, strict=True):
            _written(name, part, target)
        return type(result)(*out) if hasattr(result, "_fields") else out
    if xgrad.is_grad_enabled() and (result.requires_grad or out.requires_grad):
        raise RuntimeError(
            f"{name}: expected tensors that require no gradient with out=, which has no derivative:"
            " use the result, or no_grad()"
        )
    if not xgrad.can_cast(result.dtype, out.dtype) and result.dtype.kind > out.dtype.kind:
        raise RuntimeError(f"{name}: expected out= of {result.dtype}, got {out.dtype}")
    if out.shape != result.shape:
        if out.numel():
            raise ValueError(
                f"{name}: expected out= of shape {tuple(result.shape)}, or an empty one, got"
                f" {tuple(out.shape)}"
            )
        writing.set_data(out, xgrad.astype(result, out.dtype))
    else:
        out[...] = xgrad.astype(result, out.dtype, copy=False)
    return out
