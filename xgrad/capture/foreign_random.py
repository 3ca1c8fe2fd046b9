"""Random numbers of Python and NumPy: a step that draws them cannot be replayed."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pickle import dumps
from types import BuiltinMethodType, MethodType
from typing import Any

import numpy.random

_KINDS = (random.Random, numpy.random.Generator, numpy.random.RandomState)


def is_foreign_generator(x: Any) -> bool:
    """Return whether something is a generator of Python or NumPy, or a method of one."""
    return isinstance(_owner(x), _KINDS)


def states(generators: Iterable[Any]) -> list[Any]:
    """Return the states of some generators, and of those that Python and NumPy share."""
    owners = [_owner(x) for x in (*generators, random.random)]
    found = [x.getstate() if isinstance(x, random.Random) else dumps(x) for x in owners if isinstance(x, _KINDS)]
    shared: Any = numpy.random.get_state()
    return [shared[1].tobytes(), shared[2:], *found]


def _owner(x: Any) -> Any:
    return x.__self__ if isinstance(x, (BuiltinMethodType, MethodType)) else x
