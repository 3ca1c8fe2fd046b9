"""Capture of a stream in one thread, while other threads synchronize."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from threading import RLock
from typing import Any, TypeVar

T = TypeVar("T")

_CAPTURE_ERRORS = range(900, 908)  # of cudaError_t
_INVALIDATED = 901  # cudaErrorStreamCaptureInvalidated: an error was reported to an earlier call

# Synchronizing a device on which a stream captures fails, and ends the capture. A thread that
# captures may take the lock again, as in a finalizer, and has CUDA's error.
_capture_lock = RLock()


class Invalidated(Exception):
    """A capture ended because another thread synchronized the device."""


def synchronize(device: Any) -> None:
    """Wait for a device, and before that for a capture by another thread."""
    with _capture_lock:
        device.synchronize()


def record(stream: Any, function: Callable[[], T]) -> tuple[T, Any]:
    """Call a function while a stream captures; return its result and the graph.

    The capture ends even after an error. Raises Invalidated if another thread ended it, by CuPy's
    own functions: another call may then succeed.
    """
    with _capture_lock:
        stream.begin_capture()
        try:
            return function(), stream.end_capture()
        except BaseException as error:
            by_another = isinstance(error, Exception) and _by_another(stream, error)
            with contextlib.suppress(Exception):
                stream.end_capture()
            if by_another:
                raise Invalidated(
                    f"the capture ended, probably by another thread that synchronized: {error}"
                ) from error
            raise


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, and the errors that caused it."""
    while error is not None:
        yield error
        error = error.__cause__


def _by_another(stream: Any, error: Exception) -> bool:
    """Return whether an error in a capture comes from another thread that invalidated it."""
    statuses = {getattr(each, "status", None) for each in causes(error)}.intersection(
        _CAPTURE_ERRORS
    )
    if statuses:
        return statuses == {_INVALIDATED}
    try:  # an error of a library does not tell
        stream.is_capturing()
    except RuntimeError:  # what CuPy raises for an invalid capture
        return True
    return False
