"""Verification of replays: the step runs eagerly from the same state, and all bits are compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from xgrad import trees
from xgrad.capture.errors import CaptureError
from xgrad.capture.outcome import buffers_of
from xgrad.capture.slots import Slots
from xgrad.capture.state import State
from xgrad.tensor import Tensor

if TYPE_CHECKING:
    from xgrad.capture.captured import Captured


def verified(
    captured: Captured[..., Any], structure: Any, tensors: list[Tensor], contents: list[Any], args: Any, kwargs: Any
) -> Any:
    """Return what the step returns, after comparing a replay with it.

    Raises
    ------
    CaptureError
        If a result or a tensor of the state differs; the state is then what the eager step leaves.
    """
    others = [x for x in contents if not isinstance(x, Tensor)]
    slots = Slots(State(captured._step, others, captured._more), tensors)
    packed = {id(x) for flat in slots.flats.values() for x in (*buffers_of(flat), *flat.params)}
    gradients = {id(x) for flat in slots.flats.values() for x in (flat.gradients.buffer, *flat.gradients.views)}
    gradients |= {id(x) for flat in slots.flats.values() for x in flat.gradients.tensors}
    slots.all = [slot for slot in slots.all if id(slot.owner) not in gradients]  # seen as gradients of leaves
    before = [(slot, slot.read(), _copy(slot.read()) if slot.kind == "array" else None) for slot in slots.all]
    replays = captured._replays
    result = captured._replayed(structure, tensors, contents, args, kwargs)
    if captured._replays == replays:  # it was traced, or ran eagerly
        return result
    replayed = dict(_described(slots, result))
    for slot, value, copy in before:
        if slot.kind == "array":
            now = slot.read()
            if now is value or id(slot.owner) in packed:
                now[...] = copy
            else:
                slot.writing(copy)()
        elif slot.kind in ("grad", "number"):
            slot.writing(value)()
    result = captured._step(*args, **kwargs)
    for name, value in _described(slots, result):
        if name not in replayed or not _same(replayed[name], value):
            raise CaptureError(
                f"capture: verify: {name} of the replay differs from that of the eager step: "
                f"{_difference(replayed.get(name), value)}: what differs from call to call is to be a tensor of the "
                "state, or an argument"
            )
    return result


def _copy(array: Any) -> Any:
    return array.copy()


def _described(slots: Slots, result: Any) -> Iterator[tuple[str, Any]]:
    """Return results and state, each with its name, as arrays of the host and plain values."""
    for path, x in trees.leaves(result):
        yield f"result{path}", _host(x) if isinstance(x, Tensor) else x
    for slot in slots.all:
        value = slot.read()
        if slot.kind == "array" and not slot.name.endswith(".grad"):
            yield slot.name, _host(slot.owner)
        elif slot.kind == "grad":
            yield slot.name, None if value is None else _host(value)
        elif slot.kind == "number":
            yield slot.name, value


def _host(x: Tensor) -> np.ndarray:
    host = np.array(x.device.backend.to_host(x._data))
    for part in (host.real, host.imag) if host.dtype.kind == "c" else (host,):
        if part.dtype.kind == "f":
            part[np.isnan(part)] = np.nan  # of which there are many
    return host


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        alike = one.shape == other.shape and one.dtype == other.dtype
        return alike and one.tobytes() == other.tobytes()
    if type(one) is not type(other):
        return False
    try:
        return one is other or repr(one) == repr(other) or bool(one == other)
    except Exception:
        return False


def _difference(one: Any, other: Any) -> str:
    """Return what differs, of arrays the first element with its bits."""
    if not (isinstance(one, np.ndarray) and isinstance(other, np.ndarray)) or one.shape != other.shape:
        return f"{one!r} against {other!r}"
    bits = [np.ascontiguousarray(x).reshape(-1).view(np.uint8).reshape(x.size, x.itemsize) for x in (one, other)]
    i = int(np.flatnonzero((bits[0] != bits[1]).any(axis=1))[0])
    where = tuple(map(int, np.unravel_index(i, one.shape)))
    values = [f"{x.reshape(-1)[i]!r} (0x{b[i][::-1].tobytes().hex()})" for x, b in zip((one, other), bits, strict=True)]
    return f"{values[0]} against {values[1]} at {where}"
