"""Random numbers that are not drawn by generators of the library: a step that draws some cannot be replayed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from ctypes import string_at
from pickle import dumps
from types import BuiltinMethodType, MethodType
from typing import Any

import numpy as np

_METHODS = (BuiltinMethodType, MethodType)
_TWISTER = 4 * 624 + 4  # bytes of the state of a Mersenne twister: words, and the place among them


def drawn_elsewhere(variables: Sequence[Any]) -> list[Any]:
    """Return states of the generators that Python and NumPy share, and of those among some variables.

    They differ before and after a step that draws. Of NumPy's shared one, a normal number that it has kept from the one
    before is only looked at where a variable leads there, for that takes long.
    """
    python, numpy = sys.modules.get("random"), sys.modules.get("numpy.random")
    owners = [thing.__self__ if type(thing) in _METHODS else thing for thing in variables]
    states: list[Any] = []
    if python is not None:
        shared = getattr(python.random, "__self__", None)  # which a test may have replaced
        states += [_of_python(thing) for thing in (shared, *owners) if issubclass(type(thing), python.Random)]
    if numpy is not None:
        bits = numpy.get_bit_generator()
        if type(bits) is numpy.MT19937 and {id(np), id(numpy)}.isdisjoint(map(id, owners)):
            states.append(string_at(bits.ctypes.state_address, _TWISTER))
        else:
            states.append(dumps(numpy.get_state(legacy=False)))
        for thing in owners:
            if issubclass(type(thing), (numpy.Generator, numpy.RandomState)):
                states.append(dumps(thing))
    return states


def _of_python(generator: Any) -> Any:
    """Return the state of a generator of Python's: as it lies in memory, for `getstate` makes 625 numbers of it."""
    if sys.implementation.name != "cpython":
        return generator.getstate()
    return string_at(id(generator) + object.__basicsize__, _TWISTER), vars(generator).get("gauss_next")
