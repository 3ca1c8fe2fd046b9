"""The modes of a thread or task: whether ops are recorded, and the dtypes of autocast.

`xgrad.amp.autocast` sets the latter; `ops/precision.py` has what it does to the inputs of ops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import cache
from typing import Any, Self

from xgrad.support.scopes import Mode

grad_enabled: ContextVar[bool] = ContextVar("xgrad_grad_enabled", default=True)

#: The dtype of matrix products by type of device; None without any.
autocast_dtypes: ContextVar[Mapping[str, Any] | None] = ContextVar("xgrad_autocast", default=None)


class _GradMode(Mode[bool]):
    _variable = grad_enabled

    def __new__(cls, function: Callable[..., Any] | None = None) -> Self:
        """Return a context, or a function that is decorated without parentheses."""
        return super().__new__(cls) if function is None else cls()(function)  # type: ignore[return-value]

    def __init__(self, function: None = None) -> None:
        self._before = []


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

    _value = False


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

    _value = True


def is_grad_enabled() -> bool:
    """Return whether ops are recorded in this thread or task.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.is_grad_enabled()
    True
    """
    return grad_enabled.get()


@cache
def autocast_mode(types: frozenset[tuple[str, Any]]) -> Mapping[str, Any] | None:
    """Return a value of `autocast_dtypes`.

    Equal settings have the same object, since captured steps compare it.
    """
    return dict(types) or None
