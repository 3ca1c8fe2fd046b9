"""The places where the state of a step is kept: read before and after a trace, and replaced while it runs."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, NamedTuple

from xgrad.backend.device import Device
from xgrad.capture.numbers import plain
from xgrad.capture.state import State
from xgrad.capture.trace import Trace
from xgrad.capture.tracing_device import TracingDevice
from xgrad.core.graph import Leaf
from xgrad.core.tensor import Tensor
from xgrad.optim.flat import FlatParameters
from xgrad.random.generator import ContextGenerator, context_state


class Slot(NamedTuple):
    """A place where state is kept: an object with the name of its attribute, or a mapping with its key.

    It is of a kind: "array", "device" (a pair of device and dtype), "grad", "number" (also a tuple of them), or
    "other", which a step is not to change. The name is for messages.
    """

    kind: str
    owner: Any
    key: Any
    name: str

    def read(self) -> Any:
        """Return what the slot holds; None where it is gone."""
        return self.owner.get(self.key) if isinstance(self.owner, dict) else getattr(self.owner, self.key)

    def writing(self, value: Any) -> tuple[Any, ...]:
        """Return the call that gives the slot a value: of a function of C, in which no signal handler runs."""
        if isinstance(self.owner, dict):
            return operator.setitem, self.owner, self.key, value
        if isinstance(self.owner, ContextGenerator):
            return context_state.set, value
        return setattr, self.owner, self.key, value

    def substitute(self, trace: Trace, value: Any, kind: str) -> Any:
        """Return what stands in the slot while a step is traced; arrays are of a `kind` of memory."""
        if self.kind == "array":
            return trace.lift(value, kind, self.name) if isinstance(value, trace.real.array_type) else value
        if self.kind == "device":
            return trace.device.placements[value.dtype] if value.device is trace.real else value
        return trace.read(value, self.owner, self.key) if self.kind == "number" else value

    def restored(self, device: Device, before: Any, traced: Any, after: Any) -> Any:
        """Return what the slot holds after the step without a trace, given what it holds after the step with one."""
        if after is traced:
            return before
        if self.kind == "device":
            return device.placements[after.dtype] if isinstance(after.device, TracingDevice) else after
        return getattr(after, "array", after) if self.kind == "array" else plain(after)


class Slots:
    """The slots of a state and of arguments, in the order in which they were found.

    Attributes
    ----------
    all : list of Slot
        The slots.
    flats : dict of int to FlatParameters
        Parameters that an optimizer has packed, by id.
    leaves : dict of int to (Tensor, Leaf, str)
        Tensors with a leaf, by the id of the tensor, with their names.
    complete : bool
        Whether all gradients in buffers are those of optimizers that still exist.
    """

    def __init__(self, state: State, arguments: Iterable[Tensor]) -> None:
        self.all: list[Slot] = []
        self.flats: dict[int, FlatParameters] = {}
        self.leaves: dict[int, tuple[Tensor, Leaf, str]] = {}
        self.complete = True
        self._seen: set[int] = set()
        for name, optimizer in state.optimizers.values():
            for i, group in enumerate(optimizer.param_groups):
                self._numbers(group, f"{name}.param_groups[{i}][{{!r}}]")
            for flat in optimizer.flats():
                self._flat(flat)
        for name, tensor in state.tensors.values():
            self._tensor(tensor, name)
        for name, generator in state.generators.values():
            self._add("number", generator, "_state", name)
        for i, x in enumerate(arguments):
            self._tensor(x, f"arg{i}")

    def _add(self, kind: str, owner: Any, key: Any, name: str) -> None:
        self.all.append(Slot(kind, owner, key, name))

    def _numbers(self, options: dict[str, Any], name: str) -> None:
        for key, value in options.items():
            if key != "params":
                self._add("number" if _is_numeric(value) else "other", options, key, name.format(key))

    def _tensor(self, x: Any, name: str) -> None:
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
        self._add("device", x, "_placement", name)
        self._add("other", x, "_edge", f"{name}.requires_grad")
        if leaf is not None:
            self.leaves[id(x)] = x, leaf, name
            self._add("device", leaf, "placement", name)
            self._add("grad", leaf, "grad", f"{name}.grad")
            self._tensor(leaf.grad, f"{name}.grad")

    def _flat(self, flat: FlatParameters) -> None:
        """Add the buffers of packed parameters, of their gradients and moments."""
        if id(flat) in self.flats:
            return
        self.flats[id(flat)] = flat
        mark = "" if len(self.flats) == 1 else str(len(self.flats) - 1)
        self._add("device", flat.layout, "placement", "an optimizer")
        whole, gradients = {"params": flat.buffer, "grads": flat.gradients.buffer, **flat.arrays}, flat.gradients
        for name, tensor in whole.items():
            self._tensor(tensor, f"{name}{mark}")
        for i, (segment, view, own) in enumerate(zip(flat.segments, gradients.views, gradients.tensors, strict=True)):
            self._tensor(segment, f"params{mark}[{i}]")
            self._tensor(view, f"grads{mark}[{i}]")
            self._tensor(own, f"grads{mark}[{i}]")
        self._numbers(flat.numbers, f"{{}}{mark}")


def buffers_of(flat: FlatParameters) -> list[Tensor]:
    """Return the tensors that hold packed parameters, their gradients and moments."""
    gradients = flat.gradients
    buffers = [flat.buffer, *flat.segments, *flat.arrays.values(), gradients.buffer]
    return [*buffers, *gradients.views, *gradients.tensors]


def _is_numeric(value: Any) -> bool:
    if type(value) is tuple:
        return bool(value) and all(map(_is_numeric, value))
    scalar = hasattr(value, "item") and getattr(value, "shape", None) == () and not isinstance(value, Tensor)
    return type(value) in (int, float) or (scalar and value.dtype.kind in "iuf")
