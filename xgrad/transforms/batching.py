"""Batched arrays and their device: array functions map over a batch axis that arrays hide.

Within `vmap`, tensors hold batched arrays: each has a tensor with a batch axis in front, or without
one if the value is the same for the whole batch. The tensor keeps the graph, and may itself be
batched by a `vmap` around this one. Ops and their derivative rules run on batched arrays as on the
arrays of any device; each function of the namespace runs once for the whole batch, by a rule of
`batching_rules`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from xgrad import ops
from xgrad.autograd import grad
from xgrad.backend import Backend, DeviceError
from xgrad.backend.device import Device, Interceptor, Placements, batching, intercepting
from xgrad.backend.recording import as_arrays, check_true
from xgrad.backend.wrapping import ArrayType, LazyNamespace, define_operators
from xgrad.core import providers
from xgrad.core.function import Function
from xgrad.core.modes import enable_grad, is_grad_enabled, no_grad
from xgrad.core.tensor import Tensor, from_array, from_placement
from xgrad.ops import asarray, broadcast_to, index_add, moveaxis
from xgrad.support.scopes import Scope
from xgrad.transforms.batching_rules import RULES, loop

#: Functions that take dtypes, or arrays of which only the dtype matters.
_OF_DTYPES = frozenset("can_cast finfo iinfo isdtype result_type".split())


class Batch(Interceptor):
    """A call of `vmap`: its size, and the call around it, if any.

    As an interceptor, it keeps ops on tensors outside the batch off their fast paths, so that
    `from_placement` records where they are made: in `path`, an object for each call, outermost
    first. A `BatchedArray` records this itself. Another interceptor `around` the call sees all ops.
    """

    def __init__(self, size: int) -> None:
        self.size, self.outer, self.around = size, batching.get(), intercepting.get()
        self.level: int = 1 if self.outer is None else self.outer.level + 1
        self.path: tuple[object, ...] = (*(() if self.outer is None else self.outer.path), object())
        self.recording = is_grad_enabled()

    def intercept(self, function: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Let an op run unchanged, unless an interceptor around the call handles it."""
        if self.around is None:
            return None
        device = next(x.device for x in inputs if isinstance(x, Tensor))
        return (
            None
            if device is self.around.device
            else self.around.intercept(function, inputs, options)
        )

    def before_backward(self, edges: Any) -> None:
        """Forward the start of a backward pass."""
        if self.around is not None:
            self.around.before_backward(edges)

    def after_backward(self) -> None:
        """Forward the end of a backward pass."""
        if self.around is not None:
            self.around.after_backward()

    def run_rule(self, watched: Any, *args: Any) -> Any:
        """Forward the call of a derivative rule."""
        return watched.rule(*args) if self.around is None else self.around.run_rule(watched, *args)

    def is_entered(self) -> bool:
        """Return whether this call is currently running."""
        batch = batching.get()
        while batch is not None and batch.level > self.level:
            batch = batch.outer
        return batch is self

    def lift(self, x: Tensor, batched: bool = False) -> Tensor:
        """Return a tensor as a tensor of the batch.

        If `batched`, its elements lie along the first axis; if not, `x` is the value for each
        element.
        """
        device = BatchingDevice.at(self.level, x.device.root)
        if self.around is None:
            self.device = device
        # A copy, because a later write to `x` must not change the value here, which a graph may
        # have saved.
        same = from_placement(x._data, x._placement, x._edge) if self.recording else x.detach()
        array = BatchedArray(self, same, batched)
        return from_placement(array, device.placements[array.dtype])

    def unmapped(self, path: str, x: Any, axis: int | None = None) -> Tensor:
        """Return a tensor for use outside, with the batch axis at `axis`.

        If `axis` is None, the tensor must be the same for the whole batch.
        """
        if not isinstance(x, Tensor):
            raise TypeError(
                f"vmap: expected tensors of the function, got {type(x).__name__} in {path}: return"
                " tensors"
            )
        array = x._data if x.device.level == self.level else self.lift(x)._data
        out: Tensor = array.tensor if is_grad_enabled() else array.tensor.detach()
        if axis is None:
            if array.batched:
                raise ValueError(
                    f"vmap: expected {path} to be the same for the whole batch, for None as axis:"
                    " give 0"
                )
            return from_placement(out._data, out._placement, out._edge)
        out = out if array.batched else broadcast_to(out, (self.size, *out.shape))
        if not -out.ndim <= axis < out.ndim:
            raise ValueError(f"vmap: expected out_axes below {out.ndim} for {path}, got {axis}")
        return (
            moveaxis(out, 0, axis) if axis else from_placement(out._data, out._placement, out._edge)
        )


