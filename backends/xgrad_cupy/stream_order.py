"""Order of the runs of a graph on several streams."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class LastRun:
    """The end of the last run of a graph, for which the next run waits.

    An event marks it. The stream itself would not do: it may be gone by then, and other threads
    cannot refer to the default stream of a thread.
    """

    def __init__(self) -> None:
        self._event: Any = None

    @contextmanager
    def followed_on(self, stream: Any) -> Iterator[None]:
        """Queue a wait for the last run, and then, in the block, the next run."""
        if self._event is not None:
            stream.wait_event(self._event)
        try:
            yield
        finally:
            self._event = stream.record()

    def synchronize(self) -> None:
        """Wait for the last run, but not for the device, on which another thread may capture."""
        if self._event is not None:
            self._event.synchronize()
