"""What a replay returns and leaves behind: tensors, gradients, and the numbers of optimizers and generators."""

from __future__ import annotations

from typing import Any

from xgrad import trees
from xgrad.capturing.arrays import Recorded
from xgrad.capturing.numbers import Number
from xgrad.capturing.program import Value
from xgrad.capturing.recorder import Recorder
from xgrad.capturing.writing import Unusable, Writing
from xgrad.graph import Leaf, Node
from xgrad.optim.flat import Flat
from xgrad.tensor import Tensor


class Effects(Writing):
    """Code that makes tensors of the program's outputs, and does to others what the step did."""

    def __init__(self, recorder: Recorder, arguments: list[Tensor], last: dict[int, Recorded]) -> None:
        super().__init__(recorder, arguments, last)
        self._outputs: list[Value] = []
        self._effects: list[str] = []
        self._private = {
            id(tensor): f"{self._object(gradients)}.tensors[{i}]"
            for gradients in self._slots
            for i, tensor in enumerate(gradients.tensors)
        }

    # Results

    def _returned(self, results: Any) -> str:
        """Return the code of what the step returned."""
        codes = [self._leaf(value) for _, value in trees.leaves(results)]
        if codes == ["None"] or results is None:
            return "None"
        if len(codes) == 1 and not isinstance(results, (dict, list, tuple)):
            return codes[0]
        if type(results) is tuple:
            return (
                f"({''.join(f'{code}, ' for code in codes)})"
                if all(not _container(r) for r in results)
                else self._rebuilt(results, codes)
            )
        return self._rebuilt(results, codes)

    def _rebuilt(self, results: Any, codes: list[str]) -> str:
        self._scope["rebuild"] = _Rebuild(results)
        return f"rebuild(({''.join(f'{code}, ' for code in codes)}))"

    def _leaf(self, value: Any) -> str:
        """Return the code of one thing that the step returned."""
        if isinstance(value, Tensor):
            if id(value) in self._arguments:
                return f"args[{self._arguments[id(value)]}]"
            if id(value) in self._private:
                return self._private[id(value)]
            if id(value) not in self._last:
                if self._recorder.is_gradient(value):
                    raise Unusable("a gradient from before the step is returned: return .detach() of it")
                return self._object(value)
            edge = value._edge
            if isinstance(edge, Node) and edge.inputs:  # which are gone once it was freed
                raise Unusable(
                    f"a result has a graph behind it, from {edge.name!r}, which was not used: compute the gradient "
                    "inside the step, return .detach(), or use no_grad()"
                )
            return self._tensor(self._last[id(value)], type(value), type(edge) is Leaf)
        if type(value) is Recorded or type(value) is Number:
            raise Unusable("an array or number of the recording was returned")
        return self._text(value)

    def _tensor(self, array: Recorded, kind: type = Tensor, leaf: bool = False) -> str:
        """Return the code of a new tensor."""
        code = f"placed({self._output(array)}, {self._object(self._device.places[array.value.dtype])})"
        if kind is not Tensor:
            raise Unusable(f"a {kind.__name__} is made in the step: make it before")
        return f"{code}.requires_grad_()" if leaf else code

    def _output(self, array: Recorded) -> str:
        """Return the name of an array that the program hands out."""
        if array.value not in self._outputs:
            self._outputs.append(array.value)
        return f"o{self._outputs.index(array.value)}"

    # What is left behind

    def _leave_behind(self) -> None:
        """Write the code that does to tensors, leaves and numbers what the step did."""
        recorder, write = self._recorder, self._effects.append
        slots: dict[str, list[tuple[Leaf, int]]] = {}  # by the gradients among which they are
        for leaf in recorder.gradients.values():
            gradient, target = leaf.grad, self._leaf_code(leaf)
            if gradient is None:
                write(f"{target}.grad = None")
            elif leaf.slot is not None and leaf.slot.holds(gradient):
                gradients, place = self._object(leaf.slot.gradients), leaf.slot.place
                if target.startswith("args"):
                    write(f"{target}.grad = {gradients}.tensors[{place}]")
                else:
                    slots.setdefault(gradients, []).append((leaf, place))
            elif id(gradient) in self._last:
                write(f"{target}.grad = {self._tensor(self._last[id(gradient)])}")
            elif id(gradient) not in self._private:
                write(f"{target}.grad = {self._object(gradient)}")
        for name, leaves in slots.items():
            write(f"tensors = {name}.tensors")
            write(f"for leaf, i in {self._object(leaves)}: leaf.grad = tensors[i]")
        for gradients in self._slots:
            if gradients.seen:
                write(f"{self._object(gradients)}.seen = True")
        for tensor in recorder.rebound.values():
            if id(tensor) not in self._last:
                continue
            name = self._output(self._last[id(tensor)])
            number = self._arguments.get(id(tensor))
            holder = self._object(tensor) if number is None else f"args[{number}]"
            if (tensor._edge or tensor._leaf) is not None or hasattr(tensor, "_owner"):
                write(f"{holder}._change({name}, {self._object(tensor._place)})")
            else:
                write(f"{holder}._data, {holder}._place = {name}, {self._object(tensor._place)}")
        for flat in recorder.flats.values():
            for p in flat.owned:
                write(f"{self._object(p)}._change({self._object(p)}._data, {self._object(p)}._place)")
        for numbers, key, value in recorder.written.values():
            code = self._expression(value) if type(value) is Number else self._text(value)
            write(f"{self._object(numbers)}[{key!r}] = {code}")
        for generator, count in recorder.draws.values():
            name = self._object(generator)
            write(f"seed, count = {name}._state")
            write(f"{name}._state = seed, count + {count}")
        if recorder.flats:
            write("when = change()")
        for flat in recorder.flats.values():
            write(f"{self._object(flat)}.stepped = True")
            for p, leaf in zip(flat.params, flat.leaves, strict=True):
                if id(p) in self._arguments:
                    write(f"a{self._arguments[id(p)]}._changed = {self._object(leaf)}.changed = when")
            write(f"for p, leaf in {self._object(self._laid(flat))}: p._changed = leaf.changed = when")
        for module, mode in recorder.modes.values():
            write(f"{self._object(vars(module))}['training'] = {mode}")

    def _laid(self, flat: Flat) -> list[tuple[Tensor, Leaf]]:
        """Return the parameters that are no arguments, with their leaves."""
        pairs = zip(flat.params, flat.leaves, strict=True)
        return [(p, leaf) for p, leaf in pairs if id(p) not in self._arguments]


class _Rebuild:
    """Put tensors into containers like those that the step returned."""

    def __init__(self, results: Any) -> None:
        self.marks = trees.rebuild(results, [_LEAF] * sum(1 for _ in trees.leaves(results)))

    def __call__(self, values: Any) -> Any:
        return trees.rebuild(self.marks, values)


_LEAF = object()


def _container(value: Any) -> bool:
    return isinstance(value, (dict, list, tuple)) or value is None
