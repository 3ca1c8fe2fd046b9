"""Signals that wait for the end of a step."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType
from typing import Any


class SignalDelay:
    """Context manager in which SIGINT and SIGTERM can be held back.

    This applies to signals that a Python function handles. In a ``with delay.held():`` inside it, a
    signal waits for the end of that block, when its handler is called; a second signal of the same
    kind does not wait. Outside of the main thread, which alone handles signals, nothing changes.
    """

    def __init__(self) -> None:
        self._handlers: dict[int, Any] = {}  # the handlers from before
        self._pending: list[int] = []  # without the frames, which hold tensors
        self._is_held = False

    def __enter__(self) -> SignalDelay:
        if current_thread() is main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                handler = signal.getsignal(number)
                if callable(handler):  # not the default, which ends the process, and not ignored
                    self._handlers[number] = handler
                    signal.signal(number, self._receive)
        return self

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._handlers.items():
            if signal.getsignal(number) == self._receive:  # a handler may have set another one
                signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self._is_held and number not in self._pending:
            self._pending.append(number)
        else:
            self._handlers[number](number, frame)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold signals back until the end of a block."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
            while self._pending:
                number = self._pending.pop(0)
                self._handlers[number](number, None)
