"""What is left of a recording outside of it: tensors that are kept, and graphs that keep recorded arrays."""

from __future__ import annotations

from typing import Any

from xgrad import trees
from xgrad.capturing.arrays import Recorded, concrete
from xgrad.capturing.recorder import Recorder
from xgrad.graph import Node
from xgrad.tensor import Tensor


def leak(recorder: Recorder, results: Any) -> str | None:
    """Return which tensor that was made in a step is kept where a replay would not put it, if there is one."""
    returned = {id(leaf) for _, leaf in trees.leaves(results)}
    made = [tensor for tensor in recorder.tensors_made() if id(tensor) not in returned]
    if not made:
        return None
    known = {id(leaf.grad) for leaf in recorder.leaves.written.values()} | set(recorder.rebound)
    for flat in recorder.flats.values():
        mine = flat.gradients
        known |= {id(t) for t in (*mine.tensors, *mine.views, mine.buffer, flat.buffer, *flat.places)}
        known |= {id(t) for t in flat.arrays.values()}
    for tensor in made:
        if id(tensor) not in known:
            array = recorder.last.get(id(tensor))
            lines = [call.line for call in recorder.calls if array is not None and array.value in call.results]
            return f"a tensor that is made at {lines[0] if lines else '?'} is kept outside of the step"
    return None


def forget_recording(tensors: list[Tensor]) -> None:
    """Let graphs that are still there keep arrays, not recorded ones."""
    nodes = [tensor._edge for tensor in tensors if tensor._edge is not None]
    seen = set(map(id, nodes))
    for node in nodes:  # which grows on the way
        if isinstance(node, Node) and node.kept is not None:
            for edge in node.edges:
                if edge is not None and id(edge) not in seen:
                    seen.add(id(edge))
                    nodes.append(edge)
            node.kept = tuple([_unrecorded(value) for value in node.kept])


def _unrecorded(value: Any) -> Any:
    return concrete(value) if type(value) in (Recorded, list, tuple) else value
