"""The places where the state of a step is kept: read before and after a trace, and replaced while it runs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from xgrad import random
from xgrad.capture.numbers import Number, plain
from xgrad.capture.state import State
from xgrad.capture.trace import Trace
from xgrad.capture.tracing_device import TracingDevice
from xgrad.device import Device, Place
from xgrad.graph import Leaf
from xgrad.optim.flat import Flat
from xgrad.optim.optimizer import Optimizer
from xgrad.tensor import Tensor


class Slot(NamedTuple):
    """A place where state is kept.

    Attributes
    ----------
    kind : str
        "array", "device" (also a pair of device and dtype), "grad", "number" (also a tuple of them), or "other", which
        a step is not to change.
    owner, key : object
        The object, with the name of its attribute; or the mapping, with its key.
    name : str
        Its name in messages.
    """

    kind: str
    owner: Any
    key: Any
    name: str

    def read(self) -> Any:
        """Return what the slot holds."""
        return self.owner[self.key] if isinstance(self.owner, dict) else getattr(self.owner, self.key)

    def writing(self, value: Any) -> Callable[[], Any]:
        """Return what gives the slot a value: functions of C, in which no signal handler runs."""
        if isinstance(self.owner, dict):
            return partial(operator.setitem, self.owner, self.key, value)
        if isinstance(self.owner, random._ContextGenerator):
            return partial(random._context.set, value)
        return partial(setattr, self.owner, self.key, value)

    def substitute(self, trace: Trace, value: Any, kind: str) -> Any:
        """Return what stands in the slot while a step is traced; arrays are of a `kind` of memory."""
        if self.kind == "array":
            return trace.lift(value, kind, self.name) if isinstance(value, trace.real.array_type) else value
        if self.kind == "device":
            if isinstance(value, Place):
                return trace.device.places[value.dtype] if value.device is trace.real else value
            return trace.device_for(value)
        if self.kind == "number":
            if type(value) is tuple:
                return tuple([_number(trace, part, self.owner, self.key, i) for i, part in enumerate(value)])
            return _number(trace, value, self.owner, self.key)
        return value

    def restored(self, device: Device, before: Any, traced: Any, after: Any) -> Any:
        """Return what the slot holds after the step without a trace, given what it holds after the step with one."""
        if after is traced:
            return before
        if self.kind == "device" and isinstance(after, Place):
            return device.places[after.dtype] if isinstance(after.device, TracingDevice) else after
        if self.kind == "array":
            return getattr(after, "array", after)
        if self.kind == "number":
            return tuple(map(plain, after)) if type(after) is tuple else plain(after)
        return after


class Slots:
    """The slots of a state and of arguments.

    Attributes
    ----------
    all : list of Slot
        In the order in which they were found.
    flats : dict of int to Flat
        Parameters that an optimizer keeps side by side, by id.
    leaves : dict of int to (Tensor, Leaf, str)
        Tensors with a leaf, by the id of the tensor.
    complete : bool
        Whether all gradients in buffers are those of optimizers that still exist.
    """

    def __init__(self, state: State, arguments: Iterable[Tensor]) -> None:
        self.all: list[Slot] = []
        self.flats: dict[int, Flat] = {}
        self.leaves: dict[int, tuple[Tensor, Leaf, str]] = {}
        self.complete = True
        self._seen: set[int] = set()
        for name, optimizer in state.optimizers.values():
            self._optimizer(optimizer, name)
        for name, tensor in state.tensors.values():
            self.tensor(tensor, name)
        for name, generator in state.generators.values():
            self._add("number", generator, "_state", name)
        for i, x in enumerate(arguments):
            self.tensor(x, f"arg{i}")

    def stamps(self) -> Iterator[tuple[Any, str]]:
        """Return tensors and leaves, with the attribute that tells when they were given another value."""
        for slot in self.all:
            if slot.kind == "array":
                yield slot.owner, "_changed"
        for _, leaf, _ in self.leaves.values():
            yield leaf, "changed"

    def _add(self, kind: str, owner: Any, key: Any, name: str) -> None:
        self.all.append(Slot(kind, owner, key, name))

    def tensor(self, x: Any, name: str) -> None:
        """Add the slots of a tensor, of its gradient, and of the buffers that an optimizer keeps it in."""
        if x is None or id(x) in self._seen or not x.is_leaf:  # one with a graph from before stays foreign
            return
        self._seen.add(id(x))
        leaf = x._leaf
        if leaf is not None and leaf.slot is not None:
            flat = leaf.slot.flat()
            if flat is None:  # the optimizer has forgotten it, and packs it anew when it takes a step
                self.complete = False
            else:
                self._flat(flat)  # before the parameter: its buffers stand for those in them
        self._add("array", x, "_data", name)
        self._add("device", x, "_place", name)
        self._add("other", x, "_edge", f"{name}.requires_grad")
        if leaf is not None:
            self.leaves[id(x)] = x, leaf, name
            self._add("device", leaf, "place", name)
            self._add("grad", leaf, "grad", f"{name}.grad")
            self.tensor(leaf.grad, f"{name}.grad")

    def _optimizer(self, optimizer: Optimizer, name: str) -> None:
        for i, group in enumerate(optimizer.param_groups):
            for key, value in group.items():
                if key != "params":
                    kind = "number" if _is_numeric(value) else "other"
                    self._add(kind, group, key, f"{name}.param_groups[{i}][{key!r}]")
        for _, laid in optimizer.laid():
            for flat in laid.flats:
                self._flat(flat)

    def _flat(self, flat: Flat) -> None:
        """Add the buffers of parameters that an optimizer keeps side by side, of their gradients and moments."""
        if id(flat) in self.flats:
            return
        self.flats[id(flat)] = flat
        gradients, mark = flat.gradients, "" if len(self.flats) == 1 else str(len(self.flats) - 1)
        self._add("device", flat, "device", "an optimizer")
        self._add("device", flat.layout, "device", "an optimizer")
        self._add("device", flat.layout, "place", "an optimizer")
        self.tensor(flat.buffer, f"params{mark}")
        self.tensor(gradients.buffer, f"grads{mark}")
        for key, array in flat.arrays.items():
            self.tensor(array, f"{key}{mark}")
        for i, (place, view, gradient) in enumerate(zip(flat.places, gradients.views, gradients.tensors, strict=True)):
            self.tensor(place, f"params{mark}[{i}]")
            self.tensor(view, f"grads{mark}[{i}]")
            self.tensor(gradient, f"grads{mark}[{i}]")
        for key, value in flat.numbers.items():
            self._add("number" if _is_numeric(value) else "other", flat.numbers, key, f"{key}{mark}")


def _is_numeric(value: Any) -> bool:
    if type(value) is tuple:
        return bool(value) and all(map(_is_numeric, value))
    return type(value) in (int, float) or (
        hasattr(value, "item")
        and getattr(value, "shape", None) == ()
        and not isinstance(value, Tensor)
        and value.dtype.kind in "iuf"
    )


def _number(trace: Trace, value: Any, *path: Any) -> Number:
    return Number(trace, value.item() if hasattr(value, "item") else value, "read", path)
