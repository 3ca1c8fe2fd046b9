"""Random numbers that are not drawn by generators of the library: a step that draws some cannot be replayed."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any


def drawn_elsewhere(generators: Iterable[Any]) -> list[Any]:
    """Return the states of the generators that Python and NumPy share, and of those among some things.

    They differ before and after a step that draws.
    """
    python, numpy = sys.modules.get("random"), sys.modules.get("numpy.random")
    states: list[Any] = []
    if python is not None:
        states.append(python.getstate())
        states += [thing.getstate() for thing in generators if issubclass(type(thing), python.Random)]
    if numpy is not None:
        states.append(_bits(numpy.get_state()))
        for thing in generators:
            if issubclass(type(thing), numpy.Generator):
                states.append(repr(thing.bit_generator.state))
            elif issubclass(type(thing), numpy.RandomState):
                states.append(_bits(thing.get_state()))
    return states


def _bits(state: Any) -> Any:
    name, key, *rest = state
    return name, key.tobytes(), rest
