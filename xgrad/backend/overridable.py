"""Functions in rules that a backend may override by one kernel.

Examples are a derivative rule and an optimizer's update. Forward rules of ops need no declaration:
a backend's kernel replaces the rule of the op of the same name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, update_wrapper
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Overridable:
    """The generic form of an `overridable` function, and the arguments that it changes in place."""

    __slots__ = ("changes", "generic")

    def __init__(self, generic: Callable[..., Any], changes: tuple[str, ...]) -> None:
        self.generic, self.changes = generic, changes


class ComposedKernel:
    """A kernel that calls array functions, such as matrix products, and other kernels.

    An entry of a backend's `kernels`. A captured step records each of these calls, whereas it
    records any other kernel as one call.

    Parameters
    ----------
    xp : namespace
        The backend's array functions.
    function : callable
        A function of a namespace, then the arguments of the rule that the kernel replaces.
    """

    __slots__ = ("_xp", "function")

    def __init__(self, xp: Any, function: Callable[..., Any]) -> None:
        self._xp, self.function = xp, function

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self.function(self._xp, *args, **options)


#: All overridable functions, by name.
OVERRIDABLE: dict[str, Overridable] = {}


def overridable(generic: F, name: str = "", changes: tuple[str, ...] = ()) -> F:
    """Declare a function of a namespace and arrays that a backend may override by a kernel.

    The kernel is the entry of that name in the backend's `kernels`, and takes the same arguments
    without the namespace. In a recorded pass, the function itself is called, because kernels have
    no derivative.

    The first parameter of `generic` is the namespace, and no parameter has a default. The function
    uses only operators and the namespace, and is the reference in tests of kernels. `name` is by
    default the function's name, without leading underscores. `changes` are the only arguments that
    the function, and a kernel, change in place.

    Examples
    --------
    >>> from xgrad.backend.device import Device
    >>> @overridable
    ... def doubled(xp, x):
    ...     return x + x
    >>> cpu = Device("cpu")
    >>> doubled(cpu.xp, cpu.xp.ones(2))
    array([2., 2.])
    >>> del OVERRIDABLE["doubled"]
    """
    name, code = name or generic.__name__.lstrip("_"), generic.__code__
    if name in OVERRIDABLE:
        raise ValueError(
            f"overridable: expected a name of its own for each part, got {name!r} twice"
        )
    first, *rest = code.co_varnames[: code.co_argcount]
    if unknown := set(changes) - set(rest):
        raise ValueError(
            f"overridable: {name} has no arguments {sorted(unknown)}: expected some of {rest}"
        )
    OVERRIDABLE[name] = Overridable(generic, changes)
    dispatch = _dispatcher((first, *rest))(generic, name)
    update_wrapper(dispatch, generic)
    return dispatch  # type: ignore[no-any-return]


@cache
def _dispatcher(parameters: tuple[str, ...]) -> Any:
    """Return a function that makes the dispatcher of a generic form and the name of its kernel.

    The dispatcher is generated, because passing on ``*args`` takes three times as long. It reads
    ``__dict__``, because a failed lookup in a namespace with ``__getattr__`` is slow.
    """
    first, *rest = parameters
    return eval(
        f"lambda _generic, _name: lambda {', '.join(parameters)}: _generic({', '.join(parameters)})"
        f" if (kernels := {first}.__dict__.get('kernels')) is None or (kernel :="
        f" kernels.get(_name)) is None else kernel({', '.join(rest)})"
    )
