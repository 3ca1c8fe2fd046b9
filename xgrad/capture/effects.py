"""Side effects of a replay: results, gradients, modes, and numbers of optimizers and generators."""

from __future__ import annotations

from typing import Any

from xgrad.capture.code_writer import CodeWriter
from xgrad.capture.numbers import Number
from xgrad.capture.program import Unusable, Value
from xgrad.capture.recording import Recording
from xgrad.capture.tracing_device import TracedArray, TracingDevice
from xgrad.core.graph import Leaf, Node, clock
from xgrad.core.tensor import Tensor, from_placement
from xgrad.core.views import base_of, has_family, link
from xgrad.nn.module import edits
from xgrad.ops.writing import refresh, replace
from xgrad.support import trees


class Effects:
    """The effects of a step, written as lines that a replay runs after the program.

    Raises `Unusable` if something was returned or left behind that a replay cannot make.

    Attributes
    ----------
    outputs, result : dict of Value to array, str
        What the program hands out, with the arrays of the trace, and the expression of what the step returns.
    descriptions : list of (str, object)
        The effects for the printer, the result first: a name, and its value in the program, its number, or None.
    """

    def __init__(self, writer: CodeWriter, recording: Recording) -> None:
        functions = (clock.change, from_placement, trees.rebuild, replace, has_family, refresh, link)
        writer.scope.update({function.__name__: function for function in functions}, edits=edits)
        self.outputs: dict[Value, Any] = {}
        self._writer, self._recording, self._placements = writer, recording, recording.trace.real.placements
        gradients = [flat.gradients for flat in recording.slots.flats.values()]
        self._packed = {id(tensor): (part, i) for part in gradients for i, tensor in enumerate(part.tensors)}
        self._known = {id(slot.owner) for slot in recording.slots.all if slot.kind == "array"}
        self._made: dict[int, str] = {}  # variables of tensors, by id
        self.returned: set[int] = set()  # ids of tensors of the state and of arguments that the effects refer to
        values = [value for _, value in trees.leaves(recording.result)]
        described = trees.rebuild(recording.result, map(_described, values))
        self.descriptions: list[tuple[str, Any]] = [("return", described)]
        parts = ", ".join([self._result(value) for value in values])
        if len(values) == 1 and values[0] is recording.result:
            self.result = parts
        else:
            tree = writer.name(trees.rebuild(recording.result, [...] * len(values)))
            self.result = f"rebuild({tree}, ({parts},))" if values else tree
        for slot in recording.changes:
            if slot.kind == "array":
                if not recording.follows(slot.owner):
                    self._array(slot.owner, slot.after)
            elif slot.kind == "grad":
                self._gradient(slot.owner, slot.after)
            elif slot.kind == "number" and slot.after is not None:
                self._number(slot.owner, slot.key, slot.after)
            elif slot.kind == "mode":
                writer.effect("{0}['training'], edits.number = {1}, edits.number + 1", slot.owner, slot.after)
            elif slot.kind != "device":
                raise Unusable(f"the step changes {slot.name}")
            elif (id(slot.owner), "_data") not in recording.changed:
                raise Unusable(f"the step changes the dtype of {slot.name}")
            if slot.kind != "device":
                self.descriptions.append((slot.name, _described(slot.after)))
        storages = {value.storage for value in self.outputs}
        for part in gradients:  # a buffer with a view among the results is replaced
            if part.buffer._data.value.storage in storages:
                writer.effect("{}.exposed = True", part)
        changed = recording.changed_values()
        if changed:
            writer.effect("when = change()")
            for x, key in changed:
                writer.effect(f"{{}}.{key} = when", x)
                if (id(x), "_data") not in recording.changed and getattr(x, "_leaf", None):  # updated in place
                    writer.effect("if {1}.viewed: refresh({0})", x, x._leaf)
        del self._writer, self._recording  # its arguments and results are not to live as long as the program

    def _result(self, value: Any) -> str:
        """Return an expression for something that the step returned."""
        if isinstance(value, TracingDevice):
            value = value.real
        if isinstance(value, (TracedArray, Number)):
            raise Unusable("an array or a number of the trace is returned")
        if not isinstance(value, Tensor):
            return self._writer.name(value)
        if id(value) in self._packed:
            self._writer.effect("{}.exposed = True", self._packed[id(value)][0])
        elif any(value is gradient for gradient in self._recording.gradients.values()):
            raise Unusable("a gradient from before the step is returned: return .detach() of it")
        if id(value) in self._known:
            self.returned.add(id(value))
            return self._writer.name(value)
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
        name = self._tensor(value)
        if type(edge) is Leaf:
            self._writer.effect(f"{name}.requires_grad_()")
        return name

    def _tensor(self, tensor: Tensor) -> str:
        """Return an expression for a tensor, a variable if the step made it."""
        if id(tensor) in self._known:
            self.returned.add(id(tensor))
            return self._writer.name(tensor)
        if not isinstance(tensor._data, TracedArray):
            raise Unusable(
                "a result is a view of a tensor that is neither an argument, nor found from the step, nor made by it, "
                "such as .data of an argument that is a view: return .detach()"
            )
        if id(tensor) not in self._made:
            self._made[id(tensor)] = name = f"t{len(self._made)}"
            placement = self._placements[tensor._placement.dtype]
            self._writer.effect(f"{name} = from_placement({self._output(tensor._data)}, {{}})", placement)
            if (base := base_of(tensor)) is not None:
                _, function, options = tensor._view  # type: ignore[misc]
                self._writer.effect(f"link({self._tensor(base)}, {name}, {{}}, {{}})", function, options)
        return self._made[id(tensor)]

    def _output(self, array: TracedArray) -> str:
        """Return an expression for an array that the program hands out."""
        self.outputs[array.value] = array.array
        return f"outputs[{list(self.outputs).index(array.value)}]"

    def _array(self, tensor: Tensor, after: Any) -> None:
        if not isinstance(after, TracedArray):
            raise Unusable("a tensor is given an array that the step has not made")
        output, placement = self._output(after), self._placements[tensor._placement.dtype]
        if (tensor._edge or tensor._leaf) is not None:
            self._writer.effect(f"replace({{}}, {output}, {{}})", tensor, placement)
        else:
            self._writer.effect(f"{{0}}._data, {{0}}._placement = {output}, {{1}}", tensor, placement)
        self._writer.effect("if has_family({0}): refresh({0})", tensor)

    def _gradient(self, leaf: Leaf, after: Tensor | None) -> None:
        if id(after) in self._packed:
            self._writer.effect("{}.grad = {}.tensors[{}]", leaf, *self._packed[id(after)])
        else:
            self._writer.effect(f"{{}}.grad = {None if after is None else self._tensor(after)}", leaf)

    def _number(self, owner: Any, key: Any, after: Any) -> None:
        number, name, numbers = self._writer.number, self._writer.name, after if type(after) is tuple else (after,)
        parts = [number(x) if type(x) is Number else name(x) for x in numbers]
        value = f"({', '.join(parts)},)" if type(after) is tuple else parts[0]
        self._writer.effect(f"{self._writer.place(owner, key)} = {value}")


def _described(x: Any) -> Any:
    """Return the value that a tensor or an array has in the program, and anything else as it is."""
    x = getattr(x._data, "value", "a tensor") if isinstance(x, Tensor) else x
    return x.value if isinstance(x, TracedArray) else x