class BatchedArray(ArrayType):
    """An array for each element of a batch, or one for all.

    It has a tensor, and a flag whether the first axis of the tensor is the batch axis.
    """

    __slots__ = ("__weakref__", "batch", "batched", "made_in", "tensor", "writable")

    def __init__(self, batch: Batch, tensor: Tensor, batched: bool, writable: bool = False) -> None:
        self.batch, self.tensor, self.batched = batch, tensor, batched
        self.made_in = batching.get().path
        self.writable = writable  # whether no views of it exist

    # fmt: off
    @property
    def shape(self) -> tuple[int, ...]: return self.tensor.shape[self.batched:]
    @property
    def dtype(self) -> Any: return self.tensor._data.dtype
    @property
    def device(self) -> None: return None  # creation functions in the namespace know the device
    @property
    def mT(self) -> Any: return call("matrix_transpose", ops.matrix_transpose, self)
    T = mT
    @property
    def requires_grad(self) -> bool: return self.tensor._is_differentiated

    def __repr__(self) -> str: return f"<array of shape {self.shape}, batched>"
    def __getitem__(self, key: Any) -> Any: return call("getitem", operator.getitem, self, key)
    def __bool__(self) -> bool: return bool(host_values(self))
    def __int__(self) -> int: return int(host_values(self))
    def __float__(self) -> float: return float(host_values(self))
    def __complex__(self) -> complex: return complex(host_values(self))
    def __index__(self) -> int: return operator.index(host_values(self).item())
    # fmt: on

    def __setitem__(self, key: Any, value: Any) -> None:
        if not self.writable:
            raise TypeError(
                "vmap: a view of a tensor is written to: write to the tensor itself, x[0, 1] = y"
                " for x[0][1] = y"
            )
        made = call("setitem", ops.setitem, self, key, value)
        self.tensor, self.batched = made.tensor, made.batched


def is_differentiated(x: Any) -> bool:
    """Return whether `x` is a batched array whose tensor has a graph."""
    return type(x) is BatchedArray and x.requires_grad


def host_values(x: BatchedArray) -> np.ndarray:
    """Return the values of an array, which all elements of the batch must share."""
    if x.batched:
        raise TypeError(
            "vmap: the values of a batched tensor are needed, as by float(x), `if x > 0:` or"
            " .numpy(): use where, or a loop over the batch with stack"
        )
    return x.tensor.detach()._to_host()


def _by_rule(function: Callable[..., Any], *inputs: Any) -> Any:
    return call("matmul" if function is operator.matmul else "add", function, *inputs)


define_operators(BatchedArray, _by_rule)


def operands(values: Any) -> Iterator[BatchedArray]:
    """Yield the batched arrays among arguments, and inside their lists and tuples."""
    for x in values:
        if type(x) is BatchedArray:
            yield x
        elif type(x) is list or type(x) is tuple:
            yield from operands(x)


