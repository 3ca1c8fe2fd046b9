"""On which conditions a recording can be replayed: what must be as it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from xgrad.capturing.descriptions import ABSENT, unchanged
from xgrad.capturing.finding import Arguments, leaf_at
from xgrad.capturing.program import Value
from xgrad.capturing.recorder import Recorder
from xgrad.capturing.surroundings import Inside, Modules, Watched, hooks
from xgrad.devices import _default
from xgrad.grad_mode import grad_enabled
from xgrad.graph import Leaf
from xgrad.optim.flat import Flat
from xgrad.tensor import Tensor

#: Returns an array, or None, given the arguments of a call.
Find = Callable[[Sequence[Any]], Any]


class Guards:
    """What must be as it was for a replay: lists, each of one kind of condition.

    Parameters
    ----------
    recorder : Recorder
        What was written down.
    arguments : Arguments
        The tensors among the step's arguments.
    followed : sequence of Tensor
        Those whose arrays are followed, not looked for at each replay.
    found : sequence of (callable, Value)
        Who looks for other arrays, beside those of arguments, and what they are to be like.
    watched : sequence of (Watched or Inside, object)
        The variables that the step's code names.

    Attributes
    ----------
    count : int
        How many arguments there are.
    recording, default : bool, Device or None
        Whether graphs are recorded, and the default device.
    arguments : list of tuple
        The number of each, its type and place, whether it has an edge, and the shape and strides of its array.
    cells, names : list of tuple
        Variables of closures, and global ones by mapping and name, with what they are.
    modules : Modules or None
        Those that are called.
    edges, free, bare : list
        Tensors with their leaves, which have no hooks; tensors without an edge; leaves without a gradient.
    groups : list of tuple
        An optimizer and how many groups it has, the id of one, how that lies, the group, its parameters, and these now.
    flats : list of (Flat, int)
        Parameters side by side, and how many arrays are remembered of them.
    rarer : bool
        Whether there is more, for `hold_rarer` to look at.
    """

    def __init__(
        self,
        recorder: Recorder,
        arguments: Arguments,
        followed: Sequence[Tensor],
        found: Sequence[tuple[Find, Value]],
        watched: Sequence[tuple[Watched | Inside, Any]],
    ) -> None:
        self.recording, self.default, self.count = grad_enabled.get(), _default.get(), len(arguments.tensors)
        self._found = [(find, value.shape, value.dtype, value.strides) for find, value in found]
        self._attributes: list[tuple[Any, str, Any]] = []
        self.free: list[Tensor] = []  # which must have no edge
        self.edges: list[tuple[Tensor, Leaf]] = []  # which have no hooks
        self._others: list[Callable[[Sequence[Any]], bool]] = []
        self._add_arguments(recorder, arguments.tensors)
        self._add_variables(watched)
        self._add_inputs(recorder)
        self._add_gradients(recorder, arguments)
        self._add_modules(recorder)
        self._add_optimizers(recorder, arguments, set(map(id, followed)))
        self.rarer = any((self._pairs, self._marks, self._found, self._attributes, self._modes, self._others))

    def hold_rarer(self, args: Sequence[Any]) -> bool:
        """Return whether all that few steps have is as it was."""
        for i, j, same in self._pairs:
            if (args[i] is args[j]) is not same:
                return False
        if not unchanged(self._marks) and self.changed():
            return False
        for find, shape, dtype, strides in self._found:
            array = find(args)
            if array is None or array.shape != shape or array.dtype is not dtype or array.strides != strides:
                return False
        for thing, name, value in self._attributes:
            if getattr(thing, name) is not value:
                return False
        for attributes, mode in self._modes:
            if attributes["training"] is not mode:
                return False
        return all(condition(args) for condition in self._others)

    def over(self) -> bool:
        """Return whether something is otherwise that will not be again as it was."""
        for optimizer, _, key, laid, *_ in self.groups:
            if optimizer._laid.get(key) is not laid:
                return True
        if any(len(flat.arrays) != count for flat, count in self.flats):
            return True
        return any(tensor._leaf is not leaf for tensor, leaf in self.edges)

    def _add_arguments(self, recorder: Recorder, tensors: Sequence[Tensor]) -> None:
        used = {v.source.holder: v for v in recorder.inputs if v.source is not None and v.source.kind == "argument"}
        self.arguments: list[tuple[Any, ...]] = []
        self._pairs: list[tuple[int, int, bool]] = []
        for i, tensor in enumerate(tensors):
            array: Any = used.get(i, tensor._data)
            place = recorder.device.places[array.dtype]
            expected = type(tensor), place, tensor._edge is not None, array.shape, array.strides
            alike = [j for j, *other in self.arguments if tuple(other) == expected]  # others are not the same anyway
            self._pairs += [(i, j, tensors[j] is tensor) for j in alike]
            self.arguments.append((i, *expected))
            if tensor._leaf is not None:
                self._others.append(partial(_has_hooks, i, hooks(tensor._leaf)))

    def _add_variables(self, watched: Sequence[tuple[Watched | Inside, Any]]) -> None:
        self._watched = watched
        self.cells: list[tuple[Any, Any]] = []
        self.names: list[tuple[Mapping[str, Any], str, Any]] = []
        self._marks: list[Any] = []
        for watch, _ in watched:
            value = watch.read()
            if isinstance(watch, Inside):
                self._marks += watch.marks()
            elif value is ABSENT:
                self._others.append(partial(_is_absent, watch.read))
            elif watch.key is not None:
                self.names.append((watch.holder, watch.key, value))
            else:
                self.cells.append((watch.holder, value))

    def changed(self) -> bool:
        """Return whether a variable that the step names is another than it was."""
        return any(watch() != described for watch, described in self._watched)

    def _add_inputs(self, recorder: Recorder) -> None:
        """Add of whom gradients are wanted, and by whom they are changed on the way."""
        lying, ours = set[int](), set[int]()
        for flat in recorder.flats.values():
            lying.update(map(id, flat.params))
            ours.update(map(id, [flat.buffer, *flat.places, *flat.arrays.values()]))
            ours.update(map(id, [flat.gradients.buffer, *flat.gradients.views]))
        sources = [value.source for value in recorder.inputs]
        for tensor in [source.holder for source in sources if source is not None and source.kind == "tensor"]:
            if id(tensor) in ours:
                continue
            leaf = recorder.edges.get(id(tensor))
            if type(leaf) is Leaf and not leaf.hooks and tensor._edge is leaf:
                self.edges.append((tensor, leaf))
                continue
            if id(tensor) in lying:
                pass  # which is looked after
            elif leaf is None:
                self.free.append(tensor)
            else:
                self._attributes.append((tensor, "_edge", leaf))
            if type(leaf) is Leaf:
                self._others.append(partial(_has_hooks, leaf, hooks(leaf)))
        given = set(map(id, recorder.arguments))  # of which it is looked at anyway
        wishes = recorder.leaves.wishes(recorder.tensors_made())
        self._attributes += [(t, "requires_grad", before) for t, before in wishes if id(t) not in given]

    def _add_gradients(self, recorder: Recorder, arguments: Arguments) -> None:
        self.bare: list[Leaf] = []  # which must have no gradient
        for leaf, had, inside in recorder.leaves.asked.values():
            holder = arguments.place_of_leaf(leaf)
            if type(holder) is Leaf and not had:
                self.bare.append(leaf)
            else:
                self._others.append(partial(_has_gradient, holder, had))
            if had and leaf.slot is not None:
                self._others.append(partial(_has_gradient_inside, holder, inside))
        laid = {id(leaf) for flat in recorder.flats.values() for leaf in flat.leaves}  # whose groups are looked at
        for leaf in (*recorder.leaves.written.values(), *(leaf for leaf, *_ in recorder.leaves.asked.values())):
            if leaf.slot is not None and id(leaf) not in laid:
                laid.add(id(leaf))
                self._add_slot(arguments.place_of_leaf(leaf), leaf.slot)
        self._attributes += [(gradients, "seen", seen) for gradients, seen in recorder.leaves.looked_at.values()]

    def _add_slot(self, leaf: Leaf | int, slot: Any) -> None:
        """Add that a gradient has its place where it had it: an optimizer may lay its parameters otherwise."""
        if isinstance(leaf, int):
            self._others.append(partial(_has_slot, leaf, slot))
        else:
            self._attributes.append((leaf, "slot", slot))

    def _add_modules(self, recorder: Recorder) -> None:
        self.modules = Modules(list(recorder.called.values())) if recorder.called else None
        self._modes = [(vars(module), mode) for module, mode in recorder.modules.values()]

    def _add_optimizers(self, recorder: Recorder, arguments: Arguments, followed: set[int]) -> None:
        self.flats = [(flat, len(flat.arrays)) for flat in recorder.flats.values()]
        self.groups: list[tuple[Any, int, int, Any, dict[str, Any], list[Tensor], list[Tensor]]] = []
        edges = {id(tensor) for tensor, _ in self.edges}
        for optimizer in recorder.optimizers.values():
            count = len(optimizer.param_groups)
            self._others += [] if optimizer.laid() else [partial(_has_groups, optimizer, count)]
            for group, laid in optimizer.laid():
                params = group["params"]
                self.groups.append((optimizer, count, id(group), laid, group, params, list(params)))
                self.free += laid.waiting
                for flat in laid.flats:
                    self._add_flat(flat, arguments, edges, followed)

    def _add_flat(self, flat: Flat, arguments: Arguments, edges: set[int], followed: set[int]) -> None:
        """Add that parameters are still where an optimizer has laid them."""
        for p, leaf in zip(flat.params, flat.leaves, strict=True):
            if id(p) not in edges:
                holder = arguments.place(p)
                for name, value in (("_edge", p._edge), ("_leaf", leaf)):
                    if isinstance(holder, int):
                        self._others.append(partial(_has_attribute, holder, name, value))
                    else:
                        self._attributes.append((p, name, value))
            if id(p) not in followed:  # whoever takes the slot moves the parameter
                self._attributes.append((leaf, "slot", leaf.slot))


# Conditions of other kinds, of the arguments of a call


def _has_hooks(leaf: Leaf | int, before: list[Any], args: Sequence[Any]) -> bool:
    now = leaf_at(leaf, args)
    return now is not None and hooks(now) == before


def _has_gradient(leaf: Leaf | int, had: bool, args: Sequence[Any]) -> bool:
    return (leaf_at(leaf, args).grad is not None) is had


def _has_gradient_inside(leaf: Leaf | int, inside: bool, args: Sequence[Any]) -> bool:
    now = leaf_at(leaf, args)
    return now.slot is not None and now.slot.holds(now.grad) is inside


def _has_slot(leaf: int, slot: Any, args: Sequence[Any]) -> bool:
    return leaf_at(leaf, args).slot is slot


def _has_attribute(number: int, name: str, value: Any, args: Sequence[Any]) -> bool:
    return getattr(args[number], name) is value


def _has_groups(optimizer: Any, count: int, args: Sequence[Any]) -> bool:
    return len(optimizer.param_groups) == count


def _is_absent(read: Callable[[], Any], args: Sequence[Any]) -> bool:
    return read() is ABSENT
