"""Escapes: traced arrays that outlive the trace, and their replacement by the arrays of the device."""

from __future__ import annotations

import gc
from contextlib import suppress
from types import FrameType
from typing import Any

from xgrad.backend.device import Placement, Placements
from xgrad.capture.numbers import Number
from xgrad.capture.state import slots_of
from xgrad.capture.trace import Trace
from xgrad.capture.tracing_device import TracedArray, TracingDevice
from xgrad.transforms.batching import BatchingDevice


def alive(trace: Trace) -> list[TracedArray]:
    """Return the traced arrays that something still holds."""
    return [x for reference in trace.made if (x := reference()) is not None]


def replace_everywhere(trace: Trace) -> None:
    """Replace traced arrays, numbers and devices by those that they stand for, in all objects that hold them."""
    trace.forget()
    placements, device = trace.device.placements, trace.device
    held: list[Any] = [*alive(trace), *[x for x in gc.get_referrers(trace) if type(x) is Number]]
    new: dict[int, Any] = {id(x): x.value if type(x) is Number else x.array for x in held}
    new |= {id(x): trace.real.placements[x.dtype] for x in placements.values()} | {id(device): trace.real}
    targets: list[Any] = [*held, device, *placements.values()]
    keep = {id(x) for x in (held, targets, new, TracingDevice._devices, placements)}
    keep |= {id(vars(x)) for x in (trace, device, placements, *BatchingDevice.known())}
    for holder in gc.get_referrers(*targets):
        if id(holder) not in keep:
            _replace(holder, new)


def _replace(holder: Any, new: dict[int, Any]) -> None:
    if isinstance(holder, (Placement, Placements, TracedArray, Number, Trace, TracingDevice, BatchingDevice)):
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
