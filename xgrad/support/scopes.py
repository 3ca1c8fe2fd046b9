"""Settings of a thread or task: context managers for context variables."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from contextvars import ContextVar
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import Any, Generic, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class Scope(Generic[T]):
    """Context manager that sets a context variable, and restores it after the block.

    The variable is also restored if the block raises.
    """

    def __init__(self, variable: ContextVar[T], value: T) -> None:
        self._variable, self._value = variable, value
        self._before: list[T] = []  # one for each block that is entered and not yet left

    def __enter__(self) -> T:
        self._before.append(self._variable.get())
        try:
            self._variable.set(self._value)
        except BaseException:
            # from a signal handler: __exit__ is not called if __enter__ raises
            self.__exit__()
            raise
        return self._value

    def __exit__(self, *exc: object) -> None:
        self._variable.set(self._before.pop())


class Mode(Scope[T], ContextDecorator):
    """Scope that can also decorate functions."""

    def __call__(self, function: F) -> F:
        """Return a function that runs in this mode."""
        if any(
            kind(function)
            for kind in (isgeneratorfunction, iscoroutinefunction, isasyncgenfunction)
        ):
            raise TypeError(
                f"{type(self).__name__}: expected a plain function to decorate, got"
                f" {function.__name__}, which is left and entered again: use a with block inside it"
            )
        return super().__call__(function)

    def _recreate_cm(self) -> Mode[T]:
        # a decorated function may be running in several threads
        return Mode(self._variable, self._value)
