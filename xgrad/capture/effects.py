"""Effects of a replay: results, gradients, and numbers of optimizers and generators."""

from __future__ import annotations

from typing import Any

from xgrad import trees
from xgrad.capture.arrays import TracedArray
from xgrad.capture.code_writer import CodeWriter
from xgrad.capture.errors import Unusable
from xgrad.capture.numbers import Number
from xgrad.capture.outcome import Outcome
from xgrad.capture.program import Value
from xgrad.capture.tracing_device import TracingDevice
from xgrad.device import Place
from xgrad.graph import Leaf, Node
from xgrad.tensor import Tensor


class Effects:
    """The effects of a step, as lines that a replay runs after the program.

    Attributes
    ----------
    outputs : list of Value
        What the program hands out.
    result : str
        The expression of what the step returns.
    descriptions : list of (str, object)
        The effects for the printer, the result first: a name, and its value in the program, its number, or None.
    number_names : dict of (int, object) to str
        The names of the numbers that are read, by the id of the owner and the key.

    Raises
    ------
    Unusable
        If something was returned or left behind that cannot be made anew.
    """

    def __init__(self, writer: CodeWriter, outcome: Outcome) -> None:
        self._writer, self._outcome, self._places = writer, outcome, outcome.trace.real.places
        self.outputs: list[Value] = []
        self._arguments = {id(x): i for i, x in enumerate(outcome.given)}
        self._names = {id(slot.owner): slot.name for slot in outcome.slots.all if slot.kind in ("array", "grad")}
        self._packed = {
            id(gradient): (flat.gradients, i)
            for flat in outcome.slots.flats.values()
            for i, gradient in enumerate(flat.gradients.tensors)
        }
        self._made: dict[int, str] = {}  # variables of tensors, by id
        values = [value for _, value in trees.leaves(outcome.result)]
        described = trees.rebuild(outcome.result, map(_described, values))
        self.descriptions: list[tuple[str, Any]] = [("return", described)]
        self.number_names = {
            (id(slot.owner), slot.key): slot.name for slot in outcome.slots.all if slot.kind == "number"
        }
        parts = ", ".join([self._result(value) for value in values])
        if len(values) == 1 and values[0] is outcome.result:
            self.result = parts
        else:
            tree = writer.name(trees.rebuild(outcome.result, [...] * len(values)))
            self.result = f"rebuild({tree}, ({parts},))" if values else tree
        for slot, _, after in outcome.changes():
            name = slot.name
            if slot.kind == "array":
                self._array(slot.owner, name, after)
            elif slot.kind == "grad":
                self._gradient(slot.owner, name, after)
            elif slot.kind == "number":
                self._number(slot.owner, slot.key, name, after)
            elif slot.kind == "other" or (id(slot.owner), "_data") not in outcome.changed:
                raise Unusable(f"the step changes {name if slot.kind == 'other' else f'the dtype of {name}'}")
        for module, mode in outcome.modes():
            self.descriptions.append((f"{outcome.state.modules[id(module)][0]}.training", mode))
            writer.effect("{}.training = {}", module, mode)
        self._views_of_gradients()
        stamped = outcome.stamped()
        if stamped:
            writer.effect("when = change()")
            for x, key in stamped:
                writer.effect(f"{{}}.{key} = when", x)

    def forget(self) -> None:
        """Drop the step: its arguments and results are not to live as long as the program."""
        del self._outcome, self._writer

    # Results

    def _result(self, value: Any) -> str:
        """Return an expression for something that the step returned."""
        if not isinstance(value, Tensor):
            if isinstance(value, TracingDevice):
                value = value.real
            if isinstance(value, (TracedArray, Number)):
                raise Unusable("an array or a number of the trace is returned")
            return self._writer.name(value)
        known = self._known(value)
        if known is not None:
            if id(value) in self._outcome.old_gradients and id(value) not in self._packed:
                raise Unusable("a gradient from before the step is returned: return .detach() of it")
            if id(value) in self._packed:
                self._writer.effect("{}.seen = True", self._packed[id(value)][0])
            return known
        if not isinstance(value._data, TracedArray):
            raise Unusable(
                "a tensor is returned that is neither an argument, nor found from the step, nor made by it: name it in "
                "state="
            )
        edge = value._edge
        if isinstance(edge, Node) and edge.inputs:  # which are gone once it was freed
            raise Unusable(
                f"a result has a graph behind it, from {edge.name!r}, which was not used: compute the gradient inside "
                "the step, return .detach(), or use no_grad()"
            )
        if type(value) is not Tensor:
            raise Unusable(f"a {type(value).__name__} is made in the step: make it before")
        name = self._new(value)
        if type(edge) is Leaf:
            self._writer.effect(f"{name}.requires_grad_()")
        return name

    def _known(self, tensor: Tensor) -> str | None:
        """Return an expression for a tensor that exists before the step."""
        if id(tensor) in self._arguments:
            return f"a{self._arguments[id(tensor)]}"
        if id(tensor) in self._packed:
            gradients, i = self._packed[id(tensor)]
            return f"{self._writer.name(gradients)}.tensors[{i}]"
        return self._writer.name(tensor) if id(tensor) in self._names else None

    def _new(self, tensor: Tensor) -> str:
        """Return the variable of a tensor that the step made."""
        if id(tensor) not in self._made:
            self._made[id(tensor)] = name = f"t{len(self._made)}"
            self._writer.effect(f"{name} = placed({self._output(tensor._data)}, {{}})", self._place(tensor))
        return self._made[id(tensor)]

    def _place(self, tensor: Tensor) -> Place:
        return self._places[tensor._place.dtype]

    def _output(self, array: TracedArray) -> str:
        """Return an expression for an array that the program hands out."""
        if array.value not in self.outputs:
            self.outputs.append(array.value)
        return f"outputs[{self.outputs.index(array.value)}]"

    # State

    def _array(self, tensor: Tensor, name: str, after: Any) -> None:
        if not isinstance(after, TracedArray):
            raise Unusable(f"{name} is given an array that the step has not made")
        target, output = self._known(tensor), self._output(after)
        if (tensor._edge or tensor._leaf) is not None or hasattr(tensor, "_owner"):
            self._writer.effect(f"{target}._change({output}, {{}})", self._place(tensor))
        else:
            self._writer.effect(f"{target}._data, {target}._place = {output}, {{}}", self._place(tensor))
        self.descriptions.append((name, after.value))

    def _gradient(self, leaf: Leaf, name: str, after: Tensor | None) -> None:
        number = self._outcome.argument_of(leaf)
        if number is None and id(after) in self._packed:
            self._writer.effect("{}.grad = {}.tensors[{}]", leaf, *self._packed[id(after)])
        else:
            target = self._writer.name(leaf) if number is None else f"a{number}._leaf"
            source = "None" if after is None else self._known(after) or self._new(after)
            self._writer.effect(f"{target}.grad = {source}")
        self.descriptions.append((name, _described(after)))

    def leave_packed(self, leaf: Leaf, gradient: Tensor) -> None:
        """Leave the gradient that an optimizer keeps, whatever gradient there was."""
        self._writer.effect("{}.grad = {}.tensors[{}]", leaf, *self._packed[id(gradient)])
        self.descriptions.append((self._names[id(leaf)], _described(gradient)))

    def _number(self, owner: Any, key: Any, name: str, after: Any) -> None:
        parts = [self._writer.number(part) for part in (after if type(after) is tuple else (after,))]
        self._writer.passed += [part for part in parts if part[0] == "n" and part not in self._writer.passed]
        value = f"({', '.join(parts)},)" if type(after) is tuple else parts[0]
        target = f"{{}}[{key!r}]" if isinstance(owner, dict) else f"{{}}.{key}"
        self._writer.effect(f"{target} = {value}", owner)
        self.descriptions.append((name, after))

    def _views_of_gradients(self) -> None:
        """Leave a buffer of gradients to whoever is given a view of it: the next pass takes another."""
        storages = {value.storage for value in self.outputs}
        for flat in self._outcome.slots.flats.values():
            if flat.gradients.buffer._data.value.storage in storages:
                self._writer.effect("{}.seen = True", flat.gradients)


def _described(x: Any) -> Any:
    """Return the value that a tensor has in the program, and anything else as it is."""
    return getattr(x._data, "value", "a tensor") if isinstance(x, Tensor) else x
