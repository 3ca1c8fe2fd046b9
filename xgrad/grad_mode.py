"""Whether ops are recorded, in this thread or task."""

from __future__ import annotations

from contextlib import ContextDecorator
from contextvars import ContextVar, Token

grad_enabled: ContextVar[bool] = ContextVar("xgrad_grad_enabled", default=True)


class _GradMode(ContextDecorator):
    """A context manager, and a decorator, that sets whether ops are recorded in this thread or task."""

    enabled: bool

    def __init__(self) -> None:
        self._tokens: list[Token[bool]] = []

    def _recreate_cm(self) -> _GradMode:
        return type(self)()  # a decorated function may be running in several threads

    def __enter__(self) -> None:
        self._tokens.append(grad_enabled.set(self.enabled))

    def __exit__(self, *exc: object) -> None:
        grad_enabled.reset(self._tokens.pop())


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
