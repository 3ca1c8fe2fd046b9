"""Escapes: traced arrays that outlive the trace, and their replacement by the arrays of the device."""

from __future__ import annotations

import gc
from collections import Counter
from contextlib import suppress
from types import FrameType
from typing import Any

from xgrad.backend.device import Placement, Placements
from xgrad.capture.numbers import Number
from xgrad.capture.recording import Recording
from xgrad.capture.state import slots_of
from xgrad.capture.trace import Trace
from xgrad.capture.tracing_device import TracedArray, TracingDevice
from xgrad.core.views import base_of
from xgrad.support import trees
from xgrad.support.refcounts import references

_CALLERS = 3  # variables that hold a result: of `held_elsewhere`, of its caller and of the caller of that


def held_elsewhere(result: Any, recording: Recording) -> list[int]:
    """Return the numbers of the tensors that a step made and returned, and that something else holds, too."""
    made = recording.made
    holders = Counter([id(result)] * _CALLERS + [id(x.grad) for _, x, _ in recording.slots.leaves.values()])
    holders.update([id(base_of(x)) for x, _ in made.values()])
    parts: dict[int, Any] = {}
    _count_references(result, holders, parts)
    holders[id(result)] -= 1  # which nothing but variables holds
    parts |= {key: x for key, (x, _) in made.items()}
    # Besides: `parts`, `made` for some, and the variable of the loop.
    held = [x for x in parts.values() if references([x]) > holders[id(x)] + 2 + (id(x) in made)]
    if any(isinstance(x, (list, dict)) for x in held):
        return [number for _, number in made.values()]
    return [made[id(x)][1] for x in held if id(x) in made]


def _count_references(tree: Any, holders: Counter[int], parts: dict[int, Any]) -> None:
    """Count the references to tensors, lists and dicts in a result by the containers in it, and add those."""
    holders[id(tree)] += 1
    if isinstance(tree, (list, dict, tuple)) and id(tree) not in parts:
        if not isinstance(tree, tuple):  # which Python itself may hold
            parts[id(tree)] = tree
        for part in tree.values() if isinstance(tree, dict) else tree:
            _count_references(part, holders, parts)


def alive(trace: Trace) -> list[TracedArray]:
    """Return the traced arrays that something still holds."""
    return [x for reference in trace.made if (x := reference()) is not None]


def plain_tree(tree: Any) -> Any:
    """Return a result with numbers and arrays for what stood for them."""
    values = [x for _, x in trees.leaves(tree)]
    if not any(isinstance(x, (Number, TracedArray, TracingDevice)) for x in values):
        return tree
    plain = {Number: "value", TracingDevice: "real"}
    return trees.rebuild(tree, [getattr(x, plain.get(type(x), "array"), x) for x in values])


def replace_everywhere(trace: Trace) -> None:
    """Put arrays in the place of traced arrays, wherever they are, and likewise numbers and devices."""
    trace.forget()
    placements, device = trace.device.placements, trace.device
    held: list[Any] = [*alive(trace), *[x for x in gc.get_referrers(trace) if type(x) is Number]]
    new: dict[int, Any] = {id(x): x.value if type(x) is Number else x.array for x in held}
    new |= {id(x): trace.real.placements[x.dtype] for x in placements.values()} | {id(device): trace.real}
    targets: list[Any] = [*held, device, *placements.values()]
    keep = {id(x) for x in (held, targets, new, TracingDevice._devices, placements)}
    keep |= {id(vars(x)) for x in (trace, device, placements)}
    for holder in gc.get_referrers(*targets):
        if id(holder) not in keep:
            _replace(holder, new)


def _replace(holder: Any, new: dict[int, Any]) -> None:
    if isinstance(holder, (Placement, Placements, TracedArray, Number, Trace, TracingDevice)):
        return
    if isinstance(holder, dict):
        holder.update({key: new[id(value)] for key, value in holder.items() if id(value) in new})
    elif isinstance(holder, list):
        holder[:] = [new.get(id(x), x) for x in holder]
    elif isinstance(holder, tuple):
        changed = tuple([new.get(id(x), x) for x in holder])
        for outer in gc.get_referrers(holder):
            if not isinstance(outer, FrameType):
                _replace(outer, {id(holder): changed})
    else:
        for name in (*slots_of(holder), *getattr(holder, "__dict__", ())):
            value = getattr(holder, name, None)
            if id(value) in new and name != "__weakref__":
                with suppress(AttributeError, TypeError):  # of a type that cannot be written to
                    object.__setattr__(holder, name, new[id(value)])
