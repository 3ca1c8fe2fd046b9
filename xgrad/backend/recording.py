"""The entry of captured steps: raw arrays enter array code through `run_array_code`, where a
recorder sees them.

A captured step is recorded while it runs eagerly. Tensors always hold arrays of the device. Array
code, a function of a device and of raw arrays, is given proxies by the recorder, for the length of
the call, and each call that it makes of the array library is written down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # for it takes 0.3 ms of `import xgrad` to make a protocol

    class StepRecorder(Protocol):
        """The interface of the recorder of a captured step: see `xgrad.capture.recorder`."""

        # why the step cannot be replayed; the recorder is then left out of the rest of the step
        refusal: str

        def run(self, device: Any, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
            """Return the result of array code."""

        def enter(self, device: Any, arrays: Any, options: Any) -> tuple[Any, Any, Any]:
            """Return the device, the arrays and the options that a rule is called with."""

        def leave(self, device: Any, *results: Any) -> Any:
            """Return the device, and what a rule has returned, as tensors and nodes hold it."""

        def inside(self, x: Any) -> Any:
            """Return arguments of array code, with proxies for arrays."""

        def outside(self, x: Any) -> Any:
            """Return results of array code as tensors hold them, with arrays for proxies."""

        def knows(self, array: Any) -> bool:
            """Return whether an array is an argument, of the state, or made by the step."""

        def paused(self, follow: Iterable[Any]) -> AbstractContextManager[None]:
            """Return a context in which nothing is recorded, and some tensors may get new arrays of
            equal values.
            """

        def refuse(self, reason: str) -> None:
            """Note why the step cannot be replayed; it runs on, and eagerly from its next call."""

        def add_generator(self, generator: Any) -> None:
            """Take a generator that the step makes from a seed as a constant."""

        def draw(
            self, generator: Any, before: tuple[int, int], after: tuple[int, int]
        ) -> tuple[Any, Any]:
            """Return the seed and the number of a call of a generator, as random kernels are given
            them.
            """

        def update_numbers(self, owner: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
            """Return the options or the numbers of an optimizer, as its update rule is given
            them.
            """

        def updated_numbers(self, owner: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
            """Note the numbers that an update rule leaves, and return them as the optimizer keeps
            them.
            """

        def constant(self, make: Callable[[], tuple[Any, Any]]) -> tuple[Any, Any]:
            """Return an array, and its device, that is made of Python's values."""


class CaptureWarning(UserWarning):
    """A step cannot be captured and runs eagerly, or needs more programs than `limit`."""


class CaptureError(RuntimeError):
    """A replay differs from the eager step under ``verify``, or a tensor belongs to the trace of
    another thread.
    """


#: The recorder of a captured step in this thread or task. Ask for it by `active_recorder`.
recording: ContextVar[Any] = ContextVar("xgrad_recording", default=None)


def active_recorder() -> StepRecorder | None:
    """Return the recorder of the step that runs; None outside of captured steps, and once the
    capture is refused.
    """
    recorder: StepRecorder | None = recording.get()
    return None if recorder is None or recorder.refusal else recorder


def run_array_code(device: Any, function: Callable[..., Any], *args: Any) -> Any:
    """Return the result of array code: a function of a device and of arguments, in which raw arrays
    are used.

    All raw arrays are to enter array code here, or by the rule of an op. Arrays are passed as
    arguments, not by a closure, and writes to them are array code, too.
    """
    recorder = recording.get()
    if recorder is None or recorder.refusal:
        return function(device, *args)
    return recorder.run(device, function, args)


def assign(device: Any, x: Any, value: Any) -> None:
    """Write to an array: array code, for `run_array_code`."""
    x[...] = value


def add_to(device: Any, x: Any, value: Any) -> None:
    """Add to an array in place: array code, for `run_array_code`."""
    x += value


def copy_of(device: Any, x: Any) -> Any:
    """Return a copy of an array: array code, for `run_array_code`."""
    return device.xp.asarray(x, copy=True)


def cast(device: Any, x: Any, dtype: Any) -> Any:
    """Return an array in another dtype: array code, for `run_array_code`."""
    return device.xp.astype(x, dtype)


def broadcast_number(device: Any, number: float, dtype: Any, shape: tuple[int, ...]) -> Any:
    """Return a number in a shape, in the memory of one element: array code, for
    `run_array_code`.
    """
    return device.xp.broadcast_to(
        device.xp.full((), number, dtype=dtype, device=device.native), shape
    )


def check_true(device: Any, condition: Any) -> bool:
    """Return whether an array of one bool is true, in a check of an argument, which a replay
    repeats.
    """
    return bool(run_array_code(device, _check_true, condition))


def _check_true(device: Any, condition: Any) -> Any:
    return device.backend.check_true(condition)


def as_arrays(x: Any) -> Any:
    """Return arrays as tensors hold them, in a rule that makes tensors of its arguments."""
    recorder = recording.get()
    return x if recorder is None else recorder.outside(x)


def refuse(reason: str) -> None:
    """Refuse the capture of a step, if one is recorded."""
    if (recorder := active_recorder()) is not None:
        recorder.refuse(reason)
