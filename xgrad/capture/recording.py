"""A traced step: the slots in which state is kept, with their contents before and after, arguments, and result."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from xgrad.backend.device import Device
from xgrad.backend.devices import _default
from xgrad.capture.numbers import plain
from xgrad.capture.state import State
from xgrad.capture.trace import Trace
from xgrad.capture.tracing_device import TracedArray, TracingDevice
from xgrad.core.dtypes import default_dtype
from xgrad.core.grad_mode import grad_enabled
from xgrad.core.graph import Leaf
from xgrad.core.precision import autocast_dtypes
from xgrad.core.tensor import Tensor
from xgrad.core.views import base_of
from xgrad.nn.module import Module
from xgrad.optim.flat import FlatParameters
from xgrad.optim.optimizer import Optimizer
from xgrad.random.generator import ContextGenerator, Generator, context_state

_KEPT_APART = frozenset({"_packed", "_unpacked_state", "training"})  # attributes that have own rules


@dataclass(slots=True, eq=False)
class Slot:
    """A place where state is kept: an attribute of an object, a key of a dict, or a context variable.

    Its kind is "array", "device" (a pair of device and dtype), "grad", "number" (or a tuple of them), "mode" (of a
    module), or "other", which a step is not to change. The name is for messages. `before` is what it holds before the
    step, `traced` what stands for that during the trace, and `after` what it holds at the end of the step.
    """

    kind: str
    owner: Any
    key: Any
    name: str
    before: Any = None
    traced: Any = None
    after: Any = None

    def read(self) -> Any:
        """Return the content of the slot; None if the key is gone."""
        if isinstance(self.owner, ContextVar):
            return self.owner.get()
        return self.owner.get(self.key) if isinstance(self.owner, dict) else getattr(self.owner, self.key)

    def setter(self, value: Any) -> tuple[Any, ...]:
        """Return the call that gives the slot a value: of a function of C, in which no signal handler runs."""
        owner = context_state if isinstance(self.owner, ContextGenerator) else self.owner
        if isinstance(owner, ContextVar):
            return owner.set, value
        return operator.setitem if isinstance(owner, dict) else setattr, owner, self.key, value

    def substitute(self, trace: Trace, memory: str) -> None:
        """Note what the slot holds, and what stands for it during a trace: an array in a kind of memory, for one."""
        self.before = self.traced = value = self.read()
        if self.kind == "array" and isinstance(value, trace.real.array_type):
            self.traced = trace.trace_array(value, memory, self.name)
        elif self.kind == "device":
            self.traced = trace.device.placements[value.dtype] if value.device is trace.real else value
        elif self.kind == "number":
            self.traced = trace.read(value, self.owner, self.key, self.name)

    def untraced(self, device: Device) -> Any:
        """Return the content of the slot after the step without a trace."""
        after = self.after
        if after is self.traced:
            return self.before
        if self.kind == "device":
            return device.placements[after.dtype] if isinstance(after.device, TracingDevice) else after
        if isinstance(after, TracingDevice):
            return after.real
        return getattr(after, "array", after) if self.kind == "array" else plain(after)


class Slots:
    """The slots of a state and of arguments, in the order in which they are found."""

    def __init__(self, state: State, arguments: Iterable[Tensor]) -> None:
        self.all: list[Slot] = []
        self.flats: dict[int, FlatParameters] = {}  # packed parameters, by id
        self.leaves: dict[int, tuple[Tensor, Leaf, str]] = {}  # and their names, by the id of the tensor
        self._seen: set[int] = set()
        self._add("other", grad_enabled, "", "the grad mode")
        self._add("other", _default, "", "the default device")
        self._add("other", default_dtype, "", "the default dtype")
        self._add("other", autocast_dtypes, "", "the autocast mode")
        for name, optimizer in state.of(Optimizer):
            for i, group in enumerate(optimizer.param_groups):
                self._numbers(group, f"{name}.param_groups[{i}][{{!r}}]")
            for flat in optimizer.flats():
                self._flat(flat)
        for name, tensor in state.of(Tensor):
            self._tensor(tensor, name)
        for name, module in state.of(Module):
            self._add("mode", vars(module), "training", f"{name}.training")
        for name, generator in state.of(Generator):
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
            if flat is None:  # the optimizer is gone, or packs the parameters again in its next step
                leaf.slot = None
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


class Recording:
    """A step that is traced: what its slots hold before, during and after, its arguments and its result."""

    def __init__(self, state: State, slots: Slots, trace: Trace, tensors: list[Tensor], structure: Any) -> None:
        self.state, self.slots, self.trace = state, slots, trace
        self.tensors, self.structure = tensors, structure  # of the arguments
        self.layouts = [(type(x), x._placement, x._edge is not None, x._data.shape, x._data.strides) for x in tensors]
        leaves = [leaf for _, leaf, _ in slots.leaves.values()]
        self.gradients = {id(leaf): leaf.grad for leaf in leaves}  # before the step, as the hooks
        self._hooks = {id(leaf): list((leaf.hooks or {}).values()) for leaf in leaves}
        inputs = set(map(id, tensors)) - state.named.keys()
        for slot in slots.all:
            slot.substitute(trace, "input" if id(slot.owner) in inputs else "state")
        trace.adopt = self._adopt
        self.undo: list[Any] = [slot.setter(slot.before) for slot in slots.all]  # calls that restore all slots
        self.arrays = [slot for slot in slots.all if slot.kind == "array" and isinstance(slot.traced, TracedArray)]
        self._adopted: set[int] = set()  # ids of tensors
        self.written: list[Tensor] = []  # by a step without a program
        self.changes: list[Slot] = []  # the slots that the step changed
        self.changed: set[tuple[int, Any]] = set()  # the ids of their owners, and their keys
        self.result: Any = None
        owners = [x for _, x in (*state.of(Module), *state.of(Optimizer))]
        self._attributes = [(x, dict(vars(x))) for x in owners]
        self._packings = [(x, _packing(x)) for _, x in state.of(Optimizer)]
        stamps = [(slot.owner, "_changed") for slot in slots.all if slot.kind == "array"]
        stamps += [(x, "changed") for x in (*leaves, *slots.flats.values())]
        self._stamps = [(x, key, getattr(x, key, 0)) for x, key in stamps]

    def is_identified(self, tensor: Tensor) -> bool:
        """Return whether an argument must be the same tensor in each call: one of the state, or a parameter."""
        leaf = tensor._leaf
        return id(tensor) in self.state.named or (
            leaf is not None and (leaf.slot is not None or type(tensor) is not Tensor)
        )

    def _adopt(self, tensors: Iterable[Tensor]) -> None:
        """Make tensors part of the traced state, so that they follow writes to memory that they share.

        The capture is refused where this is needed: a replay would have to find these tensors again.
        """
        for x in tensors:
            if x._placement.device is not self.trace.real:
                continue
            self._adopted.add(id(x))
            slots = [Slot("array", x, "_data", ""), Slot("device", x, "_placement", "")]
            slots += [Slot("device", x._leaf, "placement", "")] if x._leaf is not None else []
            for slot in slots:
                slot.substitute(self.trace, "state")
                self.slots.all.append(slot)
                self.undo.append(slot.setter(slot.before))
                call, *operands = slot.setter(slot.traced)
                call(*operands)

    # The end of the step

    def finish(self) -> None:
        """Read what the slots hold at the end of the step."""
        for slot in self.slots.all:
            slot.after = slot.read()
        self.changes = [slot for slot in self.slots.all if slot.after is not slot.traced]
        self.changed = {(id(slot.owner), slot.key) for slot in self.changes}

    def exit_calls(self) -> list[Any]:
        """Return the calls that give the slots their contents after the step without a trace."""
        self.finish()
        written = [x for x, key in self.changed_values() if key == "_changed"]
        written += [slot.owner for slot in self.changes if slot.kind == "array"]
        self.written = [x for x in written if not self.follows(x) and id(x) not in self._adopted]
        afters = [(slot, slot.untraced(self.trace.real)) for slot in self.slots.all]
        return [slot.setter(after) for slot, after in afters if after is not slot.after]

    def follows(self, x: Tensor) -> bool:
        """Return whether a tensor is a view of one that the step changed, and so is recomputed with that."""
        return (id(base_of(x)), "_data") in self.changed

    def forget(self) -> None:
        """Drop what stands for arrays."""
        for slot in self.slots.all:
            slot.before = slot.traced = slot.after = None
        self.trace.forget()

    # Changes

    def unsupported_changes(self) -> Iterator[str]:
        """Return the changes of the step that a replay cannot make."""
        for x, before in self._attributes:
            now = vars(x)
            for key in (before.keys() | now.keys()) - _KEPT_APART:
                if before.get(key, self) is not now.get(key, self):
                    yield f"{type(x).__name__}.{key}"
        for _, leaf, name in self.slots.leaves.values():
            if list((leaf.hooks or {}).values()) != self._hooks[id(leaf)]:
                yield f"the hooks of {name}"
        if self.state.was_rebound({id(slot.owner) for slot in self.slots.all}):
            yield "which tensors a container or an attribute holds"

    def has_same_layouts(self) -> bool:
        """Return whether optimizers pack parameters and moments as they did before the step."""
        return all(_packing(x) == before for x, before in self._packings)

    def changed_values(self) -> list[tuple[Any, str]]:
        """Return the tensors and leaves that the step changed, with the attribute that tells when."""
        return [(x, key) for x, key, before in self._stamps if getattr(x, key, 0) != before]


def _packing(optimizer: Any) -> Any:
    """Return how an optimizer packs its parameters and moments, to be compared."""
    return (
        {key: id(packed) for key, packed in optimizer._packed.items()},
        list(map(id, optimizer._unpacked_state.values())),
        [(sorted(flat.arrays), sorted(flat.numbers), id(flat.gradients.tensors)) for flat in optimizer.flats()],
        [(id(group), sorted(group), list(map(id, group["params"]))) for group in optimizer.param_groups],
    )
