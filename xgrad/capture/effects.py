"""Side effects of a replay: results, gradients, modes, and numbers of optimizers and generators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xgrad.capture.numbers import Number, plain
from xgrad.capture.program import Unusable, Value
from xgrad.capture.slots import Recording, Slot
from xgrad.core.changes import mark_changed
from xgrad.core.graph import Leaf, Node, clock
from xgrad.core.tensor import Tensor, from_placement
from xgrad.core.views import base_of, has_family, link, taken_by
from xgrad.ops.writing import refresh, replace
from xgrad.support import trees


class Argument(NamedTuple):
    """A tensor among the arguments of a call, by its number."""

    number: int


class LeafOf(NamedTuple):
    """The leaf of a tensor among the arguments of a call, by its number."""

    number: int


class GradientOf(NamedTuple):
    """The gradient of a leaf, which may be given as the leaf of an argument."""

    leaf: Any


class Packed(NamedTuple):
    """A gradient in the buffer of an optimizer."""

    buffer: Any
    number: int


class Made(NamedTuple):
    """A tensor that each replay makes, by its number."""

    number: int


class Recipe(NamedTuple):
    """The recipe for a tensor of a replay: an output, and the base and function of a view."""

    kind: type[Tensor]
    output: int
    placement: Any
    requires_grad: bool
    base: Any
    function: Any
    options: Any


class Effects:
    """The side effects of a replay, given the outputs of the program, in the order of `apply`.

    An object that differs from call to call is represented by an `Argument`, the `LeafOf` an
    argument, the `GradientOf` a leaf, `Packed` or `Made`. Raises `Unusable` if the step returned or
    left behind something that a replay cannot make.

    Attributes
    ----------
    outputs : list of Value
        The values that the program returns.
    numbers : list of Number or object
        The numbers that a replay stores.
    made : list of Tensor
        The tensors of the recorded step that each replay makes.
    returned : set of int
        The ids of tensors of the state and of arguments that the effects refer to.
    descriptions : list of (str, object)
        The effects for the printer, the result first. Each is a name with a value of the program, a
        number, or None.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording, self._places = recording, _places(recording)
        self.outputs: list[Value] = []
        self.numbers: list[Any] = []
        self.made: list[Tensor] = []
        self.returned: set[int] = set()
        gradients = [flat.gradients for flat in recording.slots.flats.values()]
        self._packed = _packed(recording)
        self._recipes: list[Recipe] = []
        self._exposed: list[Any] = []  # gradient buffers with a view among the results
        values = [value for _, value in trees.leaves(recording.result)]
        self._results = [self._result(value) for value in values]
        self._is_single = len(values) == 1 and values[0] is recording.result
        self._tree = (
            None if self._is_single else trees.rebuild(recording.result, [...] * len(values))
        )
        described = trees.rebuild(recording.result, map(self._described, values))
        self.descriptions: list[tuple[str, Any]] = [("return", described)]
        self._arrays: list[tuple[Any, int, Any]] = []  # a tensor, its output and its placement
        self._gradients: list[tuple[Any, Any]] = []  # a leaf, and its gradient
        # an owner, its key, and the positions of numbers
        self._numbers: list[tuple[Any, Any, Any]] = []
        self._modes: list[tuple[Any, Any]] = []  # a module, and its mode
        for slot in recording.changes:
            self._add(slot)
        storages = {value.storage for value in self.outputs}
        for part in gradients:
            value = recording.recorder.value_of(part.buffer._data)
            if value is not None and value.storage in storages:
                self._exposed.append(part)
        # Tensors that the step changed, with their places: where a replay finds the ones that
        # differ from call to call. Views of those that changed in place are updated, too.
        marked = [(self._place(x), x) for x in recording.marked()]
        self._marked_arguments = [
            (place, self._is_in_place(x)) for place, x in marked if place is not x
        ]
        self._marked = [x for place, x in marked if place is x]
        # Guards ensure that the leaves of these tensors stay the same.
        self._written = [(x, x._leaf) for x in self._marked if self._is_in_place(x)]
        self._updated = recording.updated()
        del self._recording, self._places, self._packed

    # A replay

    def apply(self, outputs: Sequence[Any], args: Sequence[Any], numbers: Sequence[Any]) -> Any:
        """Perform the side effects of the step, and return its result."""
        made = self.make(outputs, args) if self._recipes else []
        for place, output, placement in self._arrays:
            tensor = _find(place, args, made)
            if type(place) is Packed:
                place.buffer.exposed = True  # the next backward pass uses another buffer
            if (tensor._edge or tensor._leaf) is not None:
                replace(tensor, outputs[output], placement)
            else:
                tensor._data, tensor._placement = outputs[output], placement
            if has_family(tensor):
                refresh(tensor)
        if self._gradients:
            self.set_gradients(args, made)
        for owner, key, positions in self._numbers:
            value = (
                numbers[positions]
                if type(positions) is int
                else tuple([numbers[i] for i in positions])
            )
            if isinstance(owner, dict):
                owner[key] = value
            else:
                setattr(owner, key, value)
        for module, mode in self._modes:
            module.training = mode
        for buffer in self._exposed:
            buffer.exposed = True
        if self._marked or self._marked_arguments or self._updated:
            self._mark(args)
        return self.result(args, made)

    def make(self, outputs: Sequence[Any], args: Sequence[Any]) -> list[Tensor]:
        """Return the tensors that a replay makes."""
        made: list[Tensor] = []
        for kind, output, placement, requires_grad, base, function, options in self._recipes:
            tensor = from_placement(outputs[output], placement, cls=kind)
            if requires_grad:
                tensor.requires_grad_()
            if base is not None:
                link(_find(base, args, made), tensor, function, options)
            made.append(tensor)
        return made

    def set_gradients(self, args: Sequence[Any], made: Sequence[Tensor]) -> None:
        """Set the gradients of leaves."""
        for place, gradient in self._gradients:
            _find(place, args, made).grad = _find(gradient, args, made)

    def result(self, args: Sequence[Any], made: Sequence[Tensor]) -> Any:
        """Return the result of the step."""
        if self._is_single:
            return _find(self._results[0], args, made)
        return trees.rebuild(self._tree, [_find(x, args, made) for x in self._results])

    def _mark(self, args: Sequence[Any]) -> None:
        """Mark tensors as changed, and update views of those that changed in place."""
        when = clock.change()
        mark_changed(self._marked, when)
        for flat in self._updated:
            flat.changed = when
        for x, leaf in self._written:
            if leaf.viewed:
                refresh(x)
        for place, is_in_place in self._marked_arguments:
            x = _find(place, args, ())
            mark_changed((x,), when)
            if is_in_place and x._leaf.viewed:
                refresh(x)

    # The effects of the recorded step

    def _place(self, x: Any) -> Any:
        return self._places.get(id(x), x)

    def _is_in_place(self, x: Tensor) -> bool:
        is_new = (id(x), "_data") in self._recording.changed
        return not is_new and x._leaf is not None

    def _described(self, x: Any) -> Any:
        """Return a tensor as its value in the program, and all else as it is."""
        if not isinstance(x, Tensor):
            return x
        return self._recording.recorder.value_of(x._data) or "a tensor"

    def _output(self, array: Any) -> int:
        value = self._recording.recorder.value_of(array)
        if value is None:
            raise Unusable("a tensor is given an array that the step has not made")
        if value not in self.outputs:
            self.outputs.append(value)
        return self.outputs.index(value)

    def _result(self, value: Any) -> Any:
        """Return the representation of something that the step returned."""
        if not isinstance(value, Tensor):
            return value
        if id(value) in self._packed:
            self._exposed.append(self._packed[id(value)].buffer)
            return self._packed[id(value)]
        if any(value is gradient for gradient in self._recording.gradients.values()):
            raise Unusable("a gradient from before the step is returned: return .detach() of it")
        if id(value) in self._recording.owners:
            return self._tensor(value)
        if reason := self._recording.recorder.graph_behind(value._data):
            raise Unusable(f"the step returns {reason}")
        if not self._recording.recorder.knows(value._data):
            raise Unusable(
                "a tensor is returned that is neither an argument, nor found from the step, nor"
                " made by it: name it in state="
            )
        edge = value._edge
        if isinstance(edge, Node) and edge.inputs:  # empty once the graph was freed
            raise Unusable(
                f"a result has a graph behind it, from {edge.name!r}, which was not used: compute"
                " the gradient inside the step, return .detach(), or use no_grad()"
            )
        if not value._out_of_place_updates:
            raise Unusable(f"a {type(value).__name__} is made in the step: make it before")
        return self._tensor(value)

    def _tensor(self, tensor: Tensor) -> Any:
        """Return the representation of a tensor."""
        if id(tensor) in self._recording.owners:
            self.returned.add(id(tensor))
            return self._place(tensor)
        if not self._recording.recorder.knows(tensor._data):
            raise Unusable(
                "a result is a view of a tensor that is neither an argument, nor found from the"
                " step, nor made by it, such as .data of an argument that is a view: return"
                " .detach()"
            )
        for i, known in enumerate(self.made):
            if known is tensor:
                return Made(i)
        base, function, options = None, None, None
        if (found := base_of(tensor)) is not None:
            function, options = taken_by(tensor)
            base = self._tensor(found)
        self.made.append(tensor)
        is_leaf = type(tensor._edge) is Leaf
        recipe = Recipe(
            type(tensor),
            self._output(tensor._data),
            tensor._placement,
            is_leaf,
            base,
            function,
            options,
        )
        self._recipes.append(recipe)
        return Made(len(self.made) - 1)

    def _add(self, slot: Slot) -> None:
        """Add the effect of a slot that the step changed."""
        after = described = slot.after
        if slot.kind == "array":
            if not self._recording.follows(slot.owner):
                self._arrays.append(
                    (self._place(slot.owner), self._output(after), slot.owner._placement)
                )
            described = self._recording.recorder.value_of(after)
        elif slot.kind == "grad":
            gradient = None if after is None else self._packed.get(id(after)) or self._tensor(after)
            self._gradients.append((self._place(slot.owner), gradient))
            described = self._described(after)
        elif slot.kind == "number":
            described = self._recording.recorder.number_of(slot.owner, slot.key, after)
            self._numbers.append((slot.owner, slot.key, self._positions(described)))
        elif slot.kind == "mode":
            self._modes.append((slot.owner, after))
        if slot.kind != "placement":
            self.descriptions.append((slot.name, described))

    def _positions(self, number: Any) -> Any:
        if type(number) is tuple:
            return tuple(map(self._positions, number))
        self.numbers.append(number if type(number) is Number else plain(number))
        return len(self.numbers) - 1


