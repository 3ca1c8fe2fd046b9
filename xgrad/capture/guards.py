"""Guards: the conditions under which a program may be replayed."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Sequence
from contextvars import ContextVar
from copy import copy
from typing import Any

from xgrad.capture.code_writer import CodeWriter
from xgrad.capture.recording import Recording, buffers_of
from xgrad.capture.state import holds_state, same_objects
from xgrad.core.tensor import Tensor
from xgrad.core.views import base_of, family_of, has_family
from xgrad.nn.module import edits
from xgrad.optim.flat import FlatParameters
from xgrad.optim.optimizer import Optimizer


def structure_of(x: Any, contents: list[Any]) -> Any:
    """Return the structure of arguments, to be compared with that of others, and add their leaves to a list."""
    if isinstance(x, dict):
        return type(x), *[(key, structure_of(part, contents)) for key, part in x.items()]
    if isinstance(x, (list, tuple)):
        return type(x), *[structure_of(part, contents) for part in x]
    contents.append(x)
    return Tensor if isinstance(x, Tensor) else Other(x)


class Other:
    """An argument that is no tensor, compared by type and value, and floats by their text, for -0.0 and NaN."""

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


def write_guards(
    writer: CodeWriter, recording: Recording, uses: Container[int], returned: set[int]
) -> list[FlatParameters]:
    """Write the guards, and return the packed parameters of the program.

    The program uses the values of some numbers, and returns tensors of some ids.
    """
    state, slots, guard = recording.state, recording.slots, writer.guard
    functions = (equal, has_family, holds_state, is_of, same_objects, shared_with, tensor_matches)
    writer.scope.update({function.__name__: function for function in functions}, edits=edits)
    for slot in slots.all:
        if isinstance(slot.owner, ContextVar):
            guard(f"{writer.name(slot.owner.get)}() is not {{}}", slot.before)
    _guard_arguments(writer, recording)
    numbers = {id(slot.owner): slot.traced.value.number for slot in recording.arrays}
    flats = [
        flat
        for flat in slots.flats.values()
        if any(numbers.get(id(x)) in uses for x in buffers_of(flat))
        or any((id(leaf), "grad") in recording.changed for leaf in flat.leaves)
    ]
    buffers = {id(x) for flat in slots.flats.values() for x in buffers_of(flat)}
    arguments = {id(x) for x in recording.tensors if not recording.is_identified(x)}
    tensors = [slot.owner for slot in recording.arrays if id(slot.owner) not in buffers]
    used = {id(x) for x in tensors if numbers[id(x)] in uses or id(x) in slots.leaves}
    used |= {id(p) for flat in flats for p in flat.params} | returned
    used |= {id(slot.owner) for slot in recording.changes if slot.kind == "array"}
    _guard_links(writer, recording, used | {id(x) for _, x in state.named.values() if not isinstance(x, Tensor)})
    guard("{0}.edits != edits.number and not {0}.same_modules()", state)
    for _, optimizer in state.of(Optimizer):
        guard("len({}.param_groups) != {}", optimizer, len(optimizer.param_groups))
        for i, group in enumerate(optimizer.param_groups):
            params = group["params"]
            guard("{}.param_groups[{}] is not {}", optimizer, i, group)
            guard("{}._packed.get(id({})) is not {}", optimizer, group, optimizer._packed.get(id(group)))
            guard("{0}['params'] is not {1} or not same_objects({1}, {2})", group, params, tuple(params))
    for slot in slots.all:
        if slot.kind == "other" and isinstance(slot.owner, dict):  # an option that is no number
            kept = list(slot.before) if isinstance(slot.before, list) else slot.before  # it may be changed in place
            quick = "" if isinstance(kept, str) else "{0}[{1}] is not {2} and "  # Python warns of ``is`` with a literal
            guard(quick + "not equal({0}[{1}], {2})", slot.owner, slot.key, kept)
    for flat in flats:
        guard("len({}.arrays) != {}", flat, len(flat.arrays))
    placements = {id(x): id(x) for x in tensors if id(x) not in arguments}
    for slot in recording.changes:
        if slot.kind == "array" and id(slot.owner) in placements.keys() | arguments:
            known = shared_with(slot.owner, placements, recording.tensors)  # which are written to as well
            test = "shared_with({0}, {1}, args) != {2}"
            guard(test if len(known) > 1 else "has_family({0}) and " + test, slot.owner, placements, known)
    if recording.changed_values() or any(slot.kind == "array" for slot in recording.changes):
        _guard_origins(writer, recording)
    holders: dict[int, Any] = {}
    for x in tensors:  # those that hold one array have one value in the program
        if (first := holders.setdefault(numbers[id(x)], x)) is not x:
            guard("{}._data is not {}._data", x, first)
        if id(x) in slots.leaves:
            _guard_leaf(writer, recording, x, numbers, uses)
        elif id(x) in used and id(x) not in arguments:
            guard("{}._edge is not {}", x, x._edge)
    return flats


def _guard_links(writer: CodeWriter, recording: Recording, used: set[int]) -> None:
    """Guard what leads to state that the program uses, and what else may become a tensor or one of another shape."""
    for text, objects, value, leads_to in recording.state.links:
        if text == "{}" and not value:
            writer.guard("{0} and holds_state({0})", *objects)
        elif not used.isdisjoint(leads_to):
            writer.guard("not same_objects(tuple({}), {})" if text == "{}" else f"{text} is not {{}}", *objects, value)
        elif isinstance(value, Tensor):
            placement = getattr(value.device, "real", value.device).placements[value._placement.dtype]
            writer.guard(f"not tensor_matches({text}, {{}}, {{}})", *objects, placement, value.shape)
        elif not leads_to:
            writer.guard(f"type({text}) is not {{}}", *objects, type(value))


def _guard_arguments(writer: CodeWriter, recording: Recording) -> None:
    first: dict[Any, list[int]] = {}  # arguments that are alike
    for i, (tensor, expected) in enumerate(zip(recording.tensors, recording.layouts, strict=True)):
        writer.guard(
            f"type(a{i}) is not {{}} or a{i}._placement is not {{}} or (a{i}._edge is not None) is not {{}} or "
            f"a{i}._data.shape != {{}} or a{i}._data.strides != {{}}", *expected,
        )  # fmt: skip
        for j in first.setdefault(expected, []):
            writer.guard(f"(a{i} is a{j}) is not {{}}", recording.tensors[j] is tensor)
        first[expected].append(i)
        if recording.is_identified(tensor):
            writer.guard(f"a{i} is not {{}}", tensor)


def _guard_origins(writer: CodeWriter, recording: Recording) -> None:
    """Guard that arguments are of the state, as tensors of it or as their views, where they were in the trace."""
    ids = {id(x) for _, x in recording.state.of(Tensor)}
    for x in recording.tensors:
        if recording.is_identified(x):
            continue
        if is_of(x, ids):
            writer.guard("not is_of({}, {})", x, ids)
        else:
            writer.guard("id({0}) in {1} or (getattr({0}, '_view', None) and is_of({0}, {1}))", x, ids)


def _guard_leaf(
    writer: CodeWriter, recording: Recording, tensor: Tensor, numbers: dict[int, int], uses: Container[int]
) -> None:
    """Guard a leaf, and whether its gradient is there, and where if the program uses it."""
    leaf: Any = tensor._leaf
    gradient, slot, guard = recording.gradients[id(leaf)], leaf.slot, writer.guard
    if leaf.hooks:
        guard("list(({}.hooks or {{}}).values()) != {}", leaf, list(leaf.hooks.values()))
        guard("{}._edge is not {} or {}.slot is not {}", tensor, tensor._edge, leaf, slot)
    else:
        guard("{0}._edge is not {1} or {2}.slot is not {3} or {2}.hooks", tensor, tensor._edge, leaf, slot)
    if tensor._edge is not leaf:  # frozen
        guard("{}._leaf is not {}", tensor, leaf)
    if gradient is None:
        guard("{}.grad is not None", leaf)
    elif slot is None or numbers.get(id(gradient)) not in uses:
        guard("{}.grad is None", leaf)
    else:
        within = slot.gradients.tensors[slot.index] is gradient
        guard("{0}.grad is None or ({1}.gradients.tensors[{2}] is {0}.grad) is not {3}", leaf, slot, slot.index, within)
    if gradient is not None and id(gradient) in recording.state.named:
        guard("{}.grad is not {}", leaf, gradient)


# Functions of the conditions


def equal(one: Any, other: Any) -> bool:
    """Return whether two things are equal, of one type."""
    try:
        return type(one) is type(other) and bool(one == other)
    except Exception:
        return False


def shared_with(x: Tensor, placements: dict[int, Any], args: Sequence[Any]) -> dict[Any, Any]:
    """Return the tensors that share the memory of one, by their id or number, each with how it is taken of another."""
    placements = placements | {id(arg): i for i, arg in enumerate(args)}
    shared: dict[Any, Any] = {}
    for member in family_of(x):
        if id(member) in placements:
            base = base_of(member)
            known = base is not None and id(base) in placements
            shared[placements[id(member)]] = (placements[id(base)], *(member._view or ())[1:]) if known else None
    return shared


def is_of(x: Tensor, ids: Container[int]) -> bool:
    """Return whether a tensor, or one that it is a view of, has one of some ids."""
    while id(x) not in ids:
        base = base_of(x)
        if base is None:
            return False
        x = base
    return True


def tensor_matches(x: Any, placement: Any, shape: tuple[int, ...]) -> bool:
    """Return whether something is a tensor of a place and shape."""
    return isinstance(x, Tensor) and x._placement is placement and x.shape == shape
