"""Interception points for captured steps: array code runs through `run_array_code`.

A captured step is recorded while it runs eagerly. Tensors always hold arrays of the device. Array
code is a function of a device and of raw arrays. For the length of the call, the recorder replaces
the arrays by proxies, and records each call that the array code makes to the array library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # defining a protocol takes 0.3 ms of `import xgrad`

    class StepRecorder(Protocol):
        """The interface of the recorder of a captured step: see `xgrad.capture.recorder`."""

        # why the step cannot be replayed; the recorder is then bypassed for the rest of the step
        refusal: str

        def run(self, device: Any, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
            """Return the result of array code."""

        def enter(self, device: Any, arrays: Any, options: Any) -> tuple[Any, Any, Any]:
            """Return the device, the arrays and the options to call a rule with."""

        def leave(self, device: Any, *results: Any) -> Any:
            """Return the device and the results of a rule, as tensors and nodes hold them."""

        def inside(self, x: Any) -> Any:
            """Return the arguments of array code, with proxies in place of arrays."""

        def outside(self, x: Any) -> Any:
            """Return the results of array code as tensors hold them: arrays, not proxies."""

        def knows(self, array: Any) -> bool:
            """Return whether an array belongs to an argument or the state, or the step made it."""

        def paused(self, follow: Iterable[Any]) -> AbstractContextManager[None]:
            """Return a context that records nothing, and may replace some tensors' arrays.

            The new arrays have equal values.
            """

        def refuse(self, reason: str) -> None:
            """Record why the step cannot be replayed; later calls run eagerly."""

        def add_generator(self, generator: Any) -> None:
            """Treat a generator that the step makes from a seed as a constant."""

        def draw(
            self, generator: Any, before: tuple[int, int], after: tuple[int, int]
        ) -> tuple[Any, Any]:
            """Return a generator's seed and call number, as passed to random kernels."""

        def update_numbers(self, owner: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
            """Return an optimizer's options or numbers as passed to its update rule."""

        def updated_numbers(self, owner: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
            """Record numbers after an update rule; return them as the optimizer stores them."""

        def constant(self, make: Callable[[], tuple[Any, Any]]) -> tuple[Any, Any]:
            """Return an array made from Python values, and its device."""


class CaptureWarning(UserWarning):
    """A step cannot be captured and runs eagerly, or needs more programs than `limit`."""


class CaptureError(RuntimeError):
    """Raised if a replay differs from the eager step under ``verify``.

    It is also raised if a tensor belongs to the trace of another thread.
    """


#: The recorder of a captured step in this thread or task. Get it with `active_recorder`.
recording: ContextVar[Any] = ContextVar("xgrad_recording", default=None)


def active_recorder() -> StepRecorder | None:
    """Return the recorder of the running step.

    None outside of captured steps, and once the capture is refused.
    """
    recorder: StepRecorder | None = recording.get()
    return None if recorder is None or recorder.refusal else recorder


def run_array_code(device: Any, function: Callable[..., Any], *args: Any) -> Any:
    """Return the result of array code: a function of a device and of arguments with raw arrays.

    All raw arrays must enter array code here, or by the rule of an op. Arrays must be passed as
    arguments, not through a closure, and writes to them are array code, too.
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
    """Return a number in a shape, in the memory of one element.

    This is array code, for `run_array_code`.
    """
    return device.xp.broadcast_to(
        device.xp.full((), number, dtype=dtype, device=device.native), shape
    )


def check_true(device: Any, condition: Any) -> bool:
    """Return whether an array of one bool is true, in a check of an argument.

    A replay repeats the check.
    """
    return bool(run_array_code(device, _check_true, condition))


def _check_true(device: Any, condition: Any) -> Any:
    return device.backend.check_true(condition)


def as_arrays(x: Any) -> Any:
    """Return arrays as tensors hold them, in a rule that makes tensors of its arguments."""
    recorder = recording.get()
    return x if recorder is None else recorder.outside(x)


def refuse(reason: str) -> None:
    """Refuse the capture of a step, if one is being recorded."""
    if (recorder := active_recorder()) is not None:
        recorder.refuse(reason)
