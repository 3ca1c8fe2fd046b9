"""`capture`: a step that is recorded when it is first called, and replayed from then on."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import update_wrapper
from importlib import import_module
from threading import RLock
from typing import Any, Generic, ParamSpec, TypeVar

from xgrad import trees
from xgrad.capturing.chance import drawn_elsewhere
from xgrad.capturing.descriptions import Names, contents
from xgrad.capturing.doors import recording_with
from xgrad.capturing.doubles import original
from xgrad.capturing.frame import Frame, lies_otherwise
from xgrad.capturing.leaks import forget_recording, leak
from xgrad.capturing.outcomes import MISS, Unusable
from xgrad.capturing.recorder import Recorder, active
from xgrad.capturing.signature import described_argument, flattened, state_of
from xgrad.capturing.surroundings import Inside, Watched, begins, watched
from xgrad.capturing.ways import Ways
from xgrad.capturing.whereabouts import line_of_step
from xgrad.devices import _default, current_device
from xgrad.grad_mode import grad_enabled
from xgrad.graph import Node
from xgrad.optim.flat import Flat
from xgrad.tensor import Tensor

P = ParamSpec("P")
R = TypeVar("R")

_TRIES = 4  # recordings in which a step may still settle, as its first does that makes an optimizer's state
_PAID = 20  # replays for which another recording may be made, once there have been as many as are kept


class CaptureWarning(UserWarning):
    """A step cannot be captured, and runs eagerly; or it goes more ways than recordings are kept of."""


def capture(step: Callable[P, R], *, limit: int = 16) -> Captured[P, R]:
    """Return a function that records what `step` does with arrays when it is first called, and replays it later.

    If an optimizer takes its first step in it, which is unlike all others, the second call is recorded.

    A replay makes the same calls of the array library, to the last bit but for the sign of NaN, without going through
    Python's functions, the graph and the rules, and in memory that is planned beforehand, if there have been so many
    that a plan pays. For what it computes and leaves behind, in parameters, ``.grad``, optimizers and generators, it is
    as if the step had run.

    A recording holds for arguments of the same shapes, dtypes, layouts and devices, and for equal arguments that are no
    tensors, while modules have the same attributes and are in the same mode (`Module.train`, `Module.eval`), and the
    variables that the step's code names, and that of functions and methods that it calls by name, are the same things
    with the same in them: in containers and arrays of NumPy, of up to 256 things, and in objects, classes and modules
    of yours those attributes that the code names. For others the step is recorded anew. Learning rates and other
    numeric options of optimizers, their counts of steps, and the state of generators are read at each replay. What the
    step changes itself, such as a list to which it appends, what it reads otherwise, such as a clock, and what it does
    besides, such as printing, is as it was when the step was recorded.

    What cannot be replayed is noticed while it is recorded: a value that is read, to branch on it or to print it; a
    shape that depends on values; an array of another library; a tensor that is kept outside. Then a `CaptureWarning`
    names the line, and the step runs eagerly from then on, as it does on devices that cannot replay.

    Parameters
    ----------
    step : callable
        What takes tensors, or containers of them, and other things, and returns such.
    limit : int, default 16
        How many recordings to keep. Once there have been as many, the step runs eagerly where none of them fits, and is
        recorded only as often as replays have paid for it, once for 20 of them; the recording that was used least
        recently goes then. There is one warning when that begins.

    Returns
    -------
    Captured
        The function, with a method `program` that tells what was recorded. What it returns has no history: the graph of
        a step is used up within it.

    Raises
    ------
    TypeError
        If `step` cannot be called.
    ValueError
        If `limit` is below 1.

    Notes
    -----
    It may be called from several threads; one replays at a time. Within another captured step it is part of that.

    Examples
    --------
    >>> import xgrad
    >>> from xgrad import nn, optim
    >>> model = nn.Linear(3, 1)
    >>> optimizer = optim.SGD(model.parameters(), lr=0.1)
    >>> @xgrad.capture
    ... def step(x, y):
    ...     optimizer.zero_grad()
    ...     loss = nn.functional.mse_loss(model(x), y)
    ...     loss.backward()
    ...     optimizer.step()
    ...     return loss
    >>> x, y = xgrad.ones((8, 3)), xgrad.zeros((8, 1))
    >>> losses = [step(x, y).item() for _ in range(20)]
    >>> losses[-1] < losses[0] / 100
    True
    """
    if not callable(step):
        raise TypeError(f"capture: expected a function, got {type(step).__name__}")
    if limit < 1:
        raise ValueError(
            f"capture: expected a limit of at least 1, got {limit}: to run a step eagerly, do not capture it"
        )
    replays = current_device().backend.replays
    if replays is not None:  # now, rather than in the first step
        import_module(replays)
    return Captured(step, limit)


class Captured(Generic[P, R]):
    """A step that is recorded and replayed: what `capture` returns.

    Attributes
    ----------
    refusal : str or None
        Why the step runs eagerly, if it does.
    recordings : int
        How often it has been recorded.
    """

    def __init__(self, step: Callable[P, R], limit: int = 16) -> None:
        update_wrapper(self, step)
        self._step, self._limit = step, limit
        self._ways = Ways(limit)
        self._lock = RLock()  # a step that runs eagerly may call itself
        self._recent: Callable[[Any], Any] | None = None  # the way that the last call went
        self._unsettled: dict[Any, int] = {}
        self._watched: list[Watched | Inside] | None = None  # found at the first call, when all is in place
        self._names = Names()  # of attributes that the step may read
        self._grown: dict[Any, tuple[Any, int]] = {}  # what it adds to by itself, and how often that was seen
        self._flats: list[Flat] = []  # what optimizers keep side by side, as of the last recording
        self._warned = self._begun = False
        self._kept = self._replays = 0  # how many recordings were of use, and how often one was replayed
        self.refusal: str | None = None
        self.recordings = 0

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Replay the step, or run and record it."""
        if active.get() is not None:  # within another step, it is part of that
            return self._step(*args, **kwargs)
        if self._recent is not None and not kwargs:
            with self._lock:
                results = MISS if self._recent is None else self._recent(args)
                if results is not MISS:
                    self._replays += 1
                    return results  # type: ignore[no-any-return]
        if self.refusal is not None:
            return self._step(*args, **kwargs)
        key, tensors = self._key(args, kwargs)
        with self._lock:
            return self._called(key, tensors, args, kwargs)  # type: ignore[no-any-return]

    def _key(self, args: Any, kwargs: Any) -> tuple[Any, tuple[Tensor, ...]]:
        """Return what a recording depends on, and the tensors among the arguments."""
        structure, tensors = None, args
        key: list[Any] = [grad_enabled.get(), _default.get()]
        for arg in args:
            if type(arg) is not Tensor:
                structure, leaves = flattened(args, kwargs)
                break
        else:
            if kwargs:
                structure, leaves = flattened(args, kwargs)
            else:
                leaves = args
        if structure is not None:
            key.append(structure)
            tensors = tuple([leaf for leaf in leaves if isinstance(leaf, Tensor)])
        if self._watched is None:
            self._look(leaves)
        key += map(described_argument, leaves)
        if structure is not None:
            key += [contents(leaf, self._names) for leaf in leaves if not isinstance(leaf, Tensor)]
        key += [w() for w in self._watched or ()]
        if len(tensors) > 1 and len(set(map(id, tensors))) < len(tensors):
            key.append(tuple([[t is u for u in tensors].index(True) for t in tensors]))
        return tuple(key), tensors

    def _look(self, arguments: Iterable[Any]) -> None:
        """Look for what is to be watched, which may be other things when variables are."""
        found, self._names = watched(self._step, arguments, self._names)
        logs = {place for place, (_, count) in self._grown.items() if count < 0}
        self._watched = [w for w in found if type(w) is not Inside or w.place not in logs]

    def _called(self, key: Any, tensors: tuple[Tensor, ...], args: Any, kwargs: Any) -> Any:
        error = None
        for frame in self._ways.of(key):
            results = frame.replay(tensors)
            if results is not MISS:
                self._recent = frame.replay if tensors is args else None
                self._ways.use(key, frame)
                self._replays += 1
                return results
            error = error or frame.failure()
        self._recent = None
        for frame in self._ways.of(key):
            if frame.waits():
                return self._step(*args, **kwargs)
            if error or frame.over():
                self._ways.drop(key, frame)
        if self.recordings or self._begun:  # otherwise it has been done for the key
            self._look([leaf for _, leaf in trees.leaves((args, kwargs))])
            now, _ = self._key(args, kwargs)
            if now != key and now in self._ways:
                return self._called(now, tensors, args, kwargs)
            key = now
        if self._kept >= self._limit + self._replays // _PAID:
            results = self._step(*args, **kwargs)
            self._warn_of_many()
            return results
        kept = self._kept
        with _without_collection():
            results = self._record(key, args, kwargs, list(tensors))
        if self._kept > kept and tensors is args:
            self._recent = self._ways.of(key)[0].replay
        if error is not None and self.refusal is None:  # the step as it is knows of none
            self._refuse(f"{_line_of(self._step)}: a replay failed: {type(error).__name__}: {error}")
        return results

    def _record(self, key: Any, args: Any, kwargs: Any, tensors: list[Tensor]) -> Any:
        """Run the step, and write down what it does."""
        device = tensors[0].device if tensors else current_device()
        if device.backend.replays is None:
            self._refuse(f"{line_of_step()}: steps on {device} cannot be replayed yet")
            return self._step(*args, **kwargs)
        for tensor in tensors:
            if isinstance(tensor._edge, Node):
                self._refuse(
                    f"{line_of_step()}: an argument was computed with a graph behind it: give .detach(), or compute "
                    "it inside"
                )
                return self._step(*args, **kwargs)
        if self.recordings == 0 and not self._begun and begins(self._watched or (), (*args, *kwargs.values())):
            self._begun = True
            return self._step(*args, **kwargs)
        if any(flat.intact() and lies_otherwise(flat) for flat in self._flats):
            return self._step(*args, **kwargs)
        self.recordings += 1
        recorder = Recorder(tensors, device, original(device)["xp"])
        variables = [w.read() for w in self._watched or ()]
        states = drawn_elsewhere(variables)  # first and last, for other threads may run meanwhile
        watched, given = [(w, w()) for w in self._watched or ()], state_of(args, kwargs, self._names)
        for flat in self._flats:  # as before a replay
            if flat.intact():
                flat.keep_private()
        try:
            with recording_with(recorder):
                results = self._step(*args, **kwargs)
        except BaseException:
            forget_recording([*recorder.tensors_made(), *recorder.rebound.values()])
            raise
        self._note_changes(recorder, args, kwargs, given, watched)
        if drawn_elsewhere(variables) != states:  # by the step, or by another thread
            recorder.unsettled = "the step draws random numbers of Python's or NumPy's"
        self._flats = list(recorder.flats.values())
        try:
            self._keep(key, recorder, tensors, results, watched)
        except Unusable as error:
            recorder.refuse(str(error), line=error.line or _line_of(self._step))
        if recorder.refusal is not None:
            self._refuse(recorder.refusal)
        if recorder.refusal is not None or recorder.unsettled:
            forget_recording([*recorder.tensors_made(), *recorder.rebound.values()])
        recorder.forget()
        return results

    def _note_changes(
        self, recorder: Recorder, args: Any, kwargs: Any, given: Any, watched: list[tuple[Watched | Inside, Any]]
    ) -> None:
        """Note what the step has changed that a replay would not, given what its arguments and variables were."""
        if recorder.leaves.changes_wishes(recorder.tensors_made()):
            recorder.unsettled = "the step changes requires_grad of a tensor that was there before"
        if recorder.leaves.changes_hooks():
            recorder.unsettled = "the step changes the hooks of a tensor that was there before"
        if state_of(args, kwargs, self._names) != given:
            recorder.refuse("the step changes what is in its arguments", line=_line_of(self._step))
        for w, value in watched:
            now = w()
            if now == value:
                continue
            if type(w) is Inside and value and now and now[: len(value)] == value:
                self._grows(w, recorder)
            else:
                what = f"changes what is in {w.name}" if type(w) is Inside else f"gives {w.name} another value"
                recorder.refuse(f"the step {what}", line=_line_of(self._step))
        for module, attributes in recorder.called.values():
            changed = [n for n in attributes if n != "training" and vars(module).get(n) is not attributes[n]]
            if changed or len(vars(module)) != len(attributes):
                name = changed[0] if changed else sorted(vars(module).keys() - attributes.keys())[0]
                recorder.refuse(f"the step changes {type(module).__name__}.{name}", line=_line_of(self._step))

    def _grows(self, w: Inside, recorder: Recorder) -> None:
        """Note that a step adds to what it names: to a list that it logs in, or to a dict in which it looks later."""
        count = self._grown.get(w.place, (None, 0))[1]
        if type(w.read()) is list:
            count = -2  # which is not followed any more
            self._watched = [other for other in self._watched or [] if other is not w]
        elif count + 1 >= self._limit:
            recorder.refuse(f"the step changes what is in {w.name}", line=_line_of(self._step))
        self._grown[w.place] = w, count + 1  # which keeps the place
        recorder.unsettled = f"the step adds to {w.name}"

    def _keep(
        self,
        key: Any,
        recorder: Recorder,
        tensors: list[Tensor],
        results: Any,
        watched: list[tuple[Watched | Inside, Any]],
    ) -> None:
        """Keep a recording for the next call, if it can be used."""
        if recorder.refusal is not None:
            return
        leaked = leak(recorder, results)
        if leaked and not recorder.unsettled:
            gc.collect()
            leaked = leak(recorder, results)
        if leaked and not recorder.unsettled:
            recorder.unsettled = leaked
        if recorder.unsettled:
            count = self._unsettled[key] = self._unsettled.get(key, 0) + 1
            if count >= _TRIES:
                recorder.refuse(recorder.unsettled, line=_line_of(self._step))
            return
        for tensor in recorder.rebound.values():
            if isinstance(tensor._edge, Node):
                raise Unusable("a tensor from before the step is given a value that was computed with a graph")
        backend = original(recorder.device)["backend"]
        try:
            frame = Frame(recorder, tensors, results, recorder.last, backend, watched)
        except Unusable:
            raise
        except Exception as error:  # of ours: the step itself has run
            raise Unusable(f"what was recorded cannot be replayed: {type(error).__name__}: {error}") from error
        if self._ways.add(key, frame):
            self._recent = None
            self._warn_of_many()
        self._kept += 1
        self._unsettled.pop(key, None)

    def _warn_of_many(self) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"capture: {_line_of(self._step)} is called with more than {self._limit} kinds of arguments, or in so "
                "many states: it runs eagerly where no recording fits, until replays have paid for another one, and "
                "the one used least recently is given up: pass what changes as tensors of one shape, or raise limit",
                CaptureWarning,
                stacklevel=5,
            )

    def _refuse(self, why: str) -> None:
        self.refusal, self._recent = why, None
        self._ways.clear()
        warnings.warn(f"capture: {why}: the step runs eagerly from now on", CaptureWarning, stacklevel=5)

    def program(self) -> str:
        """Return what is replayed: the calls of each recording with their shapes, memory and bytes, once it is planned.

        Examples
        --------
        >>> import xgrad
        >>> line = xgrad.capture(lambda x: 2 * x + 1)
        >>> _ = line(xgrad.ones(4))
        >>> print(line.program())
        1 recording
        <BLANKLINE>
        calls      2, and 0 in brackets that cost nothing
        memory     64 bytes; 64 if each value had memory of its own
        arguments  arg0 float32 (4,)
        <BLANKLINE>
        %0 float32 (4,) = multiply(2, arg0)  at 0  16  ...
        %1 float32 (4,) = add(%0, 1)         new   16  ...
        <BLANKLINE>
        returns    %1 float32 (4,)
        leaves     nothing else
        """
        from xgrad.capturing.listing import listing  # which only those who look need

        if self.refusal is not None:
            return f"runs eagerly: {self.refusal}"
        with self._lock:
            frames = list(self._ways)
            for frame in frames if active.get() is None else ():  # not in the midst of a recording
                frame.plan()
        count = len(frames)
        parts = [f"{count} recording{'s' * (count != 1)}"]
        return "\n\n".join([*parts, *map(listing, frames)])


@contextmanager
def _without_collection() -> Iterator[None]:
    """Put off the search for garbage: a recording makes thousands of objects, and leaves hardly any of it."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            if not gc.get_freeze_count():  # of the user's
                gc.freeze()  # what there is goes to what is old, which is searched last
                gc.unfreeze()
            gc.enable()


def _line_of(step: Any) -> str:
    code = getattr(step, "__code__", None)
    if code is None:
        return getattr(step, "__qualname__", type(step).__name__)
    return f"{code.co_filename.rpartition('/')[2]}:{code.co_firstlineno}"
