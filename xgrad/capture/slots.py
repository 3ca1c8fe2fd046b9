"""The slots of a recorded step: where state is kept, with contents before and after the step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from weakref import ref

from xgrad.backend.devices import _default
from xgrad.capture.program import Value
from xgrad.capture.recorder import Recorder
from xgrad.capture.state import StepState
from xgrad.core.dtypes import default_dtype
from xgrad.core.graph import Leaf
from xgrad.core.modes import autocast_dtypes, grad_enabled
from xgrad.core.tensor import Tensor
from xgrad.core.views import base_of, family_of, has_family
from xgrad.nn.module import Module
from xgrad.optim.flat import FlatParameters
from xgrad.optim.optimizer import Optimizer
from xgrad.random.generator import Generator
from xgrad.support import trees

# attributes that have rules of their own
_KEPT_APART = frozenset({"_packed", "_unpacked_state", "training"})


@dataclass(slots=True, eq=False)
class Slot:
    """A location of state: an attribute of an object, a key of a dict, or a context variable.

    The name is for messages. `before` is the content before the step, and `after` the content at
    its end. For an array, `before` stands in for the `original` while the step is recorded, and
    `value` is its value in the program. The kind is one of

    - "array" and "placement" of a tensor, and "grad" of a leaf;
    - "number": a number, or a tuple of them, that an optimizer counts, or the state of a generator;
    - "option": a number among the options of an optimizer, which a step may read but not change;
    - "mode" of a module;
    - "other", which a step may not change.
    """

    kind: str
    owner: Any
    key: Any
    name: str
    before: Any = None
    original: Any = None
    value: Value | None = None
    after: Any = None

    def read(self) -> Any:
        """Return the content of the slot, or None if the key is gone."""
        if isinstance(self.owner, ContextVar):
            return self.owner.get()
        return (
            self.owner.get(self.key)
            if isinstance(self.owner, dict)
            else getattr(self.owner, self.key)
        )

    def write(self, content: Any) -> None:
        """Set the content of the slot."""
        if isinstance(self.owner, dict):
            self.owner[self.key] = content
        else:
            setattr(self.owner, self.key, content)

    def enter(self, recorder: Recorder, memory: str) -> None:
        """Store the content before the step, and register it with the recorder.

        `memory` is the kind of storage for an array.
        """
        self.before = self.read()
        if self.kind == "array" and isinstance(self.before, recorder.real.array_type):
            self.original = self.before
            self.before, self.value = recorder.add_array(self.before, memory, self.name)
            self.write(self.before)
        elif self.kind in ("number", "option"):
            recorder.add_number(self.before, self.owner, self.key, self.name)

    def changed(self) -> bool:
        """Return whether the step changed the content."""
        return self.after is not self.before


class Slots:
    """The slots of a state and of arguments, in the order of their discovery."""

    def __init__(self, state: StepState, arguments: Iterable[Tensor]) -> None:
        self.all: list[Slot] = []
        self.flats: dict[int, FlatParameters] = {}  # packed parameters, by id
        # tensors with their leaves and names, by the id of the tensor
        self.leaves: dict[int, tuple[Tensor, Leaf, str]] = {}
        self.computed: list[tuple[Tensor, str]] = []  # tensors with a graph, with their names
        self._seen: set[int] = set()
        self._add("other", grad_enabled, "", "the grad mode")
        self._add("other", _default, "", "the default device")
        self._add("other", default_dtype, "", "the default dtype")
        self._add("other", autocast_dtypes, "", "the autocast mode")
        for name, optimizer in state.of(Optimizer):
            for i, group in enumerate(optimizer.param_groups):
                self._numbers("option", group, f"{name}.param_groups[{i}][{{!r}}]")
            for flat in optimizer.flats():
                self._flat(flat)
        for name, tensor in state.of(Tensor):
            self._tensor(tensor, name)
        for name, module in state.of(Module):
            self._add("mode", module, "training", f"{name}.training")
        for name, generator in state.of(Generator):
            self._add("number", generator, "_state", name)
        for i, x in enumerate(arguments):
            self._tensor(x, f"arg{i}")

    def _add(self, kind: str, owner: Any, key: Any, name: str) -> None:
        self.all.append(Slot(kind, owner, key, name))

    def _numbers(self, kind: str, options: dict[str, Any], name: str) -> None:
        for key, value in options.items():
            if key != "params":
                self._add(kind if _is_numeric(value) else "other", options, key, name.format(key))

    def _tensor(self, x: Any, name: str) -> None:
        """Add the slots of a tensor, its gradient, and the buffers in which it is packed."""
        # a tensor with a graph from before the step stays foreign
        if x is None or id(x) in self._seen:
            return
        self._seen.add(id(x))
        if not x.is_leaf:
            self.computed.append((x, name))
            return
        leaf = x._leaf
        if leaf is not None and leaf.receiver is not None:
            flat = leaf.receiver.flat()
            if flat is None:
                # the optimizer is gone, or packs the parameters again in its next step
                leaf.receiver = None
            else:
                # before the parameter, so that the buffers stand for the arrays inside them
                self._flat(flat)
        self._add("array", x, "_data", name)
        self._add("placement", x, "_placement", name)
        self._add("other", x, "_edge", f"{name}.requires_grad")
        if leaf is not None:
            self.leaves[id(x)] = x, leaf, name
            self._add("grad", leaf, "grad", f"{name}.grad")
            self._tensor(leaf.grad, f"{name}.grad")

    def _flat(self, flat: FlatParameters) -> None:
        """Add the buffers of packed parameters, of their gradients, and of their moments."""
        if id(flat) in self.flats:
            return
        self.flats[id(flat)] = flat
        mark = "" if len(self.flats) == 1 else str(len(self.flats) - 1)
        whole = {"params": flat.buffer, "grads": flat.gradients.buffer, **flat.arrays}
        gradients = flat.gradients
        for name, tensor in whole.items():
            self._tensor(tensor, f"{name}{mark}")
        for i in filter(flat.packs, range(len(flat.params))):
            self._tensor(flat.segments[i], f"params{mark}[{i}]")
            self._tensor(gradients.views[i], f"grads{mark}[{i}]")
            self._tensor(gradients.tensors[i], f"grads{mark}[{i}]")
        self._numbers("number", flat.numbers, f"{{}}{mark}")


def buffers_of(flat: FlatParameters) -> list[Tensor]:
    """Return the tensors that hold packed parameters, their gradients, and their moments."""
    gradients = flat.gradients
    buffers = [flat.buffer, *flat.arrays.values(), gradients.buffer]
    for i in filter(flat.packs, range(len(flat.params))):
        buffers += [flat.segments[i], gradients.views[i], gradients.tensors[i]]
    return buffers


def _is_numeric(value: Any) -> bool:
    if type(value) is tuple:
        return bool(value) and all(map(_is_numeric, value))
    scalar = (
        hasattr(value, "item")
        and getattr(value, "shape", None) == ()
        and not isinstance(value, Tensor)
    )
    return type(value) in (int, float) or (scalar and value.dtype.kind in "iuf")


class Recording:
    """A step that is being recorded: its slots, its arguments and its result."""

    def __init__(
        self,
        state: StepState,
        slots: Slots,
        recorder: Recorder,
        tensors: list[Tensor],
        structure: Any,
    ) -> None:
        self.state, self.slots, self.recorder = state, slots, recorder
        self.tensors, self.structure = tensors, structure  # the arguments'
        self.layouts = [
            (type(x), x._placement, x._edge is not None, x._data.shape, x._data.strides)
            for x in tensors
        ]
        leaves = [leaf for _, leaf, _ in slots.leaves.values()]
        self.gradients = {id(leaf): leaf.grad for leaf in leaves}  # before the step, like `_hooks`
        self._hooks = {id(leaf): list((leaf.hooks or {}).values()) for leaf in leaves}
        recorder.computed = {id(x._data): (ref(x._data), name) for x, name in slots.computed}
        inputs = set(map(id, tensors)) - state.named.keys()
        for slot in slots.all:
            slot.enter(recorder, "input" if id(slot.owner) in inputs else "state")
        self.arrays = [slot for slot in slots.all if slot.value is not None]
        #: Weak references to tensors that share memory with the slots' tensors, and are updated
        #: with them.
        self._relatives = [
            ref(x) for s in self.arrays if has_family(s.owner) for x in family_of(s.owner)
        ]
        self.owners = {id(slot.owner) for slot in slots.all if slot.kind == "array"}
        self.changes: list[Slot] = []  # the slots that the step changed
        self.changed: set[tuple[int, Any]] = set()  # the ids of their owners, and their keys
        self.result: Any = None
        owners = [x for _, x in (*state.of(Module), *state.of(Optimizer))]
        self._attributes = [(x, dict(vars(x))) for x in owners]
        self._packings = [(x, _packing(x)) for _, x in state.of(Optimizer)]
        tensors = [slot.owner for slot in slots.all if slot.kind == "array"]
        self._times = [(x, getattr(x, "_changed", 0)) for x in tensors]
        self._update_times = [(flat, flat.changed) for flat in slots.flats.values()]

    def is_identified(self, tensor: Tensor) -> bool:
        """Return whether an argument has to be the same tensor in each call.

        It is part of the state, or a parameter.
        """
        leaf = tensor._leaf
        return id(tensor) in self.state.named or (
            leaf is not None and (leaf.receiver is not None or not tensor._out_of_place_updates)
        )

    # The end of the step

    def finish(self) -> None:
        """Read the contents of the slots at the end of the step."""
        for slot in self.slots.all:
            slot.after = slot.read()
        self.changes = [slot for slot in self.slots.all if slot.changed()]
        self.changed = {(id(slot.owner), slot.key) for slot in self.changes}

    def restore_arrays(self) -> None:
        """Return the array objects from before the step to the tensors, in place of stand-ins."""
        for slot in self.arrays:
            if slot.read() is slot.before:
                slot.write(slot.original)

    def release_arrays(self) -> None:
        """Give tensors from before the step new array objects in place of the step's arrays."""
        self.restore_arrays()
        changed = [slot.owner for slot in self.changes if slot.kind == "array"]
        relatives = [x for reference in self._relatives if (x := reference()) is not None]
        for x in [*changed, *relatives]:
            if self.recorder.knows(x._data):
                x._data = x._data.view()
        for slot in self.arrays:
            slot.before = None
        self.recorder.release()

    def forget(self) -> None:
        """Drop the result, and the contents of the slots after the step."""
        self.result = None
        for slot in self.slots.all:
            slot.after = None

    def follows(self, x: Tensor) -> bool:
        """Return whether a tensor is a view of a changed tensor, and so is recomputed with it."""
        return (id(base_of(x)), "_data") in self.changed

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
        for slot in self.changes:
            if slot.kind == "option":
                yield f"{slot.name}: set it before or after the step, as a schedule does"
            elif slot.kind == "other" or (slot.kind == "number" and slot.after is None):
                yield slot.name
            elif slot.kind == "placement" and (id(slot.owner), "_data") not in self.changed:
                yield f"the dtype of {slot.name}"
        if self.state.was_rebound({id(slot.owner) for slot in self.slots.all}):
            yield "which tensors a container or an attribute holds"

    def stores_tensors(self) -> bool:
        """Return whether the step has stored tensors that it made in attributes of modules."""
        return any(
            value is not before.get(key, self)
            and any(isinstance(part, Tensor) for _, part in trees.leaves(value))
            for x, before in self._attributes
            for key, value in vars(x).items()
            if key not in _KEPT_APART
        )

    def has_same_layouts(self) -> bool:
        """Return whether optimizers pack parameters and moments as they did before the step."""
        return all(_packing(x) == before for x, before in self._packings)

    def marked(self) -> list[Tensor]:
        """Return the tensors that the step marked as changed: see `mark_changed`."""
        return [x for x, before in self._times if getattr(x, "_changed", 0) != before]

    def updated(self) -> list[FlatParameters]:
        """Return the packed parameters that the step updated."""
        return [flat for flat, before in self._update_times if flat.changed != before]


def _packing(optimizer: Any) -> Any:
    """Return how an optimizer packs its parameters and moments, to be compared."""
    return (
        {key: id(packed) for key, packed in optimizer._packed.items()},
        list(map(id, optimizer._unpacked_state.values())),
        [
            (sorted(flat.arrays), sorted(flat.numbers), id(flat.gradients.tensors))
            for flat in optimizer.flats()
        ],
        [
            (id(group), sorted(group), list(map(id, group["params"])))
            for group in optimizer.param_groups
        ],
    )
