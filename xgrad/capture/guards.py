"""Guards: the conditions under which a program may be replayed."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Sequence
from contextvars import ContextVar
from copy import copy
from typing import Any

from xgrad.capture.check_writer import CheckWriter
from xgrad.capture.program import Program
from xgrad.capture.slots import Recording, buffers_of
from xgrad.capture.state import holds_state, same_objects
from xgrad.core.tensor import Tensor
from xgrad.core.views import base_of, family_of, has_family
from xgrad.nn.module import edits
from xgrad.optim.flat import FlatParameters
from xgrad.optim.optimizer import Optimizer
from xgrad.support import trees

# Arguments


def structure_of(x: Any, contents: list[Any]) -> Any:
    """Return the structure of arguments, for comparison, and append their leaves to `contents`."""
    if isinstance(x, dict):
        return type(x), *[(key, structure_of(part, contents)) for key, part in x.items()]
    if isinstance(x, (list, tuple)):
        return type(x), *[structure_of(part, contents) for part in x]
    contents.append(x)
    return Tensor if isinstance(x, Tensor) else Other(x)


class Other:
    """An argument that is no tensor, compared by type and value.

    Floats are compared by their text, because of -0.0 and NaN.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = copy(value) if isinstance(value, (set, bytearray, deque)) else value

    def __eq__(self, other: object) -> bool:
        if type(other) is not Other:
            return False
        one, two = self.value, other.value
        if one is two or isinstance(one, (float, complex)):
            return one is two or (type(one) is type(two) and repr(one) == repr(two))
        holds = any(isinstance(part, Tensor) for part in getattr(one, "__dict__", {}).values())
        return not holds and equal(one, two)  # equal objects may hold other tensors


# Guards


def write_guards(
    writer: CheckWriter, recording: Recording, program: Program, returned: set[int]
) -> list[FlatParameters]:
    """Write the guards of a program, and return its packed parameters.

    `returned` are the ids of tensors that the program returns.
    """
    functions = (
        equal,
        has_family,
        holds_state,
        is_of,
        same_objects,
        shared_with,
        tensor_matches,
        write_path,
    )
    writer.scope.update({function.__name__: function for function in functions}, edits=edits)
    guards = _Guards(writer, recording, program, returned)
    guards.modes()
    guards.arguments()
    guards.links()
    guards.modules()
    guards.optimizers()
    guards.shared_memory()
    guards.tensors()
    return guards.flats


