"""Changes of values that the graph may have saved: who marks them, and who reads the marks.

A node saves values for its rules. Afterwards ``.data``, writes under `no_grad`, optimizers and
replays of captured steps may change the tensors that had these values. Each of them takes a time
from `Clock.change`, and calls `mark_changed`. A backward pass calls `check_unchanged` for each node
that is older than the last change.

The marks are ``_changed`` of tensors and `changed` of their edges, both by `mark_changed`; `moved`
of leaves, by `Leaf.accept`; and `changed` of packed parameters, by their updates and by replays.
Captured steps compare marks before and after a step, to replay its changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from weakref import WeakValueDictionary

from xgrad.core.graph import Leaf, Node, OutputEdge

Tensor = Any  # a `tensor.Tensor`: that module is above this one

#: Packed parameters by id, which updates change in place: each has a `buffer`, its `device`, and
#: the time when it was `changed`.
updated: WeakValueDictionary[int, Any] = WeakValueDictionary()


def mark_changed(tensors: Iterable[Tensor], when: int) -> None:
    """Mark tensors as changed at a time of the clock.

    The graph refers to a tensor by its edge, or, for a constant, by a weak reference: both have the
    mark. The node of several results has the marks of all of them, since its rule may read any.
    """
    for x in tensors:
        x._changed = when
        edge = x._edge or x._leaf
        if edge is not None:
            edge.changed = when
            if type(edge) is OutputEdge:
                edge.saved[0].changed = when


def check_unchanged(node: Node) -> None:
    """Raise RuntimeError if a value that a node saved has since been changed in its tensor."""
    spec, names, edges, saved = node.spec, list(node.inputs), node.edges, node.saved or ()
    for edge in edges:
        if type(edge) is Leaf and edge.moved > node.order:
            raise RuntimeError(
                f"backward: {node.name} was applied to a leaf that has since been given shape"
                f" {tuple(edge.shape)} on {edge.placement.device} through .data: change it after"
                " the backward pass"
            )
    used = (
        range(len(edges))
        if "all" in spec.saved_roles
        else [role for role in spec.saved_roles if type(role) is int]
    )
    stale = [names[i] for i in used if (edge := edges[i]) is not None and edge.changed > node.order]
    for i, constant in zip(
        spec.constants, saved[len(spec.saved_roles) : spec.first_edge], strict=True
    ):
        if constant is not None and getattr(constant(), "_changed", 0) > node.order:
            stale.append(names[i])
    if "out" in spec.saved_roles and node.changed > node.order:
        stale.append("result")
    stale = stale or _in_updated_memory(node, names)
    if stale:
        described = ", ".join(f"{name!r} ({_origin(node, name)})" for name in stale)
        raise RuntimeError(
            f"backward: {node.name} needs the value that its {described} had, but it was changed"
            " through .data, under no_grad() or by an optimizer: change it after the backward"
            " pass, or work on a copy"
        )


def _in_updated_memory(node: Node, names: list[str]) -> list[str]:
    """Return the names of saved values in the memory of parameters that were updated since.

    They are views of parameters that nothing else holds, and values that were detached from them.
    """
    device, stale = node.placement.device, []
    alive = [flat for reference in updated.valuerefs() if (flat := reference()) is not None]
    flats = [flat for flat in alive if flat.changed > node.order and flat.device is device]
    if not flats:
        return []
    for role, value in zip(node.spec.saved_roles, node.saved or (), strict=False):
        arrays = value if isinstance(value, (tuple, list)) else (value,)
        for i, array in enumerate(arrays):
            if type(array) is device.array_type and any(
                device.backend.shares_memory(flat.buffer._data, array) for flat in flats
            ):
                stale.append(
                    "result" if role in ("out", "residual") else names[i if role == "all" else role]
                )
    return stale


def _origin(node: Node, name: str) -> str:
    """Say where a value that a node saved came from."""
    edge = node if name == "result" else node.inputs[name]
    if edge is None:
        return "a constant"
    return f"{'a leaf' if type(edge) is Leaf else 'from ' + edge.name} of shape {tuple(edge.shape)}"
