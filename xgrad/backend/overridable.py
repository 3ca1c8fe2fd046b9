"""Parts of rules that a backend may have as one kernel, each with the generic form that it replaces.

What replaces the forward rule of an op, a backend's `kernels` have under the op's name. What is less than an op, such
as a derivative rule or the update of an optimizer, is declared `overridable` here, in the place where it belongs, and a
backend's `kernels` may have that too, under its own name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, update_wrapper
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Overridable:
    """A function declared `overridable`: its generic form, and the names of arguments that it changes in place."""

    __slots__ = ("changes", "generic")

    def __init__(self, generic: Callable[..., Any], changes: tuple[str, ...]) -> None:
        self.generic, self.changes = generic, changes


#: All parts, by name.
OVERRIDABLE: dict[str, Overridable] = {}


def overridable(generic: F, name: str = "", changes: tuple[str, ...] = ()) -> F:
    """Declare a function of a namespace and arrays that a backend may have as one kernel.

    Where the backend's `kernels` have an entry of its name, that is called in place of the function, with the same
    arguments without the namespace. Otherwise, and always in a pass that is recorded, for kernels have no derivative,
    the function itself is.

    Parameters
    ----------
    generic : callable
        Its first parameter is the namespace; none of them has a default. It uses operators and that namespace alone,
        and is the reference by which kernels are judged.
    name : str, optional
        Its name; by default its own, without leading underscores.
    changes : tuple of str, optional
        The arguments that it changes in place, as a kernel is to. All others stay as they are.

    Returns
    -------
    callable
        With the same parameters.

    Raises
    ------
    ValueError
        If there is one of that name already, or no such argument.

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
        raise ValueError(f"overridable: expected a name of its own for each part, got {name!r} twice")
    first, *rest = code.co_varnames[: code.co_argcount]
    if unknown := set(changes) - set(rest):
        raise ValueError(f"overridable: {name} has no arguments {sorted(unknown)}: expected some of {rest}")
    OVERRIDABLE[name] = Overridable(generic, changes)
    chosen = _choice((first, *rest))(generic, name)
    update_wrapper(chosen, generic)
    return chosen  # type: ignore[no-any-return]


@cache
def _choice(parameters: tuple[str, ...]) -> Any:
    """Return what makes a function of these parameters of its generic form and the name of its kernel.

    Written out, as a plan's steps are: to pass on arguments that have no names takes three times as long. A namespace
    that looks up names by itself would look for a long time, so it is asked for those that it has.
    """
    first, *rest = parameters
    return eval(
        f"lambda _generic, _name: lambda {', '.join(parameters)}: _generic({', '.join(parameters)}) if "
        f"(kernels := {first}.__dict__.get('kernels')) is None or (kernel := kernels.get(_name)) is None else "
        f"kernel({', '.join(rest)})"
    )