class _Guards:
    """The guards of a program, subject by subject."""

    def __init__(
        self, writer: CheckWriter, recording: Recording, program: Program, returned: set[int]
    ) -> None:
        self.writer = writer
        self.guard = writer.guard
        self.recording = recording
        self.program = program
        self.uses = {x.number for x in (*program.inputs, *program.state)}
        slots = recording.slots
        self.numbers = {
            id(slot.owner): slot.value.number for slot in recording.arrays if slot.value is not None
        }
        self.flats = [flat for flat in slots.flats.values() if self._is_used(flat)]
        buffers = {id(x) for flat in slots.flats.values() for x in buffers_of(flat)}
        # arguments that are not state
        self.own = {id(x) for x in recording.tensors if not recording.is_identified(x)}
        self.tensors_held = [
            slot.owner for slot in recording.arrays if id(slot.owner) not in buffers
        ]
        self.used = {
            id(x)
            for x in self.tensors_held
            if self.numbers[id(x)] in self.uses or id(x) in slots.leaves
        }
        self.used |= {id(p) for flat in self.flats for p in flat.params} | returned
        self.written = [slot.owner for slot in recording.changes if slot.kind == "array"]
        self.used |= set(map(id, self.written))

    def _is_used(self, flat: FlatParameters) -> bool:
        changed = any((id(leaf), "grad") in self.recording.changed for leaf in flat.leaves)
        return changed or any(self.numbers.get(id(x)) in self.uses for x in buffers_of(flat))

    def modes(self) -> None:
        """Guard the modes of the thread or task."""
        for slot in self.recording.slots.all:
            if isinstance(slot.owner, ContextVar):
                self.guard(f"{self.writer.name(slot.owner.get)}() is {{}}", slot.before)

    def arguments(self) -> None:
        """Guard the layouts of tensors among the arguments, and which of them are the same."""
        first: dict[Any, list[int]] = {}  # the indices of arguments with equal layouts
        tensors = self.recording.tensors
        for i, (tensor, expected) in enumerate(zip(tensors, self.recording.layouts, strict=True)):
            self.guard(
                f"type(a{i}) is {{}} and a{i}._placement is {{}} and (a{i}._edge is not None) is"
                f" {{}} and a{i}._data.shape == {{}} and a{i}._data.strides == {{}}",
                *expected,
            )
            for j in first.setdefault(expected, []):
                self.guard(f"(a{i} is a{j}) is {tensors[j] is tensor}")
            first[expected].append(i)
            if self.recording.is_identified(tensor):
                self.guard(f"a{i} is {{}}", tensor)

    def links(self) -> None:
        """Guard the paths to state that the program uses, and values that may become tensors.

        Tensors on unused paths must keep their placement and shape.
        """
        named = self.recording.state.named.values()
        used = self.used | {id(x) for _, x in named if not isinstance(x, Tensor)}
        for text, objects, value, leads_to in self.recording.state.links:
            if text == "{}" and not value:
                self.guard("not ({0} and holds_state({0}))", *objects)
            elif not used.isdisjoint(leads_to):
                self.guard(
                    "same_objects(tuple({}), {})" if text == "{}" else f"{text} is {{}}",
                    *objects,
                    value,
                )
            elif isinstance(value, Tensor):
                self.guard(
                    f"tensor_matches({text}, {{}}, {{}})", *objects, value._placement, value.shape
                )
            elif not leads_to:
                self.guard(f"type({text}) is {{}}", *objects, type(value))

    def modules(self) -> None:
        """Guard the modes, the parameters and the buffers of modules."""
        self.guard("{0}.edits == edits.number or {0}.same_modules()", self.recording.state)

    def optimizers(self) -> None:
        """Guard groups of optimizers, their non-numeric options, and how parameters are packed."""
        for _, optimizer in self.recording.state.of(Optimizer):
            self.guard("len({}.param_groups) == {}", optimizer, len(optimizer.param_groups))
            for i, group in enumerate(optimizer.param_groups):
                params = group["params"]
                self.guard("{}.param_groups[{}] is {}", optimizer, i, group)
                self.guard(
                    "{}._packed.get(id({})) is {}",
                    optimizer,
                    group,
                    optimizer._packed.get(id(group)),
                )
                self.guard(
                    "{0}['params'] is {1} and same_objects({1}, {2})", group, params, tuple(params)
                )
        for slot in self.recording.slots.all:
            if slot.kind == "other" and isinstance(slot.owner, dict):  # a non-numeric option
                # a list may be changed in place
                kept = list(slot.before) if isinstance(slot.before, list) else slot.before
                # Python warns of ``is`` with a literal
                quick = "" if isinstance(kept, str) else "{0}[{1}] is {2} or "
                self.guard(quick + "equal({0}[{1}], {2})", slot.owner, slot.key, kept)
        for flat in self.flats:
            self.guard("len({}.arrays) == {}", flat, len(flat.arrays))

    def shared_memory(self) -> None:
        """Guard which tensors share memory with the ones that the step writes to, and how."""
        if not (self.written or self.recording.marked() or self.recording.updated()):
            return
        placements = {id(x): id(x) for x in self.tensors_held if id(x) not in self.own}
        for x in self.written:
            if id(x) in placements.keys() | self.own:
                # the tensors that are written to as well
                known = shared_with(x, placements, self.recording.tensors)
                test = "shared_with({0}, {1}, args) == {2}"
                self.guard(
                    test if len(known) > 1 else "not has_family({0}) or " + test,
                    x,
                    placements,
                    known,
                )
                self.guard("write_path({}) == {}", x, write_path(x))
        # An argument must be a tensor of the state, or a view of one, if and only if it was when
        # the step was recorded.
        ids = {id(x) for _, x in self.recording.state.of(Tensor)}
        for x in self.recording.tensors:
            if self.recording.is_identified(x):
                continue
            if is_of(x, ids):
                self.guard("is_of({}, {})", x, ids)
            else:
                self.guard(
                    "id({0}) not in {1} and not (getattr({0}, '_view', None) and is_of({0}, {1}))",
                    x,
                    ids,
                )

    def tensors(self) -> None:
        """Guard which tensors share one array, and the leaves of tensors with their gradients."""
        holders: dict[int, Any] = {}
        for x in self.tensors_held:  # tensors with one array have one value in the program
            if (first := holders.setdefault(self.numbers[id(x)], x)) is not x:
                self.guard("{}._data is {}._data", x, first)
            if id(x) in self.recording.slots.leaves:
                self._leaf(x)
            elif id(x) in self.used and id(x) not in self.own:
                self.guard("{}._edge is {}", x, x._edge)

    def _leaf(self, tensor: Tensor) -> None:
        """Guard a leaf, whether it has a gradient, and where, if the program uses the gradient."""
        leaf: Any = tensor._leaf
        gradient, slot = self.recording.gradients[id(leaf)], leaf.receiver
        if leaf.hooks:
            self.guard("list(({}.hooks or {{}}).values()) == {}", leaf, list(leaf.hooks.values()))
            self.guard("{}._edge is {} and {}.receiver is {}", tensor, tensor._edge, leaf, slot)
        else:
            self.guard(
                "{0}._edge is {1} and {2}.receiver is {3} and not {2}.hooks",
                tensor,
                tensor._edge,
                leaf,
                slot,
            )
        if tensor._edge is not leaf:  # frozen
            self.guard("{}._leaf is {}", tensor, leaf)
        if gradient is None:
            self.guard("{}.grad is None", leaf)
        elif slot is None or not self._depends_on(gradient, slot):
            self.guard("{}.grad is not None", leaf)
        else:
            within = slot.gradients.tensors[slot.index] is gradient
            self.guard(
                "{0}.grad is not None and ({1}.gradients.tensors[{2}] is {0}.grad) is {3}",
                leaf, slot, slot.index, within,
            )  # fmt: skip
        if gradient is not None and id(gradient) in self.recording.state.named:
            self.guard("{}.grad is {}", leaf, gradient)

    def _depends_on(self, gradient: Tensor, slot: Any) -> bool:
        """Return whether the program uses or returns a gradient from before the step.

        It may use the gradient itself or the buffer that contains it.
        """
        number, buffers = self.numbers.get(id(gradient)), slot.gradients
        part = {number, self.numbers.get(id(buffers.views[slot.index]))}
        if number in self.uses or self.program.reads_first(
            part, self.numbers.get(id(buffers.buffer))
        ):
            return True
        is_packed = gradient is buffers.tensors[slot.index]
        return is_packed and any(x is gradient for _, x in trees.leaves(self.recording.result))


