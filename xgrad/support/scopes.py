"""Settings of a thread or task: context managers for context variables, safe against Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from contextvars import ContextVar
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from opcode import opmap
from typing import Any, Generic, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


def before_signals(method: F) -> F:
    """Return a method that makes its first call into C before a signal handler can run.

    CPython runs handlers at the start of a function, after a call into C, and where a loop jumps back. An ``__exit__``
    interrupted at its start would restore nothing. The argument of a function's first instruction, RESUME, is 0 if
    handlers run there, and 2 if they do not, as after an ``await``.
    """
    code, start = method.__code__, opmap["RESUME"]
    if code.co_code[:2] == bytes([start, 0]):
        method.__code__ = code.replace(co_code=bytes([start, 2]) + code.co_code[2:])
    return method


class Scope(Generic[T]):
    """Context manager that sets a context variable, and restores it at every exit, also by Ctrl-C."""

    def __init__(self, variable: ContextVar[T], value: T) -> None:
        self._variable, self._value = variable, value
        self._before: list[T] = []

    @before_signals
    def __enter__(self) -> T:
        self._before += [self._variable.get()]
        try:
            self._variable.set(self._value)
        except BaseException:  # of a signal handler: __exit__ is not called where __enter__ raises
            self.__exit__()
            raise
        return self._value

    @before_signals
    def __exit__(self, *exc: object) -> None:
        before = self._before[-1]
        del self._before[-1]
        self._variable.set(before)


class Mode(Scope[T], ContextDecorator):
    """Scope that can also decorate functions."""

    def __call__(self, function: F) -> F:
        """Return a function that runs in this mode."""
        if any(kind(function) for kind in (isgeneratorfunction, iscoroutinefunction, isasyncgenfunction)):
            raise TypeError(
                f"{type(self).__name__}: expected a plain function to decorate, got {function.__name__}, which is left "
                "and entered again: use a with block inside it"
            )
        return super().__call__(function)

    def _recreate_cm(self) -> Mode[T]:
        return Mode(self._variable, self._value)  # a decorated function may be running in several threads
