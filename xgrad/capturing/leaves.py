"""What a step does to leaves: it asks for gradients, sets them, wants them or no longer, and adds and removes hooks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from weakref import ref

from xgrad.capturing.arrays import of_tensor
from xgrad.graph import Leaf, clock
from xgrad.optim.flat import Flat, Gradients
from xgrad.tensor import Tensor


class Leaves:
    """What was done to leaves since this was made, and what they were like before. Those made later do not count.

    Attributes
    ----------
    asked : dict of int to (Leaf, bool, bool)
        Those whose gradient was asked for before it was set, whether they had one, and whether that was in its slot; by
        id.
    looked_at : dict of int to (Gradients, bool)
        Gradients in slots that were asked for, and whether they had been seen; by id.
    written : dict of int to Leaf
        Those whose gradient was set, or taken away; by id.
    """

    def __init__(self) -> None:
        self._newest = -next(clock.numbers)  # of orders: those of leaves from before are higher
        self.asked: dict[int, tuple[Leaf, bool, bool]] = {}
        self.looked_at: dict[int, tuple[Gradients, bool]] = {}
        self.written: dict[int, Leaf] = {}
        self._of_gradients: dict[int, Leaf] = {}  # by the id of the gradient
        self._hooked: dict[int, tuple[Any, list[Any] | None]] = {}  # hooks that came or went, and those before
        self._wished: dict[int, tuple[ref[Tensor], bool]] = {}  # asked for gradients or not, and whether it was before

    # Gradients

    def ask(self, leaf: Leaf, gradient: Tensor | None) -> None:
        """Note that somebody asks for the gradient of a leaf."""
        known = id(leaf) in self.written or id(leaf) in self.asked
        if not known and leaf.order > self._newest:
            inside = gradient is not None and in_slot(leaf, gradient)
            self.asked[id(leaf)] = leaf, gradient is not None, inside
            if inside:
                gradients = leaf.slot.gradients
                self.looked_at.setdefault(id(gradients), (gradients, gradients.seen))
        if gradient is not None and leaf.order > self._newest:
            self._of_gradients.setdefault(id(gradient), leaf)

    def write(self, leaf: Leaf) -> None:
        """Note that the gradient of a leaf is set, or taken away."""
        if leaf.order > self._newest:
            self.written[id(leaf)] = leaf

    def leaf_of(self, tensor: Tensor) -> Leaf | None:
        """Return the leaf of which somebody has got a tensor as the gradient."""
        return self._of_gradients.get(id(tensor))

    def slots(self, flats: Iterable[Flat]) -> list[Gradients]:
        """Return the gradients in slots that were set or asked for, and those of what is updated."""
        found = {id(flat.gradients): flat.gradients for flat in flats}
        for leaf in (*self.written.values(), *(leaf for leaf, *_ in self.asked.values())):
            if leaf.slot is not None:
                found[id(leaf.slot.gradients)] = leaf.slot.gradients
        return list(found.values())

    # Wishes for gradients

    def wish(self, tensor: Tensor) -> None:
        """Note that gradients of a tensor are asked for, or no longer."""
        self._wished.setdefault(id(tensor), (ref(tensor), tensor.requires_grad))

    def wishes(self, made: Iterable[Tensor]) -> list[tuple[Tensor, bool]]:
        """Return tensors of which gradients were asked for or not, and whether before, but for those that were made."""
        new = set(map(id, made))
        asked = [(tensor(), before) for key, (tensor, before) in self._wished.items() if key not in new]
        return [(tensor, before) for tensor, before in asked if tensor is not None]

    def changes_wishes(self, made: Iterable[Tensor]) -> bool:
        """Return whether it is otherwise now, of tensors but for those that were made."""
        return any(tensor.requires_grad is not before for tensor, before in self.wishes(made))

    # Hooks

    def hook(self, hooks: Any, edge: Any = None) -> None:
        """Note that a hook comes, to an edge, or goes, before it does."""
        new = edge is not None and not (type(edge) is Leaf and edge.order > self._newest)
        self._hooked.setdefault(id(hooks), (hooks, None if new else list(hooks.values())))

    def changes_hooks(self) -> bool:
        """Return whether a leaf from before has other hooks now."""
        return any(before is not None and list(now.values()) != before for now, before in self._hooked.values())


def in_slot(leaf: Leaf, gradient: Tensor) -> bool:
    """Return whether a gradient is where an optimizer keeps it, without asking for its array as a step does."""
    slot = leaf.slot
    if slot is None or slot.gradients.tensors[slot.place] is not gradient:
        return False
    return of_tensor(gradient) is of_tensor(slot.gradients.views[slot.place])
