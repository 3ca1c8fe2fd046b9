"""A program with the conditions on which it holds, and what it leaves behind besides its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from xgrad import trees
from xgrad.capture.code_writer import CodeWriter
from xgrad.capture.effects import Effects
from xgrad.capture.errors import Diverged, Unusable
from xgrad.capture.guards import equal, like, same, write_guards
from xgrad.capture.memory import owner_of
from xgrad.capture.outcome import Outcome, buffers_of
from xgrad.capture.passes import optimize
from xgrad.capture.program import Program, Value
from xgrad.capture.state import holds_state
from xgrad.devices import _default
from xgrad.grad_mode import grad_enabled
from xgrad.graph import clock
from xgrad.nn.module import edits
from xgrad.optim.flat import Flat
from xgrad.tensor import Tensor, placed

#: What a replay returns where the program is not the one for a call; nothing has changed then.
MISS: Any = type("Miss", (), {"__slots__": ()})()


class CachedProgram:
    """The program of a step for calls that are alike.

    Parameters
    ----------
    outcome : Outcome
        The step as it was traced.

    Attributes
    ----------
    program : Program
        What is replayed.
    effects : Effects
        What else a replay does.
    count, structure : int, object
        The number of tensors among the arguments, and the containers and other arguments.
    error : Exception or None
        Why the last replay was not finished.

    Raises
    ------
    Unusable
        If it cannot be replayed.
    """

    def __init__(self, outcome: Outcome) -> None:
        self.executor: Any = None
        self._check: Callable[..., Any]
        self._leave: Callable[..., Any]
        self.error: Exception | None = None
        self._device, self._state, self._flats = outcome.trace.real, [], []
        self.count, self.structure = len(outcome.given), outcome.structure
        self._still: list[tuple[Tensor, Any]] = []
        writer = CodeWriter(
            MISS=MISS, grad_enabled=grad_enabled.get, default=_default.get, edits=edits, change=clock.change,
            placed=placed, rebuild=trees.rebuild, same=same, equal=equal, like=like, fits=_fits,
            holds_state=holds_state,
        )  # fmt: skip
        self.effects = Effects(writer, outcome)
        sources, state = self._sources(writer, outcome)
        values = [traced.value for _, traced in outcome.arrays()]
        inputs = list({value.number: value for value in values if value.number in sources}.values())
        found = list({value.number: value for value in values if value.number in state}.values())
        program = Program(inputs, found, outcome.trace.calls, self.effects.outputs, outcome.trace.constants)
        self.program = program = optimize(program)
        uses = program.first_uses()
        self._flats = write_guards(writer, outcome, uses)
        for flat in self._flats:
            for leaf, view, gradient in zip(flat.leaves, flat.gradients.views, flat.gradients.tensors, strict=True):
                if (
                    (id(leaf), "grad") not in outcome.changed
                    and leaf.grad is gradient
                    and uses.get(outcome.number_of(view))
                ):
                    self.effects.leave_packed(leaf, gradient)
        self._state = [(value, state[value.number]) for value in program.state]
        self._write(writer, outcome, sources)
        with self._device.active():
            module: Any = import_module(self._device.backend.executor or "")
            self.executor = module.Executor(program)
        self.effects.forget()

    def _sources(self, writer: CodeWriter, outcome: Outcome) -> tuple[dict[int, str], dict[int, Tensor]]:
        """Return expressions for the arrays that each replay is given, and the tensors whose arrays stay, by number."""
        arguments = {id(x) for x in outcome.given if id(x) not in outcome.state.tensors}
        sources: dict[int, str] = {}
        state: dict[int, Tensor] = {}
        for slot, traced in outcome.arrays():
            number, owner = traced.value.number, slot.owner
            if number in sources or number in state:
                continue
            moves = id(owner) in arguments or id(owner) in outcome.old_gradients
            if moves or (id(owner), "_data") in outcome.changed:
                sources[number] = f"{outcome.source_of(writer, owner)}._data"
            else:
                state[number] = owner
        return sources, state

    def _write(self, writer: CodeWriter, outcome: Outcome, sources: dict[int, str]) -> None:
        """Write the function that checks the guards and finds what the program is given, and that of the effects."""
        given = [sources[value.number] for value in self.program.inputs]
        arguments = "".join([f"a{i}, " for i in range(self.count)])
        for source, value in zip(given, self.program.inputs, strict=True):
            if source[0] != "a" or source.count(".") > 1:  # arguments themselves have guards
                writer.guard(f"not fits({source}, {{}})", value)
        for condition in outcome.trace.conditions:
            writer.condition(condition)
        given += [writer.number(number) for number in self.program.numbers]
        lines = [
            *([f"{arguments}= args"] if arguments else []),
            *writer.guards(),
            *writer.numbers,
            f"return ({''.join([f'{x}, ' for x in given])}), ({''.join([f'{x}, ' for x in writer.passed])})",
        ]
        self._check = writer.function("check(args)", lines)
        names = [f"{arguments}= args"] if arguments else []
        names += [f"{', '.join(writer.passed)}, = numbers"] if writer.passed else []
        self._leave = writer.function(
            "leave(outputs, args, numbers)", [*names, *writer.effects(), f"return {self.effects.result}"]
        )

    def replay(self, args: Sequence[Any]) -> Any:
        """Return what the step returns for some tensors among the arguments, or `MISS`."""
        for flat in self._flats:
            if flat.gradients.seen:  # what somebody looks at is left to them, as before any backward pass
                flat.gradients.renew()
        try:
            found = self._check(args)
        except (ArithmeticError, AttributeError, LookupError, ValueError):  # something is no longer there
            return MISS
        if found is MISS or (self.moved() and not self.relink()):
            return MISS
        given, numbers = found
        outputs = signal = None
        done = self.executor.done
        done.clear()
        for again in (True, False):
            try:
                if outputs is None:
                    outputs = self.executor.run(*given)
                if type(outputs) is not tuple:
                    self.error = outputs.with_traceback(None)  # whose frames hold arrays
                    return MISS
                result = self._leave(outputs, args, numbers)
                break
            except BaseException as error:
                if not (done and again):
                    raise
                outputs, signal = done[0], error  # after all writes: the rest is done before it is raised
        done.clear()
        if signal is not None:
            raise signal
        return result

    def failure(self) -> Exception | None:
        """Return the error of the last replay, once; that a check came out differently is none."""
        error, self.error = self.error, None
        return None if type(error) is Diverged else error

    # Memory

    def moved(self) -> bool:
        """Return whether arrays have moved since the last replay, or somebody else has come to see them."""
        for flat in self._flats:
            if flat.watchers() != flat.private:
                return True
        return any(tensor._data is not array for tensor, array in self._still)

    def relink(self) -> bool:
        """Move packed parameters to a buffer that nobody else sees, and follow all arrays; return whether they fit."""
        for flat in self._flats:
            if any(p._data.strides != place._data.strides for p, place in zip(flat.params, flat.places, strict=True)):
                return False  # the step itself computes with the array of another layout before it moves it
        for flat in self._flats:
            flat.keep_private()
        try:
            return self.link()
        except Unusable as error:
            self.error = error.with_traceback(None)  # whose frames hold arrays, which optimizers count
            return False

    def link(self) -> bool:
        """Give the executor the arrays of the state where they are now; return whether they fit."""
        if not self._fits():
            return False
        flats = self._seen()
        before = [flat.watchers() for flat in flats]
        with self._device.active():
            self.executor.link([tensor._data for _, tensor in self._state])
        packed = {id(x) for flat in self._flats for x in buffers_of(flat)}
        wholes = [x for flat in self._flats for x in (flat.buffer, flat.gradients.buffer, *flat.params)]
        self._still = [(x, x._data) for x in (*wholes, *[x for _, x in self._state if id(x) not in packed])]
        for flat, earlier in zip(flats, before, strict=True):
            flat.allow(earlier)
        return True

    def _fits(self) -> bool:
        """Return whether the arrays of the state are like those in the trace, and share memory in the same way."""
        owners: dict[int, int] = {}  # of storages, by id
        for value, tensor in self._state:
            owner = id(owner_of(tensor._data))
            if tensor.device is not self._device or not _fits(tensor._data, value):
                return False
            if owners.setdefault(id(value.storage), owner) != owner:
                return False
        return len(set(owners.values())) == len(owners)

    def _seen(self) -> list[Flat]:
        """Return the packed parameters whose memory the executor refers to."""
        slots = [getattr(tensor._leaf, "slot", None) for _, tensor in self._state]
        flats = [*self._flats, *(slot.flat() for slot in slots if slot is not None)]
        return list({id(flat): flat for flat in flats if flat is not None}.values())

    def release(self) -> None:
        """Drop the arrays of the state: optimizers count references to them."""
        if self.executor is not None:
            flats = self._seen()
            before = [flat.watchers() for flat in flats]
            self._still = []
            self.executor.release()
            for flat, earlier in zip(flats, before, strict=True):
                flat.allow(earlier)

    def over(self) -> bool:
        """Return whether it will never hold again: an optimizer keeps parameters in another way."""
        return not all(flat.intact() for flat in self._flats)

    def __del__(self) -> None:  # or optimizers would take fewer references for a change, and move parameters
        self.release()


def _fits(array: Any, value: Value) -> bool:
    """Return whether an array is like that in the trace."""
    alike = array.shape == value.shape and array.dtype == value.dtype
    return bool(alike and array.strides == value.strides)
