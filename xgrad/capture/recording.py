"""A step as it was traced: the state before and after, the arguments, and the result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from xgrad.backend.device import tracing
from xgrad.backend.devices import _default
from xgrad.capture.arrays import TracedArray
from xgrad.capture.slots import Slot, Slots
from xgrad.capture.state import State
from xgrad.capture.trace import Trace
from xgrad.core.dtypes import default_dtype
from xgrad.core.grad_mode import grad_enabled
from xgrad.core.graph import Leaf
from xgrad.core.tensor import Tensor
from xgrad.core.views import base_of
from xgrad.support import trees

_KEPT_APART = frozenset({"_packed", "_unpacked_state", "training"})  # attributes that have own rules


class Recording:
    """A step that is traced.

    Attributes
    ----------
    given, alike, structure : list, list, object
        The tensors among the arguments, what is to be alike of them, and the containers and other arguments.
    before, traced, after : list
        For each slot what it held, what stood for it, and what it held at the end of the step.
    gradients, hooks : dict
        The gradients and hooks before the step, by the id of the leaf.
    written : list of Tensor
        The tensors that the step wrote to.
    made, numbers : dict
        Tensors that the step returned or left as a gradient, and the numbers of their values, by id.
    """

    def __init__(self, state: State, slots: Slots, trace: Trace, given: list[Tensor], structure: Any) -> None:
        self.state, self.slots, self.trace, self.given, self.structure = state, slots, trace, given, structure
        self.modes_before: list[Any] = [(mode, mode.get()) for mode in (grad_enabled, _default, default_dtype)]
        self.alike = [(type(x), x._placement, x._edge is not None, x._data.shape, x._data.strides) for x in given]
        leaves = [leaf for _, leaf, _ in slots.leaves.values()]
        self.gradients = {id(leaf): leaf.grad for leaf in leaves}
        self.hooks = {id(leaf): list((leaf.hooks or {}).values()) for leaf in leaves}
        self.before = [slot.read() for slot in slots.all]
        arguments = set(map(id, given)) - state.tensors.keys()
        self.traced = [
            slot.substitute(trace, x, "input" if id(slot.owner) in arguments else "state")
            for slot, x in zip(slots.all, self.before, strict=True)
        ]
        self.after: list[Any] = []
        self.written: list[Tensor] = []
        self.made: dict[int, Tensor] = {}
        self.numbers: dict[int, int] = {}
        self.result: Any = None
        owners = [x for _, x in (*state.modules.values(), *state.optimizers.values())]
        self._attributes = [(x, dict(vars(x))) for x in owners]
        self._layouts = [(x, _layout(x)) for _, x in state.optimizers.values()]
        stamps = [(slot.owner, "_changed") for slot in slots.all if slot.kind == "array"]
        self._stamps = [(x, key, getattr(x, key, 0)) for x, key in (*stamps, *[(x, "changed") for x in leaves])]

    def arrays(self) -> Iterator[tuple[Slot, TracedArray]]:
        """Return the slots of arrays, each with what stood for it."""
        for slot, traced in zip(self.slots.all, self.traced, strict=True):
            if slot.kind == "array" and isinstance(traced, TracedArray):
                yield slot, traced

    def is_identified(self, tensor: Tensor) -> bool:
        """Return whether an argument must be the same tensor in each call: one of the state, or a parameter."""
        leaf = tensor._leaf
        return id(tensor) in self.state.tensors or (
            leaf is not None and (leaf.slot is not None or type(tensor) is not Tensor)
        )

    # The end of the step

    def finish(self) -> None:
        """Read what the slots hold at the end of the step."""
        self.after = [slot.read() for slot in self.slots.all]
        self.changed = {(id(slot.owner), slot.key) for slot, _ in self.changes()}

    def changes(self) -> Iterator[tuple[Slot, Any]]:
        """Return the slots that the step changed, each with what it held after."""
        for slot, traced, after in zip(self.slots.all, self.traced, self.after, strict=True):
            if after is not traced:
                yield slot, after

    def leaving(self, captured: bool) -> list[list[Any]]:
        """Return the calls after which all is as after the step without a trace.

        Results that are `captured` lose their history, as those of replays have none.
        """
        real, slots = self.trace.real, self.slots.all
        sets: list[Any] = []
        self.written = [x for x, key in self.stamped() if key == "_changed"]
        for slot, before, traced in zip(slots, self.before, self.traced, strict=True):
            now = slot.read()
            after = slot.restored(real, before, traced, now)
            if after is not now:
                sets.append(slot.writing(after))
            if slot.kind == "array" and now is not traced:
                self.written.append(slot.owner)
        known = {id(slot.owner) for slot in slots if slot.kind == "array"}
        found = [*[x for _, x in trees.leaves(self.result)], *[leaf.grad for _, leaf, _ in self.slots.leaves.values()]]
        found = [x for x in found if isinstance(x, Tensor) and isinstance(x._data, TracedArray)]
        for x in found:  # which grows on the way
            if (base := base_of(x)) is not None and isinstance(base._data, TracedArray):
                found.append(base)
        self.made = {id(x): x for x in found if id(x) not in known}
        for x in self.made.values() if captured else ():
            self.numbers[id(x)] = x._data.value.number
            placement, edge = real.placements[x._placement.dtype], x._edge if type(x._edge) is Leaf else None
            new = {"_data": x._data.array, "_placement": placement, "_edge": edge}
            sets += [(setattr, x, name, value) for name, value in new.items()]
            if edge is not None:
                sets.append((setattr, edge, "placement", placement))
        modes = [(_default.set, real)] if _default.get() is self.trace.device else []
        return [sets, modes, [(tracing.set, None)]]

    def forget(self) -> None:
        """Drop what stands for arrays."""
        self.before, self.traced, self.after = [], [], []
        self.trace.forget()

    # Changes

    def faults(self) -> Iterator[str]:
        """Return what the step changed and is not to."""
        for x, before in self._attributes:
            now = vars(x)
            for key in (before.keys() | now.keys()) - _KEPT_APART:
                if before.get(key, self) is not now.get(key, self):
                    yield f"{type(x).__name__}.{key}"
        for _, leaf, name in self.slots.leaves.values():
            if list((leaf.hooks or {}).values()) != self.hooks[id(leaf)]:
                yield f"the hooks of {name}"
        if default_dtype.get() is not self.modes_before[-1][1]:
            yield "the default dtype"
        if self.state.moved({id(slot.owner) for slot in self.slots.all}):
            yield "which tensors a container or an attribute holds"

    def modes(self) -> list[tuple[Any, bool]]:
        """Return the modules whose mode the step changed, with the new mode."""
        found = [(x, vars(x).get("training"), before.get("training")) for x, before in self._attributes]
        return [(x, bool(now)) for x, now, before in found if now is not before]

    def is_settled(self) -> bool:
        """Return whether optimizers keep parameters and moments as they did before the step."""
        return all(_layout(x) == before for x, before in self._layouts)

    def stamped(self) -> list[tuple[Any, str]]:
        """Return the tensors and leaves that the step changed, with the attribute that tells when."""
        return [(x, key) for x, key, before in self._stamps if getattr(x, key, 0) != before]


def _layout(optimizer: Any) -> Any:
    """Return how an optimizer keeps its parameters: equal as long as it keeps them so."""
    flats = optimizer.flats()
    return (
        {key: id(packed) for key, packed in optimizer._packed.items()},
        list(map(id, optimizer._unpacked_state.values())),
        [(sorted(flat.arrays), sorted(flat.numbers), id(flat.gradients.tensors)) for flat in flats],
        [(id(group), sorted(group), list(map(id, group["params"]))) for group in optimizer.param_groups],
    )
