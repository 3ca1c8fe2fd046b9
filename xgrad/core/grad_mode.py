"""Whether ops are recorded, in this thread or task."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from contextvars import ContextVar
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import Any, Self, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

grad_enabled: ContextVar[bool] = ContextVar("xgrad_grad_enabled", default=True)


class _GradMode(ContextDecorator):
    """A context manager, and a decorator, that sets whether ops are recorded in this thread or task."""

    enabled: bool
    _before: list[bool]

    def __new__(cls, function: Callable[..., Any] | None = None) -> Self:
        """Return a context, or a function that is decorated without parentheses."""
        mode = super().__new__(cls)
        mode._before = []
        return mode if function is None else mode(function)  # type: ignore[return-value]

    def __call__(self, function: F) -> F:
        """Return the function that runs in this mode."""
        if any(kind(function) for kind in (isgeneratorfunction, iscoroutinefunction, isasyncgenfunction)):
            raise TypeError(
                f"{type(self).__name__}: expected a plain function to decorate, got {function.__name__}, which is left "
                "and entered again: use a with block inside it"
            )
        return super().__call__(function)

    def _recreate_cm(self) -> _GradMode:
        return type(self)()  # a decorated function may be running in several threads

    def __enter__(self) -> None:
        self._before.append(grad_enabled.get())
        grad_enabled.set(self.enabled)

    def __exit__(self, *exc: object) -> None:
        grad_enabled.set(self._before.pop())


class no_grad(_GradMode):
    """Record no graph, in a ``with`` block or a decorated function: results need no gradient.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.ones(2, requires_grad=True)
    >>> with xgrad.no_grad():
    ...     (2 * x).requires_grad
    False
    """

    enabled = False


class enable_grad(_GradMode):
    """Record the graph again, in a ``with`` block or a decorated function inside a `no_grad`.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.ones(2, requires_grad=True)
    >>> with xgrad.no_grad(), xgrad.enable_grad():
    ...     (2 * x).requires_grad
    True
    """

    enabled = True


def is_grad_enabled() -> bool:
    """Return whether ops are recorded in this thread or task.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.is_grad_enabled()
    True
    """
    return grad_enabled.get()
