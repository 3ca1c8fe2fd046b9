"""The memory that tensors and recorded graphs hold, by what holds it."""

from __future__ import annotations

import gc
import math
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from xgrad.backend.device import Device
from xgrad.backend.devices import current_device
from xgrad.backend.ownership import owner_of
from xgrad.core.graph import Leaf, Node
from xgrad.core.tensor import Tensor
from xgrad.support.units import size


def memory_held(device: str | Device | None = None) -> dict[str, int]:
    """Return the bytes that live tensors and recorded graphs hold on a device, largest first.

    The keys are ``"parameters"``, for all leaves that require a gradient, ``"gradients"``,
    ``"optimizer state"``, ``"saved by OP"`` for each op, for what is only saved for backward, and
    ``"other tensors"``. Memory counts once, on devices that tell what arrays share (NumPy, CuPy).
    Temporaries of captured programs, and arrays outside of tensors, do not count.

    Parameters
    ----------
    device : str or Device, optional
        By default the `default_device`.

    Returns
    -------
    dict of str to int
        The bytes. Their sum is a figure of memory for each step, of which the largest is
        usually after the forward pass.

    Notes
    -----
    A call visits all objects of the garbage collector: some milliseconds.

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.Linear(1000, 1000)
    >>> loss = (layer(xgrad.ones((500, 1000))) ** 2).sum()
    >>> held = xgrad.memory_held()
    >>> held["parameters"] >= 4 * 1001 * 1000, held["saved by linear"] >= 4 * 500 * 1000
    (True, True)
    """
    target = current_device() if device is None else Device(device)
    owners: dict[int, Any] = {}  # by id
    sizes: dict[str, int] = {}
    for kind, array in sorted(_arrays(target.root), key=lambda pair: _RANKS.get(pair[0], 3)):
        owner = owner_of(array)
        if id(owner) not in owners:
            owners[id(owner)] = owner
            sizes[kind] = sizes.get(kind, 0) + _bytes(owner, target)
    return dict(sorted(sizes.items(), key=lambda item: -item[1]))


def report(device: Device) -> str:
    """Return what holds the memory of a device, for an error."""
    held = memory_held(device)
    parts = [f"{size(count)} {kind}" for kind, count in held.items()]
    return (
        f"held on {device}: {size(sum(held.values()))}: {', '.join(parts) or 'nothing by tensors'}"
    )


#: The order in which memory is attributed; what ops saved has the rank 3.
_RANKS = {"parameters": 0, "gradients": 1, "optimizer state": 2, "other tensors": 4}


def _arrays(device: Device) -> Iterator[tuple[str, Any]]:
    """Yield the arrays on a device that tensors, nodes and optimizers hold, with their kind."""
    optim = sys.modules.get("xgrad.optim.flat")
    flat, state = getattr(optim, "FlatParameters", ()), getattr(optim, "State", ())
    for x in gc.get_objects():
        kind = type(x)
        found: list[tuple[str, Any]] = []
        with suppress(AttributeError):  # of an object that is being made
            if issubclass(kind, Tensor):
                found = [("parameters" if type(x._edge) is Leaf else "other tensors", x._data)]
            elif kind is Leaf:
                gradients = [x.grad, x.receiver and x.receiver.gradients.buffer]
                found = [("gradients", g._data) for g in gradients if g is not None]
            elif issubclass(kind, Node) and x.saved is not None:
                parts = x.saved[: x.spec.first_edge]
                flattened = [
                    y
                    for part in parts
                    for y in (part if isinstance(part, (list, tuple)) else (part,))
                ]
                found = [(f"saved by {x.name}", y) for y in flattened]
            elif issubclass(kind, flat):
                found = [("optimizer state", y._data) for y in x.arrays.values()] + [
                    ("parameters", x.buffer._data)
                ]
            elif issubclass(kind, state):
                found = [("optimizer state", y) for y in list(x.values())]
        for name, array in found:
            if type(array) is device.array_type and device.backend.index_of(array) == device.index:
                yield name, array


def _bytes(owner: Any, device: Device) -> int:
    if not hasattr(owner, "shape"):
        return int(owner.size)  # of an allocation of CuPy
    return int(math.prod(owner.shape) * device.backend.numpy_dtype(owner.dtype).itemsize)