# Functions called by the guards


def equal(one: Any, other: Any) -> bool:
    """Return whether two objects have the same type and are equal."""
    try:
        return type(one) is type(other) and bool(one == other)
    except Exception:
        return False


def shared_with(x: Tensor, placements: dict[int, Any], args: Sequence[Any]) -> dict[Any, Any]:
    """Return the tensors that share memory with `x`, each with its base and the way it views it.

    Tensors are named by the ids or numbers in `placements` and `args`; other tensors are left out.
    The entry of a tensor is None if its base is not among them.
    """
    placements = placements | {id(arg): i for i, arg in enumerate(args)}
    shared: dict[Any, Any] = {}
    for member in family_of(x):
        if id(member) in placements:
            base = base_of(member)
            known = base is not None and id(base) in placements
            shared[placements[id(member)]] = (
                (placements[id(base)], *(member._view or ())[1:]) if known else None
            )
    return shared


def write_path(x: Tensor) -> tuple[type, ...] | None:
    """Return the edge types of the tensors that a write to `x` propagates to: its base, and so on.

    They decide whether the write is recorded or raises an error. None for an element, to which a
    write is an error.
    """
    if getattr(x, "_view", x) is None:
        return None
    path = []
    base = base_of(x)
    while base is not None:
        path.append(type(base._edge))
        base = base_of(base)
    return tuple(path)


def is_of(x: Tensor, ids: Container[int]) -> bool:
    """Return whether a tensor, or one that it is a view of, has an id in `ids`."""
    while id(x) not in ids:
        base = base_of(x)
        if base is None:
            return False
        x = base
    return True


def tensor_matches(x: Any, placement: Any, shape: tuple[int, ...]) -> bool:
    """Return whether `x` is a tensor with the given placement and shape."""
    return isinstance(x, Tensor) and x._placement is placement and x.shape == shape
