"""A program with its guards and its side effects."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any
from weakref import finalize

from xgrad.backend.ownership import owner_of
from xgrad.capture.check_writer import CheckWriter
from xgrad.capture.effects import Effects
from xgrad.capture.guards import write_guards
from xgrad.capture.passes import optimize
from xgrad.capture.program import Program, Unusable, Value
from xgrad.capture.slots import Recording, buffers_of
from xgrad.core.tensor import Tensor
from xgrad.optim.flat import FlatParameters

#: Returned by a replay if the program does not fit the call; nothing has changed then.
MISS: Any = type("Miss", (), {"__slots__": ()})()


class CachedProgram:
    """The program of a step for calls that are alike.

    Raises `Unusable` if it cannot be replayed.
    """

    def __init__(self, recording: Recording, native: bool | None = None) -> None:
        self.executor: Any = None
        self.error: Exception | None = None  # why the last replay did not finish
        #: Tensors of the state, and the arrays that they had when they were linked.
        self._linked: list[tuple[Tensor, Any]] = []
        recorder, tensors = recording.recorder, recording.tensors
        self._device, self.count, self.structure = recorder.real, len(tensors), recording.structure
        self.number_names = recorder.number_names
        self.effects = effects = Effects(recording)
        sources, state, values = _owners(recording)
        inputs, kept = [[values[number] for number in part] for part in (sources, state)]
        self.program = program = Program(
            inputs, kept, recorder.calls, effects.outputs, recorder.constants
        )
        optimize(program)
        self._state = [(value, state[value.number]) for value in program.state]
        writer = CheckWriter(recorder, self.count)
        _name_arguments(writer, recording)
        self._flats = write_guards(writer, recording, program, effects.returned)
        arrays = [f"{writer.name(sources[value.number])}._data" for value in program.inputs]
        for array, value in zip(arrays, program.inputs, strict=True):
            if array[0] != "a" or array.count(".") > 1:  # arguments themselves have guards
                writer.guard(f"{{}}({array})", value.fits)
        self._check = writer.check(arrays, program.numbers, effects.numbers)
        with self._device.active():
            module: Any = import_module(self._device.backend.executor or "")
            self.executor = module.Executor(program, native)
        # not at exit: the device's memory is freed with the process anyway
        finalize(self, self.executor.release).atexit = False

    def replay(self, args: Sequence[Any]) -> Any:
        """Return the result of the step for the tensors among the arguments, or `MISS`."""
        for flat in self._flats:
            # an exposed buffer is replaced, as it is before any backward pass
            if flat.gradients.exposed:
                flat.gradients.reallocate()
        try:
            found = self._check(args)
        except (
            ArithmeticError,
            AttributeError,
            LookupError,
            ValueError,
        ):  # an attribute or a key is gone
            return MISS
        if found is None or (self._moved() and not self._relink()):
            return MISS
        arrays, numbers, stored = found
        outputs = self.executor.run(*arrays, *numbers)
        if type(outputs) is not tuple:
            self.error = outputs.with_traceback(None)  # its frames hold arrays
            return MISS
        return self.effects.apply(outputs, args, stored)

    def failure(self) -> Exception | None:
        """Return and clear the error of the last replay: `Diverged` if a check failed."""
        error, self.error = self.error, None
        return error

    # Memory

    def _moved(self) -> bool:
        """Return whether arrays have moved since the last replay."""
        for tensor, array in self._linked:  # noqa: SIM110 (a generator is half as fast)
            if tensor._data is not array:
                return True
        return False

    def _relink(self) -> bool:
        """Move packed parameters to their buffer, and link again; return whether the arrays fit."""
        if not all(map(in_layout, self._flats)):
            # the eager step computes with an array of another layout before it moves it
            return False
        for flat in self._flats:
            flat.gather_parameters()
        try:
            return self.link()
        except Unusable as error:
            self.error = error.with_traceback(None)  # its frames hold arrays
            return False

    def link(self) -> bool:
        """Pass the current arrays of the state to the executor; return whether they fit."""
        owners: dict[int, int] = {}  # of the storages, by id
        for value, tensor in self._state:
            owner = id(owner_of(tensor._data))
            same = owners.setdefault(id(value.storage), owner) == owner
            if not (same and tensor.device is self._device and value.fits(tensor._data)):
                return False
        if len(set(owners.values())) < len(owners):
            return False
        packed = {id(x) for flat in self._flats for x in buffers_of(flat)}
        with self._device.active():
            self.executor.link([tensor._data for _, tensor in self._state])
        wholes = [
            x for flat in self._flats for x in (flat.buffer, flat.gradients.buffer, *flat.params)
        ]
        still = [*wholes, *[x for _, x in self._state if id(x) not in packed]]
        self._linked = [(x, x._data) for x in still]
        return True

    def release(self) -> None:
        """Drop the arrays of the state, and the memory of the executor."""
        if self.executor is not None:
            self._linked = []
            self.executor.release()

    def is_obsolete(self) -> bool:
        """Return whether it can never be replayed again, as an optimizer repacked parameters."""
        return not all(flat.intact() for flat in self._flats)


def in_layout(flat: FlatParameters) -> bool:
    """Return whether parameters have the strides that they have in their buffer."""
    return all(
        p._data.strides == segment._data.strides
        for p, segment in zip(flat.params, flat.segments, strict=True)
    )


def _owners(recording: Recording) -> tuple[dict[int, Tensor], dict[int, Tensor], dict[int, Value]]:
    """Return the tensors whose arrays are passed at each replay, the fixed ones, and their values.

    Fixed tensors are state whose arrays stay where they are. All three are keyed by the numbers of
    the values.
    """
    sources: dict[int, Tensor] = {}
    state: dict[int, Tensor] = {}
    values: dict[int, Value] = {}
    moving = {
        id(x) for x in (*recording.tensors, *recording.gradients.values())
    } - recording.state.named.keys()
    for slot in recording.arrays:
        value, owner = slot.value, slot.owner
        if value is not None and value.number not in values:
            values[value.number] = value
            moves = id(owner) in moving or (id(owner), "_data") in recording.changed
            (sources if moves else state)[value.number] = owner
    return sources, state, values


def _name_arguments(writer: CheckWriter, recording: Recording) -> None:
    """Name the objects that differ from call to call: arguments, their leaves, and gradients."""
    for i, x in enumerate(recording.tensors):
        if not recording.is_identified(x):
            writer.bind(x, f"a{i}")
            writer.bind(x._leaf, f"a{i}._leaf")
    for flat in recording.slots.flats.values():
        for i in filter(flat.packs, range(len(flat.params))):
            writer.bind(flat.gradients.tensors[i], f"{writer.name(flat.gradients)}.tensors[{i}]")
    for _, leaf, _ in recording.slots.leaves.values():
        gradient = recording.gradients[id(leaf)]
        if id(gradient) not in recording.state.named:
            writer.bind(gradient, f"{writer.name(leaf)}.grad")
