"""The conditions on which a program holds for a call."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Mapping
from operator import is_
from typing import Any

from xgrad.capture.code_writer import CodeWriter
from xgrad.capture.outcome import Outcome, buffers_of
from xgrad.graph import Leaf
from xgrad.optim.flat import Flat
from xgrad.tensor import Tensor


def write_guards(writer: CodeWriter, outcome: Outcome, uses: dict[int, bool]) -> list[Flat]:
    """Write the conditions, and return the packed parameters that the program uses.

    Parameters
    ----------
    uses : dict of int to bool
        The values of the program: see `Program.first_uses`.
    """
    state, guard = outcome.state, writer.guard
    guard("grad_enabled() is not {} or default() is not {}", outcome.recording, outcome.default)
    _arguments(writer, outcome)
    for cell, value in state.cells:
        guard("{}.cell_contents is not {}", cell, value)
    for mapping, key, value in state.items:
        guard("{}[{}] is not {}", mapping, key, value)
    for owner, key, value in state.attributes:
        guard(f"{{}}.{key} is not {{}}", owner, value)
    if state.modules:
        guard("{0}.edits != edits.number and not {0}.same_modules()", state)
    for _, optimizer in state.optimizers.values():
        guard("len({}.param_groups) != {}", optimizer, len(optimizer.param_groups))
        for group in optimizer.param_groups:
            params, laid = group["params"], optimizer._laid.get(id(group))
            guard("{}._laid.get({}) is not {}", optimizer, id(group), laid)
            guard("{0}['params'] is not {1} or not same({1}, {2})", group, params, tuple(params))
    for slot, value in zip(outcome.slots.all, outcome.before, strict=True):
        if slot.kind == "other" and isinstance(slot.owner, dict):  # an option that is no number
            value = list(value) if isinstance(value, list) else value  # which may be changed in place
            guard("{0}[{1}] is not {2} and not equal({0}[{1}], {2})", slot.owner, slot.key, value)
    flats = outcome.flats(uses)
    for flat in flats:
        guard("len({}.arrays) != {}", flat, len(flat.arrays))
    given = {id(x) for x in outcome.given if not outcome.is_identified(x)}
    _shared_arrays(writer, outcome)
    found = list(outcome.tensors(uses, flats))
    used = {id(x) for x, _ in found} | state.modules.keys() | state.optimizers.keys() | state.generators.keys()
    for container in state.empty:
        guard("holds_state({})", container)
    for container, contents in state.sequences:
        if _leads_to(container.values() if isinstance(container, Mapping) else contents, used):
            guard("not same(tuple({}), {})", container, contents)
    for tensor, edge in found:
        if id(tensor) in outcome.slots.leaves and id(tensor) not in given:
            _leaf(writer, outcome, uses, *outcome.slots.leaves[id(tensor)][:2])
        elif id(tensor) not in given:
            guard("{}._edge is not {}", tensor, edge)
    return flats


def _shared_arrays(writer: CodeWriter, outcome: Outcome) -> None:
    """Write that tensors which hold one array hold one array: the program has one value for them."""
    buffers = {id(x) for flat in outcome.slots.flats.values() for x in buffers_of(flat)}
    holders: dict[int, list[str]] = {}
    for slot, traced in outcome.arrays():
        if id(slot.owner) not in buffers:
            holders.setdefault(traced.value.number, []).append(outcome.source_of(writer, slot.owner))
    for first, *others in holders.values():
        for other in others:
            writer.guard(f"{other}._data is not {first}._data")


def _leads_to(contents: Iterable[Any], used: Container[int]) -> bool:
    """Return whether containers hold something that the program uses."""
    for x in contents:
        inner = x.values() if isinstance(x, Mapping) else x if isinstance(x, (list, tuple, set, deque)) else ()
        if id(x) in used or _leads_to(inner, used):
            return True
    return False


def _arguments(writer: CodeWriter, outcome: Outcome) -> None:
    alike: dict[Any, list[int]] = {}
    for i, tensor in enumerate(outcome.given):
        edge, data, leaf = outcome.edges[i], outcome.given_arrays[i], tensor._leaf
        expected = type(tensor), outcome.places[i], edge is not None, data.shape, data.strides
        writer.guard(
            f"type(a{i}) is not {{}} or a{i}._place is not {{}} or (a{i}._edge is None) is {{}} or "
            f"a{i}._data.shape != {{}} or a{i}._data.strides != {{}}", *expected,
        )  # fmt: skip
        for j in alike.setdefault(expected, []):
            writer.guard(f"(a{i} is a{j}) is not {{}}", outcome.given[j] is tensor)
        alike[expected].append(i)
        if outcome.is_identified(tensor):
            writer.guard(f"a{i} is not {{}}", tensor)
        elif leaf is not None:
            had, hooks = outcome.gradients.get(id(tensor)) is not None, list((leaf.hooks or {}).values())
            writer.guard(f"not like(a{i}._leaf, {{}}, {{}})", had, hooks)


def _leaf(writer: CodeWriter, outcome: Outcome, uses: dict[int, bool], tensor: Tensor, leaf: Leaf) -> None:
    """Write the conditions on a leaf: where its gradient is matters if the program uses it."""
    gradient, slot, edge = outcome.gradients[id(tensor)], leaf.slot, outcome.edge_of(tensor)
    if leaf.hooks:
        writer.guard("list(({}.hooks or {{}}).values()) != {}", leaf, list(leaf.hooks.values()))
        writer.guard("{}._edge is not {} or {}.slot is not {}", tensor, edge, leaf, slot)
    else:
        writer.guard("{0}._edge is not {1} or {2}.slot is not {3} or {2}.hooks", tensor, edge, leaf, slot)
    if edge is not leaf:  # frozen
        writer.guard("{}._leaf is not {}", tensor, leaf)
    if gradient is None:
        writer.guard("{}.grad is not None", leaf)
        return
    packed = slot is not None and slot.gradients.tensors[slot.place] is gradient
    overwritten = uses.get(outcome.number_of(gradient), True)
    if packed:
        overwritten = uses.get(outcome.number_of(gradient), uses.get(outcome.number_of(slot.gradients.buffer), True))
    if overwritten or slot is None:
        writer.guard("{}.grad is None", leaf)
    else:
        writer.guard(
            "{0}.grad is None or ({1}.gradients.tensors[{2}] is {0}.grad) is not {3}", leaf, slot, slot.place, packed
        )


# Functions of the conditions


def same(one: Any, other: Any) -> bool:
    """Return whether two tuples or lists hold the same objects."""
    return len(one) == len(other) and all(map(is_, one, other))


def equal(one: Any, other: Any) -> bool:
    """Return whether two things are equal, of one type."""
    try:
        return type(one) is type(other) and bool(one == other)
    except Exception:
        return False


def like(leaf: Leaf | None, had: bool, hooks: list[Any]) -> bool:
    """Return whether the leaf of an argument is like that in the trace."""
    if leaf is None or leaf.slot is not None or (leaf.grad is not None) is not had:
        return False
    return list((leaf.hooks or {}).values()) == hooks