def _places(recording: Recording) -> dict[int, Any]:
    """Return the representations of objects that differ from call to call, by id."""
    places: dict[int, Any] = {}
    for i, x in enumerate(recording.tensors):
        if not recording.is_identified(x):
            places.setdefault(id(x), Argument(i))
            if x._leaf is not None:
                places.setdefault(id(x._leaf), LeafOf(i))
    places |= _packed(recording)
    for _, leaf, _ in recording.slots.leaves.values():
        gradient = recording.gradients[id(leaf)]
        if gradient is not None and id(gradient) not in recording.state.named:
            places.setdefault(id(gradient), GradientOf(places.get(id(leaf), leaf)))
    return places


def _packed(recording: Recording) -> dict[int, Any]:
    """Return the representations of gradients in the buffers of optimizers, by id."""
    return {
        id(flat.gradients.tensors[i]): Packed(flat.gradients, i)
        for flat in recording.slots.flats.values()
        for i in filter(flat.packs, range(len(flat.params)))
    }


def _find(place: Any, args: Sequence[Any], made: Sequence[Any]) -> Any:
    kind = type(place)
    if kind is Made:
        return made[place.number]
    if kind is Argument:
        return args[place.number]
    if kind is LeafOf:
        return args[place.number]._leaf
    if kind is GradientOf:
        return _find(place.leaf, args, made).grad
    return place.buffer.tensors[place.number] if kind is Packed else place
