"""The warning about modules and parameters in plain containers, which are not searched."""

from __future__ import annotations

from typing import Any

from xgrad.nn.calls import CallableModule
from xgrad.nn.parameter import Parameter
from xgrad.support.user_code import warn_user


def warn_of_unregistered(name: str, container: Any, seen: set[int]) -> None:
    """Warn about modules and parameters at any depth of a container that are not registered.

    `seen` has the ids of the registered ones.
    """
    members, visited, stack = list[CallableModule | Parameter](), set[int](), [container]
    while stack:
        part = stack.pop()
        if isinstance(part, (CallableModule, Parameter)):
            if id(part) not in seen:
                members.append(part)
        elif isinstance(part, (dict, list, tuple)) and id(part) not in visited:
            visited.add(id(part))
            stack += part.values() if isinstance(part, dict) else part
    if members:
        of_modules = all(isinstance(x, CallableModule) for x in members)
        what, hint = (
            ("modules", "nn.ModuleList") if of_modules else ("parameters", "an attribute for each")
        )
        message = (
            f"{name}: expected modules and parameters as attributes, got {what} in a"
            f" {type(container).__name__}, which parameters(), to() and state_dict() do not find:"
            f" use {hint}"
        )
        warn_user(message, UserWarning)
