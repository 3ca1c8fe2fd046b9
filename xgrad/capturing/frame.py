"""One way through a step: a program, on which conditions it holds, and what it leaves behind beside its results.

A replay walks lists that were made when the step was recorded: of what must be as it was, and of what is left behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from operator import is_
from typing import Any

from xgrad.capturing.arithmetic import Arithmetic
from xgrad.capturing.arrays import Recorded
from xgrad.capturing.effects import Effects
from xgrad.capturing.finding import Arguments, leaf_at
from xgrad.capturing.guards import Find, Guards
from xgrad.capturing.left import Left
from xgrad.capturing.memory import root_of
from xgrad.capturing.outcomes import MISS, Diverged, Unusable
from xgrad.capturing.program import Program, Value
from xgrad.capturing.recorder import Recorder
from xgrad.capturing.simplifying import Unchecked, simplified
from xgrad.capturing.surroundings import Inside, Watched
from xgrad.devices import _default
from xgrad.grad_mode import grad_enabled
from xgrad.graph import Leaf, clock
from xgrad.nn.module import edits
from xgrad.optim.flat import Flat
from xgrad.tensor import Tensor, placed


class Frame:
    """A recorded way through a step.

    Parameters
    ----------
    recorder : Recorder
        What was written down.
    arguments : list of Tensor
        The tensors among the step's arguments.
    results : object
        What the step returned, containers of tensors and other things.
    last : dict of int to Recorded
        What the tensors that were made hold, by their id.
    backend : Backend
        Who runs programs.
    watched : sequence of (Watched or Inside, object)
        What must be as it is now.

    Attributes
    ----------
    run : Replay
        What runs the program.
    arguments : list of tuple
        The dtypes and shapes of the arguments.
    results : list of Value
        What of the program's outputs the step returns.
    left : Left
        What else is otherwise after it.
    outputs : dict of int to Value
        The program's outputs, by the number that they had before it was simplified.
    """

    def __init__(
        self,
        recorder: Recorder,
        arguments: list[Tensor],
        results: Any,
        last: dict[int, Recorded],
        backend: Any,
        watched: Sequence[tuple[Watched | Inside, Any]],
    ) -> None:
        self.error: Exception | None = None  # of the last replay
        self._still: list[tuple[Tensor, Any]] = []  # tensors, and the arrays that the program takes them to hold
        self.run: Any = None
        self._device, self._flats = recorder.device, list(recorder.flats.values())
        self._statics: list[tuple[Tensor, Value]] = []
        self._arithmetic = Arithmetic(recorder)
        slots, places = recorder.leaves.slots(recorder.flats.values()), Arguments(arguments)
        self._effects = Effects(recorder, places, results, last, slots, self._arithmetic)
        outputs = self._effects.outputs
        dynamic = _dynamic(recorder)
        try:
            program = simplified(recorder.program(outputs))
        except Unchecked as error:
            raise Unusable(f"values that the step has changed before are checked at {error}") from error
        found = [value for value in program.inputs if value in dynamic or value.storage.kind == "input"]
        found.sort(key=_is_argument, reverse=True)
        with self._device.active():
            self.run = import_module(backend.replays).Replay(program, found)
        self._statics = [(v.source.holder, v) for v in self.run.statics if v.source]
        self.link()

        self._given = [value.source.holder for value in found if value.source is not None and _is_argument(value)]
        finds = [(_find(value, places), value) for value in found[len(self._given) :]]
        self._finds = [find for find, _ in finds]
        self._passed = list(map(self._arithmetic.place, self.run.numbers))
        self._guards = Guards(recorder, places, [tensor for tensor, _ in self._statics], finds, watched)
        self._renewable = [gradients for gradients in slots if id(gradients) not in recorder.leaves.looked_at]
        self.arguments = [(tensor._data.dtype, tuple(tensor._data.shape)) for tensor in arguments]
        self.outputs = {v.number: new for v, new in zip(outputs, program.outputs, strict=True)}
        self.results = program.outputs[: self._effects.returned]
        self.left = Left.by(recorder, last)

    @property
    def program(self) -> Program:
        """What is replayed."""
        program: Program = self.run.program
        return program

    def replay(self, args: Sequence[Any]) -> Any:
        """Return what the step returns, or `MISS` if this is not the way for some arguments; nothing has changed then.

        It holds no array while optimizers count who sees theirs.
        """
        guards, effects = self._guards, self._effects

        # Whether all is as it was
        if len(args) != guards.count:
            return MISS
        if grad_enabled.get() is not guards.recording or _default.get() is not guards.default:
            return MISS
        for i, kind, place, needed, shape, strides in guards.arguments:
            arg = args[i]
            if type(arg) is not kind or arg._place is not place or (arg._edge is not None) is not needed:
                return MISS
            if arg._data.shape != shape or arg._data.strides != strides:
                return MISS
        try:
            for cell, value in guards.cells:
                if cell.cell_contents is not value and guards.changed():
                    return MISS
            for variables, name, value in guards.names:
                if variables[name] is not value and guards.changed():
                    return MISS
        except (KeyError, ValueError):  # one is no longer there
            return MISS
        if guards.modules is not None and guards.modules.edits != edits.number and not guards.modules():
            return MISS
        for tensor, leaf in guards.edges:
            if tensor._edge is not leaf or leaf.hooks:
                return MISS
        for tensor in guards.free:
            if tensor._edge is not None:
                return MISS
        for leaf in guards.bare:
            if leaf.grad is not None:
                return MISS
        for optimizer, count, key, laid, group, params, earlier in guards.groups:
            if optimizer._laid.get(key) is not laid or len(optimizer.param_groups) != count:
                return MISS
            if group["params"] is not params or len(params) != len(earlier) or not all(map(is_, params, earlier)):
                return MISS
        for flat, count in guards.flats:
            if len(flat.arrays) != count:
                return MISS
        if guards.rarer and not guards.hold_rarer(args):
            return MISS
        numbers = self._arithmetic.values()
        if numbers is None or (self._moved() and not self._relink()):
            return MISS

        # The program
        given = []
        for i in self._given:
            given.append(args[i]._data)
        for find in self._finds:
            given.append(find(args))
        for i in self._passed:
            given.append(numbers[i])
        outputs = self.run.run(*given)
        if type(outputs) is not tuple:
            self.error = outputs.with_traceback(None)  # in which there are arrays, that optimizers count
            return MISS

        # What is left behind
        tensors = []
        for i, place in effects.made:
            tensors.append(placed(outputs[i], place))
        tensors.extend(args)
        for leaf in effects.cleared:
            leaf.grad = None
        for gradients, places in effects.slots:
            kept = gradients.tensors
            for leaf, i in places:
                leaf.grad = kept[i]
        if effects.rarer:
            effects.leave_rarer(args, outputs, tensors)
        for remembered, name, i in effects.written:
            remembered[name] = numbers[i]
        if effects.flats:
            when = clock.change()
            for flat in effects.flats:
                flat.stepped = True
            for p, leaf in effects.updated:
                p._changed = leaf.changed = when
            for i, leaf in effects.updated_arguments:
                args[i]._changed = leaf.changed = when
        return effects.take(tensors)

    def failure(self) -> Exception | None:
        """Return the error of the last replay, once, if it was one; that a check came out otherwise is none."""
        error, self.error = self.error, None
        return None if type(error) is Diverged else error

    def over(self) -> bool:
        """Return whether there will not be another replay: an optimizer has laid its parameters anew, or such."""
        return not all(flat.intact() for flat in self._flats) or self._guards.over()

    # Memory

    def waits(self) -> bool:
        """Return whether parameters must be moved by the step itself, which computes with them before."""
        return any(flat.intact() and lies_otherwise(flat) for flat in self._flats)

    def _moved(self) -> bool:
        """Return whether arrays lie elsewhere than at the last replay, are seen by somebody else, or go to a plan."""
        if self.run.ripe:
            return True
        for flat in self._flats:
            if flat.watchers() != flat.private:
                return True
        for gradients in self._renewable:
            if gradients.seen:
                return True
        for tensor, array in self._still:
            if tensor._data is not array:
                break
        else:
            return False
        return True

    def _relink(self) -> bool:
        if self.waits():
            return False
        for gradients in self._renewable:
            if gradients.seen:
                gradients.renew()
        for flat in self._flats:
            flat.keep_private()
        try:
            return self.link()
        except Exception as error:  # such as no memory for a plan: the step itself knows of none
            self.error = error.with_traceback(None)
            return False

    def plan(self) -> None:
        """Make the plan of the program that is made otherwise when it has been replayed for a while."""
        if not self.run.planned:
            self.run.ripe = True
            self._relink()

    def link(self) -> bool:
        """Follow tensors to the memory where they are now; return whether they can be followed."""
        if not self._same():
            return False
        flats = self._seen()
        before = [flat.watchers() for flat in flats]
        self._follow()
        for flat, earlier in zip(flats, before, strict=True):
            flat.allow(earlier)
        return True

    def _seen(self) -> list[Flat]:
        """Return where optimizers keep what is linked, whether or not they take a step here."""
        slots = [getattr(tensor._leaf, "slot", None) for tensor, _ in self._statics]
        flats = [*self._flats, *(slot.flat() for slot in slots if slot is not None)]
        return list({id(flat): flat for flat in flats if flat is not None}.values())

    def release(self) -> None:
        """Let go of the memory that is seen, for optimizers count who sees it."""
        flats = self._seen()
        before = [flat.watchers() for flat in flats]
        self._still = []
        if self.run is not None:
            self.run.release()
        for flat, earlier in zip(flats, before, strict=True):
            flat.allow(earlier)

    def __del__(self) -> None:  # or optimizers would take less who see it for a change, and move parameters
        self.release()

    def _same(self) -> bool:
        arrays = [tensor._data for tensor, _ in self._statics]
        roots: dict[int, int] = {}
        for (tensor, value), array in zip(self._statics, arrays, strict=True):
            same = array.shape == value.shape and array.dtype == value.dtype and array.strides == value.strides
            if not same or tensor.device is not self._device:
                return False
            if roots.setdefault(id(value.storage), id(root_of(array))) != id(root_of(array)):
                return False
        return len(set(roots.values())) == len(roots)

    def _follow(self) -> None:
        arrays = [tensor._data for tensor, _ in self._statics]
        self.run.link(arrays)
        # What an optimizer keeps for itself moves all at once.
        kept = {id(t) for flat in self._flats for t in (*flat.places, *flat.gradients.views)}
        wholes = {id(t): t for flat in self._flats for t in (flat.buffer, flat.gradients.buffer)}
        still = [(tensor, array) for (tensor, _), array in zip(self._statics, arrays, strict=True)]
        still = [(tensor, array) for tensor, array in still if id(tensor) not in kept and id(tensor) not in wholes]
        self._still = still + [(tensor, tensor._data) for tensor in wholes.values()]


def lies_otherwise(flat: Flat) -> bool:
    """Return whether parameters were given arrays of another layout, with which NumPy may compute other bits."""
    return any(p._data.strides != place._data.strides for p, place in zip(flat.params, flat.places, strict=True))


def _dynamic(recorder: Recorder) -> set[Value]:
    """Return the inputs that are found anew at each replay: arguments, and what the step itself replaces."""
    dynamic = set()
    for value in recorder.inputs:
        assert value.source is not None
        if value.source.kind != "tensor" or id(value.source.holder) in recorder.rebound:
            value.storage.kind = "input"
            dynamic.add(value)
    return dynamic


def _is_argument(value: Value) -> bool:
    return value.source is not None and value.source.kind == "argument"


def _find(value: Value, arguments: Arguments) -> Find:
    """Return what finds the array of an input that is no argument."""
    assert value.source is not None
    if value.source.kind == "gradient":
        return partial(_gradient, arguments.place_of_leaf(value.source.holder))
    return partial(_array, value.source.holder)


def _gradient(leaf: Leaf | int, args: Sequence[Any]) -> Any:
    now = leaf_at(leaf, args)
    return None if now is None or now.grad is None else now.grad._data


def _array(tensor: Tensor, args: Sequence[Any]) -> Any:
    return tensor._data