def call(name: str, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a function of tensors with batched arrays, by its batching rule if one is batched."""
    arrays = [*operands(args), *operands(options.values())]
    batch, levels = arrays[0].batch, 1
    for x in arrays:
        if x.batch is not batch:
            batch, levels = max(batch, x.batch, key=lambda batch: batch.level), 2
        if not x.batch.is_entered():
            raise RuntimeError(
                f"vmap: {name} is given a tensor of another call of vmap, which is left: return it"
                " from the function"
            )
    if levels > 1:  # rules got indexing keys from a graph around the call
        args = _in_batch(batch, args)
        options = dict(zip(options, _in_batch(batch, [*options.values()]), strict=True))
        arrays = [*operands(args), *operands(options.values())]
    batched, mode = any(x.batched for x in arrays), intercepting.get()
    try:
        intercepting.set(batch.around)  # for the tensors of the call around this one
        if batched:
            out = RULES.get(name, partial(loop, name))(function, batch.size, *args, **options)
        else:
            out = function(*map(_tensor_of, args), **{k: _tensor_of(x) for k, x in options.items()})
    finally:
        intercepting.set(mode)
    return _wrapped(batch, out, batched)


def _in_batch(batch: Batch, x: Any) -> Any:
    """Return arguments with arrays of outer `vmap` calls lifted into a batch.

    These arrays are the same for all elements of the batch.
    """
    if type(x) is BatchedArray and x.batch is not batch:
        device = BatchingDevice.at(x.batch.level, x.tensor.device.root)
        return BatchedArray(batch, from_array(x, device), False)
    return (
        type(x)([_in_batch(batch, part) for part in x])
        if type(x) is list or type(x) is tuple
        else x
    )


def _tensor_of(x: Any) -> Any:
    if type(x) is BatchedArray:
        return x.tensor
    return type(x)(map(_tensor_of, x)) if type(x) is list or type(x) is tuple else x


def _wrapped(batch: Batch, out: Any, batched: bool) -> Any:
    if isinstance(out, Tensor):
        return BatchedArray(batch, out, batched)
    if isinstance(out, (list, tuple)):
        parts = [_wrapped(batch, part, batched) for part in out]
        return out._make(parts) if hasattr(out, "_make") else type(out)(parts)
    return out


class BatchingNamespace(LazyNamespace):
    """A namespace of xgrad's functions for batched arrays on a device."""

    def __init__(self, device: BatchingDevice, real: Any, functions: Any, prefix: str = "") -> None:
        super().__init__(real)
        self._device, self._functions, self._prefix = device, functions, prefix

    def part(self, name: str, real: Any) -> Any:
        """Return an inner namespace, such as ``linalg``."""
        functions = getattr(self._functions, name, None)
        return (
            BatchingNamespace(self._device, real, functions, f"{name}.")
            if functions is not None
            else real
        )

    def wrapped(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function of batched arrays."""
        if name == "index_add":
            return partial(call, name, index_add)
        if name in _OF_DTYPES:
            return partial(self._of_dtypes, function)
        # all special functions are elementwise
        title = "special." if self._prefix == "special." else self._prefix + name
        return partial(self._call, title, getattr(self._functions, name))

    def _of_dtypes(self, function: Callable[..., Any], *args: Any) -> Any:
        return function(*[x.dtype if type(x) is BatchedArray else x for x in args])

    def _call(self, name: str, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        device = self._device
        if options.get("dtype") is not None:
            options["dtype"] = device.backend.numpy_dtype(options["dtype"])
        if name == "astype":
            args = args[0], device.backend.numpy_dtype(args[1])
        elif name.endswith("_like"):  # the shape is the same for the whole batch
            x, *rest = args
            options = {"dtype": device.backend.numpy_dtype(x.dtype), **options}
            name, args = name[:-5], (x.shape, *rest)
            function = getattr(ops, name)
        options.pop("device", None)
        if next(operands(args), None) is not None:
            made = call(name, function, *args, **options)
            if name == "asarray" and options.get("copy"):
                made.writable = True
            return made
        batch = device.batch()
        args = tuple(
            [
                from_array(x, device.root) if isinstance(x, device.root.array_type) else x
                for x in args
            ]
        )
        options = (
            options
            if any(isinstance(x, Tensor) for x in args)
            else {**options, "device": device.root}
        )
        made = _wrapped(batch, function(*args, **options), False)
        if type(made) is BatchedArray:
            made.writable = True
        return made


class BatchingBackend(Backend):
    """The backend of batched arrays.

    Access to values and memory is refused, or passed to the real backend.
    """

    array_type = BatchedArray

    def __init__(self, device: BatchingDevice) -> None:
        self.owner, self.real = device, device.root.backend
        self.default_index = self.real.default_index
        self.library, self.asynchronous = (  # type: ignore[misc]
            self.real.library,
            self.real.asynchronous,
        )
        self.dtype, self.numpy_dtype = (  # type: ignore[method-assign]
            self.real.dtype,
            self.real.numpy_dtype,
        )

    def to_host(self, x: Any) -> np.ndarray:
        """Return the values of an array, which all elements of the batch must share."""
        return host_values(x)

    def from_host(self, x: np.ndarray, index: int) -> Any:
        """Return a host array as a batched array, the same for each element of the batch."""
        return BatchedArray(self.owner.batch(), asarray(x, device=self.owner.root), False)

    def check_true(self, condition: Any) -> bool:
        """Return whether a check of an argument holds for the whole batch."""
        every = ops.all(condition.tensor)
        return check_true(every.device, every._data)

    def transfer(self, x: Any, index: int) -> Any:
        """Refuse to move an array."""
        raise DeviceError(
            "vmap: a batched tensor cannot be moved to another device: move the arguments before"
        )

    def shares_memory(self, x: Any, y: Any) -> bool:
        """Return False: writes make new arrays."""
        return False


class BatchingDevice(Device):
    """The device of tensors in a `vmap` at some level of nesting.

    There is one for each ordinary device, its `root`.
    """

    _at: ClassVar[dict[tuple[int, Device], BatchingDevice]] = {}

    @classmethod
    def at(cls, level: int, root: Device) -> BatchingDevice:
        """Return the device at a level of nesting that represents `root`."""
        return cls._at.get((level, root)) or cls._at.setdefault(
            (level, root), cls._make(level, root)
        )

    @classmethod
    def known(cls) -> list[BatchingDevice]:
        """Return all devices made by calls of `vmap` so far."""
        return list(cls._at.values())

    @classmethod
    def _make(cls, level: int, root: Device) -> BatchingDevice:
        self = object.__new__(cls)
        self.level, self.root, self.type, self.index = level, root, root.type, root.index
        self.backend = BatchingBackend(self)
        self.array_type = BatchedArray
        self.floats = root.floats
        self.xp = BatchingNamespace(self, root.xp, providers.module("functions"))
        self.device_context, self.native = None, None
        self.placements = Placements(self)
        return self

    def as_array(self, x: Any) -> Any:
        """Return the result of a rule, which is a number, as an array."""
        return BatchedArray(self.batch(), asarray(x, device=self.root), False)

    def detached(self, x: Any) -> Any:
        """Return an array without the graph of the transforms around the call."""
        return BatchedArray(x.batch, x.tensor.detach(), x.batched)

    def is_differentiated(self, x: Any) -> bool:
        """Return whether an array has a graph of the transforms around the call."""
        return is_differentiated(x)

    def call_with_own_rule(self, op: Any, *inputs: Any, **options: Any) -> Any:
        """Call a function whose own derivative rule also holds for the transforms around."""
        arrays = [x for x in inputs if type(x) is BatchedArray]
        if not (is_grad_enabled() and any(x.requires_grad for x in arrays)):
            return op.forward(self.xp, *inputs, **options)
        batch, tensors = arrays[0].batch, [x.tensor for x in arrays]
        with Scope(intercepting, batch.around):
            if any(x.batched for x in arrays):
                return _wrapped(
                    batch, _mapped(*tensors, call=_MappedCall(op, inputs, options)), True
                )
            return _wrapped(batch, op(*map(_tensor_of, inputs), **options), False)

    def rewritten(self, x: Any, new: Any) -> Any:
        """Return the array of a tensor after a write that bypasses autograd.

        Its graph stays, as it does outside of a `vmap`.
        """
        tensor, value = x.tensor, new.tensor.detach()
        if not tensor._is_differentiated:
            return BatchedArray(new.batch, value, new.batched)
        if (x.shape, x.dtype) != (new.shape, new.dtype):
            raise ValueError(
                f"data: expected shape {x.shape}, {x.dtype} for a computed tensor, got {new.shape},"
                f" {new.dtype}: use .detach()"
            )
        if x.batched is not new.batched:
            shape = (x.batch.size, *x.shape)
            with enable_grad():
                tensor, value = broadcast_to(tensor, shape), broadcast_to(value, shape)
        raw, device = value._data, tensor.device
        if device.level:
            raw = device.rewritten(tensor._data, raw)
        return BatchedArray(
            x.batch, from_placement(raw, tensor._placement, tensor._edge), x.batched or new.batched
        )

    def batch(self) -> Batch:
        """Return the call of `vmap` at this level."""
        batch: Batch | None = batching.get()
        while batch is not None and batch.level > self.level:
            batch = batch.outer
        if batch is None or batch.level < self.level:
            raise RuntimeError(
                "vmap: a tensor is used that was made in a call of vmap, and not returned from it"
            )
        return batch

    def lift(self, x: Tensor) -> Tensor:
        """Return a tensor of a lower level, or of no vmap, on this device."""
        if x.device.root is not self.root:
            raise DeviceError(
                f"vmap: expected tensors of one device, got {self} and {x.device}: move them before"
            )
        return self.batch().lift(x)


# Functions with their own derivative rules


class _MappedCall:
    """A call of a function on inputs of a batch.

    Inputs in arrays are given later, as tensors outside of the batch.
    """

    def __init__(self, op: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> None:
        arrays = [x for x in inputs if type(x) is BatchedArray]
        self.op, self.options, self.size = op, options, arrays[0].batch.size
        self.others = [None if type(x) is BatchedArray else (x,) for x in inputs]
        self.batched, self.root = [x.batched for x in arrays], arrays[0].tensor.device.root

    def __call__(self, tensors: list[Tensor]) -> Any:
        """Call the function on tensors of a batch."""
        rest = iter(tensors)
        return self.op(
            *[next(rest) if other is None else other[0] for other in self.others], **self.options
        )

    def results(self, arrays: Sequence[Any]) -> Any:
        """Return the results of the function for the whole batch, without a graph."""
        with Scope(batching, Batch(self.size)) as batch, Scope(intercepting, batch), no_grad():
            out = self(self._lifted(batch, arrays))
            parts = [
                batch.unmapped("a result", x, 0)._data
                for x in (out if type(out) is tuple else (out,))
            ]
        return tuple(parts) if type(out) is tuple else parts[0]

    def gradients(self, gs: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
        """Return the gradients by the function's rule; they are tensors in a recorded pass."""
        recording = is_grad_enabled()
        with Scope(batching, Batch(self.size)) as batch, Scope(intercepting, batch):
            inputs = self._lifted(batch, arrays)
            floating = [x.requires_grad_() for x in inputs if x.dtype.kind in "fc"]
            with enable_grad():
                out = self(inputs)
            outs = out if type(out) is tuple else (out,)
            lifted = [batch.lift(self._tensor(g), True) for g in gs]
            pairs = [(x, g) for x, g in zip(outs, lifted, strict=True) if x.requires_grad]
            rest, parts = iter(self._pull_back(pairs, floating, recording)), []
            for x, batched in zip(inputs, self.batched, strict=True):
                g = next(rest) if x.dtype.kind in "fc" else None
                g = None if g is None else batch.unmapped("a gradient", g, 0)
                parts.append(g if g is None or batched else ops.sum(g, axis=0))
        return [g if g is None or recording else g._data for g in parts]

    @staticmethod
    def _pull_back(pairs: list[Any], inputs: list[Tensor], recording: bool) -> Sequence[Any]:
        if not pairs:
            return [None] * len(inputs)
        outs, gs = zip(*pairs, strict=True)
        return grad(outs, inputs, gs, create_graph=recording, allow_unused=True)

    def _lifted(self, batch: Batch, arrays: Sequence[Any]) -> list[Tensor]:
        return [batch.lift(self._tensor(x), of) for x, of in zip(arrays, self.batched, strict=True)]

    def _tensor(self, x: Any) -> Tensor:
        if isinstance(x, Tensor):
            return x
        return from_array(
            x, BatchingDevice.at(x.batch.level, self.root) if type(x) is BatchedArray else self.root
        )


class _Mapped(Function):
    """A function with its own derivative rule, mapped over the batch of a `vmap`.

    It takes the tensors outside of the `vmap`.
    """

    name, holomorphic, own_rule = "vmap", False, True

    @staticmethod
    def forward(xp: Any, *arrays: Any, call: _MappedCall) -> Any:
        return call.results(as_arrays(arrays))

    @staticmethod
    def backward(xp: Any, g: Any, arrays: Any, call: _MappedCall) -> Any:
        return call.gradients(*as_arrays((g if type(g) is tuple else (g,), arrays)))


_mapped = _Mapped()
