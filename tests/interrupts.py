"""Interruption of calls by a signal handler: at a random time, or at a given instruction of the library.

``INTERRUPTS=20000`` in the environment sets the number of interruptions.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
from collections.abc import Callable, Collection
from opcode import opmap
from typing import Any

from xgrad.support.scopes import before_signals

INTERRUPTS = int(os.environ.get("INTERRUPTS", 800))


class Interrupt(BaseException):
    """Exception of the signal handler."""


def interrupt(*_: Any) -> None:
    sys.settrace(None)
    raise Interrupt


class _Signal:
    """An object of which ``-x`` makes a SIGINT pending. An operator, unlike a call, does not run its handler."""

    __neg__ = staticmethod(_thread.interrupt_main)


def call_with_signal(seconds: float, call: Callable[[], Any]) -> bool:
    """Call a function, and raise `Interrupt` after a time; return whether that was before it returned."""
    old = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))
        call()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Interrupt:
        return True
    finally:
        signal.signal(signal.SIGALRM, old)
    return False


#: Instructions after which Python runs signal handlers, by their numbers; it does so at the start of functions, too.
_CHECKED = frozenset(number for name, number in opmap.items() if name.startswith("CALL") or "JUMP_BACKWARD" in name)


class _Trace:
    """A trace function that makes a signal pending at the `last` place of the library where a handler may run."""

    def __init__(self, last: int, functions: Collection[str]) -> None:
        self.last, self.functions, self.count, self.signal = last, functions, 0, _Signal()
        self.called: set[str] = set()

    @before_signals
    def trace(self, frame: Any, event: str, arg: Any) -> Any:
        if self.count == self.last > 0:
            return None  # with no call: the handler would run here
        if not ("xgrad" in frame.f_code.co_filename or frame.f_code.co_filename.startswith("<")):
            return None  # not of the library, nor of code that it has written
        if self.functions and frame.f_code.co_name not in self.functions:
            return None
        self.called.add(frame.f_code.co_name)
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        self.count += event == "call" or (event == "opcode" and frame.f_code.co_code[frame.f_lasti] in _CHECKED)
        if self.count == self.last:
            _ = -self.signal  # type: ignore[operator]
        return self.trace


def call_with_signal_at(last: int, call: Callable[[], Any], functions: Collection[str] = ()) -> int:
    """Call a function, and raise `Interrupt` in a signal handler at the place of the library with a number.

    Places are those where Python runs handlers, numbered from 1 in the order of the call; with names of functions,
    only places in these. Return the number of places that were reached: all of them for the number 0.
    """
    tracer, old = _Trace(last, functions), signal.signal(signal.SIGINT, interrupt)
    try:
        sys.settrace(tracer.trace)
        call()
        sys.settrace(None)
    except Interrupt:
        pass
    finally:
        sys.settrace(None)
        signal.signal(signal.SIGINT, old)
    assert last or tracer.called >= set(functions), f"not called: {set(functions) - tracer.called}"
    return tracer.count
