"""Order of the runs of a graph on several streams."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_PER_THREAD = 2  # cudaStreamPerThread: one handle for the default streams of all threads


class LastRun:
    """The last run of a graph, for which the next one waits if it is on another stream.

    An event marks the end of a run on the default stream of a thread, because other threads cannot
    refer to this stream.
    """

    def __init__(self) -> None:
        self._stream: Any = None
        self._event: Any = None

    @contextmanager
    def followed_on(self, stream: Any) -> Iterator[None]:
        """Queue a wait for the last run, and then, in the block, the next run."""
        if self._event is not None:
            stream.wait_event(self._event)
        elif self._stream is not None and self._stream != stream:
            stream.wait_event(self._stream.record())
        self._stream, self._event = stream, None
        try:
            yield
        finally:
            if stream.ptr == _PER_THREAD:
                self._event = stream.record()

    def synchronize(self) -> None:
        """Wait for the last run, but not for the device, on which another thread may capture."""
        last = self._stream if self._event is None else self._event
        if last is not None:
            last.synchronize()
