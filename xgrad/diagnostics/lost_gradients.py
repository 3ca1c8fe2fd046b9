"""Warnings of gradients that conversions lose, and of gradients that are not kept."""

from __future__ import annotations

import sys
from contextvars import ContextVar

from xgrad.core.modes import grad_enabled
from xgrad.support.scopes import Mode
from xgrad.support.user_code import LIBRARIES, package, warn_user

_warns: ContextVar[bool] = ContextVar("xgrad_warns_of_lost_gradients", default=False)


class LostGradientWarning(UserWarning):
    """A tensor with a gradient was converted to a number without one: see `warn_lost_gradients`."""


class warn_lost_gradients(Mode[bool]):
    """Warn where a tensor that needs a gradient becomes a number.

    Use it in a ``with`` block or as a decorator of a function.

    `float`, `complex`, ``.item()`` and ``.tolist()`` do so: the graph sees the number as a
    constant. The `LostGradientWarning` names the line of code. There is no warning for `bool` and
    `int`, which have derivative 0 wherever there is one, nor under `no_grad`. The setting belongs
    to the thread or task that made it.

    Examples
    --------
    >>> import warnings
    >>> import xgrad
    >>> x = xgrad.ones(1, requires_grad=True)
    >>> with warnings.catch_warnings(record=True) as caught, xgrad.warn_lost_gradients():
    ...     warnings.simplefilter("always")
    ...     2 * float(x)
    2.0
    >>> print(caught[0].message)
    float: this tensor needs a gradient, which is lost: compute with the tensor itself,
    or use .detach()
    """

    def __init__(self) -> None:
        super().__init__(_warns, True)


def warn_lost_gradient(how: str) -> None:
    """Warn of a gradient lost by a conversion, within `warn_lost_gradients`."""
    if _warns.get() and grad_enabled.get():
        message = (
            f"{how}: this tensor needs a gradient, which is lost: compute with the tensor itself,"
            " or use .detach()"
        )
        warn_user(message, LostGradientWarning)


def warn_missing_gradient() -> None:
    """Warn that a computed tensor has no ``.grad``, unless a library inspects its attributes."""
    if package(sys._getframe(2).f_globals.get("__name__", "")) not in LIBRARIES | {
        "inspect",
        "pydoc",
    }:
        warn_user(
            "grad: expected a leaf, got a computed tensor, which keeps no gradient: call"
            " retain_grad() on it before the backward pass, or use xgrad.autograd.grad",
            UserWarning,
        )
