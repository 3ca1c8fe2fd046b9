"""Checks of loaded states, and loading them as a whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xgrad.support.hints import shown


def check_state(title: str, state: Any, own: Mapping[str, Any]) -> None:
    """Raise ValueError unless a state has the names of `own`, and values of the same types."""
    if not isinstance(state, Mapping) or state.keys() != own.keys():
        got = sorted(state) if isinstance(state, Mapping) else type(state).__name__
        raise ValueError(f"{title}: expected {sorted(own)}, got {got}")
    for name, value in own.items():
        if _types(state[name]) != _types(value):
            raise ValueError(
                f"{title}: expected {name} of the types of {shown(value)}, got {shown(state[name])}"
            )


def _types(value: Any) -> Any:
    return [*map(_types, value)] if isinstance(value, list) else type(value)


def load_or_restore(
    title: str, load: Callable[[Any], None], state: Any, own: Mapping[str, Any]
) -> None:
    """Load a state; after an exception, load the present state `own` again.

    The state must have the names of the present one, and may have others.
    """
    known = {name: None for name in state if name in own} if isinstance(state, Mapping) else state
    check_state(title, known, dict.fromkeys(own))
    try:
        load(state)
    except BaseException:
        load(own)
        raise
