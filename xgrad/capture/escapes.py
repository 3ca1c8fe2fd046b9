"""Escapes: traced arrays that outlive the trace, and their replacement by the arrays of the device."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Sequence
from sys import getrefcount
from types import FrameType
from typing import Any

from xgrad import trees
from xgrad.capture.arrays import TracedArray
from xgrad.capture.numbers import Number
from xgrad.capture.outcome import Outcome
from xgrad.capture.trace import Trace
from xgrad.capture.tracing_device import TracingDevice
from xgrad.device import Place, Places


def held_elsewhere(result: Any, outcome: Outcome, known: Sequence[int]) -> list[int]:
    """Return the numbers of the tensors that a step made and returned, and that something else holds, too.

    Parameters
    ----------
    result : object
        What the step returned, which one variable of a caller holds, too.
    outcome : Outcome
        The step.
    known : sequence of int
        The ids of those that are gradients of leaves.
    """
    holders = Counter([id(result)] * _CALLERS + [*known])
    found: dict[int, Any] = {}
    _count_references(result, holders, found)
    holders[id(result)] -= 1  # which nothing but variables holds
    found |= outcome.made
    # Besides: `found`, for tensors `made`, the variable of the loop, and the argument of getrefcount.
    held = [x for x in found.values() if getrefcount(x) > holders[id(x)] + 3 + (id(x) in outcome.made)]
    if any(isinstance(x, (list, dict)) for x in held):
        held = list(outcome.made.values())
    return [outcome.numbers[id(x)] for x in held if id(x) in outcome.numbers]


_CALLERS = 3  # variables that hold the result: of `held_elsewhere`, of its caller and of the caller of that


def _count_references(tree: Any, holders: Counter[int], found: dict[int, Any]) -> None:
    """Count the references to tensors, lists and dicts in a result by the containers in it."""
    holders[id(tree)] += 1
    if isinstance(tree, (list, dict, tuple)) and id(tree) not in found:
        if not isinstance(tree, tuple):  # which Python itself may hold
            found[id(tree)] = tree
        for part in tree.values() if isinstance(tree, dict) else tree:
            _count_references(part, holders, found)


def alive(trace: Trace) -> list[TracedArray]:
    """Return the traced arrays that something still holds."""
    return [x for reference in trace.made if (x := reference()) is not None]


def replace_everywhere(trace: Trace) -> None:
    """Put arrays in the place of traced arrays, wherever they are, and likewise numbers and devices."""
    trace.forget()
    held: list[Any] = [*alive(trace), *[x for x in gc.get_referrers(trace) if type(x) is Number]]
    new: dict[int, Any] = {id(x): x.value if type(x) is Number else x.array for x in held}
    targets: list[Any] = [*held, trace.device, *trace.device.places.values()]
    new[id(trace.device)] = trace.real
    new |= {id(place): trace.real.places[place.dtype] for place in trace.device.places.values()}
    keep = {id(x) for x in (held, targets, new, TracingDevice._devices, trace.device.places)}
    keep |= {id(vars(x)) for x in (trace, trace.device, trace.device.places)}
    for holder in gc.get_referrers(*targets):
        if id(holder) not in keep:
            _replace(holder, new)


def _replace(holder: Any, new: dict[int, Any]) -> None:
    if isinstance(holder, (Place, Places, TracedArray, Number, Trace, TracingDevice)):
        return
    if isinstance(holder, dict):
        for key, value in list(holder.items()):
            if id(value) in new:
                holder[key] = new[id(value)]
    elif isinstance(holder, list):
        holder[:] = [new.get(id(x), x) for x in holder]
    elif isinstance(holder, tuple):
        changed = tuple([new.get(id(x), x) for x in holder])
        for outer in gc.get_referrers(holder):
            if not isinstance(outer, FrameType):
                _replace(outer, {id(holder): changed})
    else:
        _replace_in(holder, new)


def _replace_in(holder: Any, new: dict[int, Any]) -> None:
    """Replace what an object holds in its attributes."""
    names = [name for kind in type(holder).__mro__ for name in _names(kind.__dict__.get("__slots__", ()))]
    attributes = getattr(holder, "__dict__", None)
    for name in (*names, *(attributes if isinstance(attributes, dict) else ())):
        value = getattr(holder, name, None)
        if id(value) in new and name != "__weakref__":
            try:
                object.__setattr__(holder, name, new[id(value)])
            except (AttributeError, TypeError):  # of a type that cannot be written to
                continue


def _names(slots: Any) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)


def plain_tree(tree: Any) -> Any:
    """Return a result with numbers and arrays for what stood for them."""
    values = [x for _, x in trees.leaves(tree)]
    if not any(isinstance(x, (Number, TracedArray, TracingDevice)) for x in values):
        return tree
    plain = {Number: "value", TracingDevice: "real"}
    return trees.rebuild(tree, [getattr(x, plain.get(type(x), "array"), x) for x in values])
