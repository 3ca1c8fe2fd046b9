"""One way through a step: a program, on which conditions it holds, and what it leaves behind beside its results.

All that is known when it was recorded is written out as one function of Python, `Frame.replay`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from xgrad.capturing.arrays import Recorded
from xgrad.capturing.effects import Effects
from xgrad.capturing.guards import Guards
from xgrad.capturing.left import Left
from xgrad.capturing.program import Unchecked, Value, simplified
from xgrad.capturing.recorder import Recorder, root_of
from xgrad.capturing.surroundings import Inside, Watched
from xgrad.capturing.writing import MISS, Unusable
from xgrad.optim.flat import Flat
from xgrad.tensor import Tensor


class Frame(Guards, Effects):
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
    watched : sequence of Watched
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
        watched: Sequence[Watched | Inside],
    ) -> None:
        super().__init__(recorder, arguments, last)
        self.error: Exception | None = None  # of the last replay
        self._scope |= {"failed": self._failed, "relink": self._relink}
        returned = self._returned(results)
        returning = len(self._outputs)
        self._leave_behind()
        dynamic = self._dynamic()
        try:
            program = simplified(recorder.program(self._outputs))
        except Unchecked as error:
            raise Unusable(f"values that the step has changed before are checked at {error}") from error
        found = [value for value in program.inputs if value in dynamic or _is_dynamic(value, dynamic)]
        with self._device.active():
            self.run = import_module(backend.replays).Replay(program, found)
        self.program = self.run.program
        self._statics = [(v.source.holder, v) for v in self.run.statics if v.source]
        self.link()

        self._guard_arguments(arguments, watched)
        self._guard(arguments, found)
        numbers = self._computed()
        handed = [self._argument(value) for value in found] + numbers
        outputs = [f"o{i}" for i in range(len(self._outputs))]
        target = f"({', '.join(outputs)},) = " if outputs else ""
        self._lines.append(f"out = run({', '.join(handed)})")
        self._lines.append("if type(out) is not tuple: return failed(out)")
        if outputs:
            self._lines.append(f"{target}out")
        self._lines += self._effects
        self._lines.append(f"return {returned}")
        self._scope["run"] = self.run.run
        body = "\n    ".join(self._lines)
        self.source = f"def replay(args):\n    {body}\n"
        exec(compile(self.source, "<captured step>", "exec"), self._scope)
        self.replay: Callable[[Any], Any] = self._scope["replay"]
        self.arguments = [(tensor._data.dtype, tuple(tensor._data.shape)) for tensor in arguments]
        self.outputs = {v.number: new for v, new in zip(self._outputs, program.outputs, strict=True)}
        self.results = program.outputs[:returning]
        self.left = Left.by(recorder, last)
        del self._recorder, self._last, self._lines, self._effects, self._edges, self._outputs

    def _dynamic(self) -> set[Value]:
        """Return the inputs that are found anew at each replay: arguments, and what the step itself replaces."""
        rebound = self._recorder.rebound
        dynamic = set()
        for value in self._recorder.inputs:
            assert value.source is not None
            if value.source.kind != "tensor" or id(value.source.holder) in rebound:
                value.storage.kind = "input"
                dynamic.add(value)
        return dynamic

    # Memory

    def waits(self) -> bool:
        """Return whether parameters must be moved by the step itself, which computes with them before."""
        return any(flat.intact() and lies_otherwise(flat) for flat in self._flats)

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
        except Unusable as error:
            self.error = error
            return False

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

    def _failed(self, error: Exception) -> Any:
        self.error = error
        return MISS

    def release(self) -> None:
        """Let go of the memory that is seen, for optimizers count who sees it."""
        flats = self._seen()
        before = [flat.watchers() for flat in flats]
        self._scope.clear()
        self.run.release()
        for flat, earlier in zip(flats, before, strict=True):
            flat.allow(earlier)

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
        self._scope["still"] = still + [(tensor, tensor._data) for tensor in wholes.values()]


def lies_otherwise(flat: Flat) -> bool:
    """Return whether parameters were given arrays of another layout, with which NumPy may compute other bits."""
    return any(p._data.strides != place._data.strides for p, place in zip(flat.params, flat.places, strict=True))


def _is_dynamic(value: Value, dynamic: set[Value]) -> bool:
    return value.storage.kind == "input"
