"""Warnings of lost and missing gradients, with the line of the user's code."""

from __future__ import annotations

import sys
import warnings
from contextvars import ContextVar
from types import FrameType

from xgrad.support.scopes import Mode

_OURS = frozenset({"xgrad", "numpy"})

_warns: ContextVar[bool] = ContextVar("xgrad_warns_of_lost_gradients", default=False)


class LostGradientWarning(UserWarning):
    """A tensor with a gradient was made a number, which has none: see `warn_lost_gradients`."""


class warn_lost_gradients(Mode[bool]):
    """Warn where a tensor that needs a gradient becomes a number, within a ``with`` block or a decorated function.

    That is what `float`, `complex`, ``.item()`` and ``.tolist()`` do: what is computed of the number is a constant to
    the graph. The `LostGradientWarning` names the line of code. Nothing is lost by `bool` and `int`, whose derivative
    is 0 wherever there is one, and nothing is said of tensors under `no_grad`. The setting belongs to the thread or
    task that made it.

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
    float: this tensor needs a gradient, which is lost: compute with the tensor itself, or use .detach()
    """

    def __init__(self) -> None:
        super().__init__(_warns, True)


def warn_lost_gradient(how: str) -> None:
    """Warn that a gradient is lost by a conversion, if that is wanted."""
    if _warns.get():
        message = (
            f"{how}: this tensor needs a gradient, which is lost: compute with the tensor itself, or use .detach()"
        )
        warn_user(message, LostGradientWarning)


def warn_missing_gradient() -> None:
    """Warn that a computed tensor has no ``.grad``, unless it is a library that looks through the attributes."""
    if _module(sys._getframe(2)) not in _OURS | {"inspect", "pydoc"}:
        warn_user(
            "grad: expected a leaf, got a computed tensor, which keeps no gradient: call retain_grad() on it before "
            "the backward pass, or use xgrad.autograd.grad",
            UserWarning,
        )


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line of code that is neither ours nor NumPy's."""
    warnings.warn(message, category, stacklevel=_caller()[1])


def user_location() -> str:
    """Return the line of code that is neither ours nor NumPy's, as ``file:line``."""
    frame = _caller()[0]
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _caller() -> tuple[FrameType, int]:
    """Return the innermost frame that is neither ours nor NumPy's, and how far it is above who asks."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and _module(frame) in _OURS:
        frame, level = frame.f_back, level + 1
    return frame, level


def _module(frame: FrameType) -> str:
    """Return the root of the module that a frame is of."""
    name: str = frame.f_globals.get("__name__", "")
    return name.partition(".")[0]
