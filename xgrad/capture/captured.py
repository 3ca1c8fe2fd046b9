"""A captured step: recorded once for each kind of call, and replayed from then on."""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial, update_wrapper
from threading import RLock, active_count
from types import MethodType
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, Self, TypeVar, overload
from weakref import ref

from xgrad.backend.device import Device, intercepting
from xgrad.backend.devices import current_device
from xgrad.backend.recording import CaptureWarning
from xgrad.capture.cached_program import MISS, CachedProgram, in_layout
from xgrad.capture.effects import Effects
from xgrad.capture.guards import structure_of
from xgrad.capture.program import Diverged, Unusable
from xgrad.capture.recorder import Recorder
from xgrad.capture.slots import Recording, Slots
from xgrad.capture.state import StepState, foreign_states
from xgrad.core.graph import Node
from xgrad.core.tensor import Tensor
from xgrad.optim.optimizer import Optimizer
from xgrad.support.user_code import user_line, warn_user

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")

_TRIES = 4  # recordings in which optimizers may still pack parameters
_PAID = 20  # once `limit` is reached, one more call is recorded for this many replays
# consecutive recordings in which the step raised, before calls run eagerly until one succeeds
_RAISED = 4


class Arguments(NamedTuple):
    """The arguments of a call: their containers, the tensors in these, and all other contents."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    structure: Any
    tensors: list[Tensor]
    others: list[Any]

    @property
    def are_tensors(self) -> bool:
        """Whether all arguments are tensors, and positional."""
        return not self.kwargs and all(isinstance(x, Tensor) for x in self.args)


class Captured(Generic[P, R]):
    """A step that is recorded and replayed: what `capture` returns.

    Attributes
    ----------
    refusal : str or None
        Why the step runs eagerly, if it does: the line and the reason.
    recordings : int
        The number of recorded calls so far.
    """

    def __init__(
        self,
        step: Callable[P, R],
        state: Any = None,
        limit: int = 16,
        verify: int = 0,
        native: bool | None = None,
    ) -> None:
        update_wrapper(self, step)
        self._step = step
        self._extra_state = state
        self._limit = limit
        self._verify = verify
        self._native = native
        self._lock = RLock()  # a call may lead to another one in the same thread
        self._is_called = False
        self._programs: OrderedDict[int, CachedProgram] = OrderedDict()  # least recently used first
        self._recent: CachedProgram | None = None  # if its arguments are positional tensors only
        self._layout_changes = self._replays = self._calls = self._raised = 0
        # whether the last call ran eagerly because a check came out differently, and succeeded
        self._diverged = False
        self._has_stored = False  # whether the last recorded call stored a tensor that it made
        self._warned = False
        self._name: str = getattr(step, "__name__", "")
        self.refusal: str | None = None
        self.recordings = 0
        code = getattr(getattr(step, "__func__", step), "__code__", None)
        self._line = (
            f"{code.co_filename.rpartition('/')[2]}:{code.co_firstlineno}" if code else user_line()
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._step, *self._options)

    @property
    def _options(self) -> tuple[Any, ...]:
        return self._extra_state, self._limit, self._verify, self._native

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...
    @overload
    def __get__(
        self: Captured[Concatenate[Any, Q], R], instance: object, owner: type | None = None
    ) -> Captured[Q, R]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Return the captured method of an instance, made at the first access."""
        if instance is None:
            return self
        attributes = getattr(instance, "__dict__", None)
        if attributes is None:
            raise TypeError(
                f"capture: expected instances of {type(instance).__name__} with a __dict__, which"
                " the captured method is kept in: leave out __slots__, or capture the bound method"
            )
        bound = attributes.get(self._name)
        # a copied instance has the bound method of the original in its __dict__
        if (
            bound is None
            or getattr(getattr(bound, "_step", None), "__self__", instance) is not instance
        ):
            method: Any = MethodType(self._step, instance)
            bound = attributes[self._name] = Captured(method, *self._options)
        return bound

    def __set__(self, instance: Any, value: Any) -> None:
        vars(instance)[self._name] = value

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Replay the step, or run and record it."""
        # this call is part of another captured step, or each op is to be intercepted
        if intercepting.get() is not None:
            return self._step(*args, **kwargs)
        with self._lock:
            # The step calls itself, or a handler of a signal, a warning or a NumPy error calls it.
            # A replay, which has only one set of buffers, may be in progress.
            if self._is_called:
                return self._step(*args, **kwargs)
            self._is_called = True
            try:
                recent = self._recent
                if (
                    recent is not None
                    and len(args) == recent.count
                    and not kwargs
                    and not self._verify
                ):
                    result = recent.replay(args)
                    if result is not MISS:
                        self._replays += 1
                        return result  # type: ignore[no-any-return]
                    # `_replayed` tries it again if it has the structure of this call
                    recent.error = None
                if self.refusal is None:
                    contents: list[Any] = []
                    try:
                        structure = structure_of((args, kwargs), contents)
                    except RecursionError:
                        self._refuse(
                            f"{self._line}: an argument contains itself, or many containers in each"
                            " other"
                        )
                    else:
                        parts = [
                            [x for x in contents if isinstance(x, Tensor) is kind]
                            for kind in (True, False)
                        ]
                        return self._called(  # type: ignore[no-any-return]
                            Arguments(args, kwargs, structure, *parts)
                        )
                return self._step(*args, **kwargs)
            finally:
                self._is_called = False

    def _called(self, call: Arguments) -> Any:
        """Replay or record the step for a call, and verify the replay when that is due."""
        self._calls += 1
        if not self._verify or self._calls % self._verify:
            return self._replayed(call)
        from xgrad.capture.verification import verified  # loaded only if needed

        replays = self._replays
        slots = Slots(StepState(self._step, call.others, self._extra_state), call.tensors)

        def replay() -> tuple[Any, bool]:
            return self._replayed(call), self._replays > replays

        return verified(slots, replay, partial(self._step, *call.args, **call.kwargs))

    def _replayed(self, call: Arguments) -> Any:
        """Replay the program for a call, or record the step."""
        error, diverged = None, False
        for key, program in reversed(self._programs.items()):
            if program.structure == call.structure and error is None:
                result = program.replay(call.tensors)
                if result is not MISS:
                    self._replays += 1
                    self._recent = program if call.are_tensors else None
                    self._programs.move_to_end(key)
                    return result
                error = program.failure()
                if type(error) is Diverged:
                    error, diverged = None, True
        # most checks are of arguments: the eager step raises the error
        if diverged and not self._diverged:
            result = self._step(*call.args, **call.kwargs)
            self._diverged = True
            return result
        self._diverged = False
        if error is None:
            return self._recorded(call)
        result = self._step(*call.args, **call.kwargs)  # raises the error itself, or succeeds
        if isinstance(error, Unusable):
            self._refuse(f"{error.line or self._line}: {error}")
        else:
            self._refuse(f"{self._line}: a replay failed: {type(error).__name__}: {error}")
        return result

    # Recording

    def _recorded(self, call: Arguments) -> Any:
        """Run the step, and record it unless that is of no use."""
        for key in [key for key, program in self._programs.items() if program.is_obsolete()]:
            self._drop(key)
        if self.recordings >= self._limit + self._replays // _PAID:
            self._warn_of_limit()
            recording = None
        else:
            recording = self._prepared(call) if self._raised < _RAISED else None
        if recording is None:
            result = self._step(*call.args, **call.kwargs)
            self._raised = 0
            return result
        self._raised += 1
        program, result = self._run(recording, call)
        self._raised = 0
        self.recordings += 1
        del recording
        try:
            if program is not None and program.link():
                while len(self._programs) >= self._limit:
                    self._drop(next(iter(self._programs)))
                self._programs[self.recordings] = program
                self._recent = program if call.are_tensors else None
        except Unusable as error:
            self._refuse(f"{error.line or self._line}: {error}")
        return result

    def _prepared(self, call: Arguments) -> Recording | None:
        """Return the recording of a step that is about to run; None if the call is not recorded."""
        try:
            state = StepState(self._step, call.others, self._extra_state)
        except Exception as error:  # raised by the user's own attributes or mappings
            self._refuse(
                f"{self._line}: the state cannot be found: {type(error).__name__}: {error}"
            )
            return None
        device = next(
            (x.device for x in (*call.tensors, *[x for _, x in state.of(Tensor)])), current_device()
        )
        reason = _unsuitable(device, call)
        if reason is not None:
            self._refuse(f"{user_line()}: {reason}")
            return None
        if (
            not self._layout_changes
            and self.recordings == 0
            and not all(x.is_packed() for _, x in state.of(Optimizer))
        ):
            self._layout_changes = 1
            return None  # optimizers pack parameters
        slots = Slots(state, call.tensors)
        if not all(map(in_layout, slots.flats.values())):
            return None  # optimizers move parameters
        exposed = [flat.gradients for flat in slots.flats.values() if flat.gradients.exposed]
        for gradients in exposed:
            gradients.reallocate()
        for flat in slots.flats.values():
            flat.gather_parameters()
        slots = Slots(state, call.tensors) if exposed else slots
        return Recording(state, slots, Recorder(device, self._line), call.tensors, call.structure)

    def _run(self, recording: Recording, call: Arguments) -> tuple[CachedProgram | None, Any]:
        """Run the step while it is recorded; return its program, or None, and its result."""
        generators = recording.state.foreign_generators
        draws = foreign_states(generators)
        try:
            with recording.recorder.active():
                recording.result = self._step(*call.args, **call.kwargs)
            recording.finish()
            if foreign_states(generators) != draws:
                # perhaps another thread drew the numbers
                if active_count() > 1 and self._layout_changes < _TRIES:
                    self._layout_changes += 1
                    return None, recording.result
                recording.recorder.refuse("the step draws random numbers of Python or NumPy")
            return self._program(recording, call)
        finally:
            recording.restore_arrays()
            recording.recorder.forget()

    def _program(self, recording: Recording, call: Arguments) -> tuple[CachedProgram | None, Any]:
        """Return the program of a step that has just run, or None, and its result."""
        recorder = recording.recorder
        # A tensor that is stored may be a cache, such as a mask, which the next call finds.
        may_store, self._has_stored = not self._has_stored, False
        stores = may_store and recording.stores_tensors()
        if not stores:
            for change in recording.unsupported_changes():
                recorder.refuse(f"the step changes {change}")
        program, settled = None, recording.has_same_layouts()
        if settled and not recorder.refusal and not stores:
            try:
                program = CachedProgram(recording, self._native)
            except Unusable as error:
                recorder.refuse(str(error), error.line or "")
        if program is None:
            result = recording.result
        else:
            result, escaped = _own_result(recording, program.effects, call.tensors)
            if escaped is not None and not may_store:
                recorder.refuse(
                    "a tensor that the step makes is held elsewhere when it returns", escaped
                )
            elif escaped is not None:
                stores, program = True, None
        self._layout_changes += not settled
        self._has_stored = stores
        if recorder.refusal:
            self._refuse(recorder.refusal)
        elif not settled and self._layout_changes > _TRIES:
            self._refuse(f"{self._line}: optimizers pack parameters or moments anew in each step")
        return None if recorder.refusal else program, result

    # Programs

    def _drop(self, key: int) -> None:
        program = self._programs.pop(key)
        if program is self._recent:
            self._recent = None
        program.release()

    def _refuse(self, reason: str) -> None:
        """Run the step eagerly from now on, and warn."""
        if self.refusal is None:
            self.refusal = reason
            for key in list(self._programs):
                self._drop(key)
            warn_user(
                f"capture: {reason}: the step runs eagerly from now on; see docs/learn/capture.md",
                CaptureWarning,
            )

    def _warn_of_limit(self) -> None:
        if not self._warned:
            self._warned = True
            warn_user(
                f"capture: {self._line}: {self.recordings} programs were traced and none holds for"
                " this call, which runs eagerly: too much differs from call to call other than"
                " values of tensors; pass tensors, or raise limit=",
                CaptureWarning,
            )

    # Inspection

    def state(self) -> list[tuple[str, Any]]:
        """Return the tensors, modules, optimizers and generators found from the step, by name."""
        return list(StepState(self._step, (), self._extra_state).named.values())

    def program(self) -> str:
        """Return the programs as text."""
        from xgrad.capture.printer import listing  # loaded only if needed

        with self._lock:
            texts = [listing(program) for program in self._programs.values()]
        return "\n\n".join(texts) or f"runs eagerly: {self.refusal or 'not traced yet'}"


def _own_result(
    recording: Recording, effects: Effects, args: Sequence[Any]
) -> tuple[Any, str | None]:
    """Return the result of a recorded step as a replay makes it: with tensors held by nothing else.

    If something that the step made is still alive after that, it is held where a replay would not
    put it: the second value is the line that made it, and None otherwise.
    """
    line = None
    recorder = recording.recorder
    old = list(map(ref, effects.made))
    made = effects.make(recorder.arrays_of(effects.outputs), args)
    effects.set_gradients(args, made)
    recording.release_arrays()
    effects.made.clear()
    recording.forget()
    if _has_escapes(recorder, old):
        gc.collect()  # frees reference cycles, such as tracebacks of caught exceptions
    if _has_escapes(recorder, old):
        line = recorder.line_of(recorder.escaped())
        made = [
            new if (known := reference()) is None else known
            for reference, new in zip(old, made, strict=True)
        ]
        effects.set_gradients(args, made)
    return effects.result(args, made), line


def _has_escapes(recorder: Recorder, made: list[ref[Tensor]]) -> bool:
    """Return whether an array or a tensor that the step made is still held elsewhere."""
    return recorder.escaped() is not None or any(reference() is not None for reference in made)


def _unsuitable(device: Device, call: Arguments) -> str | None:
    """Return why a call cannot be traced, or None if it can."""
    if device.backend.executor is None:
        return f"steps on {device} cannot be replayed yet"
    if any(isinstance(x._edge, Node) for x in call.tensors):
        return (
            "an argument was computed with a graph behind it: give .detach(), or compute it inside"
        )
    for x in call.others:
        if (hasattr(x, "__array__") or hasattr(x, "__dlpack__")) and bool(
            getattr(x, "shape", None)
        ):
            return f"an argument is a {type(x).__name__}: pass a tensor"
    return None
