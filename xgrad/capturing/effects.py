"""What a replay returns and leaves behind: tensors, gradients, and the numbers of optimizers and generators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import is_, itemgetter
from typing import Any

from xgrad import trees
from xgrad.capturing.arithmetic import Arithmetic
from xgrad.capturing.arrays import Recorded
from xgrad.capturing.finding import Arguments, leaf_at, tensor_at
from xgrad.capturing.numbers import Number
from xgrad.capturing.outcomes import Unusable
from xgrad.capturing.program import Value
from xgrad.capturing.recorder import Recorder
from xgrad.device import Place
from xgrad.graph import Leaf, Node
from xgrad.optim.flat import Flat, Gradients
from xgrad.tensor import Tensor

#: Takes something from the tensors that were made, followed by the arguments of a call.
Take = Callable[[Sequence[Any]], Any]


class Effects:
    """What a step did to tensors, leaves and numbers, and what it returned: lists, each of one kind of effect.

    Parameters
    ----------
    recorder : Recorder
        What was written down.
    arguments : Arguments
        The tensors among the step's arguments.
    results : object
        What the step returned, containers of tensors and other things.
    last : dict of int to Recorded
        What the tensors that were made hold, by their id.
    slots : sequence of Gradients
        Those among which gradients were set or asked for.
    arithmetic : Arithmetic
        Where numbers get places that are left behind.

    Attributes
    ----------
    outputs : list of Value
        What the program is to hand out.
    returned : int
        How many of them are returned; these come first.
    made : list of (int, Place)
        Tensors to be made, by the place of their array among the outputs.
    cleared : list of Leaf
        Those that have no gradient then.
    slots : list of (Gradients, list of (Leaf, int))
        Leaves whose gradients are where an optimizer keeps them, each with its place there.
    written : list of tuple
        Mappings, keys, and the places of numbers that are put there.
    flats : list of Flat
        What is updated.
    updated, updated_arguments : list of tuple
        Parameters in there, or the numbers of arguments, with their leaves.
    take : callable
        Given the tensors that were made, followed by the arguments, returns what the step returned.
    rarer : bool
        Whether there is more, for `leave_rarer` to do.

    Raises
    ------
    Unusable
        If something was returned that cannot be made anew.
    """

    def __init__(
        self,
        recorder: Recorder,
        arguments: Arguments,
        results: Any,
        last: Mapping[int, Recorded],
        slots: Sequence[Gradients],
        arithmetic: Arithmetic,
    ) -> None:
        self._last, self._arguments = last, arguments
        self._private = {
            id(tensor): (gradients, i) for gradients in slots for i, tensor in enumerate(gradients.tensors)
        }
        self.outputs: list[Value] = []
        self.made: list[tuple[int, Place]] = []  # tensors, by the place of their array among the outputs
        self._places: dict[int, int] = {}  # of tensors among those, by id
        self._wanting: list[int] = []  # which of them want a gradient
        self.take = self._results(recorder, results)
        self.returned = len(self.outputs)
        self._add_gradients(recorder, slots)
        self._add_tensors(recorder)
        self._add_numbers(recorder, arithmetic)
        self._add_updates(recorder)
        self.rarer = any(
            (self._wanting, self._gradients, self._seen, self._rebound, self._owned, self._drawn, self._modes)
        )
        del self._last, self._private, self._arguments

    def leave_rarer(self, args: Sequence[Any], outputs: Sequence[Any], tensors: Sequence[Any]) -> None:
        """Do what few steps do."""
        for i in self._wanting:
            tensors[i].requires_grad_()
        for leaf, take in self._gradients:
            leaf_at(leaf, args).grad = take(tensors)
        for gradients in self._seen:
            gradients.seen = True
        for holder, i, place, known in self._rebound:
            tensor = tensor_at(holder, args)
            if known:
                tensor._change(outputs[i], place)
            else:
                tensor._data, tensor._place = outputs[i], place
        for p in self._owned:
            p._change(p._data, p._place)
        for generator, draws in self._drawn:
            seed, count = generator._state
            generator._state = seed, count + draws
        for attributes, mode in self._modes:
            attributes["training"] = mode

    # What is returned

    def _results(self, recorder: Recorder, results: Any) -> Take:
        """Return what takes together what the step returned."""
        values = [value for _, value in trees.leaves(results)]
        takes = [self._result(recorder, value) for value in values]
        if len(values) == 1 and values[0] is results:
            return takes[0]
        if results is None:
            return partial(_this, None)
        if type(results) is tuple and len(values) == len(results) and all(map(is_, values, results)):
            return partial(_tuple, takes)
        return partial(_rebuilt, trees.rebuild(results, [...] * len(values)), takes)

    def _result(self, recorder: Recorder, value: Any) -> Take:
        """Return what takes one thing that the step returned."""
        if isinstance(value, Tensor):
            number = self._arguments.place(value)
            if isinstance(number, int):
                return itemgetter(number - len(self._arguments.tensors))
            if id(value) in self._private:
                return partial(_gradient, *self._private[id(value)])
            if id(value) not in self._last:
                if recorder.is_gradient(value):
                    raise Unusable("a gradient from before the step is returned: return .detach() of it")
                return partial(_this, value)
            edge = value._edge
            if isinstance(edge, Node) and edge.inputs:  # which are gone once it was freed
                raise Unusable(
                    f"a result has a graph behind it, from {edge.name!r}, which was not used: compute the gradient "
                    "inside the step, return .detach(), or use no_grad()"
                )
            if type(value) is not Tensor:
                raise Unusable(f"a {type(value).__name__} is made in the step: make it before")
            made = self._new(value)
            if type(edge) is Leaf:
                self._wanting.append(made)
            return itemgetter(made)
        if type(value) is Recorded or type(value) is Number:
            raise Unusable("an array or number of the recording was returned")
        return partial(_this, value)

    def _new(self, tensor: Tensor) -> int:
        """Return the place of a tensor among those that are made."""
        if id(tensor) not in self._places:
            value = self._last[id(tensor)].value
            self._places[id(tensor)] = len(self.made)
            self.made.append((self._output(value), tensor._place))
        return self._places[id(tensor)]

    def _output(self, value: Value) -> int:
        """Return the place of an array among those that the program hands out."""
        if value not in self.outputs:
            self.outputs.append(value)
        return self.outputs.index(value)

    # What is left behind

    def _add_gradients(self, recorder: Recorder, slots: Sequence[Gradients]) -> None:
        self.cleared: list[Leaf] = []
        self._gradients: list[tuple[Leaf | int, Take]] = []
        put: dict[int, tuple[Gradients, list[tuple[Leaf, int]]]] = {}
        for leaf in recorder.leaves.written.values():
            gradient, holder = leaf.grad, self._arguments.place_of_leaf(leaf)
            if leaf.slot is not None and leaf.slot.holds(gradient):
                gradients, place = leaf.slot.gradients, leaf.slot.place
                if isinstance(holder, int):
                    self._gradients.append((holder, partial(_gradient, gradients, place)))
                else:
                    put.setdefault(id(gradients), (gradients, []))[1].append((leaf, place))
            elif gradient is None and holder is leaf:
                self.cleared.append(leaf)
            elif id(gradient) in self._last:
                self._gradients.append((holder, itemgetter(self._new(gradient))))
            elif id(gradient) not in self._private:
                self._gradients.append((holder, partial(_this, gradient)))
        self.slots = list(put.values())
        self._seen = [gradients for gradients in slots if gradients.seen]

    def _add_tensors(self, recorder: Recorder) -> None:
        self._rebound = [
            (
                self._arguments.place(tensor),
                self._output(self._last[id(tensor)].value),
                tensor._place,
                (tensor._edge or tensor._leaf) is not None or hasattr(tensor, "_owner"),
            )
            for tensor in recorder.rebound.values()
            if id(tensor) in self._last
        ]
        self._owned = [p for flat in recorder.flats.values() for p in flat.owned]

    def _add_numbers(self, recorder: Recorder, arithmetic: Arithmetic) -> None:
        written = recorder.readings.written.values()
        self.written = [(mapping, key, arithmetic.place(value)) for mapping, key, value in written]
        self._drawn = list(recorder.readings.draws.values())

    def _add_updates(self, recorder: Recorder) -> None:
        self.flats: list[Flat] = list(recorder.flats.values())
        self.updated: list[tuple[Tensor, Leaf]] = []
        self.updated_arguments: list[tuple[int, Leaf]] = []
        for flat in self.flats:
            for p, leaf in zip(flat.params, flat.leaves, strict=True):
                number = self._arguments.place(p)
                if isinstance(number, int):
                    self.updated_arguments.append((number, leaf))
                else:
                    self.updated.append((p, leaf))
        self._modes = [(vars(module), mode) for module, mode in recorder.modes.values()]


# What takes other things than single tensors


def _this(thing: Any, tensors: Sequence[Any]) -> Any:
    return thing


def _gradient(gradients: Gradients, place: int, tensors: Sequence[Any]) -> Tensor:
    return gradients.tensors[place]


def _tuple(takes: Sequence[Take], tensors: Sequence[Any]) -> tuple[Any, ...]:
    return tuple([take(tensors) for take in takes])


def _rebuilt(containers: Any, takes: Sequence[Take], tensors: Sequence[Any]) -> Any:
    return trees.rebuild(containers, [take(tensors) for take in takes])
