"""Verification of replays: the step runs eagerly from the same state, and bits are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xgrad.backend.recording import CaptureError
from xgrad.capture.guards import equal
from xgrad.capture.slots import Slots, buffers_of
from xgrad.core.tensor import Tensor
from xgrad.core.views import base_of
from xgrad.ops.writing import refresh
from xgrad.support import trees

#: The kinds of slots that are restored before the eager step, and the kinds that are compared after
#: it.
RESTORED = ("array", "grad", "number", "option")
COMPARED = ("grad", "number", "option")


def verified(slots: Slots, replay: Callable[[], tuple[Any, bool]], step: Callable[[], Any]) -> Any:
    """Return the result of an eager step, after comparing a replay with it.

    `slots` are the slots of the step's state; `replay` returns a result, and whether a replay made
    it. Raises `CaptureError` if a result or a tensor of the state differs; the state is then as the
    eager step leaves it.
    """
    flats = slots.flats.values()
    packed = {id(x) for flat in flats for x in (*buffers_of(flat), *flat.params)}
    gradients = [flat.gradients for flat in flats]  # compared as gradients of leaves
    hidden = {id(x) for part in gradients for x in (part.buffer, *part.views, *part.tensors)}
    slots.all = [slot for slot in slots.all if id(slot.owner) not in hidden]
    before = [
        (slot, slot.read(), slot.read().copy() if slot.kind == "array" else None)
        for slot in slots.all
    ]
    result, is_replay = replay()
    if not is_replay:
        return result
    replayed = _values(slots, result)
    replaced = []
    for slot, value, copy in before:
        if slot.kind == "array" and id(slot.owner) in packed:
            slot.read()[...] = copy
        elif slot.kind in RESTORED:
            if slot.kind == "array" and getattr(getattr(value, "flags", None), "writeable", True):
                value[...] = copy
            if slot.kind == "array" and slot.read() is not value:
                replaced.append(slot.owner)
            slot.write(value)
    known = {id(slot.owner) for slot in slots.all if slot.kind == "array"}
    for x in replaced:
        if id(base_of(x)) not in known:  # the replay has written to its base
            refresh(x)
    result = step()
    for name, value in _values(slots, result).items():
        if name not in replayed or not _same(replayed[name], value):
            raise CaptureError(
                f"capture: verify: {name} of the replay differs from the eager step's:"
                f" {_difference(replayed.get(name), value)}: what differs from call to call is to"
                " be a tensor of the state, or an argument, and a write of library code is to be"
                " array code; step.program() shows what is replayed"
            )
    return result


def _values(slots: Slots, result: Any) -> dict[str, Any]:
    """Return results and state by name, as host arrays and plain values."""
    parts = {f"result{path}": x for path, x in trees.leaves(result)}
    parts |= {
        x.name: x.owner for x in slots.all if x.kind == "array" and not x.name.endswith(".grad")
    }
    parts |= {slot.name: slot.read() for slot in slots.all if slot.kind in COMPARED}
    return {name: _host(x) for name, x in parts.items()}


def _host(x: Any) -> Any:
    """Return the values of a tensor, with a single NaN pattern, and anything else as it is."""
    if not isinstance(x, Tensor):
        return x
    host = np.array(x.device.backend.to_host(x._data))
    for part in (host.real, host.imag) if host.dtype.kind == "c" else (host,):
        if part.dtype.kind == "f":
            part[np.isnan(part)] = np.nan
    return host


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return (one.shape, one.dtype, one.tobytes()) == (other.shape, other.dtype, other.tobytes())
    return (
        one is other or (type(one) is type(other) and repr(one) == repr(other)) or equal(one, other)
    )


def _difference(one: Any, other: Any) -> str:
    """Return a text of the difference: for arrays, the first differing element with its bits."""
    arrays = isinstance(one, np.ndarray) and isinstance(other, np.ndarray)
    if not arrays or (one.shape, one.dtype) != (other.shape, other.dtype):
        return f"{one!r} against {other!r}"
    bits = np.dtype((np.void, one.itemsize))
    i = np.unravel_index(np.argmax(one.ravel().view(bits) != other.ravel().view(bits)), one.shape)
    one, other = [f"{x[i]!r} (0x{x[i].tobytes()[::-1].hex()})" for x in (one, other)]
    return f"{one} against {other} at {tuple(map(int, i))}"
